"""Sinks, norms and likeness of heads: known values, PyTorch, and what they ignore."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib.attention import softmax
from attnlib.head_diagnostics import (
    head_cosines,
    head_divergences,
    head_imbalance,
    head_norms,
    induction_score,
    offset_mass,
    sink_mass,
)
from attnlib.heads import merge_heads
from attnlib.masks import causal
from attnlib.shapes import ShapeError

steady = settings(derandomize=True, deadline=None, max_examples=50)


def heads(seed, shape, empty=0.0):
    """Weights of random heads, some of their rows empty."""
    rng = np.random.default_rng(seed)
    weights = softmax(rng.normal(size=shape) * 3)
    return weights * (rng.random(shape[:-1]) >= empty)[..., None]


# sinks


def test_the_sink_is_the_mean_over_rows_that_are_not_empty():
    weights = np.zeros((2, 3, 4))
    weights[0, :2, 0] = [1, 0.5]
    weights[0, 1, 3] = 0.5
    weights[1] = 0.25
    assert sink_mass(weights).tolist() == [0.75, 0.25]
    assert sink_mass(weights, 2).tolist() == [0.75, 0.5]
    assert sink_mass(weights, 4).tolist() == [1, 1]
    assert sink_mass(np.zeros((3, 4))) == sink_mass(np.zeros((0, 4))) == 0


def test_even_weights_under_a_causal_mask_give_the_harmonic_mean():
    n = 6
    weights = softmax(np.where(causal(n), 0.0, -np.inf))
    expected = sum(1 / i for i in range(1, n + 1)) / n
    assert sink_mass(weights) == pytest.approx(expected)
    assert sink_mass(weights[1:]) == pytest.approx((expected * n - 1) / (n - 1))


# where they look


@steady
@given(st.integers(0, 99), st.integers(0, 6), st.integers(0, 6), st.integers(-7, 7))
def test_the_offset_mass_is_the_mean_of_a_diagonal(seed, n_q, n_k, offset):
    w = heads(seed, (2, 3, n_q, n_k), empty=0.3) if n_k else np.zeros((2, 3, n_q, 0))
    found = offset_mass(w, offset)
    for b in range(2):
        for h in range(3):
            seen = [
                w[b, h, i, i + n_k - n_q - offset]
                for i in range(n_q)
                if 0 <= i + n_k - n_q - offset < n_k and w[b, h, i].any()
            ]
            expected = sum(seen) / len(seen) if seen else 0
            assert found[b, h] == pytest.approx(expected)


def test_all_offsets_together_see_the_whole_weight():
    n = 5
    w = softmax(np.where(causal(n), 0.0, -np.inf))
    rows = [n - offset for offset in range(n)]
    total = sum(
        offset_mass(w, offset) * row for offset, row in zip(range(n), rows, strict=True)
    )
    assert total == pytest.approx(n)
    assert offset_mass(np.eye(4), 0) == 1
    assert offset_mass(np.eye(4, k=1), -1) == offset_mass(np.eye(4, k=-1), 1) == 1


def test_the_last_query_stands_beside_the_last_key():
    w = np.array([[0, 0, 0.75, 0.25, 0], [0, 0, 0, 0.5, 0.5]])
    assert offset_mass(w, 1) == 0.625


@pytest.mark.parametrize("start", [0, 1, 3])
@pytest.mark.parametrize("period", [1, 4, 6])
def test_a_head_that_looks_up_what_came_next_scores_one(period, start):
    n = 13
    ids = np.concatenate([[99] * start, np.resize(np.arange(period), n - start)])
    w = np.zeros((2, n, n))
    for i in range(start + period, n):
        (places,) = np.nonzero(ids[:i] == ids[i])
        w[0, i, places[-1] + 1] = 1.0  # after the same token, the last time
        w[1, i, places[-1]] = 1.0  #     the same token itself
    w[:, : start + period, 0] = 1.0  # the first copy does not count
    assert induction_score(w, period, start).tolist() == [1.0, 0.0]


def test_a_fixed_offset_passes_with_one_period_and_fails_with_another():
    w = np.eye(40, k=-9)
    assert induction_score(w, 10) == 1
    assert induction_score(w, 11) == 0
    assert induction_score(w, 40) == induction_score(np.zeros((0, 0)), 3) == 0


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: induction_score(np.eye(4), 0),
            ShapeError,
            "period must be at least 1, but it is 0.",
        ),
        (
            lambda: induction_score(np.eye(4), 2, -1),
            ShapeError,
            "start must be at least 0, but it is -1.",
        ),
        (lambda: induction_score(np.zeros((3, 4)), 2), ShapeError, "n"),
        (
            lambda: offset_mass(np.eye(4), 0.5),
            TypeError,
            "offset must be a whole number, but it is 0.5.",
        ),
        (lambda: offset_mass(np.zeros(4), 1), ShapeError, "weights"),
    ],
)
def test_questions_about_places_that_do_not_fit_are_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


# how loud


@steady
@given(st.integers(0, 99), st.integers(1, 4), st.integers(0, 5))
def test_norms_are_torchs(seed, n_heads, n):
    mixed = np.random.default_rng(seed).normal(size=(2, n_heads, n, 3))
    theirs = torch.linalg.vector_norm(torch.from_numpy(mixed), dim=(-2, -1))
    np.testing.assert_allclose(head_norms(mixed), theirs.numpy(), rtol=1e-12)


def test_one_loud_head_is_found_and_the_merged_output_hides_it():
    mixed = np.zeros((2, 8, 10, 16))
    mixed[:, 3] = 5.0
    assert head_norms(mixed)[0].argmax() == 3
    assert (head_norms(mixed) > 0).sum(axis=-1).tolist() == [1, 1]
    # The articles' monitor: after the merge, [:, i, :] is token i, the same for all.
    merged = merge_heads(mixed)
    seen = [float(np.linalg.norm(merged[:, i, :])) for i in range(8)]
    assert len(set(seen)) == 1
    np.testing.assert_allclose(head_imbalance(mixed), 7)


@steady
@given(st.integers(0, 99), st.floats(1e-3, 1e3), st.integers(1, 5))
def test_imbalance_sees_neither_the_size_nor_the_number_of_tokens(seed, factor, times):
    mixed = np.random.default_rng(seed).normal(size=(4, 3, 5))
    plain = head_imbalance(mixed)
    assert 0 <= plain <= 3
    assert head_imbalance(mixed * factor) == pytest.approx(plain)
    assert head_imbalance(np.tile(mixed, (1, times, 1))) == pytest.approx(plain)
    assert head_imbalance(np.tile(mixed[:1], (4, 1, 1))) == pytest.approx(0)


def test_silent_heads_and_large_float16():
    assert head_imbalance(np.zeros((2, 3, 4))) == 0
    loud = np.full((1, 4, 64), 6e4, np.float16)
    assert head_norms(loud) == pytest.approx(6e4 * 16, rel=1e-3)
    assert head_norms(np.ones((2, 3, 4), int)) == pytest.approx(12**0.5)


# likeness


@steady
@given(st.integers(0, 99), st.sampled_from([0.0, 0.4, 1.0]))
def test_cosines_are_torchs(seed, empty):
    weights = heads(seed, (2, 3, 4, 5), empty)
    flat = torch.from_numpy(weights).flatten(-2)
    theirs = torch.cosine_similarity(flat[:, :, None], flat[:, None], dim=-1)
    np.testing.assert_allclose(head_cosines(weights), theirs.numpy(), atol=1e-12)


@steady
@given(st.integers(0, 99), st.sampled_from([0.0, 0.4, 1.0]))
def test_divergences_are_torchs_kl_to_the_middle(seed, empty):
    weights = heads(seed, (2, 3, 4, 5), empty)
    ours = head_divergences(weights)
    assert ours.shape == (2, 3, 3)
    kl = torch.nn.functional.kl_div
    for b, first, second in np.ndindex(ours.shape):
        values = []
        for p, q in zip(weights[b, first], weights[b, second], strict=True):
            if p.any() and q.any():
                p, q = torch.from_numpy(p), torch.from_numpy(q)
                middle = ((p + q) / 2).log()
                values.append(
                    (kl(middle, p, reduction="sum") + kl(middle, q, reduction="sum"))
                    / 2
                )
        expected = float(np.mean(values)) if values else 0.0
        assert ours[b, first, second] == pytest.approx(expected, abs=1e-12)
    assert (ours >= 0).all()
    assert (ours <= math.log(2) + 1e-12).all()


def test_heads_that_do_the_same_and_heads_that_share_no_key():
    same, other = np.eye(3), np.eye(3)[[1, 2, 0]]
    weights = np.stack([same, same, other])
    cosines = [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    np.testing.assert_allclose(head_cosines(weights), cosines, atol=1e-15)
    expected = math.log(2) * (1 - head_cosines(weights))
    np.testing.assert_allclose(head_divergences(weights), expected, atol=1e-15)


def test_heads_that_are_nearly_the_same_are_not_nearer_than_near():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(1, 50, 5)) + 1e-9 * rng.normal(size=(20, 50, 5))
    # One row at a time: in the mean, rounding below 0 would hide.
    rows = np.swapaxes(softmax(scores), 0, 1)[:, :, None]
    assert head_divergences(rows).min() == 0


def test_heads_that_know_nothing_of_each_other_are_not_at_zero():
    weights = softmax(np.random.default_rng(0).normal(size=(2, 512, 512)))
    # Scores of variance 1: E[exp(s)]^2 / E[exp(2 s)] is 1 / e.
    assert head_cosines(weights)[0, 1] == pytest.approx(1 / math.e, rel=0.02)


def test_no_heads_no_keys_and_half_numbers():
    assert head_divergences(np.zeros((2, 0, 3, 3))).shape == (2, 0, 0)
    assert head_cosines(np.zeros((2, 0, 3))).tolist() == [[0, 0], [0, 0]]
    assert head_cosines(np.zeros((0, 3, 3))).shape == (0, 0)
    half = np.full((2, 3, 4), 0.25, np.float16)
    np.testing.assert_allclose(head_cosines(half), 1, rtol=1e-6)
    assert head_divergences(half).tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: sink_mass([1.0]),
            "weights needs the axes (n_q, n_k) at its end, but its shape is (1,).",
        ),
        (
            lambda: sink_mass(np.ones((2, 3)), 4),
            "n_sinks=4 is larger than n_k=3.",
        ),
        (
            lambda: sink_mass(np.ones((2, 3)), 0),
            "n_sinks must be at least 1, but it is 0.",
        ),
        (
            lambda: head_norms(np.ones((3, 8))),
            "mixed needs the axes (n_heads, n_q, d_v) at its end, but its shape is "
            "(3, 8).",
        ),
        (
            lambda: head_imbalance(np.ones((2, 0, 3))),
            "n_q must be at least 1, but it is 0.",
        ),
        (
            lambda: head_cosines(np.ones((3, 3))),
            "weights needs the axes (n_heads, n_q, n_k) at its end, but its shape is "
            "(3, 3).",
        ),
        (
            lambda: head_divergences(np.ones((3, 3))),
            "weights needs the axes (n_heads, n_q, n_k) at its end, but its shape is "
            "(3, 3).",
        ),
    ],
)
def test_errors_say_which_size(call, text):
    with pytest.raises(ShapeError) as error:
        call()
    assert str(error.value) == text
