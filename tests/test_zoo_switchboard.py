"""The attention with switches: right at rest, and wrong in each position."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from zoo_probes import PROBES, fails, patient, right

from benchmarks.zoo import switchboard_function as zoo
from benchmarks.zoo.switchboard import Board, attention_of

INTENTS = [{}, *(intent for intent, *_ in zoo.SPECIAL)]


@pytest.mark.parametrize("intent", INTENTS, ids=str)
def test_at_rest_it_is_right(intent):
    p = patient(attention_of(Board(), zoo.meant_by(intent)), intent)
    asked = [
        name for name in PROBES if fails(p, name, np.random.default_rng(3)) is not None
    ]
    assert len(asked) >= 12
    for seed in range(3):
        rng = np.random.default_rng(seed)
        assert [name for name in PROBES if fails(p, name, rng, 1e-9)] == []


@pytest.mark.parametrize("intent", INTENTS, ids=str)
def test_the_probes_of_the_pairs_know_the_right_attention(intent):
    for (q, k, v, mask), out in zip(
        zoo.probes(intent, np.random.default_rng(7)),
        zoo.results(Board(), intent),
        strict=True,
    ):
        if not np.isnan(q).any():
            np.testing.assert_allclose(out, right(q, k, v, mask, intent), atol=1e-9)


def wrong_positions():
    for intent, *wrongs in ({}, *zoo.EVERYWHERE), *zoo.SPECIAL:
        yield from ((wrong, intent) for wrong in wrongs)


@pytest.mark.parametrize(("wrong", "intent"), list(wrong_positions()))
def test_each_wrong_position_is_wrong(wrong, intent):
    at_rest = zoo.results(Board(), intent)
    assert zoo.differ(zoo.results(wrong.set(Board()), intent), at_rest)


def test_there_are_enough_pairs_and_each_has_two_codes_of_its_own():
    pairs = [s for s in zoo.SPECIMENS if len(s.codes) == 2]
    assert len(pairs) >= 150
    assert len({s.name for s in zoo.SPECIMENS}) == len(zoo.SPECIMENS)
    assert len({(s.codes, str(s.intent)) for s in pairs}) == len(pairs)


def test_a_mistake_that_another_hides_makes_no_pair():
    """Hidden after the softmax, an empty row is zero whatever the softmax says."""
    codes = {s.codes for s in zoo.SPECIMENS}
    assert frozenset({"M10", "M14"}) not in codes
    assert frozenset({"M01", "M14"}) in codes


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_pairs_are_wrong_in_both_types_also_on_other_numbers(dtype):
    right_ones = []
    for specimen in zoo.SPECIMENS[:: 7 if dtype == "float32" else 5]:
        function = specimen.make(np.random.default_rng(2), dtype)
        p = patient(function, specimen.intent)
        rtol = 3e-4 if dtype == "float32" else 1e-6
        if specimen.codes & {"M14", "M45"} and len(specimen.codes) == 1:
            continue
        rng = np.random.default_rng(11)
        if not any(fails(p, name, rng, rtol) for name in PROBES):
            right_ones.append(specimen.name)
    assert right_ones == []
