"""The right attention inside the examination is the library's, and PyTorch's."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib import masks
from attnlib.attention import scaled_dot_product
from attnlib.clinic.black_box.core import attend
from attnlib.clinic.black_box.looks import allowed
from attnlib.clinic.black_box.projected import Asked, project
from attnlib.clinic.black_box.scores import scores
from attnlib.clinic.black_box.traits import NOTHING, PLAIN, Traits
from attnlib.clinic.case import RIGHT
from attnlib.clinic.subject import Weights
from attnlib.heads import multi_head

GUARDED = frozenset({"guarded"})
CLOSE = {"rtol": 1e-12, "atol": 1e-12}
MANY = settings(derandomize=True, deadline=None, max_examples=25)
few = st.integers(1, 6)
seeds = st.integers(0, 10**6)


def numbers(seed, *shapes):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape) for shape in shapes]


def sdpa(q, k, v, look=None, bias=None, scale=None):
    """PyTorch's; a query that may look at nothing gets zeros, as the course has it."""
    q, k, v = (torch.from_numpy(a) for a in (q, k, v))
    shape = (*q.shape[:-1], k.shape[-2])
    extra = torch.zeros(shape, dtype=torch.float64)
    if bias is not None:
        extra = extra + torch.from_numpy(bias)
    if look is not None:
        extra = extra.masked_fill(~torch.from_numpy(look), -math.inf)
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=extra, scale=scale)
    empty = torch.isneginf(extra).all(-1, keepdim=True)
    return torch.where(empty, 0.0, out).numpy()


@MANY
@given(seeds, few, few, few, few, st.integers(1, 3), st.integers(1, 3), st.booleans())
def test_it_is_the_library_and_pytorch(seed, n_q, n_k, d_k, d_v, batch, heads, masked):
    front = (batch, heads)
    q, k, v = numbers(seed, (*front, n_q, d_k), (*front, n_k, d_k), (*front, n_k, d_v))
    look = np.random.default_rng(seed).random((batch, 1, n_q, n_k)) < 0.6
    mask = look if masked else None
    weights, out = attend(q, k, v, mask, faults=GUARDED)
    right = scaled_dot_product(q, k, v, mask)
    np.testing.assert_allclose(out, right.out, **CLOSE)
    np.testing.assert_allclose(weights, right.weights, **CLOSE)
    np.testing.assert_allclose(out, sdpa(q, k, v, mask), **CLOSE)


def test_an_unguarded_empty_row_is_nan():
    q, k, v = numbers(0, (2, 3), (4, 3), (4, 5))
    look = np.array([[True, False, True, True], [False] * 4])
    with np.errstate(invalid="ignore"):
        _, out = attend(q, k, v, look)
    assert np.isnan(out[1]).all()
    assert np.isfinite(out[0]).all()


@MANY
@given(seeds, few, few, st.booleans(), st.booleans())
def test_causal_counts_from_the_end(seed, n_q, n_k, by_trait, masked):
    q, k, v = numbers(seed, (2, 3, n_q, 4), (2, 3, n_k, 4), (2, 3, n_k, 5))
    look = masks.causal(n_q, n_k)
    mask = np.random.default_rng(seed).random((n_q, n_k)) < 0.7 if masked else None
    kind = Traits(causal=by_trait)
    _, out = attend(q, k, v, mask, not by_trait, traits=kind, faults=GUARDED)
    both = look if mask is None else look & mask
    np.testing.assert_allclose(out, sdpa(q, k, v, both), **CLOSE)


@MANY
@given(seeds, few, few, st.integers(1, 8), st.sampled_from(["left", "causal", "both"]))
def test_a_window_counts_the_querys_own_place(seed, n_q, n_k, keys, kind):
    q, k, v = numbers(seed, (2, 3, n_q, 4), (2, 3, n_k, 4), (2, 3, n_k, 5))
    right = {"left": 20, "causal": 0, "both": keys - 1}[kind]
    look = masks.window(n_q, n_k, left=keys - 1, right=right)
    traits = Traits(causal=kind == "causal", window=keys, both_sides=kind == "both")
    _, out = attend(q, k, v, traits=traits, faults=GUARDED)
    np.testing.assert_allclose(out, sdpa(q, k, v, look), **CLOSE)


