"""Masks against their definition written as loops, against PyTorch, and in use."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.attention.bias import causal_lower_right
from torch.nn.functional import scaled_dot_product_attention as sdpa

from attnlib.attention import scaled_dot_product
from attnlib.masks import (
    blocks,
    causal,
    document,
    global_tokens,
    padding,
    prefix,
    window,
)
from attnlib.shapes import ShapeError

steady = settings(derandomize=True, deadline=None, max_examples=60)
sizes = st.integers(0, 6)


def by_loops(n_q, n_k, rule):
    rows = [[rule(i, j) for j in range(n_k)] for i in range(n_q)]
    return np.array(rows, bool).reshape(n_q, n_k)


def same(mask, expected):
    assert mask.dtype == np.bool_
    np.testing.assert_array_equal(mask, expected)
    assert mask.shape == expected.shape


# causal


@steady
@given(sizes, sizes)
def test_causal_is_its_rule(n_q, n_k):
    same(causal(n_q, n_k), by_loops(n_q, n_k, lambda i, j: j <= n_k - n_q + i))


@pytest.mark.parametrize(("n_q", "n_k"), [(1, 4), (3, 4), (4, 4)])
def test_causal_is_torchs_lower_right(n_q, n_k):
    # Ask SDPA what it sees: equal scores, and values that name their key.
    keys = torch.zeros(1, n_k, 2), torch.eye(n_k)[None]
    seen = sdpa(torch.zeros(1, n_q, 2), *keys, attn_mask=causal_lower_right(n_q, n_k))
    same(causal(n_q, n_k), seen[0].numpy() > 0)


def test_causal_last_query_sees_all_and_one_query_is_a_cache_step():
    assert causal(3, 7)[-1].all()
    same(causal(1, 7), np.ones((1, 7), bool))


def test_causal_rows_are_empty_where_queries_stand_before_every_key():
    same(causal(4, 2), np.array([[0, 0], [0, 0], [1, 0], [1, 1]], bool))


def test_causal_is_the_same_for_any_length_of_cache():
    np.testing.assert_array_equal(causal(2, 6), causal(6)[-2:])


# padding


def test_padding_by_hand():
    mask = padding([2, 0, 3], 3)
    assert mask.shape == (3, 1, 1, 3)
    same(mask[:, 0, 0], np.array([[1, 1, 0], [0, 0, 0], [1, 1, 1]], bool))


@steady
@given(st.lists(st.integers(0, 5), max_size=4), st.integers(0, 3))
def test_padding_is_its_rule(lengths, more):
    n_k = max(lengths, default=0) + more
    mask = padding(lengths, n_k)
    assert mask.shape == (len(lengths), 1, 1, n_k)
    rule = by_loops(len(lengths), n_k, lambda b, j: j < lengths[b])
    np.testing.assert_array_equal(mask[:, 0, 0], rule)


def test_padding_gives_what_the_short_sequence_alone_gives():
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(2, 3, 5, d)) for d in (4, 4, 6))  # batch 2, 3 heads
    out = scaled_dot_product(q, k, v, padding([2, 5], 5)).out
    alone = scaled_dot_product(q[0], k[0, :, :2], v[0, :, :2]).out
    np.testing.assert_allclose(out[0], alone, atol=1e-14)


def test_padding_and_causal_combine_for_a_batch_of_heads():
    mask = padding([1, 3], 3) & causal(3)
    assert mask.shape == (2, 1, 3, 3)
    same(mask[0, 0], np.array([[1, 0, 0]] * 3, bool))
    same(mask[1, 0], causal(3))


@pytest.mark.parametrize(
    ("lengths", "kind", "text"),
    [
        (
            [2, 7],
            ShapeError,
            "lengths must lie between 0 and n_k=5, but one of them is 7.",
        ),
        (
            [-1],
            ShapeError,
            "lengths must lie between 0 and n_k=5, but one of them is -1.",
        ),
        (
            [2.0],
            TypeError,
            "lengths must be whole numbers, but their dtype is float64.",
        ),
        ([True], TypeError, "lengths must be whole numbers, but their dtype is bool."),
    ],
)
def test_padding_names_a_wrong_length(lengths, kind, text):
    with pytest.raises(kind) as error:
        padding(lengths, 5)
    assert str(error.value) == text


# window


@steady
@given(sizes, sizes, sizes, sizes)
def test_window_is_its_rule(n_q, n_k, left, right):
    def rule(i, j):
        return n_k - n_q + i - left <= j <= n_k - n_q + i + right

    same(window(n_q, n_k, left=left, right=right), by_loops(n_q, n_k, rule))


@steady
@given(sizes, sizes, sizes, sizes, st.integers(1, 4))
def test_a_dilated_window_is_its_rule(n_q, n_k, left, right, dilation):
    def rule(i, j):
        p = n_k - n_q + i
        return any(j == p + dilation * step for step in range(-left, right + 1))

    mask = window(n_q, n_k, left=left, right=right, dilation=dilation)
    same(mask, by_loops(n_q, n_k, rule))


@steady
@given(sizes, sizes, sizes)
def test_global_tokens_are_a_cross(n_q, n_k, n_global):
    def rule(i, j):
        return j < n_global or n_k - n_q + i < n_global

    same(global_tokens(n_q, n_k, n_global=n_global), by_loops(n_q, n_k, rule))


def test_window_counts_both_ends_and_itself():
    mask = window(9, left=2, right=3)
    assert mask[4].sum() == 2 + 1 + 3
    assert np.flatnonzero(mask[4]).tolist() == [2, 3, 4, 5, 6, 7]


def test_a_window_as_wide_as_the_text_is_causal():
    same(window(3, 5, left=5), causal(3, 5))
    same(window(4, left=0), np.eye(4, dtype=bool))


# prefix


@steady
@given(sizes, sizes)
def test_prefix_is_its_rule(n_q, n_prefix):
    n_prefix = min(n_q, n_prefix)
    expected = by_loops(n_q, n_q, lambda i, j: j <= i or j < n_prefix)
    same(prefix(n_q, n_prefix), expected)


def test_prefix_between_causal_and_everything():
    same(prefix(4, 0), causal(4))
    same(prefix(4, 4), np.ones((4, 4), bool))


# document


@steady
@given(st.lists(st.integers(-2, 2), max_size=6))
def test_document_is_its_rule(ids):
    same(document(ids), by_loops(len(ids), len(ids), lambda i, j: ids[i] == ids[j]))


def test_documents_in_one_sequence_are_as_if_alone():
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(5, d)) for d in (3, 3, 4))
    out = scaled_dot_product(q, k, v, document([0, 0, 1, 1, 1]) & causal(5)).out
    first = scaled_dot_product(q[:2], k[:2], v[:2], causal(2)).out
    second = scaled_dot_product(q[2:], k[2:], v[2:], causal(3)).out
    np.testing.assert_allclose(out, np.concatenate([first, second]), atol=1e-14)


def test_a_batch_of_documents_leaves_an_axis_for_the_heads():
    # Without it, batch = n_heads would silently give each *head* a sequence's mask.
    ids = np.array([[0, 0, 1], [0, 1, 1]])
    mask = document(ids)
    assert mask.shape == (2, 1, 3, 3)
    for b in range(2):
        same(mask[b, 0], document(ids[b]))
    assert (mask & padding([2, 3], 3) & causal(3)).shape == (2, 1, 3, 3)


# blocks


@steady
@given(
    st.data(),
    st.integers(0, 3),
    st.integers(0, 3),
    st.integers(1, 3),
    st.integers(1, 3),
)
def test_blocks_is_its_rule(data, rows, columns, block_q, block_k):
    bits = st.lists(st.booleans(), min_size=rows * columns, max_size=rows * columns)
    pattern = np.array(data.draw(bits), bool).reshape(rows, columns)
    n_q, n_k = rows * block_q, columns * block_k
    same(
        blocks(pattern, block_q, block_k),
        by_loops(n_q, n_k, lambda i, j: pattern[i // block_q, j // block_k]),
    )


def test_blocks_square_batched_and_cut():
    eye = np.eye(2, dtype=bool)
    same(blocks(eye, 2), blocks(eye, 2, 2))
    same(blocks(eye, 2, n_q=3, n_k=4), blocks(eye, 2)[:3])
    assert blocks(np.stack([eye, ~eye]), 2, 3).shape == (2, 4, 6)


# errors


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: causal(-1), ShapeError, "n_q must be at least 0, but it is -1."),
        (lambda: causal(2, -3), ShapeError, "n_k must be at least 0, but it is -3."),
        (lambda: causal(2.0), TypeError, "n_q must be a whole number, but it is 2.0."),
        (lambda: padding([1], -1), ShapeError, "n_k must be at least 0, but it is -1."),
        (
            lambda: window(3, left=-1),
            ShapeError,
            "left must be at least 0, but it is -1.",
        ),
        (
            lambda: window(3, left=1, dilation=0),
            ShapeError,
            "dilation must be at least 1, but it is 0.",
        ),
        (
            lambda: global_tokens(3, n_global=-1),
            ShapeError,
            "n_global must be at least 0, but it is -1.",
        ),
        (
            lambda: window(3, left=1, right=0.5),
            TypeError,
            "right must be a whole number, but it is 0.5.",
        ),
        (lambda: prefix(3, 4), ShapeError, "n_prefix=4 is larger than n_q=3."),
        (
            lambda: prefix(3, -1),
            ShapeError,
            "n_prefix must be at least 0, but it is -1.",
        ),
        (
            lambda: document(7),
            ShapeError,
            "ids needs the axis (n) at its end, but it is 7.",
        ),
        (
            lambda: document([0.0, 1.0]),
            TypeError,
            "ids must be whole numbers, but their dtype is float64.",
        ),
        (
            lambda: blocks([[1, 0]], 2),
            TypeError,
            "pattern must be boolean, but its dtype is int64.",
        ),
        (
            lambda: blocks([True], 2),
            ShapeError,
            "pattern needs the axes (n_blocks_q, n_blocks_k) at its end, but its shape "
            "is (1,).",
        ),
        (
            lambda: blocks([[True]], 0),
            ShapeError,
            "block_q must be at least 1, but it is 0.",
        ),
        (
            lambda: blocks([[True], [True]], 4, n_q=4),
            ShapeError,
            "n_q=4 does not end inside the last of 2 blocks of block_q=4.",
        ),
        (
            lambda: blocks([[True, True]], 2, 3, n_k=7),
            ShapeError,
            "n_k=7 does not end inside the last of 2 blocks of block_k=3.",
        ),
    ],
)
def test_errors_say_which_size(call, kind, text):
    with pytest.raises(kind) as error:
        call()
    assert str(error.value) == text
