"""Lesson 07: answers as people write them, right and wrong, and what they are told."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from attnlib import attention, heads
from attnlib.attention import scaled_dot_product, softmax
from attnlib.exercises import get, judge, names
from attnlib.nn import canvases

LESSON = ("cross_attention", "patches", "best_aligned_head")
FUNCTIONS = LESSON[:2]


def test_the_lesson_has_these_exercises_and_their_minutes_fit_into_its_hour():
    assert set(names(7)) == set(LESSON)
    assert sum(get(name).minutes for name in LESSON) == 22


@pytest.mark.parametrize("name", LESSON)
def test_the_solution_passes_and_the_stub_is_not_started(name):
    exercise = get(name)
    space = {"np": np, "attention": attention}
    exec(exercise.solution_source, space)
    assert judge(name, space[name]).passed
    exec(exercise.stub_source, space)
    assert judge(name, space[name]).status == "not started"


def turned(a):
    return np.swapaxes(a, -1, -2)


# --- right answers written another way --------------------------------------------
def by_steps(x, memory, W_q, W_k, W_v, mask=None):
    q, k, v = x @ W_q, memory @ W_k, memory @ W_v
    scores = q @ turned(k) / np.sqrt(W_q.shape[1])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores)
    return weights, weights @ v


def scaled_first(x, memory, W_q, W_k, W_v, mask=None):
    q = x @ (W_q / np.sqrt(W_q.shape[-1]))
    scores = np.einsum("...qd,...kd->...qk", q, memory @ W_k)
    hidden = np.zeros(scores.shape, bool) if mask is None else ~(scores * 0 + mask > 0)
    scores = np.where(hidden, -np.inf, scores)
    top = scores.max(-1, keepdims=True)
    e = np.exp(scores - np.where(np.isinf(top), 0, top))
    total = e.sum(-1, keepdims=True)
    weights = e / np.where(total == 0, 1, total)
    return weights, (weights @ memory) @ W_v


def as_one_head(x, memory, W_q, W_k, W_v, mask=None):
    mask = None if mask is None else np.expand_dims(mask, -3) if mask.ndim > 1 else mask
    eye = np.eye(W_v.shape[1])
    if x.shape[-1] != W_v.shape[1]:  # multi_head wants an output as wide as x
        return by_steps(
            x,
            memory,
            W_q,
            W_k,
            W_v,
            mask if mask is None or mask.ndim < 3 else mask[..., 0, :, :],
        )
    found = heads.multi_head(x, W_q, W_k, W_v, eye, 1, memory=memory, mask=mask)
    return found.weights[..., 0, :, :], found.out


def in_float32(x, memory, W_q, W_k, W_v, mask=None):
    single = (a.astype(np.float32) for a in (x, memory, W_q, W_k, W_v))
    return by_steps(*single, mask)


def as_list(*args):
    return list(by_steps(*args))


def patches_by_loop(image, size):
    rows = []
    for top in range(0, image.shape[0], size):
        for left in range(0, image.shape[1], size):
            rows.append(image[top : top + size, left : left + size].flatten())
    return np.array(rows)


def patches_by_einsum(image, size):
    h, w = image.shape
    cut = image.reshape(h // size, size, w // size, size)
    return np.einsum("abcd->acbd", cut).reshape(-1, size**2)


def patches_by_split(image, size):
    h, w = image.shape
    rows = [np.hsplit(r, w // size) for r in np.vsplit(image, h // size)]
    return np.stack([p.reshape(-1) for r in rows for p in r])


def patches_by_windows(image, size):
    windows = np.lib.stride_tricks.sliding_window_view(image, (size, size))
    return windows[::size, ::size].reshape(-1, size * size)


def patches_by_index(image, size):
    h, w = image.shape
    p = np.arange(h * w // size**2)[:, None]
    i = np.arange(size**2)[None]
    across = w // size
    return image[p // across * size + i // size, p % across * size + i % size]


def merged(x, memory, W_q, W_k, W_v, mask=None):
    scores = x @ (W_q @ W_k.T) @ turned(memory) * W_q.shape[-1] ** -0.5
    weights = softmax(scores if mask is None else np.where(mask, scores, -np.inf))
    return weights, weights @ memory @ W_v


@np.errstate(all="ignore")
def nan_mended(x, memory, W_q, W_k, W_v, mask=None):
    weights = np.nan_to_num(nan_in_empty_rows(x, memory, W_q, W_k, W_v, mask)[0])
    return weights, weights @ (memory @ W_v)


def by_loops(x, memory, W_q, W_k, W_v, mask=None):
    n_q, n_k = x.shape[-2], memory.shape[-2]
    weights = np.zeros((*x.shape[:-1], n_k))
    out = np.zeros((*x.shape[:-1], W_v.shape[1]))
    open_ = np.broadcast_to(True if mask is None else mask, weights.shape)
    for b in np.ndindex(*x.shape[:-2]):
        for i in range(n_q):
            seen = [j for j in range(n_k) if open_[b][i, j]]
            if not seen:
                continue
            q = x[b][i] @ W_q
            scores = [q @ (memory[b][j] @ W_k) / W_q.shape[1] ** 0.5 for j in seen]
            weights[b][i, seen] = softmax(scores)
            out[b][i] = sum(weights[b][i, j] * memory[b][j] @ W_v for j in seen)
    return weights, out


def by_torch(x, memory, W_q, W_k, W_v, mask=None):
    q, k, v = (torch.tensor(a) for a in (x @ W_q, memory @ W_k, memory @ W_v))
    scores = q @ k.mT / W_q.shape[1] ** 0.5
    seen = None if mask is None else torch.tensor(mask).expand(scores.shape)
    if seen is not None:
        scores = scores.masked_fill(~seen, -torch.inf)
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen)
    return scores.softmax(-1).nan_to_num(), out.nan_to_num()


def patches_by_fill(image, size):
    h, w = image.shape
    rows, number = np.empty((h * w // size**2, size**2)), 0
    for i in range(h // size):
        for j in range(w // size):
            square = image[i * size : (i + 1) * size, j * size : (j + 1) * size]
            rows[number] = square.reshape(-1)
            number += 1
    return rows


def patches_by_unfold(image, size):
    picture = torch.tensor(image)[None, None]
    return torch.nn.functional.unfold(picture, size, stride=size)[0].T


def patches_in_a_list(image, size):
    return [row.tolist() for row in patches_by_fill(image, size)]


RIGHT = [
    ("cross_attention", by_steps),
    ("cross_attention", merged),
    ("cross_attention", nan_mended),
    ("cross_attention", by_loops),
    ("cross_attention", by_torch),
    ("patches", patches_by_fill),
    ("patches", patches_by_unfold),
    ("patches", patches_in_a_list),
    ("patches", lambda image, size: canvases.patches(torch.tensor(image), size)),
    ("cross_attention", scaled_first),
    ("cross_attention", as_one_head),
    ("cross_attention", in_float32),
    ("cross_attention", as_list),
    ("patches", patches_by_loop),
    ("patches", patches_by_einsum),
    ("patches", patches_by_split),
    ("patches", patches_by_windows),
    ("patches", patches_by_index),
    ("patches", lambda image, size: patches_by_loop(image, size).astype("float32")),
]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("name", "answer"), RIGHT)
def test_another_right_way_passes(name, answer, seed):
    verdict = judge(name, answer, seed)
    assert verdict.passed, verdict.text


# --- wrong answers, as people write them ------------------------------------------
def crossing(
    sources=lambda x, m: (x, m, m),
    tables=lambda q, k, v: (q, k, v),
    root=lambda W_q, x, m, W_v: W_q.shape[1],
    axis=-1,
    hide=lambda scores, mask: np.where(mask, scores, -np.inf),
    mix=lambda weights, v: weights @ v,
    hand=lambda weights, out: (weights, out),
):
    def cross_attention(x, memory, W_q, W_k, W_v, mask=None):
        made = zip(sources(x, memory), tables(W_q, W_k, W_v), strict=True)
        q, k, v = (a @ W for a, W in made)
        scores = q @ turned(k) / np.sqrt(root(W_q, x, memory, W_v))
        if mask is not None:
            scores = hide(scores, mask)
        weights = softmax(scores, axis=axis)
        return hand(weights, mix(weights, v))

    return cross_attention


def on_queries(scores, mask):
    return np.where(turned(np.atleast_2d(mask)), scores, -np.inf)


def masked_after(x, memory, W_q, W_k, W_v, mask=None):
    weights, _ = by_steps(x, memory, W_q, W_k, W_v)
    weights = weights if mask is None else weights * mask
    return weights, weights @ (memory @ W_v)


def nan_in_empty_rows(x, memory, W_q, W_k, W_v, mask=None):
    scores = (x @ W_q) @ turned(memory @ W_k) / np.sqrt(W_q.shape[1])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    weights = e / e.sum(-1, keepdims=True)
    return weights, weights @ (memory @ W_v)


def not_projected(x, memory, W_q, W_k, W_v, mask=None):
    a = scaled_dot_product(x @ W_q, memory @ W_k, memory, mask)
    return a.weights, a.out


def keys_as_they_are(x, memory, W_q, W_k, W_v, mask=None):
    scores = (x @ W_q) @ turned(memory) / np.sqrt(W_q.shape[1])
    weights = softmax(scores if mask is None else np.where(mask, scores, -np.inf))
    return weights, weights @ (memory @ W_v)


def once_asked(hand):
    """An answer that calls attnlib with what it made of q, k, v and the mask."""

    def cross_attention(x, memory, W_q, W_k, W_v, mask=None):
        return hand(x @ W_q, memory @ W_k, memory @ W_v, mask)

    return cross_attention


def two(found):
    return found.weights, found.out


def zeroed(x, memory, W_q, W_k, W_v, mask=None):
    if mask is not None:
        memory = memory * turned(np.atleast_2d(mask))
    return by_steps(x, memory, W_q, W_k, W_v)


def scores_kept(q, k, v, mask):
    found = scaled_dot_product(q, k, v, mask)
    return found.scores, found.out


def raw_scores_kept(q, k, v, mask):
    found = scaled_dot_product(q, k, v, mask)
    return found.raw_scores, found.out


def never_a_softmax(q, k, v, mask):
    scores = scaled_dot_product(q, k, v, mask).scores
    with np.errstate(all="ignore"):
        return scores, scores @ v


def times_infinity(scores, mask):
    with np.errstate(all="ignore"):
        return scores + (1 - mask) * -np.inf


def by_attnlib(sources):
    def cross_attention(x, memory, W_q, W_k, W_v, mask=None):
        a, b, c = sources(x, memory)
        found = scaled_dot_product(a @ W_q, b @ W_k, c @ W_v, mask)
        return found.weights, found.out

    return cross_attention


WRONG = [
    (crossing(lambda x, m: (x, x, x)), "self_attention", "M46"),
    (crossing(lambda x, m: (m, m, m)), "self_attention_of_memory", "M46"),
    (crossing(lambda x, m: (x, x, m)), "keys_from_x", "M46"),
    (by_attnlib(lambda x, m: (x, x, m)), "keys_from_x", "M46"),
    (by_attnlib(lambda x, m: (x, m, x)), "values_from_x", "M46"),
    (by_attnlib(lambda x, m: (m, x, x)), "memory_asks", "M46"),
    (by_attnlib(lambda x, m: (x, x, x)), "self_attention", "M46"),
    (crossing(lambda x, m: (x, m, x)), "values_from_x", "M46"),
    (crossing(lambda x, m: (m, x, x)), "memory_asks", "M46"),
    (crossing(tables=lambda q, k, v: (q, v, k)), "tables_k_v_swapped", "M46"),
    (crossing(tables=lambda q, k, v: (k, q, v)), "tables_q_k_swapped", "M46"),
    (not_projected, "values_not_projected", "M47"),
    (keys_as_they_are, "keys_not_projected", "M47"),
    (crossing(root=lambda W_q, x, m, W_v: 1), "scale_missing", "M01"),
    (crossing(root=lambda W_q, x, m, W_v: x.shape[-1]), "scale_d_model", "M02"),
    (crossing(root=lambda W_q, x, m, W_v: m.shape[-1]), "scale_d_memory", "M02"),
    (crossing(root=lambda W_q, x, m, W_v: W_v.shape[-1]), "scale_d_v", "M02"),
    (crossing(root=lambda W_q, x, m, W_v: W_q.shape[-1] ** 2), "scale_d_k", "M03"),
    (crossing(root=lambda W_q, x, m, W_v: m.shape[-2]), "scale_n_k", "M02"),
    (crossing(axis=-2), "axis_second_last", "M04"),
    (crossing(hide=lambda s, mask: s), "mask_ignored", "M16"),
    (crossing(hide=lambda s, mask: np.where(mask, -np.inf, s)), "mask_inverted", "M07"),
    (crossing(hide=lambda s, mask: s + mask), "mask_added", "M08"),
    (crossing(hide=lambda s, mask: s * mask), "mask_fill_zero", "M09"),
    (
        crossing(hide=lambda s, mask: np.where(mask, s, -1e4)),
        "mask_fill_10000",
        "M11",
    ),
    (crossing(hide=on_queries), "mask_on_queries", "M15"),
    (masked_after, "mask_after", "M10"),
    (nan_in_empty_rows, "empty_row_nan", "M14"),
    (crossing(hand=lambda w, out: (out, w)), "returned_swapped", ""),
    (
        once_asked(lambda q, k, v, mask: two(scaled_dot_product(k, q, q, mask))),
        "memory_asks_with_its_table",
        "M46",
    ),
    (
        once_asked(lambda q, k, v, mask: two(scaled_dot_product(q, q, q, mask))),
        "queries_for_all",
        "M46",
    ),
    (once_asked(scores_kept), "returned_masked_scores", ""),
    (once_asked(raw_scores_kept), "returned_raw_scores", ""),
    (once_asked(never_a_softmax), "softmax_missing", "M47"),
    (zeroed, "memory_zeroed", "M09"),
    (crossing(hide=times_infinity), "mask_times_infinity", ""),
    (crossing(axis=1), "axis_one", "M04"),
]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("answer", "key", "code"), WRONG)
def test_a_wrong_crossing_is_named(answer, key, code, seed):
    verdict = judge("cross_attention", answer, seed)
    assert verdict.status == "mistake", verdict.text
    assert [(m.key, m.code) for m in verdict.mistakes] == [(key, code)]


def test_x_added_to_the_mix_is_named():
    def answer(x, memory, W_q, W_k, W_v, mask=None):
        weights, out = by_steps(x, memory, W_q, W_k, W_v, mask)
        return weights, x + out

    verdict = judge("cross_attention", answer)
    assert [m.key for m in verdict.mistakes] == ["out_added_to_x"]


def first_row(mask):
    return np.atleast_2d(mask)[..., :1, :]


def some_row(mask):
    return np.atleast_2d(mask).any(axis=-2, keepdims=True)


def picture_by_picture(x, memory, W_q, W_k, W_v, mask=None):
    if x.ndim != 3:
        return by_steps(x, memory, W_q, W_k, W_v, mask)
    masks = [None if mask is None else mask[i] for i in range(len(x))]
    parts = [
        by_steps(a, m, W_q, W_k, W_v, seen)
        for a, m, seen in zip(x, memory, masks, strict=True)
    ]
    return [np.stack(part) for part in zip(*parts, strict=True)]


def one_batch_axis(x, memory, W_q, W_k, W_v, mask=None):
    if x.ndim == 2:
        return by_steps(x, memory, W_q, W_k, W_v, mask)
    scores = np.einsum("bqd,bkd->bqk", x @ W_q, memory @ W_k) / W_q.shape[1] ** 0.5
    weights = softmax(scores if mask is None else np.where(mask, scores, -np.inf))
    return weights, weights @ (memory @ W_v)


@pytest.mark.parametrize(
    "answer",
    [
        lambda x, memory, W_q, W_k, W_v, mask=None: by_steps(
            x, memory, W_q, W_k, W_v, mask
        )[1],
        lambda x, memory, W_q, W_k, W_v, mask=None: None,
        lambda x, memory, W_q, W_k, W_v, mask=None: by_steps(
            x, memory, W_q, W_k, W_v, None
        ),
        lambda x, memory, W_q, W_k, W_v, mask=None: by_steps(
            x, memory[..., ::-1, :], W_q, W_k, W_v, mask
        ),
        lambda x, memory, W_q, W_k, W_v, mask=None: by_steps(
            x, memory, -W_q, W_k, W_v, mask
        ),
        lambda x, memory, W_q, W_k, W_v, mask=None: by_steps(
            x, memory, W_q, W_k, W_v, mask if mask is None else mask.T
        ),
        lambda x, memory, W_q, W_k, W_v, mask=None: by_steps(
            x, np.concatenate([x @ W_q @ W_k.T, memory], -2), W_q, W_k, W_v, mask
        ),
        lambda x, memory, W_q, W_k, W_v: by_steps(x, memory, W_q, W_k, W_v),
        # Works for one picture, for one batch axis, for masks of one row.
        lambda x, memory, W_q, W_k, W_v, mask=None: by_steps(
            x, memory, W_q, W_k, W_v, mask if mask is not None and mask.any() else None
        ),
        lambda x, memory, W_q, W_k, W_v, mask=None: by_steps(
            x, memory, W_q, W_k, W_v, mask if mask is None else first_row(mask)
        ),
        lambda x, memory, W_q, W_k, W_v, mask=None: by_steps(
            x, memory, W_q, W_k, W_v, mask if mask is None else some_row(mask)
        ),
        lambda x, memory, W_q, W_k, W_v, mask=None: picture_by_picture(
            x, memory, W_q, W_k, W_v, mask
        ),
        lambda x, memory, W_q, W_k, W_v, mask=None: one_batch_axis(
            x, memory, W_q, W_k, W_v, mask
        ),
    ],
)
def test_other_wrong_crossings_are_refused(answer):
    assert not judge("cross_attention", answer).passed


def cut(image, size):
    return image.reshape(image.shape[0] // size, size, image.shape[1] // size, size)


def counted(image, size):
    height, width = image.shape
    return image.reshape(size, height // size, size, width // size)


def order(*axes):
    return lambda image, size: cut(image, size).transpose(axes).reshape(-1, size**2)


WRONG_CUTS = [
    (lambda image, size: image.reshape(-1, size**2), "patches_not_moved", "M20"),
    (
        lambda image, size: cut(image, size).reshape(-1, size**2),
        "patches_not_moved",
        "M20",
    ),
    (
        lambda image, size: image.T.reshape(-1, size**2),
        "patches_columns_of_pixels",
        "M20",
    ),
    (order(2, 0, 1, 3), "patches_by_columns", ""),
    (order(0, 2, 3, 1), "patches_pixels_by_columns", ""),
    (lambda image, size: patches_by_loop(image.T, size), "patches_all_by_columns", ""),
    (order(1, 0, 2, 3), "patches_first_axes", "M20"),
    (order(0, 1, 3, 2), "patches_last_axes", "M20"),
    (order(2, 1, 0, 3), "patches_outer_axes", "M20"),
    (order(0, 3, 2, 1), "patches_inner_axes", "M20"),
    (order(1, 3, 0, 2), "patches_every_nth", "M22"),
    (
        lambda image, size: np.lib.stride_tricks.sliding_window_view(
            image, (size, size)
        ).reshape(-1, size**2),
        "patches_overlapping",
        "",
    ),
    (
        lambda image, size: patches_by_loop(image, size).reshape(-1, size, size),
        "patches_square",
        "",
    ),
    (
        lambda image, size: np.swapaxes(cut(image, size), 1, 2),
        "patches_four_axes",
        "",
    ),
    (
        lambda image, size: patches_by_loop(image, size).reshape(
            len(image) // size, -1, size**2
        ),
        "patches_in_a_grid",
        "",
    ),
    (lambda image, size: patches_by_loop(image, size).T, "patches_as_columns", ""),
    (order(3, 2, 1, 0), "patches_axes_reversed", "M20"),
    (
        lambda image, size: (
            counted(image, size).swapaxes(1, 2).reshape(-1, size * size)
        ),
        "patches_counted_in_the_cut",
        "",
    ),
    (
        lambda image, size: (
            counted(image, size).transpose(1, 3, 0, 2).reshape(-1, size * size)
        ),
        "patches_spread_out",
        "M22",
    ),
    (
        lambda image, size: (
            image.reshape(image.shape[1] // size, size, image.shape[0] // size, size)
            .swapaxes(1, 2)
            .reshape(-1, size * size)
        ),
        "patches_sides_swapped",
        "",
    ),
    (
        lambda image, size: np.array(
            [
                image[i : i + size, j : j + size].ravel()
                for i in range(image.shape[0] // size)
                for j in range(image.shape[1] // size)
            ]
        ),
        "patches_step_one",
        "",
    ),
    (
        lambda image, size: patches_by_loop(image, size).reshape(size * size, -1),
        "patches_joined_by_pixels",
        "",
    ),
    (
        lambda image, size: patches_by_loop(image, size).reshape(-1, size),
        "patches_below_each_other",
        "",
    ),
    (
        lambda image, size: patches_by_loop(image, size).mean(1, keepdims=True),
        "patches_means",
        "",
    ),
]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("answer", "key", "code"), WRONG_CUTS)
def test_a_wrong_cut_is_named(answer, key, code, seed):
    verdict = judge("patches", answer, seed)
    assert verdict.status == "mistake", verdict.text
    assert [(m.key, m.code) for m in verdict.mistakes] == [(key, code)]


@pytest.mark.parametrize(
    "answer",
    [
        lambda image, size: patches_by_loop(image, size)[::-1],
        lambda image, size: patches_by_loop(image[::-1], size),
        lambda image, size: patches_by_loop(image, size)[1:],
        lambda image, size: patches_by_loop(image[:, ::-1], size),
        lambda image, size: patches_by_loop(image, size) / 16,
        lambda image, size: patches_by_loop(image, size).astype(int),
        lambda image, size: patches_by_loop(image, 2),
        lambda image, size: patches_by_loop(image, 4),
        lambda image, size: patches_by_loop(image, size).sum(),
        lambda image, size: image.reshape(size, size, -1),
        lambda image, size: image.reshape(-1, 16),
        lambda image, size: cut(image, size).reshape(size, -1),
        lambda image, size: np.array(np.array_split(image, size)),
        lambda image, size: [],
    ],
)
def test_other_wrong_cuts_are_refused(answer):
    assert not judge("patches", answer).passed


def test_the_evidence_is_a_place_or_a_number():
    text = judge("patches", lambda image, size: image.reshape(-1, size**2)).text
    assert (
        "your patch 0 holds the pixels [0, 0], [0, 1], [0, 2], [0, 3]; right is" in text
    )
    assert "[0, 0], [0, 1], [1, 0], [1, 1] (4 x 6 pixels, size 2)" in text
    text = judge("cross_attention", crossing(lambda x, m: (x, x, x))).text
    assert "your result has the shape (3, 3); (3, 5) is right" in text
    text = judge("cross_attention", crossing(hide=on_queries)).text
    assert "of its weight to parts that are not there" in text
    root = crossing(root=lambda W_q, x, m, W_v: m.shape[-1])
    assert "and √d_k/√d_memory is" in judge("cross_attention", root).text


# --- the head ---------------------------------------------------------------------
@pytest.mark.parametrize(
    "answer",
    [
        (2, 1),
        [2, 1],
        np.array([2, 1]),
        np.array([[2, 1]]),
        (np.int64(2), np.int64(1)),
        (np.array([2]), np.array([1])),  # np.nonzero
        ((2, 1),),
        torch.tensor([[2, 1]]),
        (torch.tensor(2), torch.tensor(1)),
        divmod(13, 6),
    ],
)
def test_the_head_may_be_written_in_any_way(answer):
    assert judge("best_aligned_head", answer).passed


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((3, 3), "count words"),
        ((1, 5), "The pause costs it a word"),
        ((3, 5), "The pause costs it a word"),
        ((1, 2), "First the layer"),
        ((0, 4), "Order is not alignment"),
        (13, "np.unravel_index(13, (4, 6))"),
        (20, "which head it is"),
        ((3, 2), "count from 0"),
        (2.1, "as a tuple"),
        ("2.1", "a tuple of 2"),
        (11, "Add the words with the pause"),
        (10, "which head it is"),
        (np.array([[1, 5], [2, 1], [3, 5]]), "Three heads have 10"),
        ((np.array([1, 2, 3]), np.array([5, 1, 5])), "Three heads have 10"),
        ([[2, 1], [3, 3]], "Two heads have 10"),
        ((1, 2, 3), "a tuple of 2"),
        ((2, True), "number 2"),
        ((0, 0), "not"),
    ],
)
def test_a_wrong_head_is_told_why(answer, said):
    verdict = judge("best_aligned_head", answer)
    assert not verdict.passed
    assert said in verdict.text


def hits():
    """How many words each head has inside: without the pause, and with it."""
    path = Path(attention.__file__).parent / "data" / "results" / "whisper_words.json"
    voice = json.loads(path.read_text(encoding="utf-8"))
    begins = np.array(voice["settings"]["begins_ms"]) / 1000
    ends = np.append(begins[1:], voice["settings"]["ends_ms"] / 1000)
    later = np.arange(10) >= voice["settings"]["pause_before"]
    tables = []
    for name, shift in (("best_frame", 0), ("best_frame_paused", later)):
        seconds = (np.array(voice[name]) + 0.5) * 0.02
        hit = (seconds >= begins + shift) & (seconds < ends + shift)
        tables.append(hit.sum(-1))
    return tables


def test_the_right_head_is_the_one_in_the_stored_numbers():
    total = sum(hits())
    best = np.argwhere(total == total.max())
    assert best.tolist() == [list(get("best_aligned_head").right)]
    assert total.max() == 20


def test_the_shown_heads_are_those_of_the_stored_numbers():
    first, paused = hits()
    shown = [m.value.tolist() for m in get("best_aligned_head").wrong if is_array(m)]
    for table, sides in ((first, shown[:2]), (paused, shown[2:])):
        best = np.argwhere(table == 10)
        assert sides == [best.tolist(), best.T.tolist()]
    assert np.argmax(first) == 11
    assert max(first.max(), paused.max()) == 10


def is_array(misconception):
    return isinstance(misconception.value, np.ndarray)


@pytest.mark.parametrize(
    ("name", "answer", "said"),
    [
        (
            "patches",
            lambda image, size: np.array(
                [
                    image[i : i + size + 1, j : j + size + 1].ravel()
                    for i in range(0, image.shape[0], size)
                    for j in range(0, image.shape[1], size)
                ]
            ),
            "not equally large",
        ),
        (
            "patches",
            lambda image, size: np.swapaxes(
                image.reshape(4, size, 4, size), 1, 2
            ).reshape(16, -1),
            "differ from case to case",
        ),
        (
            "patches",
            lambda image, size: canvases.patches(image, size),
            "that of a tensor exchanges two",
        ),
    ],
)
def test_an_error_is_explained(name, answer, said):
    verdict = judge(name, answer)
    assert verdict.status == "raised"
    assert said in verdict.text


def test_the_result_of_attnlib_cannot_be_unpacked():
    def cross_attention(x, memory, W_q, W_k, W_v, mask=None):
        weights, out = scaled_dot_product(x @ W_q, memory @ W_k, memory @ W_v, mask)
        return weights, out

    assert "found.weights, found.out" in judge("cross_attention", cross_attention).text


def test_a_mask_in_square_brackets_is_explained():
    def cross_attention(x, memory, W_q, W_k, W_v, mask=None):
        scores = x @ W_q @ turned(memory @ W_k) / W_q.shape[1] ** 0.5
        if mask is not None:
            scores[~mask] = -np.inf
        return softmax(scores), softmax(scores) @ (memory @ W_v)

    assert "np.where(mask, a, b)" in judge("cross_attention", cross_attention).text


def test_a_table_turned_over_is_to_be_left_as_it_is():
    def cross_attention(x, memory, W_q, W_k, W_v, mask=None):
        q, k, v = x @ W_q.T, memory @ W_k.T, memory @ W_v.T
        return two(scaled_dot_product(q, k, v, mask))

    text = judge("cross_attention", cross_attention).text
    assert "`W_q` fits as it is, without `.T`" in text


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_hint_holds_the_solution(name):
    exercise = get(name)
    body = exercise.solution_source.split('"""')[2]
    lines = [line.strip() for line in body.splitlines() if len(line.strip()) > 25]
    assert not any(line in hint for hint in exercise.hints for line in lines)
