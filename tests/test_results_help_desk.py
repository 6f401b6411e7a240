"""The stored runs of lesson 15: made with the script's settings, whole, and again."""

from __future__ import annotations

import importlib
import json

import numpy as np
import pytest
import torch
from torch_tools import in_float64, one_thread  # noqa: F401 - fixtures for every test

from attnlib.exercises import lesson_15
from attnlib.nn import desk, desk_models
from attnlib.nn.intents import help_desk
from attnlib.results import settings_hash, stored

FOUND = stored("help_desk")
SETTINGS = FOUND["settings"]


def script():
    return importlib.import_module("experiments.help_desk")


def test_the_numbers_were_made_with_these_settings():
    assert json.loads(json.dumps(script().SETTINGS)) == SETTINGS
    assert FOUND["settings_sha256"] == settings_hash(script().SETTINGS)


def test_every_run_is_there():
    assert list(FOUND["requests"]) == SETTINGS["requests"]["languages"]
    seeds = {name: len(SETTINGS[name]["seeds"]) for name in ("requests", "calls")}
    for by_way in FOUND["requests"].values():
        assert list(by_way) == SETTINGS["ways"] == list(desk.NAMES)
        assert all(len(runs) == seeds["requests"] for runs in by_way.values())
    assert list(FOUND["calls"]) == SETTINGS["ways"]
    assert all(len(runs) == seeds["calls"] for runs in FOUND["calls"].values())
    lengths = [str(n) for n in SETTINGS["calls"]["asked_lengths"]]
    for runs in FOUND["calls"].values():
        assert all(list(run) == lengths for run in runs)
    assert list(FOUND["longer"]) == SETTINGS["longer"]["ways"]
    assert len(FOUND["chances"]) == len(SETTINGS["chances"])
    assert all(list(run) == lengths for run in FOUND["chances"])
    for times in FOUND["times"].values():
        assert list(times) == [str(n) for n in SETTINGS["times"]["lengths"]]
        assert all(0 < ms < 10_000 for ms in times.values())


@pytest.mark.parametrize("name", ["bag", "full", "window", "linear"])
def test_the_models_are_those_that_were_measured(name):
    model, n_calls = desk_models.trained(name), SETTINGS["calls"]["asked"]
    right = script().asked(model, help_desk("en"), 256, n_calls, seed=0)
    assert right == pytest.approx(FOUND["calls"][name][0]["256"], abs=1e-3)


def test_models_changed_by_hand_are_refused(monkeypatch):
    arrays = desk_models.read()
    arrays["full/U"] = arrays["full/U"] + np.float16(1)
    monkeypatch.setattr(desk_models, "read", lambda: arrays)
    with pytest.raises(ValueError, match=r"help_desk\.npz does not hold the models"):
        desk_models.trained("full")


def test_one_run_comes_out_again():
    torch.set_default_dtype(getattr(torch, SETTINGS["dtype"]))
    run = script().requests("bag", "en", 1)
    wanted = FOUND["requests"]["en"]["bag"][1]
    assert run["unseen"] == pytest.approx(wanted["unseen"], abs=0.01)


@pytest.mark.parametrize(
    ("name", "language"), [("bag", "en"), ("bag", "zh-CN"), ("full", "en")]
)
def test_the_trainings_of_the_lesson_print_the_same_digits_after_a_small_push(
    name, language
):
    """As another processor would push them, by its roundings."""
    found = help_desk(language)

    def learned(push):
        luck = torch.Generator().manual_seed(0)
        model = desk.DeskModel(
            found, desk.way(name, 20, generator=luck), generator=luck
        )
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(1 + push)

        def loss(step):
            ids, answers = found.known.batch(32, luck)
            return torch.nn.functional.cross_entropy(model.request(ids), answers)

        rate = 0.03 if name == "bag" else 0.01
        script().train(model, loss, 300, lr=lambda step: rate * (1 - step / 300))
        return f"{model.right_in_requests(found.unseen):.2f}"

    assert learned(0.0) == learned(1e-9)


# --- the choices of exercise 3 -------------------------------------------------------
@pytest.mark.parametrize("name", lesson_15.DESKS)
def test_each_choice_is_clear(name):
    """No tie in what is printed, and no time that another run would put elsewhere."""
    wanted = lesson_15.DESKS[name]
    assert len(lesson_15.breaks("full", wanted)) <= 1  # one reason, or none
    for way in lesson_15.WAYS:
        ms = FOUND["times"][way][wanted.n]
        assert not 0.8 < ms / wanted.budget < 1.25, (way, ms)
        for what in ("intents", "rooms"):
            mean = lesson_15.mean_of(way, wanted, what)
            if mean is not None:
                assert abs(mean - getattr(wanted, what)) > 0.005, (way, what, mean)
    fit = [way for way in lesson_15.WAYS if not lesson_15.breaks(way, wanted)]
    times = sorted(FOUND["times"][way][wanted.n] for way in fit)
    assert len(times) == 1 or times[1] > 1.15 * times[0]


def test_the_desks_want_different_ways():
    right = lesson_15._RIGHT
    assert len({way for way, _ in right.values()}) >= 3
    assert len({reason for _, reason in right.values()}) >= 3
