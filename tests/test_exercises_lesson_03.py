"""Lesson 03: answers as people write them, right and wrong, and what they are told."""

from __future__ import annotations

import numpy as np
import pytest

from attnlib import masks
from attnlib.attention import scaled_dot_product, softmax
from attnlib.exercises import get, judge, names

LESSON = (
    "causal",
    "padding_and_causal",
    "document_mask",
    "create_mask",
    "masked_attention",
)
SEEDS = range(3)


def tril(n_q, n_k, k=0):
    return np.tril(np.ones((n_q, n_k), dtype=bool), k)


def real(lengths, n_k):
    return np.arange(n_k) < np.asarray(lengths)[:, None, None, None]


def keys(name, answer, seed):
    verdict = judge(name, answer, seed)
    return verdict.status, [mistake.key for mistake in verdict.mistakes]


def test_the_lesson_has_these_exercises_and_their_minutes_fit_into_its_text():
    assert names(3) == LESSON
    assert sum(get(name).minutes for name in LESSON) == 30


# --- right answers written another way --------------------------------------------
def causal_by_loop(n_q, n_k=None):
    n_k = n_k or n_q
    return [[j <= n_k - n_q + i for j in range(n_k)] for i in range(n_q)]


def causal_by_comparison(n_q, n_k=None):
    n_k = n_q if n_k is None else n_k
    return np.arange(n_k) <= np.arange(n_k - n_q, n_k)[:, None]


def both_by_product(lengths, n_q, n_k):
    return real(lengths, n_k) * tril(n_q, n_k, n_k - n_q)


def both_by_loop(lengths, n_q, n_k):
    mask = np.zeros((len(lengths), 1, n_q, n_k), dtype=bool)
    for b, length in enumerate(lengths):
        for i in range(n_q):
            mask[b, 0, i, : min(length, n_k - n_q + i + 1)] = True
    return mask


def documents_by_loop(ids):
    return [[a == b for b in ids] for a in ids]


def create_in_place(n_q, n_k, lengths=None, is_causal=False):
    batch = 1 if lengths is None else len(lengths)
    mask = np.ones((batch, 1, n_q, n_k), dtype=bool)
    if lengths is not None:
        mask &= real(lengths, n_k)
    return np.tril(mask, n_k - n_q) if is_causal else mask


def attend(weigh):
    """Masked attention whose weights are `weigh(scores, mask, d_k)`."""

    def masked_attention(q, k, v, mask):
        d_k = q.shape[-1]
        weights = weigh(q @ k.T / np.sqrt(d_k), mask, d_k)
        return weights, weights @ v

    return masked_attention


def plain(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def by_hand(scores, mask, d_k):
    """The largest allowed score is subtracted, and the sum is guarded."""
    top = np.max(scores, axis=-1, keepdims=True, where=mask, initial=-np.inf)
    some = mask.any(axis=-1, keepdims=True)
    e = np.exp(np.where(mask, scores - np.where(some, top, 0), -np.inf))
    return e / np.where(some, e.sum(axis=-1, keepdims=True), 1)


def added(scores, mask, d_k):
    return softmax(scores + np.where(mask, 0, -np.inf))


def emptied(scores, mask, d_k):
    some = mask.any(axis=-1, keepdims=True)
    return np.where(some, plain(np.where(mask, scores, -1e9)), 0)


def in_float32(q, k, v, mask):
    result = scaled_dot_product(*(a.astype(np.float32) for a in (q, k, v)), mask)
    return result.weights, result.out


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("causal", masks.causal),
        ("causal", causal_by_loop),
        ("causal", causal_by_comparison),
        ("causal", lambda n, m=None: ~upper(n, m or n, (m or n) - n + 1)),
        (
            "padding_and_causal",
            lambda ls, n, m: masks.padding(ls, m) & masks.causal(n, m),
        ),
        ("padding_and_causal", both_by_product),
        ("padding_and_causal", both_by_loop),
        ("document_mask", masks.document),
        ("document_mask", documents_by_loop),
        ("document_mask", lambda ids: np.equal.outer(ids, ids)),
        ("create_mask", create_in_place),
        ("masked_attention", in_float32),
        ("masked_attention", attend(by_hand)),
        ("masked_attention", attend(added)),
        ("masked_attention", attend(emptied)),
        ("masked_attention", attend(lambda s, m, d: softmax(np.where(m, s, -np.inf)))),
    ],
)
def test_another_right_way_passes(name, answer, seed):
    verdict = judge(name, answer, seed)
    assert verdict.passed, verdict.text


