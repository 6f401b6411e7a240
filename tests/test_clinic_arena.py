"""The arena: right ones are right, bugs are wrong, hints are true, guards hold."""

from __future__ import annotations

import builtins
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib.attention import scaled_dot_product
from attnlib.clinic import arena, catalogue
from attnlib.clinic.bugs.bug import LAWS

EVERY_RIGHT = (*arena.RIGHT, *arena.RIGHT_HIDDEN, *arena.EQUIVALENT)
EVERY_BUG = (*arena.SHOWN, *arena.held_back(0))


def draw(seed, *batch, n_q=4, n_k=7, d_k=3, d_v=5):
    rng = np.random.default_rng(seed)
    sizes = (n_q, d_k), (n_k, d_k), (n_k, d_v)
    return [rng.normal(size=(*batch, *size)) for size in sizes]


def apart(one, other, tolerance=1e-4):
    if one.shape != other.shape:
        return True
    return not np.allclose(one, other, rtol=0, atol=tolerance)


def wrong(attention, q, k, v, mask=None, tolerance=1e-4):
    right = scaled_dot_product(q, k, v, mask).out
    return apart(attention(q, k, v, mask), right, tolerance)


# --- right ones -------------------------------------------------------------------
@pytest.mark.parametrize("right", EVERY_RIGHT, ids=lambda r: r.name)
@given(
    seed=st.integers(0, 2**32 - 1),
    batch=st.sampled_from([(), (2,), (2, 3), (1, 2)]),
    sizes=st.tuples(*[st.integers(1, 9)] * 4),
    masked=st.sampled_from([None, "pairs", "keys", "items", "empty"]),
    far=st.sampled_from([0.0, 0.0, 300.0, -3000.0]),
)
@settings(derandomize=True, deadline=None, max_examples=40)
def test_a_right_one_is_right(right, seed, batch, sizes, masked, far):
    n_q, n_k, d_k, d_v = sizes
    q, k, v = draw(seed, *batch, n_q=n_q, n_k=n_k, d_k=d_k, d_v=d_v)
    q[..., 0], k[..., 0] = 1, k[..., 0] + far
    rng = np.random.default_rng(seed)
    mask = None
    if masked == "pairs":
        mask = rng.random((n_q, n_k)) < 0.5
    elif masked == "keys":
        mask = rng.random(n_k) < 0.5
    elif masked == "items":
        mask = rng.random((*batch, n_q, n_k)) < 0.5
    elif masked == "empty":
        mask = np.zeros((n_q, n_k), dtype=bool)
    expected = scaled_dot_product(q, k, v, mask)
    with np.errstate(all="ignore"):
        out = right.attention(q.copy(), k.copy(), v.copy(), mask)
    largest = np.abs(expected.raw_scores).max(initial=1)
    assert out.shape == expected.out.shape
    assert np.abs(out - expected.out).max() < 1e-5 + 1e-6 * largest


def test_right_ones_come_in_many_styles():
    assert len({right.name for right in EVERY_RIGHT}) == len(EVERY_RIGHT) >= 15


# --- bugs -------------------------------------------------------------------------
def square_masked(attention):
    q, k, v = draw(11, n_q=6, n_k=6)
    return wrong(attention, q, k, v, np.tri(6, dtype=bool))


def sized(attention):
    q, k, v = draw(12)
    return wrong(attention, q, k, v)


def x_ray(attention):
    q, k, _ = draw(13)
    return wrong(attention, q, k, np.eye(7), np.tri(4, 7, 3, dtype=bool))


def sloped(attention):
    return any(
        wrong(attention, *draw(14, d_k=d_k)[:2], np.eye(7)) for d_k in (3, 16, 20)
    )


def ordered(attention):
    q, k, v = draw(15)
    p = [3, 0, 6, 2, 5, 1, 4]
    return apart(attention(q, k, v), attention(q, k[p], v[p]))


def alone(attention):
    q, k, v = draw(16, 2)
    return apart(attention(q, k, v)[1], attention(q[1], k[1], v[1]))


def heads(attention):
    q, k, v = draw(17, 2, 3)
    mask = np.random.default_rng(0).random((2, 1, 4, 7)) < 0.5
    return any(
        apart(
            attention(q, k, v, mask)[i, h],
            attention(q[i, h], k[i, h], v[i, h], mask[i, 0]),
        )
        for i in range(2)
        for h in range(3)
    )


def future(attention):
    q, k, v = draw(18)
    mask = np.tri(4, 7, 3, dtype=bool)
    before = attention(q, k, v, mask)
    k[-2:], v[-2:] = k[-2:] + 1, v[-2:] - 1
    return apart(before[:2], attention(q, k, v, mask)[:2])


