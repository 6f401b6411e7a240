"""The script that trains the course's model: its tokens, its batches, its bytes."""

from __future__ import annotations

import dataclasses
import hashlib
import json

import numpy as np
import pytest
import torch
import train_course_model as script

from attnlib.nn.language import LanguageModel
from attnlib.nn.text import plays
from attnlib.nn.tokens import START, WORDS, Tokenizer

SHORT = script.Recipe(first=5, second=2, steps=3, batch=4)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_ten_steps_run_twice_give_the_same_numbers(one_thread):
    ids = torch.randint(1, script.SIZES.n_tokens, (900,), generator=generator())
    (model, trained), (again, trained_again) = (
        script.train(ids, SHORT) for _ in range(2)
    )
    assert trained.losses == trained_again.losses
    assert len(trained.losses) == 10
    assert script.packed(model) == script.packed(again)
    other, _ = script.train(ids, dataclasses.replace(SHORT, seed=1))
    assert script.packed(model) != script.packed(other)


def test_what_is_written_is_read_back(one_thread, tmp_path, monkeypatch):
    lines = "HAMLET:\nTo be, or not to be: that is the question.\n\n"
    monkeypatch.setattr(script, "plays", lambda: (plays()[0][:9000], lines * 40))
    script.write(SHORT, tmp_path, every=0)
    card = json.loads((tmp_path / "course_model.json").read_text(encoding="utf-8"))
    weights = (tmp_path / "course_model.npz").read_bytes()
    assert card["sha256"] == hashlib.sha256(weights).hexdigest()
    assert card["sizes"] == dataclasses.asdict(script.SIZES)
    assert card["recipe"] == dataclasses.asdict(SHORT)
    model = LanguageModel(script.LanguageSizes(**card["sizes"]))
    with np.load(tmp_path / "course_model.npz") as arrays:
        shapes = {name: arrays[name].shape for name in arrays.files}
        assert {arrays[name].dtype for name in arrays.files} == {np.dtype("float16")}
    assert shapes == {k: tuple(w.shape) for k, w in model.state_dict().items()}
    assert card["about"]["n_weights"] == sum(w.numel() for w in model.parameters())
    assert len(card["about"]["curve"]) == 1


def test_the_tokens_are_those_of_the_library():
    tokenizers = pytest.importorskip("tokenizers")
    known, unseen = plays()
    ours = script.learn_tokens(known[:60_000], 200)
    library = tokenizers.Tokenizer(
        tokenizers.models.BPE(
            {token: i for i, token in enumerate(ours.tokens)}, list(ours.merges)
        )
    )
    library.pre_tokenizer = tokenizers.pre_tokenizers.Split(
        tokenizers.Regex(WORDS), "isolated"
    )
    some = unseen[:20_000]
    text = "".join(c for c in some if c in ours.tokens) + "  two  spaces\n\n\n'tis"
    assert ours.encode(text, start=False) == library.encode(text).ids
    assert ours.decode(ours.encode(text)) == text
    assert ours.tokens[0] == START
    assert len(ours.tokens) == len(set(ours.tokens)) == 200


def test_an_unknown_character_is_named():
    tokens = Tokenizer((START, "a", "t"), ())
    with pytest.raises(ValueError, match="no token for '7'; it knows the 2 char"):
        tokens.encode("at 7".replace(" ", ""))


def test_windows_of_text_begin_with_start_and_go_on_as_the_text():
    ids = torch.arange(1, 200)
    with_start = script.text_windows(ids, 6, 50, True, generator())
    assert with_start.shape == (50, 7)
    assert (with_start[:, 0] == 0).all()
    assert (with_start[:, 1:].diff() == 1).all()
    without = script.text_windows(ids, 6, 50, False, generator())
    assert (without.diff() == 1).all()


@pytest.mark.parametrize("start", [True, False])
def test_a_stretch_comes_again_and_only_then_counts(start):
    periods = torch.tensor([3, 8])
    ids, known = script.repeat_windows(40, 19, periods, start, generator())
    first = int(start)
    assert ids.shape == known.shape == (2, 20)
    assert ids[:, first:].min() > 0
    for row, known_row, period in zip(ids, known, periods.tolist(), strict=True):
        assert torch.equal(row[first + period :], row[first:-period])
        assert known_row.nonzero()[0] == first + period
        assert known_row[first + period :].all()
    assert not start or (ids[:, 0] == 0).all()


@pytest.mark.parametrize(
    ("step", "n", "rows", "share_of_text"),
    [(0, 28, 8, 0), (699, 28, 8, 0), (700, 128, 2, 0), (1000, 128, 4, 0.75)],
)
def test_the_order_of_what_is_learned(step, n, rows, share_of_text):
    recipe = script.Recipe(batch=4)
    ids = torch.full((900,), 7)
    batch = script.batch_of(ids, step, recipe, generator())
    assert batch.shape == (2, rows, n + 1)
    is_text = (batch[0, :, 1:] == 7).all(1)
    assert is_text.float().mean() == share_of_text
    counted = batch[1] != script.IGNORED
    assert torch.equal(batch[0][counted], batch[1][counted])
    assert counted[is_text].all()
    if step == 0:
        assert batch[0].max() < 32


def test_the_rate_goes_up_and_down():
    recipe = script.Recipe(first=10, second=10, steps=20, warmup=5, lr=1.0)
    rates = [script.rate(step, recipe) for step in range(40)]
    assert rates[:5] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    assert rates[5:21] == pytest.approx([1.0] * 16)
    assert rates[30] == pytest.approx(0.55)
    assert rates[39] < 0.11


def test_guessing_costs_what_the_formulas_say():
    n = script.SIZES.n_tokens
    ids = torch.tensor([1, 2] * 5000)
    losses = script.simple_losses(ids, ids)
    assert losses["even"] == pytest.approx(np.log(n))
    assert losses["unigram_loss"] == pytest.approx(np.log(2), abs=0.03)
    assert losses["bigram_loss"] == pytest.approx(0, abs=0.01)
