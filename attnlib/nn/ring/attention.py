"""`ring_attention`: keys and values go round, queries stay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd.function import once_differentiable

from attnlib.nn.flash import Flash, flash_attention
from attnlib.nn.flash.parts import part_gradients
from attnlib.nn.ring.join import join_parts
from attnlib.nn.ring.placement import Look, Placement
from attnlib.nn.ring.travel import GRADIENTS, KEYS, Block, Meter, Ring
from attnlib.nn.shapes import check_tensors
from attnlib.shapes import ShapeError


def ring_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    placement: Placement,
    *,
    causal: bool = False,
    scale: float | None = None,
    group: dist.ProcessGroup | None = None,
    meter: Meter | None = None,
) -> Tensor:
    """Attention of one text whose tokens lie on several ranks, as if on one.

    Every rank calls this with its own tokens. In n_ranks steps the blocks of keys and
    values go once round; each is joined to what was found so far by its log-sum-exp,
    while the next one is on its way. Beside its own, no rank ever holds more than two
    blocks of keys and values, and no score leaves the rank that made it. In the
    backward pass they go round once more, and their gradients behind them, one step
    further: home.

    All ranks must call it, and all must call backward, as with any collective.

    Args:
        q: queries of this rank, (..., n_heads, n_local, d_k); they may be more or fewer
            than its keys, unless causal.
        k: its keys, (..., n_kv_heads, n_local, d_k); n_kv_heads divides n_heads.
        v: its values, (..., n_kv_heads, n_local, d_v).
        placement: where in the text they stand: `Blocks`, `Stripes` or `Zigzag`. What
            depends on positions, such as RoPE, is applied before, with
            `placement.tokens(rank)`.
        causal: whether to hide what comes after a query in the text.
        scale: factor on the products of q and k; 1 / sqrt(d_k) if left out.
        group: the ranks that share the text; all there are, if left out.
        meter: counts what this rank sends and computes, where one is given.

    Returns:
        out of this rank's queries, (..., n_heads, n_local, d_v), in the dtype of q.

    Raises:
        ShapeError: shapes do not fit each other or the placement.
        TypeError: q, k or v is not a floating tensor.
        ValueError: the ranks do not agree in shapes, dtype, placement or causal.
        RuntimeError: there is no process group, a neighbour is gone or too slow, or a
            second derivative was asked for.

    Cost: the FLOPs of attention divided by n_ranks, if the placement is balanced;
        `attnlib.cost.ring_traffic` bytes sent; memory for two more blocks, and in the
        backward pass for three of gradients. A block is made wider in float32 if it
        is not, while it is computed with.
    Source: Liu, Zaharia and Abbeel 2023; Brandon et al. 2023 for stripes.
    Lesson: 16.

    >>> from attnlib.nn.ring import Stripes
    >>> x = torch.zeros(2, 4)
    >>> ring_attention(x, x, x, Stripes(n=6, n_ranks=3))
    Traceback (most recent call last):
        ...
    RuntimeError: ring_attention runs on the ranks of a process group, and there is \
