"""Scaled dot-product attention in PyTorch, step by step, for autograd to follow.

It is `attnlib.attention.scaled_dot_product` once more, with what training asks for:
a score bias, causal without building the mask yourself, dropout, and gradients that
stay finite where a query may look at nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy.typing as npt
import torch
from torch import Tensor

from attnlib.nn.heads import per_group
from attnlib.nn.shapes import (
    check_batch,
    check_tensor,
    check_tensors,
    fits,
    short,
    unchanged,
)
from attnlib.shapes import ShapeError

OnScores = Callable[[Tensor], Tensor]  # scaled scores -> scores, the same shape


@dataclass(frozen=True)
class Attention:
    """All stages of one call of `scaled_dot_product`, in the order of the formula."""

    raw_scores: Tensor  # (..., n_q, n_k)  q @ k.T
    scores: Tensor  #     (..., n_q, n_k)  scaled, bias added; -inf where masked
    weights: Tensor  #    (..., n_q, n_k)  after softmax, before dropout
    out: Tensor  #        (..., n_q, d_v)  weights @ v


def scaled_dot_product(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | npt.ArrayLike | None = None,
    *,
    causal: bool = False,
    score_bias: Tensor | None = None,
    scale: float | None = None,
    on_scores: OnScores | None = None,
    dropout: float = 0.0,
    generator: torch.Generator | None = None,
    grouped: bool = False,
) -> Attention:
    """Let every query look at every key, and mix the values, differentiably.

    out = dropout(softmax(on_scores(q k^T / sqrt(d_k)) + score_bias)) v

    The order is fixed: multiply, scale, on_scores, add the bias, mask, softmax, drop,
    mix. A query that may look at nothing gets zeros, and so do its gradients. In
    float16 a raw score past 65504 overflows, before the scale could make it smaller.

    Args:
        q: queries, (..., n_q, d_k).
        k: keys, (..., n_k, d_k).
        v: values, (..., n_k, d_v).
        mask: boolean, a tensor or an array of `attnlib.masks`, broadcastable to
            (..., n_q, n_k). True = may look.
        causal: whether to hide what comes after a query, which stands at position
            n_k - n_q + i; combined with the mask by &.
        score_bias: numbers added to the scores, broadcastable to (..., n_q, n_k).
        scale: factor on the raw scores; 1 / sqrt(d_k) if left out.
        on_scores: a function of the scaled scores, such as `attnlib.nn.stable.Softcap`.
        dropout: the part of the weights that is dropped, from 0 up to but not 1. A
            function does not know about `model.eval()`: hand it 0 there.
        generator: where the dropout draws from; torch's own if left out.
        grouped: q may have a multiple of the heads of k and v, the axis before n_q.
            Neighbouring query heads share one, which is not repeated in memory.

    Returns:
        All stages: raw_scores, scores, weights (..., n_q, n_k) and out (..., n_q, d_v).
        The weights are those before dropout, so that their rows sum to 1 or are 0.

    Raises:
        ShapeError: q and k differ in d_k, k and v in n_k, the batch axes do not
            broadcast, the mask or the bias does not fit, or on_scores changes a shape.
        TypeError: q, k or v is not a floating tensor, they differ in dtype, the mask is
            not boolean, or the bias is.
        ValueError: dropout is not in [0, 1).

    Cost: 2 n_q n_k (d_k + d_v) FLOPs forward, twice that backward; 3 n_q n_k numbers.
    Source: Vaswani et al. 2017, equation 1; torch's SDPA for the arguments.
    Lesson: 05.

    >>> q, k = torch.zeros(1, 2), torch.ones(3, 2)
    >>> stages = scaled_dot_product(q, k, torch.eye(3), mask=[[True, False, True]])
    >>> stages.weights.tolist(), stages.out.tolist()
    ([[0.5, 0.0, 0.5]], [[0.5, 0.0, 0.5]])
    """
    d_k = _check(q, k, v, grouped)
    check_dropout(dropout)
    if scale is None:
        scale = 1.0 if d_k == 0 else d_k**-0.5
    multiply = per_group if grouped else torch.matmul
    raw_scores = multiply(q, k.transpose(-1, -2))
    scores = raw_scores * scale
    if on_scores is not None:
        scores = unchanged("on_scores", "the scores", scores, on_scores(scores))
    if score_bias is not None:
        scores = scores + _score_bias(score_bias, scores)
    if mask is not None:
        scores = scores.masked_fill(
            ~fitting_mask(mask, scores.shape, scores.device), -torch.inf
        )
    n_q, n_k = scores.shape[-2:]
    if causal and n_q > 1:  # a query alone stands beside the last key
        look = torch.ones(n_q, n_k, dtype=torch.bool, device=q.device)
        scores = scores.masked_fill(~look.tril(n_k - n_q), -torch.inf)
    # Looking for empty rows costs more than the softmax; often there can be none.
    free = mask is None and score_bias is None and on_scores is None
    some = free and (n_q <= n_k or not causal)
    weights = torch.softmax(scores, dim=-1) if some else _softmax(scores)
    kept = weights
    if dropout > 0:
        draw = torch.rand(weights.shape, generator=generator, device=weights.device)
        kept = weights * (draw >= dropout) / (1 - dropout)
    return Attention(raw_scores, scores, weights, multiply(kept, v))


def check_dropout(dropout: float) -> None:
    """Raise unless it is a share of the weights that leaves something."""
    if not 0 <= dropout < 1:
        raise ValueError(
            f"dropout must be at least 0 and less than 1, but it is {dropout}."
        )


def _softmax(scores: Tensor) -> Tensor:
    """Softmax over the keys; a row that is -inf throughout becomes zeros.

    Such a row would be NaN, and multiplying it by 0 afterwards would not help the
    gradients. So it is replaced before the softmax, and cut off after it.
    """
    empty = (scores == -torch.inf).all(-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(empty, 0.0), dim=-1)
    return weights.masked_fill(empty, 0.0)


def _check(q: Tensor, k: Tensor, v: Tensor, grouped: bool) -> int:
    sizes = check_tensors(
        {"q": (q, "n_q d_k"), "k": (k, "n_k d_k"), "v": (v, "n_k d_v")}
    )
    if not q.dtype == k.dtype == v.dtype:
        raise TypeError(
            f"q, k and v must have one dtype, but they have {short(q)}, {short(k)} "
            f"and {short(v)}."
        )
    if grouped and min(q.ndim, k.ndim, v.ndim) > 2 and k.shape[-3] == v.shape[-3]:
        n_heads, n_kv_heads = q.shape[-3], k.shape[-3]
        if n_kv_heads == 0 or n_heads % n_kv_heads:
            raise ShapeError(
                f"n_heads={n_heads} is not a multiple of n_kv_heads={n_kv_heads}."
            )
        if n_heads != n_kv_heads:
            q, k, v = (x[..., 0, :, :] for x in (q, k, v))
    check_batch(q, k, v)
    return sizes["d_k"]


def fitting_mask(
    mask: Tensor | npt.ArrayLike,
    shape: Sequence[int],
    device: torch.device,
    bias: str = "score_bias",
) -> Tensor:
    """Return the mask as a tensor, or raise unless it fits scores of this shape."""
    look = torch.as_tensor(mask, device=device)
    if look.dtype != torch.bool:
        raise TypeError(
            f"mask must be boolean (True = may look), but its dtype is {short(look)}; "
            f"numbers to add to the scores are {bias}."
        )
    if fits(look.shape, shape):
        return look
    text = (
        f"mask with shape {tuple(look.shape)} does not broadcast to the scores' shape "
        f"{tuple(shape)}, which ends in (n_q, n_k)"
    )
    if look.ndim == 3 and fits(look[:, None].shape, shape):
        text += (
            "; a mask for each sequence of the batch needs an axis of 1 for the heads"
        )
    raise ShapeError(text + ".")


def _score_bias(score_bias: Tensor, scores: Tensor) -> Tensor:
    if isinstance(score_bias, Tensor) and score_bias.dtype == torch.bool:
        raise TypeError("score_bias is added to the scores; a boolean one is a mask.")
    check_tensor("score_bias", score_bias)
    if not fits(score_bias.shape, scores.shape):
        raise ShapeError(
            f"score_bias with shape {tuple(score_bias.shape)} does not broadcast to "
            f"the scores' shape {tuple(scores.shape)}, which ends in (n_q, n_k)."
        )
    return score_bias.to(scores)  # a float32 bias must not widen float16 scores
