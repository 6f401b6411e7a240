"""One student: every exercise has a grade, and none of them costs another."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, replace
from pathlib import Path

import grading_lines as lines
import pytest
from test_grading_remote import RESULT, lying

from attnlib import exercises
from attnlib.clinic.case import Case, Family
from attnlib.exercises import get
from attnlib.exercises.exercise import Exercise, Part
from attnlib.grading import student
from attnlib.grading.channel import Lost
from attnlib.grading.student import grade

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"
LESSONS = sorted({get(name).lesson for name in exercises.names()})


@dataclass(frozen=True)
class Handed:
    data: bytes = b""
    student: str = "ada"
    where: str = "ada.ipynb"
    problem: str = ""


def notebook(*cells):
    found = [{"cell_type": "code", "source": cell} for cell in cells]
    return Handed(json.dumps({"cells": found}).encode())


def of(*names):
    return [get(name) for name in names]


def graded(handed, *names, seed="secret", session=lines.ForkedSession, **more):
    return grade(handed, of(*names), seed, session, **more)


SETUP = "import numpy as np\nfrom attnlib import attention, tiles"


def solution(name):
    return get(name).solution_source


# --- right --------------------------------------------------------------------------
def solved(lesson):
    """The notebook of a lesson, with every stub replaced."""
    path = next(NOTEBOOKS.glob(f"{lesson:02d}_*.ipynb"))
    whole = json.loads(path.read_text(encoding="utf-8"))
    stubs = {get(n).stub_source.strip(): n for n in exercises.names(lesson)}
    found = []
    for cell in whole["cells"]:
        source = "".join(cell["source"]).strip()
        if source in stubs:
            cell["source"] = solution(stubs[source])
            found.append(stubs[source])
    assert sorted(found) == sorted(exercises.names(lesson))
    return Handed(json.dumps(whole).encode(), where=path.name)


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_solved_notebook_gets_full_marks(lesson):
    names = exercises.names(lesson)
    found = graded(solved(lesson), *names)
    assert found.status == "graded"
    for one in found.grades:
        assert one.status == "passed", one
        assert one.points == one.of == 100 * get(one.exercise).minutes
        assert one.hint == ""
        assert one.cell


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_blank_notebook_is_not_started_and_starts_no_process(lesson):
    path = next(NOTEBOOKS.glob(f"{lesson:02d}_*.ipynb"))
    session = lines.ForkedSession()
    found = graded(
        Handed(path.read_bytes()),
        *exercises.names(lesson),
        session=lambda torch: session,
    )
    assert {one.status for one in found.grades} == {"not started"}
    assert all("this one" not in one.text for one in found.grades)  # no cell is near
    assert found.points == 0
    assert session.lines == []


# --- wrong, each for itself ---------------------------------------------------------
def test_each_answer_has_a_grade_of_its_own():
    handed = notebook(
        SETUP,
        "def softmax(x, axis=-1):\n    import os\n    os._exit(0)",
        solution("weighted_mean"),
        "def entropy(weights)\n    return 1",
        get("predicted_std").stub_source,
        "def scaled_dot_product(q, k, v):\n"
        "    w = attention.softmax(q @ np.swapaxes(k, -1, -2))\n    return w, w @ v",
        "distance_to_possible = 1 / 0",
    )
    names = (
        "softmax",
        "weighted_mean",
        "entropy",
        "predicted_std",
        "scaled_dot_product",
        "distance_to_possible",
        "bug_bash",
    )
    found = graded(handed, *names)
    assert [one.exercise for one in found.grades] == list(names)
    assert {one.exercise: one.status for one in found.grades} == {
        "softmax": "ended",
        "weighted_mean": "passed",
        "entropy": "syntax",
        "predicted_std": "not started",
        "scaled_dot_product": "mistake",
        "distance_to_possible": "raised",
        "bug_bash": "missing",
    }
    by_name = {one.exercise: one for one in found.grades}
    assert by_name["scaled_dot_product"].mistakes == ("scale_missing",)
    assert by_name["scaled_dot_product"].hint == get("scaled_dot_product").hints[0]
    assert by_name["scaled_dot_product"].cell == 6
    assert "ZeroDivisionError" in by_name["distance_to_possible"].text
    assert "Cell 7, line 1 (`" in by_name["distance_to_possible"].text
    assert "Cell 4, line 1 (`" in by_name["entropy"].text
    assert by_name["scaled_dot_product"].begins.startswith(" (`def scaled_dot_product(")
    assert found.points == by_name["weighted_mean"].of + sum(
        one.points for one in found.grades if one.exercise == "scaled_dot_product"
    )


def test_the_text_is_that_of_the_notebook():
    text = "def softmax(x, axis=-1):\n    return np.exp(x) / np.exp(x).sum()"
    one = graded(notebook(SETUP, text), "softmax").grades[0]
    space: dict = {}
    exec(f"{SETUP}\n{text}", space)
    seed = student.points.seed_of("secret", "softmax")
    assert one.text == exercises.judge("softmax", space["softmax"], seed).text


def test_an_answer_that_calls_check_is_not_hurt():
    text = solution("softmax") + "\nsoftmax = softmax"
    handed = notebook(
        SETUP + "\nfrom attnlib.exercises import check",
        text,
        'check("softmax", softmax)',
    )
    assert graded(handed, "softmax").grades[0].status == "passed"


def test_the_same_seed_gives_the_same_and_the_order_does_not_matter():
    text = "def softmax(x, axis=-1):\n    return np.exp(x) / np.exp(x).sum()"
    handed = notebook(SETUP, text, solution("weighted_mean"))
    one = graded(handed, "softmax", "weighted_mean")
    two = graded(handed, "weighted_mean", "softmax")
    again = graded(replace(handed, student="bob"), "softmax", "weighted_mean")
    assert one.grades == two.grades[::-1] == again.grades


def test_no_place_in_memory_or_on_the_disk_of_the_day_is_told():
    room = "/tmp/attnlib-room-_a1b2c3d/attnlib/masks.py"
    handed = notebook(
        SETUP,
        f"def softmax(x, axis=-1):\n    raise ValueError(f'({room}) {{object()}}')",
    )
    one = graded(handed, "softmax").grades[0]
    assert "ValueError: (attnlib/masks.py) <object object>" in one.text
    assert "-room-" not in one.text


def test_a_point_for_each_exercise():
    handed = notebook(SETUP, solution("softmax"), solution("weighted_mean"))
    found = graded(handed, "softmax", "weighted_mean", equal=True)
    assert (found.points, found.of) == (200, 200)


@pytest.mark.parametrize(
    "handed",
    [Handed(problem="It is empty."), Handed(b""), Handed(b"\x89PNG..."), Handed(b"{")],
)
def test_what_cannot_be_read_is_unreadable_and_no_zero(handed):
    found = graded(handed, "softmax")
    assert found.status == "unreadable"
    assert found.problem
    assert found.grades == ()


def test_nothing_that_a_child_says_gives_points():
    """A child that says that all is well, or tells a value, whatever it is asked."""
    handed = notebook(SETUP, solution("softmax"), "diagnoses = {}")
    for reply in (
        {"is": "passed", "points": 600, "status": "passed"},
        RESULT | {"verdict": "passed", "shares": [1, 1]},
        {"is": "value", "value": None},
    ):
        found = graded(
            handed,
            "softmax",
            "diagnoses",
            session=lambda torch, r=reply: lines.ForkedSession(torch, lying(r)),
        )
        assert found.points == 0
        assert {one.status for one in found.grades} <= {"broke", "usage", "type"}


# --- when the grader itself fails ---------------------------------------------------
class Broken(lines.ForkedSession):
    def __init__(self, torch=False, why=None):
        super().__init__(torch)
        self.why = why or []

    @contextlib.contextmanager
    def exercise(self):
        if self.why:
            raise self.why.pop(0)
        with super().exercise() as line:
            yield line


HANDED = notebook(SETUP, solution("softmax"), solution("weighted_mean"))


def test_a_fault_of_the_grader_is_no_zero():
    found = graded(
        HANDED,
        "softmax",
        "weighted_mean",
        session=lambda torch: Broken(torch, [OSError("no more processes")]),
    )
    one, two = found.grades
    assert one.status == "ungraded"
    assert "no more processes" in one.text
    assert two.status == "passed"
    assert (found.points, found.of) == (two.of, two.of)


def test_who_met_the_end_of_a_sandbox_is_asked_again_once():
    lost = Lost("killed", "the sandbox has ended", sandbox=True)
    once = graded(HANDED, "softmax", session=lambda torch: Broken(torch, [lost]))
    assert once.grades[0].status == "passed"
    twice = graded(HANDED, "softmax", session=lambda torch: Broken(torch, [lost, lost]))
    assert twice.grades[0].status == "killed"
    assert twice.grades[0].points == 0


@pytest.mark.parametrize(
    "reason", ["timeout", "ended", "killed", "memory", "broke", "output"]
)
def test_how_a_process_ended_is_said(reason):
    session = lambda torch: Broken(torch, [Lost(reason, "so")])  # noqa: E731
    one = graded(HANDED, "softmax", session=session).grades[0]
    assert one.status == reason
    assert one.points == 0
    assert one.text.startswith("softmax: not yet. ")
    assert "So." in one.notes


def test_how_a_process_ended_is_said_once():
    lost = Lost("broke", "it sent what is no answer")
    session = lambda torch: Broken(torch, [lost])  # noqa: E731
    one = graded(HANDED, "softmax", session=session).grades[0]
    assert "sent what is no answer" in one.text
    assert one.notes == ()


def through(answer):
    """What a teacher makes of an answer: a function of one number."""
    seen = []

    def note(x):
        seen.append(x)
        return "noted"

    def run(x):
        said = answer(note, "a word", x)
        if seen != [x, x + 1]:
            raise ValueError(f"noted was {seen}")
        return said

    return run


TWICE = """
def noting(note, word, x):
    {body}
    return note(x) == note(x + 1) == "noted" and 2 * x
