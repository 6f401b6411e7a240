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
