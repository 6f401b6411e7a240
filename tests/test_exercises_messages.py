"""What a learner reads: what is wrong, what gave it away, what to do."""

from __future__ import annotations

import numpy as np
import pytest

from attnlib.exercises import get, judge
from attnlib.exercises.compare import MOST_LINES, wanted


def turned(a):
    return np.swapaxes(a, -1, -2)


def soft(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def attend(q, k, v):
    return soft(q @ turned(k) / np.sqrt(q.shape[-1])) @ v


def softmax(x, axis=-1):
    """A stub that the answers below call."""
    ...


# --- errors -------------------------------------------------------------------------
def axis_one(x, axis=-1):
    e = np.exp(x)
    return e / e.sum(axis=1, keepdims=True)


def weights_of_a_stub(q, k, v):
    weights = softmax(q @ turned(k))
    return weights, weights @ v


def stub_at_once(q, k, v):
    return q, softmax(q @ turned(k)) @ v


def nothing_made(q, k, v):
    weights = [].append(q)
    return weights, weights @ v


def not_turned(q, k, v):
    weights = soft(q @ k)
    return weights, weights @ v


def all_axes_turned(q, k, v):
    weights = soft(q @ k.T / np.sqrt(q.shape[-1]))
    return weights, weights @ v


def both_turned(q, k, v):
    weights = soft(turned(q) @ turned(k))
    return weights, weights @ v


def no_default(n_q, n_k=None):
    return np.tril(np.ones((n_q, n_k), bool), k=n_k - n_q)


def if_lengths(n_q, n_k, lengths=None, is_causal=False):
    mask = np.tril(np.ones((1, 1, n_q, n_k), bool), k=n_k - n_q)
    if lengths:
        mask = mask & (np.arange(n_k) < lengths[:, None, None, None])
    return mask


def if_lengths_is_not_equal(n_q, n_k, lengths=None, is_causal=False):
    mask = np.tril(np.ones((1, 1, n_q, n_k), bool), k=n_k - n_q)
    if lengths != None:  # noqa: E711 - as a learner writes it
        mask = mask & (np.arange(n_k) < lengths[:, None, None, None])
    return mask


def lengths_used(n_q, n_k, lengths=None, is_causal=False):
    return np.arange(n_k) < lengths[:, None, None, None]


def lengths_indexed(n_q, n_k, lengths=None, is_causal=False):
    return np.arange(n_k) < np.array(lengths)[:, None, None, None]


def none_for_neither(n_q, n_k, lengths=None, is_causal=False):
    mask = None
    if is_causal:
        mask = np.tril(np.ones((1, 1, n_q, n_k), bool), k=n_k - n_q)
    if lengths is not None:
        real = np.arange(n_k) < lengths[:, None, None, None]
        every = np.broadcast_to(real, (len(lengths), 1, n_q, n_k))
        mask = every if mask is None else mask & real
    return mask


def heads_by_index(x, W_q, W_k, W_v, W_o, n_heads):
    out = [attend(x @ W_q[h], x @ W_k[h], x @ W_v[h]) for h in range(n_heads)]
    return np.concatenate(out, -1) @ W_o


def one_width(x, W_q, W_k, W_v, W_o, n_heads):
    d = x.shape[-1] // n_heads
    cuts = [slice(h * d, (h + 1) * d) for h in range(n_heads)]
    out = [attend(x @ W_q[:, s], x @ W_k[:, s], x @ W_v[:, s]) for s in cuts]
    return np.concatenate(out, -1) @ W_o


def x_split_first(x, W_q, W_k, W_v, W_o, n_heads):
    parts = np.moveaxis(x.reshape(*x.shape[:-1], n_heads, -1), -2, -3)
    return attend(parts @ W_q, parts @ W_k, parts @ W_v) @ W_o


def joined_on_tokens(x, W_q, W_k, W_v, W_o, n_heads):
    q, k, v = (np.split(x @ W, n_heads, -1) for W in (W_q, W_k, W_v))
    out = [attend(*parts) for parts in zip(q, k, v, strict=True)]
    return np.concatenate(out, -2) @ W_o


def float_width(x, n_heads):
    d = x.shape[-1] / n_heads
    return np.swapaxes(x.reshape(*x.shape[:-1], n_heads, d), -2, -3)


def float_slice(x, n_heads):
    d = x.shape[-1] / n_heads
    return np.stack([x[..., h * d : (h + 1) * d] for h in range(n_heads)], -3)


HEADS = "W_q holds all heads side by side"
ERRORS = (
    ("softmax", axis_one, "The axis is a fixed number here"),
    ("scaled_dot_product", weights_of_a_stub, "Your `softmax` returned None: it is st"),
    ("scaled_dot_product", stub_at_once, "Your `softmax` returned None: it is still"),
    ("scaled_dot_product", nothing_made, "`weights` is None here."),
    ("scaled_dot_product", not_turned, "`q`, (3, 2), and `k`, (4, 2). Should `k` be"),
    ("scaled_dot_product", all_axes_turned, "`.T` turns all axes over."),
    ("scaled_dot_product", both_turned, "Here A has 3 columns, and B 2 rows. Print"),
    ("causal", no_default, "`n_k` is None in this case. Ask `if n_k is None`"),
    ("create_mask", if_lengths, "write `lengths is not None`"),
    ("create_mask", if_lengths_is_not_equal, "write `lengths is not None`"),
    ("create_mask", lengths_used, "`lengths` is None in this case."),
    ("create_mask", lengths_indexed, "`lengths` is None in this case."),
    ("create_mask", none_for_neither, "It returns None where `lengths` is None."),
    ("split_heads", float_width, "`/` gives a float, `//` does not."),
    ("split_heads", float_slice, "`/` gives a float, `//` does not."),
    ("multi_head", heads_by_index, f"`x`, (3, 4), and `W_v[h]`, (6,). {HEADS}"),
    ("multi_head", one_width, f"Here A has 4 columns, and B 6 rows. {HEADS}"),
    ("multi_head", x_split_first, f"`parts`, (2, 3, 2), and `W_q`, (4, 4). {HEADS}"),
    ("multi_head", joined_on_tokens, f"Here A has 3 columns, and B 6 rows. {HEADS}"),
)


@pytest.mark.parametrize(("name", "answer", "words"), ERRORS)
def test_an_error_is_explained_where_it_arose(name, answer, words):
    verdict = judge(name, answer)
    assert words in verdict.text, verdict.text
    assert "gufunc" not in verdict.text
    assert len(verdict.text.splitlines()) <= 3


def test_a_function_that_only_passes_on_what_a_stub_gives():
    verdict = judge("scaled_dot_product", lambda q, k, v: softmax(q))
    assert "`softmax`, which it calls, is still the stub" in verdict.text


# --- what a result should be ----------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "answer", "words"),
    [
        (
            "predicted_std",
            lambda d, q, k: "6",
            "`std` should be one number, but you re",
        ),
        ("predicted_std", lambda d, q, k: [q], "Return the number alone"),
        ("entropy", lambda w: "6", "`entropy` should be one number, but you returned"),
        ("strays", lambda x, s: "6", "should be one whole number, but you returned te"),
        ("strays", lambda x, s: s, "should be one whole number, but it is an array of"),
        (
            "document_mask",
            lambda i: True,
            "a single value for `mask`; wanted is an array",
        ),
        ("document_mask", lambda i: "", "`mask` should be an array of True and False"),
        ("distance_to_possible", lambda s, X: True, "The distance should be one numb"),
        ("weighted_mean", lambda w, v: np.array([w]), "The mean should be one number"),
        (
            "scaled_dot_product",
            lambda q, k, v: (None, q),
            "`weights` should be an array of numbers, but you returned None",
        ),
    ],
)
def test_what_is_wanted_is_said_in_words(name, answer, words):
    said = judge(name, answer).text
    assert words in said, said
    assert said.split("not yet. ")[1][0] in "`TIY"


