"""What a class handed in: folders of every system, odd names, hostile archives."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import socket
import struct
import warnings
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib.grading import folder as folders
from attnlib.grading import students, zips
from attnlib.grading.folder import Handed, find
from attnlib.grading.notebook import Unreadable

NOTEBOOK = b'{"cells": []}'
OLD = (2026, 9, 1, 12, 0, 0)
NEW = (2026, 10, 1, 12, 0, 0)


def put(folder: Path, *names: str, content: bytes = NOTEBOOK) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def packed(*files: tuple[str, bytes] | str, when: tuple[int, ...] = NEW) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            name, content = file if isinstance(file, tuple) else (file, NOTEBOOK)
            archive.writestr(zipfile.ZipInfo(name, when[:6]), content)  # type: ignore[arg-type]
    return data.getvalue()


def told(found: Iterable[Handed]) -> list[tuple[str, str]]:
    return [(one.student, one.where) for one in found]


def only(folder: Path) -> Handed:
    (one,) = find(folder)
    return one


# Layouts


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["alice/03_masks.ipynb", "bob/hw.ipynb"], ["alice", "bob"]),
        (["alice.ipynb", "bob.ipynb"], ["alice", "bob"]),
        (["03_masks_alice.ipynb", "03_masks_bob.ipynb"], ["alice", "bob"]),
        (["alice_03_masks.ipynb", "bob-03_masks.ipynb"], ["alice", "bob"]),
        (["Alice 03 masks.ipynb", "Bob 04_many_heads.ipynb"], ["Alice", "Bob"]),
        (["alice_03.ipynb", "bob_03.ipynb"], ["alice", "bob"]),
        (["team_01.ipynb", "team_02.ipynb"], ["team_01", "team_02"]),
        (["1001/a.ipynb", "1002/a.ipynb"], ["1001", "1002"]),
        (["01/a.ipynb", "02/a.ipynb"], ["01", "02"]),
        (["s-1/a.ipynb", "s-2/a.ipynb"], ["s-1", "s-2"]),
        (["alice (1).ipynb", "bob.IPYNB"], ["alice", "bob"]),
        (["alice/03_masks/03_masks.ipynb", "bob/03_masks/x.ipynb"], ["alice", "bob"]),
        (["hw3/alice/a.ipynb", "hw3/bob/a.ipynb"], ["alice", "bob"]),
        (["s/hw3/alice/a.ipynb", "s/hw3/bob/a.ipynb"], ["alice", "bob"]),
        (["03_masks/alice/a.ipynb", "04_many_heads/bob/a.ipynb"], ["alice", "bob"]),
        (["alice/course/notebooks/03_masks.ipynb"], ["alice"]),
        (["alice/a.ipynb"], ["alice"]),
        (["hw3/alice.ipynb", "hw3/bob.ipynb"], ["alice", "bob"]),
        (["alice/one.ipynb", "alice/two.ipynb"], ["alice"]),
        (["alice/03_masks/a.ipynb", "alice/04_many_heads/a.ipynb"], ["alice"]),
        (["alice.py", "bob.ipynb"], ["alice", "bob"]),
        (["03_masks.ipynb"], ["03_masks"]),
        (
            [
                "Alice Smith_4711_assignsubmission_file_/03_masks.ipynb",
                "李雷_4712_assignsubmission_file_/03_masks.ipynb",
                "Bob Jones_4713_assignsubmission_file_03_masks.ipynb",
            ],
            ["Alice Smith", "Bob Jones", "李雷"],
        ),
        (
            [
                "smithalice_4711_99001_03_masks.ipynb",
                "jonesbob_LATE_4712_99002_03_masks-1.ipynb",
            ],
            ["jonesbob", "smithalice"],
        ),
        (
            [
                "Masks_asmith_attempt_2026-10-01-23-59-00_03_masks.ipynb",
                "Masks_bjones_attempt_2026-10-01-23-59-00.txt",
            ],
            ["asmith"],
        ),
        (
            ["Smith, Alice(asmith)/Submission attachment(s)/03_masks.ipynb",
             "Jones, Bob(bjones)/Submission attachment(s)/03_masks.ipynb"],
            ["Jones, Bob", "Smith, Alice"],
        ),
        (
            ["4711-88 - Alice Smith - Oct 1, 2026 1159 PM/a.ipynb",
             "4712-88 - Bob Jones - 1 October, 2026 0959 AM/a.ipynb"],
            ["Alice Smith", "Bob Jones"],
        ),
    ],
)  # fmt: skip
def test_who_handed_in(tmp_path: Path, names: list[str], expected: list[str]) -> None:
    put(tmp_path, *names)
    students = list(dict.fromkeys(one.student for one in find(tmp_path)))
    assert students == sorted(expected, key=str.casefold)
    # The same in one archive, as a system gives it out.
    if len(expected) > 1 and not any(name.endswith(".py") for name in names):
        above = tmp_path.parent / f"{tmp_path.name}-zip"
        put(above, "submissions.zip", content=packed(*names))
        for whole in (above, above / "submissions.zip"):
            assert list(dict.fromkeys(one.student for one in find(whole))) == students


def test_teams_with_a_number_are_no_copies(tmp_path: Path) -> None:
    put(
        tmp_path,
        "team (1)/a.ipynb",
        "team (2)/a.ipynb",
        "eve/hw-1.ipynb",
        "eve/hw-2.ipynb",
    )
    assert told(find(tmp_path)) == [
        ("eve", "eve/hw-1.ipynb"),
        ("eve", "eve/hw-2.ipynb"),
        ("team (1)", "team (1)/a.ipynb"),
        ("team (2)", "team (2)/a.ipynb"),
    ]
    put(tmp_path, "team/a.ipynb")
    students = {one.student for one in find(tmp_path)}
    assert students == {"eve", "team"}


def test_what_was_handed_in_again_counts(tmp_path: Path) -> None:
    first = "smithalice_4711_99001_hw.ipynb"
    put(tmp_path, first, first.replace("99001", "99002").replace(".", "-1."))
    os.utime(tmp_path / first, (1, 1))
    assert only(tmp_path).others == (f"{first} (older)",)


def test_ids_of_systems_are_kept(tmp_path: Path) -> None:
    put(tmp_path, "smithalice_LATE_4711_99001_03_masks-2.ipynb")
    assert (only(tmp_path).system_id, only(tmp_path).lesson) == ("4711", 3)


def test_an_archive_for_each_student(tmp_path: Path) -> None:
    put(tmp_path, "alice.zip", content=packed("course/03_masks.ipynb", "readme.md"))
    put(tmp_path, "bob.ZIP", content=packed("04_many_heads.ipynb"))
    found = find(tmp_path)
    assert told(found) == [
        ("alice", "alice.zip/course/03_masks.ipynb"),
        ("bob", "bob.ZIP/04_many_heads.ipynb"),
    ]
    assert [one.data for one in found] == [NOTEBOOK, NOTEBOOK]
    assert [one.lesson for one in found] == [3, 4]


def test_an_archive_of_archives(tmp_path: Path) -> None:
    moodle = "Alice Smith_4711_assignsubmission_file_/hw.zip"
    inner = packed(("03_masks.ipynb", b"inner"))
    put(tmp_path, "class.zip", content=packed((moodle, inner), ("bob.zip", inner)))
    found = find(tmp_path)
    assert [one.student for one in found] == ["Alice Smith", "bob"]
    assert [one.data for one in found] == [b"inner", b"inner"]
    assert found[0].where == f"class.zip/{moodle}/03_masks.ipynb"


def test_what_was_handed_in_can_be_sent_to_another_process(tmp_path: Path) -> None:
    put(tmp_path, "alice.zip", content=packed("a.ipynb"))
    assert pickle.loads(pickle.dumps(only(tmp_path))).data == NOTEBOOK


def test_the_order_is_that_of_the_names(tmp_path: Path) -> None:
    put(tmp_path, "zoe/a.ipynb", "Bob/a.ipynb", "alice/a.ipynb", "Émile/a.ipynb")
    assert [one.student for one in find(tmp_path)] == ["alice", "Bob", "zoe", "Émile"]


def test_one_name_in_two_compositions_is_one_student(tmp_path: Path) -> None:
    put(tmp_path, "Zoe\u0308/03_masks.ipynb", "Zo\u00eb/04_many_heads.ipynb")
    found = find(tmp_path)
    assert {one.student for one in found} == {"Zoë"}
    assert [one.lesson for one in found] == [3, 4]


def test_names_that_differ_in_case_alone_may_be_two_students(tmp_path: Path) -> None:
    """None loses a grade to the other; a system's number says that it is one."""
    put(tmp_path, "Ann/a.ipynb", "ann/a.ipynb", "bob/a.ipynb")
    if len(os.listdir(tmp_path)) < 3:
        pytest.skip("This disk makes no difference between A and a.")
    students = [(one.student, one.others) for one in find(tmp_path)]
    assert students == [("Ann", ()), ("ann", ()), ("bob", ())]
    put(
        tmp_path / "moodle",
        "Ann_7_assignsubmission_file_/a.ipynb",
        "ann_7_assignsubmission_file_/a.ipynb",
    )
    assert len(find(tmp_path / "moodle")) == 1


