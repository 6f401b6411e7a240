"""A function in another process gets the verdict that it gets in a notebook."""

from __future__ import annotations

import contextlib
import functools
import os
import time

import grading_lines as lines
import numpy as np
import pytest
import test_exercises_hostile as hostile
import tiles_kernels as kernels_written
import torch
from grading_lines import from_afar

from attnlib import exercises
from attnlib.attention import scaled_dot_product
from attnlib.clinic import arena
from attnlib.clinic.run import NoKeyboard
from attnlib.exercises import growth, judge
from attnlib.exercises.exercise import (
    Exercise,
    HuntExercise,
    ValueExercise,
    WitnessExercise,
)
from attnlib.exercises.judging import judge_function
from attnlib.exercises.program import Program
from attnlib.grading.channel import Lost
from attnlib.grading.inside import errors
from attnlib.grading.remote import MISSING

NAMES = exercises.names()
FUNCTIONS = [n for n in NAMES if isinstance(exercises.get(n), Exercise)]
WRITTEN = [n for n in NAMES if isinstance(exercises.get(n), Exercise | HuntExercise)]
SETUP = """\
import math
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from attnlib import (attention, cost, diagnostics, head_diagnostics, heads, lowrank,
    masks, numerics, positions, sparse, tiles)
from attnlib.attention import scaled_dot_product, softmax
"""


def same(name, answer, seed=0):
    here = judge(name, answer, seed)
    there = from_afar(name, answer, seed)
    assert there.text == here.text
    assert (there.status, there.mistakes) == (here.status, here.mistakes)
    return there


# --- the right ones -----------------------------------------------------------------
@pytest.mark.parametrize("name", WRITTEN)
def test_a_solution_passes_and_a_stub_is_not_started(name):
    exercise = exercises.get(name)
    passed = from_afar(name, source=[SETUP, exercise.solution_source], seed=7)
    assert passed.text == judge(name, _from_source(exercise), 7).text
    assert passed.passed
    stub = from_afar(name, source=[SETUP, exercise.stub_source])
    assert stub.status == "not started"


def _from_source(exercise):
    space: dict = {}
    exec(SETUP + exercise.solution_source, space)
    return space[exercise.name]


# --- the wrong ones: some of each family here, all of them once by hand -------------
def in_tensors(wrong):
    """A function of arrays, as one of tensors."""

    def answer(*args):
        given = (a.numpy() if torch.is_tensor(a) else a for a in args)
        return torch.from_numpy(np.array(wrong(*given)))

    return answer


def variants(exercise, n):
    """Some wrong versions of an exercise's function, spread over its family."""
    faults = exercise.family.faults
    step = max(1, len(faults) // n)
    for key in faults[::step][:n]:
        wrong = functools.partial(
            exercise.family.implementation, faults=frozenset([key])
        )
        yield in_tensors(wrong) if exercise.tensors else lambda *a, w=wrong: w(*a)


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n != "tiled_attention"])
def test_wrong_versions_are_told_the_same(name):
    for answer in variants(exercises.get(name), 3):
        same(name, answer, seed=3)


@pytest.mark.parametrize("place", range(0, len(hostile.ANSWERS)))
def test_an_answer_that_is_no_such_function_is_told_the_same(place):
    same("softmax", hostile.ANSWERS[place][0])


@pytest.mark.parametrize("place", range(0, len(hostile.RETURNED)))
def test_what_does_or_returns_something_else_is_told_the_same(place):
    verdict = same("softmax", hostile.RETURNED[place][0])
    assert not verdict.passed


RAISING = {
    "a shape": "    return q @ k / 2, v\n",
    "a name": "    return unknown(q), v\n",
    "a helper": "    return helper(q), v\n",
    "a line": "    x = (q\n        @ k)\n    return x, v\n",
    "a loop": "    return [q[i] @ k for i in range(99)]\n",
    "its own": "    class Odd(ValueError): pass\n    raise Odd('here' * 100)\n",
    "no text": "    raise type('A', (Exception,), {'__str__': lambda s: 1 / 0})\n",
    "a key": "    return {'a': 1}['b']\n",
    "the end": "    exit()\n",
    "the keyboard": "    return input('?')\n",
    "none": "    s = stub(q)\n    return s @ v, v\n",
    "a library's": "    return attention.scaled_dot_product(q, v, k)\n",
    "in torch": "    return torch.ones(2) @ torch.ones(3), v\n",
}