none: start them with run_ranks, or call init_process_group first.
    """
    ring = Ring(group)
    _check(q, k, v, placement, causal, ring)
    scale = q.shape[-1] ** -0.5 if scale is None else float(scale)
    shapes = {"k's shape": tuple(k.shape), "v's shape": tuple(v.shape)}
    rest = {"dtype": k.dtype, "placement": placement, "causal": causal, "scale": scale}
    ring.agree(shapes | rest)
    call = Call(ring, placement, causal, scale, meter or Meter(), q.shape[-2])
    out, _ = RingCall.apply(call, q, k, v)  # type: ignore[no-untyped-call]
    assert isinstance(out, Tensor)
    return out


@dataclass(frozen=True)
class Call:
    """One call, without its tensors."""

    ring: Ring
    placement: Placement
    causal: bool
    scale: float
    meter: Meter
    n_q: int

    def look(self, step: int) -> Look | None:
        """What is seen of the block that is here in a step of the ring."""
        owner = (self.ring.rank - step) % self.ring.size
        rank, causal = self.ring.rank, self.causal
        return self.placement.look(rank, owner, causal=causal, n_q=self.n_q)


class RingCall(torch.autograd.Function):
    """Keeps what this rank had and found, and no block of any other."""

    @staticmethod
    def forward(call: Call, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        found = ring_forward(call, q, k, v)
        return found.out.to(q.dtype), found.log_sum_exp

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.call, *tensors = inputs
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(*tensors, *output)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor, _: Any) -> Any:
        q, k, v, out, log = ctx.saved_tensors
        return None, *ring_backward(ctx.call, q, k, v, Flash(out, log), d_out)


def ring_forward(call: Call, q: Tensor, k: Tensor, v: Tensor) -> Flash:
    """Queries stay, and meet the keys of all ranks one block after the other."""
    wide, last = _wide(q), call.ring.size - 1
    out = q.new_zeros((*q.shape[:-1], v.shape[-1]), dtype=wide)
    log = q.new_full(q.shape[:-1], -torch.inf, dtype=wide)
    block = Block.of(k, v)
    for step in range(call.ring.size):
        coming = call.ring.pass_on(block, KEYS) if step < last else None
        look = call.look(step)
        if look is not None:
            rows, cols = slice(*look.queries), slice(*look.keys)
            part = flash_attention(
                q[..., rows, :].to(wide),
                block.k[..., cols, :].to(wide),
                block.v[..., cols, :].to(wide),
                causal=look.causal,
                scale=call.scale,
                return_log_sum_exp=True,
            )
            so_far = Flash(out[..., rows, :], log[..., rows])
            joined = join_parts(so_far, part)
            out[..., rows, :], log[..., rows] = joined.out, joined.log_sum_exp
        call.meter.pairs.append(look.pairs if look else 0)
        if coming is not None:
            call.meter.forward += block.flat.nbytes
            call.meter.messages += 1
            block = coming.wait()
    return Flash(out, log)


def ring_backward(
    call: Call,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    found: Flash,
    d_out: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Keys and values go round again; their gradients follow, and arrive at home."""
    wide, ring, meter = _wide(q), call.ring, call.meter
    d_q = torch.zeros_like(q, dtype=wide)
    block, behind = Block.of(k, v), None
    for step in range(ring.size):
        coming = ring.pass_on(block, KEYS) if step < ring.size - 1 else None
        grads = Block.over(block.flat.new_zeros(block.flat.shape, dtype=wide), k, v)
        look = call.look(step)
        if look is not None:
            rows, cols = slice(*look.queries), slice(*look.keys)
            d_rows, d_keys, d_values = part_gradients(
                q[..., rows, :].to(wide),
                block.k[..., cols, :].to(wide),
                block.v[..., cols, :].to(wide),
                Flash(found.out[..., rows, :].to(wide), found.log_sum_exp[..., rows]),
                d_out[..., rows, :].to(wide),
                causal=look.causal,
                scale=call.scale,
            )
            d_q[..., rows, :] += d_rows
            grads.k[..., cols, :] += d_keys
            grads.v[..., cols, :] += d_values
        if behind is not None:  # what other ranks found for this block
            grads.flat.add_(behind.wait().flat)
        if ring.size > 1:
            behind = ring.pass_on(grads, GRADIENTS)
            meter.backward += grads.flat.nbytes
            meter.messages += 1
        if coming is not None:
            meter.backward += block.flat.nbytes
            meter.messages += 1
            block = coming.wait()
    home = grads if behind is None else behind.wait()
    return d_q.to(q.dtype), home.k.to(k.dtype), home.v.to(v.dtype)


def _wide(q: Tensor) -> torch.dtype:
    """float32 at least: parts of half precision are rounded once, at the end."""
    return torch.promote_types(q.dtype, torch.float32)


def _check(
    q: Tensor, k: Tensor, v: Tensor, placement: Placement, causal: bool, ring: Ring
) -> None:
    if not isinstance(placement, Placement):
        raise TypeError(
            f"placement must be Blocks, Stripes or Zigzag, but it is {placement!r}."
        )
    sizes = check_tensors(
        {"q": (q, "n_q d_k"), "k": (k, "n_k d_k"), "v": (v, "n_k d_v")}
    )
    if placement.n_ranks != ring.size:
        raise ShapeError(
            f"{placement} is for n_ranks={placement.n_ranks}, but the group has "
            f"{ring.size}."
        )
    for name in ("n_q", "n_k") if causal else ("n_k",):
        if sizes[name] != placement.n_local:
            raise ShapeError(
                f"{placement} gives each rank {placement.n_local} tokens, but "
                f"{name}={sizes[name]}."
            )
    if q.shape[:-3] != k.shape[:-3] or k.shape[:-2] != v.shape[:-2]:
        raise ShapeError(
            f"q {tuple(q.shape)}, k {tuple(k.shape)} and v {tuple(v.shape)} must agree "
            f"in their batch axes, and k and v in n_kv_heads."
        )
    heads, kv_heads = (x.shape[-3] if x.ndim > 2 else 1 for x in (q, k))
    if kv_heads == 0 or heads % kv_heads:
        raise ShapeError(f"n_heads={heads} is not a multiple of n_kv_heads={kv_heads}.")