def masked(attention):
    q, k, v = draw(19, 2)
    mask = np.random.default_rng(1).random((2, 4, 7)) < 0.6
    return wrong(attention, q, k, v, mask) or wrong(attention, q, k, v, mask[0])


def shifted(attention):
    q, k, v = draw(20)
    q[:, 0] = 1
    mask = np.tri(4, 7, 3, dtype=bool)
    before = attention(q, k, v, mask)
    k[:, 0] -= 40_000
    return apart(before, attention(q, k, v, mask), 0.05)


def huge(attention):
    q, k, v = draw(21)
    far, low = 300 * q, k.copy()
    far[:, 0], low[:, 0] = 1, low[:, 0] - 3000
    mask = np.ones((4, 7), dtype=bool)
    mask[np.arange(4), (q @ k.T).argmax(axis=1)] = False
    rows = q * np.array([[1], [-900], [900], [1]])
    return (
        wrong(attention, 300 * q, k, v, None, 1e-3)
        or wrong(attention, far, low, v, None, 0.02)
        or wrong(attention, 3000 * q, k, v, mask, 1e-2)
        or wrong(attention, rows, k, v, None, 1e-3)
    )


def empty(attention):
    q, k, v = draw(22)
    mask = np.ones((4, 7), dtype=bool)
    mask[1] = False
    return apart(attention(q, k, v, mask)[1], np.zeros(5))


def many(attention):
    q, k, v = draw(23, n_q=13, n_k=23)
    mask = np.arange(23) > 8
    return wrong(attention, q, k, v) or wrong(attention, q, k, v, mask)


def twice(attention):
    q, k, v = draw(24)
    mask = np.tri(4, 7, 2, dtype=bool)
    before = [a.copy() for a in (q, k, v)]
    first = attention(q, k, v, mask)
    other = wrong(attention, q, k + v[:, :3], v, mask[::-1])
    again = attention(*draw(24), mask)
    changed = not all(map(np.array_equal, before, (q, k, v)))
    return other or apart(first, again) or changed


def one(attention):
    q, k, v = draw(25, n_q=1)
    return wrong(attention, q, k, v, np.arange(7) < 4)


BY_LAW = {
    "sizes": sized,
    "x-ray": x_ray,
    "slope": sloped,
    "order": ordered,
    "alone": alone,
    "heads": heads,
    "future": future,
    "masks": masked,
    "shift": shifted,
    "huge": huge,
    "empty": empty,
    "many": many,
    "twice": twice,
    "one": one,
    "square": square_masked,
}


def test_every_law_has_a_check_here_that_blames_nothing_right():
    assert set(BY_LAW) == set(LAWS)
    result = arena.score(list(BY_LAW.values()), (), EVERY_RIGHT)
    assert result.faults == ()
    assert result.false_alarms == ()


@pytest.mark.parametrize("seed", range(5))
def test_the_law_beside_a_bug_catches_it(seed):
    for law, check in BY_LAW.items():
        every = (*arena.SHOWN, *arena.held_back(seed))
        bugs = [bug for bug in every if bug.law == law]
        assert bugs, law
        assert arena.score(check, bugs).missed == (), law


def test_bugs_are_named_once_and_explained():
    names = [bug.name for bug in EVERY_BUG]
    assert len(set(names)) == len(names) == 81
    assert len(arena.SHOWN) == 37
    assert set(arena.MASK_BUGS) < set(arena.SHOWN)
    for bug in EVERY_BUG:
        assert len(bug.name) <= 30
        assert bug.why.endswith(".")
        assert bug.code == "" or catalogue_has(bug.code)


def catalogue_has(code):
    return 1 <= int(code[1:]) <= 47 and code[0] == "M"


@pytest.mark.parametrize(
    "bug", [b for b in EVERY_BUG if len(b.faults) == 1], ids=lambda b: b.name
)
def test_a_bug_has_the_number_that_the_catalogue_gives_it(bug):
    (fault,) = bug.faults
    assert bug.code == catalogue.get(fault).code


def test_a_seed_draws_the_numbers_of_the_hidden_bugs():
    same, other = arena.held_back(0), arena.held_back(1)
    assert [b.name for b in same] == [b.name for b in arena.held_back(0)]
    assert [b.name for b in same] != [b.name for b in other]
    assert len(same) == len(other) == 44


def test_pairs_are_wrong_and_of_two_different_bugs():
    both = arena.pairs()
    assert len(both) == len({frozenset([a, b]) for a, b, _ in both}) == 285
    few = [pair for _, _, pair in both[::7]]
    assert arena.score([sloped, x_ray, masked, heads, empty, huge], few).missed == ()