@pytest.mark.parametrize("what", RAISING)
def test_an_error_is_told_with_the_line_where_it_arose(what, tmp_path):
    text = (
        "def helper(x):\n    return x @ x[0, 0, 0]\n\n"
        "def stub(x):\n    ...\n\n"
        f"def scaled_dot_product(q, k, v):\n{RAISING[what]}"
    )
    there = from_afar("scaled_dot_product", source=[SETUP, text])
    path = tmp_path / "cell.py"
    path.write_text(SETUP + text, encoding="utf-8")
    space: dict = {"exit": lambda: (_ for _ in ()).throw(SystemExit)}
    exec(compile(SETUP + text, str(path), "exec"), space)
    here = judge("scaled_dot_product", space["scaled_dot_product"])
    if what != "the end":
        assert there.text == here.text
    assert there.status == here.status == "raised"


def test_what_is_printed_is_counted_and_numbers_from_outside_are_named():
    text = (
        "width = 2\n"
        "def softmax(x, axis=-1):\n"
        "    print('x' * 100)\n"
        "    return np.exp(x) * width\n"
    )
    said = from_afar("softmax", source=[SETUP, *text.split("\n", 1)]).text
    assert "kept them hidden" in said
    assert "`width`" in said


def test_an_answer_of_another_name_is_said():
    source = [SETUP, "def softmax(x):\n    return x\n", "entropy = softmax"]
    assert from_afar("entropy", source=source).status == "usage"


def test_what_stays_of_one_call_is_there_in_the_next():
    def answer(weights, values, seen=[]):  # noqa: B006 - that is the point
        seen.append(1)
        return float(len(seen))

    here = judge("weighted_mean", answer)
    answer.__defaults__[0].clear()
    assert from_afar("weighted_mean", answer).text == here.text


def test_random_answers_are_found_out_as_in_a_notebook():
    def answer(x, axis=-1):
        return np.random.random(x.shape)  # noqa: NPY002

    assert "two results" in same("softmax", answer).text


# --- values, witnesses and checks ---------------------------------------------------
def values():
    for name in NAMES:
        exercise = exercises.get(name)
        if isinstance(exercise, ValueExercise):
            yield name, exercise.right
            yield from ((name, wrong.value) for wrong in exercise.wrong[:3])
            yield from ((name, value) for value in (..., None, 3, "x", {}, (1, 2), len))
            if isinstance(exercise.right, dict):
                yield name, dict.fromkeys(exercise.right, "leak")
                yield name, {1: 2, float("nan"): 3, **exercise.right}


@pytest.mark.parametrize("place", range(0, len(list(values()))))
def test_values_are_told_the_same(place):
    name, value = list(values())[place]
    same(name, value)


X, ONE = np.array([[0.0], [-800.0]]), np.ones((1, 1))


@pytest.mark.parametrize(
    "value",
    [
        (X, ONE, ONE),
        [X.tolist(), ONE, torch.ones(1, 1)],
        (ONE, ONE, ONE),
        (np.ones((3, 4)), np.ones((5, 4)), np.ones((5, 2))),
        (X, ONE, np.array([[np.nan]])),
        (X, ONE),
        3,
        (None, None, None),
    ],
    ids=range(8),
)
def test_a_witness_is_told_the_same(value):
    assert isinstance(exercises.get("smallest_input"), WitnessExercise)
    same("smallest_input", value)


def test_a_witness_far_too_large_is_refused_by_its_shape():
    text = "smallest_input = (np.zeros((5000, 4000)), np.ones((1, 1)), np.ones((1, 1)))"
    assert not from_afar("smallest_input", source=[SETUP, text]).passed


def first_only(attention):
    q, k, v = np.random.default_rng(0).normal(size=(3, 4, 4))
    right = exercises.get("scaled_dot_product").solution(q, k, v)[1]
    return not np.allclose(attention(q, k, v), right)


def drawn_from_everywhere(attention):
    q, k, v = np.random.normal(size=(3, 4, 4))  # noqa: NPY002
    return not np.allclose(attention(q, k, v), attention(q, k, v))


def remembers(attention, seen=[]):  # noqa: B006 - that is the point
    seen.append(1)
    return len(seen) % 2 == 0


def asks_wrongly(attention):
    return attention(1, 2)


def asks_with_names(attention):
    x = np.ones((2, 2))
    return not np.isfinite(attention(q=x, k=x, v=x, mask=None)).all()


def asks_of_nothing(attention):
    return attention(np.ones((2, 3)), np.ones((2, 4)), np.ones(2)) is None


def asks_too_much(attention):
    x = np.ones((2, 2))
    return any(attention(x, x, x) is None for _ in range(1500))


