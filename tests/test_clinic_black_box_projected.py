"""What a search keeps from one variant to the next, and what two softmaxes hide."""

import numpy as np
import pytest
from black_box_tools import BENCHES, KINDS, keys

from attnlib.clinic.black_box import influence
from attnlib.clinic.black_box.exam import _odd
from attnlib.clinic.black_box.module_slots import HEADS, SQUARE
from attnlib.clinic.black_box.projected import SHAPING, heads_of, without
from attnlib.clinic.black_box.scores import factor
from attnlib.clinic.black_box.search import CLOCK, Patience
from attnlib.clinic.black_box.slots import SCORES
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