def test_one_true_or_false_is_wanted():
    assert wanted(np.array(True)) == "True or False"


def test_an_axis_without_a_name_is_three_dots():
    def answer(q, k, v):
        weights, out = get("scaled_dot_product").solution(q, k, v)
        return weights, out if q.ndim == 2 else out[0]

    said = judge("scaled_dot_product", answer).text
    assert "it should be (2, 3, 4, 3): (..., n_q, d_v)" in said


# --- named mistakes -------------------------------------------------------------------
def two_keepdims(x, axis=-1):
    e = np.exp(x - x.max(axis=axis))
    return e / e.sum(axis=axis)


def test_a_number_that_shows_two_mistakes_is_given_once():
    said = judge("softmax", two_keepdims).text
    assert said.count("What gave it away") == 1
    assert said.count("keepdims is missing in the max") == 1
    assert "Second: keepdims is missing in the sum." in said


def test_after_a_name_comes_no_raw_error():
    def mask_transposed(q, k, v, mask):
        scores = np.where(mask.T, q @ k.T / np.sqrt(q.shape[-1]), -np.inf)
        largest = np.maximum(scores.max(-1, keepdims=True), -1e300)
        e = np.exp(scores - largest)
        total = e.sum(-1, keepdims=True)
        return e / np.where(total == 0, 1, total), e / np.where(
            total == 0, 1, total
        ) @ v

    said = judge("masked_attention", mask_transposed).text
    assert "The mask is transposed." in said
    assert "broadcast" not in said
    assert "This also makes it raise a ValueError in another case (a causal" in said


