"""Lesson 13: answers as people write them, right and wrong, and what they are told."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from attnlib import attention, cost, lowrank, masks, sparse
from attnlib.exercises import get, growth, judge, names
from attnlib.exercises.judging import judge_function
from attnlib.exercises.lesson_13 import _COUNTS, _PAIRS, _REASONS, _RIGHT
from attnlib.nn import window_attention as window_of_torch

LESSON = ("oldest_token", "window_attention", "two_levels", "ten_thousand")
INF = np.inf
attend = attention.scaled_dot_product
softmax = attention.softmax


def test_the_lesson_has_these_exercises_and_their_minutes_fit_into_its_text():
    assert set(names(13)) == set(LESSON)
    assert sum(get(name).minutes for name in LESSON) == 28


def test_the_solutions_are_what_the_library_does():
    rng = np.random.default_rng(5)
    q, k = rng.normal(size=(2, 11, 4))
    v = rng.normal(size=(11, 3))
    found = get("window_attention").solution(q, k, v, 4)
    np.testing.assert_allclose(found, sparse.window(q, k, v, left=3).out, atol=1e-12)
    tensors = (torch.from_numpy(a)[None] for a in (q, k, v))
    np.testing.assert_allclose(found, window_of_torch(*tensors, left=3)[0], atol=1e-12)
    for width in (3, 4, 11):
        both = lowrank.hierarchical(v, width=width).out
        mine = get("two_levels").solution(v, width)
        np.testing.assert_allclose(mine, both, atol=1e-12)


@pytest.mark.parametrize("n_layers", [1, 2, 3])
@pytest.mark.parametrize("width", [1, 2, 5])
def test_the_oldest_token_is_the_first_in_reach(n_layers, width):
    seen = sparse.reach(masks.window(12, left=width - 1), n_layers)
    oldest = get("oldest_token").solution
    for position in range(12):
        assert oldest(position, n_layers, width) == seen[position].argmax()


# --- the windows, written another way ----------------------------------------------
def query_by_query(q, k, v, width):
    out = []
    for i in range(len(q)):
        near = slice(max(0, i - width + 1), i + 1)
        out.append(attend(q[i : i + 1], k[near], v[near]).out[0])
    return np.stack(out)


def in_two_loops(q, k, v, width):
    out = np.zeros((len(q), v.shape[1]))
    for i in range(len(q)):
        near = range(max(0, i - width + 1), i + 1)
        scores = [float(q[i] @ k[j]) / math.sqrt(q.shape[1]) for j in near]
        e = [math.exp(score - max(scores)) for score in scores]
        for j, weight in zip(near, e, strict=True):
            out[i] += weight / sum(e) * v[j]
    return out


def neighbour_by_neighbour(q, k, v, width):
    n = len(q)
    scores = np.full((n, width), -INF)
    for c in range(width):
        scores[c:, c] = (q[c:] * k[: n - c]).sum(axis=-1) / np.sqrt(q.shape[-1])
    weights = softmax(scores)
    out = np.zeros((n, v.shape[-1]))
    for c in range(width):
        out[c:] += weights[c:, c, None] * v[: n - c]
    return out


def query_by_query_of_plain_arrays(q, k, v, width):
    return query_by_query(*(np.array(a) for a in (q, k, v)), width)


def by_einsum(q, k, v, width):
    near = np.arange(len(q))[:, None] + np.arange(1 - width, 1)
    scores = np.einsum("id,iwd->iw", q, k[near]) / q.shape[-1] ** 0.5
    scores[near < 0] = -INF
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.einsum("iw,iwd->id", e / e.sum(axis=-1, keepdims=True), v[near])


def by_padding(q, k, v, width):
    pad = ((width - 1, 0), (0, 0))
    k, v = np.pad(k, pad), np.pad(v, pad)
    near = np.arange(len(q))[:, None] + np.arange(width)
    scores = (k[near] @ q[:, :, None])[..., 0] / np.sqrt(q.shape[1])
    weights = softmax(np.where(near < width - 1, -INF, scores))
    return (weights[:, None] @ v[near])[:, 0]


def by_views(q, k, v, width):
    view = np.lib.stride_tricks.sliding_window_view
    k, v = (np.concatenate([np.zeros((width - 1, a.shape[1])), a]) for a in (k, v))
    k, v = (view(a, width, axis=0).swapaxes(1, 2) for a in (k, v))
    there = np.arange(len(q))[:, None] >= width - 1 - np.arange(width)
    scores = np.where(there, (k * q[:, None]).sum(-1) / q.shape[1] ** 0.5, -1e30)
    return np.matmul(softmax(scores)[:, None], v)[:, 0]


def in_blocks(q, k, v, width):
    """Slabs: a block of queries, its keys, and a small mask."""
    out = []
    for start in range(0, len(q), 50):
        stop = min(start + 50, len(q))
        first = max(0, start - width + 1)
        ahead = np.arange(first, stop) - np.arange(start, stop)[:, None]
        look = (ahead <= 0) & (ahead > -width)
        out.append(attend(q[start:stop], k[first:stop], v[first:stop], look).out)
    return np.concatenate(out)


def by_the_library(q, k, v, width):
    return sparse.window(q, k, v, left=width - 1).out


def by_torch(q, k, v, width):
    tensors = (torch.as_tensor(np.asarray(a)) for a in (q, k, v))
    return window_of_torch(*tensors, left=width - 1)


@pytest.mark.parametrize(
    "answer",
    [
        query_by_query,
        query_by_query_of_plain_arrays,
        in_two_loops,
        neighbour_by_neighbour,
        by_einsum,
        by_padding,
        by_views,
        in_blocks,
        by_the_library,
        by_torch,
    ],
)
def test_another_right_window_passes(answer):
    verdict = judge("window_attention", answer)
    assert verdict.passed, verdict.text


def window(
    near=lambda n, width: np.arange(n)[:, None] - np.arange(width),
    hide=lambda scores, near: np.where(near >= 0, scores, -INF),
    weigh=softmax,
    divide=lambda q, k, v, width: np.sqrt(q.shape[1]),
    mixed=lambda q, k, v: v,
    other=lambda near: near,
    last=lambda out, width: out,
):
    """The solution with one part replaced."""

    def window_attention(q, k, v, width):
        places = near(len(q), width)
        scores = (q[:, None] * k[places]).sum(axis=-1) / divide(q, k, v, width)
        weights = weigh(hide(scores, places))
        out = (weights[:, :, None] * mixed(q, k, v)[other(places)]).sum(axis=1)
        return last(out, width)

    return window_attention


def unguarded(scores):
    e = np.exp(scores)
    return e / e.sum(axis=-1, keepdims=True)


def shifted(n, width):
    return np.maximum(np.arange(n) - width + 1, 0)[:, None] + np.arange(width)


def emptied(out, width):
    out[: width - 1] = 0
    return out


def zeros_before(q, k, v, width):
    pad = ((width - 1, 0), (0, 0))
    k, v = np.pad(k, pad), np.pad(v, pad)
    near = np.arange(len(q))[:, None] + np.arange(width)
    scores = (k[near] * q[:, None]).sum(-1) / np.sqrt(q.shape[1])
    return (softmax(scores)[:, :, None] * v[near]).sum(axis=1)


def masked_by(look):
    def window_attention(q, k, v, width):
        return attend(q, k, v, look(len(q), width)).out

    return window_attention


ahead = lambda n: np.arange(n) - np.arange(n)[:, None]  # noqa: E731


def hidden_after(q, k, v, width):
    near = np.arange(len(q))[:, None] - np.arange(width)
    weights = softmax((q[:, None] * k[near]).sum(axis=-1) / q.shape[1] ** 0.5)
    return np.einsum("iw,iwd->id", np.where(near >= 0, weights, 0), v[near])


WINDOWS = [
    (hidden_after, "band_hidden_after"),
    (
        window(lambda n, w: np.arange(n)[:, None] - np.arange(min(w + 1, n))),
        "window_one_more",
    ),
    (masked_by(lambda n, w: masks.window(n, left=w)), "window_one_more"),
    (
        window(lambda n, w: np.arange(n)[:, None] - np.arange(max(w - 1, 0))),
        "window_one_less",
    ),
    (
        masked_by(lambda n, w: masks.window(n, left=w // 2, right=w // 2)),
        "band_centred_wide",
    ),
    (masked_by(lambda n, w: np.abs(ahead(n)) <= (w - 1) // 2), "band_centred"),
    (masked_by(lambda n, w: np.abs(ahead(n)) < w), "window_two_sided"),
    (masked_by(lambda n, w: masks.causal(n)), "window_missing"),
    (masked_by(lambda n, w: ahead(n) > -w), "window_not_causal"),
    (masked_by(lambda n, w: (ahead(n) >= 0) & (ahead(n) < w)), "window_ahead"),
    (
        masked_by(lambda n, w: masks.window(n, left=w - 1) & (ahead(n) != 0)),
        "window_self_hidden",
    ),
    (window(hide=lambda s, near: s), "band_wraps"),
    (
        window(
            lambda n, w: np.maximum(np.arange(n)[:, None] - np.arange(w), 0),
            hide=lambda s, near: s,
        ),
        "band_clipped",
    ),
    (window(shifted), "band_shifted_at_start"),
    (zeros_before, "band_zeros_counted"),
    (
        window(hide=lambda s, near: np.where(near >= 0, s, 0)),
        "band_zero_scores_wrapped",
    ),
    (window(hide=lambda s, near: s * (near >= 0)), "band_zero_scores_wrapped"),
    (window(last=lambda out, w: out[w - 1 :]), "band_first_rows_missing"),
    (window(last=emptied), "band_first_rows_empty"),
    (window(divide=lambda q, k, v, w: 1), "scale_missing"),
    (window(divide=lambda q, k, v, w: q.shape[1]), "scale_d_k"),
    (window(divide=lambda q, k, v, w: q.shape[1] ** -0.5), "scale_multiplied"),
    (window(divide=lambda q, k, v, w: len(q) ** 0.5), "scale_n_k"),
    (window(divide=lambda q, k, v, w: v.shape[1] ** 0.5), "scale_d_v"),
    (window(divide=lambda q, k, v, w: w**0.5), "scale_width"),
    (window(weigh=lambda s: softmax(s, axis=0)), "band_softmax_over_queries"),
    (window(weigh=lambda s: np.where(s == -INF, 0, s)), "softmax_missing"),
    (
        window(weigh=lambda s: np.exp(s - s.max(axis=-1, keepdims=True))),
        "not_normalised",
    ),
    (window(weigh=np.exp), "not_stable"),
    (window(weigh=unguarded), "not_stable"),
    (window(mixed=lambda q, k, v: k), "values_are_keys"),
    (window(mixed=lambda q, k, v: q), "values_are_queries"),
    (window(other=lambda near: near[:, ::-1]), "band_values_reversed"),
]


@pytest.mark.parametrize(("answer", "key"), WINDOWS)
def test_a_wrong_window_is_refused_and_named(answer, key):
    verdict = judge("window_attention", answer)
    assert verdict.status not in ("passed", "law")
    if key is not None:
        assert key in {m.key for m in verdict.mistakes}, verdict.text


# --- right numbers, and too much room or work --------------------------------------
def whole_table(q, k, v, width):
    return attend(q, k, v, masks.window(len(q), left=width - 1)).out


def table_of_truth(q, k, v, width):
    """Only the mask is n x n."""
    look = masks.window(len(q), left=width - 1)
    out = np.zeros((len(q), v.shape[1]))
    for i in range(len(q)):
        near = np.flatnonzero(look[i])
        out[i] = attend(q[i : i + 1], k[near], v[near]).out[0]
    return out


def row_by_row(q, k, v, width):
    out = np.zeros((len(q), v.shape[1]))
    for i in range(len(q)):
        scores = q[i] @ k.T / q.shape[1] ** 0.5
        near = slice(max(0, i - width + 1), i + 1)
        out[i] = softmax(scores[near]) @ v[near]
    return out


def row_by_row_with_dot(q, k, v, width):
    out = []
    for i in range(len(q)):
        scores = k.dot(q[i]) / q.shape[1] ** 0.5
        places = np.arange(len(q))
        hidden = (places > i) | (places <= i - width)
        out.append(softmax(np.where(hidden, -INF, scores)) @ v)
    return np.array(out)


def row_by_row_of_plain_arrays(q, k, v, width):
    q, k, v = (np.asarray(a) for a in (q, k, v))
    return row_by_row(q, k, v, width)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (whole_table, ("takes", "twice the room", "A table of n x n")),
        (table_of_truth, ("twice the room", "or of a mask")),
        (row_by_row, ("twice the work", "each query meets every key")),
        (row_by_row_with_dot, ("twice the work", "each query meets every key")),
        (row_by_row_of_plain_arrays, ("twice the work", "each query meets every key")),
    ],
)
def test_right_numbers_that_look_at_all_pairs_are_refused(answer, said):
    verdict = judge("window_attention", answer)
    assert verdict.status == "law", verdict.text
    assert "The numbers are right, but" in verdict.text
    for words in said[1:]:
        assert words in verdict.text


@pytest.mark.parametrize(
    ("law", "answer"), [(growth.ROOM, whole_table), (growth.WORK, row_by_row)]
)
def test_each_law_alone_refuses_what_passes_without_it(law, answer):
    lax = replace(get("window_attention"), laws=())
    assert judge_function(lax, answer).passed
    strict = replace(get("window_attention"), laws=(law,))
    assert judge_function(strict, answer).status == "law"
    assert judge_function(strict, in_blocks).passed


def test_a_meter_leaves_wrong_numbers_and_odd_results_to_others():
    run = growth.metered(lambda q, k, v, width: q)
    x = np.eye(3)
    assert run(x, x, x, 2) is x
    assert run(x, x, x, 2, True)[4:].tolist() == 2 * x.ravel().tolist()
    for law in (growth.ROOM, growth.WORK):
        assert not law.broken(lambda *args: None)
        assert not law.broken(lambda *args: (np.zeros(3),))


# --- two levels --------------------------------------------------------------------
def in_full_pieces(x, width):
    """Padding, a mask, one product."""
    n, d = x.shape
    n_pieces = -(-n // width)
    padded = np.zeros((n_pieces * width, d))
    padded[:n] = x
    real = (np.arange(n_pieces * width) < n).reshape(n_pieces, 1, width)
    cut = padded.reshape(n_pieces, width, d)
    local = attend(cut, cut, cut, np.broadcast_to(real, (n_pieces, width, width))).out
    counts = real.sum(axis=-1)
    means = (local * real.swapaxes(1, 2)).sum(axis=1) / counts
    local = local.reshape(-1, d)[:n]
    return local + attend(local, means, means).out


def under_a_mask(x, width):
    piece = np.arange(len(x)) // width
    local = attend(x, x, x, piece[:, None] == piece).out
    means = np.stack([local[piece == p].mean(0) for p in range(piece[-1] + 1)])
    return attend(local, means, means).out + local


def by_hand(x, width):
    def look(q, k):
        e = np.exp(q @ k.T / math.sqrt(q.shape[-1]))
        return e @ k / e.sum(axis=-1)[:, None]

    parts = [x[i : i + width] for i in range(0, len(x), width)]
    parts = [look(part, part) for part in parts]
    means = np.array([part.mean(axis=0) for part in parts])
    return np.concatenate([part + look(part, means) for part in parts])


def by_hierarchical(x, width):
    return lowrank.hierarchical(x, width=width).out


@pytest.mark.parametrize(
    "answer", [in_full_pieces, under_a_mask, by_hand, by_hierarchical]
)
def test_another_right_pair_of_levels_passes(answer):
    verdict = judge("two_levels", answer)
    assert verdict.passed, verdict.text


def changed(name, *pairs):
    """The solution with some words replaced."""
    source = get(name).solution_source
    for before, after in pairs:
        assert before in source
        source = source.replace(before, after)
    space = {"np": np, "attention": attention, "lowrank": lowrank}
    exec(source, space)
    return space[name]


LAST = "return local + attention.scaled_dot_product(local, means, means).out"
LEVELS = [
    ((LAST, "return lowrank.article_pooled(x).out"), "levels_article"),
    ((LAST, "return attend(means, local)"), "levels_queries_pooled"),
    ((LAST, "return attend(means, x)"), "levels_queries_pooled_x"),
    ((LAST, "return attend(means, means)"), "levels_means_only"),
    ((LAST, "return attend(local, means)"), "levels_far_only"),
    ((LAST, "return local"), "levels_local_only"),
    ((LAST, "return x + local + attend(local, means)"), "levels_residual"),
    ((LAST, "return x + attend(local, means)"), "levels_x_for_local"),
    ((LAST, "return (local + attend(local, means)) / 2"), "levels_halved"),
    ((LAST, "return local + attend(x, means)"), "levels_queries_are_x"),
    ((LAST, "return local + attend(local, local)"), "levels_keys_not_pooled"),
    ((LAST, "return np.hstack([local, attend(local, means)])"), "levels_side_by_side"),
    (("found.mean(axis=0)", "piece.mean(axis=0)"), "levels_means_of_x"),
    (("found.mean(axis=0)", "found.sum(axis=0)"), "levels_sums"),
    (("found.mean(axis=0)", "found.max(axis=0)"), "levels_largest"),
    (("found.mean(axis=0)", "found[0]"), "levels_first_tokens"),
    (("found.mean(axis=0)", "found[-1]"), "levels_last_tokens"),
    (("found.mean(axis=0)", "found.sum(axis=0) / width"), "levels_rest_diluted"),
    (
        ("found.mean(axis=0)", "np.full(x.shape[1], found.mean())"),
        "levels_one_number",
    ),
    (("found.mean(axis=0)", "found.mean(axis=1)"), None),
    (("found.mean(axis=0)", "found.mean()"), None),
    (
        ("range(0, len(x), width)", "range(0, len(x) - width + 1, width)"),
        "levels_rest_lost",
    ),
    (
        ("        rows.append", "        if len(piece) == width: rows.append"),
        "levels_rest_not_pooled",
    ),
    (
        ("    for start", "    width = -(-len(x) // width)\n    for start"),
        "levels_width_from_count",
    ),
    (
        ("product(piece, piece, piece)", "product(piece, x, x)"),
        "levels_local_full",
    ),
    (
        ("attention.scaled_dot_product(piece, piece, piece).out", "piece"),
        "levels_local_missing",
    ),
    (("= x[start : start + width]", "= x[start : start + width + 1]"), None),
    (
        (LAST, "return local + attention.softmax(local @ means.T) @ means"),
        "levels_far_unscaled",
    ),
    (
        (
            "attention.scaled_dot_product(piece, piece, piece).out",
            "attention.softmax(piece @ piece.T) @ piece",
        ),
        "levels_local_unscaled",
    ),
    (
        (
            "(piece, piece, piece)",
            "(piece, piece, piece, np.tri(len(piece)) > 0)",
        ),
        "levels_causal",
    ),
]


@pytest.mark.parametrize(("pair", "key"), LEVELS, ids=lambda x: str(x)[:60])
def test_wrong_levels_are_refused_and_named(pair, key):
    helper = (
        '    """\n    local',
        '    """\n    attend = lambda q, k: '
        "attention.scaled_dot_product(q, k, k).out\n    local",
    )
    verdict = judge("two_levels", changed("two_levels", helper, pair))
    assert not verdict.passed
    if key is not None:
        assert key in {m.key for m in verdict.mistakes}, verdict.text


