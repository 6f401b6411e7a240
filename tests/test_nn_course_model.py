"""The shipped model: unharmed, as good as it says, and what its heads do."""

from __future__ import annotations

import hashlib
import re

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from attnlib.head_diagnostics import induction_score, offset_mass, sink_mass
from attnlib.nn import course_model
from attnlib.nn.text import plays

PERIODS = (20, 33, 47)


def test_the_weights_are_the_ones_that_were_written():
    packed = course_model.WEIGHTS.read_bytes()
    assert hashlib.sha256(packed).hexdigest() == course_model._card()["sha256"]
    assert 1e6 < len(packed) < 4e6
    model = course_model.load()
    assert not model.training
    assert {weight.dtype for weight in model.parameters()} == {torch.float32}
    assert course_model.load(torch.float64).norm.gain.dtype == torch.float64
    n_weights = sum(weight.numel() for weight in model.parameters())
    assert n_weights == course_model.about().n_weights


def test_damaged_weights_are_refused(tmp_path, monkeypatch):
    packed = bytearray(course_model.WEIGHTS.read_bytes())
    packed[5000] ^= 1
    damaged = tmp_path / "course_model.npz"
    damaged.write_bytes(packed)
    monkeypatch.setattr(course_model, "WEIGHTS", damaged)
    words = (
        r"course_model\.npz is damaged: its sha256 should be [0-9a-f]{64}, but it is "
        r"[0-9a-f]{64}; install attnlib anew, or run python tools/"
    )
    with pytest.raises(ValueError, match=words):
        course_model.load()


@pytest.mark.parametrize("name", ["WEIGHTS", "CARD"])
def test_a_missing_file_is_named(name, tmp_path, monkeypatch):
    monkeypatch.setattr(course_model, name, tmp_path / "gone")
    words = f"{tmp_path / 'gone'} is missing; install attnlib anew, or run python"
    with pytest.raises(FileNotFoundError, match=re.escape(words)):
        course_model.load()


def test_the_tokens_fit_the_model_and_the_plays():
    tokens, sizes = course_model.tokenizer(), course_model.load().sizes
    assert len(tokens.tokens) == len(set(tokens.tokens)) == sizes.n_tokens
    text = plays()[1][:5000]
    assert tokens.decode(tokens.encode(text)) == text
    cat = "The black cat chased the little mouse across the kitchen."
    assert tokens.pieces(tokens.encode(cat))[0] == "<start>"
    assert "".join(tokens.pieces(tokens.encode(cat))[1:]) == cat
    with pytest.raises(ValueError, match="the model has no token for '7'"):
        tokens.encode("7 cats")


@pytest.fixture(scope="module")
def model():
    return course_model.load()


