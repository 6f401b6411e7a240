"""Texts with one token that counts, and the small models of lesson 13."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy
from torch.nn.functional import scaled_dot_product_attention as sdpa
from torch_tools import in_float64, one_thread  # noqa: F401 - fixtures for every test

from attnlib import attention, lowrank, masks
from attnlib.nn import needle, recall, ways
from attnlib.nn.train import train
from attnlib.shapes import ShapeError


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_there_is_one_needle_and_it_is_where_it_is_said():
    texts = needle.draw_needles(200, 9, generator())
    assert texts.ids.shape == (200, 9)
    assert ((texts.ids < needle.N_NEEDLES).sum(1) == 1).all()
    assert (texts.ids[:, -1] == needle.ASKS).all()
    found = texts.ids.gather(1, 8 - texts.back[:, None])[:, 0]
    assert (found == texts.needles).all()
    assert set(texts.back.tolist()) == set(range(1, 9))
    assert set(texts.needles.tolist()) == set(range(needle.N_NEEDLES))


def test_texts_too_short_are_refused():
    with pytest.raises(ShapeError, match="n=1 tokens hold no needle"):
        needle.draw_needles(3, 1, generator())


@pytest.mark.parametrize(("left", "n_layers", "reach"), [(3, 2, 6), (4, 1, 4)])
def test_what_lies_beyond_the_reach_changes_nothing(left, n_layers, reach):
    look = torch.from_numpy(masks.window(12, left=left))
    model = needle.NeedleModel(
        lambda q, k, v: sdpa(q, k, v, look),
        12,
        n_layers=n_layers,
        generator=generator(),
    )
    ids = needle.draw_needles(1, 12, generator()).ids
    with torch.no_grad():
        before = model(ids)
        for back in range(1, 12):
            other = ids.clone()
            other[0, 11 - back] = (other[0, 11 - back] + 1) % needle.ASKS
            moved = float((model(other) - before).abs().max())
            assert (moved > 1e-9) == (back <= reach), back


def test_the_model_is_layers_of_what_it_is_given():
    """Against the same written out for one layer."""
    model = needle.NeedleModel(sdpa, 5, d_model=6, n_layers=1, generator=generator())
    ids = needle.draw_needles(3, 5, generator()).ids
    x = model.embedding[ids] + model.positions
    norm = torch.nn.LayerNorm(6, elementwise_affine=False)
    q, k, v = (norm(x) @ model.inward[0, i] for i in range(3))
    x = x + ((q @ k.mT / 6**0.5).softmax(-1) @ v)
    torch.testing.assert_close(model(ids), norm(x[:, -1]) @ model.unembed)
    assert model.loss(4, generator()).ndim == 0


def test_one_head_is_what_it_is_given():
    head = ways.OneHead(sdpa, 6, 3, generator=generator())
    x, memory = torch.randn(2, 1, 6), torch.randn(2, 5, 6)
    scores = (x @ head.W_q) @ (memory @ head.W_k).mT / 3**0.5
    torch.testing.assert_close(
        head(x, memory), scores.softmax(-1) @ (memory @ head.W_v)
    )


def test_the_ways_are_those_in_numpy():
    q, k = torch.randn(2, 5, 3), torch.randn(2, 8, 3)
    v = torch.randn(2, 8, 4)
    arrays = [x.numpy() for x in (q, k, v)]
    low = ways.LowRank(3, 8, generator=generator())
    E = low.E.detach().numpy()
    look = masks.causal(5, 8)
    pairs = (
        (ways.pooled, lowrank.pooled(*arrays, width=4)),
        (ways.linear, lowrank.linear(*arrays)),
        (low, lowrank.low_rank(*arrays, E)),
        (ways.masked(look), attention.scaled_dot_product(*arrays, look)),
    )
    for attend, right in pairs:
        np.testing.assert_allclose(
            attend(q, k, v).detach().numpy(), right.out, atol=1e-12
        )


def test_a_mask_of_numbers_is_refused():
    with pytest.raises(TypeError, match="mask must be boolean, but its dtype is int"):
        ways.masked(np.ones((3, 3), dtype=int))


def share_right(model: torch.nn.Module, loss: Callable, nudge: float) -> str:
    """Trained as in the lesson, from tables that differ by a little."""
    other = generator(7)
    with torch.no_grad():
        for table in model.parameters():
            table *= 1 + nudge * torch.randn(table.shape, generator=other)
    drawn = generator(1)
    train(model, lambda step: loss(model, drawn), 60, lr=1e-2)
    with torch.no_grad():
        if isinstance(model, needle.NeedleModel):
            texts = needle.draw_needles(2000, 24, generator(2))
            right = model(texts.ids).argmax(-1) == texts.needles
        else:
            texts = recall.draw_pairs(2000, generator(2), n_symbols=32, n_pairs=12)
            right = model(texts).argmax(-1) == texts.answers
    return f"{right.double().mean():.2f}"


def loss_of_pairs(model: torch.nn.Module, drawn: torch.Generator) -> torch.Tensor:
    texts = recall.draw_pairs(32, drawn, n_symbols=32, n_pairs=12)
    return cross_entropy(model(texts), texts.answers)


def test_a_little_noise_at_the_start_changes_no_printed_digit():
    """So that other machines, which round otherwise, print what the lesson prints."""
    look = masks.window(24, left=4)

    def told(nudge: float) -> tuple[str, str]:
        model = needle.NeedleModel(ways.masked(look), 24, generator=generator())
        head = ways.OneHead(ways.linear, 32, 6, generator=generator())
        looks_up = recall.RecallModel(head, 32, 32, generator=generator())
        return (
            share_right(model, lambda m, drawn: m.loss(32, drawn), nudge),
            share_right(looks_up, loss_of_pairs, nudge),
        )

    assert told(0.0) == told(1e-9)
