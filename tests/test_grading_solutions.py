"""Solved notebooks, as a teacher asks for them; tests/test_solve.py has the rest."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from attnlib import exercises
from attnlib.__main__ import main
from attnlib.grading import lessons, solutions

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"
FIRST = NOTEBOOKS / "00_start_here.ipynb"


def cells_of(content):
    return json.loads(content)["cells"]


def changed(content, change):
    """A notebook in which something was done to each cell of code."""
    document = json.loads(content)
    for cell in document["cells"]:
        if cell["cell_type"] == "code":
            change(cell)
    return json.dumps(document).encode()


@pytest.fixture
def course(tmp_path, monkeypatch):
    """The command runs in a folder with two lessons, whose name is no plain one."""
    here = tmp_path / "mein Kurs 猫"
    (here / "notebooks").mkdir(parents=True)
    for path in (FIRST, NOTEBOOKS / "03_masks.ipynb"):
        shutil.copy(path, here / "notebooks")
    monkeypatch.chdir(here)
    return here


def test_a_teachers_copy_is_solved_like_the_blank_one():
    blank = FIRST.read_bytes()
    wanted = solutions.solve(blank)
    assert solutions.solved(blank, FIRST.name) == wanted
    assert solutions.solved(wanted, FIRST.name) == wanted

    def answered(cell):
        if "exercise" in cell["metadata"].get("tags", []):
            cell["source"] = "".join(cell["source"]).replace("...", "0 +")  # broken

    assert solutions.solved(changed(blank, answered), FIRST.name) == wanted


def test_a_copy_that_lost_its_tags_is_solved_too():
    def lost(cell):
        cell["metadata"] = {}

    bare = cells_of(solutions.solved(changed(FIRST.read_bytes(), lost), FIRST.name))
    whole = cells_of(solutions.solve(FIRST.read_bytes()))
    assert [c["source"] for c in bare] == [c["source"] for c in whole]
    assert [c.get("outputs") for c in bare] == [c.get("outputs") for c in whole]


def test_every_stub_of_a_solved_lesson_is_filled_in_and_passes():
    found = cells_of(solutions.solved(FIRST.read_bytes(), FIRST.name))
    told = [
        "".join(cell["outputs"][0]["text"])
        for cell in found
        if "check" in cell["metadata"].get("tags", [])
    ]
    assert [text.split(".")[0] for text in told] == [
        f"{name}: passed" for name in exercises.names(0)
    ]


def test_a_cell_without_its_check_gets_one():
    document = json.loads(FIRST.read_bytes())
    document["cells"] = [
        cell
        for cell in document["cells"]
        if not "".join(cell["source"]).startswith('check("weighted_mean"')
    ]
    found = cells_of(solutions.solved(lessons.to_bytes(document), "my.ipynb"))
    (check,) = (cell for cell in found if cell.get("id") == "check-weighted_mean")
    assert check["source"] == ['check("weighted_mean", weighted_mean)']
    assert check["outputs"][0]["text"][0].startswith("weighted_mean: passed.")
    assert len(found) == len(cells_of(FIRST.read_bytes()))


def test_lessons_are_found_by_number_by_name_and_by_path(course, capsys):
    one = course / "notebooks" / "00_start_here.ipynb"
    two = course / "notebooks" / "03_masks.ipynb"
    for word in ("0", "00", "00_start", "00_start_here", str(one)):
        assert lessons.find([word], course) == [one]
    assert lessons.find(["03", "0", "3"], course) == [two, one]
    assert lessons.find(["notebooks/03_masks.ipynb"], course) == [two]


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("07", "There is no lesson 07 in "),
        ("masks", "notebooks; there are 00 03."),
        ("0x", "There is no lesson 0x in "),
        ("", "Several lessons begin with ''"),
        ("my/copy.ipynb", "There is no notebook my/copy.ipynb."),
    ],
)
def test_a_lesson_that_is_not_there_is_one_sentence(course, word, said):
    with pytest.raises(lessons.LessonError) as caught:
        lessons.find([word], course)
    assert said in str(caught.value)


def test_elsewhere_there_are_no_lessons(tmp_path):
    with pytest.raises(lessons.LessonError, match="no folder notebooks with lessons"):
        lessons.find(["03"], tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe\x00",
        b"[" * 9999,
        b'{"worksheets": []}',
        b'{"cells": [1]}',
        b'{"cells": [{"cell_type": "code", "metadata": {}, "source": 3}]}',
    ],
)
def test_what_is_no_notebook_is_said_to_be_none(content):
    with pytest.raises(lessons.LessonError, match=r"^a\.ipynb is no notebook"):
        lessons.read(content, "a.ipynb")


def test_a_mark_of_the_byte_order_does_not_matter():
    content = FIRST.read_bytes()
    assert lessons.read(b"\xef\xbb\xbf" + content, "") == lessons.read(content, "")


def test_the_command_writes_solved_lessons(course, capsys):
    assert main(["solutions", "0", "-o", "gelöst/erste"]) == 0
    written = Path("gelöst") / "erste" / "00_start_here.ipynb"
    assert capsys.readouterr().out == f"{written}\n"
    assert written.read_bytes() == solutions.solve(FIRST.read_bytes())
    before = written.stat().st_mtime_ns
    assert main(["solutions", "0", "-o", "gelöst/erste"]) == 0  # the same again
    assert written.stat().st_mtime_ns == before


def test_a_read_only_course_is_no_obstacle(course, tmp_path):
    folder = course / "notebooks"
    for path in (*folder.iterdir(), folder):
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        assert main(["solutions", "0", "-o", str(tmp_path / "out")]) == 0
    finally:
        folder.chmod(0o755)
    made = tmp_path / "out" / "00_start_here.ipynb"
    made.write_bytes(made.read_bytes())  # what was made can be written


def test_what_differs_is_written_over_only_by_force(course, capsys):
    out = course / "out"
    out.mkdir()
    there = out / "03_masks.ipynb"
    there.write_text("mine")
    assert main(["release", "0", "3", "-o", "out"]) == 2
    said = capsys.readouterr()
    assert said.err == (
        "out/03_masks.ipynb is there and differs; --force writes over it. Nothing was "
        "written.\n".replace("/", "\\" if sys.platform == "win32" else "/")
    )
    assert not said.out
    assert [path.name for path in out.iterdir()] == ["03_masks.ipynb"]
    assert there.read_text() == "mine"
    assert main(["release", "0", "3", "-o", "out", "--force"]) == 0
    assert there.read_bytes().startswith(b"{")


def test_a_notebook_is_never_written_over_itself(course, capsys):
    before = Path("notebooks/00_start_here.ipynb").read_bytes()
    for force in ([], ["--force"]):
        assert main(["solutions", "0", "-o", "notebooks", *force]) == 2
        assert "over what it is made of" in capsys.readouterr().err
    assert Path("notebooks/00_start_here.ipynb").read_bytes() == before


def test_two_notebooks_of_one_name_are_not_written_into_one_place(course, capsys):
    (course / "mine").mkdir()
    shutil.copy(FIRST, course / "mine")
    words = ["0", "mine/00_start_here.ipynb"]
    assert main(["solutions", *words, "-o", "out"]) == 2
    assert "Two of these notebooks are named 00_start" in capsys.readouterr().err


def test_a_place_that_takes_no_files_is_one_sentence(course, capsys):
    Path("taken").write_text("a file")
    assert main(["solutions", "0", "-o", "taken/out"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.startswith("taken")


def test_a_first_cell_that_fails_is_one_sentence(course, capsys):
    def broken(cell):
        if "setup" in cell["metadata"].get("tags", []):
            cell["source"] = ["import nompy"]

    path = course / "mine.ipynb"
    path.write_bytes(changed(FIRST.read_bytes(), broken))
    assert main(["solutions", "mine.ipynb", "-o", "out"]) == 2
    said = capsys.readouterr().err
    assert said == "mine.ipynb: ModuleNotFoundError: No module named 'nompy'\n"


def test_exercises_of_ones_own_need_their_folder(course, capsys):
    assert main(["solutions", "0", "-o", "out", "--exercises", "nowhere"]) == 2
    assert capsys.readouterr().err == "There is no folder nowhere.\n"
