"""A gate for each head: what it multiplies, what it cannot see, what it refuses."""

import pytest
import torch
from torch import nn
from torch_tools import close, normal, one_thread  # noqa: F401

from attnlib.nn import MultiHeadAttention
from attnlib.nn.gates import GatedAttention, HeadGate
from attnlib.shapes import ShapeError


def drawn(d_model=6, n_heads=3):
    gate = HeadGate(d_model, n_heads, dtype=torch.float64)
    with torch.no_grad():
        gate.W_g.weight.copy_(normal(n_heads, d_model, seed=3))
        gate.W_g.bias.copy_(normal(n_heads, seed=4))
    return gate


def gated(**more):
    generator = torch.Generator().manual_seed(0)
    attention = MultiHeadAttention(
        6, 3, d_v=5, dtype=torch.float64, generator=generator, **more
    )
    return GatedAttention(attention, drawn())


def test_it_is_one_number_a_token_and_head():
    gate, x, mixed = drawn(), normal(2, 4, 6), normal(2, 3, 4, 5, seed=1)
    wanted = torch.empty_like(mixed)
    for b in range(2):
        for h in range(3):
            for t in range(4):
                score = gate.W_g.weight[h] @ x[b, t] + gate.W_g.bias[h]
                wanted[b, h, t] = mixed[b, h, t] / (1 + torch.exp(-score))
    close(gate(x, mixed), wanted.detach())
    assert gate.gates(x).shape == (2, 4, 3)


@pytest.mark.parametrize("start", [0.1, 0.5, 0.9])
def test_all_gates_begin_at_start_whatever_the_token(start):
    found = HeadGate(6, 3, start=start, dtype=torch.float64).gates(normal(2, 4, 6))
    close(found, torch.full((2, 4, 3), start, dtype=torch.float64))


def test_gates_that_are_open_leave_the_attention_as_it_is():
    layer, x = gated(), normal(2, 4, 6)
    with torch.no_grad():
        layer.gate.W_g.weight.zero_()
        layer.gate.W_g.bias.fill_(60.0)
    close(layer(x, causal=True), layer.attention(x, causal=True))


def test_the_future_stays_hidden():
    layer, x = gated(), normal(2, 5, 6)
    other = x.clone()
    other[:, 3:] += 1
    before, after = layer(x, causal=True), layer(other, causal=True)
    close(after[:, :3], before[:, :3])
    assert (after[:, 3:] - before[:, 3:]).abs().min() > 0


def test_fillers_do_not_count():
    layer, x = gated(), normal(2, 4, 6)
    padded = torch.cat([x, 7 * normal(2, 3, 6, seed=8)], dim=1)
    mask = torch.arange(7) < 4
    close(layer(padded, mask=mask)[:, :4], layer(x))


def test_it_takes_what_the_attention_takes():
    layer = gated()
    x, memory = normal(2, 4, 6), normal(2, 5, 6, seed=9)
    assert layer(x, memory, mask=torch.ones(4, 5, dtype=bool)).shape == (2, 4, 6)


def test_everything_learns_and_W_g_is_not_stuck_at_its_zeros():
    attention = MultiHeadAttention(6, 3, dtype=torch.float64)
    layer = GatedAttention(attention, HeadGate(6, 3, dtype=torch.float64))
    layer(normal(2, 4, 6)).pow(2).mean().backward()
    for name, parameter in layer.named_parameters():
        if name != "attention.W_k.bias":  # adds the same to all scores of a row
            assert parameter.grad.abs().max() > 0, name


class Summed(nn.Module):
    def forward(self, x, mixed):
        return mixed.sum(1, keepdim=True)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: HeadGate(6, 0), ShapeError, "n_heads"),
        (lambda: HeadGate(0, 3), ShapeError, "d_model"),
        (lambda: HeadGate(6, 3, start=1.0), ValueError, "between 0 and 1"),
        (
            lambda: HeadGate(6, 3)(torch.ones(4, 6), torch.ones(2, 4, 5)),
            ShapeError,
            "n_heads",
        ),
        (
            lambda: HeadGate(6, 3)(torch.ones(4, 6), torch.ones(3, 5, 2)),
            ShapeError,
            "n_q",
        ),
        (
            lambda: HeadGate(6, 3)(torch.ones(4, 7), torch.ones(3, 4, 2)),
            ShapeError,
            "d_model",
        ),
        (
            lambda: GatedAttention(nn.Linear(2, 2), HeadGate(6, 3)),
            TypeError,
            "takes a MultiHeadAttention, but got a Linear",
        ),
        (
            lambda: GatedAttention(gated().attention, Summed())(normal(2, 4, 6)),
            ShapeError,
            r"the gate was given mixed with shape \(2, 3, 4, 5\) and returned",
        ),
    ],
)
def test_what_does_not_fit_is_said(call, error, words):
    with pytest.raises(error, match=words):
        call()