def levels_of(pieces):
    local = [attend(piece, piece, piece).out for piece in pieces]
    means = np.stack([found.mean(axis=0) for found in local])
    local = np.concatenate(local)
    return local + attend(local, means, means).out


def filled_up(x, width):
    whole = np.pad(x, ((0, -len(x) % width), (0, 0)))
    return levels_of(whole.reshape(-1, width, x.shape[1]))[: len(x)]


def shared_out(x, width):
    return levels_of(np.array_split(x, -(-len(x) // width)))


@pytest.mark.parametrize(
    ("answer", "key"),
    [(filled_up, "levels_padded"), (shared_out, "levels_split_evenly")],
)
def test_a_rest_that_is_cut_otherwise_is_named(answer, key):
    verdict = judge("two_levels", answer)
    assert [m.key for m in verdict.mistakes] == [key], verdict.text


# --- the oldest token --------------------------------------------------------------
REACHES = [
    (lambda p, n, w: max(0, p - n * w), "reach_width_counted"),
    (lambda p, n, w: max(0, p - n * w + 1), "reach_width_less_one_once"),
    (lambda p, n, w: max(0, p - w + 1), "reach_one_layer"),
    (lambda p, n, w: p - n * (w - 1), "reach_not_cut"),
    (lambda p, n, w: n * (w - 1), "reach_is_distance"),
    (lambda p, n, w: min(p, n * (w - 1)), "reach_is_distance_cut"),
    (lambda p, n, w: min(p, n * (w - 1)) + 1, "reach_is_count"),
    (lambda p, n, w: max(0, p - (w - 1) ** n), "reach_power"),
    (lambda p, n, w: max(0, p - n * (w // 2)), "reach_half_width"),
    (lambda p, n, w: max(0, p - n * (w - 1) - 1), "reach_first_outside"),
    (lambda p, n, w: max(0, p - n * (w - 1) + 1), "reach_one_late"),
    (lambda p, n, w: max(0, p - (n - 1) * (w - 1)), "reach_layer_too_few"),
    (lambda p, n, w: max(0, p - 2 * n * (w - 1)), "reach_both_sides"),
    (lambda p, n, w: max(1, p - n * (w - 1)), "reach_cut_at_one"),
    (lambda p, n, w: abs(p - n * (w - 1)), None),
    (lambda p, n, w: (p - n * (w - 1)) % (p + 1), None),
    (lambda p, n, w: max(0, p - max(n, 1) * (w - 1)), None),  # no layers, no reach
    (lambda p, n, w: p, None),
    (lambda p, n, w: 0, None),
]


@pytest.mark.parametrize(("formula", "key"), REACHES)
def test_a_wrong_reach_is_refused_and_named(formula, key):
    def oldest_token(position, n_layers, width):
        return formula(position, n_layers, width)

    verdict = judge("oldest_token", oldest_token)
    assert not verdict.passed
    if key is not None:
        assert [m.key for m in verdict.mistakes] == [key], verdict.text


def test_the_reach_may_be_found_with_what_the_lesson_shows():
    def oldest_token(position, n_layers, width):
        look = masks.window(position + 1, left=width - 1)
        return int(sparse.reach(look, n_layers)[-1].argmax())

    verdict = judge("oldest_token", oldest_token)
    assert verdict.passed, verdict.text


def test_the_reach_may_be_found_by_a_walk():
    def oldest_token(position, n_layers, width):
        for _ in range(n_layers):
            position = position - (width - 1) if position >= width else 0
        return np.int64(position)

    assert judge("oldest_token", oldest_token).passed


# --- n = 10 000 --------------------------------------------------------------------
def right_answer(**other):
    return {c: (way, _PAIRS[way]) for c, way in _RIGHT.items()} | other


def test_the_pairs_are_those_of_the_masks():
    """Counted on shorter texts, and by the library on the long one."""
    near = masks.window(600, left=128, right=128)
    assert near.sum() == cost.allowed_pairs(600, left=128, right=128)
    hub = masks.global_tokens(600, n_global=1)
    assert (near | hub).sum() == near.sum() + 2 * (600 - 129)
    assert _PAIRS["window"] == 2_553_488
    assert _PAIRS["window and global"] == 2_573_230
    x = np.zeros((10_000, 1))
    found = sparse.window_and_global(x, x, x, left=128, right=128, n_global=1)
    assert found.n_pairs == _PAIRS["window and global"]


def test_each_choice_meets_the_demands_and_is_the_cheapest_that_does():
    assert 40 * 128 >= 5000 > 39 * 128
    assert 2 * 128 < 9999
    for customer in ("log", "search"):
        assert _PAIRS[_RIGHT[customer]] <= 3_000_000
    assert _PAIRS["pooled"] > 3_000_000 < _PAIRS["full"]


@pytest.mark.parametrize("customer", _RIGHT)
@pytest.mark.parametrize("way", _PAIRS)
def test_every_wrong_way_is_told_why(customer, way):
    answer = right_answer(**{customer: (way, _PAIRS[way])})
    verdict = judge("ten_thousand", answer)
    if way == _RIGHT[customer]:
        assert verdict.passed
    else:
        said = _REASONS[customer, way].format(c=customer)
        assert said in " ".join(verdict.text.split())


@pytest.mark.parametrize("customer", _COUNTS)
def test_a_wrong_count_is_told_why(customer):
    for pairs, said in _COUNTS[customer]:
        answer = right_answer(**{customer: (_RIGHT[customer], pairs)})
        text = " ".join(judge("ten_thousand", answer).text.split())
        assert said in text


@pytest.mark.parametrize(
    "answer",
    [
        {c: [way, float(_PAIRS[way])] for c, way in _RIGHT.items()},
        {c: (way.upper(), np.int64(_PAIRS[way])) for c, way in _RIGHT.items()},
    ],
)
def test_lists_floats_and_capitals_are_right_too(answer):
    assert judge("ten_thousand", answer).passed


def test_several_wrong_ones_are_pointed_at():
    wrong = ("linear", 0)
    verdict = judge("ten_thousand", right_answer(log=wrong, search=wrong))
    assert "log" in verdict.text
    assert "search" in verdict.text
    assert "contracts" not in verdict.text
    for answer in ({}, {"log": "window"}, "full", dict(_RIGHT)):
        assert not judge("ten_thousand", answer).passed