@pytest.mark.parametrize("bug", [b for b in EVERY_BUG if b.law == "twice"])
def test_what_remembers_is_fresh_each_time(bug):
    first, second = bug.attention, bug.attention
    for seed in (1, 2):
        q, k, v = draw(seed)
        first(q, k, v)
    q, k, v = draw(3)
    keeps = [np.array_equal(first(*draw(3)), second(*draw(3)))]
    assert bug.name != "keeps the old keys" or keeps == [False]


# --- the score --------------------------------------------------------------------
def test_a_score_counts():
    result = arena.score([sized, empty])
    assert len(result.caught) + len(result.missed) == 37
    assert result.alarms.shape == (37, 2)
    assert result.wolf.shape == (8, 2)
    assert not result.wolf.any()
    assert result.calls == (1, 1)
    assert result.mutation_score == len(result.caught) / 37
    assert str(result).endswith(", 2 calls")


def test_a_false_alarm_makes_the_score_nothing():
    result = arena.score(lambda attention: True)
    assert result.mutation_score == 0
    assert len(result.caught) == 37
    assert len(result.false_alarms) == 8


def test_the_order_of_the_visits_does_not_matter():
    scores = [arena.score(huge, seed=seed).alarms for seed in range(3)]
    for one_score, other in combinations(scores, 2):
        assert np.array_equal(one_score, other)


def test_what_is_no_function_is_refused():
    with pytest.raises(TypeError, match="checks must be functions"):
        arena.score([3])


# --- the door ---------------------------------------------------------------------
def test_all_come_through_the_same_door():
    seen = set()

    def curious(attention):
        closure = getattr(attention, "__closure__", None)
        seen.add((id(attention), repr(attention), attention.__name__, closure))
        return False

    arena.score(curious)
    assert len(seen) == 1


def test_the_door_is_closed_outside():
    with pytest.raises(RuntimeError, match="can only be called by a check"):
        arena.attention(*draw(0))


def test_arrays_of_the_check_are_put_back():
    q, k, v = draw(0)
    before = [a.copy() for a in (q, k, v)]

    def shares(attention):
        return apart(attention(q, k, v, np.zeros((4, 7), bool)), np.zeros((4, 5)))

    arena.score(shares, EVERY_BUG)
    assert all(map(np.array_equal, before, (q, k, v)))


def test_a_check_may_keep_score_itself():
    def nested(attention):
        inside = arena.score(sized, arena.SHOWN[:2], ())
        return len(inside.caught) == 2 and apart(
            attention(*draw(0)), scaled_dot_product(*draw(0)).out
        )

    assert len(arena.score(nested).caught) == len(arena.score(sized).caught)


def test_a_check_that_prints_asks_or_replaces_disturbs_nobody(capsys):
    real = builtins.print

    def noisy(attention):
        print("here")
        builtins.print = len
        return False

    arena.score(noisy, arena.SHOWN[:3])
    assert builtins.print is real
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("number", [3, 2.5, "True", [True], np.array([True, False])])
def test_a_check_answers_with_one_truth_value(number):
    result = arena.score(lambda attention: number)
    assert "must give True or False" in result.faults[0]
    assert result.mutation_score == 0


def test_numpy_truth_counts():
    assert arena.score(lambda a: np.bool_(False)).faults == ()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((np.ones((3, 2)), np.ones((4, 2)), np.ones((5, 2))), "k and v must agree"),
        ((np.ones((3, 2)), np.ones((4, 2)), np.ones((4, 2)), np.eye(3, 4)), "boolean"),
        ((np.ones((3, 2)), np.ones((4, 2)), np.full((4, 2), np.nan)), "v has NaN"),
        ((np.ones((3, 2)), np.full((4, 2), 1e7), np.ones((4, 2))), "k has NaN"),
        ((np.ones((3, 2)), "keys", np.ones((4, 2))), "k must be an array of numbers"),
        ((np.ones((3, 0)), np.ones((4, 0)), np.ones((4, 2))), "q must be an array"),
    ],
)
def test_what_no_attention_takes_is_the_fault_of_the_check(args, words):
    def careless(attention):
        try:
            attention(*args)
        except Exception:
            return True
        return False

    result = arena.score(careless)
    assert words in result.faults[0]
    assert not result.caught


def test_whole_numbers_and_lists_are_taken():
    def lists(attention):
        out = attention([[1, 0]], [[1, 2], [0, 1]], [[3], [4]])
        return out.shape != (1, 1)

    assert arena.score(lists).faults == ()
