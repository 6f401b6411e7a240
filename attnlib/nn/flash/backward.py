"""Flash attention, backward: every tile of weights is computed once more.

Forward keeps no weights, but with the log-sum-exp of a row they come back without a
search for the largest score: weights = exp(scores - log_sum_exp). From there the chain
rule is the usual one, a tile at a time:

    d_v = weights^T d_out
    d_weights = d_out v^T
    d_scores = weights * (d_weights - sum_k(weights * d_weights))
    d_q = scale d_scores k,  d_k = scale d_scores^T q

The sum over all keys needs no pass of its own: it is the same as sum_d(d_out * out).
"""

from __future__ import annotations

import torch
from torch import Tensor

from attnlib.nn.flash.looks import cut
from attnlib.nn.flash.plan import LOG2_E, Plan, product

Gradients = tuple[Tensor, Tensor, Tensor, Tensor | None]


def flash_backward(
    plan: Plan,
    inputs: tuple[Tensor, Tensor, Tensor, Tensor | None],
    results: tuple[Tensor, Tensor],
    d_results: tuple[Tensor | None, Tensor | None],
    bias_too: bool,
) -> Gradients:
    """Return the gradients of q, k, v and the bias (if asked for)."""
    q, k, v, bias = inputs
    out, log_sum_exp = results
    d_out, d_log = d_results
    plan = plan.backward()
    if d_out is None:
        d_out = torch.zeros_like(out)
    blind = log_sum_exp == -torch.inf  # queries that see nothing: their weights are 0
    log2 = log_sum_exp.masked_fill(blind, torch.inf).mul_(LOG2_E)
    if d_log is not None:
        d_log = d_log.masked_fill(blind, 0)
    d_q = q.new_empty(q.shape)
    d_k, d_v = (x.new_zeros(x.shape, dtype=plan.dtype) for x in (k, v))
    d_bias = None
    if bias is not None and bias_too:
        d_bias = bias.new_zeros(bias.shape, dtype=plan.dtype)
    grow = 1.0 if plan.drop is None else plan.drop.grow
    room, other_room = plan.room(q), plan.room(q)
    for part in plan.parts:
        k_tiles, v_tiles = plan.tiles_of(k, part), plan.tiles_of(v, part)
        d_k_tiles, d_v_tiles = plan.tiles_of(d_k, part), plan.tiles_of(d_v, part)
        for queries in plan.blocks:
            q_i, out_i, d_out_i, log2_i = (
                plan.rows(x, part, queries) for x in (q, out, d_out, log2[..., None])
            )
            sums = (out_i * d_out_i).sum(-1, keepdim=True)
            if d_log is not None:  # d log_sum_exp / d scores = weights
                sums -= plan.rows(d_log[..., None], part, queries)
            d_q_i = torch.zeros_like(q_i)
            for tile in plan.looks.tiles(part, queries):
                k_j, v_j = k_tiles[tile.number], v_tiles[tile.number]
                weights = plan.scores(room, q_i, k_j, tile, bias).sub_(log2_i).exp2_()
                d_scores = product(other_room, d_out_i, v_j.mT, grow)  # d_weights yet
                if plan.drop is not None:
                    keep = plan.drop.kept(part, queries, tile.keys)
                    d_scores.mul_(keep)
                d_scores.sub_(sums).mul_(weights)
                if plan.drop is not None:  # out was mixed from what stayed
                    weights.mul_(keep)
                d_v_tiles[tile.number].baddbmm_(weights.mT, d_out_i, alpha=grow)
                if d_bias is not None:
                    place = cut(d_bias, part, queries, tile.keys)
                    place.add_(plan.by_query(d_scores).sum_to_size(place.shape))
                d_q_i.baddbmm_(d_scores, k_j, alpha=plan.scale)
                d_k_tiles[tile.number].baddbmm_(d_scores.mT, q_i, alpha=plan.scale)
            d_q[*part, :, queries] = plan.by_query(d_q_i)
    return d_q, d_k.to(k.dtype), d_v.to(v.dtype), d_bias