# --- wrong answers, as people write them ------------------------------------------
def renormalised(scores, mask, d_k, guarded=True):
    """Right as long as no hidden score lies far above the others."""
    kept = softmax(scores) * mask
    total = kept.sum(axis=-1, keepdims=True)
    return kept / (np.where(total == 0, 1, total) if guarded else total)


def by_runs(ids):
    starts = np.r_[0, np.diff(ids) != 0]
    return masks.document(np.cumsum(starts).astype(int))


def off(k):
    return lambda n, m=None: tril(n, m or n, (m or n) - n + k)


def both(combine):
    """A mask for the batch out of the padding and the triangle."""

    def padding_and_causal(lengths, n_q, n_k):
        return combine(real(lengths, n_k), tril(n_q, n_k, n_k - n_q))

    return padding_and_causal


def upper(n_q, n_k, k):
    return np.triu(np.ones((n_q, n_k), dtype=bool), k)


def on_queries(lengths, n_q, n_k):
    rows = np.arange(n_q)[:, None] < np.asarray(lengths)[:, None, None, None]
    return rows & tril(n_q, n_k, n_k - n_q)


def with_triangle(triangle):
    return lambda lengths, n, m: real(lengths, m) & triangle(n, m)


def as_printed(n_q, n_k, lengths=None, is_causal=False, *, kind=float, axes=0):
    """The article's function; `kind` and `axes` mend it a little."""
    if lengths is not None:
        mask = real(lengths, n_k) if axes else real(lengths, n_k)[:, 0]
    else:
        mask = np.ones((1,) * axes + (n_q, n_k), dtype=kind)
    return np.tril(mask) if is_causal else mask


