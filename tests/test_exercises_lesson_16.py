"""Lesson 16: answers as people write them, right and wrong, and what they are told."""

from __future__ import annotations

import math

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


def row_by_row_in_floats(out, log_sum_exp, part_out, part_log):
    rows, logs = [], []
    for row, a, part, b in zip(out, log_sum_exp, part_out, part_log, strict=True):
        m = max(a, b)
        total = math.exp(a - m) + math.exp(b - m) if m > -INF else 0
        logs.append(m + math.log(total) if total else m)
        shares = [math.exp(x - m) / total if total else 0 for x in (a, b)]
        rows.append([shares[0] * x + shares[1] * y for x, y in zip(row, part)])  # noqa: B905
    return np.array(rows), np.array(logs)


def stacked(out, log_sum_exp, part_out, part_log):
    logs = np.stack([log_sum_exp, part_log])
    log = np.logaddexp.reduce(logs)
    shares = np.exp(logs - np.maximum(log, np.finfo(float).min))
    return np.einsum("pq,pqd->qd", shares, np.stack([out, part_out])), log


def in_single(out, log_sum_exp, part_out, part_log):
    sides = (a.astype(np.float32) for a in (out, log_sum_exp, part_out, part_log))
    return nan_mended(*sides)


def only_where_seen(out, log_sum_exp, part_out, part_log):
    found, logs, seen = out.copy(), log_sum_exp.copy(), part_log > -INF
    log = np.logaddexp(log_sum_exp, part_log)[seen]
    found[seen] *= np.exp(log_sum_exp[seen] - log)[:, None]
    found[seen] += np.exp(part_log[seen] - log)[:, None] * part_out[seen]
    logs[seen] = log
    return found, logs


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


