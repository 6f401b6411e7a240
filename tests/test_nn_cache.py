"""The cache: token by token and in pieces the same as all at once, and its errors."""

import copy
import gc
import itertools
import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_tools import close, normal, one_thread  # noqa: F401

from attnlib import masks
from attnlib.nn import KVCache, MultiHeadAttention, scaled_dot_product
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


# Room that is reserved: what was handed out stays, branches do not disturb each other.


def text(cuts, n_kv_heads=2):
    return made(n_kv_heads), normal(2, sum(cuts), 16)


@torch.no_grad()
@pytest.mark.parametrize("capacity", [0, 3, 40])
@pytest.mark.parametrize("n_kv_heads", [1, 2, 4])
@pytest.mark.parametrize("cuts", [[9], [5, 1, 1, 1, 1], [1] * 9, [3, 4, 2], [0, 2, 7]])
def test_prefill_in_chunks_and_decoding_is_all_at_once(cuts, n_kv_heads, capacity):
    for seed in range(3):
        attention, x = made(n_kv_heads), normal(2, sum(cuts), 16, seed=seed)
        cache = KVCache(capacity=capacity)
        outs = [
            attention(piece, causal=True, cache=cache)
            for piece in x.split(cuts, dim=-2)
        ]
        close(torch.cat(outs, dim=-2), attention(x, causal=True))
        assert cache.length == sum(cuts)


@torch.no_grad()
def test_room_is_used_again_and_doubles_when_it_is_full():
    attention, cache, places = made(), KVCache(), []
    for _ in range(40):
        attention(normal(2, 1, 16), causal=True, cache=cache)
        places.append(cache.k.untyped_storage().data_ptr())
    changes = sum(a != b for a, b in itertools.pairwise(places))
    assert changes <= 5  # not 39
    reserved = KVCache(capacity=40)
    attention(normal(2, 1, 16), causal=True, cache=reserved)
    first = reserved.k.untyped_storage().data_ptr()
    for _ in range(39):
        attention(normal(2, 1, 16), causal=True, cache=reserved)
    assert reserved.k.untyped_storage().data_ptr() == first
    assert reserved.k.untyped_storage().nbytes() == 2 * 2 * 40 * 4 * 8


@torch.no_grad()
def test_branches_of_one_cache_do_not_disturb_each_other():
    attention, x, more = made(), normal(2, 5, 16), normal(2, 4, 16, seed=1)
    cache = KVCache(capacity=20)
    attention(x, causal=True, cache=cache)
    handed = attention(more[:, :1], causal=True, cache=cache, return_stages=True).k
    before, branch = handed.clone(), copy.copy(cache)
    for i in (1, 2):
        attention(more[:, i : i + 1], causal=True, cache=cache)
    other = attention(more[:, 3:], causal=True, cache=branch)
    assert torch.equal(handed, before)
    assert (cache.length, branch.length) == (8, 7)
    whole = torch.cat([x, more[:, :1], more[:, 3:]], dim=1)
    close(other, attention(whole, causal=True)[:, -1:])
    long = torch.cat([x, more[:, :3], more[:, 3:]], dim=1)
    last = attention(more[:, 3:], causal=True, cache=cache)
    close(last, attention(long, causal=True)[:, -1:])


@torch.no_grad()
def test_a_cache_whose_tokens_were_changed_or_cut_goes_on_rightly():
    attention, x = made(), normal(3, 6, 16)
    cache, order = KVCache(capacity=20), torch.tensor([2, 0, 0])
    attention(x[:, :5], causal=True, cache=cache)
    cache.k, cache.v = cache.k[order], cache.v[order]  # beam search chose these
    out = attention(x[order][:, 5:], causal=True, cache=cache)
    close(out, attention(x[order], causal=True)[:, 5:])
    cache.k, cache.v = cache.k[..., :4, :], cache.v[..., :4, :]  # two were taken back
    out = attention(x[order][:, 4:], causal=True, cache=cache)
    close(out, attention(x[order], causal=True)[:, 4:])


