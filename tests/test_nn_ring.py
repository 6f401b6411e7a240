"""Ring attention: which tokens lie where, how parts are joined, that it is exact."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from ring_workers import crossed, disagrees, in_a_group, many, twice, wrong_calls
from test_docs import objections
from torch_tools import close, normal, one_thread

from attnlib import cost
from attnlib.nn import Flash, flash_attention, ring, scaled_dot_product
from attnlib.nn.ring import Blocks, Stripes, Zigzag, join_parts, run_ranks
from attnlib.shapes import ShapeError

__all__ = ["one_thread"]
KINDS = Blocks, Stripes, Zigzag
SIZES = st.tuples(st.sampled_from(KINDS), st.integers(1, 6), st.integers(1, 5))


def test_the_docstrings_are_complete():
    for name in ("ring_attention", "join_parts", "run_ranks"):
        assert objections(getattr(ring, name)) == []


# --- placements --------------------------------------------------------------------
@settings(derandomize=True, deadline=None)
@given(SIZES)
def test_every_token_lies_on_one_rank_and_looks_are_the_causal_mask(sizes):
    kind, n_ranks, per_piece = sizes
    placement = kind(kind.PIECES * n_ranks * per_piece, n_ranks)
    every = [placement.tokens(rank) for rank in range(n_ranks)]
    assert sorted(torch.cat(every).tolist()) == list(range(placement.n))
    for rank in range(n_ranks):
        assert (every[rank].diff() > 0).all()
        for other in range(n_ranks):
            seen = torch.zeros(placement.n_local, placement.n_local, dtype=torch.bool)
            look = placement.look(rank, other, causal=True)
            if look is not None:
                rows, cols = slice(*look.queries), slice(*look.keys)
                part = seen[rows, cols]
                assert part.numel() > 0
                ahead = part.shape[1] - part.shape[0]
                part |= torch.ones_like(part).tril(ahead) if look.causal else True
                assert look.pairs == seen.sum()
            right = every[other][None, :] <= every[rank][:, None]
            assert torch.equal(seen, right)


@pytest.mark.parametrize("kind", KINDS)
def test_all_pairs_are_computed_once(kind):
    placement = kind(24, 4)
    causal = placement.pairs(causal=True)
    assert sum(map(sum, causal)) == cost.allowed_pairs(24, causal=True)
    assert placement.pairs(causal=False) == [[36] * 4] * 4


def test_stripes_and_zigzag_are_balanced_at_every_step_and_blocks_are_not():
    worst = {k: [max(s) for s in zip(*k(64, 4).pairs(causal=True), strict=True)]
             for k in KINDS}  # fmt: skip
    assert worst[Blocks] == [136, 256, 256, 256]
    assert worst[Stripes] == [136, 136, 136, 136]
    assert worst[Zigzag] == [136, 128, 128, 128]
    work = [sum(steps) for steps in Blocks(64, 4).pairs(causal=True)]
    assert work == [136, 392, 648, 904]


@pytest.mark.parametrize("kind", KINDS)
def test_shares_put_together_are_the_whole(kind):
    x = normal(2, 24, 3)
    placement = kind(24, 3)
    shares = [placement.share(x, rank) for rank in range(3)]
    assert all(share.shape == (2, 8, 3) for share in shares)
    assert torch.equal(placement.whole(shares), x)
    with pytest.raises(ShapeError, match="n_ranks=3, but 2 shares came"):
        placement.whole(shares[:2])
    with pytest.raises(
        ShapeError, match=r"places n=24 tokens, but x has shape \(2, 23"
    ):
        placement.share(x[:, 1:], 0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_rank_that_there_is_not_is_refused(kind):
    placement = kind(24, 4)
    said = rf"{kind.__name__}\(n=24, n_ranks=4\) has ranks 0 to 3, but {{}}=4"
    for call, name in (
        (lambda: placement.tokens(4), "rank"),
        (lambda: placement.look(4, 0, causal=False), "rank"),
        (lambda: placement.look(0, 4, causal=True), "other"),
    ):
        with pytest.raises(ShapeError, match=said.format(name)):
            call()
    with pytest.raises(ShapeError, match="rank must be at least 0, but it is -1"):
        placement.share(normal(24, 3), -1)


def test_a_text_that_cannot_be_shared_evenly_is_refused():
    with pytest.raises(
        ShapeError, match=r"n=10 tokens are not a multiple of n_ranks = 4"
    ):
        Stripes(10, 4)
    with pytest.raises(ShapeError, match="not a multiple of 2 n_ranks = 8"):
        Zigzag(12, 4)
    with pytest.raises(ShapeError, match="n_ranks must be at least 1"):
        Blocks(12, 0)


# --- joining -----------------------------------------------------------------------
def parts(q, k, v, cuts):
    ends = [0, *cuts, k.shape[-2]]
    for first, last in pairwise(ends):
        yield flash_attention(
            q, k[..., first:last, :], v[..., first:last, :], return_log_sum_exp=True
        )


@pytest.mark.parametrize("order", [1, -1])
def test_joined_parts_are_the_whole(order):
    q, k, v = normal(3, 5, 4), 30 * normal(3, 11, 4, seed=1), normal(3, 11, 6, seed=2)
    whole = flash_attention(q, k, v, return_log_sum_exp=True)
    first, *rest = list(parts(q, k, v, (2, 7)))[::order]
    for part in rest:
        first = join_parts(first, part)
    close(first.out, whole.out, 1e-12)
    close(first.log_sum_exp, whole.log_sum_exp, 1e-12)


def test_nothing_joined_to_something_is_something_and_to_nothing_nothing():
    out, log = normal(2, 3), torch.tensor([0.5, -torch.inf], dtype=torch.float64)
    some = Flash(out * torch.tensor([[1.0], [0.0]]), log)
    none = Flash(torch.zeros_like(out), torch.full_like(log, -torch.inf))
    for joined in (join_parts(some, none), join_parts(none, some)):
        assert torch.equal(joined.out, some.out)
        assert torch.equal(joined.log_sum_exp, log)


def test_logs_far_beyond_what_exp_can_take():
    logs = (torch.tensor([x]) for x in (2000.0, 2000.0 + 1.0986123))
    values = (torch.tensor([[x]]) for x in (0.0, 4.0))
    joined = join_parts(*(Flash(v, log) for v, log in zip(values, logs, strict=True)))
    close(joined.out, torch.tensor([[3.0]]), 1e-3)


def test_parts_of_different_queries_are_refused():
    part = Flash(normal(2, 3), normal(2))
    with pytest.raises(ShapeError, match=r"n_q is 2 in one\.out"):
        join_parts(part, Flash(normal(4, 3), normal(4)))
    with pytest.raises(ShapeError, match="the parts are of different queries"):
        join_parts(part, Flash(normal(5, 2, 3), normal(5, 2)))


# --- the ring ----------------------------------------------------------------------
def one_process(whole, causal):
    """The same on one process, with autograd through the formula."""
    q, k, v, d_out = (x.clone() for x in whole)
    for x in (q, k, v):
        x.requires_grad_()
    group = q.shape[-3] // k.shape[-3] if q.ndim > 2 else 1
    full_k, full_v = k, v
    if group > 1:
        full_k, full_v = (x.repeat_interleave(group, -3) for x in (k, v))
    mask = None
    if causal:
        mask = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril()
    out = scaled_dot_product(q, full_k, full_v, mask).out
    return out.detach(), *torch.autograd.grad(out, (q, k, v), d_out)


def text(*shapes):
    return tuple(normal(*shape, seed=i) for i, shape in enumerate(shapes))


WHOLE = {
    "heads": text((3, 24, 4), (3, 24, 4), (3, 24, 5), (3, 24, 5)),
    "groups": text((2, 6, 24, 4), (2, 2, 24, 4), (2, 2, 24, 3), (2, 6, 24, 3)),
    "no heads": text((24, 4), (24, 4), (24, 5), (24, 5)),
}


@pytest.mark.parametrize("n_ranks", [1, 2, 3, 4])
def test_exact_forward_and_backward_and_the_bytes_are_the_formula(n_ranks):
    calls = [
        (whole, kind(24, n_ranks), causal)
        for whole in WHOLE.values()
        for kind in KINDS
        for causal in (False, True)
    ]
    ranks = run_ranks(many, n_ranks, calls)
    for number, (whole, placement, causal) in enumerate(calls):
        found = [rank[number] for rank in ranks]
        right = one_process(whole, causal)
        for name, want in zip(("out", "d_q", "d_k", "d_v"), right, strict=True):
            ours = placement.whole([getattr(f, name) for f in found])
            close(ours, want, 1e-12)
        k, v = whole[1:3]
        batch = k.shape[0] if k.ndim == 4 else 1
        heads = k.shape[-3] if k.ndim > 2 else 1
        sizes = 24, n_ranks, heads, k.shape[-1], v.shape[-1]
        bytes_ = cost.ring_traffic(*sizes, batch=batch, itemsize=8)
        for rank, f in enumerate(found):
            assert (f.meter.forward, f.meter.backward) == (
                bytes_.forward,
                bytes_.backward,
            )
            assert f.meter.messages == (4 * n_ranks - 2 - n_ranks if n_ranks > 1 else 0)
            assert f.meter.pairs == placement.pairs(causal=causal)[rank]


def test_half_precision_is_rounded_as_on_one_process():
    whole = tuple(x.bfloat16() for x in WHOLE["groups"])
    placement = Stripes(24, 2)
    found = [rank[0] for rank in run_ranks(many, 2, [(whole, placement, True)])]
    exact = one_process(tuple(x.double() for x in whole), True)
    q, k, v, d_out = (x.clone().requires_grad_() for x in whole)
    out = flash_attention(q, k, v, causal=True)
    alone = (out.detach(), *torch.autograd.grad(out, (q, k, v), d_out.detach()))
    for name, want, single in zip(
        ("out", "d_q", "d_k", "d_v"), exact, alone, strict=True
    ):
        ours = placement.whole([getattr(f, name) for f in found])
        assert ours.dtype == torch.bfloat16
        error, usual = ((x.double() - want).abs().max() for x in (ours, single))
        assert error <= 1.5 * usual + 1e-3
    k, v = whole[1:3]
    wide = cost.ring_traffic(24, 2, 2, 4, 3, batch=2, itemsize=2)
    assert found[0].meter.backward == wide.backward


def test_other_queries_than_keys_and_a_scale():
    q, k, v, d_out = text((3, 10, 4), (3, 6, 4), (3, 6, 5), (3, 10, 5))
    placement = Blocks(6, 2)
    found = run_ranks(crossed, 2, (q, k, v, d_out), placement, 0.3)
    for x in (q, k, v):
        x.requires_grad_()
    out = scaled_dot_product(q, k, v, scale=0.3).out
    d_q, d_k, d_v = torch.autograd.grad(out, (q, k, v), d_out)
    close(torch.cat([f.out for f in found], -2), out.detach(), 1e-12)
    close(torch.cat([f.d_q for f in found], -2), d_q, 1e-12)
    close(placement.whole([f.d_k for f in found]), d_k, 1e-12)
    close(placement.whole([f.d_v for f in found]), d_v, 1e-12)


def test_a_group_of_some_ranks():
    whole = WHOLE["heads"][:3]
    placement = Stripes(24, 2)
    _, one, _, three = run_ranks(in_a_group, 4, whole, placement)
    right = flash_attention(*whole, causal=True)
    close(placement.whole([one, three]), right, 1e-12)


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("shape", "ValueError: all ranks must agree in k's shape, but it is (2, 3, 4)"),
        ("dtype", "all ranks must agree in dtype, but it is torch.float32 on rank 0"),
        ("causal", "agree in causal, but it is False on rank 0 and True on rank 2"),
    ],
)
def test_ranks_that_disagree_are_told_so_all_of_them(what, said):
    for told in run_ranks(disagrees, 3, Stripes(9, 3), what):
        assert said in told


def test_calls_that_do_not_fit_and_second_derivatives():
    wanted = (
        "ShapeError: Blocks(n=12, n_ranks=4) is for n_ranks=4, but the group has 2.",
        "ShapeError: Blocks(n=6, n_ranks=2) gives each rank 3 tokens, but n_q=2.",
        "ShapeError: Blocks(n=6, n_ranks=2) gives each rank 3 tokens, but n_k=2.",
        "ShapeError: n_heads=4 is not a multiple of n_kv_heads=3.",
        "ShapeError: q (4, 3, 6), k (2, 3, 6) and v (4, 3, 6) must agree",
        "TypeError: placement must be Blocks, Stripes or Zigzag, but it is 'stripes'.",
        "TypeError: q must be a floating tensor, but its dtype is int64.",
    )
    for told in run_ranks(wrong_calls, 2, Blocks(6, 2)):
        for said, want in zip(told, wanted, strict=True):
            assert said.startswith(want)
    assert "differentiate twice" in run_ranks(twice, 1, Blocks(4, 1))[0]


def test_without_a_process_group_it_says_how_to_get_one():
    x = normal(4, 3)
    with pytest.raises(RuntimeError, match="start them with run_ranks"):
        ring.ring_attention(x, x, x, Blocks(4, 1))
