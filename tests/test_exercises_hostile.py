"""Whatever is handed in, one clear sentence comes back, and nothing else happens."""

from __future__ import annotations

import builtins
import faulthandler
import functools
import random
import sys
import threading
import time
import types
import warnings

import numpy as np
import pytest

from attnlib.clinic import run
from attnlib.exercises import check, judge


def right(x, axis=-1):
    e = np.exp(x - np.maximum(x.max(axis, keepdims=True), -1e300))
    total = e.sum(axis, keepdims=True)
    return e / np.where(total == 0, 1, total)


class Liar:
    """Equal to everything, true to everything, of any length."""

    __hash__ = None

    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False

    def __bool__(self):
        return True

    def __len__(self):
        return 3

    def __getattr__(self, name):
        return self

    def __array__(self, dtype=None, copy=None):
        return self


class Thrower:
    """Raises whatever is asked of it."""

    def __getattribute__(self, name):
        raise RuntimeError("hands off")

    def __len__(self):
        raise RuntimeError("hands off")


class Endless:
    """A sequence without end."""

    def __len__(self):
        return 10**9

    def __getitem__(self, index):
        return self


class Sub(np.ndarray):
    def __eq__(self, other):
        return np.True_

    def __array_finalize__(self, obj):
        pass


# What is handed in as the answer: (answer, status, words of the sentence).
ANSWERS = (
    (None, "type", "The answer is None"),
    (..., "not started", "not started yet"),
    ("softmax", "type", "The answer is a str"),
    (3.5, "type", "The answer is a float, not a function"),
    (np.ones(3), "type", "The answer is an ndarray, not a function"),
    ([right], "type", "The answer is a list"),
    (Liar, "type", "The answer is a class"),
    (Liar(), "type", "It should be called as|The answer is|returns"),
    (Thrower(), "type", "The answer is a Thrower"),
    (lambda: 1, "type", "It should be called as softmax(x, axis=-1)"),
    (lambda x: right(x), "type", "but yours is <lambda>(x)"),
    (lambda a, b, c: a, "type", "but yours is <lambda>(a, b, c)"),
    (lambda x, *, axis=-1: x, "type", "but yours is <lambda>(x, *, axis=-1)"),
    (np.exp, "raised|shape|law|differs|mistake", ""),
    (len, "type", "It should be called as softmax(x, axis=-1)"),
)


@pytest.mark.parametrize("row", range(len(ANSWERS)))
def test_an_answer_that_is_no_such_function(row):
    answer, status, words = ANSWERS[row]  # pytest would ask the objects for their names
    verdict = judge("softmax", answer)
    assert verdict.status in status.split("|"), verdict
    assert any(w in verdict.text for w in words.split("|")), verdict.text


def returns(value):
    return lambda x, axis=-1: value


def generator(x, axis=-1):
    yield x


async def coroutine(x, axis=-1):
    return x


def no_return(x, axis=-1):
    x = right(x, axis)


async def asynchronous(x, axis=-1):
    yield x


def with_a_slip(x, axis=-1):
    return x.total


class Callable:
    def __call__(self, x, axis=-1):
        return x.total


def shouting(x, axis=-1):
    raise SystemExit(3)


