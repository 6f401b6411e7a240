"""The class page: what to look at first, and no claim without enough students."""

from __future__ import annotations

import dataclasses
import re
from typing import get_args
from urllib.parse import unquote

import numpy as np
import pytest
from grading_class import SMALL, WRONG, a_class, grade, graded
from test_grading_pages import EVIL, Seen

from attnlib.grading import grades, outputs, page, separates, went_wrong
from attnlib.grading.class_page import content


def text_of(all_):
    found = Seen(content(all_))
    assert found.open == []
    return " ".join(" ".join(found.text).split())


def test_what_needs_somebody_comes_first():
    text = text_of(SMALL)
    order = [
        *("Could not be read: 1", "Not handed in: 1", "Not graded, by a fault"),
        *("Which mistakes were made", "How each exercise went", "All students"),
    ]
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    students = text[text.index("All students") :]
    names = ["bob", "mia", "Ada", "zoe"]
    assert sorted(names, key=students.index) == names
    assert "no processes left" in text
    assert "Not on the list, but graded: zoe." in text
    assert "4 students, 2 graded." in text


def test_what_was_taken_ready_made_and_paid_is_told():
    taken = ("It uses attnlib's own softmax.",)
    ready, wrong = grade(notes=taken), grade("entropy", 0, 500, "law", notes=taken)
    text = text_of(a_class(graded("Ada", ready, wrong), graded("bob", wrong)))
    assert "Ada, softmax: It uses attnlib's own softmax." in text
    assert text.count("It uses") == 1  # what has no points is no worry


def test_the_file_of_another_lesson_is_told():
    none = grade(points=0, status="missing")
    other = graded("Ada", none, grade("entropy", 0, 500, "missing"), where="x/03.ipynb")
    text = text_of(a_class(other, graded("bob", none, grade("entropy", 0, 500, "law"))))
    assert "Ada: none of the exercises is in x/03.ipynb. Is it another lesson?" in text
    assert text.count("another lesson") == 1


def test_a_mistake_counts_once_for_each_student():
    twice = grade("entropy", 0, 500, "mistake", mistakes=("scale_missing",))
    text = text_of(a_class(graded("Ada", WRONG, twice), graded("bob", WRONG)))
    assert "The scores are not scaled (M01) 2 entropy, softmax scale_missing" in text
    assert "attnlib mistakes M02 shows the one of that number" in text


def test_what_has_no_name_is_counted_too():
    raised = grade(points=0, status="raised")
    wrong = grade("entropy", 0, 500, "raised"), grade("top", 0, 500, "not started")
    text = text_of(a_class(graded("Ada", raised, *wrong), graded("bob", raised, WRONG)))
    assert "Other answers that did not pass:" in text
    assert "raised an error 3 entropy, softmax" in text
    assert "not started 0" not in text
    assert "Other answers" not in text_of(a_class(graded("bob", WRONG)))


def test_every_status_has_its_words():
    known = {*get_args(grades.OfCheck), *get_args(grades.Status)}
    told = {*went_wrong.STATUSES, *went_wrong.NOTHING_WRONG, "mistake", "ungraded"}
    assert {one for one in known if isinstance(one, str)} == told


def test_who_handed_in_less_is_told_with_the_points_of_each_lesson():
    all_ = a_class(
        graded("ada", grade(), where="1"),
        graded("ada", grade("causal", 250, 500, "law"), where="3"),
        graded("ben", grade(), where="1"),
    )
    text = text_of(all_)
    assert "Handed in only in part: 1 student nothing read of lesson ben 03" in text
    assert "lesson 01 lesson 03 points passed" in text
    assert "ada 10 of 10 2.5 of 5 12.5 of 15 1 of 2" in text
    assert "ben 10 of 10 – 10 of 15 1 of 1" in text
    assert "Half of them have 83 % of the points or more." in text
    assert "only in part" not in text_of(a_class(graded("ben", grade())))


def test_who_handed_in_another_lesson_than_the_class_is_told():
    """Where no lesson was asked for, each file is graded for its own."""
    first, third = grade(), grade("causal", 250, 500, "law")
    class_ = [graded("ada", first), graded("bob", third), graded("eve", first)]
    start = graded("zoe", grade("weighted_mean"))
    text = text_of(a_class(*class_, start, graded("mia", first)))
    said = "{0}: {0}.ipynb is graded for lesson {1}, and the class handed in 01. Is it "
    for name, lesson in (("bob", "03"), ("zoe", "00")):
        assert said.format(name, lesson) + "the right file?" in text
    text = text_of(a_class(*class_))
    assert "Handed in only in part: 1 student nothing read of lesson bob 01" in text
    assert a_class(*class_).lessons() == [1]  # the others lack nothing
    assert a_class(*class_[:2]).lessons() == [1, 3]  # who is right?
    assert "the right file" not in text_of(a_class(*class_[:2]))