@pytest.fixture(scope="module")
def unseen():
    ids = torch.tensor(course_model.tokenizer().encode(plays()[1], start=False))
    n = course_model.load().sizes.n_context - 1
    rows = ids[: len(ids) // n * n].reshape(-1, n)[::8]
    return torch.cat([torch.zeros(len(rows), 1, dtype=torch.long), rows], 1)


@torch.no_grad()
def test_its_loss_on_an_unseen_play_is_the_one_it_tells(model, unseen):
    about = course_model.about()
    logits = model(unseen[:, :-1])
    loss = cross_entropy(logits.flatten(0, 1), unseen[:, 1:].flatten())
    assert loss == pytest.approx(about.validation_loss, abs=0.1)
    assert about.validation_loss < about.bigram_loss - 0.3
    assert about.bigram_loss < about.unigram_loss < about.even
    assert about.train_loss < about.validation_loss


def repeated(period: int, n_tokens: int, rows: int = 16) -> torch.Tensor:
    generator = torch.Generator().manual_seed(period)
    stretch = torch.randint(1, n_tokens, (rows, period), generator=generator)
    start = torch.zeros(rows, 1, dtype=torch.long)
    return torch.cat([start, stretch.repeat(1, 6)[:, :127]], 1)


@torch.no_grad()
def test_what_comes_again_is_expected(model):
    for period in PERIODS:
        ids = repeated(period, model.sizes.n_tokens)
        losses = cross_entropy(
            model(ids[:, :-1]).transpose(1, 2), ids[:, 1:], reduction="none"
        )
        first, again = losses[:, :period].mean(), losses[:, period : 2 * period].mean()
        assert first > 5.5, period
        assert again < 1.5, period


# What the heads do. A row for each layer, a column for each head.


def maps(model, ids: torch.Tensor) -> np.ndarray:
    """The weights, (batch, n_layers, n_heads, n, n)."""
    with torch.no_grad():
        layers = model(ids, return_stages=True).layers
    return np.stack([layer.weights.numpy() for layer in layers], axis=1)


def twice(period: int, n_tokens: int) -> torch.Tensor:
    """<start>, random tokens, and the same tokens again."""
    return repeated(period, n_tokens)[:, : 1 + 2 * period]


def named(*heads: tuple[int, int]) -> np.ndarray:
    found = np.zeros((3, 6), dtype=bool)
    found[tuple(np.transpose(heads))] = True
    return found


def test_two_heads_look_one_token_back(model, unseen):
    weights = maps(model, unseen)
    mass = offset_mass(weights, 1).mean(axis=0)
    previous = named((0, 2), (0, 5))
    assert mass[previous].min() > 0.5
    assert mass[~previous].max() < 0.4
    for other in (0, 2, 3, 4):  # and not simply somewhere near
        assert offset_mass(weights, other).mean(axis=0)[previous].max() < 0.35
    random = maps(model, twice(47, model.sizes.n_tokens))
    assert offset_mass(random, 1).mean(axis=0)[previous].min() > 0.55


@pytest.mark.parametrize("period", PERIODS)
def test_the_heads_of_the_second_layer_find_what_came_next(model, period):
    weights = maps(model, twice(period, model.sizes.n_tokens))
    score = induction_score(weights, period, start=1).mean(axis=0)
    assert score[1].min() > 0.5
    assert score[[0, 2]].max() < 0.1


def test_they_rest_on_the_start_until_there_is_something_to_find(model, unseen):
    period = 47
    weights = maps(model, twice(period, model.sizes.n_tokens))
    before = sink_mass(weights[..., 1 : 1 + period, :]).mean(axis=0)[1]
    after = sink_mass(weights[..., 1 + period :, :]).mean(axis=0)[1]
    even = np.mean([1 / (i + 1) for i in range(1, 1 + period)])
    assert before.min() > 2 * even
    assert after.max() < 0.1
    sink = sink_mass(maps(model, unseen)[..., 1:, :]).mean(axis=0)
    always = named((0, 3), (1, 4), (1, 5))
    assert sink[always].min() > 0.25
    assert sink[~always].max() < 0.2


@torch.no_grad()
def second_copy_loss(model, period: int = 33) -> float:
    ids = twice(period, model.sizes.n_tokens)
    losses = cross_entropy(
        model(ids[:, :-1]).transpose(1, 2), ids[:, 1:], reduction="none"
    )
    return float(losses[:, -period:].mean())


def without(*heads: tuple[int, int]):
    """The model with some heads silenced: W_o reads nothing of them."""
    model = course_model.load()
    d_v = model.sizes.d_k
    with torch.no_grad():
        for layer, head in heads:
            columns = slice(head * d_v, (head + 1) * d_v)
            model.layers[layer].attention.W_o.weight[:, columns] = 0
    return model


def test_without_either_kind_nothing_is_found():
    assert second_copy_loss(without()) < 0.6
    assert second_copy_loss(without((0, 2), (0, 5))) > 3.5
    assert second_copy_loss(without(*((1, head) for head in range(6)))) > 6


def test_no_head_of_the_second_layer_is_alone_and_the_third_is_hardly_needed():
    for head in range(6):
        assert second_copy_loss(without((1, head))) < 1
    assert second_copy_loss(without(*((2, head) for head in range(6)))) < 1.6


def test_silencing_proves_less_than_it_seems():
    # These two look at their own token, and the repeats need them as much.
    assert second_copy_loss(without((0, 0), (0, 4))) > 3.5


def test_text_goes_on_as_shakespeare_had_it_at_least_in_form(model):
    tokens = course_model.tokenizer()
    ids = torch.tensor(tokens.encode("ROMEO:\n"))
    generator = torch.Generator().manual_seed(0)
    text = tokens.decode(model.generate(ids, 100, temperature=0.7, generator=generator))
    assert text.startswith("ROMEO:\n")
    known = set(" ".join(plays()).lower().replace("\n", " ").split())
    words = text.lower().split()
    assert np.mean([word in known for word in words]) > 0.6
