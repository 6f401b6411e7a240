"""Flash attention under masks: every kind, empty rows, skipped tiles, no matrix."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import scaled_dot_product_attention as sdpa
from torch.utils._python_dispatch import TorchDispatchMode
from torch_tools import close, normal, one_thread  # noqa: F401

from attnlib import masks
from attnlib.nn import flash_attention, scaled_dot_product
from attnlib.nn.flash import forward
from attnlib.nn.flash.inputs import inside

SMALL = {"block_q": 3, "block_k": 2}
N = 11


def coin(*shape, seed=5, share=0.6):
    return torch.from_numpy(np.random.default_rng(seed).random(shape) < share)


def heads(n_q=N, n_k=N, grad=True):
    q = normal(2, 4, n_q, 3, grad=grad)
    return q, *(normal(2, 4, n_k, 3, seed=seed, grad=grad) for seed in (1, 2))


def same(ours, theirs, *inputs):
    close(ours, theirs)
    upstream = normal(*ours.shape, seed=9)
    pairs = zip(
        torch.autograd.grad(ours, inputs, upstream),
        torch.autograd.grad(theirs, inputs, upstream),
        strict=True,
    )
    for mine, other in pairs:
        close(mine, other)


# Every kind of mask.

KINDS = {
    "padding": masks.padding([N, 4], N),  # (batch, 1, 1, n_k)
    "nothing left of one sequence": masks.padding([3, 0], N),
    "window": masks.window(N, left=3, right=1),
    "prefix": masks.prefix(N, 4),
    "documents": masks.document([0, 0, 0, 1, 1, 2, 2, 2, 2, 2, 3]),
    "for each head": coin(4, N, N).numpy(),
    "for each head and sequence": coin(2, 4, N, N).numpy(),
    "of the queries": coin(N, 1).numpy(),
    "keys for each head": coin(4, 1, N).numpy(),
    "one for all": np.asarray(False),
    "expanded": coin(2, 1, 1, N).expand(2, 4, N, N),
    "expanded from nothing": torch.tensor(True).expand(2, 4, N, N),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("scores", [2**18, 1])
def test_a_mask_hides(kind, causal, scores, monkeypatch):
    # With room for one score, every head has tiles of its own.
    monkeypatch.setattr("attnlib.nn.flash.attention.SCORES", scores)
    q, k, v = heads()
    mask = KINDS[kind]
    ours = flash_attention(q, k, v, mask=mask, causal=causal, **SMALL)
    same(ours, scaled_dot_product(q, k, v, mask, causal=causal).out, q, k, v)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(*[st.integers(0, 7)] * 2, *[st.integers(1, 8)] * 2, st.booleans(), st.booleans())
def test_causal_is_aligned_at_the_end(n_q, n_k, block_q, block_k, masked, grouped):
    q, k, v = heads(n_q, n_k)
    if grouped:
        k, v = (x[:, :2].detach().requires_grad_() for x in (k, v))
    mask = coin(2, 1, 1, n_k) if masked else None
    blocks = {"block_q": block_q, "block_k": block_k}
    ours = flash_attention(q, k, v, mask=mask, causal=True, **blocks)
    wide = (x.repeat_interleave(2, 1) if grouped else x for x in (k, v))
    look = torch.from_numpy(masks.causal(n_q, n_k))
    look = look if mask is None else look & mask
    same(ours, scaled_dot_product(q, *wide, look).out, q, k, v)


def test_one_query_with_causal_sees_every_key():  # SDPA's is_causal shows it one
    q, k, v = heads(1, 5)
    ours = flash_attention(q, k, v, causal=True)
    close(ours, sdpa(q, k, v))


# Additive bias, with its gradient summed over what it was repeated along.


@pytest.mark.parametrize(
    "shape",
    [
        (5, 7),
        (4, 5, 7),
        (2, 1, 5, 7),
        (2, 4, 1, 7),
        (4, 1, 1),
        (1, 5, 1),
        (),
        (2, 4, 5, 7),
    ],
)
@pytest.mark.parametrize("n_kv_heads", [4, 2])
def test_a_bias_has_its_gradient(shape, n_kv_heads):
    q = normal(2, 4, 5, 3, grad=True)
    k = normal(2, n_kv_heads, 7, 3, seed=1, grad=True)
    v = normal(2, n_kv_heads, 7, 2, seed=2, grad=True)
    bias = normal(*shape, seed=3, grad=True)
    ours = flash_attention(q, k, v, bias=bias, **SMALL)
    wide = (x.repeat_interleave(4 // n_kv_heads, 1) for x in (k, v))
    theirs = sdpa(q, *wide, bias.expand(2, 4, 5, 7))
    same(ours, theirs, q, k, v, bias)


def test_a_bias_of_minus_infinity_hides():
    q, k, v = heads(5, 7)
    mask = coin(5, 7)
    mask[1] = False
    bias = torch.zeros(5, 7, dtype=torch.float64).masked_fill(~mask, -torch.inf)
    bias.requires_grad_()
    ours = flash_attention(q, k, v, bias=bias, **SMALL)
    assert torch.autograd.grad(ours.sum(), bias, retain_graph=True)[0].isfinite().all()
    same(ours, flash_attention(q, k, v, mask=mask), q, k, v)


# Rows that see nothing.


@pytest.mark.parametrize("how", ["mask", "causal", "no keys"])
def test_an_empty_row_gives_zeros_forward_and_backward(how):
    q, k, v = heads(4, {"causal": 2, "no keys": 0}.get(how, 5))
    mask = torch.ones(4, k.shape[-2], dtype=torch.bool)
    mask[:2] = False
    found = flash_attention(
        q,
        k,
        v,
        mask=mask if how == "mask" else None,
        causal=how == "causal",
        return_log_sum_exp=True,
        **SMALL,
    )
    assert (found.out[..., :2, :] == 0).all()
    assert (found.log_sum_exp[..., :2] == -torch.inf).all()
    of_q, of_k, of_v = torch.autograd.grad(found.out.sum(), (q, k, v))
    assert (of_q[..., :2, :] == 0).all()
    assert all(grad.isfinite().all() for grad in (of_q, of_k, of_v))
    assert how == "no keys" or of_v.abs().sum() > 0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_an_empty_row_is_zero_in_every_type(dtype):
    q = torch.full((1, 5, 8), -100.0, dtype=dtype)
    mask = torch.ones(5, 5, dtype=torch.bool)
    mask[2], mask[3, :4] = False, False
    out = flash_attention(q, -q, q, mask=mask, **SMALL)  # the scores are far below 0
    assert (out[:, 2] == 0).all()
    close(out[:, 3], q[:, 3], atol=0)


# What is not computed.


def count_tiles(monkeypatch):
    """The blocks of queries and keys whose scores are computed."""
    seen, scores = [], forward.Plan.scores

    def counted(plan, room, q, k, tile, bias):
        seen.append((tile.queries.start, tile.keys.start, tile.hidden is None))
        return scores(plan, room, q, k, tile, bias)

    monkeypatch.setattr(forward.Plan, "scores", counted)
    return seen


def test_tiles_that_a_mask_empties_are_skipped_and_full_ones_cost_nothing(monkeypatch):
    seen = count_tiles(monkeypatch)
    q = normal(1, 12, 3)
    mask = masks.padding([6], 12)[0]  # keys 0 to 5 of 12
    flash_attention(q, q, q, mask=mask, block_q=4, block_k=4)
    starts = (0, 4, 8)
    assert seen == [(i, j, j == 0) for i in starts for j in (0, 4)]
    seen.clear()
    flash_attention(q, q, q, causal=True, block_q=4, block_k=4)
    assert seen == [(i, j, j < i) for i in starts for j in starts if j <= i]
    seen.clear()
    two = masks.document([0] * 4 + [1] * 8)
    flash_attention(q, q, q, mask=two, block_q=4, block_k=4)
    assert seen == [(0, 0, True)] + [(i, j, True) for i in (4, 8) for j in (4, 8)]
    seen.clear()
    flash_attention(q, q, q, mask=[[False]])
    assert seen == []
    flash_attention(q, q, q, mask=[[True] * 12], block_q=12, block_k=5)
    assert seen == [(0, j, True) for j in (0, 5, 10)]  # also the last, a short one


def test_a_mask_that_only_repeats_is_made_small():
    q = normal(2, 4, N, 3)
    mask = KINDS["expanded"]
    assert inside(q, q, q, mask, None).mask.shape == (2, 1, 1, 1, N)


# Memory: the largest tensor that any operation of torch makes.


class Largest(TorchDispatchMode):
    """Remembers the largest tensor that comes out of an operation, in numbers held."""

    def __init__(self):
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for one in out if isinstance(out, (tuple, list)) else [out]:
            if isinstance(one, torch.Tensor):
                held = one.untyped_storage().nbytes() // one.element_size()
                self.numbers = max(self.numbers, held)
        return out


N_LONG, D = 600, 8
OPTIONS = {
    "full": {},
    "causal": {"causal": True},
    "padding": {"mask": torch.arange(N_LONG).expand(2, 1, 1, N_LONG) < 400},
    "expanded": {"mask": (torch.arange(N_LONG) < 400).expand(2, 4, N_LONG, N_LONG)},
    "padding and causal": {
        "mask": torch.arange(N_LONG).expand(2, 1, 1, N_LONG) < 400,
        "causal": True,
    },
    "dropout": {"dropout": 0.1, "seed": 0},
    "a bias of the keys": {"bias": torch.zeros(4, 1, N_LONG, requires_grad=True)},
}


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_no_matrix_is_ever_made(option, dtype):
    q, k, v = (
        torch.randn(2, 4, N_LONG, D, dtype=dtype, requires_grad=True) for _ in range(3)
    )
    k = torch.randn(2, 2, N_LONG, D, dtype=dtype, requires_grad=True)
    v = torch.randn(2, 2, N_LONG, D, dtype=dtype, requires_grad=True)
    with Largest() as largest:
        out = flash_attention(q, k, v, block_q=32, block_k=32, **OPTIONS[option])
        out.sum().backward()
    assert largest.numbers <= q.numel()  # an n_q x n_k matrix would hold 75 times n D


def test_the_watch_sees_a_matrix():
    q = torch.randn(2, 4, N_LONG, D, requires_grad=True)
    with Largest() as largest:
        scaled_dot_product(q, q, q)
    assert largest.numbers == 8 * N_LONG * N_LONG


def test_backward_keeps_one_number_a_query_besides_its_arguments_and_out():
    kept = []

    def pack(tensor):
        kept.append(tensor.numel())
        return tensor

    q, k, v = heads(grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        out = flash_attention(q, k, v, causal=True)
    assert sorted(kept) == sorted([q.numel()] * 4 + [q.numel() // 3])
    assert out.shape == q.shape