def test_names_of_files_in_chinese_letters_on_disk(tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/" + "李雷.ipynb".encode("gbk")
    try:
        Path(os.fsdecode(name)).write_bytes(NOTEBOOK)
    except OSError:
        pytest.skip("This disk takes names in UTF-8 only.")
    assert (only(tmp_path).student, only(tmp_path).data) == ("李雷", NOTEBOOK)


# Several files of one student


def test_all_lessons_are_kept_and_the_newest_file_of_each(tmp_path: Path) -> None:
    put(tmp_path, "alice/03_masks.ipynb", "alice/03_masks-Copy1.ipynb")
    put(tmp_path, "alice/04_many_heads.ipynb", "alice/old/04_many_heads.ipynb")
    os.utime(tmp_path / "alice/03_masks.ipynb", (2e9, 2e9))
    os.utime(tmp_path / "alice/old/04_many_heads.ipynb", (1, 1))
    found = find(tmp_path)
    assert told(found) == [
        ("alice", "alice/03_masks.ipynb"),
        ("alice", "alice/04_many_heads.ipynb"),
    ]
    assert found[0].others == ("alice/03_masks-Copy1.ipynb (older)",)
    assert found[1].others == ("alice/old/04_many_heads.ipynb (older)",)


def test_of_the_same_time_the_highest_copy_counts(tmp_path: Path) -> None:
    names = ["hw.ipynb", "hw (2).ipynb", "hw (10).ipynb", "hw-Copy3.ipynb"]
    put(tmp_path, "alice.zip", content=packed(*names))
    assert only(tmp_path).where == "alice.zip/hw (10).ipynb"


def test_the_time_that_the_system_tells_comes_first(tmp_path: Path) -> None:
    for day, when in (("02", 1), ("01", 2e9)):
        name = f"Masks_asmith_attempt_2026-10-{day}-23-59-00_03_masks.ipynb"
        put(tmp_path, name)
        os.utime(tmp_path / name, (when, when))
    assert "2026-10-02" in only(tmp_path).where


def test_files_of_different_names_are_kept(tmp_path: Path) -> None:
    put(tmp_path, "alice/one.ipynb", "alice/two.ipynb", "alice/helper.py")
    assert [one.where for one in find(tmp_path)] == [
        "alice/one.ipynb",
        "alice/two.ipynb",
    ]


def test_a_python_file_counts_where_no_notebook_is(tmp_path: Path) -> None:
    put(tmp_path, "alice/answers.py", content=b"x = 1")
    assert only(tmp_path).data == b"x = 1"


# What does not count


def test_hidden_files_and_those_of_computers_do_not_count(tmp_path: Path) -> None:
    names = ["a.ipynb", "__MACOSX/._a.ipynb", "._a.ipynb", ".ipynb_checkpoints/a.ipynb"]
    names += [".git/x.ipynb", "venv/site-packages/x.ipynb", "~$a.ipynb"]
    put(tmp_path, *(f"alice/{name}" for name in names))
    put(tmp_path, "bob.zip", content=packed(*names))
    put(tmp_path, "roster.csv", "grades.xlsx", ".DS_Store", content=b"x")
    assert told(find(tmp_path)) == [
        ("alice", "alice/a.ipynb"),
        ("bob", "bob.zip/a.ipynb"),
    ]


def test_what_was_handed_in_instead_is_told(tmp_path: Path) -> None:
    put(tmp_path, "alice/report.pdf", "alice/b.docx", "bob.rar", content=b"x")
    (tmp_path / "carol").mkdir()
    put(tmp_path, "dan.zip", content=packed())
    found = {one.student: one.problem for one in find(tmp_path)}
    assert found == {
        "alice": "There is no notebook, only b.docx, report.pdf.",
        "bob": "There is no notebook, only bob.rar.",
        "carol": "It is empty.",
        "dan": "It is empty.",
    }
    with pytest.raises(Unreadable, match=r"no notebook, only b\.docx"):
        _ = find(tmp_path)[0].data


def test_links_are_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_bytes(b"secret")
    class_ = tmp_path / "class"
    put(class_, "carol/a.ipynb")
    (class_ / "alice.ipynb").symlink_to(secret)
    (class_ / "bob").symlink_to(tmp_path)
    found = {one.student: one.problem for one in find(class_)}
    link = "It is a link, and is not followed."
    assert found == {"alice": link, "bob": link, "carol": ""}


def test_pipes_are_not_opened_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("no pipes here")
    put(tmp_path, "alice/a.ipynb", "bob/readme.txt")
    os.mkfifo(tmp_path / "alice" / "b.ipynb")
    os.mkfifo(tmp_path / "bob" / "b.ipynb")
    monkeypatch.chdir(tmp_path)  # a socket's whole path would be too long
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("carol.ipynb")
        alice, bob, carol = find(tmp_path)
    pipe = "It is no file, but a pipe or a device."
    assert (alice.where, alice.problem) == ("alice/a.ipynb", "")
    assert alice.others == (f"alice/b.ipynb ({pipe})",)
    assert [bob.problem, carol.problem] == [pipe, pipe]


def test_folders_that_are_too_deep_are_told(tmp_path: Path) -> None:
    put(tmp_path, "alice/" + 40 * "x/" + "a.ipynb", "bob/a.ipynb")
    alice, bob = find(tmp_path)
    assert (alice.problem, bob.problem) == ("It lies in more than 25 folders.", "")


def test_a_file_that_is_gone_is_unreadable(tmp_path: Path) -> None:
    put(tmp_path, "alice.ipynb")
    one = only(tmp_path)
    (tmp_path / "alice.ipynb").unlink()
    with pytest.raises(Unreadable, match="cannot be opened: No such file"):
        _ = one.data


def test_a_large_file_is_told_from_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "alice.ipynb", content=b"x" * 200)
    monkeypatch.setattr(folders, "LARGEST", 100)
    assert only(tmp_path).problem == "It has 0 MB, too many to read."


