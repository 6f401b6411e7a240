"""The cache: token by token and in pieces the same as all at once, and its errors."""

import copy
import gc

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_tools import close, normal, one_thread  # noqa: F401

from attnlib import masks
from attnlib.nn import KVCache, MultiHeadAttention
from attnlib.positions import rope
from attnlib.shapes import ShapeError

steady = settings(derandomize=True, deadline=None, max_examples=30)


def turn(x, positions):
    """RoPE with interleaved pairs, in torch: differentiable."""
    d = x.shape[-1]
    speed = 10000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    angle = positions[..., None] * speed
    a, b = x[..., ::2], x[..., 1::2]
    cos, sin = angle.cos(), angle.sin()
    return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)


def made(n_kv_heads=2, rotate=turn, **more):
    generator = torch.Generator().manual_seed(0)
    return MultiHeadAttention(
        16,
        4,
        n_kv_heads=n_kv_heads,
        rotate=rotate,
        init="linear",
        generator=generator,
        dtype=torch.float64,
        **more,
    )


def in_pieces(attention, x, cuts, **more):
    cache = KVCache()
    outs = [
        attention(piece, causal=True, cache=cache, **more)
        for piece in x.split(cuts, dim=-2)
    ]
    return torch.cat(outs, dim=-2), cache


@steady
@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=4),
    st.sampled_from([1, 2, 4]),
    st.booleans(),
)
def test_pieces_are_the_same_as_all_at_once(cuts, n_kv_heads, rotated):
    attention = made(n_kv_heads, turn if rotated else None)
    x = normal(2, sum(cuts), 16).requires_grad_()
    whole = attention(x, causal=True, return_stages=True)
    out, cache = in_pieces(attention, x, cuts)
    close(out, whole.out)
    assert cache.length == sum(cuts)
    close(cache.k, whole.k)
    close(cache.v, whole.v)
    inputs = (x, *attention.parameters())
    upstream = normal(*out.shape, seed=9)
    ours = torch.autograd.grad(out, inputs, upstream)
    theirs = torch.autograd.grad(whole.out, inputs, upstream)
    for one, other in zip(ours, theirs, strict=True):
        close(one, other)


@torch.no_grad()
def test_token_by_token_is_the_same_as_all_at_once():
    attention, x = made(), normal(2, 9, 16)
    cache, whole = KVCache(), attention(x, causal=True)
    for i in range(9):
        close(attention(x[:, i : i + 1], causal=True, cache=cache), whole[:, i : i + 1])
        assert cache.length == i + 1


def test_a_mask_counts_the_tokens_in_the_cache():
    attention, x = made(), normal(2, 7, 16)
    mask = masks.padding([5, 7], 7) & masks.window(7, left=3)
    whole = attention(x, mask=mask)
    cache = KVCache()
    first = attention(x[:, :4], mask=mask[..., :4, :4], cache=cache)
    rest = attention(x[:, 4:], mask=mask[..., 4:, :], cache=cache)
    close(torch.cat([first, rest], dim=1), whole)


def test_rotated_keys_are_numpys_rope():
    attention, x = made(), normal(2, 6, 16)
    turned = attention(x, return_stages=True)
    attention.rotate = None
    plain = attention(x, return_stages=True)
    for stage in ("q", "k"):
        expected = rope(getattr(plain, stage).detach().numpy(), np.arange(6))
        close(getattr(turned, stage), torch.from_numpy(expected))
    assert torch.equal(turned.v, plain.v)


def test_only_the_distance_of_positions_counts():
    attention, x = made(), normal(2, 6, 16)
    here = attention(x, causal=True)
    far = attention(x, causal=True, positions=torch.arange(6) + 100)
    close(far, here)
    apart = attention(x, causal=True, positions=torch.arange(6) * 2)
    assert not torch.allclose(apart, here)


def test_positions_that_differ_by_sequence_undo_padding_on_the_left():
    attention, x = made(), normal(1, 4, 16)
    padded = torch.cat([normal(1, 3, 16, seed=8), x], dim=1)
    mask = (torch.arange(7) >= 3)[None, None, None]
    positions = (torch.arange(7) - 3).clamp(min=0)[None, None]
    out = attention(padded, causal=True, mask=mask, positions=positions)
    close(out[:, 3:], attention(x, causal=True))


