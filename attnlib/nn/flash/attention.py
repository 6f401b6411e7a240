"""`flash_attention`: what is asked of it, and how large its tiles are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, overload

import numpy.typing as npt
import torch
from torch import Tensor

from attnlib.nn.attention import check_dropout
from attnlib.nn.flash.call import flash_call
from attnlib.nn.flash.drop import Drop
from attnlib.nn.flash.inputs import Inputs, inside, tile_size
from attnlib.nn.flash.looks import Looks
from attnlib.nn.flash.plan import Plan
from attnlib.shapes import size

# 2^17 scores in float32 are half a MB: two tiles, as backward has them, are what a core
# keeps near. Smaller tiles pay more for every call of torch, larger ones wait for
# memory. Other devices want much at once.
SCORES, ELSEWHERE = 2**17, 2**24
# Queries in a tile, forward and backward. A block of queries costs some calls of torch
# by itself, so it is long; forward keeps numbers for each, so there it is less. Along
# the diagonal of a causal mask half of a tile is wasted: blocks are shorter again, and
# more heads share one.
QUERIES, CAUSAL_QUERIES = (384, 512), (128, 256)


@dataclass(frozen=True)
class Flash:
    """What a row of attention comes to, and what it takes to join it with others."""

    out: Tensor  #          (..., n_heads, n_q, d_v)
    log_sum_exp: Tensor  #  (..., n_heads, n_q), float32 at least; -inf for empty rows


@overload
def flash_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: Tensor | npt.ArrayLike | None = None,
    bias: Tensor | None = None,
    causal: bool = False,
    scale: float | None = None,
    dropout: float = 0.0,
    seed: int | None = None,
    block_q: int | None = None,
    block_k: int | None = None,
    return_log_sum_exp: Literal[False] = False,
) -> Tensor: ...


@overload
def flash_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: Tensor | npt.ArrayLike | None = None,
    bias: Tensor | None = None,
    causal: bool = False,
    scale: float | None = None,
    dropout: float = 0.0,
    seed: int | None = None,
    block_q: int | None = None,
    block_k: int | None = None,
    return_log_sum_exp: Literal[True],
) -> Flash: ...


def flash_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: Tensor | npt.ArrayLike | None = None,
    bias: Tensor | None = None,
    causal: bool = False,
    scale: float | None = None,
    dropout: float = 0.0,
    seed: int | None = None,
    block_q: int | None = None,
    block_k: int | None = None,
    return_log_sum_exp: bool = False,
) -> Tensor | Flash:
    """Attention exactly as ever, without a matrix of n_q by n_k.

    out = dropout(softmax(q k^T / sqrt(d_k) + bias)) v, one tile of scores at a time.

    A query that may look at nothing gets zeros, and so do its gradients. bfloat16 and
    float16 are computed in float32, and rounded once at the end. Tiles that a mask
    empties are skipped. A NaN may get past a mask, as in SDPA.

    Args:
        q: queries, (..., n_heads, n_q, d_k); without heads, (n_q, d_k).
        k: keys, (..., n_kv_heads, n_k, d_k). Where n_kv_heads is less than n_heads, it
            divides it: query head h reads KV head h // (n_heads / n_kv_heads).
        v: values, (..., n_kv_heads, n_k, d_v).
        mask: boolean, a tensor or an array of `attnlib.masks`, broadcastable to
            (..., n_heads, n_q, n_k). True = may look. A padding mask (batch, 1, 1, n_k)
            stays as small as it is.
        bias: numbers added to the scores, broadcastable like the mask. It may need a
            gradient.
        causal: whether to hide what comes after a query, which stands at position
            n_k - n_q + i; combined with the mask by &.
        scale: factor on the products of q and k; 1 / sqrt(d_k) if left out.
        dropout: the part of the weights that is dropped, from 0 up to but not 1. A
            function does not know about `model.eval()`: hand it 0 there.
        seed: what is dropped follows from it, whatever the tiles and the device; drawn
            from torch's own generator if left out.
        block_q: the queries in a tile; chosen for speed if left out.
        block_k: the keys in a tile; likewise.
        return_log_sum_exp: return a `Flash` of out and the log of every row's sum of
            exponentials, with which the results of several calls, each with a part of
            the keys, can be joined. It has a gradient.

    Returns:
        out (..., n_heads, n_q, d_v) in the dtype of q, or a `Flash`.

    Raises:
        ShapeError: q and k differ in d_k, k and v in n_k, the batch axes do not
            broadcast, n_heads is not a multiple of n_kv_heads, the mask or the bias
            does not fit, or a block is smaller than 1.
        TypeError: q, k or v is not a floating tensor, they differ in dtype or device,
            the mask is not boolean, the bias is, or a block is no whole number.
        ValueError: dropout is not in [0, 1).
        RuntimeError: a second derivative was asked for.

    Cost: 2 n_q n_k (d_k + d_v) FLOPs forward, 5 products of n_q n_k d instead of 4
        backward; besides the results, one number a query and a few MB for tiles.
    Source: Dao et al. 2022, algorithms 1 and 4; Dao 2023 for the order of the loops.
    Lesson: 12.

    >>> q, k = torch.zeros(2, 4), torch.ones(3, 4)
    >>> flash_attention(q, k, torch.eye(3), mask=[[True, False, True]]).tolist()
    [[0.5, 0.0, 0.5], [0.5, 0.0, 0.5]]
    """
    given = inside(q, k, v, mask, bias)
    drop = _drop(dropout, seed)
    tensors = (given.q, given.k, given.v, given.bias)
    log_too = return_log_sum_exp or _trained(*tensors)
    number = _scale(scale, q.shape[-1])
    plan = plan_for(given, causal, number, (block_q, block_k), drop, log_too)
    out, log_sum_exp = flash_call(plan, *tensors)
    out = out.view(*given.shape, out.shape[-1])
    if return_log_sum_exp and log_sum_exp is not None:
        return Flash(out, log_sum_exp.view(given.shape))
    return out


def plan_for(
    given: Inputs,
    causal: bool,
    scale: float,
    blocks: tuple[int | None, int | None],
    drop: tuple[float, int] | None,
    log_too: bool,
) -> Plan:
    batch, n_kv_heads, group, n_q, _ = given.q.shape
    n_k, device = given.k.shape[-2], given.q.device
    dtype = torch.promote_types(given.q.dtype, torch.float32)
    block_k = tile_size("block_k", 256 if blocks[1] is None else blocks[1], n_k)
    (block_q, n_heads), backward = (
        tiles(n_kv_heads, group, n_q, block_k, side, blocks[0], device)
        for side in (CAUSAL_QUERIES if causal else QUERIES)
    )
    heads = batch, n_kv_heads, group
    return Plan(
        batch=batch,
        n_kv_heads=n_kv_heads,
        group=group,
        n_q=n_q,
        n_k=n_k,
        scale=scale,
        block_q=block_q,
        block_k=block_k,
        n_heads=n_heads,
        back=backward,
        looks=Looks(given.mask, causal, (n_q, n_k), block_k, (dtype, device)),
        drop=None if drop is None else Drop(*drop, heads, (n_q, n_k), device),
        dtype=dtype,
        log_too=log_too,
    )


def _trained(*tensors: Tensor | None) -> bool:
    """Whether there will be a backward."""
    asked = any(x is not None and x.requires_grad for x in tensors)
    return asked and torch.is_grad_enabled()


def _drop(dropout: float, seed: int | None) -> tuple[float, int] | None:
    """The rate and the seed, if anything is to be dropped."""
    check_dropout(dropout)
    if seed is not None:
        seed = size("seed", seed, least=-(2**63))
    if dropout == 0:
        return None
    return dropout, int(torch.randint(2**62, ())) if seed is None else seed


def _scale(scale: float | None, d_k: int) -> float:
    if scale is None:
        return 1.0 if d_k == 0 else float(d_k**-0.5)
    try:
        return float(scale)
    except (TypeError, ValueError):
        raise TypeError(f"scale must be one number, but it is {scale!r}.") from None


def tiles(
    n_kv_heads: int,
    group: int,
    n_q: int,
    block_k: int,
    side: int,
    given: int | None,
    device: torch.device,
) -> tuple[int, int]:
    """Queries in a tile, `side` of them unless they were given, and KV heads."""
    long = max(1, side // group) if given is None else given
    block_q = tile_size("block_q", long, n_q)
    room = SCORES * torch.get_num_threads() if device.type == "cpu" else ELSEWHERE
    n_heads = room // (group * block_q * block_k)
    return block_q, max(1, min(n_heads, n_kv_heads))
