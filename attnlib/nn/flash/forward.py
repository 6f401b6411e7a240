"""Flash attention, forward: one tile of scores at a time, and nothing kept of it.

The softmax of a row needs its largest score and its sum, which are known only after the
last key. So every row keeps the largest score so far, the sum so far, and the values
mixed so far. When a larger score comes, what was summed before is made smaller by the
same factor. At the end everything is divided by the sum, once.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from attnlib.nn.flash.plan import Plan


def flash_forward(
    plan: Plan, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """Return out and, where it is wanted, the log of the sum of the exponentials."""
    out, log_sum_exp = q.new_empty(*q.shape[:-1], v.shape[-1]), None
    if plan.log_too:
        log_sum_exp = q.new_empty(q.shape[:-1], dtype=plan.dtype)
    room = plan.room(q)
    for part in plan.parts:
        k_tiles, v_tiles = plan.tiles_of(k, part), plan.tiles_of(v, part)
        for queries in plan.blocks:
            q_i = plan.rows(q, part, queries)  # (heads, rows, d_k)
            # Lower than any score, but not as low as what is hidden: no inf - inf.
            largest = q_i.new_full((*q_i.shape[:2], 1), torch.finfo(q_i.dtype).min / 2)
            total = torch.zeros_like(largest)
            mixed = q_i.new_zeros(*q_i.shape[:2], v.shape[-1])
            for tile in plan.looks.tiles(part, queries):
                scores = plan.scores(room, q_i, k_tiles[tile.number], tile, bias)
                before = largest
                largest = torch.maximum(before, scores.amax(-1, keepdim=True))
                weights = scores.sub_(largest).exp2_()
                shrink = before.sub_(largest).exp2_()
                total.mul_(shrink).add_(weights.sum(-1, keepdim=True))
                if plan.drop is not None:  # after the sum, as after a softmax
                    weights.mul_(plan.drop.kept(part, queries, tile.keys))
                mixed.mul_(shrink).baddbmm_(weights, v_tiles[tile.number])
            if plan.drop is not None:
                mixed.mul_(plan.drop.grow)
            # The largest score alone adds 1 to a sum. Where nothing was seen: 0 / 1.
            mixed.div_(total.clamp(min=1))
            out[*part, :, queries] = plan.by_query(mixed)
            if log_sum_exp is not None:
                log = (largest + total.log2()) * math.log(2)
                log_sum_exp[*part, :, queries] = plan.by_query(log)[..., 0]
    return out, log_sum_exp
