"""The stored runs that leave out parts of the recipe of the course's model."""

from __future__ import annotations

import json

import numpy as np
import pytest
from experiments import course_model_parts

from attnlib import results
from attnlib.results import settings_hash


@pytest.fixture(scope="module")
def script():
    return course_model_parts


@pytest.fixture(scope="module")
def stored():
    return results.stored("course_model_parts")


def test_the_numbers_were_made_with_these_settings(script, stored):
    assert stored["settings"] == json.loads(json.dumps(script.SETTINGS))
    assert stored["settings_sha256"] == settings_hash(script.SETTINGS)
    assert list(stored["arms"]) == list(script.SETTINGS["arms"])


def test_other_settings_have_another_hash(script, monkeypatch):
    before = settings_hash(script.SETTINGS)
    monkeypatch.setitem(script.SETTINGS, "steps", 401)
    assert settings_hash(script.SETTINGS) != before


def test_every_head_of_every_arm_is_there(script, stored):
    assert stored["even_sink"] == script.even_sink()
    for arm in stored["arms"].values():
        for score in ("previous", "induction", "sink"):
            table = np.array(arm[score])
            assert table.shape == (3, 6)
            assert (table >= 0).all()
            assert (table <= 1).all()


def test_what_the_lesson_says_of_them_holds(stored):
    def best(arm: str, score: str) -> float:
        return float(np.max(stored["arms"][arm][score]))

    arms = stored["arms"]
    found = {name: arm["second_copy_loss"] < 1 for name, arm in arms.items()}
    assert found == {
        "everything": True,
        "no repeats at all": False,
        "repeats, but only beside the text": False,
        "no <start>": True,
    }
    for arm, there in found.items():
        assert (best(arm, "previous") > 0.6) == there
        assert (best(arm, "induction") > 0.2) == there
        # The sink comes with the heads that rest on it, and with a <start> only.
        assert (best(arm, "sink") > 0.2) == (arm == "everything")
        assert there or best(arm, "sink") < 2 * stored["even_sink"]