def test_the_number_in_the_list_stands_at_the_end():
    def scale_missing(q, k, v):
        weights = soft(q @ turned(k))
        return weights, weights @ v

    first, *_, last = judge("scaled_dot_product", scale_missing).text.splitlines()
    assert "M01" not in first
    assert last.endswith("(M01 in the course's list of mistakes.)")


def test_exchanged_roles_are_shown_without_logarithms():
    def swapped(q, k, v):
        weights = soft(k @ turned(q) / np.sqrt(q.shape[-1]))
        return weights, weights @ v

    said = judge("scaled_dot_product", swapped).text
    assert "your weights are exactly softmax(0.577 * k @ qᵀ)" in said
    assert "logarithm" not in said


# --- mistakes without a name ----------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "answer"),
    [
        (
            "scaled_dot_product",
            lambda q, k, v: (soft(q @ turned(k) * 0.9), q @ k.T @ v),
        ),
        ("multi_head", lambda x, *W: x * 0.3),
        ("masked_attention", lambda q, k, v, m: (m * 0.7, m * 0.7 @ v)),
        ("split_heads", lambda x, n: x.reshape(*x.shape[:-2], n, x.shape[-2], -1) * 2),
        (
            "create_mask",
            lambda q, k, lengths=None, is_causal=False: no_mask(q, k, lengths),
        ),
    ],
)
def test_no_more_than_a_dozen_lines_of_numbers(name, answer):
    said = judge(name, answer).text
    assert len(said.splitlines()) <= MOST_LINES + 2, said


def no_mask(n_q, n_k, lengths):
    batch = 1 if lengths is None else len(lengths)
    return np.arange(batch * n_q * n_k).reshape(batch, 1, n_q, n_k) % 3 == 1


def test_a_batch_that_matters_says_what_to_do():
    from attnlib.exercises.laws import batch_independent

    law = batch_independent((np.ones((2, 3, 4)),), (0,))
    said = law.broken(lambda x: (x * x.ndim,))
    assert (
        "The first item of a batch gives other numbers alone than in the batch" in said
    )
    assert "Count axes and sizes from the end" in said


@pytest.mark.parametrize("shift", [lambda x: x, lambda x: x - x.max()])
def test_a_softmax_that_overflows_hears_why(shift):
    """With the axis fixed as well it is no named pair, but the cause is plain."""

    def softmax(x, axis=-1):
        e = np.exp(shift(x))
        return e / e.sum(axis=-1, keepdims=True)

    verdict = judge("softmax", softmax)
    assert verdict.status == "nan"
    assert "(M06)" in verdict.text
    assert "subtract the largest number of each row" in verdict.text


def test_an_empty_row_hears_why():
    from attnlib.exercises.explain import why_not_finite

    assert "(M14)" in why_not_finite((np.array([0.0, -np.inf]),))
    assert why_not_finite((np.ones(3), None, 4)) == ""