# What the function returns: (function, status, words of the sentence).
RETURNED = (
    (lambda x, axis=-1: print(), "type", "It returns None here."),
    (no_return, "type", "It returns None. Is the `return` line missing?"),
    (returns(...), "type", "It returns `...`"),
    (lambda x, axis=-1: ..., "not started", "not started yet"),
    (lambda x, axis=-1: [..., x][0], "type", "It returns `...`"),
    (returns("0.5"), "type", "The weights should be an array of numbers"),
    (lambda x, axis=-1: [[1.0], [1.0, 2.0]], "type", "rows differ in length"),
    (lambda x, axis=-1: ["a", "b"], "type", "a list of something else"),
    (lambda x, axis=-1: (right(x, axis),), "type", "Is there a comma after"),
    (lambda x, axis=-1: (x, x), "type", "It returns a tuple of 2"),
    (lambda x, axis=-1: {"w": x}, "type", "you returned a dict"),
    (lambda x, axis=-1: Liar(), "type", "you returned a Liar"),
    (lambda x, axis=-1: Thrower(), "type", "you returned a Thrower"),
    (lambda x, axis=-1: right, "type", "It returns a function"),
    (lambda x, axis=-1: right(x, axis) * 1j, "type", "complex numbers"),
    (
        lambda x, axis=-1: right(x, axis).astype(object),
        "type",
        "an array of dtype object",
    ),
    (lambda x, axis=-1: right(x, axis).astype(str), "type", "an array of dtype <U"),
    (
        lambda x, axis=-1: right(x, axis) > 0.5,
        "type",
        "should be an array of numbers, but it is an array of True",
    ),
    (
        lambda x, axis=-1: np.ma.masked_invalid(right(x, axis)),
        "type",
        "a masked array",
    ),
    (lambda x, axis=-1: np.zeros(10**8), "type", "far too large"),
    (lambda x, axis=-1: (row for row in x), "type", "nothing is computed yet"),
    (lambda x, axis=-1: map(right, x), "type", "It returns a map"),
    (asynchronous, "type", "It is an `async def`"),
    (functools.partial(with_a_slip), "raised", "at line 2 of with_a_slip"),
    (Callable(), "raised", "at line 2 of __call__: `return x.total`"),
    (lambda x, axis=-1: right(x, axis)[..., :1], "shape", "it should be (2, 3)"),
    (
        lambda x, axis=-1: 1.0,
        "shape",
        "a single value for the weights; wanted is an array of shape (2, 3)",
    ),
    (
        lambda x, axis=-1: np.zeros((0, 3)),
        "shape",
        "The shape of the weights is (0, 3)",
    ),
    (generator, "type", "`return` where you wrote `yield`"),
    (coroutine, "type", "a plain `def` is wanted|A plain `def`"),
    (shouting, "raised", "It ends the program (SystemExit)"),
    (lambda x, axis=-1: input("?"), "raised", "keyboard input"),
    (lambda x, axis=-1: sys.stdin.readline(), "raised", "keyboard input"),
    (lambda x, axis=-1: unknown_name, "raised", "Is it misspelt"),  # noqa: F821
    (lambda x, axis=-1: x.softmax(axis), "raised", "That is PyTorch"),
    (lambda x, axis=-1: x @ x, "raised", "`A @ B` needs as many columns"),
    (lambda x, axis=-1: x + np.ones(7), "raised", "Two arrays of different shapes"),
    (lambda x, axis=-1: x if x > 0 else 0, "raised", "one True or False"),
    (lambda x, axis=-1: x.reshape(100), "raised", "reshape keeps the number"),
    (lambda x, axis=-1: np.zeros(10**15), "raised", "far too large"),
    (lambda x, axis=-1: None @ x, "raised", "no `return` yet"),
    (lambda x, axis=-1: x[99], "raised", "outside the array"),
    (lambda x, axis=-1: 1 / 0, "raised", "divided by zero"),
)


@pytest.mark.parametrize(("answer", "status", "words"), RETURNED)
def test_a_function_that_does_or_returns_something_else(answer, status, words):
    verdict = judge("softmax", answer)
    assert verdict.status == status, verdict
    assert any(w in verdict.text for w in words.split("|")), verdict.text
    assert len(verdict.text) < 700


def test_a_nan_is_said_with_its_place():
    def answer(x, axis=-1):
        weights = right(x, axis)
        weights[..., 0] = np.nan
        return weights

    verdict = judge("softmax", answer)
    assert verdict.status == "nan"
    assert "There is NaN in the weights at [0, 0]" in verdict.text


def test_a_changed_input_is_said_by_name():
    def answer(x, axis=-1):
        x -= np.maximum(x.max(axis, keepdims=True), -1e300)
        return right(x, axis)

    verdict = judge("softmax", answer)
    assert verdict.status == "mutates"
    assert "It changes its input x " in verdict.text


def test_a_changed_input_is_said_beside_a_named_mistake():
    def answer(q, k, v):
        k *= 2
        scores = q @ np.swapaxes(k, -1, -2) / 2
        weights = right(scores)
        return weights, weights @ v

    verdict = judge("scaled_dot_product", answer)
    assert [m.key for m in verdict.mistakes] == ["scale_missing"]
    assert "It changes its input k " in verdict.text