@torch.no_grad()
def test_a_call_that_fails_does_not_spoil_the_room():
    attention, x = made(), normal(2, 6, 16)
    cache = KVCache(capacity=20)
    attention(x[:, :4], causal=True, cache=cache)
    with pytest.raises(ShapeError, match="mask with shape"):
        attention(-x[:, 4:], mask=np.ones((4, 4), bool), cache=cache)
    out = attention(x[:, 4:], causal=True, cache=cache)
    close(out, attention(x, causal=True)[:, 4:])


def test_gradients_after_decoding_without_them():
    attention, x = made(), normal(2, 6, 16)
    cache = KVCache()
    with torch.no_grad():
        for i in range(3):
            attention(x[:, i : i + 1], causal=True, cache=cache)
    kept = cache.k.clone()
    late = x[:, 3:5].clone().requires_grad_()
    out = attention(late, causal=True, cache=cache)
    with torch.no_grad():  # goes on writing; what autograd saved must not change
        attention(x[:, 5:], causal=True, cache=copy.copy(cache))
        attention(x[:, 5:], causal=True, cache=cache)
    (ours,) = torch.autograd.grad(out.sum(), late)
    again = x[:, 3:5].clone().requires_grad_()
    whole = attention(torch.cat([x[:, :3], again], dim=1), causal=True)[:, 3:]
    (theirs,) = torch.autograd.grad(whole.sum(), again)
    close(ours, theirs)
    assert torch.equal(cache.k[..., :3, :], kept)


def test_inference_mode_and_after_it():
    attention, x = made(), normal(2, 5, 16)
    whole, cache = attention(x, causal=True), KVCache()
    with torch.inference_mode():
        first = attention(x[:, :2], causal=True, cache=cache)
        second = attention(x[:, 2:3], causal=True, cache=cache)
    with torch.no_grad():
        rest = [attention(x[:, i : i + 1], causal=True, cache=cache) for i in (3, 4)]
    close(torch.cat([first, second, *rest], dim=1), whole)


# Few KV heads are never expanded.


@torch.no_grad()
def test_decoding_never_expands_the_keys_or_copies_the_cache():
    attention = MultiHeadAttention(64, 8, n_kv_heads=2)
    cache, n = KVCache(capacity=5000), 4000
    cache.append(torch.ones(1, 2, n, 8), torch.ones(1, 2, n, 8))
    one_cache = cache.k.numel() * cache.k.element_size()
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
    ) as profile:
        attention(torch.ones(1, 1, 64), causal=True, cache=cache)
    largest = max(event.cpu_memory_usage for event in profile.events())
    # Scores of 8 heads are n * 8 numbers; the keys of 2 heads are n * 16, expanded 64.
    assert largest < one_cache


def test_grouped_heads_are_repeated_heads():
    q, k, v = (normal(2, h, 5, 3, seed=h, grad=True) for h in (6, 2, 2))
    mask = torch.from_numpy(np.random.default_rng(0).random((6, 5, 5)) < 0.7)
    bias = normal(2, 6, 5, 5)
    ours = scaled_dot_product(q, k, v, mask, score_bias=bias, grouped=True)
    wide = (x.repeat_interleave(3, dim=1) for x in (k, v))
    theirs = scaled_dot_product(q, *wide, mask, score_bias=bias)
    for stage in ("raw_scores", "scores", "weights", "out"):
        close(getattr(ours, stage), getattr(theirs, stage))
    for one, other in zip(
        torch.autograd.grad(ours.out.sum(), (q, k, v)),
        torch.autograd.grad(theirs.out.sum(), (q, k, v)),
        strict=True,
    ):
        close(one, other)
    with pytest.raises(
        ShapeError, match=re.escape("of q (2, 6), k (2, 2) and v (2, 2)")
    ):
        scaled_dot_product(q, k, v)
    with pytest.raises(ShapeError, match="n_heads=5 is not a multiple of n_kv_heads=2"):
        scaled_dot_product(q[:, :5], k, v, grouped=True)


# Padding on the left, through prefill and decoding.


