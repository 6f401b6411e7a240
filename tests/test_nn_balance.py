"""Loudness of heads: NumPy's numbers, padding left out, gradients, no scale."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_tools import close, normal, one_thread  # noqa: F401

from attnlib import head_diagnostics
from attnlib.nn import MultiHeadAttention
from attnlib.nn.balance import head_loudness, imbalance, written_loudness
from attnlib.shapes import ShapeError

steady = settings(derandomize=True, deadline=None, max_examples=30)
ROWS = torch.tensor([[True, True, False, True], [False, True, False, False]])


def test_loudness_is_numpys_norm_over_the_root_of_how_many_numbers():
    mixed = normal(3, 4, 5)
    norms = torch.from_numpy(head_diagnostics.head_norms(mixed.numpy()))
    close(head_loudness(mixed), norms / 20**0.5)


def test_imbalance_is_numpys():
    mixed = normal(4, 6, 5) * torch.tensor([1.0, 3.0, 0.5, 2.0])[:, None, None]
    close(
        imbalance(head_loudness(mixed)),
        torch.from_numpy(head_diagnostics.head_imbalance(mixed.numpy())),
    )


def test_rows_that_do_not_count_do_not_count():
    mixed = normal(2, 3, 4, 5)
    kept = torch.cat([mixed[0, :, ROWS[0]], mixed[1, :, ROWS[1]]], dim=1)
    close(head_loudness(mixed, ROWS), head_loudness(kept))
    loud = mixed.clone()
    loud.transpose(1, 2)[~ROWS] = 1e6
    close(head_loudness(loud, ROWS), head_loudness(mixed, ROWS))


def test_no_row_at_all_is_silence():
    assert head_loudness(normal(2, 3, 4, 5), torch.zeros(2, 4, dtype=bool)).eq(0).all()


@steady
@given(st.floats(1e-3, 1e3), st.integers(1, 5), st.integers(2, 5))
def test_neither_a_factor_nor_more_texts_change_the_imbalance(factor, times, n_heads):
    mixed = normal(2, n_heads, 3, 4, seed=n_heads)
    once = imbalance(head_loudness(mixed))
    more = imbalance(head_loudness((factor * mixed).repeat(times, 1, 1, 1)))
    close(more, once, atol=1e-9)


@pytest.mark.parametrize("n_heads", [1, 2, 5])
def test_one_loud_head_among_silent_ones_is_the_most(n_heads):
    loudness = torch.zeros(n_heads, dtype=torch.float64)
    loudness[-1] = 3.0
    assert imbalance(loudness).item() == pytest.approx(n_heads - 1)
    assert imbalance(torch.full((n_heads,), 2.0)).item() == 0


def test_all_silent_is_balanced_and_has_gradients():
    mixed = torch.zeros(2, 3, 4, 5, requires_grad=True)
    found = imbalance(head_loudness(mixed))
    found.backward()
    assert found.item() == 0
    assert mixed.grad.eq(0).all()


def test_a_silent_head_does_not_spoil_the_gradients_of_others():
    mixed = normal(2, 3, 4, 5)
    mixed[:, 1] = 0
    mixed.requires_grad_()
    imbalance(head_loudness(mixed, ROWS)).backward()
    assert mixed.grad.isfinite().all()
    assert mixed.grad[:, 0].abs().max() > 0


def test_gradients_are_those_of_differences():
    mixed = normal(2, 3, 4, 2, grad=True)
    assert torch.autograd.gradcheck(
        lambda m: imbalance(head_loudness(m, ROWS)), (mixed,)
    )


def test_what_heads_write_adds_up_to_out():
    attention = MultiHeadAttention(6, n_heads=3, d_v=5, dtype=torch.float64)
    stages = attention(normal(2, 4, 6), return_stages=True)
    parts = [
        stages.mixed[:, h] @ attention.W_o.weight[:, 5 * h : 5 * h + 5].T
        for h in range(3)
    ]
    close(sum(parts) + attention.W_o.bias, stages.out)
    wanted = torch.stack([(part**2).mean().sqrt() for part in parts])
    close(written_loudness(attention, stages.mixed), wanted)


def test_a_quieter_head_with_a_louder_part_of_W_o_writes_the_same():
    attention = MultiHeadAttention(6, n_heads=3, dtype=torch.float64)
    x = normal(2, 4, 6)
    before = attention(x, return_stages=True).mixed
    written = written_loudness(attention, before)
    with torch.no_grad():
        attention.W_v.weight[2:4] /= 10
        attention.W_v.bias[2:4] /= 10
        attention.W_o.weight[:, 2:4] *= 10
    after = attention(x, return_stages=True).mixed
    close(written_loudness(attention, after), written)
    close(head_loudness(after)[1] * 10, head_loudness(before)[1])


def test_float16_does_not_overflow_in_its_squares():
    loud = torch.full((2, 3, 4), 300.0, dtype=torch.float16)
    found = head_loudness(loud)
    assert found.dtype == torch.float16
    assert found.tolist() == [300.0, 300.0]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: head_loudness(torch.ones(3, 4)), ShapeError, "n_heads"),
        (lambda: head_loudness(torch.ones(3, 0, 4)), ShapeError, "n_q"),
        (lambda: head_loudness(torch.ones(2, 3, 4).int()), TypeError, "floating"),
        (
            lambda: head_loudness(torch.ones(2, 3, 4), torch.ones(4)),
            TypeError,
            "rows must be boolean",
        ),
        (
            lambda: head_loudness(torch.ones(2, 3, 4, 5), torch.ones(3, 4) > 0),
            ShapeError,
            r"rows with shape \(3, 4\) do not broadcast to \(2, 4\)",
        ),
        (lambda: imbalance(torch.ones(2, 3)), ShapeError, r"one number a head.*\(2, 3"),
        (lambda: imbalance(torch.ones(0)), ShapeError, "n_heads"),
        (lambda: imbalance(np.ones(3)), TypeError, "torch.Tensor"),
        (
            lambda: written_loudness(MultiHeadAttention(6, 3), torch.ones(2, 4, 2)),
            ShapeError,
            "n_heads",
        ),
    ],
)
def test_what_does_not_fit_is_said(call, error, words):
    with pytest.raises(error, match=words):
        call()