@pytest.mark.parametrize("value", [1.0, (1.0,), (1.0, 2.0, 3.0), "w", None])
def test_one_result_where_two_are_wanted(value):
    verdict = judge("scaled_dot_product", lambda q, k, v: (value, 0)[0])
    assert verdict.status == "type"
    assert "weights" in verdict.text or "None" in verdict.text


def test_the_first_case_that_goes_wrong_is_told():
    # q @ k.T also raises for batches, but a result is missing in every case.
    verdict = judge("scaled_dot_product", lambda q, k, v: q @ k.T)
    assert verdict.status == "type"
    assert "It returns one array, and should return weights and out" in verdict.text


def test_the_axes_of_a_wrong_shape_are_named():
    def answer(q, k, v):
        weights = right(q @ np.swapaxes(k, -1, -2))
        return weights, weights @ v[..., :1]

    verdict = judge("scaled_dot_product", answer)
    assert verdict.status == "shape"
    assert "shape of `out` is (3, 1); it should be (3, 5): (n_q, d_v)" in verdict.text


def test_ndarray_subclasses_and_matrices_are_judged_by_their_numbers():
    assert judge("softmax", lambda x, axis=-1: right(x, axis).view(Sub)).passed
    wrong = judge("softmax", lambda x, axis=-1: np.zeros_like(x).view(Sub))
    assert not wrong.passed


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_a_matrix_is_not_accused_for_being_one():
    def answer(weights, values):
        return np.matrix(weights) @ np.matrix(values).T

    verdict = judge("weighted_mean", answer)
    assert verdict.status == "shape"


def test_printed_text_is_hidden_and_said_once(capsys):
    def answer(x, axis=-1):
        print("x" * 100)
        print("y" * 100, file=sys.stderr)
        return right(x, axis)

    check("softmax", answer)
    out, err = capsys.readouterr()
    assert "xxx" not in out + err
    assert out.count("kept them hidden") == 1


def test_a_flood_of_text_costs_nothing():
    def answer(x, axis=-1):
        for _ in range(50):
            print("x" * 10**6)
        return right(x, axis)

    assert judge("softmax", answer).passed


def test_an_error_is_shown_with_its_line():
    def answer(x, axis=-1):
        e = np.exp(x)
        return e / e.total

    verdict = judge("softmax", answer)
    assert "at line 3 of answer: `return e / e.total`" in verdict.text


def test_an_error_that_cannot_be_printed():
    class Mute(Exception):
        def __str__(self):
            raise RuntimeError

    def answer(x, axis=-1):
        raise Mute

    assert "It raised a Mute" in judge("softmax", answer).text


def test_not_implemented_is_not_started():
    def answer(x, axis=-1):
        raise NotImplementedError

    assert judge("softmax", answer).status == "not started"


# --- loops ------------------------------------------------------------------------
def forever():
    while True:
        pass


def swallowing():
    while True:
        try:
            while True:
                pass
        except:  # noqa: E722 - that is the point
            pass


def sleeping():
    while True:
        try:  # noqa: SIM105 - as a learner writes it
            time.sleep(10)
        except BaseException:
            pass


def calling_itself():
    try:
        while True:
            pass
    except BaseException:
        calling_itself()


class Stubborn:
    """Raises while it is thrown away, as an alarm at that moment would."""

    def __del__(self):
        raise run.TimeUp


def test_what_raises_while_it_is_thrown_away_is_not_heard_of():
    hook = sys.unraisablehook
    assert run.run(lambda: Stubborn() and 3, ()).value == 3
    assert sys.unraisablehook is hook


