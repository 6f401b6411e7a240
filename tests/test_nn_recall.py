"""The recall task: what is asked has its answer, and attention learns to find it."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_tools import one_thread  # noqa: F401 - a fixture for every test

from attnlib.nn import MultiHeadAttention
from attnlib.nn.recall import RecallModel, draw_pairs
from attnlib.nn.train import train
from attnlib.shapes import ShapeError


def new(seed: int = 0) -> RecallModel:
    generator = torch.Generator().manual_seed(seed)
    attention = MultiHeadAttention(
        24, 4, generator=generator, dtype=torch.float64
    ).double()
    return RecallModel(attention, 24, 8, generator=generator).double()


@settings(derandomize=True, deadline=None, max_examples=25)
@given(st.integers(0, 40), st.integers(1, 9), st.integers(0, 8))
def test_the_answer_stands_beside_the_key(n: int, n_pairs: int, more: int) -> None:
    generator = torch.Generator().manual_seed(n)
    n_symbols = n_pairs + more
    drawn = draw_pairs(n, generator, n_symbols=n_symbols, n_pairs=n_pairs)
    assert drawn.keys.shape == drawn.values.shape == (n, n_pairs)
    for keys, values, asked, answer in zip(
        drawn.keys.tolist(),
        drawn.values.tolist(),
        drawn.asked.tolist(),
        drawn.answers.tolist(),
        strict=True,
    ):
        assert len(set(keys)) == n_pairs
        assert max(keys + values) < n_symbols
        assert values[keys.index(asked)] == answer


def test_more_pairs_than_symbols_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"n_pairs=5 .* only n_symbols=4"):
        draw_pairs(1, torch.Generator(), n_symbols=4)


def test_it_is_learned_in_a_second_and_not_by_heart() -> None:
    model = new()
    draws = torch.Generator().manual_seed(0)
    before = model.accuracy(500, draws)
    train(model, lambda step: model.loss(64, draws), 120, lr=1e-2)
    assert before < 0.3
    assert model.accuracy(500, draws) > 0.9


def test_the_stages_are_those_of_the_answer() -> None:
    model, drawn = new(), draw_pairs(7, torch.Generator().manual_seed(1), n_symbols=8)
    stages = model.stages(drawn)
    assert stages.scores.shape == (7, 4, 1, 5)
    torch.testing.assert_close(stages.out[:, 0] @ model.unembed, model(drawn))


def test_attention_gets_tokens_of_variance_one() -> None:
    model, seen = new(), []
    model.attention.register_forward_hook(lambda m, inputs, out: seen.extend(inputs))
    model(draw_pairs(7, torch.Generator().manual_seed(1), n_symbols=8))
    assert [tuple(x.shape) for x in seen] == [(7, 1, 24), (7, 5, 24)]
    for x in seen:
        torch.testing.assert_close(
            x.var(-1, correction=0),
            torch.ones(x.shape[:-1]).double(),
            rtol=0,
            atol=1e-3,
        )
