"""Lesson 11: answers as people write them, right and wrong, and what they are told."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from attnlib import attention, cost, masks
from attnlib.exercises import get, judge, names
from attnlib.exercises.lesson_11 import pieces_are_the_whole
from attnlib.nn import KVCache, MultiHeadAttention

LESSON = ("kv_bytes", "cached_step", "grouped_attention", "texts_that_fit")
attend = attention.scaled_dot_product
sdpa = torch.nn.functional.scaled_dot_product_attention


def test_the_lesson_has_these_exercises_and_their_minutes_fit_into_its_text():
    assert set(names(11)) == set(LESSON)
    assert sum(get(name).minutes for name in LESSON) == 28


def test_the_solution_is_what_the_library_does():
    """Against torch modules that were written apart from it."""
    generator = torch.Generator().manual_seed(3)
    module = MultiHeadAttention(8, 4, n_kv_heads=2, generator=generator).double()
    x = torch.randn(6, 8, generator=generator, dtype=torch.float64)
    step = get("cached_step").solution
    grouped = get("grouped_attention").solution
    cache, k, v = KVCache(), np.zeros((4, 0, 2)), np.zeros((4, 0, 2))
    with torch.no_grad():
        for piece in x.split([3, 1, 2]):
            s = module(piece, causal=True, cache=cache, return_stages=True)
            new = [a.numpy().repeat(2, axis=0)[:, -len(piece) :] for a in (s.k, s.v)]
            out, k, v = step(s.q.numpy(), *new, k, v)
            assert np.allclose(out, s.mixed.numpy(), atol=1e-12)
        s = module(x, return_stages=True)
        found = grouped(s.q.numpy(), s.k.numpy(), s.v.numpy())
    assert np.allclose(found, s.mixed.numpy(), atol=1e-12)


def test_the_bytes_are_those_of_the_library():
    count = get("kv_bytes").solution
    for m in cost.KNOWN_CACHES:
        if m.n_kv_heads:
            of_token = count(m.n_layers, m.n_heads, m.n_kv_heads, m.d_k, 1, 1, None)
            assert of_token == m.bytes_per_token
    args = (32, 32, 8, 128, 9000, 3, 4096)
    assert count(*args) == cost.cache_bytes(131072, 9000, batch=3, window=4096)


# --- right answers written another way --------------------------------------------
def step_by_loops(q, k, v, old_k, old_v):
    """Token by token: no mask is needed then."""
    keys, values, outs = old_k, old_v, []
    for i in range(q.shape[-2]):
        keys = np.concatenate((keys, k[..., i : i + 1, :]), -2)
        values = np.concatenate((values, v[..., i : i + 1, :]), -2)
        outs.append(attend(q[..., i : i + 1, :], keys, values).out)
    return np.concatenate(outs, -2), keys, values


def step_in_plain_numpy(q, k, v, old_k, old_v):
    keys, values = np.concatenate((old_k, k), -2), np.concatenate((old_v, v), -2)
    n_new, n = q.shape[-2], keys.shape[-2]
    scores = q @ np.swapaxes(keys, -1, -2) / math.sqrt(q.shape[-1])
    scores = np.where(np.tri(n_new, n, n - n_new, dtype=bool), scores, -np.inf)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ values, keys, values


def step_with_a_mask_for_several(q, k, v, old_k, old_v):
    keys, values = np.concatenate((old_k, k), -2), np.concatenate((old_v, v), -2)
    n = q.shape[-2]
    look = masks.causal(n, keys.shape[-2]) if n > 1 else None
    return [attend(q, keys, values, look).out, keys, values]


def step_with_padded_queries(q, k, v, old_k, old_v):
    """Asks for the old tokens too, and throws their rows away."""
    keys, values = np.concatenate((old_k, k), -2), np.concatenate((old_v, v), -2)
    n = keys.shape[-2]
    out = attend(np.concatenate((old_k, q), -2), keys, values, masks.causal(n, n)).out
    return out[..., n - q.shape[-2] :, :], keys, values


def step_with_a_billion(q, k, v, old_k, old_v):
    """No row is empty here, so -1e9 is low enough."""
    keys, values = np.concatenate((old_k, k), -2), np.concatenate((old_v, v), -2)
    scores = q @ np.swapaxes(keys, -1, -2) / q.shape[-1] ** 0.5
    look = masks.causal(q.shape[-2], keys.shape[-2])
    return attention.softmax(np.where(look, scores, -1e9)) @ values, keys, values


def grouped_by_repeat(q, k, v):
    group = q.shape[-3] // k.shape[-3]
    return attend(q, np.repeat(k, group, -3), np.repeat(v, group, -3)).out


def grouped_by_broadcast(q, k, v):
    *batch, n_heads, n, d = q.shape
    n_kv = k.shape[-3]
    cut = q.reshape(*batch, n_kv, n_heads // n_kv, n, d)
    out = attend(cut, k[..., :, None, :, :], v[..., :, None, :, :]).out
    return out.reshape(*batch, n_heads, n, -1)


def grouped_by_loop(q, k, v):
    group = q.shape[-3] // k.shape[-3]
    outs = [
        attend(q[..., h, :, :], k[..., h // group, :, :], v[..., h // group, :, :]).out
        for h in range(q.shape[-3])
    ]
    return np.stack(outs, axis=-3)


def grouped_by_einsum(q, k, v):
    *batch, n_heads, n, d = q.shape
    cut = q.reshape(*batch, k.shape[-3], -1, n, d)
    scores = np.einsum("...gaqd,...gkd->...gaqk", cut, k) / d**0.5
    e = np.exp(scores - scores.max(-1, keepdims=True))
    out = np.einsum("...gaqk,...gkd->...gaqd", e / e.sum(-1, keepdims=True), v)
    return out.reshape(*batch, n_heads, n, v.shape[-1])


def bytes_by_library(n_layers, n_heads, n_kv_heads, d_k, n, batch, window):
    per = cost.kv_bytes_per_token(n_layers, n_kv_heads, d_k)
    return cost.cache_bytes(per, n, batch=batch, window=window)


def bytes_by_ifs(n_layers, n_heads, n_kv_heads, d_k, n, batch, window):
    if window is not None and window < n:
        n = window
    return 4.0 * n_layers * n_kv_heads * d_k * n * batch


def step_in_torch(q, k, v, old_k, old_v):
    """Tensors inside, and tensors that come back."""
    q, k, v, old_k, old_v = (torch.as_tensor(a) for a in (q, k, v, old_k, old_v))
    keys, values = torch.cat([old_k, k], -2), torch.cat([old_v, v], -2)
    n_new, n = q.shape[-2], keys.shape[-2]
    look = torch.ones(n_new, n, dtype=torch.bool).tril(n - n_new)
    return sdpa(q, keys, values, attn_mask=look), keys, values


def step_with_one_softmax_in_two_parts(q, k, v, old_k, old_v):
    """The cache and the new tokens apart, with one common sum."""
    root = q.shape[-1] ** 0.5
    old = np.exp(q @ np.swapaxes(old_k, -1, -2) / root)
    new = np.exp(q @ np.swapaxes(k, -1, -2) / root) * np.tri(k.shape[-2])
    total = old.sum(-1, keepdims=True) + new.sum(-1, keepdims=True)
    joined = np.concatenate((old_k, k), -2), np.concatenate((old_v, v), -2)
    return (old @ old_v + new @ v) / total, *joined


def step_with_the_last_rows_of_a_square(q, k, v, old_k, old_v):
    keys, values = np.concatenate((old_k, k), -2), np.concatenate((old_v, v), -2)
    n = keys.shape[-2]
    return attend(q, keys, values, masks.causal(n, n)[-q.shape[-2] :]).out, keys, values


def step_in_float32(q, k, v, old_k, old_v):
    return step()(*(a.astype(np.float32) for a in (q, k, v, old_k, old_v)))


def grouped_by_sdpa(q, k, v):
    return sdpa(*map(torch.as_tensor, (q, k, v)), enable_gqa=True)


def grouped_by_split(q, k, v):
    n_kv = k.shape[-3]
    parts = zip(*(np.split(a, n_kv, axis=-3) for a in (q, k, v)), strict=True)
    return np.concatenate([attend(*part).out for part in parts], axis=-3)


def grouped_as_a_list(q, k, v):
    return grouped_by_repeat(q, k, v).tolist()


def bytes_of_an_array(n_layers, n_heads, n_kv_heads, d_k, n, batch, window):
    """`np.empty` asks for no memory that it does not touch."""
    shape = n_layers, 2, batch, n_kv_heads, min(n, window or n), d_k
    return np.empty(shape, np.float16).nbytes


def bytes_as_a_tensor(n_layers, n_heads, n_kv_heads, d_k, n, batch, window):
    kept = n if window is None else min(n, window)
    return torch.tensor(4 * n_layers * n_kv_heads * d_k * kept * batch)


RIGHT = [
    ("cached_step", step_in_torch),
    ("cached_step", step_with_one_softmax_in_two_parts),
    ("cached_step", step_with_the_last_rows_of_a_square),
    ("cached_step", step_in_float32),
    ("grouped_attention", grouped_by_sdpa),
    ("grouped_attention", grouped_by_split),
    ("grouped_attention", grouped_as_a_list),
    ("kv_bytes", bytes_of_an_array),
    ("kv_bytes", bytes_as_a_tensor),
    ("cached_step", step_with_a_billion),
    ("cached_step", step_by_loops),
    ("cached_step", step_in_plain_numpy),
    ("cached_step", step_with_a_mask_for_several),
    ("cached_step", step_with_padded_queries),
    ("grouped_attention", grouped_by_repeat),
    ("grouped_attention", grouped_by_broadcast),
    ("grouped_attention", grouped_by_loop),
    ("grouped_attention", grouped_by_einsum),
    ("kv_bytes", bytes_by_library),
    ("kv_bytes", bytes_by_ifs),
]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("name", "answer"), RIGHT)
def test_another_right_way_passes(name, answer, seed):
    verdict = judge(name, answer, seed)
    assert verdict.passed, verdict.text


@pytest.mark.parametrize("value", [20, 20.0, np.int64(20), np.array(20)])
def test_twenty_texts_fit(value):
    assert judge("texts_that_fit", value).passed


# --- wrong answers, as people write them ------------------------------------------
def step(look=masks.causal, old_first=True, kept=None, axis=-2, q_times=1.0):
    """A step with one part replaced."""

    def cached_step(q, k, v, old_k, old_v):
        pairs = ((old_k, k), (old_v, v))
        keys, values = (
            np.concatenate(pair if old_first else pair[::-1], axis) for pair in pairs
        )
        seen = look(q.shape[-2], keys.shape[-2]) if look else None
        out = attend(q * q_times, keys, values, seen).out
        return (out, keys, values) if kept is None else (out, *kept(keys, values, k, v))

    return cached_step


def new_only(q, k, v, old_k, old_v):
    n = q.shape[-2]
    out = attend(q, k, v, masks.causal(n, n)).out
    return out, np.concatenate((old_k, k), -2), np.concatenate((old_v, v), -2)


def old_only(q, k, v, old_k, old_v):
    out = attend(q, old_k, old_v).out
    return out, np.concatenate((old_k, k), -2), np.concatenate((old_v, v), -2)


def by_hand(weigh):
    """In plain NumPy, with a mask that is used in some way of its own."""

    def cached_step(q, k, v, old_k, old_v):
        keys, values = np.concatenate((old_k, k), -2), np.concatenate((old_v, v), -2)
        scores = q @ np.swapaxes(keys, -1, -2) / np.sqrt(q.shape[-1])
        look = masks.causal(q.shape[-2], keys.shape[-2])
        return weigh(scores, look) @ values, keys, values

    return cached_step


def new_first_throughout(q, k, v, old_k, old_v):
    """Right numbers, and a cache in an order that the next call does not expect."""
    keys, values = np.concatenate((k, old_k), -2), np.concatenate((v, old_v), -2)
    n = q.shape[-2]
    look = np.ones((n, keys.shape[-2]), bool)
    look[:, :n] = np.tri(n, dtype=bool)
    return attend(q, keys, values, look).out, keys, values


def mask_at_start(q, k, v, old_k, old_v):
    return step(None if old_k.shape[-2] else masks.causal)(q, k, v, old_k, old_v)


def sizes_from_the_front(q, k, v, old_k, old_v):
    keys, values = np.concatenate((old_k, k), -2), np.concatenate((old_v, v), -2)
    return attend(q, keys, values, masks.causal(len(q), len(keys))).out, keys, values


def never_scaled(q, k, v, old_k, old_v):
    return step()(q * q.shape[-1] ** 0.5, k, v, old_k, old_v)


def triangle_too(n_new, n):
    parts = [np.tri(n_new, n - n_new, dtype=bool), np.tri(n_new, dtype=bool)]
    return np.concatenate(parts, axis=-1)


def two_softmaxes(share):
    """One over the cache, one over the new tokens."""

    def cached_step(q, k, v, old_k, old_v):
        of_new = attend(q, k, v, masks.causal(q.shape[-2], q.shape[-2])).out
        out = share * (attend(q, old_k, old_v).out + of_new)
        return out, np.concatenate((old_k, k), -2), np.concatenate((old_v, v), -2)

    return cached_step


def cache_then_out(q, k, v, old_k, old_v):
    out, keys, values = step()(q, k, v, old_k, old_v)
    return keys, values, out


def _over_all(scores):
    e = np.exp(scores)
    return e / e.sum()


def _over_rows(scores):
    e = np.exp(scores)
    return e / e.sum(axis=-2, keepdims=True)


def folded(weigh=attention.softmax, cut=None):
    """The queries of a group below each other, with one part replaced."""

    def grouped_attention(q, k, v):
        *batch, n_heads, n, d = q.shape
        rows = q.reshape(*batch, k.shape[-3], -1, d)
        out = weigh(rows @ np.swapaxes(k, -1, -2) / np.sqrt(d)) @ v
        shape = *batch, n_heads, n, v.shape[-1]
        return cut(out, shape) if cut else out.reshape(shape)

    return grouped_attention


def tokens_then_heads(out, shape):
    *batch, n_heads, n, d = shape
    return np.swapaxes(out.reshape(*batch, n, n_heads, d), -3, -2)


def keys_in_one_table(q, k, v):
    k, v = (a.reshape(*a.shape[:-3], 1, -1, a.shape[-1]) for a in (k, v))
    return attend(q, k, v).out


def fewer_queries(q, k, v):
    return attend(q[..., : k.shape[-3], :, :], k, v).out


def mean_queries(q, k, v):
    *batch, _, n, d = q.shape
    return attend(q.reshape(*batch, k.shape[-3], -1, n, d).mean(axis=-3), k, v).out


def is_causal(q, k, v):
    tensors = map(torch.as_tensor, (q, k, v))
    return sdpa(*tensors, enable_gqa=True, is_causal=True)


def grouped(key_of=None, value_of=None, fold=None, unfold=None):
    """Grouped attention with one part replaced."""

    def grouped_attention(q, k, v):
        *batch, n_heads, n, _ = q.shape
        n_kv = k.shape[-3]
        heads, group = np.arange(n_heads), n_heads // n_kv
        of_k = key_of(heads, n_kv, group) if key_of else heads // group
        of_v = value_of(heads, n_kv, group) if value_of else of_k
        if fold:
            q = fold(q, n_kv, group)
        out = attend(q, np.take(k, of_k, -3), np.take(v, of_v, -3)).out
        cut = out.reshape(*batch, n_kv, group, n, v.shape[-1])
        return unfold(cut) if unfold else out

    return grouped_attention


def tiled(heads, n_kv, group):
    return heads % n_kv


def in_order(heads, n_kv, group):
    return heads // group


def tokens_first(q, n_kv, group):
    return np.swapaxes(q, -3, -2).reshape(q.shape)


def by_stride(q, n_kv, group):
    *batch, _, n, d = q.shape
    cut = q.reshape(*batch, group, n_kv, n, d)
    return np.swapaxes(cut, -4, -3).reshape(q.shape)


def joined(cut, *order):
    *batch, n_kv, group, n, d = cut.shape
    return np.swapaxes(cut, *order).reshape(*batch, n_kv * group, n, d)


def counts(formula):
    def kv_bytes(n_layers, n_heads, n_kv_heads, d_k, n, batch, window):
        kept = n if window is None else min(n, window)
        return formula(n_layers, n_heads, n_kv_heads, d_k, n, batch, window, kept)

    return kv_bytes


WRONG = [
    ("cached_step", step(None), {"causal_missing"}),
    (
        "cached_step",
        step(lambda a, b: np.tri(a, b, dtype=bool)),
        {"aligned_top_left"},
    ),
    ("cached_step", step(lambda a, b: ~masks.causal(a, b)), {"triu_shifted"}),
    ("cached_step", step(old_first=False), {"cache_new_first"}),
    ("cached_step", step(axis=0), {"cache_first_axis"}),
    ("cached_step", step(kept=lambda keys, values, k, v: (k, v)), {"kept_new_only"}),
    (
        "cached_step",
        step(kept=lambda keys, values, k, v: (keys, keys)),
        {"kept_keys_twice"},
    ),
    (
        "cached_step",
        step(kept=lambda keys, values, k, v: (values, keys)),
        {"kept_swapped"},
    ),
    (
        "cached_step",
        step(kept=lambda keys, values, k, v: (keys[..., 1:, :], values[..., 1:, :])),
        {"kept_first_dropped"},
    ),
    ("cached_step", new_only, {"cache_hidden"}),
    ("cached_step", old_only, {"cache_own_missing"}),
    ("cached_step", new_first_throughout, {"kept_new_first"}),
    (
        "cached_step",
        by_hand(lambda s, look: attention.softmax(s * look)),
        {"mask_fill_zero"},
    ),
    (
        "cached_step",
        by_hand(lambda s, look: attention.softmax(s) * look),
        {"mask_after"},
    ),
    (
        "cached_step",
        by_hand(lambda s, look: attention.softmax(s + look)),
        {"mask_added"},
    ),
    (
        "cached_step",
        by_hand(lambda s, look: attention.softmax(np.where(look, s, -10))),
        {"mask_fill_10"},
    ),
    ("cached_step", mask_at_start, {"causal_at_start_only"}),
    ("cached_step", sizes_from_the_front, {"cache_sizes_in_front"}),
    ("cached_step", step(triangle_too), {"cache_triangle_too"}),
    (
        "cached_step",
        step(lambda a, b: np.tri(a, b, a, dtype=bool)),
        {"offset_is_n_new"},
    ),
    (
        "cached_step",
        step(lambda a, b: np.triu(np.ones((a, b), bool))),
        {"mirrored_top_left"},
    ),
    ("cached_step", two_softmaxes(1.0), {"parts_added"}),
    ("cached_step", two_softmaxes(0.5), {"parts_averaged"}),
    ("cached_step", cache_then_out, {"kept_before_out"}),
    (
        "cached_step",
        by_hand(lambda s, look: _over_all(np.where(look, s, -np.inf))),
        {"axis_all"},
    ),
    (
        "grouped_attention",
        folded(cut=tokens_then_heads),
        {"group_unfolded_tokens_first"},
    ),
    ("grouped_attention", folded(weigh=_over_rows), {"axis_folded_rows"}),
    ("grouped_attention", keys_in_one_table, {"kv_heads_joined"}),
    ("grouped_attention", fewer_queries, {"group_queries_dropped"}),
    ("grouped_attention", mean_queries, {"group_mean_alone"}),
    ("grouped_attention", is_causal, {"causal_unasked_top_left"}),
    (
        "grouped_attention",
        grouped(lambda h, n_kv, group: 0 * h + n_kv - 1),
        {"kv_head_last_only"},
    ),
    (
        "grouped_attention",
        grouped(lambda h, n_kv, group: 0 * h, in_order),
        {"kv_keys_first_only"},
    ),
    (
        "grouped_attention",
        grouped(in_order, lambda h, n_kv, group: 0 * h),
        {"kv_values_first_only"},
    ),
    (
        "kv_bytes",
        counts(
            lambda lay, h, kv, d, n, b, w, kept: lay * (4 * kv + 2 * h) * d * kept * b
        ),
        {"cache_all_queries"},
    ),
    (
        "kv_bytes",
        counts(lambda lay, h, kv, d, n, b, w, kept: 2 * lay * h * n * kept * b),
        {"cache_of_scores"},
    ),
    (
        "kv_bytes",
        counts(lambda lay, h, kv, d, n, b, w, kept: 4 * lay * kv * d * kept * kept * b),
        {"cache_squared_in_window"},
    ),
    (
        "kv_bytes",
        counts(
            lambda lay, h, kv, d, n, b, w, kept: (
                2 * lay * kv * d * kept * (kept + 1) * b
            )
        ),
        {"cache_read_so_far"},
    ),
    (
        "kv_bytes",
        counts(lambda lay, h, kv, d, n, b, w, kept: 4 * lay * kv * (d // h) * kept * b),
        {"cache_split_over_heads"},
    ),
    (
        "kv_bytes",
        counts(
            lambda lay, h, kv, d, n, b, w, kept: 4 * lay * kv * d * kept * b // 1024
        ),
        {"cache_in_kib"},
    ),
    (
        "kv_bytes",
        counts(
            lambda lay, h, kv, d, n, b, w, kept: 4 * lay * kv * d * min(n, w or 0) * b
        ),
        {"window_none_is_zero"},
    ),
    (
        "kv_bytes",
        counts(
            lambda lay, h, kv, d, n, b, w, kept: (
                4 * lay * kv * d * (n % w if w else n) * b
            )
        ),
        {"window_remainder"},
    ),
    (
        "kv_bytes",
        counts(
            lambda lay, h, kv, d, n, b, w, kept: (
                4 * lay * kv * d * min(n * b, w or n * b)
            )
        ),
        {"window_for_all_texts"},
    ),
    (
        "kv_bytes",
        counts(
            lambda lay, h, kv, d, n, b, w, kept: (
                4 * lay * kv * d * min(n, lay * w if w else n) * b
            )
        ),
        {"window_times_layers"},
    ),
    ("cached_step", never_scaled, {"scale_missing"}),
    ("grouped_attention", grouped(tiled), {"kv_heads_tiled"}),
    ("grouped_attention", grouped(tiled, in_order), {"kv_keys_tiled"}),
    ("grouped_attention", grouped(in_order, tiled), {"kv_values_tiled"}),
    (
        "grouped_attention",
        grouped(lambda h, n_kv, group: 0 * h),
        {"kv_head_first_only"},
    ),
    (
        "grouped_attention",
        grouped(lambda h, n_kv, group: n_kv - 1 - h // group),
        {"kv_heads_reversed"},
    ),
    (
        "grouped_attention",
        grouped(lambda h, n_kv, group: np.minimum(h // n_kv, n_kv - 1)),
        {"kv_group_is_count"},
    ),
    ("grouped_attention", grouped(fold=tokens_first), {"group_tokens_first"}),
    ("grouped_attention", grouped(fold=by_stride), {"group_folded_by_stride"}),
    (
        "grouped_attention",
        grouped(unfold=lambda cut: joined(cut, -4, -3)),
        {"group_heads_permuted"},
    ),
    (
        "grouped_attention",
        grouped(unfold=lambda cut: cut.mean(axis=-3)),
        {"group_out_mean"},
    ),
    ("grouped_attention", grouped(unfold=lambda cut: cut), {"group_axis_kept"}),
    (
        "grouped_attention",
        grouped(unfold=lambda cut: cut[..., 0, :, :]),
        {"group_out_first"},
    ),
    (
        "kv_bytes",
        counts(lambda lay, h, kv, d, n, b, w, kept: 4 * lay * h * d * kept * b),
        {"cache_all_heads"},
    ),
    (
        "kv_bytes",
        counts(lambda lay, h, kv, d, n, b, w, kept: 2 * lay * kv * d * kept * b),
        {"cache_half"},
    ),
    (
        "kv_bytes",
        counts(lambda lay, h, kv, d, n, b, w, kept: lay * kv * d * kept * b),
        {"cache_quarter"},
    ),
    (
        "kv_bytes",
        counts(lambda lay, h, kv, d, n, b, w, kept: 8 * lay * kv * d * kept * b),
        {"cache_double"},
    ),
    (
        "kv_bytes",
        counts(lambda lay, h, kv, d, n, b, w, kept: 4 * kv * d * kept * b),
        {"cache_one_layer"},
    ),
    (
        "kv_bytes",
        counts(lambda lay, h, kv, d, n, b, w, kept: 4 * lay * kv * d * kept),
        {"cache_one_text"},
    ),
    (
        "kv_bytes",
        counts(lambda lay, h, kv, d, n, b, w, kept: 4 * lay * kv * d * n * b),
        {"window_not_used"},
    ),
    (
        "kv_bytes",
        counts(lambda lay, h, kv, d, n, b, w, kept: 4 * lay * kv * d * (w or n) * b),
        {"window_always_full"},
    ),
    (
        "kv_bytes",
        counts(
            lambda lay, h, kv, d, n, b, w, kept: 4 * lay * kv * d * kept * b / 2**30
        ),
        {"cache_in_gib"},
    ),
    (
        "kv_bytes",
        counts(lambda lay, h, kv, d, n, b, w, kept: 4 * lay * kv * d * n * n * b),
        {"cache_squared"},
    ),
    (
        "kv_bytes",
        counts(lambda lay, h, kv, d, n, b, w, kept: 2 * lay * h * d * kept * b),
        {"cache_all_heads", "cache_half"},
    ),
]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("name", "answer", "keys"), WRONG)
def test_a_wrong_answer_is_named(name, answer, keys, seed):
    verdict = judge(name, answer, seed)
    assert {m.key for m in verdict.mistakes} == keys, verdict.text


def test_all_axes_turned_over_is_no_axis_of_the_cache():
    """`.T` works without a batch, too. It is another mistake than joining along 0."""

    def turned(q, k, v, old_k, old_v):
        keys, values = np.concatenate((old_k, k), -2), np.concatenate((old_v, v), -2)
        scores = q @ keys.T / np.sqrt(q.shape[-1])
        look = masks.causal(q.shape[-2], keys.shape[-2])
        return (
            attention.softmax(np.where(look, scores, -np.inf)) @ values,
            keys,
            values,
        )

    verdict = judge("cached_step", turned)
    assert verdict.status == "raised"
    assert "swapaxes" in verdict.text


def test_nothing_but_nan_is_not_taken_for_two_mistakes():
    verdict = judge("grouped_attention", lambda q, k, v: np.full_like(q, np.nan))
    assert not verdict.passed
    assert not verdict.mistakes


def test_one_byte_too_many_is_seen():
    def one_more(n_layers, n_heads, n_kv_heads, d_k, n, batch, window):
        args = n_layers, n_heads, n_kv_heads, d_k, n, batch, window
        return get("kv_bytes").solution(*args) + 1

    assert not judge("kv_bytes", one_more).passed


def test_of_a_large_result_the_row_that_differs_is_shown():
    """An array of 126 numbers has too many to print, and its shape says nothing."""

    def wrong_in_large_ones(q, k, v):
        out = grouped_by_repeat(q, k, v)
        return out**3 if out.size > 60 else out

    said = judge("grouped_attention", wrong_in_large_ones).text
    assert "yours[0, 0] = [" in said
    assert "expected[0, 0] = [" in said


def test_the_softmax_over_everything_is_shown_on_more_than_one_row():
    answer = by_hand(lambda s, look: _over_all(np.where(look, s, -np.inf)))
    assert "your rows to 1;" not in judge("cached_step", answer).text


def test_a_mistake_without_a_name_breaks_a_law():
    """An answer that forgets what lies more than four tokens back."""

    def forgets(q, k, v, old_k, old_v):
        return step()(q, k, v, old_k[..., -1:, :], old_v[..., -1:, :])

    assert pieces_are_the_whole(get("cached_step").solution) is None
    said = pieces_are_the_whole(forgets)
    assert said is not None
    assert "in pieces of 2, 3 and 1" in said


def test_a_shape_that_does_not_fit_is_said_with_its_names():
    def nothing_shared(q, k, v):
        return attend(q, k, v).out

    def out_only(q, k, v, old_k, old_v):
        return step()(q, k, v, old_k, old_v)[0]

    assert "q has n_heads tables" in judge("grouped_attention", nothing_shared).text
    assert "return out, keys, values" in judge("cached_step", out_only).text


@pytest.mark.parametrize(
    ("value", "word"),
    [
        (4, "40 key heads"),
        (40, "Half"),
        (80, "Two factors"),
        (10, "float32"),
        (5, "Too many bytes"),
        (80 / 15, "40 key heads, and in all 80"),
        (60 / 18, "are added"),
        (2, "in float32, or in bits"),
        (2.5, "in bits"),
        (1, "float64"),
        (8, "factor of 2"),
        (32, "size of a group"),
        (13, "Queries are counted"),
        (80 / 3, "80 GiB"),
        (53, "80 GiB"),
        (33, "bring no room"),
        (18, "GB"),
        (60, "are left"),
        (3 * 2**30, "bytes one text"),
        (196608, "bytes one token"),
        (0.05, "share"),
        (0.5, "are multiplied"),
        (26.67, "80 GiB"),
        (5.33, "40 key heads, and in all 80"),
        (21, "room for more"),
        (960, "One layer"),
        (160, "One key head"),
        (327680, "tokens fit"),
        (26, "80 GiB"),
        (27, "80 GiB"),
        (3, "GiB one text"),
        (19, "3 GiB"),
        (7, "not it"),
        ("20", "text in quotes"),
    ],
)
def test_another_number_of_texts_is_told_why(value, word):
    verdict = judge("texts_that_fit", value)
    assert not verdict.passed
    assert word in verdict.text
    assert "20 texts" not in verdict.text