def test_there_must_be_a_folder(tmp_path: Path) -> None:
    with pytest.raises(
        NotADirectoryError, match="There is no folder, archive or notebook"
    ):
        find(tmp_path / "nowhere")
    assert find(tmp_path) == []


# Hostile archives


def hostile(tmp_path: Path, data: bytes) -> Handed:
    """What is said of one student's archive; another student always keeps theirs."""
    put(tmp_path, "bob.ipynb")
    put(tmp_path, "alice.zip", content=data)
    alice, bob = find(tmp_path)
    assert (alice.student, bob.student, bob.data) == ("alice", "bob", NOTEBOOK)
    return alice


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("../../evil.ipynb", "Its name leads out of the archive (..)."),
        ("..\\evil.ipynb", "Its name leads out of the archive (..)."),
        ("/etc/evil.ipynb", "Its name is a place on some disk, not in the archive."),
        ("C:\\evil.ipynb", "Its name is a place on some disk, not in the archive."),
    ],
)
def test_names_that_lead_elsewhere(tmp_path: Path, name: str, problem: str) -> None:
    assert hostile(tmp_path, packed(name)).problem == problem
    both = hostile(tmp_path, packed(name, "03_masks.ipynb"))
    assert (both.problem, both.data) == ("", NOTEBOOK)
    assert problem in both.others[0]


