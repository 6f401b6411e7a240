"""The teacher's guide: its minutes, plans, tables and commands are those of the course.

Its links are tested with those of the other pages, in test_readme.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from attnlib.__main__ import main
from attnlib.clinic.catalogue import catalogue
from attnlib.exercises import get, judging, names
from attnlib.exercises.exercise import Exercise, HuntExercise
from attnlib.grading import grades
from tools import teaching

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / teaching.PAGE).read_text(encoding="utf-8")
NAMES = (ROOT / teaching.NAMES).read_text(encoding="utf-8")
LESSONS = teaching.lessons()
PLANS = re.compile(r"<!-- plan: (\d+) -->\n(.*?)<!-- /plan -->", re.S)


def rows(table: str) -> list[list[str]]:
    """The cells of a table, without its head."""
    lines = [line for line in table.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def part(text: str, heading: str) -> str:
    """What stands below a heading, up to the next one as high."""
    level = heading.partition(" ")[0]
    below = f"\n{text}\n".partition(f"\n{heading}")[2]
    return re.split(rf"^#{{1,{len(level)}}} ", below, maxsplit=1, flags=re.M)[0]


# --- plans ---------------------------------------------------------------------------


def wanted_minutes(what: str) -> int | None:
    """What a step of a plan takes, by the lessons; None if it is the teacher's own."""
    lesson = re.fullmatch(r"(text of )?lesson (\d\d)", what)
    if lesson:
        found = LESSONS[int(lesson[2])]
        return found.minutes - (found.exercise_minutes if lesson[1] else 0)
    exercises = re.findall(r"`(\w+)`", what)
    return sum(get(name).minutes for name in exercises) if exercises else None


def plan_faults(text: str) -> list[str]:
    found = []
    for total, table in PLANS.findall(text):
        steps = [(int(minutes), what) for minutes, what, _ in rows(table)]
        if sum(minutes for minutes, _ in steps) != int(total):
            found.append(f"The plan of {total} minutes does not add up.")
        for minutes, what in steps:
            if wanted_minutes(what) not in (minutes, None):
                found.append(f"{what} takes {wanted_minutes(what)}, not {minutes}.")
    return found


def test_plans_add_up() -> None:
    assert [int(total) for total, _ in PLANS.findall(TEXT)] == [45, 90]
    assert plan_faults(TEXT) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("| 30 | text of lesson 01 |", "| 31 | text of lesson 01 |"),
        ("| 10 | `softmax` |", "| 5 | `softmax` |"),
        ("| 60 | lesson 01 |", "| 60 | lesson 02 |"),
        ("| 5 | break |", "| 6 | break |"),
    ],
)
def test_a_plan_that_is_wrong_is_seen(old: str, new: str) -> None:
    assert old in TEXT
    assert plan_faults(TEXT.replace(old, new))


def way_faults(text: str) -> list[str]:
    found = []
    for way, numbers, minutes in rows(text.partition("plan: ways -->")[2]):
        taken = [int(number) for number in numbers.split()]
        for i, number in enumerate(taken):
            missing = set(LESSONS[number].needs) - set(taken[:i])
            found += [f"{way}: {number} needs {other}." for other in missing]
        if sum(LESSONS[number].minutes for number in taken) != int(minutes):
            found.append(f"{way}: {minutes} minutes are not what the lessons take.")
    return found


def ways(text: str) -> str:
    return text.partition("<!-- plan: ways -->")[2].partition("<!-- /plan -->")[0]


def test_ways_through_hold_together() -> None:
    table = "plan: ways -->" + ways(TEXT)
    assert len(rows(table)) >= 3
    assert way_faults(table) == []
    assert len(way_faults(table.replace("| 465 |", "| 466 |"))) == 1
    assert way_faults(table.replace("05 06 07", "06 07"))


def test_each_lesson_has_its_week() -> None:
    table = part(TEXT, "## A term").partition("<!-- /table -->")[0]
    *weeks, total = rows(table)
    assert [int(row[1][1:3]) for row in weeks] == sorted(LESSONS)
    for week in {row[0] for row in weeks}:
        assert sum(int(row[2]) for row in weeks if row[0] == week) <= teaching.SITTING
    assert sum(int(row[2]) for row in weeks) == int(total[2])
    assert sum(int(row[3]) for row in weeks) == int(total[3])


def test_what_a_lesson_needs_is_read_from_its_links() -> None:
    assert teaching.needed("[lesson 03](03_masks.ipynb) and [04](04_a.ipynb)") == (3, 4)
    assert teaching.needed("[01](01_a.ipynb) to [05](05_b.ipynb)") == (1, 2, 3, 4, 5)
    assert teaching.needed("[mask](../GLOSSARY.md#mask), and lesson 10 helps") == ()
    assert LESSONS[17].needs == (1, 2, 3, 4, 5)
    assert all(max(lesson.needs, default=-1) < n for n, lesson in LESSONS.items())


# --- what exercises diagnose ---------------------------------------------------------


