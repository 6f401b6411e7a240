"""The patients of lesson 10: ill in the way that the lesson says, and in no other."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from experiments import clinic
from torch_tools import in_float64, one_thread  # noqa: F401 - fixtures for every test

from attnlib import results
from attnlib.clinic import examine
from attnlib.nn import charts, patients, periods
from attnlib.nn import scaled_dot_product as attention
from attnlib.shapes import ShapeError


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


# --- the texts ----------------------------------------------------------------------
def test_texts_repeat_and_stand_behind_their_fillers():
    texts = periods.draw_texts(40, generator(), shortest=7, longest=17, period=3)
    lengths = texts.real.sum(1)
    assert lengths.min() >= 7
    assert lengths.max() == 17
    for ids, real in zip(texts.ids, texts.real, strict=True):
        assert real.int().diff().min() >= 0  # fillers first
        text = ids[real]
        assert (text[3:] == text[:-3]).all()


def test_texts_are_refused_that_cannot_be():
    with pytest.raises(ShapeError, match="shortest=9 is larger than longest=8"):
        periods.draw_texts(2, generator(), shortest=9, longest=8)


def test_more_fillers_change_nothing_for_the_healthy_one():
    model = patients.admit("C").model
    texts = periods.draw_texts(6, generator())
    out = model(texts.padded(9))[:, 9:]
    real = texts.real
    assert torch.allclose(out[real], model(texts)[real])
    assert torch.isclose(model.loss(texts), model.loss(texts.padded(9)))


def test_the_model_is_plain_attention_between_two_tables():
    model, texts = patients.admit("C").model, periods.draw_texts(3, generator())
    x = model.inputs(texts)
    heads = [slice(48 * h, 48 * h + 48) for h in range(4)]
    mask = texts.real[:, None, :] & torch.ones(24, 24, dtype=torch.bool).tril()
    mixed = [
        attention(
            x @ model.W_q[:, at],
            x @ model.W_k[:, at],
            x @ model.W_v[:, 8 * h : 8 * h + 8],
            mask,
        ).out
        for h, at in enumerate(heads)
    ]
    right = torch.cat(mixed, -1) @ model.W_o @ model.unembed
    assert torch.allclose(model(texts), right)


def test_writing_goes_on_one_token_at_a_time():
    model, ids = patients.admit("C").model, torch.arange(10).reshape(2, 5)
    written = model.write(ids, 3)
    assert written.shape == (2, 8)
    assert (written[:, :5] == ids).all()
    texts = periods.Texts(written[:, :-1], torch.ones(2, 7, dtype=torch.bool))
    assert (model(texts)[:, -1].argmax(-1) == written[:, -1]).all()


# --- the charts ---------------------------------------------------------------------
def test_signs_by_hand():
    model, texts = patients.admit("C").model, periods.draw_texts(5, generator(2))
    signs, stages = charts.measure(model, texts), model.stages(texts)
    weights = stages.weights.detach().numpy()
    keys, loud, sinks, hot = [], [], [], []
    for h in range(4):
        entropies, squares, first, above = [], [], [], []
        for b in range(5):
            real = np.flatnonzero(texts.real[b].numpy())
            for i in real:
                row = weights[b, h, i]
                entropies.append(-sum(w * math.log(w) for w in row if w > 0))
                above.append(row.max() > 0.99)
                squares.append((stages.mixed[b, h, i].detach().numpy() ** 2).mean())
                if i > real[0]:
                    first.append(row[real[0]])
        keys.append(math.exp(np.mean(entropies)))
        loud.append(math.sqrt(np.mean(squares)))
        sinks.append(np.mean(first))
        hot.append(np.mean(above))
    for mine, right in (
        (signs.keys, keys),
        (signs.loudness, loud),
        (signs.sink, sinks),
        (signs.saturated, hot),
    ):
        np.testing.assert_allclose(mine, right, rtol=1e-12)
    model.loss(texts).backward()
    parts = torch.stack([model.W_q.grad, model.W_k.grad]).reshape(2, 32, 4, 48)
    right = parts.square().sum((0, 1, 3)).sqrt().numpy()
    np.testing.assert_allclose(signs.gradient, right, rtol=1e-12)


def test_measuring_leaves_no_gradient():
    model = patients.admit("C").model
    charts.measure(model, periods.draw_texts(3, generator()))
    assert all(p.grad is None for p in model.parameters())


def test_even_weights_have_the_even_signs():
    model, texts = patients.admit("C").model, charts.probe_texts()
    with torch.no_grad():
        model.W_q.zero_()
    signs = charts.measure(model, texts)
    keys, sink = charts.even(texts)
    np.testing.assert_allclose(signs.keys, keys)
    np.testing.assert_allclose(signs.sink, sink)


def test_a_chart_is_kept_every_six_steps_and_shown():
    seen = []

    def report(step, loss):
        pass

    report.see = lambda chart: seen.append(len(chart.steps))
    chart = charts.watch(patients.admit("C"), 14, report=report)
    assert chart.steps == (0, 6, 12, 14)
    assert seen == [1, 2, 3, 4]
    with pytest.raises(ValueError, match="but no 'entropy'"):
        chart.curve("entropy")


# --- the patients -------------------------------------------------------------------
def moved(model):
    texts = periods.draw_texts(8, generator(4), shortest=24)
    ids = texts.ids.clone()
    ids[:, 12] = (ids[:, 12] + 1) % 12
    with torch.no_grad():
        move = model(periods.Texts(ids, texts.real)) - model(texts)
    return move.abs().amax((0, 2))


@pytest.mark.parametrize("letter", [*"ACEF", "R", "S", "T", "create_mask"])
def test_most_see_no_future(letter):
    assert moved(patients.admit(letter).model)[:12].max() < 1e-12


@pytest.mark.parametrize(("letter", "first"), [("D", 11), ("Q", 0)])
def test_two_see_the_future(letter, first):
    moves = moved(patients.admit(letter).model)
    assert moves[first:12].min() > 1e-3
    assert (moves[:first] < 1e-12).all()


def test_what_each_has_before_its_first_step():
    texts = charts.probe_texts()
    keys, _ = charts.even(texts)
    signs = {x: charts.measure(patients.admit(x).model, texts) for x in "ABCDEFQRST"}
    assert all((signs[x].keys > keys + 1).all() for x in "AQT")
    assert all((signs[x].keys < 2).all() for x in "ER")
    assert all(((signs[x].keys > 4) & (signs[x].keys < keys)).all() for x in "BCDFS")
    silent = {x: np.flatnonzero(signs[x].loudness == 0).tolist() for x in signs}
    assert silent.pop("F") == [1]
    assert silent.pop("S") == [0, 3]
    assert not any(silent.values())
    assert signs["B"].nan_weights > 0.2
    assert signs["B"].nan_gradient > 0.1
    assert math.isfinite(signs["B"].loss)


def test_the_late_one_is_well_until_the_first_filler():
    chart = charts.watch(patients.admit("U"), 48)
    assert np.isfinite(chart.curve("loss")[:7]).all()  # up to step 36
    assert np.isnan(chart.curve("loss")[7:]).all()


def test_nobody_else_is_there():
    with pytest.raises(ValueError, match="there is no patient 'Z'; there are A, B"):
        patients.admit("Z")


@pytest.mark.parametrize(
    ("letter", "codes"),
    [("A", {"M16"}), ("B", {"M14"}), ("C", set()), ("D", {"M18"}), ("E", {"M01"}),
     ("F", set())],
)  # fmt: skip
def test_what_the_clinic_says_of_the_six(letter, codes):
    attend = patients.admit(letter).model.attend

    def function(q: torch.Tensor, k, v, mask):
        return attend(q, k, v, mask).out

    report = examine(function, causal=True)
    assert set(report.codes) == codes
    assert report.healthy == (not codes)


# --- what was stored ----------------------------------------------------------------
def test_stored_numbers_fit_the_script():
    stored = results.stored("clinic")
    assert stored["settings"] == clinic.SETTINGS
    assert all(len(runs) == 10 for runs in stored["runs"].values())
    again = clinic.run("C", 0)
    assert again == pytest.approx(stored["runs"]["C"][0], abs=2e-3)


def test_digits_do_not_hang_on_the_last_bits():
    """Other processors round otherwise; what the lesson prints stays the same."""
    losses = []
    for change in (0.0, 1e-9):
        patient = patients.admit("C")
        with torch.no_grad():
            for p in patient.model.parameters():
                p *= 1 + change * torch.randn(p.shape, generator=generator(9))
        losses.append(charts.watch(patient, 30).curve("loss"))
    np.testing.assert_allclose(*losses, atol=1e-6)