def create(triangle=lambda n, m: tril(n, m, m - n), either=False, always=False):
    def create_mask(n_q, n_k, lengths=None, is_causal=False):
        mask = np.ones((1, 1, n_q, n_k), dtype=bool)
        if lengths is not None:
            mask = mask & real(lengths, n_k)
        if always or (is_causal and not (either and lengths is not None)):
            mask = mask & triangle(n_q, n_k)
        return mask

    return create_mask


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("answer", "key"),
    [
        (lambda n, m=None: tril(n, m or n), "aligned_top_left"),
        (lambda n, m=None: tril(n, n), "causal_square"),
        (lambda n, m=None: tril(n, m or n, n - (m or n)), "offset_negated"),
        (lambda n, m=None: tril(n, m or n) & False, "mask_all_false"),
        (off(-1), "diagonal_missing"),
        (off(1), "diagonal_next"),
        (lambda n, m=None: upper(n, m or n, 1), "triu"),
        (lambda n, m=None: ~off(0)(n, m), "mask_inverted"),
        (lambda n, m=None: off(0)(n, m).astype(int), "mask_numbers"),
        (lambda n, m=None: np.where(off(0)(n, m), 0, -np.inf), "mask_additive"),
        (lambda n, m=None: np.ones((n, m or n), dtype=bool), "causal_missing"),
    ],
)
def test_a_wrong_causal_mask_is_named(answer, key, seed):
    assert keys("causal", answer, seed) == ("mistake", [key])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("answer", "key"),
    [
        (both(lambda pad, past: pad | past), "combined_by_or"),
        (both(lambda pad, past: pad + past), "combined_by_or"),
        (both(lambda pad, past: pad), "only_padding"),
        (both(lambda pad, past: past), "only_causal"),
        (both(lambda pad, past: past | (pad & False)), "padding_missing"),
        (both(lambda pad, past: np.tril(pad)), "tril_of_one_row"),
        (both(lambda pad, past: ~pad & past), "padding_inverted"),
        (both(lambda pad, past: ~(pad & past)), "mask_inverted"),
        (both(lambda pad, past: (pad & past)[:, 0]), "head_axis_missing"),
        (both(lambda pad, past: np.swapaxes(pad & past, 0, 1)), "head_axis_first"),
        (both(lambda pad, past: np.swapaxes(pad, -1, -2) & past), "padding_column"),
        (both(lambda pad, past: pad * past.astype(float)), "mask_numbers"),
        (on_queries, "padding_on_queries"),
        (with_triangle(tril), "aligned_top_left"),
        (with_triangle(lambda n, m: tril(n, m, n - m)), "offset_negated"),
        (both(lambda pad, past: pad & past & False), "mask_all_false"),
        (with_triangle(lambda n, m: tril(n, m, m - n - 1)), "diagonal_missing"),
        (with_triangle(lambda n, m: tril(n, m, m - n + 1)), "diagonal_next"),
        (with_triangle(lambda n, m: upper(n, m, 1)), "triu"),
        (with_triangle(lambda n, m: upper(n, m, m - n + 1)), "triu_shifted"),
        (
            lambda ls, n, m: real(np.add(ls, 1), m) & tril(n, m, m - n),
            "length_one_more",
        ),
        (
            lambda ls, n, m: real(np.full_like(ls, max(ls)), m) & tril(n, m, m - n),
            "batch_longest",
        ),
    ],
)
def test_a_wrong_mask_for_a_batch_is_named(answer, key, seed):
    assert keys("padding_and_causal", answer, seed) == ("mistake", [key])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("answer", "key"),
    [
        (lambda ids: ids[:, None] != ids, "mask_inverted"),
        (lambda ids: ids[:, None] >= ids, "document_earlier_too"),
        (lambda ids: ids[:, None] <= ids, "document_later_too"),
        (lambda ids: np.ones((len(ids),) * 2, dtype=bool), "document_missing"),
        (lambda ids: masks.document(ids) & masks.causal(len(ids)), "document_causal"),
        (lambda ids: (ids[:, None] == ids).astype(float), "mask_numbers"),
        (by_runs, "document_runs"),
        (lambda ids: np.zeros((len(ids),) * 2, dtype=bool), "mask_all_false"),
        (lambda ids: np.outer(ids, ids) > 0, "document_nonzero"),
        (lambda ids: masks.document(ids) & (ids != 0), "document_zero_hidden"),
    ],
)
def test_a_wrong_document_mask_is_named(answer, key, seed):
    assert keys("document_mask", answer, seed) == ("mistake", [key])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("answer", "key"),
    [
        (as_printed, "article_as_printed"),
        (lambda *args: as_printed(*args, kind=bool), "article_boolean"),
        (lambda *args: as_printed(*args, kind=bool, axes=2), "tril_of_one_row"),
        (create(tril), "aligned_top_left"),
        (create(lambda n, m: tril(n, m, n - m)), "offset_negated"),
        (create(lambda n, m: upper(n, m, 1)), "triu"),
        (create(lambda n, m: tril(n, m, m - n + 1)), "diagonal_next"),
        (create(either=True), "causal_forgotten_with_padding"),
        (create(always=True), "causal_always"),
        (lambda *args: ~create()(*args), "mask_inverted"),
        (lambda *args: create()(*args)[:, 0], "head_axis_missing"),
        (lambda *args: create()(*args).astype(int), "mask_numbers"),
    ],
)
def test_a_wrong_repair_is_named(answer, key, seed):
    assert keys("create_mask", answer, seed) == ("mistake", [key])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("weigh", "key"),
    [
        (lambda s, m, d: softmax(s) * m, "mask_after"),
        (renormalised, "mask_after_divided"),
        (lambda s, m, d: renormalised(s, m, d, False), "mask_after_divided_nan"),
        (lambda s, m, d: softmax(s + ~m * -np.inf), "mask_times_infinity"),
        (lambda s, m, d: softmax(s + (1 - m) * -np.inf), "mask_times_infinity"),
        (lambda s, m, d: plain(s + ~m * -np.inf), "mask_nan_throughout"),
        (lambda s, m, d: softmax(s + m), "mask_added"),
        (lambda s, m, d: softmax(s * m), "mask_fill_zero"),
        (lambda s, m, d: softmax(np.where(m, s, 1e-9)), "mask_fill_zero"),
        (lambda s, m, d: softmax(np.where(m, s, -10)), "mask_fill_10"),
        (lambda s, m, d: softmax(np.where(m, s, -1e4)), "mask_fill_10000"),
        (
            lambda s, m, d: softmax(np.where(m, s * d**0.5, -10) / d**0.5),
            "mask_before_scale",
        ),
        (lambda s, m, d: softmax(np.where(m, -np.inf, s)), "mask_inverted"),
        (lambda s, m, d: softmax(s), "mask_ignored"),
        (lambda s, m, d: plain(np.where(m, s, -np.inf)), "empty_row_nan"),
        (lambda s, m, d: softmax(np.where(m, s, -1e9)), "empty_row_filled"),
        (lambda s, m, d: softmax(s - 1e9 * ~m), "empty_row_unmasked"),
        (
            lambda s, m, d: softmax(np.where(m, s * d**0.5, -np.inf)),
            "scale_missing",
        ),
    ],
)
def test_wrong_masked_attention_is_named(weigh, key, seed):
    assert keys("masked_attention", attend(weigh), seed) == ("mistake", [key])