def table_faults(text: str, all_names: str) -> list[str]:
    """Exercises that the two pages do not give as the course has them."""
    found = []
    for number, lesson in LESSONS.items():
        below = part(text, f"### {number:02} · {lesson.title}\n")
        given = {cells[0].strip("`"): cells[1:] for cells in rows(below)}
        if list(given) != list(names(number)):
            found.append(f"Lesson {number:02} has other exercises.")
        if f"{lesson.minutes} minutes, {lesson.exercise_minutes} of them" not in below:
            found.append(f"Lesson {number:02} has other minutes.")
        named = part(all_names, f"## Lesson {number:02}\n")
        for name in set(given) & set(names(number)):
            exercise, (minutes, *_, count, codes) = get(name), given[name]
            if int(minutes) != exercise.minutes:
                found.append(f"{name} takes {exercise.minutes} minutes.")
            said = part(named, f"### `{name}` · {exercise.minutes} minutes\n")
            lines = re.findall(r"^- (.+)$", said, re.M)
            if isinstance(exercise, Exercise):
                known = [catalogue()[key] for key in exercise.family.faults]
                plain = "\n".join(lines).replace("\\", "")
                found += [f"{name}: {m.name}" for m in known if m.name not in plain]
                found += [f"{name}: {m.code}" for m in known if m.code not in codes]
            if int(count) != len(lines) and not teaching.held_back(exercise):
                found.append(f"{name} knows another number of mistakes.")
    return found


def test_every_exercise_stands_with_what_it_diagnoses() -> None:
    assert table_faults(TEXT, NAMES) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("| `softmax` | 10 |", "| `softmax` | 11 |"),
        ("| `softmax` | 10 |", "| `softmin` | 10 |"),
        ("| 33 | M04 M06 M14 M47 |", "| 33 | M04 M06 M14 |"),
        ("): 60 minutes, 30 of them", "): 60 minutes, 31 of them"),
        ("- The scores are not scaled (M01)\n", "\n"),
    ],
)
def test_a_table_that_is_wrong_is_seen(old: str, new: str) -> None:
    assert old in TEXT + NAMES
    assert table_faults(TEXT.replace(old, new), NAMES.replace(old, new))


def test_the_pages_are_as_the_tool_writes_them() -> None:
    for path, text in teaching.fresh().items():
        assert text == path.read_text(encoding="utf-8"), "run tools/teaching.py"


def test_bugs_that_are_held_back_are_not_named() -> None:
    below = part(NAMES, "### `bug_bash`")
    bugs = get("bug_bash").bugs(0)
    assert f"{len({bug.name for bug in bugs})} bugs" in below
    assert not any(bug.name in below for bug in bugs)


def test_a_shown_hunt_names_its_bugs() -> None:
    hunt = get("mask_check")
    assert isinstance(hunt, HuntExercise)
    assert all(f"- {bug.name}\n" in NAMES for bug in hunt.bugs(0))


def test_levels_are_explained() -> None:
    levels = {level for lesson in LESSONS.values() for level in lesson.levels.values()}
    said = re.search(r"^Levels: (.*?)\n\n", TEXT, re.M | re.S)
    assert said
    assert levels <= set(re.findall(r"\*([\w-]+)\*", said[1]))


def test_numbers_and_commands_exist() -> None:
    codes = {mistake.code for mistake in catalogue().values()}
    assert set(re.findall(r"\bM\d\d\b", TEXT)) <= codes
    used = set(re.findall(r"attnlib (\w+)", TEXT))
    assert {"mistakes", "solutions", "release", "export", "grade"} <= used
    for command in used:
        with pytest.raises(SystemExit) as caught:
            main([command, "--help"])
        assert caught.value.code == 0


def test_no_lesson_is_longer_than_a_sitting() -> None:
    assert "No lesson takes more than 90 minutes." in TEXT
    assert max(lesson.minutes for lesson in LESSONS.values()) <= teaching.SITTING == 90


# --- taking in -----------------------------------------------------------------------


def test_the_lines_that_grade_a_folder_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = part(TEXT, "## Taking in")
    lines = re.search(r"^attnlib (grade .*)$", told, re.M)
    assert lines
    (tmp_path / "handed_in").mkdir()
    (tmp_path / "course").mkdir()
    (tmp_path / "secret").write_bytes(b"no student sees this")
    blank = (ROOT / "notebooks" / "00_start_here.ipynb").read_bytes()
    for student in ("李雷", "mei"):
        (tmp_path / "handed_in" / f"{student}.ipynb").write_bytes(blank)
    monkeypatch.chdir(tmp_path / "course")
    # What is tested is the line; the sandboxes have tests of their own.
    assert main([*lines[1].split(), "--allow-unsandboxed"]) == 0
    made = {path.name for path in (tmp_path / "grades").iterdir()}
    files = told.partition("| file |")[2].partition("**Points")[0]
    assert made <= set(re.findall(r"`([\w.]+)/?`", files))
    table = (tmp_path / "grades" / "grades.csv").read_text(encoding="utf-8-sig")
    assert table.count("not started") == 2 * len(names(0))


def test_each_status_of_a_grade_that_is_told_exists() -> None:
    table = part(TEXT, "## Taking in").partition("| status |")[2]
    told = re.findall(r"^\| (`.*?`) \|", table, re.M)
    words = {word for row in told for word in re.findall(r"`(\w+)`", row)}
    of_checks = set(get_args(judging.Status))
    assert words - {"timeout"} == set(get_args(grades.Status)) - of_checks - {
        "ungraded"
    }
