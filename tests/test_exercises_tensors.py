"""Exercises that are answered in PyTorch: the same judge, with tensors for arrays."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import threading
import time
import types

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from attnlib.clinic import limit, probes, run, tensors
from attnlib.clinic.families.softmax import SOFTMAX
from attnlib.exercises.exercise import Exercise, Part
from attnlib.exercises.judging import judge_function
from attnlib.exercises.laws import rows_sum_to_one


def softmax(x, axis=-1):
    """Turn scores into weights."""
    return tensors.torch.nan_to_num(tensors.torch.softmax(x, axis))


EXERCISE = Exercise(
    "softmax",
    5,
    3,
    softmax,
    probes.scores_cases,
    (Part("weights", "... n"),),
    SOFTMAX,
    ("", "", ""),
    "It works.",
    (rows_sum_to_one((np.array([[1.0, 2.0, 4.0]]),)),),
    tensors=True,
)


def judge(answer):
    return judge_function(EXERCISE, answer)


def by_hand(x, axis=-1):
    top = torch.amax(x, axis, keepdim=True)
    top = torch.where(torch.isinf(top), 0.0, top)
    e = torch.exp(x - top)
    return torch.nan_to_num(e / e.sum(axis, keepdim=True))


@pytest.mark.parametrize(
    "right",
    [
        softmax,
        by_hand,
        lambda x, axis=-1: torch.nan_to_num(F.softmax(x, dim=axis)),
        lambda x, axis=-1: by_hand(x.clone().requires_grad_(), axis),  # detached by us
        lambda x, axis=-1: by_hand(x.float(), axis),
        lambda x, axis=-1: by_hand(x, axis).numpy(),
    ],
)
def test_right_answers_pass_whatever_they_return(right):
    verdict = judge(right)
    assert verdict.passed, verdict.text


def test_a_mistake_in_torch_has_the_name_it_has_in_numpy():
    verdict = judge(lambda x, axis=-1: torch.nan_to_num(torch.softmax(x, 0)))
    assert [m.key for m in verdict.mistakes] == ["axis_zero"]


def test_a_change_in_place_is_seen():
    def answer(x, axis=-1):
        weights = by_hand(x, axis)
        x.zero_()
        return weights

    verdict = judge(answer)
    assert verdict.status == "mutates"
    assert "its input x" in verdict.text


def test_bfloat16_is_read_as_numbers():
    verdict = judge(lambda x, axis=-1: by_hand(x, axis).bfloat16())
    assert verdict.status in ("differs", "law", "mistake")
    assert "yours" in verdict.text or "row" in verdict.text


def test_what_an_answer_sets_for_all_of_torch_is_put_back():
    right = F.softmax
    before = torch.random.get_rng_state()

    def answer(x, axis=-1):
        torch.manual_seed(3)
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)
        F.softmax = None
        torch.exp = torch.sin
        return torch.nan_to_num(torch.softmax(x, axis))

    assert judge(answer).passed
    assert torch.get_default_dtype() == torch.float32
    assert torch.is_grad_enabled()
    assert F.softmax is right
    assert torch.exp is not torch.sin
    assert torch.equal(torch.random.get_rng_state(), before)


# --- answers that do or return something else ---------------------------------------
class Own(torch.Tensor):
    """A learner's class made from Tensor."""


class Lying(torch.Tensor):
    """Says that it is equal to everything, and small."""

    def __eq__(self, other):
        return True

    __hash__ = None

    def numel(self):
        return 1


class Throwing(torch.Tensor):
    def detach(self):
        raise RuntimeError("no")


class Layer(torch.nn.Module):
    def forward(self, x, axis=-1):
        return softmax(x, axis)