CHECKS = (
    first_only,
    drawn_from_everywhere,
    remembers,
    asks_wrongly,
    asks_with_names,
    asks_of_nothing,
    asks_too_much,
    lambda attention: True,
    lambda attention: False,
    lambda attention: np.bool_(False),
    lambda attention: torch.tensor(True),
    lambda attention: 0.0,
    lambda attention: attention,
    lambda attention: None,
    lambda a, b: True,
)


@pytest.mark.parametrize("check", CHECKS, ids=range(len(CHECKS)))
def test_a_check_is_told_the_same(check):
    assert isinstance(exercises.get("mask_check"), HuntExercise)
    remembers.__defaults__[0].clear()
    here = judge("mask_check", check)
    remembers.__defaults__[0].clear()
    there = from_afar("mask_check", check)
    assert there == here


def test_objects_that_lie_earn_nothing_where_they_are_no_answer_at_all():
    liars = (hostile.Liar(), hostile.Liar(), hostile.Thrower())
    for name, answer in (
        ("smallest_input", liars),
        ("mask_check", lambda attention: hostile.Liar()),
        ("after_dropout", hostile.Liar()),
        ("diagnoses", dict.fromkeys("PQRSTU", hostile.Liar())),
    ):
        verdict = from_afar(name, answer)
        assert not verdict.passed
        assert verdict.shares is None or verdict.shares.right == 0


def doubles(q, k, v, mask=None):
    q *= 2
    return scaled_dot_product(q, k, v, mask).out


Q, K, V = np.random.default_rng(0).normal(size=(3, 4, 4))
BEFORE = Q.copy()


def test_a_bug_that_changes_its_input_does_so_in_the_check_too():
    """And what the check keeps is as it was, when the next one comes."""
    bug = arena.Bug("doubles q", "M00", "law", "It doubles q.", lambda: doubles)

    def check(attention):
        attention(Q, K, V)
        return not np.array_equal(BEFORE, Q)

    with lines.answer_afar(exercises.get("mask_check"), check) as found:
        there = arena.score(found, [bug])
    assert there.mutation_score == arena.score(check, [bug]).mutation_score == 1.0


def test_a_question_that_would_fill_the_graders_memory_is_an_error_of_the_check():
    def check(attention):
        x = np.ones((60_000, 1))
        return attention(x, x, x) is None

    verdict = from_afar("mask_check", check)
    assert verdict.status == "raised"
    assert "MemoryError" in verdict.text


# --- the chip: meters cannot be forged ----------------------------------------------
FORGER = (
    SETUP
    + """
import attnlib.tiles.arrays, attnlib.tiles.chip, sys
for module in list(sys.modules.values()):
    for name, value in list(vars(module).items()):
        if isinstance(value, type) and issubclass(value, tiles.Chip):
            for meter in ("peak", "in_use", "read", "written"):
                setattr(value, meter, property(lambda s: 1, lambda s, v: None))
"""
)
WHOLE = '''
def tiled_attention(chip, q, k, v, out, block_q, block_k):
    """All scores at once."""
    scores = chip.load(q) @ chip.load(k).T / q.shape[1] ** 0.5
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    whole = e @ chip.load(v) / e.sum(axis=-1, keepdims=True)
    chip.store(out, None, whole)
'''


def test_a_kernel_with_all_scores_is_refused_whatever_its_meters_say():
    honest = from_afar("tiled_attention", source=[SETUP, WHOLE])
    assert honest.status == "law"
    space: dict = {}
    exec(SETUP + WHOLE, space)
    assert honest.text == judge("tiled_attention", space["tiled_attention"]).text
    forged = from_afar("tiled_attention", source=[FORGER, WHOLE])
    assert forged.status == "law"


def test_a_kernel_that_gives_no_numbers_when_it_is_measured_is_refused():
    text = WHOLE.replace("    scores", "    assert len(q) < 50\n    scores", 1)
    verdict = from_afar("tiled_attention", source=[SETUP, text])
    assert verdict.status == "law"
    assert "gives no numbers" in verdict.text


@pytest.mark.parametrize(
    "written",
    [kernels_written.tiled, kernels_written.whole_matrix],
)
def test_kernels_are_told_the_same(written):
    same("tiled_attention", written)


@pytest.mark.parametrize(
    "program",
    [
        b"[]",
        b"null",
        b"{",
        b'{"is": "list", "parts": []}',
        b'{"is": "list", "parts": [{"is": "tuple", "parts": ["system", 1, 2, 3]}]}',
    ],
)
def test_a_forged_program_is_refused(program):
    placed = [np.ones((2, 2)) for _ in "qkvo"]
    with lines.apart() as line:
        text = np.frombuffer(program, np.uint8)
        reply, _ = line.ask({"do": "again"}, [*placed, text], 5.0)
    if reply["is"] == "again":
        assert reply["traffic"] == reply["written"] == 0
    else:
        assert reply["is"] == "refused"


