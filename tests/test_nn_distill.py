"""Losses on attention: known values, masks, rows left out, gradients."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F
from torch_tools import close, normal, one_thread  # noqa: F401

from attnlib.nn.distill import attention_divergence, score_distance
from attnlib.shapes import ShapeError

steady = settings(derandomize=True, deadline=None, max_examples=30)
INF = torch.inf
LOOK = torch.tensor(
    [
        [True, True, False, True],
        [True, False, False, False],
        [False, False, False, False],
    ]
)


def scores(*shape, seed=0, look=None):
    drawn = 2 * normal(*shape, seed=seed)
    return drawn if look is None else drawn.masked_fill(~look, -INF)


def weights(of):
    return torch.softmax(of, -1).nan_to_num(0.0)


def by_hand(student, teacher, counted):
    """Loops over what may be seen, in plain Python."""
    found = []
    flat_s, flat_p = student.flatten(0, -2).tolist(), teacher.flatten(0, -2).tolist()
    for s, p, yes in zip(flat_s, flat_p, counted.flatten().tolist(), strict=True):
        if not yes or all(z == -math.inf for z in s) or not any(p):
            continue
        total = math.log(sum(math.exp(z) for z in s))
        pairs = zip(p, s, strict=True)
        found.append(sum(a * (math.log(a) - z + total) for a, z in pairs if a))
    return sum(found) / len(found)


def test_it_is_the_mean_over_rows_written_as_loops():
    student, teacher = scores(2, 3, 3, 4, look=LOOK), scores(2, 3, 3, 4, seed=1)
    p = weights(teacher.masked_fill(~LOOK, -INF))
    rows = torch.tensor([[True, True, True], [True, False, True]])[:, None]
    wanted = by_hand(student, p, rows.expand(2, 3, 3))
    assert attention_divergence(student, p, rows).item() == pytest.approx(wanted)


def test_without_masks_it_is_kl_div_of_torch_over_all_rows():
    student, p = scores(2, 3, 4, 5), weights(scores(2, 3, 4, 5, seed=1))
    theirs = F.kl_div(torch.log_softmax(student, -1), p, reduction="sum") / 24
    close(attention_divergence(student, p), theirs)


@steady
@given(st.integers(1, 9), st.integers(1, 4), st.integers(1, 4))
def test_one_hot_against_even_is_ln_n_whatever_the_batch(n, n_heads, batch):
    p = torch.eye(n, dtype=torch.float64).expand(batch, n_heads, n, n)
    found = attention_divergence(torch.zeros_like(p), p)
    assert found.item() == pytest.approx(math.log(n), abs=1e-12)


def test_who_looks_where_the_teacher_looks_has_nothing_to_learn():
    s = scores(2, 3, 3, 4, look=LOOK).requires_grad_()
    found = attention_divergence(s + 5.0, weights(s.detach()))
    assert abs(found.item()) < 1e-14
    found.backward()
    close(s.grad, torch.zeros_like(s))


def test_a_row_in_which_the_teacher_looks_at_nothing_is_no_row():
    s, p = scores(3, 4), weights(scores(3, 4, seed=1))
    fuller = torch.cat([p, torch.zeros(1, 4, dtype=p.dtype)])
    longer = torch.cat([s, scores(1, 4, seed=2)])
    close(attention_divergence(longer, fuller), attention_divergence(s, p))


def test_it_is_not_symmetric():
    a, b = scores(3, 4), scores(3, 4, seed=1)
    one, other = (
        attention_divergence(a, weights(b)),
        attention_divergence(b, weights(a)),
    )
    assert abs(one.item() - other.item()) > 0.01


@pytest.mark.parametrize("loss", [attention_divergence, score_distance])
def test_fillers_change_nothing(loss):
    s, t = scores(2, 3, 3, 4), scores(2, 3, 3, 4, seed=1)
    look = torch.tensor([True] * 4 + [False] * 2)

    def padded(of, seed):
        wide = torch.cat([of, 9 * normal(2, 3, 3, 2, seed=seed)], dim=-1)
        tall = torch.cat([wide, 9 * normal(2, 3, 1, 6, seed=seed + 1)], dim=-2)
        return tall.masked_fill(~look, -INF)

    rows = torch.tensor([True, True, True, False])
    as_teacher = weights if loss is attention_divergence else (lambda of: of)
    alone = loss(s, as_teacher(t))
    close(loss(padded(s, 5), as_teacher(padded(t, 7)), rows), alone)


@pytest.mark.parametrize("loss", [attention_divergence, score_distance])
def test_a_text_twice_is_no_larger_a_loss(loss):
    s, t = scores(2, 3, 3, 4), scores(2, 3, 3, 4, seed=1)
    t = weights(t) if loss is attention_divergence else t
    close(loss(torch.cat([s, s]), torch.cat([t, t])), loss(s, t))


@pytest.mark.parametrize("loss", [attention_divergence, score_distance])
def test_gradients_are_those_of_differences_and_finite_at_masks(loss):
    t = scores(2, 3, 3, 4, seed=1, look=LOOK)
    t = weights(t) if loss is attention_divergence else t
    raw = scores(2, 3, 3, 4).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda z: loss(z.masked_fill(~LOOK, -INF), t), (raw,)
    )
    loss(raw.masked_fill(~LOOK, -INF), t).backward()
    assert raw.grad.isfinite().all()
    assert raw.grad[..., ~LOOK].eq(0).all()


@pytest.mark.parametrize("loss", [attention_divergence, score_distance])
def test_nothing_to_compare_is_0_with_gradients(loss):
    s = torch.full((2, 3), -INF, requires_grad=True)
    t = torch.zeros(2, 3) if loss is attention_divergence else torch.full((2, 3), -INF)
    found = loss(s, t)
    found.backward()
    assert found.item() == 0
    assert s.grad.eq(0).all()


def test_no_gradient_goes_into_the_teacher():
    p = weights(scores(3, 4)).requires_grad_()
    s = scores(3, 4, seed=1).requires_grad_()
    (attention_divergence(s, p) + score_distance(s, p)).backward()
    assert p.grad is None
    assert s.grad.abs().max() > 0


def test_the_distance_asks_for_a_constant_that_softmax_does_not_see():
    s = scores(2, 3, 4, look=LOOK)
    assert score_distance(s + 3, s).item() == pytest.approx(9.0)
    assert abs(attention_divergence(s + 3, weights(s)).item()) < 1e-14


def test_the_distance_is_the_mean_over_what_may_be_seen():
    s, t = scores(3, 4, look=LOOK), scores(3, 4, seed=1, look=LOOK)
    wanted = F.mse_loss(s[LOOK], t[LOOK])
    close(score_distance(s, t), wanted)
    first = torch.tensor([True, False, False])
    close(score_distance(s, t, first), F.mse_loss(s[0][LOOK[0]], t[0][LOOK[0]]))


def test_float16_is_measured_in_float32():
    s = torch.zeros(3, 4, dtype=torch.float16)
    found = attention_divergence(s, torch.eye(4, dtype=torch.float16)[:3])
    assert found.dtype == torch.float32
    assert found.item() == pytest.approx(math.log(4), abs=1e-6)


P = torch.softmax(torch.ones(3, 4), -1)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: attention_divergence(torch.ones(3, 4).masked_fill(~LOOK, -INF), P),
            ValueError,
            "the same mask",
        ),
        (
            lambda: attention_divergence(P, torch.ones(3, 4).masked_fill(~LOOK, -INF)),
            ValueError,
            "weights, from 0 to 1.*go to score_distance",
        ),
        (
            lambda: score_distance(torch.ones(3, 4).masked_fill(~LOOK, -INF), P),
            ValueError,
            "the same mask",
        ),
        (
            lambda: attention_divergence(torch.ones(2, 6, 3, 4), P.expand(2, 8, 3, 4)),
            ShapeError,
            "n_heads=6 of the student need as many of the teacher",
        ),
        (
            lambda: attention_divergence(torch.ones(3, 5), P),
            ShapeError,
            r"teacher_weights with shape \(3, 4\) does not broadcast",
        ),
        (lambda: score_distance(torch.ones(3, 4), P > 0), TypeError, "teacher_scores"),
        (
            lambda: attention_divergence(torch.ones(3, 4), P, torch.ones(3)),
            TypeError,
            "rows must be boolean",
        ),
        (
            lambda: attention_divergence(
                torch.ones(2, 6, 3, 4), P, torch.ones(2, 3, dtype=bool)
            ),
            ShapeError,
            "ends in n_heads, n_q",
        ),
    ],
)
def test_what_does_not_fit_is_said(call, error, words):
    with pytest.raises(error, match=words):
        call()
