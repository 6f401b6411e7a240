"""`grades.csv`: every student, no zero for what could not be read, no formulas."""

from __future__ import annotations

import csv
import io
import os
import stat

import pytest
from grading_class import SMALL, a_class, grade, graded

from attnlib.grading import filenames, grades_csv, written
from attnlib.grading.grades_csv import content


def table(all_):
    return list(csv.DictReader(io.StringIO(content(all_).decode("utf-8-sig"))))


def test_each_student_and_exercise_has_a_row():
    rows = table(SMALL)
    assert tuple(rows[0]) == grades_csv.HEAD
    assert [tuple(row.values()) for row in rows] == [
        ("Ada", "softmax", "0.76", "10", "mistake", "scale_missing"),
        ("Ada", "entropy", "", "5", "ungraded", ""),
        ("bob", "softmax", "", "10", "unreadable", ""),
        ("bob", "entropy", "", "5", "unreadable", ""),
        ("mia", "softmax", "", "10", "not handed in", ""),
        ("mia", "entropy", "", "5", "not handed in", ""),
        ("zoe", "softmax", "10", "10", "passed", ""),
        ("zoe", "entropy", "2.5", "5", "law", ""),
    ]


def test_where_no_lesson_is_named_one_row_says_that_there_is_nothing():
    all_ = a_class(graded("bob", status="unreadable", problem="So."), asked=())
    assert [tuple(row.values()) for row in table(all_)] == [
        ("bob", "", "", "", "unreadable", "")
    ]


def test_the_order_in_which_they_were_graded_does_not_show():
    turned = a_class(*SMALL.graded[::-1], people=SMALL.people)
    assert content(turned) == content(SMALL)
    slow = a_class(graded("zoe", grade(), seconds=3.5))
    assert content(slow) == content(a_class(graded("zoe", grade())))


@pytest.mark.parametrize(
    "name",
    ["=1+1", "+49", "-2", "@SUM(A1)", "\t=1", "\r=1", "  =1", "＝1", '=HYPERLINK("x")'],
)
def test_a_formula_is_defused(name):
    (row,) = table(a_class(graded(name, grade())))
    assert row["student"] == f"'{name}".replace("\r", "\r")
    assert row["student"].startswith("'")


def test_names_with_commas_quotes_and_lines_stay_whole():
    for name in ('Smith, "Al"', "a\nb", "李明", "O'Neil", "Zoë"):
        (row,) = table(a_class(graded(name, grade())))
        assert row["student"] == name


def test_half_a_character_costs_no_table():
    assert b"student" in content(a_class(graded("a\ud800", grade())))


# --- files, whole or not at all -----------------------------------------------------
def test_a_file_is_replaced_in_one_step(tmp_path):
    path = tmp_path / "grades.csv"
    written.whole(path, b"old")
    with path.open("rb") as reader:
        written.whole(path, b"newer")
        assert reader.read() == b"old"
    assert path.read_bytes() == b"newer"
    assert os.listdir(tmp_path) == ["grades.csv"]
    assert stat.S_IMODE(path.stat().st_mode) & 0o600 == 0o600


def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "grades.csv"
    written.whole(path, b"old")

    def full(file):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(written.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        written.whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["grades.csv"]


# --- names of files -----------------------------------------------------------------
NAMES = [
    *("ada", "Ada", "ADA", "a/da", "../ada", "..", ".", "", " ", "/etc/passwd"),
    *("con", "NUL", "com1", "x" * 300, "x" * 301, "猫" * 300, "a\0b", "a\nb"),
    *("ﬁ", "fi", "ß", "ss", "e\u0301", "\u00e9", "<b>", "a\ud800", "İ", "i\u0307"),
]


def test_names_of_files_are_safe_and_no_two_alike(tmp_path):
    found = filenames.of(NAMES)
    assert list(found) == NAMES
    for name in found.values():
        assert name
        assert not name.startswith((".", "-"))
        assert not set(name) & set('/\\:*?"<>|\0\n. ')
        assert len(f".{name}-12345678.html".encode()) < 255
        (tmp_path / f"{name}.html").write_text("x")
    assert len({filenames._key(name) for name in found.values()}) == len(NAMES)
    assert not {"con", "nul", "com1"} & {name.casefold() for name in found.values()}


def test_a_plain_name_stays_as_it_is():
    assert filenames.of(["ada", "李明"]) == {"ada": "ada", "李明": "李明"}