@pytest.mark.parametrize("seed", SEEDS)
def test_two_mistakes_at_once_are_both_named(seed):
    def answer(n_q, n_k=None):
        return np.tril(np.ones((n_q, n_k or n_q)), 1 + (n_k or n_q) - n_q)

    verdict = judge("causal", answer, seed)
    assert {m.key for m in verdict.mistakes} == {"diagonal_next", "mask_numbers"}


def test_an_unknown_mistake_is_not_given_a_name():
    def every_second(n_q, n_k=None):
        return off(0)(n_q, n_k) & (np.arange(n_k or n_q) % 2 == 0)

    verdict = judge("causal", every_second)
    assert verdict.status in ("differs", "law")
    assert not verdict.mistakes


@pytest.mark.parametrize(
    ("name", "answer", "number"),
    [
        ("causal", off(1), "lets 8 places through, and 6 are right"),
        ("padding_and_causal", both(lambda a, b: a | b), "40 places through, and 26"),
        ("create_mask", as_printed, "your mask has the shape (3, 3)"),
        ("masked_attention", attend(lambda s, m, d: softmax(s + m)), "2.718 times"),
        ("masked_attention", attend(renormalised), "query 0 sum to 0, not to 1"),
        ("document_mask", by_runs, "may not look at key"),
    ],
)
def test_the_number_that_gave_it_away_is_said(name, answer, number):
    assert number in judge(name, answer).text


def test_an_answer_that_knows_the_cases_by_heart_breaks_a_law():
    known = {case.args: off(0)(*case.args) for case in get("causal").table().cases}

    def by_heart(n_q, n_k=None):
        args = (n_q,) if n_k is None else (n_q, n_k)
        return known.get(args, tril(n_q, n_k or n_q))

    assert judge("causal", by_heart).status == "law"


def test_a_law_of_truth_tables_counts_places():
    def every_second(n_q, n_k=None):
        return off(0)(n_q, n_k) & (np.arange(n_k or n_q) % 2 == 0)

    def shifted(n_q, n_k=None):
        return every_second(n_q, n_k) & (np.arange(n_q)[:, None] > 0)

    text = judge("causal", shifted).text
    assert "They differ at 3 of 36 places, the first at [0, 0]." in text


def test_a_mask_that_depends_on_the_other_sentences_breaks_a_law():
    """By heart for the cases, and elsewhere as wide as the longest sentence."""
    right = get("padding_and_causal").solution
    known = [repr(case.args) for case in get("padding_and_causal").table().cases]

    def padding_and_causal(lengths, n_q, n_k):
        if repr((lengths, n_q, n_k)) not in known:
            lengths = lengths * 0 + max(lengths) + (len(lengths) > 1)
        return right(lengths, n_q, n_k)

    verdict = judge("padding_and_causal", padding_and_causal)
    assert verdict.status == "law"
    assert "sentences of a batch do not see each other" in verdict.text