def test_a_program_may_not_name_what_touches_files():
    from attnlib.grading.inside import programs

    for name in ("save", "savetxt", "load", "fromfile", "frompyfunc", "vectorize"):
        assert name not in programs.FUNCTIONS
    chip = {"is": "ref", "number": 0}
    args = {"is": "tuple", "parts": [chip, {"is": "function", "name": "save"}]}
    none = {"is": "dict", "pairs": []}
    step = {"is": "list", "parts": ["__array_function__", args, none, []]}
    import json

    text = json.dumps({"is": "list", "parts": [step]}).encode()
    with pytest.raises(ValueError, match="no value"):
        programs.unpacked([np.frombuffer(text, np.uint8)])


# --- growth: meters run beside the answer, and a long text is asked from outside ----
TABLE = '''
def window_attention(q, k, v, width):
    """A table of all pairs."""
    n = len(q)
    ahead = np.arange(n) - np.arange(n)[:, None]
    look = (ahead <= 0) & (ahead > -width)
    return attention.scaled_dot_product(q, k, v, look).out
'''
NO_METERS = (
    SETUP
    + """
from attnlib.exercises import metered
metered.bytes_of = lambda answer, *args: (answer(*args), 1, 1, 1)
metered.counted.Counted._count = lambda self, made, read: made
"""
)


def test_a_table_is_refused_also_by_those_who_broke_the_meters():
    honest = from_afar("window_attention", source=[SETUP, TABLE])
    assert honest.status == "law"
    assert growth.ROOM.name in honest.text
    forged = from_afar("window_attention", source=[NO_METERS, TABLE])
    assert forged.status == "law"
    assert growth.PLACE_ENOUGH.name in forged.text
    assert forged.shares == honest.shares  # and it does not pay


def test_right_windows_pass_in_little_room():
    import test_exercises_lesson_13 as windows

    for answer in (windows.query_by_query, windows.by_views, windows.by_torch):
        assert same("window_attention", answer).passed


def test_the_long_text_is_not_asked_of_a_notebook():
    asked = []

    def answer(q, k, v, width):
        asked.append(len(q))
        return exercises.get("window_attention").solution(q, k, v, width)

    assert judge("window_attention", answer).passed
    assert max(asked) < growth.LONGEST


# --- how a child may end ------------------------------------------------------------
def test_a_loop_is_stopped_in_the_child_and_told_the_same():
    def answer(x, axis=-1):
        while True:
            pass

    exercise = exercises.get("softmax")
    here = judge_function(exercise, answer, limit=0.2)
    with lines.answer_afar(exercise, answer) as found:
        there = judge_function(exercise, found, limit=0.2)
    assert there.text == here.text
    assert there.status == "timeout"


@pytest.mark.parametrize(
    "way", [lambda: os._exit(0), lambda: os.kill(os.getpid(), 9), lambda: os.close(3)]
)
def test_a_process_that_ends_is_lost_and_not_a_verdict(way):
    def answer(x, axis=-1):
        for number in range(3, 100):
            with contextlib.suppress(OSError):
                os.set_blocking(number, True)
        way()
        os._exit(1)

    with pytest.raises(Lost):
        from_afar("softmax", answer)


def test_a_check_that_ends_its_process_is_lost_too():
    with pytest.raises(Lost):
        from_afar("mask_check", lambda attention: os._exit(0))


def lying(reply, arrays=()):
    """A child that answers every call in one way."""

    def serve(channel):
        while True:
            request, _ = channel.receive()
            if request["do"] == "define":
                told = {
                    "name": "softmax",
                    "stub": False,
                    "signature": None,
                    "stub_called": "",
                    "outer_numbers": [],
                    "returns_something": True,
                    "multiplies_infinity": False,
                }
                channel.send({"is": "function", "errors": [], "told": told})
            else:
                channel.send(reply, arrays)

    return serve


RESULT = {
    "is": "result",
    "value": {"is": "array", "number": 0},
    "error": None,
    "timed_out": False,
    "printed": 0,
    "changed": [],
    "empty_mean": False,
    "program": None,
    "seconds": 0.0,
}
ERROR = {"kind": "E", "base": "Exception", "message": "m", "place": None}