@pytest.fixture
def _never_longer_than_a_minute():
    """A loop that is not stopped ends the test run with a traceback, not never."""
    faulthandler.dump_traceback_later(60, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.mark.usefixtures("_never_longer_than_a_minute")
@pytest.mark.skipif(not hasattr(__import__("signal"), "setitimer"), reason="POSIX")
@pytest.mark.parametrize("loop", [forever, swallowing, sleeping, calling_itself])
def test_a_loop_for_ever_is_stopped(loop):
    start = time.monotonic()
    ran = run.run(loop, (), limit=0.2)
    assert ran.timed_out
    assert time.monotonic() - start < 10


def test_a_loop_for_ever_is_stopped_outside_the_main_thread():
    # One that swallows every exception is stopped there by luck only, within seconds
    # as a rule: CPython looks for our exception at few places, all of them in its try.
    found = []
    run_it = lambda: found.append(run.run(forever, (), 0.2))  # noqa: E731
    thread = threading.Thread(target=run_it, daemon=True)
    thread.start()
    thread.join(timeout=30)
    assert found
    assert found[0].timed_out


@pytest.mark.usefixtures("_never_longer_than_a_minute")
def test_no_alarm_is_left_behind():
    import signal

    before = signal.getsignal(signal.SIGALRM)
    run.run(forever, (), limit=0.1)
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    time.sleep(0.05)


@pytest.mark.usefixtures("_never_longer_than_a_minute")
@pytest.mark.skipif(not hasattr(__import__("signal"), "setitimer"), reason="POSIX")
def test_except_exception_does_not_turn_a_loop_into_an_answer():
    def answer():
        try:
            forever()
        except Exception:
            return 1

    assert run.run(answer, (), limit=0.1).timed_out


def test_the_keyboard_is_refused_in_a_notebook_too(monkeypatch):
    # A kernel puts its own `input` into builtins, which does not read sys.stdin.
    monkeypatch.setattr("builtins.input", lambda prompt="": "yes")
    assert isinstance(run.run(lambda: input("?"), ()).error, run.NoKeyboard)


@pytest.mark.usefixtures("_never_longer_than_a_minute")
def test_a_slow_answer_gets_a_sentence(monkeypatch):
    from attnlib.exercises import get, judging

    verdict = judging.judge_function(
        get("softmax"), lambda x, axis=-1: forever(), limit=0.2
    )
    assert verdict.status == "timeout"
    assert "stopped after 0.2 seconds" in verdict.text
    assert "a loop that never ends" in verdict.text


# --- what is put back ---------------------------------------------------------------
def test_global_states_are_put_back():
    def rude():
        np.random.seed(0)  # noqa: NPY002
        np.seterr(all="raise")
        np.set_printoptions(precision=1)
        sys.setrecursionlimit(5000)
        warnings.warn("loud", stacklevel=1)
        sys.stdout = None

    state = np.random.get_state()[1].tolist()  # noqa: NPY002
    errors, options = np.geterr(), np.get_printoptions()
    limit, out, stdin = sys.getrecursionlimit(), sys.stdout, sys.stdin
    assert run.run(rude, ()).error is None
    assert np.random.get_state()[1].tolist() == state  # noqa: NPY002
    assert np.geterr() == errors
    assert np.get_printoptions() == options
    assert sys.getrecursionlimit() == limit
    assert sys.stdout is out
    assert sys.stdin is stdin


def test_what_was_replaced_in_numpy_and_python_is_put_back():
    def rude():
        np.exp, np.linalg.norm = None, max
        del np.isclose, builtins.sum
        random.seed(0)
        return 1

    exp, norm, isclose, total = np.exp, np.linalg.norm, np.isclose, sum
    dice = random.getstate()
    assert run.run(rude, ()).value == 1
    assert (np.exp, np.linalg.norm, np.isclose, sum) == (exp, norm, isclose, total)
    assert random.getstate() == dice


def test_the_arguments_of_a_case_are_never_touched():
    array = np.arange(4.0)
    ran = run.run(lambda x: x.fill(0), (array,))
    assert ran.changed == (0,)
    assert array.tolist() == [0, 1, 2, 3]


def test_a_nan_in_the_input_is_no_change():
    assert run.run(lambda x: x, (np.array([np.nan]),)).changed == ()


def test_exit_in_a_notebook_leaves_the_kernel_alone(monkeypatch):
    """There exit() raises nothing: it asks the shell, which then ends the kernel."""

    class Shell:
        ended = False

        def ask_exit(self):
            self.ended = True

    shell = Shell()
    ipython = types.SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    ran = run.run(lambda: shell.ask_exit(), ())
    assert isinstance(ran.error, SystemExit)
    assert not shell.ended
    shell.ask_exit()
    assert shell.ended  # put back
