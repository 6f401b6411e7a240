"""Files for schools' systems: as those document them, and no zero from nothing."""

from __future__ import annotations

import csv
import io
import json

from grading_class import SMALL, WRONG, a_class, grade, graded

from attnlib.grading import lms
from attnlib.grading.plan import Person

# What Canvas puts first in a gradebook that it gives out, and takes back.
CANVAS = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
# Without these Moodle refuses a grading worksheet (importgradeslib.php, init).
MOODLE = {"Identifier", "Grade", "Last modified (grade)"}


def rows(raw):
    return list(csv.reader(io.StringIO(raw.decode())))


def test_canvas_has_its_columns_the_points_possible_and_the_ids():
    head, possible, *students = rows(lms.canvas(SMALL))
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
    found = list(csv.DictReader(io.StringIO(lms.moodle(SMALL).decode())))
    assert set(found[0]) >= MOODLE
    assert [row["Identifier"] for row in found] == ["Participant 77", ""]
    assert [row["ID number"] for row in found] == ["1815", "1816"]
    assert [row["Grade"] for row in found] == ["0.76", "12.5"]
    assert found[0]["Feedback comments"] == (
        "softmax: 0.76 of 10 (The scores are not scaled); entropy: not graded"
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
    names = {row[0] for row in rows(lms.canvas(SMALL))[2:]}
    assert names == {"Ada Lovelace", "Zoë"}
    assert b"bob" not in lms.moodle(SMALL)


def test_formulas_are_defused():
    people = {"=1": Person("=1", "=1+1", "@id", "=x")}
    all_ = a_class(graded("=1", grade(), where="x"), people=people, title="=T")
    for raw in (lms.canvas(all_), lms.moodle(all_)):
        for row in rows(raw):
            assert not [cell for cell in row if cell.startswith(("=", "@", "+"))]
