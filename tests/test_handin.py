"""`attnlib handin`: what lands in the box, what is said, and who can read it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from attnlib.__main__ import main
from attnlib.exercises import get, names
from attnlib.grading.folder import find

ROOT = Path(__file__).resolve().parent.parent
LESSON = "03_masks.ipynb"
ALL = names(3)


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A student's folder of the course, with a box beside it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ATTNLIB_BOX", str(tmp_path / "box"))
    for folder in ("box", "notebooks"):
        (tmp_path / folder).mkdir()
    shutil.copyfile(ROOT / "notebooks" / LESSON, tmp_path / "notebooks" / LESSON)
    return tmp_path


def solve(path: Path, *solved: str) -> None:
    """Write solutions into the cells of some exercises."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        for name in solved:
            if "".join(cell["source"]).strip() == get(name).stub_source.strip():
                cell["source"] = get(name).solution_source
    path.write_text(json.dumps(notebook), encoding="utf-8")


@pytest.mark.parametrize("where", [".", "notebooks"])
def test_the_notebook_as_it_was_saved_is_in_the_box(
    where: str, course: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = course / "notebooks" / LESSON
    solve(path, *ALL[:2])
    os.chdir(course / where)
    assert main(["handin", "03"]) == 0
    handed = course / "box" / LESSON
    assert handed.read_bytes() == path.read_bytes()
    assert [one.name for one in handed.parent.iterdir()] == [LESSON]
    assert capsys.readouterr().out == (
        f"Handed in: {LESSON}, saved just now; 2 of {len(ALL)} exercises begun; blank: "
        f"{', '.join(ALL[2:])}.\n"
    )


def test_handing_in_again_replaces_it(
    course: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = course / "notebooks" / LESSON
    assert main(["handin", "03"]) == 0
    solve(path, *ALL)
    os.utime(path, (path.stat().st_mtime - 180,) * 2)
    assert main(["handin", str(path)]) == 0
    assert (course / "box" / LESSON).read_bytes() == path.read_bytes()
    said = capsys.readouterr().out.splitlines()[1]
    assert said.endswith(f"saved 3 minutes ago; {len(ALL)} of {len(ALL)} exercises "
                         "begun.")  # fmt: skip


def test_a_cell_that_was_copied_does_not_stop_anyone(
    course: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = course / "notebooks" / LESSON
    notebook = json.loads(path.read_text(encoding="utf-8"))
    notebook["cells"] *= 2
    path.write_text(json.dumps(notebook), encoding="utf-8")
    assert main(["handin", "03"]) == 0
    assert capsys.readouterr().out == f"Handed in: {LESSON}, saved just now.\n"


def test_the_teacher_can_read_what_a_careful_student_wrote(course: Path) -> None:
    before = os.umask(0o077)
    try:
        assert main(["handin", "03"]) == 0
    finally:
        os.umask(before)
    assert (course / "box" / LESSON).stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize(
    ("lesson", "box", "sentence"),
    [
        ("03", "", "Here is no box to hand in to ($ATTNLIB_BOX is not set)"),
        ("03", "none", "none does not take it: no such file or directory."),
        ("42", "box", "Nothing was handed in. There is no lesson 42"),
        ("broken.ipynb", "box", "broken.ipynb is no notebook: it cannot be read."),
    ],
)
def test_what_goes_wrong_is_one_sentence(
    lesson: str,
    box: str,
    sentence: str,
    course: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("ATTNLIB_BOX", str(course / box) if box else "")
    (course / "broken.ipynb").write_text("{", encoding="utf-8")
    assert main(["handin", lesson]) == 2
    said = capsys.readouterr()
    assert sentence in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""
    assert list((course / "box").iterdir()) == []


# --- the boxes of a school -----------------------------------------------------------

ANNA, ALICE, BOB = "64001", "64002", "64003"  # a teacher, two students; no accounts
TEACHING = (ROOT / "TEACHING.md").read_text(encoding="utf-8")


def acting(account: str, line: str) -> str:
    """What a line of the shell says when such an account runs it."""
    number = int(account)
    done = subprocess.run(
        ["/bin/sh", "-c", line],
        user=number,
        group=number,
        extra_groups=[],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
        cwd="/",
    )
    return done.stdout.strip()


@pytest.fixture
def boxes() -> Iterator[Path]:
    """The folder that the lines of the teacher's guide make."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("only root can act as several accounts")
    lines = re.search(r"^install -d -o anna .*?^done$", TEACHING, re.M | re.S)
    assert lines
    folder = Path(tempfile.mkdtemp())  # pytest's own is for nobody else
    folder.chmod(0o711)
    made = lines[0].replace("/srv/class", str(folder)).replace("anna", ANNA)
    made = made.replace("alice", ALICE).replace("bob", BOB)
    try:
        subprocess.run(["/bin/sh", "-ec", made], check=True)
        yield folder / "handed_in"
    finally:
        shutil.rmtree(folder)


def test_a_box_takes_a_students_work_and_shows_it_to_the_teacher(boxes: Path) -> None:
    assert acting(ALICE, f"umask 022; echo mine > {boxes}/{ALICE}/03.ipynb") == ""
    assert acting(ANNA, f"cat {boxes}/*/03.ipynb") == "mine"
    assert acting(ANNA, f"ls {boxes}").split() == [ALICE, BOB]
    assert acting(ALICE, f"echo better > {boxes}/{ALICE}/03.ipynb") == ""
    assert acting(ANNA, f"cat {boxes}/*/03.ipynb") == "better"


@pytest.mark.parametrize(
    "line",
    [
        "ls {boxes}",
        "ls {boxes}/{other}",
        "cat {boxes}/{other}/03.ipynb",
        "echo worse > {boxes}/{other}/03.ipynb",
        "echo worse > {boxes}/{other}/04.ipynb",
        "rm -f {boxes}/{other}/03.ipynb",
        "mv {boxes}/{other} {boxes}/gone",
        "chmod 777 {boxes}/{own}",
        "mkdir {boxes}/{own}x",
        "ls {boxes}/{own}",  # not even one's own: it is a box, not a shelf
    ],
)
def test_a_student_does_nothing_else_with_boxes(line: str, boxes: Path) -> None:
    acting(ALICE, f"umask 022; echo mine > {boxes}/{ALICE}/03.ipynb")
    said = acting(BOB, line.format(boxes=boxes, other=ALICE, own=BOB))
    assert "ermission denied" in said or "not permitted" in said
    assert acting(ANNA, f"cat {boxes}/*/03.ipynb") == "mine"


def test_after_the_deadline_a_box_is_shut(boxes: Path) -> None:
    shut = re.search(r"`(chmod \S+) /srv/class/handed_in/\*`", TEACHING)
    assert shut
    acting(ALICE, f"umask 022; echo mine > {boxes}/{ALICE}/03.ipynb")
    assert acting(ANNA, f"{shut[1]} {boxes}/*") == ""
    assert "ermission denied" in acting(ALICE, f"echo late > {boxes}/{ALICE}/03.ipynb")
    assert [(one.student, one.lesson) for one in find(boxes)] == [
        (ALICE, 3),
        (BOB, None),
    ]