def test_a_link_in_an_archive(tmp_path: Path) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        info = zipfile.ZipInfo("a.ipynb")
        info.external_attr = 0o120777 << 16
        archive.writestr(info, "/etc/passwd")
    alice = hostile(tmp_path, data.getvalue())
    assert alice.problem == "It is a link, and is not followed."


def test_a_bomb(tmp_path: Path) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:  # noqa: SIM117
        with archive.open("a.ipynb", "w", force_zip64=True) as stream:
            for _ in range(300):
                stream.write(bytes(1_000_000))
    alice = hostile(tmp_path, data.getvalue())
    assert len(data.getvalue()) < 400_000
    assert alice.problem.startswith("It has 300 MB when unpacked, more than")


def test_a_bomb_that_lies_about_its_size(tmp_path: Path) -> None:
    data = bytearray(packed(("a.ipynb", bytes(5_000_000))))
    at = data.rindex(b"PK\x01\x02")
    struct.pack_into("<L", data, at + 24, 100)  # the size in the list
    alice = hostile(tmp_path, bytes(data))
    with pytest.raises(Unreadable, match="damaged"):
        _ = alice.data


def test_a_bomb_in_bombs(tmp_path: Path) -> None:
    data = packed("a.ipynb")
    for depth in range(6):
        data = packed(*((f"{depth}{n}.zip", data) for n in range(3)))
    alice = hostile(tmp_path, data)
    assert alice.problem == "It is one archive too many inside other archives."