def test_names_lead_to_the_feedback(tmp_path):
    names = ["A b", "a b", "李明", "x/../y?#%"]
    outputs.everything(a_class(*(graded(name, grade()) for name in names)), tmp_path)
    raw = (tmp_path / "class.html").read_text("utf-8")
    links = [unquote(link) for link in re.findall(r'href="([^"]*)"', raw)]
    assert len(set(links)) == len(names)
    assert all((tmp_path / link).is_file() for link in links)


def test_each_chart_has_a_table_beside_it():
    raw = content(SMALL).decode()
    assert raw.count("<svg") == 2
    for part in raw.split("<svg")[1:]:
        assert part.index("</svg>") < part.index("<table>")


def test_bars_are_as_long_as_what_they_show():
    svg = page.chart([("a", 3, "3"), ("b", 0, "0")], 6, "Mistakes")
    assert 'width="208.0"' in svg  # half of 416
    assert 'width="0.0"' in svg
    assert 'aria-label="Mistakes"' in svg


def test_names_are_escaped_everywhere():
    wrong = grade(EVIL, 0, 100, "mistake", mistakes=(EVIL,))
    all_ = a_class(
        graded(EVIL, wrong, grade(EVIL, 0, 10, "ungraded", EVIL)),
        graded(f"b{EVIL}", status="missing", problem=EVIL, where=EVIL),
        notes=(EVIL,),
        title=EVIL,
    )
    found = Seen(content(all_))
    assert not found.tags & {"script", "img", "iframe"}


def test_an_empty_class_has_a_page():
    assert "0 students" in text_of(a_class())
    assert "None that has a name" in text_of(a_class())


def test_a_page_before_the_end_says_so():
    assert "This is not all" in text_of(a_class(graded("a", grade()), whole=False))


# --- which exercise tells students apart --------------------------------------------
def class_with(table):
    """A student a row, the share of points of each exercise in the columns."""
    return a_class(
        *(
            graded(
                f"s{n:03d}",
                *(grade(f"e{k}", int(v), 100, "law") for k, v in enumerate(row)),
            )
            for n, row in enumerate(table)
        )
    )


def test_the_rest_is_a_share_of_what_was_graded():
    """Whose exercise failed for our fault has fewer points, and is no weaker."""
    rng = np.random.default_rng(1)
    table = rng.integers(0, 101, (12, 3))
    all_ = class_with(table)
    lost = [
        dataclasses.replace(one, grades=one.grades[: 3 - n % 2])
        for n, one in enumerate(all_.graded)
    ]
    rest = [row[1:].mean() if n % 2 == 0 else row[1] for n, row in enumerate(table)]
    found = separates.of_class(a_class(*lost))[0]
    assert found.r == pytest.approx(np.corrcoef(table[:, 0], rest)[0, 1])


@pytest.mark.parametrize("seed", range(5))
def test_the_correlation_is_numpys(seed):
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 101, (30, 4))
    for k, found in enumerate(separates.of_class(class_with(table))):
        rest = np.delete(table, k, 1).sum(1)
        assert found.r == pytest.approx(np.corrcoef(table[:, k], rest)[0, 1])
        assert found.low < found.r < found.high
        assert found.mean == pytest.approx(table[:, k].mean() / 100)


def test_the_interval_holds_what_is_true_as_often_as_it_says():
    rng, inside, n = np.random.default_rng(3), 0, 2000
    for _ in range(n):
        x = rng.normal(size=11)
        y = 0.5 * x + np.sqrt(0.75) * rng.normal(size=11)
        found = separates._one("e", list(zip(x.tolist(), y.tolist(), strict=True)))
        inside += found.low <= 0.5 <= found.high
    assert 0.93 < inside / n < 0.97


def test_fewer_than_ten_students_say_nothing():
    rows = [(10 * n, 10 * n) for n in range(9)]
    for found in separates.of_class(class_with(rows)):
        assert found.r is None
        assert found.sentence == "Too few to say: 9 students, and 10 is the least."
    for found in separates.of_class(class_with([*rows, (100, 100)])):
        assert found.sentence.startswith("Who is strong in the rest is stronger here")
        assert found.sentence.endswith("10 students).")


def test_where_the_strong_are_weak_the_exercise_is_to_be_looked_at():
    rows = [(n, n, 300 - 3 * n) for n in range(0, 100, 5)]
    *_, last = separates.of_class(class_with(rows))
    assert "weaker here: look at what it asks" in last.sentence


def test_chance_is_called_no_clear_connection():
    rng = np.random.default_rng(0)
    found = separates.of_class(class_with(rng.integers(0, 101, (20, 2))))
    assert found[0].sentence.startswith("No clear connection")


def test_equal_points_and_a_single_exercise_separate_nobody():
    for rows in ([(50, 50)] * 12, [(n,) for n in range(12)]):
        for found in separates.of_class(class_with(rows)):
            assert found.r is None
            assert found.sentence.startswith("All 12 students have the same")


def test_what_was_not_graded_is_not_counted():
    broken = graded("x", grade("e0", 0, 100, "ungraded"))
    all_ = a_class(*class_with([(n, n) for n in range(10)]).graded, broken)
    assert [found.students for found in separates.of_class(all_)] == [10, 10]
