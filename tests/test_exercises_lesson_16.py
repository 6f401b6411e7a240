"""Lesson 16: answers as people write them, right and wrong, and what they are told."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attnlib import cost, masks
from attnlib.exercises import get, judge, names
from attnlib.nn import Flash
from attnlib.nn.ring import Stripes, join_parts

LESSON = ("ring_step", "may_see", "ring_bytes")
INF = np.inf


def changed(name, *pairs):
    """The solution with some pieces of its text exchanged."""
    source = get(name).solution_source
    for old, new in pairs:
        assert old in source, old
        source = source.replace(old, new)
    space = {"np": np}
    exec(source, space)
    return space[name]


def test_the_lesson_has_these_exercises_and_their_minutes_fit_into_its_text():
    assert set(names(16)) == set(LESSON)
    assert sum(get(name).minutes for name in LESSON) == 17


def test_the_solutions_are_what_the_library_does():
    rng = np.random.default_rng(2)
    sides = [(rng.normal(size=(4, 3)), rng.normal(size=4)) for _ in range(2)]
    sides[0][0][2], sides[0][1][2] = 0, -INF
    found = get("ring_step").solution(*sides[0], *sides[1])
    joined = join_parts(*(Flash(*map(torch.from_numpy, side)) for side in sides))
    np.testing.assert_allclose(found[0], joined.out, atol=1e-12)
    np.testing.assert_allclose(found[1], joined.log_sum_exp, atol=1e-12)
    placement = Stripes(15, 5)
    for rank in range(5):
        for other in range(5):
            mask = get("may_see").solution(rank, other, 5, 3)
            look = placement.look(rank, other, causal=True)
            assert mask.sum() == (look.pairs if look else 0)
            rows, cols = (placement.tokens(r).numpy() for r in (rank, other))
            assert (mask == masks.causal(15)[np.ix_(rows, cols)]).all()
    traffic = cost.ring_traffic(120, 5, 2, 16, itemsize=4)
    found = get("ring_bytes").solution(120, 5, 8, 2, 16, 4)
    assert found == (traffic.forward, traffic.backward)


# --- right answers written another way ---------------------------------------------
def by_hand(out, log_sum_exp, part_out, part_log):
    m = np.maximum(log_sum_exp, part_log)
    m = np.where(np.isneginf(m), 0.0, m)
    a, b = np.exp(log_sum_exp - m), np.exp(part_log - m)
    total = a + b
    with np.errstate(divide="ignore"):
        log = m + np.log(total)
    total = np.where(total == 0, 1, total)[:, np.newaxis]
    return (a[:, np.newaxis] * out + b[:, np.newaxis] * part_out) / total, log


def by_sigmoid(out, log_sum_exp, part_out, part_log):
    """The way of some libraries: one difference, one sigmoid."""
    with np.errstate(invalid="ignore"):
        share = 1 / (1 + np.exp(np.minimum(log_sum_exp - part_log, 700)))
    share = np.nan_to_num(share)[:, None]
    return out - share * (out - part_out), np.logaddexp(log_sum_exp, part_log)


def query_by_query(out, log_sum_exp, part_out, part_log):
    found, logs = out.copy(), log_sum_exp.copy()
    for i in range(len(out)):
        if part_log[i] == -INF:
            continue
        logs[i] = np.logaddexp(log_sum_exp[i], part_log[i])
        found[i] = np.exp(log_sum_exp[i] - logs[i]) * out[i]
        found[i] += np.exp(part_log[i] - logs[i]) * part_out[i]
    return found, logs


def by_torch(out, log_sum_exp, part_out, part_log):
    sides = [(out, log_sum_exp), (part_out, part_log)]
    joined = join_parts(
        *(Flash(*map(torch.as_tensor, map(np.asarray, s))) for s in sides)
    )
    return joined.out, joined.log_sum_exp


def nan_mended(out, log_sum_exp, part_out, part_log):
    log = np.logaddexp(log_sum_exp, part_log)
    with np.errstate(invalid="ignore"):
        a, b = (np.nan_to_num(np.exp(x - log)) for x in (log_sum_exp, part_log))
    return [a[:, None] * out + b[:, None] * part_out, log]


def in_loops(rank, other, n_ranks, n_local):
    mask = np.zeros((n_local, n_local), bool)
    for i in range(n_local):
        for j in range(n_local):
            mask[i, j] = other + j * n_ranks <= rank + i * n_ranks
    return mask


def by_tril(rank, other, n_ranks, n_local):
    return np.tril(np.ones((n_local, n_local), dtype=bool), -int(other > rank))


def of_the_whole(rank, other, n_ranks, n_local):
    whole = masks.causal(n_ranks * n_local)
    return whole[rank::n_ranks][:, other::n_ranks]


def by_arange(rank, other, n_ranks, n_local):
    n = n_ranks * n_local
    return np.arange(other, n, n_ranks) <= np.arange(rank, n, n_ranks)[:, None]


def by_the_library(rank, other, n_ranks, n_local):
    placement = Stripes(n_ranks * n_local, n_ranks)
    return placement.tokens(other)[None, :] <= placement.tokens(rank)[:, None]


def by_floats(n, n_ranks, n_heads, n_kv_heads, d_k, itemsize):
    keys = (n_ranks - 1) / n_ranks * n * n_kv_heads * 2 * d_k * itemsize
    return keys, keys + n * n_kv_heads * 2 * d_k * itemsize


def by_the_cost_model(n, n_ranks, n_heads, n_kv_heads, d_k, itemsize):
    found = cost.ring_traffic(
        n, n_ranks, n_kv_heads, d_k, itemsize=itemsize, grad_itemsize=itemsize
    )
    return found.forward, found.backward


def hop_by_hop(n, n_ranks, n_heads, n_kv_heads, d_k, itemsize):
    forward = backward = 0
    for step in range(n_ranks):
        block = n // n_ranks * n_kv_heads * (d_k + d_k) * itemsize
        if step < n_ranks - 1:
            forward += block
            backward += block
        backward += block
    return np.array([forward, backward])[0], backward


OTHER = {
    "ring_step": (by_hand, by_sigmoid, query_by_query, by_torch, nan_mended),
    "may_see": (in_loops, by_tril, of_the_whole, by_arange, by_the_library),
    "ring_bytes": (by_floats, by_the_cost_model, hop_by_hop),
}


@pytest.mark.parametrize(
    ("name", "answer"), [(name, f) for name, all_ in OTHER.items() for f in all_]
)
def test_another_right_answer_passes(name, answer):
    for seed in range(2):
        verdict = judge(name, answer, seed)
        assert verdict.passed, verdict.text


# --- wrong answers, named ----------------------------------------------------------
LOG = "np.logaddexp(log_sum_exp, part_log)"
BASE = "np.where(log == -np.inf, 0, log)"
SHARES = "np.exp(log_sum_exp - base), np.exp(part_log - base)"
OUT = "mine[:, None] * out + theirs[:, None] * part_out"
STEPS = (
    (("mine[:, None] * out + theirs[:, None] * part_out", "(out + part_out) / 2"), "join_averaged"),  # noqa: E501
    ((OUT, "out + part_out"), "join_added"),
    ((SHARES, "log_sum_exp / (log_sum_exp + part_log), part_log / (log_sum_exp + part_log)"), "join_by_logs"),  # noqa: E501
    ((SHARES, "log_sum_exp >= part_log, log_sum_exp < part_log"), "join_larger_only"),
    ((SHARES, "np.exp(log_sum_exp), np.exp(part_log)"), "join_not_divided"),
    ((OUT, "part_out"), "join_part_only"),
    ((OUT, "out"), "join_old_kept"),
    (("mine, theirs =", "theirs, mine ="), "join_shares_exchanged"),
    ((OUT, "out + theirs[:, None] * part_out"), "join_old_not_shrunk"),
    ((OUT, "mine[:, None] * out + part_out"), "join_part_not_shrunk"),
    ((SHARES, "np.exp(base - log_sum_exp), np.exp(base - part_log)"), "join_shares_inverted"),  # noqa: E501
    ((OUT, "mine[:, None] / mine.sum() * out + theirs[:, None] / theirs.sum() * part_out"), "join_over_queries"),  # noqa: E501
    ((LOG, "np.maximum(log_sum_exp, part_log)"), "join_log_is_max"),
    ((LOG, "log_sum_exp + part_log"), "join_log_is_sum"),
    ((LOG, "np.log(np.exp(log_sum_exp) + np.exp(part_log))"), "join_not_stable"),
    ((BASE, "log"), "join_empty_nan"),
    (("part_out, log\n", "part_out, np.maximum(log_sum_exp, part_log)\n"), "join_returns_max"),  # noqa: E501
    (("part_out, log\n", "part_out, log_sum_exp + part_log\n"), "join_returns_sum"),
    (("part_out, log\n", "part_out, log_sum_exp\n"), "join_log_not_updated"),
    (("part_out, log\n", "part_out, part_log\n"), "join_log_of_part"),
    (("part_out, log\n", "part_out, np.exp(log_sum_exp) + np.exp(part_log)\n"), "join_returns_total"),  # noqa: E501
    (("part_out, log\n", "part_out, base\n"), "join_guard_stored"),
    ((f"return {OUT}, log", f"return log, {OUT}"), "join_exchanged"),
)  # fmt: skip
MINE, THEIRS = "rank + n_ranks * np.arange(n_local)", "other + n_ranks * np.arange"
RETURN = "theirs <= mine[:, None]"
SEEN = (
    ((MINE, "rank * n_local + np.arange(n_local)"), (THEIRS, "other * n_local + np.arange"), "see_blocks"),  # noqa: E501
    ((MINE, "np.arange(n_local)"), (THEIRS, "np.arange"), "see_places_only"),
    ((MINE, "rank + np.zeros(n_local)"), (THEIRS, "other + np.zeros"), "see_ranks_only"),  # noqa: E501
    (("n_ranks * np", "n_local * np"), "see_strides_of_n_local"),
    (("n_ranks * np", "np"), "see_neighbours"),
    ((RETURN, "mine <= theirs[:, None]"), "see_ranks_exchanged"),
    ((RETURN, "theirs < mine[:, None]"), "diagonal_missing"),
    ((RETURN, "theirs >= mine[:, None]"), "causal_mirrored"),
    ((RETURN, "theirs > mine[:, None]"), "mask_inverted"),
    ((RETURN, "theirs[:, None] <= mine"), "mask_transposed"),
    ((RETURN, "np.ones((n_local, n_local), bool)"), "causal_missing"),
    ((RETURN, "(theirs <= mine[:, None]) * 1"), "mask_numbers"),
    ((RETURN, "np.where(theirs <= mine[:, None], 0, -np.inf)"), "mask_additive"),
)  # fmt: skip
TOKENS = "n // n_ranks"
BOTH = "(n_ranks - 1) * block, (2 * n_ranks - 1) * block"
SENT = (
    ((TOKENS, "n"), "ring_whole_text"),
    ((" * 2 *", " *"), "ring_keys_only"),
    (("n_kv_heads * d_k", "n_heads * d_k"), "ring_all_heads"),
    (("2 * n_kv_heads", "(n_heads + 2 * n_kv_heads)"), "ring_queries_too"),
    (("2 * n_kv_heads", "2"), "ring_heads_missing"),
    (("2 * n_kv_heads", "2 * n_heads // n_kv_heads"), "ring_heads_per_group"),
    ((" * d_k", ""), "ring_width_missing"),
    (("d_k * itemsize", "d_k // n_heads * itemsize"), "ring_width_divided"),
    (("d_k * itemsize", "d_k"), "ring_numbers"),
    (("d_k * itemsize", "d_k * itemsize * 8"), "ring_bits"),
    ((" * 2 *", " * 4 *"), "ring_received_too"),
    ((BOTH, "n_ranks * block, 2 * n_ranks * block"), "ring_all_hops"),
    ((BOTH, "block, 2 * block"), "ring_one_hop"),
    ((BOTH, "(n_ranks - 1) * block, 2 * (n_ranks - 1) * block"), "ring_gradients_not_home"),  # noqa: E501
    ((BOTH, "(n_ranks - 1) * block, (n_ranks - 1) * block"), "ring_gradients_missing"),
    ((BOTH, "(n_ranks - 1) * block, n_ranks * block"), "ring_keys_not_again"),
    ((BOTH, "(n_ranks - 1) * block, (3 * n_ranks - 2) * block"), "ring_backward_is_all"),  # noqa: E501
    ((BOTH, "(2 * n_ranks - 1) * block, (n_ranks - 1) * block"), "ring_exchanged"),
)  # fmt: skip
WRONG = [
    (name, pairs, key)
    for name, rows in (("ring_step", STEPS), ("may_see", SEEN), ("ring_bytes", SENT))
    for *pairs, key in rows
]


@pytest.mark.parametrize(("name", "pairs", "key"), WRONG, ids=lambda x: str(x)[:30])
def test_a_wrong_answer_is_named(name, pairs, key):
    with np.errstate(all="ignore"):
        verdict = judge(name, changed(name, *pairs))
    assert not verdict.passed
    assert [mistake.key for mistake in verdict.mistakes] == [key], verdict.text


def test_a_step_in_place_is_told_that_it_changed_its_arguments():
    pair = ("return mine", "out *= mine[:, None]\n    return mine")
    verdict = judge("ring_step", changed("ring_step", pair))
    assert verdict.status == "mutates"
    assert "out" in verdict.text


def test_two_mistakes_are_both_named():
    pairs = (
        (OUT, "(out + part_out) / 2"),
        ("part_out) / 2, log", "part_out) / 2, part_log"),
    )
    keys = {m.key for m in judge("ring_step", changed("ring_step", *pairs)).mistakes}
    assert keys == {"join_averaged", "join_log_of_part"}
    pairs = ((" * 2 *", " *"), (BOTH, "n_ranks * block, 2 * n_ranks * block"))
    keys = {m.key for m in judge("ring_bytes", changed("ring_bytes", *pairs)).mistakes}
    assert keys == {"ring_keys_only", "ring_all_hops"}


def test_shares_without_an_axis_are_told_of_shapes():
    pair = (OUT, "mine * out + theirs * part_out")
    verdict = judge("ring_step", changed("ring_step", pair))
    assert not verdict.passed
    assert "share[:, None]" in verdict.text or "broadcast" in verdict.text


def test_the_number_that_gave_it_away():
    pair = ("mine, theirs =", "theirs, mine =")
    told = judge("ring_step", changed("ring_step", pair)).text
    assert "the two sides of query" in told
    told = judge("ring_bytes", changed("ring_bytes", (" * 2 *", " *"))).text
    assert "forward you count 1,024 bytes, and there are 2,048" in told
    told = judge("may_see", changed("may_see", ("n_ranks * np", "np"))).text
    assert "pairs yours opens" in told