def test_a_memory_is_read_once():
    attention, memory = made(rotate=None, d_memory=5), normal(2, 6, 5)
    x, cache = normal(2, 3, 16), KVCache()
    whole = attention(x, memory)
    calls = []
    attention.W_k.register_forward_hook(lambda *_: calls.append(1))
    for i in range(3):
        close(attention(x[:, i : i + 1], memory, cache=cache), whole[:, i : i + 1])
    assert (len(calls), cache.length) == (1, 6)
    other = memory.clone()
    with pytest.raises(ValueError, match="holds the 6 tokens of another memory"):
        attention(x, other, cache=cache)
    with pytest.raises(ValueError, match="another memory"):
        attention(x, memory, values=other, cache=cache)
    cache.clear()
    close(attention(x, other, cache=cache), whole)


def test_a_call_that_fails_leaves_the_cache_as_it_was():
    attention, x, cache = made(), normal(2, 4, 16), KVCache()
    attention(x, causal=True, cache=cache)
    before = cache.k
    with pytest.raises(ShapeError, match="mask with shape"):
        attention(x, mask=np.ones((4, 4), bool), cache=cache)
    with pytest.raises(ShapeError, match="the cache holds k"):
        attention(x[:1], causal=True, cache=cache)
    assert cache.k is before


def test_what_was_handed_out_does_not_change_and_a_copy_is_a_branch():
    cache = KVCache()
    first, _ = cache.append(normal(2, 3, 4), normal(2, 3, 4))
    before, branch = first.clone(), copy.copy(cache)
    cache.append(normal(2, 1, 4), normal(2, 1, 4))
    assert torch.equal(first, before)
    assert (branch.length, cache.length) == (3, 4)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_bytes_are_those_of_the_kept_heads(dtype):
    attention, cache = made().to(dtype), KVCache()
    assert repr(cache) == "KVCache(length=0, n_bytes=0)"
    attention(normal(3, 5, 16).to(dtype), cache=cache)
    wide = torch.finfo(dtype).bits // 8
    assert cache.n_bytes == 3 * 5 * 2 * (4 + 4) * wide  # n_kv_heads (d_k + d_v) a token
    cache.clear()
    assert (cache.length, cache.n_bytes) == (0, 0)


def filled(**more):
    cache = KVCache()
    cache.append(torch.ones(2, 2, 3, 4), torch.ones(2, 2, 3, 5))
    return cache


@pytest.mark.parametrize(
    ("k", "v", "kind", "text"),
    [
        (
            torch.ones(2, 2, 1, 4),
            torch.ones(2, 2, 2, 5),
            ShapeError,
            "k brings 1 tokens to the cache, but v brings 2.",
        ),
        (
            torch.ones(2, 4, 1, 4),
            torch.ones(2, 4, 1, 5),
            ShapeError,
            "the cache holds k with shape (2, 2, 3, 4), but (2, 4, 1, 4) was appended; "
            "only the axis of the tokens, the last but one, may differ.",
        ),
        (
            torch.ones(2, 2, 1, 4),
            torch.ones(2, 2, 1, 4),
            ShapeError,
            "the cache holds v with shape (2, 2, 3, 5), but (2, 2, 1, 4) was appended; "
            "only the axis of the tokens, the last but one, may differ.",
        ),
        (
            torch.ones(2, 2, 1, 4).half(),
            torch.ones(2, 2, 1, 5).half(),
            TypeError,
            "the cache holds k in torch.float32, but torch.float16 was appended.",
        ),
        (
            torch.ones(4),
            torch.ones(5),
            ShapeError,
            "k needs the axes (n, d) at its end, but its shape is (4,).",
        ),
    ],
)
def test_append_says_what_does_not_fit_and_keeps_what_it_had(k, v, kind, text):
    cache = filled()
    with pytest.raises(kind) as error:
        cache.append(k, v)
    assert str(error.value) == text
    assert cache.length == 3


def test_two_layers_may_not_share_a_cache():
    first, second, x, cache = made(), made(), normal(2, 3, 16), KVCache()
    first(x, cache=cache)
    text = "this cache holds 3 tokens of another layer; every layer needs a KVCache of"
    with pytest.raises(ValueError, match=text):
        second(x, cache=cache)
    del first
    gc.collect()
    with pytest.raises(ValueError, match=text):
        second(x, cache=cache)


def test_a_cache_of_x_is_none_of_a_memory_and_the_other_way_round():
    attention, x, memory = made(rotate=None), normal(2, 3, 16), normal(2, 4, 16)
    of_x, of_memory = KVCache(), KVCache()
    attention(x, cache=of_x)
    attention(x, memory, cache=of_memory)
    with pytest.raises(ValueError, match="holds 3 tokens of x; a memory needs"):
        attention(x, memory, cache=of_x)
    with pytest.raises(ValueError, match="holds the 4 tokens of a memory; x without"):
        attention(x, cache=of_memory)
