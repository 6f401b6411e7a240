"""The stored runs of lesson 08: made with the script's settings, whole, and plausible.

That the script gives these numbers again is for a machine with minutes to spare:
python tools/experiments/length.py
"""

from __future__ import annotations

import importlib
import json
import math

import pytest

from attnlib.results import settings_hash, stored


def experiment(name):
    return importlib.import_module(f"experiments.{name}")


@pytest.mark.parametrize("name", ["length", "digits_positions"])
def test_the_numbers_were_made_with_these_settings(name):
    script, found = experiment(name), stored(name)
    assert found["settings"] == json.loads(json.dumps(script.SETTINGS))
    assert found["settings_sha256"] == settings_hash(script.SETTINGS)


def test_other_settings_have_another_hash(monkeypatch):
    script = experiment("length")
    monkeypatch.setitem(script.SETTINGS, "steps", 401)
    assert settings_hash(script.SETTINGS) != stored("length")["settings_sha256"]


def test_every_run_is_there():
    found = stored("length")
    settings = found["settings"]
    assert set(found["losses"]) == {*settings["schemes"], *settings["stretched"]}
    for by_length in found["losses"].values():
        assert list(by_length) == [str(n) for n in settings["lengths"]]
        for runs in by_length.values():
            assert len(runs) == len(settings["seeds"])
            assert all(1.5 < loss < math.log(63) + 1 for loss in runs)
    found = stored("digits_positions")
    settings = found["settings"]
    assert list(found["accuracy"]) == [str(n) for n in settings["training_pictures"]]
    for by_scheme in found["accuracy"].values():
        assert list(by_scheme) == settings["schemes"]
        for runs in by_scheme.values():
            assert len(runs) == len(settings["seeds"])
            assert all(0.1 < share < 1 for share in runs)


def test_a_stretch_of_one_changes_nothing():
    """At the trained length the slowed models are the RoPE models."""
    found = stored("length")
    losses = found["losses"]
    for how in found["settings"]["stretched"]:
        assert losses[how]["32"] == losses["rope"]["32"]


def test_patches_are_cut_row_by_row():
    import torch

    patches = experiment("digits_positions").patches
    picture = torch.arange(64.0).reshape(1, 8, 8)
    cut = patches(picture)[0]
    assert cut.shape == (16, 4)
    assert cut[0].tolist() == [0, 1, 8, 9]
    assert cut[3].tolist() == [6, 7, 14, 15]
    assert cut[4].tolist() == [16, 17, 24, 25]
