"""What goes into attention along slabs: checked, and brought into one shape."""

from __future__ import annotations

import math

import numpy as np
from torch import Tensor

from attnlib.nn.shapes import check_batch, check_tensors, short
from attnlib.nn.slabs import Plan, Slabs
from attnlib.shapes import ShapeError


def check(q: Tensor, k: Tensor, v: Tensor) -> int:
    """Raise unless q, k and v fit together; the query heads that share a KV head."""
    check_tensors({"q": (q, "n_q d_k"), "k": (k, "n_k d_k"), "v": (v, "n_k d_v")})
    if not q.dtype == k.dtype == v.dtype:
        raise TypeError(
            f"q, k and v must have one dtype, but they have {short(q)}, {short(k)} "
            f"and {short(v)}."
        )
    if not q.device == k.device == v.device:
        raise TypeError(
            f"q, k and v must be on one device, but they are on {q.device}, {k.device} "
            f"and {v.device}."
        )
    n_heads, n_kv_heads = (x.shape[-3] if x.ndim > 2 else 1 for x in (q, k))
    shared = k.shape[-3:-2] == v.shape[-3:-2] and 1 <= n_kv_heads < n_heads
    if not shared:
        check_batch(q, k, v)
        return 1
    if n_heads % n_kv_heads:
        raise ShapeError(
            f"n_heads={n_heads} of q is not a multiple of n_kv_heads={n_kv_heads} of "
            "k and v."
        )
    one = [x[..., 0, :, :] if x.ndim > 2 else x for x in (q, k, v)]
    check_batch(*one)
    return n_heads // n_kv_heads


def along(
    plan: Plan,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    group: int,
    scale: float | None,
    name: str,
) -> Tensor:
    """Attend along a plan: q (..., n_heads, n_q, d_k), k with fewer heads or as many.

    The plan knows of sizes, not of heads: all heads and sequences follow the same.
    """
    if scale is None:
        scale = 1.0 if q.shape[-1] == 0 else q.shape[-1] ** -0.5
    has_heads = q.ndim > 2
    heads = (*q.shape[:-3], q.shape[-3] // group) if has_heads else ()
    q = q.reshape(*heads, group, *q.shape[-2:])
    batch = np.broadcast_shapes(q.shape[:-3], k.shape[:-2], v.shape[:-2])
    flat = [
        x.expand(*batch, *x.shape[-own:]).reshape(math.prod(batch), *x.shape[-own:])
        for x, own in ((q, 3), (k, 2), (v, 2))
    ]
    out: Tensor = Slabs.apply(*flat, plan, float(scale), name)  # type: ignore[no-untyped-call]
    out = out.reshape(*batch, *out.shape[1:])  # (..., n_kv_heads, group, n_q, d_v)
    return out.flatten(-4, -3) if has_heads else out[..., 0, :, :]