"""


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ("pass", "passed", "why"),
        ("note(x)", "raised", "noted was [1.0, 1.0, 2.0]"),
        ("x = note.x", "raised", "at line 2 of noting: `x = note.x`"),
        ("while True: pass", "timeout", "stopped after 3 seconds"),
        ("import os; os._exit(0)", "ended", "ended the program"),
    ],
)
def test_what_is_made_of_a_private_answer_runs_on_our_side(body, status, words):
    def double(x, faults=frozenset()):
        return 2 * x

    private = Exercise(
        "noting",
        0,
        3,
        lambda note, word, x: None,
        lambda rng: [Case("one", (1.0,)), Case("two", (3.0,))],
        (Part("twice"),),
        Family("noting", double, {}),
        ("a", "b", "c"),
        "why",
        around=through,
    )
    handed = notebook(TWICE.format(body=body))
    one = grade(handed, [private], "secret", lines.ForkedSession).grades[0]
    assert one.status == status, one
    assert words in one.text


def test_a_private_exercise_is_judged_by_what_it_says():
    private = replace(get("weighted_mean"), name="mine")
    handed = notebook(SETUP, "def mine(weights, values):\n    return weights @ values")
    found = grade(handed, [private], "secret", lines.ForkedSession)
    assert found.grades[0].status == "passed"


def test_torch_is_loaded_where_it_is_needed():
    asked = []

    def session(torch):
        asked.append(torch)
        return lines.ForkedSession(torch)

    graded(HANDED, "softmax", session=session)
    handed = notebook(
        "import torch\ndef softmax(x, axis=-1):\n    return torch.ones(2)"
    )
    graded(handed, "softmax", session=session)
    assert asked == [False, True]


def test_one_slip_that_costs_two_answers_is_told():
    upside = """def causal(n_q, n_k=None):
    return np.triu(np.ones((n_q, n_k or n_q)), 1) > 0"""
    both = """def padding_and_causal(lengths, n_q, n_k):
    real = np.arange(n_k) < np.asarray(lengths)[:, None]
    return real[:, None, None, :] & causal(n_q, n_k)"""
    names = "causal", "padding_and_causal", "document_mask"
    first, second, third = graded(
        notebook("import numpy as np", upside, both, solution(names[2])), *names
    ).grades
    leans = "It uses your `causal`, which is not right yet: mend that first"
    assert leans in second.text
    assert "It uses" not in first.text + third.text
    alone = notebook("import numpy as np", solution("causal"), both.replace("<", "<="))
    assert "It uses" not in graded(alone, *names[:2]).grades[1].text
