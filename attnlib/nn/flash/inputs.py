"""What a call of `flash_attention` may be given, and how it lies inside.

Inside, all batch axes are one, and the heads are two: KV heads, and the query heads
that share one. Where neither mask nor bias differs between sequences or heads, the
batch joins the heads, so that more of them share a tile. Nothing is copied for all
this, unless the batch axes of q, k and v broadcast.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from attnlib.nn.attention import fitting_mask
from attnlib.nn.shapes import check_tensor, check_tensors, fits
from attnlib.shapes import ShapeError, size


@dataclass(frozen=True)
class Inputs:
    """The tensors of one call as they lie inside, and how the result goes back."""

    q: Tensor  #            (batch, n_kv_heads, group, n_q, d_k)
    k: Tensor  #            (batch, n_kv_heads, n_k, d_k)
    v: Tensor  #            (batch, n_kv_heads, n_k, d_v)
    mask: Tensor | None  #  (batch, n_kv_heads, group, n_q, n_k); any axis may be 1
    bias: Tensor | None  #  likewise
    shape: tuple[int, ...]  # the batch axes, n_heads and n_q, as they were given


def inside(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | npt.ArrayLike | None,
    bias: Tensor | None,
) -> Inputs:
    """Check what was given, and bring it into the order that is used inside."""
    sizes = check_tensors(
        {"q": (q, "n_q d_k"), "k": (k, "n_k d_k"), "v": (v, "n_k d_v")}
    )
    for what in ("dtype", "device"):
        of_q, of_k, of_v = (getattr(x, what) for x in (q, k, v))
        if not of_q == of_k == of_v:
            names = (str(x).removeprefix("torch.") for x in (of_q, of_k, of_v))
            raise TypeError(
                "q, k and v must have one {}, but they have {}, {} and {}.".format(
                    what, *names
                )
            )
    batch, n_heads, n_kv = _heads(q, k, v)
    group = n_heads // n_kv if n_kv else 1
    n_q, n_k = sizes["n_q"], sizes["n_k"]
    shape = (*batch, n_heads, n_q) if max(q.ndim, k.ndim, v.ndim) > 2 else (n_q,)
    if mask is not None:
        mask = _narrow(fitting_mask(mask, (*shape, n_k), q.device, "bias"))
        mask = _apart(mask, batch, group)
    if bias is not None:
        bias = _apart(_checked(bias, (*shape, n_k)), batch, group)
    # Without a mask or a bias that differs, sequences are like heads.
    alike = [x is None or x.shape[:2] == (1, 1) for x in (mask, bias)]
    front = [1, n_kv]
    front[all(alike)] *= math.prod(batch)
    q = q.expand(*batch, n_heads, *q.shape[-2:])
    k, v = (x.expand(*batch, n_kv, *x.shape[-2:]) for x in (k, v))
    return Inputs(
        q.reshape(*front, group, *q.shape[-2:]),
        k.reshape(*front, *k.shape[-2:]),
        v.reshape(*front, *v.shape[-2:]),
        mask,
        bias,
        shape,
    )


def tile_size(name: str, value: object, n: int) -> int:
    """A size that was given for the tiles, no larger than needed."""
    return min(size(name, value, least=1), max(n, 1))


def _heads(q: Tensor, k: Tensor, v: Tensor) -> tuple[tuple[int, ...], int, int]:
    """The batch axes, and the heads of q and of k and v."""
    fronts = [tuple(x.shape[:-2]) for x in (q, k, v)]
    of_q, of_k, of_v = (front[-1] if front else 1 for front in fronts)
    n_kv = of_v if of_k == 1 else of_k
    try:
        batch = np.broadcast_shapes(*(front[:-1] for front in fronts))
        fine = of_v in (1, n_kv)
    except ValueError:
        fine = False
    if not fine:
        raise ShapeError(
            "the batch axes of q {}, k {} and v {} do not broadcast.".format(*fronts)
        )
    if of_q == 1 or of_q == n_kv:
        return batch, n_kv, n_kv
    if n_kv == 0 or of_q % n_kv:
        raise ShapeError(f"n_heads={of_q} is not a multiple of n_kv_heads={n_kv}.")
    return batch, of_q, n_kv


def _checked(bias: Tensor, shape: tuple[int, ...]) -> Tensor:
    if isinstance(bias, Tensor) and bias.dtype == torch.bool:
        raise TypeError("bias is added to the scores; a boolean one is a mask.")
    check_tensor("bias", bias)
    if not fits(bias.shape, shape):
        raise ShapeError(
            f"bias with shape {tuple(bias.shape)} does not broadcast to the scores' "
            f"shape {shape}, which ends in (n_q, n_k)."
        )
    return bias


def _narrow(mask: Tensor) -> Tensor:
    """Without the axes along which `expand` only repeats."""
    for axis, stride in enumerate(mask.stride()):
        if stride == 0 and mask.shape[axis] > 1:
            mask = mask.narrow(axis, 0, 1)
    return mask


def _apart(x: Tensor, batch: tuple[int, ...], group: int) -> Tensor:
    """A mask or a bias as (batch, n_kv_heads, group, n_q, n_k); any axis may be 1."""
    x = x[(None,) * (len(batch) + 3 - x.ndim)]
    *front, n_heads, n_q, n_k = x.shape
    if any(n != 1 for n in front):
        x, front = x.expand(*batch, n_heads, n_q, n_k), list(batch)
    heads = (n_heads, 1) if n_heads < 2 else (n_heads // group, group)
    return x.reshape(math.prod(front), *heads, n_q, n_k)