def test_one_student_in_the_archive_of_a_class_cannot_spend_the_limits_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "MOST_ZIPS", 3)
    bomb = packed(*((f"{n}.zip", packed()) for n in range(9)))
    good = packed("a.ipynb")
    data = packed(*((f"{name}.zip", good) for name in "abcdef"), ("aa.zip", bomb))
    put(tmp_path, "class.zip", content=data)
    problems = {one.student: bool(one.problem) for one in find(tmp_path)}
    assert problems == {"aa": True} | dict.fromkeys("abcdef", False)


def test_an_archive_that_is_locked(tmp_path: Path) -> None:
    data = bytearray(packed("a.ipynb"))
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + offset] |= 1
    assert hostile(tmp_path, bytes(data)).problem == "It is locked with a password."


def test_an_archive_with_a_wrong_sum(tmp_path: Path) -> None:
    data = bytearray(packed("a.ipynb"))
    for mark, offset in ((b"PK\x03\x04", 14), (b"PK\x01\x02", 16)):
        data[data.index(mark) + offset] ^= 0xFF
    with pytest.raises(Unreadable, match=r"damaged \(Bad CRC-32 for file"):
        _ = hostile(tmp_path, bytes(data)).data


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_an_archive_packed_in_another_way(tmp_path: Path, method: int) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as archive:
        archive.writestr("a.ipynb", NOTEBOOK)
    alice = hostile(tmp_path, data.getvalue())
    assert alice.problem.startswith("It is packed in a way that is not read")


