"""Every mistake is named as itself, whatever the numbers and the float type."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from black_box_tools import KINDS

from attnlib.clinic import probes
from attnlib.clinic.black_box.module_slots import module_slots
from attnlib.clinic.black_box.slots import function_slots
from attnlib.clinic.case import Case, Family, Outcome, call
from attnlib.clinic.catalogue import catalogue, get
from attnlib.clinic.evidence import evidence
from attnlib.clinic.families import heads
from attnlib.clinic.match import EXACT, Table
from attnlib.clinic.part import Takes
from attnlib.clinic.parts import PARTS
from attnlib.exercises import get as exercise
from attnlib.exercises import names
from attnlib.exercises.exercise import Exercise

EXERCISES = [e for n in names() if isinstance(e := exercise(n), Exercise)]
ASKED = {e.name: (e.family, e.cases) for e in EXERCISES}
ASKED["multi_head, masked and grouped"] = (heads.MULTI_HEAD, probes.grouped_cases)

SEEDS = 20

# What cannot be seen from outside, by name of the question, and why.
INVISIBLE = {
    # Only what else is wrong can make the NaN that it replaces.
    "softmax": {"nan_replaced"},
    # These arguments are not part of the exercise.
    "multi_head": {
        "mask_ignored",
        "mask_inverted",
        "mask_tiled_over_heads",
        "kv_heads_tiled",
    },
    # A document mask is symmetric, and the exercise has no batch.
    "document_mask": {"mask_transposed", "head_axis_missing"},
}
# What looks like something simpler, by name of the question.
SAME_AS = {
    # With one sentence in the batch, or a longest one that is full.
    ("create_mask", "batch_longest"): "padding_missing",
    ("padding_and_causal", "batch_longest"): "padding_missing",
    # Where a query is real, its past is real: closing keys as well changes nothing.
    ("padding_and_causal", "padding_on_both_placed"): "padding_on_queries_placed",
}


# Not all for ever: each fork of a later test would copy their half a gigabyte.
@functools.lru_cache(maxsize=2 * SEEDS)
def table(name: str, seed: int) -> Table:
    family, cases = ASKED[name]
    return Table(family, cases(np.random.default_rng(seed)))


def outcomes(
    family: Family, cases: tuple[Case, ...], dtype: str, *faults: str
) -> list[Outcome]:
    def cast(value: object) -> object:
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            return value.astype(dtype)
        return value

    cast_cases = [Case(c.name, tuple(cast(a) for a in c.args)) for c in cases]
    return [call(family, c, frozenset(faults)) for c in cast_cases]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ASKED)
def test_each_mistake_is_named_as_itself(name: str, dtype: str) -> None:
    family, _ = ASKED[name]
    if (name, dtype) == ("distance_to_possible", "float32"):
        pytest.skip("pinv of a float32 matrix of rank 2 takes noise for a third rank")
    for seed in range(SEEDS):
        t = table(name, seed)
        assert t.match(outcomes(family, t.cases, dtype)).right
        for key in family.faults:
            if seed == 0 or dtype != "float64":
                answer = outcomes(family, t.cases, dtype, key)
            else:  # the table has it already, and another call gave the same before
                answer = list(t._run(frozenset([key])))
            found = t.match(answer)
            if key in INVISIBLE.get(name, ()):
                assert found.right, (seed, key)
                continue
            if not any(o.arrays for o in answer):
                continue  # raises on every case: the error speaks for itself
            expected = {key, SAME_AS.get((name, key), key)}
            got = [set(reading) for reading in found.readings]
            assert len(got) == 1, (seed, key, got)
            assert got[0] <= expected, (seed, key, got)


@pytest.mark.parametrize("name", ASKED)
def test_each_pair_is_named_or_looks_like_something_simpler(name: str) -> None:
    family, _ = ASKED[name]
    if not family.pairs:
        pytest.skip("yes-or-no answers: pairs would fit by chance")
    t = table(name, 3)
    slots = list(family.slots.values())
    for i, first in enumerate(slots):
        for second in slots[i + 1 :]:
            for pair in [{a, b} for a in first for b in second]:
                answer = outcomes(family, t.cases, "float64", *pair)
                if not any(o.arrays for o in answer):
                    continue
                found = t.match(answer)
                simpler = found.right or any(len(r) == 1 for r in found.readings)
                if all(np.isnan(a).all() for o in answer for a in o.arrays):
                    assert simpler or not found.readings, pair  # it is told as NaN
                    continue
                assert simpler or pair in [set(r) for r in found.readings], pair


@pytest.mark.parametrize("name", ASKED)
def test_garbage_is_not_given_a_name(name: str) -> None:
    t = table(name, 0)
    rng = np.random.default_rng(7)
    for _ in range(30):
        answer = [
            Outcome(tuple(rng.normal(size=a.shape) for a in right.arrays))
            for right in t.right
        ]
        found = t.match(answer)
        assert not found.right
        assert not found.readings


@pytest.mark.parametrize("name", ASKED)
def test_an_answer_that_only_raises_is_not_given_a_name(name: str) -> None:
    t = table(name, 0)
    for error in ("ValueError", "TypeError", "NameError"):
        assert t.match([Outcome(error=error)] * len(t.cases)).readings == ()


@pytest.mark.parametrize("name", ASKED)
def test_each_mistake_comes_with_a_measured_number(name: str) -> None:
    family, _ = ASKED[name]
    t = table(name, 0)
    for key in set(family.faults) - INVISIBLE.get(name, set()):
        answer = outcomes(family, t.cases, "float64", key)
        if any(o.arrays for o in answer):
            sentence = evidence(key, t, answer)
            assert sentence.endswith("."), (key, sentence)
            assert sentence[0].islower(), (key, sentence)


def test_every_key_of_a_family_is_in_the_catalogue() -> None:
    for family, _ in ASKED.values():
        for key in family.faults:
            assert get(key).key == key


def test_the_catalogue_is_well_formed() -> None:
    import re

    for mistake in catalogue().values():
        assert re.fullmatch(r"(M\d\d)?", mistake.code), mistake
        assert re.fullmatch(r"([\w.-]+/[\w.-]+#\d+)?", mistake.report), mistake
        assert not mistake.name.endswith("."), mistake
        assert mistake.sentence.endswith((".", "?")), mistake
        assert mistake.mend.endswith((".", "?")), mistake


def in_parts() -> set[str]:
    """The mistakes that a part examined by itself can show."""
    found: set[str] = set()
    for part in PARTS.values():
        for places in (1, 2, 3):
            signature = Takes(("x", "n", "cap")[:places], places)
            said = {"axes": "heads first"} if part.name == "repeat_kv" else {}
            for form in part.forms(said, signature):
                found |= {key for meant in form.meant for key in meant.family.faults}
    return found


# What an examination from outside looks for one by one, beside the slots it searches.
LOOKED_FOR = {
    *("scale_other", "cap_other", "slopes_other"),  # a number read off the outputs
    *("mask_fill_other", "mask_fill_added", "mask_added_before_scale"),
    *("empty_row_leaks", "empty_row_gradient", "renormalised"),  # at the edge
    *("nan_through_mask", "nan_of_query_hidden", "online_finite_start"),
    *("half_inside", "sum_in_half", "dropout_always", "dropout_same"),
    *("rope_cache_turned_twice", "rope_chunk_from_zero"),  # with a cache
    *("W_o_none", "train_differs"),  # of modules alone
}


def from_outside() -> set[str]:
    """The mistakes that the examination of a whole attention can show."""
    slots: set[str] = set()
    for kind in KINDS.values():
        for shown in module_slots(
            kind,
            mask=True,
            causal=True,
            memory=True,
            grouped=True,
            square=True,
            projected=True,
        ).values():
            slots |= set(shown)
        for mask, causal in ((True, False), (False, True)):
            few = function_slots(kind, mask=mask, causal=causal, grouped=True)
            slots |= {key for shown in few.values() for key in shown}
    blocks = {key for key in slots if key.startswith("online_")}
    return slots - blocks | {key.rsplit("_", 1)[0] for key in blocks} | LOOKED_FOR


def test_every_mistake_in_the_catalogue_can_be_made() -> None:
    from attnlib.clinic.families import masks

    families = [family for family, _ in ASKED.values()]
    families.append(masks.DOCUMENT)
    made = {key for family in families for key in family.faults}
    made |= in_parts() | from_outside()
    assert set(catalogue()) - made == set()


def test_two_equal_variants_are_reported_under_one_name() -> None:
    def constant(x: float, *, faults: frozenset[str]) -> float:
        return x + (1 if faults else 0)

    family = Family("constant", constant, {"a": ("one",), "b": ("two",)})
    t = Table(family, [Case("a number", (1.0,))])
    found = t.match([call(family, t.cases[0], frozenset(["two"]))])
    assert found.readings == (frozenset(["one"]),)


def test_a_variant_that_is_always_right_is_never_reported() -> None:
    def idle(x: float, *, faults: frozenset[str]) -> float:
        return x

    family = Family("idle", idle, {"a": ("one",), "b": ("two",)})
    t = Table(family, [Case("a number", (1.0,))])
    assert t._singles == {}
    assert t._pairs_like(t.right, EXACT) == {}


def test_pairs_with_one_effect_are_all_given() -> None:
    def plus(x: float, *, faults: frozenset[str]) -> float:
        steps = {"one": 1, "two": 2, "three": 4, "four": 3}
        return x + sum(steps[key] for key in faults)

    family = Family("plus", plus, {"a": ("one", "two"), "b": ("three", "four")})
    t = Table(family, [Case("a number", (1.0,))])
    found = t.match([Outcome((np.array(6.0),))])
    assert found.readings == (
        frozenset(["one", "three"]),
        frozenset(["two", "four"]),
    )
