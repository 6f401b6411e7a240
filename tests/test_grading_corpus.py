"""A class of attackers and honest students, graded by the command of teachers.

In each sandbox once. Every attack gets what the table of verdicts says, costs nobody
else a point, and tells no secret. The attacks are those of tests/grading_corpus.
"""

from __future__ import annotations

import sys

import hostile
import pytest
from grading_places import KINDS, marked, place
from hostile_class import FILES, HONEST, KEPT, attacks, packed
from test_grading_pages import Seen

from attnlib.grading.sandbox import room as rooms

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the sandboxes are those of Linux"
)


@pytest.fixture(scope="module", params=KINDS)
def ran(request, tmp_path_factory):
    place(request.param)
    return request.param, hostile.run(tmp_path_factory.mktemp("hostile"), request.param)


def by_exercise(run, student):
    return {grade["exercise"]: grade for grade in run.graded[student]["grades"]}


def test_each_attack_gets_what_the_table_says(ran):
    kind, run = ran
    expected = {attack: row[kind] for attack, row in hostile.table().items()}
    assert list(run.verdicts) == list(expected)
    odd = {
        attack: (verdict, expected[attack])
        for attack, verdict in run.verdicts.items()
        if not hostile.fits(verdict, expected[attack])
    }
    assert odd == {}


def test_an_attack_costs_its_own_exercise_and_no_other(ran):
    _, run = ran
    for number, notebook in enumerate(packed()):
        grades = by_exercise(run, f"m{number:02d}")
        assert grades[KEPT]["status"] == "passed", (number, grades[KEPT])
        for grade in grades.values():
            full = grade["of"] if grade["status"] == "passed" else 0
            assert grade["points"] == full, (grade, notebook.get(grade["exercise"]))


def test_honest_students_have_their_grades(ran):
    _, run = ran
    students = {one["where"]: name for name, one in run.graded.items()}
    for student in HONEST:
        grades = by_exercise(run, students[f"{student}.ipynb"])
        wrong = {name for name, g in grades.items() if g["points"] < g["of"]}
        assert wrong == ({"causal"} if student == "bob" else set()), student


def test_no_secret_is_told(ran):
    kind, run = ran
    assert hostile.secrets_in(run.said.encode()) == set()
    if "files" in place(kind).promises:
        assert run.leaks() == {}
    else:  # then it is told, and only of who asked; the page says so
        tell = {a for a, told in run.verdicts.items() if "tells the secret" in told}
        assert tell == {"reads_the_seed", "reads_other_students"}


def test_nothing_is_left_running_or_written_and_nobody_was_called(ran):
    kind, run = ran
    assert not marked(rooms.shared())
    assert not run.called
    if "files" in place(kind).promises:
        now = {path.name: path.read_bytes() for path in run.class_.iterdir()}
        assert now == run.given
        assert all(b"FORGED" not in data for data in run.outputs().values())


def test_no_page_holds_what_a_student_made_of_html(ran):
    _, run = ran
    pages = {p: data for p, data in run.outputs().items() if p.suffix == ".html"}
    assert len(pages) == 1 + len(run.graded)
    for path, data in pages.items():
        assert b"<script>alert" not in data
        assert b"<img src=x" not in data
        if path.parent.name == "feedback":
            assert "script" not in Seen(data).tags
    assert any(b"&lt;script&gt;alert(1)" in data for data in pages.values())
    assert any(b"&lt;img src=x onerror=alert(3)" in data for data in pages.values())


def test_every_attack_stands_in_the_table_and_the_table_in_the_page():
    assert set(hostile.table()) == {one.key for one in attacks()} | set(FILES)
    text = hostile.PAGE.read_text(encoding="utf-8")
    assert hostile.page(text) == text