@pytest.mark.parametrize(
    "right",
    [
        lambda x, axis=-1: softmax(x, axis).as_subclass(Own),
        lambda x, axis=-1: softmax(x, axis).clone().requires_grad_().as_subclass(Own),
        lambda x, axis=-1: torch.nn.Parameter(softmax(x, axis)),
        lambda x, axis=-1: list(softmax(x.clone().requires_grad_(), axis)),
        lambda x, axis=-1: softmax(x, axis).to_sparse(),
        Layer(),  # a module is called as a function is
    ],
)
def test_what_holds_the_right_numbers_passes(right):
    verdict = judge(right)
    assert verdict.passed, verdict.text


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        (lambda x, axis=-1: torch.nn.Softmax(axis), "type", "forget to call it"),
        (lambda x, axis=-1: torch.softmax, "type", "forget to call it"),
        (lambda x, axis=-1: softmax(x, axis) * 1j, "type", "complex numbers"),
        (lambda x, axis=-1: softmax(x, axis) > 0.1, "type", "True and False"),
        (lambda x, axis=-1: softmax(x, axis).half(), "differs", "float16"),
        (lambda x, axis=-1: softmax(x, axis).int(), "differs", "cut off"),
        (lambda x, axis=-1: torch.zeros(2, 3, 10**6), "type", "far too large"),
        (lambda x, axis=-1: torch.zeros(1).expand(10**12), "type", "far too large"),
        (
            lambda x, axis=-1: torch.zeros(1).expand(10**12).as_subclass(Lying),
            "type",
            "far too large",
        ),
        (
            lambda x, axis=-1: softmax(x, axis).as_subclass(Throwing),
            "type",
            "you returned a Throwing",
        ),
        (
            lambda x, axis=-1: torch.zeros_like(x).as_subclass(Lying),
            "differs",
            "nothing but zeros",
        ),
        (lambda x, axis=-1: x.to("meta"), "type", "you returned a Tensor"),
        (lambda x, axis=-1: softmax(x, axis).shape, "shape", ""),
        (lambda x, axis=-1: torch.max(x, axis), "type", "a tuple of 2"),
        (lambda x, axis=-1: softmax(x, axis).tolist().sort(), "type", "None"),
        (lambda x, axis=-1: torch.zeros(10**15), "raised", ""),
        (lambda x, axis=-1: x.cuda(10**4), "raised", ""),
        (Layer, "type", "The answer is a class"),
        (torch.ones(3), "type", "The answer is a Tensor"),
    ],
)
def test_something_else_is_refused_with_words(answer, status, words):
    verdict = judge(answer)
    assert verdict.status == status, verdict
    assert words in verdict.text, verdict.text
    assert len(verdict.text) < 900


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_an_answer_from_the_gpu_is_read():
    assert judge(lambda x, axis=-1: softmax(x.cuda(), axis)).passed


def looping(x, axis=-1):
    while True:
        x = torch.softmax(x, axis)


