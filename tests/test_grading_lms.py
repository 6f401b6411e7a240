"""Files for schools' systems: as those document them, and no zero from nothing."""

from __future__ import annotations

import collections
import csv
import dataclasses
import io
import json

from grading_class import SMALL, WRONG, a_class, grade, graded

from attnlib.grading import class_page, grades_csv, lms, outputs, pages
from attnlib.grading.plan import Person

# As SMALL, but with no fault of the grader.
WHOLE = dataclasses.replace(
    SMALL,
    graded=(
        graded("Ada", WRONG, grade("entropy", 0, 500, "differs")),
        *(one for one in SMALL.graded if one.student != "Ada"),
    ),
)
BOTH = grade("softmax"), grade("causal", 250, 500, "law")  # of the lessons 01 and 03
# What Canvas puts first in a gradebook that it gives out, and takes back.
CANVAS = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
# Without these Moodle refuses a grading worksheet (importgradeslib.php, init).
MOODLE = {"Identifier", "Grade", "Last modified (grade)"}


def rows(raw):
    return list(csv.reader(io.StringIO(raw.decode())))


def test_canvas_has_its_columns_the_points_possible_and_the_ids():
    head, possible, *students = rows(lms.canvas(WHOLE))
    assert head == [*CANVAS, "Attention by Hand, lesson 01"]
    assert possible == ["    Points Possible", "", "", "", "", "15"]
    assert students == [
        ["Ada Lovelace", "77", "1815", "Ada", "", "0.76"],
        ["Zoë", "", "1816", "zoe", "", "12.5"],
    ]


def test_an_id_of_canvas_is_not_said_to_be_one_of_the_school():
    all_ = a_class(graded("a", grade()), people={"a": Person("a", "A", "77", "77")})
    assert rows(lms.canvas(all_))[2][:4] == ["A", "77", "", "a"]


def test_moodle_has_what_its_worksheet_needs():
    found = list(csv.DictReader(io.StringIO(lms.moodle(WHOLE).decode())))
    assert set(found[0]) >= MOODLE
    assert [row["Identifier"] for row in found] == ["Participant 77", ""]
    assert [row["ID number"] for row in found] == ["1815", "1816"]
    assert [row["Grade"] for row in found] == ["0.76", "12.5"]
    assert found[0]["Feedback comments"] == (
        "softmax: 0.76 of 10 (The scores are not scaled); entropy: 0 of 5"
    )


def test_gradescope_has_its_results():
    ada, *_ = SMALL.students()
    told = json.loads(lms.gradescope(ada))
    assert told["score"] == 0.76
    (test,) = told["tests"]  # what was not graded is no test
    assert test["score"] == 0.76
    assert test["max_score"] == 10
    assert test["status"] == "failed"
    assert test["output_format"] == "text"  # nothing in it is read as HTML
    assert test["output"] == WRONG.text  # the mistake has a name: no general hint
    assert sum(t["score"] for t in told["tests"]) == told["score"]


def test_gradescope_has_a_hint_where_no_mistake_was_named():
    open_ = grade(points=0, status="differs", hint="Look at `d_k`.")
    (one,) = a_class(graded("ada", open_)).students()
    (test,) = json.loads(lms.gradescope(one))["tests"]
    assert test["output"].endswith("A hint. Look at `d_k`.")


def test_who_has_no_grades_is_in_none_of_them():
    names = {row[0] for row in rows(lms.canvas(WHOLE))[2:]}
    assert names == {"Ada Lovelace", "Zoë"}
    assert b"bob" not in lms.moodle(WHOLE)


def test_what_the_grader_could_not_do_is_no_zero_there(tmp_path):
    """Ada lacks a grade by a fault that is not hers: in no table until it is mended."""
    assert {row[0] for row in rows(lms.canvas(SMALL))[2:]} == {"Zoë"}
    assert b"Ada" not in lms.moodle(SMALL)
    outputs.everything(SMALL, tmp_path)
    assert [p.name for p in (tmp_path / "gradescope").iterdir()] == ["zoe.json"]


def of_lessons(*more):
    """Three who handed in both lessons, each in a file, and somebody."""
    names = "abc"
    files = [graded(n, one, where=one.exercise) for n in names for one in BOTH]
    return a_class(*files, *more)


def maxima(all_):
    possible = rows(lms.canvas(all_))[1][-1]
    told = csv.DictReader(io.StringIO(lms.moodle(all_).decode()))
    pages = [json.loads(lms.gradescope(one)) for one in all_.students()]
    said = {one["output"].split(" of ")[1] for one in pages}
    of = collections.Counter()
    for student, _, _, each, *_ in [*grades_csv.rows(all_)][1:]:
        of[student] += float(each)
    return possible, {row["Maximum Grade"] for row in told}, said, set(of.values())


def test_the_maximum_is_that_of_the_class_and_the_same_in_all_files():
    less = of_lessons(graded("zoe", BOTH[0]))
    assert maxima(less) == ("15", {"15"}, {"15 points."}, {15.0})
    *_, last = rows(lms.canvas(less))
    assert (last[0], last[-1]) == ("zoe", "10")
    raw = class_page.content(less).decode()
    assert "10 of 15" in raw
    assert [*grades_csv.rows(less)][-1] == (
        "zoe",
        "causal",
        "",
        "5",
        "not handed in",
        "",
    )


def test_what_the_class_was_not_asked_is_not_in_the_sum():
    more = of_lessons(
        *(graded("zoe", one, where=one.exercise) for one in BOTH),
        graded("zoe", grade("weighted_mean", 300, 400, "law"), where="0"),
        graded("eve", grade("weighted_mean", 300, 400, "law")),
    )
    assert [row[0] for row in rows(lms.canvas(more))[2:]] == ["a", "b", "c", "zoe"]
    assert {row[-1] for row in rows(lms.canvas(more))[2:]} == {"12.5"}
    assert b"weighted_mean" not in lms.moodle(more)
    (eve,) = [one for one in more.students() if one.student == "eve"]
    assert not eve.has_grades  # sent another lesson only: no zero, but nothing at all
    assert b"points</p>" not in pages.content(eve, more)


def test_a_file_that_could_not_be_read_is_no_zero_in_the_sum():
    bad = graded("zoe", status="unreadable", problem="So.", where="b")
    all_ = of_lessons(graded("zoe", BOTH[0]), bad)
    assert [row[0] for row in rows(lms.canvas(all_))[2:]] == ["a", "b", "c"]
    zoe = [*all_.students()][-1]
    assert (zoe.points, zoe.of) == (1000, 1000)
    assert [*grades_csv.rows(all_)][-1] == ("zoe", "causal", "", "5", "unreadable", "")


def test_formulas_are_defused():
    people = {"=1": Person("=1", "=1+1", "@id", "=x")}
    all_ = a_class(graded("=1", grade(), where="x"), people=people, title="=T")
    for raw in (lms.canvas(all_), lms.moodle(all_)):
        for row in rows(raw):
            assert not [cell for cell in row if cell.startswith(("=", "@", "+"))]
