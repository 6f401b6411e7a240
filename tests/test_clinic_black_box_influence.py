"""Numbers read off an attention's weights: who sees whom, scales, fills, caps."""

from __future__ import annotations

import numpy as np
import pytest

from attnlib.attention import softmax
from attnlib.clinic.black_box import influence
from attnlib.clinic.black_box.traits import PLAIN, Traits
from attnlib.masks import causal, window

RNG = np.random.default_rng(5)
Q, K = RNG.normal(size=(2, 3, 4, 5)), RNG.normal(size=(2, 3, 6, 5))
SCORES = Q @ K.mT / 5**0.5
ALL = np.ones(SCORES.shape, dtype=bool)
LOOK = np.broadcast_to(causal(4, 6), SCORES.shape)


# Who sees whom.


def test_one_who_sees_all_is_of_no_other_kind():
    assert influence.kinds(np.ones((7, 7), bool), PLAIN) == [PLAIN]


def test_a_triangle_is_causal_and_plain_comes_first():
    found = influence.kinds(causal(7), PLAIN)
    assert found == [PLAIN, Traits(causal=True)]


@pytest.mark.parametrize("keys", [1, 2, 3, 6])
def test_a_band_is_a_window(keys):
    found = influence.kinds(window(7, left=keys - 1), PLAIN)
    assert found[:2] == [PLAIN, Traits(causal=True)]
    assert found[2] == Traits(causal=True, window=keys)
    assert len(found) == 3


@pytest.mark.parametrize("keys", [2, 3, 6])
def test_a_band_on_both_sides_is_a_window_on_both(keys):
    found = influence.kinds(window(7, left=keys - 1, right=keys - 1), PLAIN)
    assert Traits(window=keys, both_sides=True) in found
    assert not any(kind.window and kind.causal for kind in found)


def test_what_is_known_is_kept():
    told = Traits(softcap=3.0, rope="half")
    for kind in influence.kinds(causal(7), told):
        assert (kind.softcap, kind.rope) == (3.0, "half")
    for known in (Traits(causal=True), Traits(window=3)):
        assert influence.kinds(causal(7), known) == [known]


# The factor on the scores.


@pytest.mark.parametrize("factor", [1.0, 0.25, -2.0, 7.0])
def test_the_factor_is_read_off_the_weights(factor):
    logs, seen = influence.logarithms(softmax(factor * SCORES))
    assert influence.slope(logs, SCORES, seen) == pytest.approx(factor)


def test_the_factor_is_read_where_something_is_hidden():
    weights = softmax(np.where(LOOK, 3 * SCORES, -np.inf))
    logs, seen = influence.logarithms(weights)
    np.testing.assert_array_equal(seen, LOOK)
    assert influence.slope(logs, SCORES, seen) == pytest.approx(3.0)


def test_there_is_no_factor_if_something_else_is_in_the_scores():
    rng = np.random.default_rng(0)
    logs, seen = influence.logarithms(softmax(SCORES + rng.normal(size=SCORES.shape)))
    assert influence.slope(logs, SCORES, seen) is None
    logs, seen = influence.logarithms(softmax(np.tanh(SCORES)))
    assert influence.slope(logs, SCORES, seen) is None


def test_equal_scores_tell_no_factor():
    assert influence.slope(np.zeros((2, 3)), np.ones((2, 3)), np.ones((2, 3))) is None


@pytest.mark.parametrize("factor", [0.3, 1.0])
def test_the_scale_is_found_whoever_asks(factor):
    assert list(influence.scales(softmax(factor * Q @ K.mT), Q, K)) == [
        pytest.approx(factor)
    ]
    k = K[..., :4, :]
    swapped = softmax(factor * k @ Q.mT)
    assert pytest.approx(factor) in list(influence.scales(swapped, Q, k))
    same = softmax(factor * Q @ Q.mT)
    assert pytest.approx(factor) in list(influence.scales(same, Q, k))


# What stands where a mask hides.


@pytest.mark.parametrize("value", [0.0, -1.0, -10.0, 2.5])
def test_a_fill_is_read_off_the_weights(value):
    weights = softmax(np.where(LOOK, SCORES, value))
    found = influence.fill(weights, SCORES, LOOK)
    assert found == (pytest.approx(value), False)


@pytest.mark.parametrize("value", [-1.0, -10.0])
def test_a_number_that_is_added_is_told_from_one_that_replaces(value):
    weights = softmax(np.where(LOOK, SCORES, SCORES + value))
    assert influence.fill(weights, SCORES, LOOK) == (pytest.approx(value), True)


def test_no_number_where_hidden_keys_weigh_nothing_or_are_not_hidden():
    hidden = softmax(np.where(LOOK, SCORES, -np.inf))
    assert influence.fill(hidden, SCORES, LOOK) is None
    # Nothing is added: the mask is ignored, which is another mistake.
    assert influence.fill(softmax(SCORES), SCORES, LOOK) is None
    assert influence.fill(softmax(SCORES), SCORES, ALL) is None
    noise = np.random.default_rng(0).normal(size=SCORES.shape)
    mixed = softmax(np.where(LOOK, SCORES, noise))
    assert influence.fill(mixed, SCORES, LOOK) is None
    other = softmax(np.where(LOOK, noise, -10.0))
    assert influence.fill(other, SCORES, LOOK) is None


# Caps and slopes.


@pytest.mark.parametrize("value", [0.7, 2.0, 5.0, 30.0, 50.0])
def test_a_cap_is_read_off_wide_scores(value):
    wide = 8 * SCORES
    found = influence.cap(softmax(value * np.tanh(wide / value)), wide)
    assert found == pytest.approx(value, rel=1e-3)


def test_there_is_no_cap_where_scores_are_not_capped():
    wide = 8 * SCORES
    assert influence.cap(softmax(wide), wide) is None
    assert influence.cap(softmax(np.clip(wide, -3, 3)), wide) is None


@pytest.mark.parametrize("look", [ALL, LOOK], ids=["all", "causal"])
def test_the_slopes_of_all_heads_are_read(look):
    slopes = np.array([0.5, 0.1, -0.25])
    near = -np.abs(np.arange(6) - np.arange(2, 6)[:, None])
    biased = SCORES + slopes[:, None, None] * near
    weights = softmax(np.where(look, biased, -np.inf))
    found = influence.slopes(weights, SCORES, look)
    np.testing.assert_allclose(found, slopes, atol=1e-9)
    noise = np.random.default_rng(0).normal(size=SCORES.shape)
    assert influence.slopes(softmax(biased + noise), SCORES, ALL) is None
