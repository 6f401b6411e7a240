"""Fewer keys: against torch's pooling and convolution, loops, and full attention."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import avg_pool1d, conv1d
from torch.nn.functional import scaled_dot_product_attention as sdpa

from attnlib import lowrank, masks
from attnlib.attention import scaled_dot_product
from attnlib.shapes import ShapeError

steady = settings(derandomize=True, deadline=None, max_examples=60)
sizes = st.integers(0, 9)


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def inputs(*batch, n_q, n_k, d_k=3, d_v=2):
    shapes = ((*batch, n_q, d_k), (*batch, n_k, d_k), (*batch, n_k, d_v))
    return [normal(*shape, seed=seed) for seed, shape in enumerate(shapes)]


def near(ours, theirs, atol=1e-12):
    assert ours.shape == tuple(theirs.shape)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=atol)


def far(ours, full):
    """The relative error of a whole result."""
    return np.linalg.norm(ours - full) / np.linalg.norm(full)


# Low rank


def test_low_rank_is_sdpa_of_mixed_keys():
    q, k, v = inputs(2, n_q=5, n_k=7)
    E_k, E_v = normal(4, 7, seed=8), normal(4, 7, seed=9)
    ours = lowrank.low_rank(q, k, v, E_k, E_v, scale=0.4)
    short = torch.from_numpy(np.einsum("sn,bnd->bsd", E_k, k))
    mixed = torch.from_numpy(np.einsum("sn,bnd->bsd", E_v, v))
    near(ours.out, sdpa(torch.from_numpy(q), short, mixed, scale=0.4))
    assert ours.n_pairs == 5 * 4
    near(lowrank.low_rank(q, k, v, E_k).v_short, E_k @ v)


def test_low_rank_with_the_identity_is_full_attention():
    q, k, v = inputs(2, n_q=5, n_k=7)
    ours = lowrank.low_rank(q, k, v, np.eye(7))
    near(ours.out, scaled_dot_product(q, k, v).out)


# Pools


@steady
@given(sizes, st.integers(1, 4), st.booleans())
def test_pool_is_a_mean_by_loops(n, width, padded):
    x = normal(2, n, 3)
    real = np.random.default_rng(4).random((2, n)) < 0.6 if padded else None
    means, there = lowrank.pool(x, width, real=real)
    n_pieces = -(-n // width)
    assert means.shape == (2, n_pieces, 3)
    for b in range(2):
        for t in range(n_pieces):
            js = range(t * width, min((t + 1) * width, n))
            kept = [x[b, j] for j in js if real is None or real[b, j]]
            assert there[b, t] == bool(kept)
            near(means[b, t], np.mean(kept, axis=0) if kept else np.zeros(3))


def test_full_pieces_are_torchs_average_pooling():
    x = normal(2, 12, 3)
    theirs = avg_pool1d(torch.from_numpy(x).transpose(1, 2), 4).transpose(1, 2)
    near(lowrank.pool(x, 4)[0], theirs)


def test_half_precision_is_added_in_more():
    x = np.full((1, 3000, 1), 1.0, np.float16)
    means, _ = lowrank.pool(x, 3000)
    assert (means.dtype, means[0, 0, 0]) == (np.float16, 1.0)


@steady
@given(sizes, sizes, st.integers(1, 4), st.booleans())
def test_pooled_is_attention_to_the_means(n_q, n_k, width, causal):
    q, k, v = inputs(2, n_q=n_q, n_k=n_k)
    ours = lowrank.pooled(q, k, v, width=width, causal=causal)
    k_short, v_short = lowrank.pool(k, width)[0], lowrank.pool(v, width)[0]
    mask = np.ones((n_q, k_short.shape[1]), bool)
    if causal:  # a piece is seen by those who see all of its keys
        seen = masks.causal(n_q, n_k)
        for t in range(mask.shape[1]):
            mask[:, t] = seen[:, t * width : (t + 1) * width].all(axis=1)
    near(ours.out, scaled_dot_product(q, k_short, v_short, mask).out)
    assert ours.n_pairs == n_q * -(-n_k // width)


def test_pooled_one_by_one_is_full_attention():
    q, k, v = inputs(2, n_q=5, n_k=7)
    near(lowrank.pooled(q, k, v, width=1).out, scaled_dot_product(q, k, v).out)
    causal = scaled_dot_product(q, k, v, masks.causal(5, 7)).out
    near(lowrank.pooled(q, k, v, width=1, causal=True).out, causal)


def test_padding_is_in_no_mean():
    q, k, v = inputs(2, 3, n_q=5, n_k=7)
    real = masks.padding([4, 7], 7)[:, 0]  # (batch, 1, n_k): for all heads
    k[0, :, 4:], v[0, :, 4:] = np.nan, np.nan
    ours = lowrank.pooled(q, k, v, width=3, real=real)
    alone = lowrank.pooled(q[0], k[0, :, :4], v[0, :, :4], width=3)
    near(ours.out[0], alone.out)
    assert np.isfinite(ours.out).all()


def test_causal_pools_do_not_see_the_future():
    q, k, v = inputs(n_q=9, n_k=9)
    before = lowrank.pooled(q, k, v, width=3, causal=True).out
    k[5:], v[5:] = 9.0, 9.0
    after = lowrank.pooled(q, k, v, width=3, causal=True).out
    near(after[:5], before[:5])
    near(before[:2], np.zeros((2, 2)))


# Memory compression


@steady
@given(sizes, st.integers(1, 4), st.integers(1, 3))
def test_memory_compressed_is_torchs_convolution(n_k, width, stride):
    q, k, v = inputs(2, n_q=4, n_k=n_k)
    C_k, C_v = normal(width, 3, 3, seed=8), normal(width, 2, 2, seed=9)
    ours = lowrank.memory_compressed(q, k, v, C_k, C_v, stride=stride)
    short = []
    for x, kernel in ((k, C_k), (v, C_v)):
        weight = torch.from_numpy(kernel).permute(2, 1, 0)  # (out, in, width)
        behind = max(0, width - n_k) if n_k < width else -(n_k - width) % stride
        padded = np.pad(x, ((0, 0), (0, behind), (0, 0)))
        if n_k == 0:
            short.append(torch.zeros(2, 0, x.shape[-1], dtype=torch.float64))
            continue
        rows = torch.from_numpy(padded).transpose(1, 2)
        short.append(conv1d(rows, weight, stride=stride).transpose(1, 2))
    near(ours.k_short, short[0])
    near(ours.v_short, short[1])
    if n_k:
        near(ours.out, sdpa(torch.from_numpy(q), *short))


def test_a_kernel_of_means_is_pooling():
    q, k, v = inputs(2, n_q=4, n_k=9)
    kernels = [np.stack([np.eye(d) / 3] * 3) for d in (3, 2)]
    ours = lowrank.memory_compressed(q, k, v, *kernels)
    near(ours.out, lowrank.pooled(q, k, v, width=3).out)


# Linear attention


def test_features_are_elu_and_one():
    x = normal(5, 4) * 3
    near(lowrank.features(x), torch.nn.functional.elu(torch.from_numpy(x)) + 1)
    assert lowrank.features([-1000.0, 1000.0]).tolist() == [0.0, 1001.0]


def by_definition(q, k, v, causal):
    """Katharopoulos et al., equation 4, a pair at a time."""
    out = np.zeros((len(q), v.shape[-1]))
    phi_q, phi_k = (
        torch.nn.functional.elu(torch.tensor(x)).numpy() + 1 for x in (q, k)
    )
    for i in range(len(q)):
        p = len(k) - len(q) + i
        js = [j for j in range(len(k)) if not causal or j <= p]
        similar = [phi_q[i] @ phi_k[j] for j in js]
        for s, j in zip(similar, js, strict=True):
            out[i] += s / sum(similar) * v[j]
    return out


@steady
@given(sizes, sizes, st.booleans())
def test_linear_is_its_definition_and_its_dense_form(n_q, n_k, causal):
    q, k, v = inputs(2, n_q=n_q, n_k=n_k)
    ours = lowrank.linear(q, k, v, causal=causal)
    dense = lowrank.linear_dense(q, k, v, causal=causal)
    for b in range(2):
        near(ours.out[b], by_definition(q[b], k[b], v[b], causal))
    near(dense.out, ours.out)
    sums = dense.weights.sum(axis=-1)
    assert (np.isclose(sums, 1) | (sums == 0)).all()


def test_the_state_after_the_last_key_is_all_that_is_kept():
    q, k, v = inputs(n_q=6, n_k=6)
    whole = lowrank.linear(q, k, v, causal=True)
    again = lowrank.linear(q, k, v)
    near(whole.state, again.state)
    near(whole.total, again.total)
    assert whole.state.size + whole.total.size == 3 * (2 + 1)
    first = lowrank.linear(q[:4], k[:4], v[:4], causal=True)
    near(first.out, whole.out[:4])


def test_its_weights_have_a_rank_of_d_k_at_most():
    q, k, v = inputs(n_q=20, n_k=20)
    weights = lowrank.linear_dense(q, k, v).weights
    assert np.linalg.matrix_rank(weights) == 3
    assert np.linalg.matrix_rank(scaled_dot_product(q, k, v).weights) > 3


# The article's snippet, and what it meant


def test_the_articles_snippet_is_torchs_and_halves_the_text():
    x = normal(2, 10, 4)
    tensor = torch.from_numpy(x)
    local_pooled = torch.nn.AvgPool1d(kernel_size=3, stride=2)(tensor.transpose(1, 2))
    theirs = sdpa(local_pooled.transpose(1, 2), tensor, tensor)
    ours = lowrank.article_pooled(x)
    near(ours.out, theirs)
    assert ours.out.shape == (2, 4, 4)  # not (2, 10, 4)
    assert ours.n_pairs == 4 * 10  # of 100: the keys are as many as before


def test_what_is_wrong_with_the_snippet_and_right_with_the_mended_one():
    x = normal(10, 4)
    # The last of an even number of tokens is in no query.
    changed = x.copy()
    changed[-1] += 5
    before, after = (lowrank.article_pooled(a).queries for a in (x, changed))
    assert np.array_equal(before, after)
    # It sees the future; the mended one need not.
    assert not np.allclose(
        lowrank.article_pooled(x).out[0], lowrank.article_pooled(changed).out[0]
    )
    before, after = (
        lowrank.hierarchical(a, width=3, causal=True).out for a in (x, changed)
    )
    near(before[:-1], after[:-1])
    assert not np.allclose(before[-1], after[-1])
    # Padding is averaged in and looked at; the mended one leaves it out.
    longer = np.concatenate([x, np.zeros((3, 4))])
    short = lowrank.article_pooled(x).out
    assert not np.allclose(lowrank.article_pooled(longer).out[:4], short)
    real = np.arange(13) < 10
    mended = lowrank.hierarchical(longer, width=3, real=real).out
    near(mended[:10], lowrank.hierarchical(x, width=3).out)
    near(mended[10:], np.zeros((3, 4)))


@steady
@given(st.integers(0, 11), st.integers(1, 5), st.booleans())
def test_hierarchical_is_its_sentence_by_loops(n, width, causal):
    x = normal(2, n, 3)
    ours = lowrank.hierarchical(x, width=width, causal=causal)
    piece = np.arange(n) // width
    inside = piece[:, None] == piece
    if causal:
        inside &= masks.causal(n)
    local = scaled_dot_product(x, x, x, inside).out
    near(ours.local, local)
    starts = range(0, n, width)
    means = np.zeros((2, len(starts), 3))
    see = np.ones((n, len(starts)), bool)
    for t, start in enumerate(starts):
        end = min(start + width, n)
        means[:, t] = local[:, start:end].mean(axis=1)
        see[:, t] = not causal or np.arange(n) >= end - 1
    near(ours.means, means)
    near(ours.out, local + scaled_dot_product(local, means, means, see).out)


def test_hierarchical_costs_n_to_the_three_halves():
    pairs = {n: lowrank.hierarchical(np.zeros((n, 2)), width=int(n**0.5)).n_pairs
             for n in (100, 400, 1600)}  # fmt: skip
    for n, found in pairs.items():
        assert found == 2 * n**1.5


# Errors against full attention: what a lesson measures


def test_errors_against_full_attention_are_what_they_are():
    n, d = 64, 16
    q, k, v = (normal(n, d, seed=seed) for seed in range(3))
    full = scaled_dot_product(q, k, v).out
    errors = {
        "window": far(
            scaled_dot_product(q, k, v, masks.window(n, left=8, right=8)).out, full
        ),
        "pooled": far(lowrank.pooled(q, k, v, width=4).out, full),
        "linear": far(lowrank.linear(q, k, v).out, full),
    }
    # Random keys have no structure that a short form could use.
    assert all(0.5 < error < 2.5 for error in errors.values()), errors
    # Keys that change slowly have.
    slow = np.repeat(k[::4], 4, axis=0), np.repeat(v[::4], 4, axis=0)
    smooth = scaled_dot_product(q, *slow).out
    assert far(lowrank.pooled(q, *slow, width=4).out, smooth) < 1e-12


# Errors

Q, K, V = np.ones((2, 8, 3)), np.ones((2, 9, 3)), np.ones((2, 9, 2))


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (
            lambda: lowrank.low_rank(Q, K, V, np.ones((4, 8))),
            ShapeError,
            "n_k is 9, but E_k with shape (4, 8) has 8 there.",
        ),
        (
            lambda: lowrank.low_rank(Q, K, V, np.ones((4, 9)), np.ones((5, 9))),
            ShapeError,
            "n_short is 4 in E_k with shape (4, 9) but 5 in E_v with shape (5, 9); E_k "
            "and E_v must agree in n_short.",
        ),
        (
            lambda: lowrank.pooled(Q, K, V, width=0),
            ShapeError,
            "width must be at least 1, but it is 0.",
        ),
        (
            lambda: lowrank.pooled(Q, K, V, width=2, real=np.ones((2, 8), bool)),
            ShapeError,
            "real with shape (2, 8) does not broadcast to the tokens of k, (2, 9).",
        ),
        (
            lambda: lowrank.pool(K, 2, real=np.ones((2, 9))),
            TypeError,
            "real must be boolean (True = no padding), but its dtype is float64.",
        ),
        (
            lambda: lowrank.memory_compressed(
                Q, K, V, np.ones((2, 3, 4)), np.ones((2, 2, 2))
            ),
            ShapeError,
            "d_out is 3, but C_k with shape (2, 3, 4) has 4 there.",
        ),
        (
            lambda: lowrank.memory_compressed(
                Q, K, V, np.ones((2, 3, 3)), np.ones((2, 2, 2)), stride=0
            ),
            ShapeError,
            "stride must be at least 1, but it is 0.",
        ),
        (
            lambda: lowrank.linear(Q, K[:, :5], V),
            ShapeError,
            "n_k is 5 in k with shape (2, 5, 3) but 9 in v with shape (2, 9, 2); k and "
            "v must agree in n_k.",
        ),
        (
            lambda: lowrank.linear(Q, np.ones((3, 9, 3)), V),
            ShapeError,
            "the batch axes of q (2,), k (3,) and v (2,) do not broadcast.",
        ),
        (
            lambda: lowrank.article_pooled(np.ones((2, 2, 4))),
            ShapeError,
            "a pool of 3 tokens needs at least 3, but x has n=2.",
        ),
        (
            lambda: lowrank.hierarchical("text", width=2),
            TypeError,
            "x must be an array of numbers, but it is a str.",
        ),
    ],
)
def test_errors_say_what_was_asked_and_what_was_found(call, kind, text):
    with pytest.raises(kind) as error:
        call()
    assert str(error.value) == text
