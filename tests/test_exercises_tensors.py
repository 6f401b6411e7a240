"""Exercises that are answered in PyTorch: the same judge, with tensors for arrays."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from attnlib.clinic import probes
from attnlib.clinic.families.softmax import SOFTMAX
from attnlib.exercises import tensors
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
        "from attnlib.exercises import tensors;"
        "e.names(); e.check('softmax', lambda x, axis=-1: x);"
        "assert tensors.loaded() == ();"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