def looping_backward(x, axis=-1):
    class Forever(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            while True:
                grad = grad * 1

    Forever.apply(x.clone().requires_grad_()).sum().backward()


@pytest.mark.parametrize("answer", [looping, looping_backward])
def test_a_loop_for_ever_in_torch_is_stopped(answer):
    verdict = judge_function(EXERCISE, answer, limit=0.2)
    assert verdict.status == "timeout"


def test_more_that_an_answer_sets_for_all_of_torch_is_put_back():
    def answer(x, axis=-1):
        torch.set_printoptions(precision=1, sci_mode=True)
        torch.set_default_device("meta")
        torch.nn.Linear = None
        del torch.linalg.norm
        return by_hand(x.clone(), axis)

    linear, norm, text = torch.nn.Linear, torch.linalg.norm, str(torch.tensor(0.125))
    judge(answer)
    assert torch.zeros(1).device.type == "cpu"
    assert str(torch.tensor(0.125)) == text
    assert (torch.nn.Linear, torch.linalg.norm) == (linear, norm)


# --- imports take no time of the answer -----------------------------------------------
SLOW = """
import time
end = time.monotonic() + {seconds}
while time.monotonic() < end:
    pass
VALUE = 5
"""


@pytest.fixture
def slow_module(tmp_path, monkeypatch):
    """Makes modules whose import takes some seconds."""
    monkeypatch.syspath_prepend(tmp_path)

    def make(name, seconds):
        (tmp_path / f"{name}.py").write_text(SLOW.format(seconds=seconds))
        return name

    yield make
    for name in ("slow_one", "slow_two", "slow_three"):
        sys.modules.pop(name, None)


def test_a_slow_import_is_no_loop(slow_module):
    name = slow_module("slow_one", 0.6)

    def answer():
        return importlib.import_module(name).VALUE

    ran = run.run(answer, (), limit=0.2)
    assert ran.value == 5
    assert 0.2 < ran.waited < 30


def test_after_the_import_the_time_counts(slow_module):
    name = slow_module("slow_two", 0.6)

    def answer():
        importlib.import_module(name)
        while True:
            pass

    start = time.monotonic()
    assert run.run(answer, (), limit=0.2).timed_out
    assert time.monotonic() - start < 20


def test_a_slow_import_is_no_loop_outside_the_main_thread(slow_module):
    name = slow_module("slow_three", 0.6)
    found = []

    def answer():
        value = importlib.import_module(name).VALUE
        for _ in range(10):
            time.sleep(0.005)
        return value

    thread = threading.Thread(target=lambda: found.append(run.run(answer, (), 0.2)))
    thread.start()
    thread.join(timeout=30)
    assert found[0].value == 5


def test_an_import_that_never_ends_is_stopped(tmp_path, monkeypatch):
    # Asked from within an import, and not by an alarm: that would leave a mess.
    said = []
    watcher = types.ModuleType("watcher")
    watcher.look = lambda: said.append(patience.wait(sys._getframe()))
    watcher.shrink = lambda: monkeypatch.setattr(limit, "LONGEST_IMPORT", 0.0)
    monkeypatch.setitem(sys.modules, "watcher", watcher)
    monkeypatch.syspath_prepend(tmp_path)
    looks = "import watcher as w\nw.look()\nw.shrink()\nw.look()\nw.look()\n"
    (tmp_path / "looked_at.py").write_text(looks)

    def inside():
        importlib.import_module("looked_at")

    monkeypatch.setattr(time, "process_time", lambda: 0.0)
    patience = limit._Patience(1.5, inside.__code__, limit.Spent())
    inside()
    sys.modules.pop("looked_at")
    assert said == [limit.LOOK, 1.5, 0.0]
    assert patience.wait(sys._getframe()) is None  # our own code is passed over


@pytest.mark.parametrize(
    ("passed", "worked", "wait"),
    [
        (3.0, 2.99, limit.LOOK),  # it had the processor nearly all the time
        (3.0, 3.01, 0.0),
        (3.0, 0.5, 2.5),  # other programs had it most of the time
        (12.0, 2.0, 1.0),
        (15.5, 2.0, 0.0),  # in the end, it is too long all the same
        (3.0, 0.01, 0.0),  # it does not compute, it waits
    ],
)
def test_a_busy_machine_gives_a_call_more_time(monkeypatch, passed, worked, wait):
    now = {"clock": 100.0, "processor": 50.0}
    monkeypatch.setattr(time, "monotonic", lambda: now["clock"])
    monkeypatch.setattr(time, "process_time", lambda: now["processor"])

    def inside():
        return patience.wait(sys._getframe())

    patience = limit._Patience(3.0, inside.__code__, limit.Spent())
    now.update(clock=100.0 + passed, processor=50.0 + worked)
    assert inside() == pytest.approx(wait)


def test_the_other_calls_keep_their_time():
    clock = limit.Clock(1.0)
    clock.add(100.0)
    assert clock.next() == 1.0
    clock.add(-200.0)
    assert clock.next() == 0.05


def x_of_no_axis(x, axis=-1):
    return torch.softmax(x)


def other_dtype(x, axis=-1):
    return x @ torch.zeros(x.shape[-1], 2)


def of_numpy(x, axis=-1):
    return torch.softmax(np.ones(3), -1)


def as_view(x, axis=-1):
    return x.reshape(-1, 1).repeat(1, 2).T.view(-1)


def clash(x, axis=-1):
    other = torch.zeros(x.shape[-1] + 1, dtype=x.dtype)
    return x + other


def product(x, axis=-1):
    other = torch.zeros(x.shape[-1] + 1, 2, dtype=x.dtype)
    return x.reshape(-1, x.shape[-1]) @ other


def greatest(x, axis=-1):
    return x - x.max(axis)


def gradient(x, axis=-1):
    x.sum().backward()
    return x.grad


def to_type(x, axis=-1):
    return x.astype(float)


def exclusive(x, axis=-1):
    q = x.reshape(1, -1, 1)
    mask = torch.ones(q.shape[1], q.shape[1], dtype=torch.bool)
    return F.scaled_dot_product_attention(q, q, q, attn_mask=mask, is_causal=True)


def unknown(x, axis=-1):
    return nn.functional.softmax(x, axis)  # noqa: F821 - the point of it


def both_kinds(x, axis=-1):
    return torch.softmax(x & (x > 0), axis)


def unfinished(x, axis=-1):
    raise NotImplementedError


def test_what_torch_cannot_do_is_no_sign_of_an_empty_answer():
    assert judge(both_kinds).status == "raised"
    assert judge(unfinished).status == "not started"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (both_kinds, "another kind of numbers"),
        (x_of_no_axis, "dim=-1 is the last one"),
        (other_dtype, "dtype=q.dtype"),
        (of_numpy, "a NumPy array"),
        (as_view, "use `.reshape`"),
        (clash, "Here they are `x`,"),
        (product, "as many columns in A"),
        (greatest, "torch.amax"),
        (gradient, "requires_grad_()"),
        (to_type, "x.to(torch.float64)"),
        (exclusive, "Put both rules into one"),
        (unknown, "setup cell"),
    ],
)
def test_an_error_of_torch_is_explained(answer, words):
    verdict = judge(answer)
    assert verdict.status in ("raised", "mistake")
    assert words in verdict.text, verdict.text


