"""Canvases of digits, the model that answers, and the numbers stored for lesson 07."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from real_models import needs
from torch_tools import one_thread  # noqa: F401 - a fixture for every test

from attnlib.nn import canvases
from attnlib.results import settings_hash, stored
from attnlib.shapes import ShapeError

LABELS = torch.arange(10).repeat(3)
IMAGES = (torch.arange(30.0) + 1)[:, None, None].expand(30, 8, 8) / 30


def script(name):
    return importlib.import_module(f"experiments.{name}")


def some(n=40, seed=0):
    return canvases.draw(IMAGES, LABELS, n, torch.Generator().manual_seed(seed))


def test_each_word_stands_in_the_quarter_of_its_answer():
    few = some()
    assert few.pictures.shape == (40, 16, 16)
    corners = few.pictures[:, ::8, ::8].flatten(1)  # each image is of one grey
    images = (corners * 30 - 1).round().long()
    assert torch.equal(LABELS[images].gather(1, few.answers), few.words)
    for digits, words in zip(LABELS[images].tolist(), few.words.tolist(), strict=True):
        assert len(set(digits)) == 4
        assert len(set(words)) == 3
    whole = few.pictures.reshape(40, 2, 8, 2, 8).transpose(2, 3).reshape(40, 4, 64)
    assert (whole.std(-1) < 1e-6).all()  # no image reaches into another quarter


def test_all_images_places_and_digits_come_up():
    many = some(2000)
    assert set((many.pictures.unique() * 30).round().long().tolist()) == set(
        range(1, 31)
    )
    for values, n in ((many.words, 10), (many.answers, 4)):
        shares = values.flatten().bincount(minlength=n) / values.numel()
        assert (shares - 1 / n).abs().max() < 0.02
    again = some(2000)
    assert torch.equal(again.pictures, many.pictures)


def test_a_batch_keeps_pictures_words_and_answers_together():
    few = some(7)
    batch = few.batch(30, torch.Generator().manual_seed(1))
    assert len(batch) == 30
    rows = [
        next(i for i in range(7) if torch.equal(picture, few.pictures[i]))
        for picture in batch.pictures
    ]
    assert torch.equal(batch.words, few.words[rows])
    assert torch.equal(batch.answers, few.answers[rows])


@settings(derandomize=True, deadline=None, max_examples=30)
@given(st.integers(1, 4), st.integers(1, 5), st.integers(1, 4), st.integers(0, 2))
def test_patches_are_what_a_loop_cuts(rows, columns, size, batch):
    shape = (*[2] * batch, rows * size, columns * size)
    pictures = torch.arange(float(np.prod(shape))).reshape(shape)
    found = canvases.patches(pictures, size)
    assert found.shape == (*shape[:-2], rows * columns, size * size)
    for r in range(rows):
        for c in range(columns):
            part = pictures[
                ..., r * size : (r + 1) * size, c * size : (c + 1) * size
            ].flatten(-2)
            assert torch.equal(found[..., r * columns + c, :], part)


def test_the_quarters_share_out_the_patches():
    quarters = canvases.in_quarter(torch.arange(4))
    assert quarters.sum(0).tolist() == [1] * 16
    picture = torch.zeros(16, 16)
    picture[:8, 8:] = 1
    dark = canvases.patches(picture, 4).mean(-1) == 1
    assert torch.equal(dark, quarters[1])


def test_what_does_not_fit_is_said():
    generator = torch.Generator()
    with pytest.raises(ShapeError, match=r"they are \(30, 8, 7\) and \(30,\)"):
        canvases.draw(IMAGES[:, :, :7], LABELS, 1, generator)
    with pytest.raises(ValueError, match="no image shows the digit 4"):
        canvases.draw(IMAGES[LABELS != 4], LABELS[LABELS != 4], 1, generator)
    with pytest.raises(ShapeError, match="height=6 and width=8 must be multiples of"):
        canvases.patches(torch.zeros(6, 8), 4)
    model = canvases.WhereIs(1, generator=generator)
    with pytest.raises(ShapeError, match="height"):
        model(torch.zeros(1, 15, 16), torch.tensor([[1]]))


def test_words_do_not_see_each_other_and_a_hidden_patch_is_not_seen():
    model = canvases.WhereIs(2, generator=torch.Generator().manual_seed(3)).eval()
    few = some(5)
    words = few.words.clone()
    words[:, 2] = (words[:, 2] + 1) % 10
    with torch.no_grad():
        before, after = (model(few.pictures, w) for w in (few.words, words))
        assert torch.allclose(before[:, :2], after[:, :2], atol=1e-6)
        assert not torch.allclose(before[:, 2], after[:, 2], atol=1e-3)
        pictures = few.pictures.clone()
        pictures[:, :8, :8] = 1 - pictures[:, :8, :8]
        hidden = ~canvases.in_quarter(torch.tensor(0))
        one, two = (model(p, few.words, hidden) for p in (few.pictures, pictures))
        assert torch.allclose(one, two, atol=1e-6)
        one, two = (model(p, few.words) for p in (few.pictures, pictures))
        assert not torch.allclose(one, two, atol=1e-3)


def test_accuracy_counts_words_and_the_loss_is_their_mean():
    model, few = (
        canvases.WhereIs(1, generator=torch.Generator().manual_seed(0)),
        some(9),
    )
    with torch.no_grad():
        logits = model(few.pictures, few.words)
        p = logits.softmax(-1).gather(2, few.answers[..., None])
        assert model.loss(few).item() == pytest.approx(-p.log().mean().item(), abs=1e-6)
    right = (logits.argmax(-1) == few.answers).sum().item()
    assert model.accuracy(few) == pytest.approx(right / 27)


@pytest.mark.parametrize("name", ["words_and_pictures", "whisper_words"])
def test_stored_numbers_were_made_with_the_settings_of_the_script(name, monkeypatch):
    module = script(name)
    assert stored(name)["settings_sha256"] == settings_hash(module.SETTINGS)
    assert stored(name)["settings"] == module.SETTINGS
    monkeypatch.setitem(module.SETTINGS, "more", 1)
    assert stored(name)["settings_sha256"] != settings_hash(module.SETTINGS)


def test_every_run_is_stored():
    found = stored("words_and_pictures")
    wanted = [
        (h, seed)
        for h in found["settings"]["n_heads"]
        for seed in found["settings"]["seeds"]
    ]
    assert [(r["n_heads"], r["seed"]) for r in found["runs"]] == wanted
    assert all(len(r["mass"]) == r["n_heads"] for r in found["runs"])


def test_first_weights_changed_in_the_ninth_digit_give_the_same_digits():
    """What a lesson prints must not hang on the last digits of another machine."""
    module = script("words_and_pictures")
    (run,) = [
        r
        for r in stored("words_and_pictures")["runs"]
        if (r["n_heads"], r["seed"]) == (1, 2)
    ]
    fresh = canvases.WhereIs

    class Nudged(fresh):
        def __init__(self, n_heads, *, generator):
            super().__init__(n_heads, generator=generator)
            noise = torch.Generator().manual_seed(99)
            with torch.no_grad():
                for p in self.parameters():
                    p.mul_(1 + 1e-9 * torch.randn(p.shape, generator=noise))

    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        known, unseen = module.data()
        module.canvases.WhereIs = Nudged
        found = module.measured(module.trained(known, 1, 2), unseen)
    finally:
        module.canvases.WhereIs = fresh
        torch.set_default_dtype(before)
    for name in ("accuracy", "says_0_there", "says_0_elsewhere"):
        assert round(found[name], 2) == round(run[name], 2)
    assert [round(m, 2) for m in found["mass"]] == [round(m, 2) for m in run["mass"]]


def test_the_words_of_whisper_lie_within_the_sound():
    found = stored("whisper_words")
    begins = [*found["settings"]["begins_ms"], found["settings"]["ends_ms"]]
    assert begins == sorted(begins)
    assert " ".join(found["words"]) + "." == found["settings"]["sentence"]
    bins, best = np.array(found["bins"]), np.array(found["best_frame"])
    assert bins.shape == (4, 6, 10, 33)
    assert best.shape == np.array(found["best_frame_paused"]).shape == (4, 6, 10)
    assert (bins.sum(-1).mean(-1) <= np.array(found["on_sound"]) + 0.01).all()


@needs("whisper")
def test_whisper_looks_where_it_is_stored_that_it_looks():
    module, found = script("whisper_words"), stored("whisper_words")
    model, sound = module.whisper.load(), module.whisper.spoken_cat()
    again = module.summary(model, sound)
    assert again["words"] == found["words"]
    assert np.allclose(again["bins"], found["bins"], atol=0.003)
    same = np.array(again["best_frame"]) == np.array(found["best_frame"])
    assert same.mean() > 0.98