@pytest.mark.parametrize(
    "reply",
    [
        {},
        RESULT | {"value": {"is": "array", "number": 3}},
        RESULT | {"value": {"is": "pickle"}},
        RESULT | {"changed": [7]},
        RESULT | {"changed": "q"},
        RESULT | {"printed": "many"},
        RESULT | {"error": 3},
        RESULT | {"error": {}},
        RESULT | {"error": ERROR | {"place": {}}},
        RESULT | {"seconds": None},
    ],
    ids=range(10),
)
def test_an_answer_that_is_none_breaks_the_line(reply):
    line = lines.ForkedLine(serve=lying(reply, [np.eye(2)]))
    try:
        exercise = exercises.get("softmax")
        found = lines.define(line, [], lines.wish(exercise)).answer
        with pytest.raises(Lost, match="broke"):
            judge_function(exercise, found)
    finally:
        line.close()


@pytest.mark.parametrize("first", [7, -1, None, "x"])
def test_a_program_that_there_is_not_breaks_the_line(first):
    reply = RESULT | {"program": first}
    line = lines.ForkedLine(serve=lying(reply, [np.eye(2)]))
    try:
        exercise = exercises.get("tiled_attention")
        found = lines.define(line, [], lines.wish(exercise)).answer
        with pytest.raises(Lost, match="broke"):
            found.ask((Q, K, V, 1, 1, Program()), 1.0)
    finally:
        line.close()


@pytest.mark.parametrize(
    "told",
    [
        ERROR,
        ERROR | {"kind": "KeyError", "base": "KeyError"},
        ERROR | {"kind": "UnicodeDecodeError", "base": "UnicodeDecodeError"},
        ERROR | {"kind": "SystemExit", "base": "SystemExit"},
        ERROR | {"kind": "ShapeError", "base": "ValueError"},
        ERROR | {"kind": "ShapeError", "base": "print"},
        ERROR | {"kind": "a b", "base": "__import__"},
        ERROR | {"kind": 3, "base": None, "message": ["x"]},
        ERROR | {"kind": "__class__", "base": "type"},
    ],
    ids=range(9),
)
def test_an_error_is_made_again_by_its_name_alone(told):
    made = errors.rebuilt(told)
    assert isinstance(made, BaseException)
    assert str(made) in ("m", "")
    again = errors.told(made)
    assert again["kind"] in (told["kind"], "object", type(made).__name__)


def test_errors_keep_their_class_where_the_judge_asks_for_it():
    for error in (NotImplementedError("x"), SystemExit(3), KeyError("a"), NoKeyboard()):
        made = errors.rebuilt(errors.told(error))
        assert type(made).__name__ == type(error).__name__
        assert str(made) == str(error)
        assert isinstance(made, Exception) == isinstance(error, Exception)


def test_statements_that_raise_cost_only_what_they_define():
    exercise = exercises.get("softmax")
    source = [SETUP, "x = 1 / 0", "import nowhere", exercise.solution_source]
    line = lines.ForkedLine()
    try:
        pieces = [lines.Piece(i + 1, 1, text) for i, text in enumerate(source)]
        found = lines.define(line, pieces, lines.wish(exercise))
        assert judge("softmax", found.answer).passed
        assert found.errors == (
            "Cell 2, line 1 (`x = 1 / 0`) raised ZeroDivisionError: division by zero.",
            "Cell 3, line 1 (`import nowhere`) raised ModuleNotFoundError: No module "
            "named 'nowhere'.",
        )
    finally:
        line.close()


def test_an_answer_that_was_not_defined_is_missing():
    line = lines.ForkedLine()
    try:
        piece = lines.Piece(4, 3, "softmax = 1 / 0")
        found = lines.define(line, [piece], lines.wish(exercises.get("softmax")))
        assert found.answer is MISSING
        assert "Cell 4, line 3 (`softmax = 1 / 0`) raised" in found.errors[0]
    finally:
        line.close()


def test_time_that_the_machine_takes_is_not_the_answers():
    """A child that is slow by the clock, and does not compute."""

    def serve(channel):
        inner = lying(RESULT, [np.zeros((2, 3))])

        class Slow:
            def receive(self):
                time.sleep(0.1)
                return channel.receive()

            send = channel.send

        inner(Slow())

    line = lines.ForkedLine(serve=serve)
    try:
        exercise = exercises.get("softmax")
        found = lines.define(line, [], lines.wish(exercise)).answer
        ran = found.ask((np.zeros((2, 3)),), 1.0)
        assert 0.07 < ran.waited < 0.5
        assert not ran.timed_out
    finally:
        line.close()
