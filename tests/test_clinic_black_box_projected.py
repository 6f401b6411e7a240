"""What a search keeps from one variant to the next, and what two softmaxes hide."""

import numpy as np
import pytest
from black_box_tools import BENCHES, KINDS, keys

from attnlib.clinic.black_box import influence
from attnlib.clinic.black_box.exam import _odd
from attnlib.clinic.black_box.module_slots import HEADS, SQUARE
from attnlib.clinic.black_box.projected import SHAPING, heads_of, without
from attnlib.clinic.black_box.scores import Unforeseen, factor
from attnlib.clinic.black_box.search import CLOCK, Patience, idle_among
from attnlib.clinic.black_box.slots import SCORES, WAYS
from attnlib.clinic.black_box.stages import Stages
from attnlib.clinic.black_box.traits import NOTHING, PLAIN
from attnlib.clinic.case import RIGHT


def heads(asked, faults):
    """Queries, keys and values of one question; None where they cannot be made."""
    x, memory = asked.x, asked.memory
    if "batch_as_sequence" in faults:
        x = np.swapaxes(x, 0, 1)
        memory = None if memory is None else np.swapaxes(memory, 0, 1)
    try:
        w = without(asked.weights, faults)
        return heads_of(x, memory, w, faults, asked.said)
    except ValueError:
        return None


def same(a, b):
    if a is None or b is None:
        return a is b
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("place", ["grouped module", "square module"])
def test_heads_depend_on_these_faults_alone(place):
    bench = BENCHES[place](0)
    for key in keys(place, "plain"):
        if key in SHAPING:
            continue
        for asked in bench.questions:
            assert same(heads(asked, frozenset([key])), heads(asked, RIGHT)), key


def test_kept_heads_change_no_answer():
    bench = BENCHES["square module"](0)
    for faults in ((), ("scale_missing",), ("split_of_k_alone", "scale_missing")):
        for asked in bench.questions:
            twice = [
                bench.simulate(asked, KINDS["plain"], frozenset(faults))
                for _ in range(2)
            ]
            other = BENCHES["square module"](0)
            fresh = other.simulate(asked, KINDS["plain"], frozenset(faults))
            assert np.array_equal(*twice, equal_nan=True)
            assert np.array_equal(twice[0], fresh, equal_nan=True)


def test_the_clock_is_looked_at_now_and_then():
    patience = Patience(seconds=-1.0)
    assert any(patience.is_over() for _ in range(CLOCK + 1))
    patience = Patience(comparisons=3)
    assert [patience.is_over() for _ in range(5)] == [False] * 3 + [True] * 2


def test_weights_before_a_second_softmax():
    rng = np.random.default_rng(0)
    first = rng.dirichlet(np.ones(5), size=(2, 3))
    second = np.exp(first) / np.exp(first).sum(-1, keepdims=True)
    assert np.allclose(influence.once(second), first)
    assert influence.once(first**4 / (first**4).sum(-1, keepdims=True)) is None
    assert influence.once(np.eye(3)) is None


def test_the_number_that_somebody_typed_comes_first():
    found = {"fill": -8.0, "fill_before_scale": -8.0 * 8**0.5}
    assert _odd(frozenset({"mask_before_scale"}), found)
    assert not _odd(frozenset({"mask_fill_other"}), found)
    assert not _odd(frozenset({"mask_before_scale"}), {})
    assert not _odd(frozenset({"scale_missing"}), found)


def test_every_scale_is_looked_for():
    q, k, v = np.ones((2, 3, 4, 6)), np.ones((2, 3, 5, 6)), np.ones((2, 3, 5, 7))
    right = factor(q, k, v, PLAIN, RIGHT, NOTHING)
    for key in SCORES["scale"]:
        other = factor(q, k, v, PLAIN, frozenset([key]), NOTHING)
        assert other != right or key == "scale_after", key
    assert factor(q, k, v, PLAIN, frozenset(["scale_other"]), {"scale": 0.3}) == 0.3


def test_every_weight_is_looked_for():
    w = BENCHES["square module"](0).weights
    for slot in (HEADS["tables"], HEADS["bias"], SQUARE["W"][:4]):
        for key in slot:
            assert without(w, frozenset([key])) is not w, key
    assert without(w, frozenset(["scale_missing"])) is w


def simulated(bench, asked, kind, faults, stages=None):
    """What a variant gives; None where it raises."""
    with np.errstate(all="ignore"):
        try:
            return bench.simulate(asked, KINDS[kind], frozenset(faults), stages=stages)
        except (ValueError, IndexError, TypeError, Unforeseen):
            return None


def equal(a, b):
    if a is None or b is None:
        return a is b
    return np.array_equal(a, b, equal_nan=True)


@pytest.mark.parametrize("kind", ["plain", "window", "cap", "rms", "rope, interleaved"])
@pytest.mark.parametrize("place", BENCHES)
def test_what_variants_have_in_common_changes_no_answer(place, kind):
    bench = BENCHES[place](0)
    every = keys(place, kind)
    rng = np.random.default_rng(0)
    pairs = [rng.choice(every, 2, replace=False).tolist() for _ in range(60)]
    asked = bench.questions[:: max(1, len(bench.questions) // 4)]
    stages = [Stages() for _ in asked]
    ways = [sorted(way) for way in WAYS]
    for faults in [[], *([key] for key in every), *ways, *pairs]:
        for question, common in zip(asked, stages, strict=True):
            fresh = simulated(bench, question, kind, faults)
            assert equal(simulated(bench, question, kind, faults, common), fresh), (
                faults,
                question.name,
            )


@pytest.mark.parametrize("kind", ["plain", "window", "cap", "rope, interleaved"])
@pytest.mark.parametrize("place", ["function", "square module"])
def test_ways_that_are_left_out_would_not_show(place, kind):
    bench = BENCHES[place](0)
    left_out = 0
    for key in keys(place, kind):
        for way in WAYS:
            faults = way | {key}
            idle = idle_among(faults)
            for asked in bench.questions[::3] if idle else ():
                without = simulated(bench, asked, kind, faults - idle)
                if without is None or not np.isfinite(without).all():
                    continue
                left_out += 1
                with_it = simulated(bench, asked, kind, faults)
                assert equal(without, with_it), (faults, asked.name)
    assert left_out > 500


def test_ways_that_may_show_are_not_left_out():
    assert idle_among(frozenset({"guarded", "nan_zeroed"})) == RIGHT
    assert idle_among(frozenset({"fill_lowest_finite", "exp_missing"})) == RIGHT
    both = frozenset({"fill_lowest_finite", "masked_again", "scale_missing"})
    assert idle_among(both) == {"fill_lowest_finite"}