def test_the_exercises_of_torch_lessons_load_no_torch_before_they_are_checked():
    code = (
        "import sys; import attnlib.exercises as e;"
        "from attnlib.clinic import tensors;"
        "e.names(); e.check('softmax', lambda x, axis=-1: x);"
        "assert tensors.loaded() == ();"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


FOLLOWED = """
import sys, threading
from attnlib.clinic import run

def loop():
    while True:
        pass

def call():
    for _ in range(3):
        assert run.run(loop, (), limit=0.05).timed_out

thread = threading.Thread(target=call)
thread.start()
thread.join()
sys.settrace(lambda *event: None)
call()
sys.settrace(None)
"""


def test_lines_can_be_followed_after_a_call_outside_the_main_thread():
    # In Python 3.11, what was left there made the next call turn in circles.
    subprocess.run([sys.executable, "-c", FOLLOWED], check=True, timeout=120)


# An alarm that is under way when the time limit is taken back, and arrives later.
LATE = """
import signal, time
from attnlib.clinic.limit import time_limit

with time_limit(0.05, compile("", "", "exec")):
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    time.sleep(0.2)
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
"""


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="has no alarm")
def test_an_alarm_that_comes_late_ends_nothing():
    # Where there is one thread, there is none that may take the alarm in between.
    alone = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", LATE], check=True, timeout=120, env=alone)


def test_who_watches_lines_and_memory_is_stopped():
    import tracemalloc

    def answer():
        tracemalloc.start()
        sys.settrace(lambda *event: None)
        while True:
            pass

    tracer = sys.gettrace()
    assert run.run(answer, (), limit=0.2).timed_out
    assert sys.gettrace() is tracer
    assert not tracemalloc.is_tracing()
