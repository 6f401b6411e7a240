"""Lesson 03: slips of a learner in what a mask is asked for have a name."""

from __future__ import annotations

import numpy as np
import pytest

from attnlib.attention import softmax
from attnlib.exercises import get, judge

SEEDS = range(3)


def past(n_q, n_k):
    return np.tri(n_q, n_k, n_k - n_q, dtype=bool)


def ends(lengths):
    return np.asarray(lengths)[:, None, None, None]


def real(lengths, n_k):
    return np.arange(n_k) < ends(lengths)


def rows(lengths, n_q, n_k):
    """The rows of real queries, the last one beside the last key."""
    return (np.arange(n_q) + n_k - n_q)[:, None] < ends(lengths)


def beside_the_last_word(lengths, n_q, n_k):
    return np.arange(n_k) <= np.arange(n_q)[:, None] + ends(lengths) - n_q


def create(ask):
    """`ask(pad, past, both, is_causal)` with full tables, or None if not asked."""

    def create_mask(n_q, n_k, lengths=None, is_causal=False):
        batch = 1 if lengths is None else len(lengths)
        whole = np.ones((batch, 1, n_q, n_k), dtype=bool)
        pad = None if lengths is None else whole & real(lengths, n_k)
        return ask(whole, pad, whole & past(n_q, n_k), is_causal)

    return create_mask


def either(whole, pad, triangle, is_causal):
    if pad is None:
        return triangle if is_causal else whole
    return pad | triangle if is_causal else pad


def overwritten(whole, pad, triangle, is_causal):
    mask = whole if pad is None else pad
    return triangle if is_causal else mask


def wrong_way_round(whole, pad, triangle, is_causal):
    mask = whole if is_causal else triangle
    return mask if pad is None else mask & pad


def starting_from_nothing(whole, pad, triangle, is_causal):
    if pad is None:
        return triangle if is_causal else ~whole
    return pad & triangle if is_causal else pad


def attend(fill):
    def masked_attention(q, k, v, mask):
        scores = fill(q @ k.T / np.sqrt(q.shape[-1]), mask)
        weights = softmax(scores)
        return weights, weights @ v

    return masked_attention


def returns_the_scores(q, k, v, mask):
    scores = np.where(mask, q @ k.T / np.sqrt(q.shape[-1]), -np.inf)
    return scores, softmax(scores) @ v


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("name", "answer", "key"),
    [
        (
            "causal",
            lambda n, m=None: np.where(past(n, m or n), 0, -1e9),
            "mask_additive_finite",
        ),
        ("causal", lambda n, m=None: past(m or n, m or n), "causal_square_keys"),
        (
            "padding_and_causal",
            lambda ls, n, m: real(ls, m) & past(m, m),
            "causal_square_keys",
        ),
        ("padding_and_causal", beside_the_last_word, "aligned_to_length"),
        (
            "padding_and_causal",
            lambda ls, n, m: rows(ls, n, m) & past(n, m),
            "padding_on_queries_placed",
        ),
        (
            "padding_and_causal",
            lambda ls, n, m: (np.arange(m) >= m - ends(ls)) & past(n, m),
            "padding_in_front",
        ),
        (
            "padding_and_causal",
            lambda ls, n, m: real(ls * 0 + ls[0], m) & past(n, m),
            "batch_first",
        ),
        (
            "document_mask",
            lambda i: np.equal.outer(*[np.sort(i)] * 2),
            "document_sorted",
        ),
        (
            "document_mask",
            lambda ids: (ids[:, None] == ids) & ~np.eye(len(ids), dtype=bool),
            "document_self_hidden",
        ),
        (
            "document_mask",
            lambda ids: np.triu(ids[:, None] == ids),
            "document_from_here",
        ),
        ("create_mask", create(either), "combined_by_or_where_both"),
        ("create_mask", create(overwritten), "padding_overwritten"),
        ("create_mask", create(wrong_way_round), "causal_reversed"),
        ("create_mask", create(starting_from_nothing), "nothing_asked_nothing_open"),
        (
            "create_mask",
            lambda n, m, ls=None, c=False: (
                create(starting_from_nothing)(n, m, np.array([m]), c)
                if ls is None
                else create(starting_from_nothing)(n, m, ls, c) & rows(ls, n, m)
            ),
            "padding_on_both_placed",
        ),
        (
            "masked_attention",
            attend(lambda s, m: np.where(np.tri(*s.shape, dtype=bool), s, -np.inf)),
            "mask_replaced_by_causal",
        ),
        ("masked_attention", returns_the_scores, "returned_masked_scores"),
        (
            "masked_attention",
            attend(lambda s, m: np.where(m, s, -1e9)),
            "empty_row_filled",
        ),
    ],
)
def test_a_wrong_answer_is_named(name, answer, key, seed):
    verdict = judge(name, answer, seed)
    assert [m.key for m in verdict.mistakes] == [key], verdict.text


def test_a_sentence_without_words_sees_nothing_either():
    """Opened at key 0 "so that no row is empty", the fillers are read."""
    right = get("padding_and_causal").solution

    def never_empty(lengths, n_q, n_k):
        mask = right(lengths, n_q, n_k)
        mask[..., 0] = True
        return mask

    assert not judge("padding_and_causal", never_empty).passed


def test_each_of_two_mistakes_is_shown_where_it_matters():
    """A square table cannot show the corner at which the triangle starts."""

    def first_corner_and_one_ahead(n_q, n_k=None):
        return np.tri(n_q, n_k or n_q, 1, dtype=bool)

    text = judge("causal", first_corner_and_one_ahead).text
    first, second = text.split("Second:")
    assert "starts at the top left" in first
    assert "(2 queries and 4 keys)" in first
    assert "one token ahead" in second
    assert "(3 tokens)" in second


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            lambda n, m=None: np.tril(np.ones(n, m or n)),
            "The sizes belong together, in brackets of their own: np.ones((2, 3)).",
        ),
        (
            lambda n, m=None: np.ones((n, m or n)) & past(n, m or n),
            "`&`, `|` and `~` want True and False, and here is a table of numbers.",
        ),
        (
            lambda n, m=None: past(n, m or n) and np.ones((n, m or n), dtype=bool),
            "`if`, `and`, `or` and `not` want one True or False",
        ),
        (
            lambda n, m=None: np.stack(np.split(past(n, m or n), 2)),
            "This axis has no such number of equal parts.",
        ),
        (
            lambda n, m=None: np.einsum("bqk->bqk", past(n, m or n)),
            "Each axis needs its letter.",
        ),
    ],
)
def test_what_an_error_means_is_said(answer, said):
    assert said in judge("causal", answer).text


def test_an_argument_that_may_be_none_where_it_stands_is_not_blamed():
    def guarded(n_q, n_k=None):
        return np.ones((n_q, n_q if n_k is None else n_k, 0)) @ np.ones(7)

    def unguarded(n_q, n_k=None):
        return np.ones((n_q, n_k))

    assert "is None in this case" not in judge("causal", guarded).text
    assert "`n_k` is None in this case" in judge("causal", unguarded).text