@MANY
@given(seeds, few, few, st.sampled_from([(1, 4), (2, 4), (2, 6), (3, 6), (4, 4)]))
def test_neighbouring_heads_share_a_key_head(seed, n_q, n_k, heads):
    n_kv, n_heads = heads
    q, k, v = numbers(seed, (2, n_heads, n_q, 3), (2, n_kv, n_k, 3), (2, n_kv, n_k, 5))
    _, out = attend(q, k, v)
    wide = [np.repeat(a, n_heads // n_kv, axis=1) for a in (k, v)]
    np.testing.assert_allclose(out, sdpa(q, *wide), **CLOSE)


def test_heads_that_do_not_divide_are_an_error():
    q, k, v = numbers(0, (2, 5, 4, 3), (2, 2, 4, 3), (2, 2, 4, 3))
    with pytest.raises(ValueError, match="n_heads=5 is no multiple of n_kv_heads=2"):
        attend(q, k, v)


@MANY
@given(seeds, few, few, st.floats(0.1, 50.0), st.floats(0.05, 2.0), st.booleans())
def test_a_cap_comes_after_the_scale_and_before_the_mask(
    seed, n_q, n_k, cap, scale, scaled
):
    q, k, v = numbers(seed, (2, 3, n_q, 4), (2, 3, n_k, 4), (2, 3, n_k, 5))
    factor = scale if scaled else 0.5
    raw = torch.from_numpy(q) @ torch.from_numpy(k).mT * factor
    bias = (cap * torch.tanh(raw / cap)).numpy()
    look = masks.causal(n_q, n_k)
    traits = Traits(softcap=cap, scale=scale if scaled else None)
    _, out = attend(q, k, v, look, traits=traits, faults=GUARDED)
    np.testing.assert_allclose(out, sdpa(q * 0, k, v, look, bias), **CLOSE)


@MANY
@given(seeds, few, few, st.integers(2, 7), st.sampled_from(["l2", "rms", "layer"]))
def test_qk_norm_norms_the_last_axis(seed, n_q, n_k, d_k, norm):
    q, k, v = numbers(seed, (2, 3, n_q, d_k), (2, 3, n_k, d_k), (2, 3, n_k, 5))

    def normed(a):
        a = torch.from_numpy(a)
        if norm == "l2":
            return F.normalize(a, dim=-1).numpy()
        if norm == "rms":
            return F.rms_norm(a, (d_k,), eps=0.0).numpy()
        centred = a - a.mean(-1, keepdim=True)
        return F.rms_norm(centred, (d_k,), eps=0.0).numpy()

    _, out = attend(q, k, v, traits=Traits(qk_norm=norm, scale=1.0))
    np.testing.assert_allclose(
        out, sdpa(normed(q), normed(k), v, scale=1.0), rtol=1e-9, atol=1e-9
    )


def turned(x, at, layout, base, width):
    """RoPE by complex numbers, written apart."""
    first, rest = x[..., :width], x[..., width:]
    if layout == "half":
        pairs = first[..., : width // 2] + 1j * first[..., width // 2 :]
    else:
        pairs = first[..., 0::2] + 1j * first[..., 1::2]
    speeds = base ** -(np.arange(0, width, 2) / width)
    pairs = pairs * np.exp(1j * np.asarray(at)[:, None] * speeds)
    if layout == "half":
        first = np.concatenate([pairs.real, pairs.imag], axis=-1)
    else:
        first = np.stack([pairs.real, pairs.imag], axis=-1).reshape(first.shape)
    return np.concatenate([first, rest], axis=-1)


@MANY
@given(
    seeds,
    few,
    few,
    st.sampled_from(["half", "interleaved"]),
    st.sampled_from([100.0, 10000.0]),
    st.sampled_from([None, 2, 4, 6]),
)
def test_rope_turns_by_position(seed, n_q, n_k, layout, base, width):
    q, k, v = numbers(seed, (2, 3, n_q, 6), (2, 3, n_k, 6), (2, 3, n_k, 5))
    traits = Traits(rope=layout, rope_base=base, rope_width=width)
    _, out = attend(q, k, v, traits=traits)
    at_q, at_k = np.arange(n_k - n_q, n_k), np.arange(n_k)
    q = turned(q, at_q, layout, base, width or 6)
    k = turned(k, at_k, layout, base, width or 6)
    np.testing.assert_allclose(out, sdpa(q, k, v), rtol=1e-9, atol=1e-9)


@MANY
@given(seeds, few, few, st.sampled_from([1, 2, 4, 8]), st.booleans())
def test_alibi_is_minus_slope_times_distance(seed, n_q, n_k, n_heads, causal):
    front = (2, n_heads)
    q, k, v = numbers(seed, (*front, n_q, 4), (*front, n_k, 4), (*front, n_k, 5))
    slopes = 2.0 ** (-8 * np.arange(1, n_heads + 1) / n_heads)
    apart = np.abs(np.arange(n_k) - np.arange(n_k - n_q, n_k)[:, None])
    bias = -slopes[:, None, None] * apart
    look = masks.causal(n_q, n_k) if causal else None
    traits = Traits(alibi=True, causal=causal)
    _, out = attend(q, k, v, traits=traits, faults=GUARDED)
    np.testing.assert_allclose(out, sdpa(q, k, v, look, bias), **CLOSE)


@MANY
@given(seeds, few, few, st.integers(1, 3))
def test_padding_and_a_mask_are_one_mask(seed, n_q, n_k, batch):
    rng = np.random.default_rng(seed)
    mask, real = rng.random((n_q, n_k)) < 0.7, rng.random((batch, 1, 1, n_k)) < 0.7
    shape = (batch, 2, n_q, n_k)
    look = allowed(mask, True, shape, PLAIN, RIGHT, real)
    right = mask & real & masks.causal(n_q, n_k)
    right = np.broadcast_to(right, shape)
    np.testing.assert_array_equal(np.broadcast_to(look, shape), right)
    alone = allowed(None, False, shape, PLAIN, RIGHT, real)
    np.testing.assert_array_equal(alone, real)
    assert allowed(None, False, shape, PLAIN, RIGHT) is None


def weights_of(rng, d_model, d_memory, n_heads, n_kv, d_k, d_v, biases):
    def b(n):
        return rng.normal(size=n) if biases else None

    return Weights(
        rng.normal(size=(d_model, n_heads * d_k)),
        rng.normal(size=(d_memory, n_kv * d_k)),
        rng.normal(size=(d_memory, n_kv * d_v)),
        rng.normal(size=(n_heads * d_v, d_model)),
        b(n_heads * d_k),
        b(n_kv * d_k),
        b(n_kv * d_v),
        b(d_model),
        n_heads,
        n_kv,
        d_model,
    )


@MANY
@given(
    seeds,
    few,
    few,
    st.sampled_from([(1, 1), (4, 2), (6, 3), (4, 4), (4, 1)]),
    st.booleans(),
    st.booleans(),
)
def test_a_module_is_multi_head(seed, n_q, n_k, heads, crossed, masked):
    rng, (n_heads, n_kv) = np.random.default_rng(seed), heads
    d_k, d_model = 3, 3 * n_heads
    d_v = d_k if not crossed else 2
    w = weights_of(rng, d_model, 7 if crossed else d_model, n_heads, n_kv, d_k, d_v, 0)
    x = rng.normal(size=(2, n_q, d_model))
    memory = rng.normal(size=(2, n_k, 7)) if crossed else None
    n = n_k if crossed else n_q
    mask = rng.random((2, n_q, n)) < 0.7 if masked else None
    real = rng.random((2, n)) < 0.8 if masked else None
    asked = Asked("x", x, w, memory, mask, real)
    look = None if mask is None else (mask & real[:, None])[:, None]
    right = multi_head(
        x,
        w.W_q,
        w.W_k,
        w.W_v,
        w.W_o,
        n_heads,
        n_kv_heads=n_kv,
        memory=memory,
        mask=look,
    )
    out = project(asked, faults=GUARDED)
    np.testing.assert_allclose(out, right.out, rtol=1e-10, atol=1e-10)


def test_a_module_with_biases_is_pytorchs():
    rng = np.random.default_rng(3)
    w = weights_of(rng, 12, 12, 3, 3, 4, 4, 1)
    module = torch.nn.MultiheadAttention(12, 3, batch_first=True).double()
    with torch.no_grad():
        rows = np.concatenate([w.W_q, w.W_k, w.W_v], axis=1).T
        module.in_proj_weight.copy_(torch.from_numpy(rows))
        biases = np.concatenate([w.b_q, w.b_k, w.b_v])
        module.in_proj_bias.copy_(torch.from_numpy(biases))
        module.out_proj.weight.copy_(torch.from_numpy(w.W_o.T))
        module.out_proj.bias.copy_(torch.from_numpy(w.b_o))
    x = rng.normal(size=(2, 5, 12))
    tokens = torch.from_numpy(x)
    hides = torch.from_numpy(~masks.causal(5))
    right, _ = module(tokens, tokens, tokens, attn_mask=hides, need_weights=False)
    out = project(Asked("causal", x, w, causal=True))
    np.testing.assert_allclose(out, right.detach().numpy(), rtol=1e-10, atol=1e-10)


def test_the_scores_are_those_that_meet_the_mask():
    q, k, v = numbers(1, (2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 6, 2))
    s = scores(q, k, v, PLAIN, RIGHT, NOTHING)
    np.testing.assert_allclose(s, np.einsum("bhid,bhjd->bhij", q, k) / 5**0.5, **CLOSE)
    weights, _ = attend(q, k, v)
    e = np.exp(s)
    np.testing.assert_allclose(weights, e / e.sum(-1, keepdims=True), **CLOSE)