def by_floor(rank, other, n_ranks, n_local):
    return np.tri(n_local, k=(rank - other) // n_ranks, dtype=bool)


def in_lists(rank, other, n_ranks, n_local):
    at = [[r + n_ranks * i for i in range(n_local)] for r in (rank, other)]
    return [[key <= query for key in at[1]] for query in at[0]]


def in_one_array(n, n_ranks, n_heads, n_kv_heads, d_k, itemsize):
    whole = 2 * n * n_kv_heads * d_k * itemsize
    return np.array([whole, 2 * whole]) - whole // n_ranks


def in_one_tensor(n, n_ranks, n_heads, n_kv_heads, d_k, itemsize):
    block = torch.tensor(2 * n // n_ranks * n_kv_heads * d_k * itemsize)
    return torch.stack([(n_ranks - 1) * block, (2 * n_ranks - 1) * block])


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
    "ring_step": (
        by_hand,
        by_sigmoid,
        query_by_query,
        by_torch,
        nan_mended,
        row_by_row_in_floats,
        stacked,
        in_single,
        only_where_seen,
    ),
    "may_see": (
        in_loops,
        by_tril,
        of_the_whole,
        by_arange,
        by_the_library,
        by_floor,
        in_lists,
    ),
    "ring_bytes": (
        by_floats,
        by_the_cost_model,
        hop_by_hop,
        in_one_array,
        in_one_tensor,
    ),
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
    ((SHARES, "np.array([np.isfinite(log_sum_exp), np.isfinite(part_log)]) / np.maximum(1.0 * np.isfinite(log_sum_exp) + np.isfinite(part_log), 1)"), "join_averaged_where_seen"),  # noqa: E501
    ((SHARES, "log_sum_exp - base, part_log - base"), "join_logs_subtracted"),
    ((SHARES, "np.exp(log_sum_exp) / np.exp(log), np.exp(part_log) / np.exp(log)"), "join_shares_bare"),  # noqa: E501
    ((LOG, "np.log(np.exp(log_sum_exp) + np.exp(part_log))"), (SHARES, "np.exp(log_sum_exp) / np.exp(log), np.exp(part_log) / np.exp(log)"), "join_exponentials_bare"),  # noqa: E501
    ((BASE, "np.where(log == -np.inf, 0, np.maximum(log_sum_exp, part_log))"), "join_from_larger"),  # noqa: E501
    (("theirs[:, None] *", "mine[:, None] *"), "join_share_for_both"),
    ((f"return {OUT}, log", f"seen = np.isfinite(log_sum_exp) & np.isfinite(part_log)\n    return np.where(seen[:, None], {OUT}, 0), np.where(seen, log, -np.inf)"), "join_one_empty_dropped"),  # noqa: E501
    ((f"return {OUT}, log", f"seen = np.isfinite(log_sum_exp)\n    return np.where(seen[:, None], {OUT}, out), np.where(seen, log, log_sum_exp)"), "join_empty_stays"),  # noqa: E501
    (("log = np.logaddexp", "log_sum_exp, part_log = (np.where(np.isinf(x), 0, x) for x in (log_sum_exp, part_log))\n    log = np.logaddexp"), "join_empty_as_zero"),  # noqa: E501
    (("log = np.logaddexp", "log_sum_exp, part_log = (np.where(np.isinf(x), -1e9, x) for x in (log_sum_exp, part_log))\n    log = np.logaddexp"), "join_minus_billion"),  # noqa: E501
    (("part_out, log\n", "part_out, np.nan_to_num(log)\n"), "join_log_finite"),
    (("part_out, log\n", "part_out, log - np.where(np.isinf(log), 0, np.maximum(log_sum_exp, part_log))\n"), "join_larger_not_added"),  # noqa: E501
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
    (("part_out, log\n", "part_out, (log_sum_exp + part_log) / 2\n"), "join_returns_mean"),  # noqa: E501
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
    ((MINE, "rank * n_ranks + np.arange(n_local)"), (THEIRS, "other * n_ranks + np.arange"), "see_runs_of_n_ranks"),  # noqa: E501
    ((RETURN, "theirs <= mine[:, None] + n_ranks"), "see_one_ahead"),
    ((RETURN, "(theirs <= mine[:, None]) & (rank == other)"), "see_own_rank_only"),
    ((RETURN, "(theirs <= mine[:, None]) | (rank != other)"), "see_other_ranks_whole"),
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
    (("d_k * itemsize", "d_k * 2"), "ring_two_bytes"),
    ((BOTH, "n_ranks * block, (2 * n_ranks - 1) * block"), "ring_forward_home"),
    ((BOTH, "block, 3 * block"), "ring_two_ranks"),
    ((BOTH, "(n_ranks - 1) * block, 2 * n_ranks * block"), "ring_keys_home"),
    ((BOTH, "(n_ranks - 1) * block, (n_ranks - 1) * block + n_ranks * block * max(4, itemsize) // itemsize"), "ring_gradients_wide"),  # noqa: E501
    ((BOTH, "(n_ranks - 1) * block, (2 * n_ranks - 1) * block + n * n_heads * d_k * itemsize"), "ring_gradients_of_queries"),  # noqa: E501
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


# --- wrong answers without a name ---------------------------------------------------
def largest_of_all(out, log_sum_exp, part_out, part_log):
    """One base for all queries: no case but one has logs that lie far apart."""
    logs = np.stack([log_sum_exp, part_log])
    shares = np.exp(logs - logs[np.isfinite(logs)].max())
    total = shares.sum(axis=0)
    log = logs[np.isfinite(logs)].max() + np.log(total)
    shares = shares / np.where(total == 0, 1, total)
    return shares[0][:, None] * out + shares[1][:, None] * part_out, log


def test_one_base_for_all_queries_does_not_pass():
    for seed in range(3):
        with np.errstate(all="ignore"):
            verdict = judge("ring_step", largest_of_all, seed)
        assert not verdict.passed
        assert "logs far apart" in verdict.text


MEAN = "np.full(len(log), np.mean"
LAWS = (
    ("ring_step", ((SHARES, f"{MEAN}(np.exp(log_sum_exp - base))), {MEAN}(np.exp(part_log - base)))"),), "each query has shares of its own"),  # noqa: E501
    ("ring_step", ((OUT, f"({OUT}) / 3"),), "yours gives 0.333 for query 0. Its two shares"),  # noqa: E501
    ("ring_step", ((OUT, "4 / 11 * out + 7 / 11 * part_out"),), "Of the new part no query sees anything"),  # noqa: E501
    ("ring_step", ((SHARES, "1 - np.exp(part_log - base) ** 2 * np.isfinite(log), np.exp(part_log - base) ** 2"),), "parts may be joined in any order"),  # noqa: E501
    ("ring_step", ((LOG, "np.logaddexp2(log_sum_exp, part_log)"), ("np.exp", "np.exp2")), "0.193, log(2 e^L)"),  # noqa: E501
    ("ring_step", ((LOG, "np.logaddexp(np.minimum(log_sum_exp, 300), np.minimum(part_log, 300))"), (SHARES, "np.exp(np.minimum(log_sum_exp, 300) - base), np.exp(np.minimum(part_log, 300) - base)")), "with 800 added to all logs"),  # noqa: E501
    ("may_see", ((RETURN, "theirs < mine[:, None] + rank"),), "does not see itself in yours"),  # noqa: E501
    ("may_see", ((RETURN, "(theirs <= mine[:, None])[::-1]"),), "each sees the other"),
    ("may_see", ((RETURN, "(theirs <= mine[:, None]) & (theirs > 0)"),), "does not see itself"),  # noqa: E501
    ("may_see", (("n_ranks * np", "4 * np"),), "key 0 of rank 4 is token 4. In yours each sees"),  # noqa: E501
    ("ring_bytes", (("d_k * itemsize", "d_k * 8"),), "With itemsize twice as large, your forward count is 1 times"),  # noqa: E501
    ("ring_bytes", (("* d_k", "* d_k**2"),), "With d_k twice as large, your forward count is 4 times"),  # noqa: E501
    ("ring_bytes", ((" * 2 * n_kv_heads", " * (n_heads + n_kv_heads)"),), "With n_kv_heads twice as large"),  # noqa: E501
    ("ring_bytes", ((BOTH, "(n_ranks - 1) * block, (2 * n_ranks + 1) * block"),), "yours sends 5, 7 and 9 blocks backward, and should send 3, 5 and 7"),  # noqa: E501
    ("ring_bytes", ((BOTH, "n_ranks // 2 * block, n_ranks * block"),), "yours sends 1, 1 and 2 blocks forward"),  # noqa: E501
)  # fmt: skip


@pytest.mark.parametrize(("name", "pairs", "said"), LAWS)
def test_a_slip_without_a_name_is_shown_on_a_law(name, pairs, said):
    with np.errstate(all="ignore"):
        verdict = judge(name, changed(name, *pairs))
    assert verdict.status == "law", verdict.text
    assert said in " ".join(verdict.text.split())


def test_in_half_the_numbers_are_said_to_be_coarse_and_no_law_is_blamed():
    def half(*args):
        return tuple(a.astype(np.float16) for a in get("ring_step").solution(*args))

    assert "It is float16" in judge("ring_step", half).text