@torch.no_grad()
@pytest.mark.parametrize("cuts", [[7], [4, 3], [5, 1, 1]])
@pytest.mark.parametrize("left", [None, 2])
def test_a_batch_padded_on_the_left_is_each_sequence_alone(cuts, left):
    attention, lengths = made(), [4, 7]
    texts = [normal(1, n, 16, seed=n) for n in lengths]
    x = torch.cat([
        torch.cat([torch.full((1, 7 - n, 16), 9.0), one], dim=1)
        for n, one in zip(lengths, texts, strict=True)
    ])  # fmt: skip
    real = torch.arange(7) >= 7 - torch.tensor(lengths)[:, None]
    positions = (real.cumsum(-1) - 1).clamp(min=0)
    cache, outs, at = KVCache(left=left), [], 0
    for n in cuts:
        outs.append(
            attention(
                x[:, at : at + n],
                causal=True,
                mask=real[:, None, None, : at + n],
                positions=positions[:, None, at : at + n],
                cache=cache,
            )
        )
        at += n
    out = torch.cat(outs, dim=1)
    for b, (n, one) in enumerate(zip(lengths, texts, strict=True)):
        mask = None if left is None else masks.window(n, left=left)
        alone = attention(one, causal=True, mask=mask)
        close(out[b : b + 1, 7 - n :], alone)


# A window: what is out of sight is forgotten.


@torch.no_grad()
@steady
@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=6),
    st.integers(0, 6),
    st.sampled_from([1, 2, 4]),
)
def test_a_cache_of_a_window_is_the_windows_mask(cuts, left, n_kv_heads):
    attention, x = text(cuts, n_kv_heads)
    cache, outs = KVCache(left=left), []
    for piece in x.split(cuts, dim=-2):
        outs.append(attention(piece, causal=True, cache=cache))
        assert cache.n_kept <= left
    whole = attention(x, mask=masks.window(sum(cuts), left=left))
    close(torch.cat(outs, dim=-2), whole)
    assert cache.length == sum(cuts)


def test_a_cache_of_a_window_has_the_windows_gradients():
    attention = made()
    x = normal(2, 8, 16).requires_grad_()
    cache = KVCache(left=2)
    outs = [attention(piece, cache=cache) for piece in x.split([3, 1, 4], dim=-2)]
    whole = attention(x, mask=masks.window(8, left=2))
    inputs = (x, *attention.parameters())
    for one, other in zip(
        torch.autograd.grad(torch.cat(outs, 1).sum(), inputs),
        torch.autograd.grad(whole.sum(), inputs),
        strict=True,
    ):
        close(one, other)


@torch.no_grad()
def test_a_window_keeps_its_memory_however_long_the_text():
    attention, cache = made(), KVCache(left=5)
    places = set()
    for _ in range(60):
        attention(normal(2, 1, 16), cache=cache)
        places.add(cache.k.untyped_storage().data_ptr())
        assert cache.k.untyped_storage().nbytes() <= 2 * 2 * 12 * 4 * 8
    assert (cache.length, cache.n_kept) == (60, 5)
    assert cache.n_bytes == 2 * 2 * 5 * (4 + 4) * 8


def test_a_mask_may_count_the_forgotten_tokens_or_not():
    attention, x = made(), normal(2, 7, 16)
    real = masks.padding([5, 7], 7)
    whole = attention(x, mask=real & masks.window(7, left=3))
    for columns in (slice(None), slice(2, None)):  # 5 - 3 were forgotten
        cache = KVCache(left=3)
        first = attention(x[:, :5], mask=real[..., :5], cache=cache)
        rest = attention(x[:, 5:], mask=real[..., columns], cache=cache)
        close(torch.cat([first, rest], dim=1), whole)
    with pytest.raises(TypeError, match="mask must be boolean"):
        attention(x, mask=np.ones((7, 14)), cache=cache)


def test_a_window_and_a_memory_do_not_go_together():
    attention, memory = made(rotate=None), normal(2, 6, 16)
    text = "a cache with left=2 forgets tokens; a memory needs a KVCache() that keeps"
    with pytest.raises(ValueError, match=re.escape(text)):
        attention(normal(2, 3, 16), memory, cache=KVCache(left=2))
    with pytest.raises(ShapeError, match="left must be at least 0, but it is -1"):
        KVCache(left=-1)
    with pytest.raises(TypeError, match="capacity must be a whole number"):
        KVCache(capacity=2.5)