def test_an_archive_of_a_hundred_thousand_files(tmp_path: Path) -> None:
    entry = struct.pack("<4s6H3L5H2L", b"PK\x01\x02", *[0] * 6, 0, 0, 0, 4, *[0] * 6)
    listed = b"".join(entry + b"%04x" % (n % 65536) for n in range(100_000))
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 65535, 65535, len(listed), 0, 0)
    alice = hostile(tmp_path, listed + end)
    assert alice.problem.startswith("The archive lists too many files: the list alone")


@pytest.mark.parametrize(
    "data", [b"", b"PK\x03\x04", b"PK\x05\x06" + bytes(18), b"Rar!", b"x" * 1000]
)
def test_what_is_no_archive(tmp_path: Path, data: bytes) -> None:
    alice = hostile(tmp_path, data)
    assert alice.problem.startswith(("The archive is damaged", "It is empty."))


def test_names_in_the_letters_of_a_country(tmp_path: Path) -> None:
    def old(*raw: bytes) -> bytes:
        stand_ins = [chr(97 + n) * len(name) for n, name in enumerate(raw)]
        data = packed(*stand_ins)
        for stand_in, name in zip(stand_ins, raw, strict=True):
            data = data.replace(stand_in.encode(), name)
        return data

    names = [
        "李雷/03_masks.ipynb".encode("gbk"),
        "Jürgen/03_masks.ipynb".encode("cp437"),
    ]
    put(tmp_path, "class.zip", content=old(*names))
    found = find(tmp_path)
    assert [one.student for one in found] == ["Jürgen", "李雷"]
    assert [one.data for one in found] == [NOTEBOOK, NOTEBOOK]


@pytest.mark.parametrize("name", ["\0x.ipynb", ".", "./", "a//", "x" * 3000, "\\", "?"])
def test_names_that_are_none(tmp_path: Path, name: str) -> None:
    data = packed("a" * len(name), "b.ipynb").replace(b"a" * len(name), name.encode())
    assert hostile(tmp_path, data).data == NOTEBOOK


def test_names_that_would_write_elsewhere_on_the_screen(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        put(
            tmp_path, "class.zip", content=packed("al\x1b[2Jice\n/a.ipynb", "b/a.ipynb")
        )
    assert all(one.student.isprintable() for one in find(tmp_path))


@settings(derandomize=True, deadline=None, max_examples=200)
@given(
    st.integers(0, 400),
    st.binary(min_size=1, max_size=6),
    st.booleans(),
)
def test_a_damaged_archive_gives_an_answer(at: int, bytes_: bytes, cut: bool) -> None:
    inner = packed("03_masks.ipynb", "b/c.ipynb")
    data = bytearray(packed(("alice/x.zip", inner), "bob/a.ipynb"))
    at = at % len(data)
    data[at : at + len(bytes_)] = bytes_
    whole = bytes(data[:at] if cut else data)
    with contextlib.suppress(zips.BadZip):
        for entry in zips.Archive(io.BytesIO(whole)).entries():
            assert entry.parts
            zips.content(io.BytesIO(whole), (entry.index,))


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.lists(st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=4)))
def test_any_names_give_a_student_each(paths: list[list[str]]) -> None:
    found = students.origins([tuple(path) for path in paths])
    assert len(found) == len(paths)
    assert all(origin.student for origin in found)


def test_the_table_of_lessons_is_that_of_the_course() -> None:
    notebooks = Path(__file__).resolve().parent.parent / "notebooks"
    for path in notebooks.glob("[0-9][0-9]_*.ipynb"):
        assert (
            path.stem
            == f"{int(path.stem[:2]):02}_{students.LESSONS[int(path.stem[:2])]}"
        )
        assert students.lesson_of(("alice", path.name)) == int(path.stem[:2])
