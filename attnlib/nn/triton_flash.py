"""`triton_attention`: flash attention, forward, as one kernel for a GPU.

The package triton is optional and large, so it is looked for only when this is called.
Without a GPU, Triton's interpreter runs the same kernel with NumPy, slowly.
"""

from __future__ import annotations

import importlib.util
import math
import os
from types import ModuleType
from typing import Any, Literal, NamedTuple, overload

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from attnlib.nn.flash import Flash
from attnlib.nn.flash.inputs import Inputs, inside
from attnlib.nn.shapes import check_tensors, short
from attnlib.shapes import ShapeError

WIDEST = 256  # a tile of queries and one of keys must lie on the chip together
DTYPES = (torch.float32, torch.float16, torch.bfloat16)
LOG2_E = math.log2(math.e)


class Tiles(NamedTuple):
    """How large the tiles are, and how many warps of 32 threads work on one."""

    block_q: int
    block_k: int
    warps: int


@overload
def triton_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: Tensor | npt.ArrayLike | None = None,
    causal: bool = False,
    scale: float | None = None,
    return_log_sum_exp: Literal[False] = False,
) -> Tensor: ...


@overload
def triton_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: Tensor | npt.ArrayLike | None = None,
    causal: bool = False,
    scale: float | None = None,
    return_log_sum_exp: Literal[True],
) -> Flash: ...


def triton_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: Tensor | npt.ArrayLike | None = None,
    causal: bool = False,
    scale: float | None = None,
    return_log_sum_exp: bool = False,
) -> Tensor | Flash:
    """Attention forward as one Triton kernel, without a matrix of n_q by n_k.

    out = softmax(q k^T / sqrt(d_k)) v, one tile of scores at a time, on the chip.

    It needs the package triton. On a GPU the kernel is compiled at the first call for
    each dtype and width. On a CPU the interpreter of Triton runs it, if the environment
    variable TRITON_INTERPRET was set to 1 before triton was first imported. A query
    that may look at nothing gets zeros. A NaN may get past a mask, as in SDPA. There is
    no gradient.

    Args:
        q: queries, (..., n_heads, n_q, d_k); float32, float16 or bfloat16.
        k: keys, (..., n_kv_heads, n_k, d_k). Where n_kv_heads is less than n_heads, it
            divides it: query head h reads KV head h // (n_heads / n_kv_heads).
        v: values, (..., n_kv_heads, n_k, d_v).
        mask: which keys are no padding: boolean, (batch, 1, 1, n_k), as
            `attnlib.masks.padding` makes it. True = may look.
        causal: whether to hide what comes after a query, which stands at position
            n_k - n_q + i; combined with the mask by &.
        scale: factor on the products of q and k; 1 / sqrt(d_k) if left out.
        return_log_sum_exp: return a `Flash` of out and the log of every row's sum of
            exponentials, -inf for a query that may look at nothing.

    Returns:
        out (..., n_heads, n_q, d_v) in the dtype of q, or a `Flash`.

    Raises:
        ImportError: the package triton is missing, or its interpreter is too old.
        RuntimeError: a gradient was asked for, or there is neither a GPU nor the
            interpreter.
        ShapeError: the sizes do not fit, d_k or d_v is more than 256, or the mask
            differs between heads or queries.
        TypeError: q, k or v is no tensor of these dtypes, or they differ in it.

    Cost: 2 n_q n_k (d_k + d_v) FLOPs, about half of it if causal; besides the results,
        nothing that grows with n, unless an input is not contiguous and is copied.
    Source: Dao 2023, algorithm 1; Tillet, Kung and Cox 2019 for Triton.
    Lesson: 12.

    >>> q = torch.zeros(3, 4, requires_grad=True)
    >>> triton_attention(q, q, q)
    Traceback (most recent call last):
    RuntimeError: triton_attention has no gradient, and q requires one: call it under \
torch.no_grad(), or call nn.flash_attention.
    """
    given = _checked(q, k, v, mask)
    kernel = _kernel(q.device)
    heads, shape = given.q.shape[:3], given.shape
    (n_q, d_k), (n_k, d_v) = given.q.shape[-2:], given.v.shape[-2:]
    out = q.new_empty(*heads, n_q, d_v)
    log_sum_exp = q.new_empty(*heads, n_q, dtype=torch.float32)
    widths = width(d_k), width(d_v)
    tiles = sizes(q.dtype, max(widths), kernel.INTERPRETED)
    n_programs = heads.numel() * -(-n_q // tiles.block_q)
    if scale is None:
        scale = d_k**-0.5 if d_k else 1.0
    if n_programs:
        with torch.cuda.device(q.get_device()):  # one of several; on a CPU nothing
            kernel.flash_kernel[(n_programs,)](
                *(x.contiguous() for x in (given.q, given.k, given.v)),
                _padding(given),
                out,
                log_sum_exp,
                float(scale) * LOG2_E,
                n_q,
                n_k,
                heads[2],
                heads[1] * heads[2],
                D_K=d_k,
                D_V=d_v,
                WIDTH_K=widths[0],
                WIDTH_V=widths[1],
                BLOCK_Q=tiles.block_q,
                BLOCK_K=tiles.block_k,
                CAUSAL=bool(causal),
                PRODUCT=_product(kernel, q.dtype),
                num_warps=tiles.warps,
                num_stages=2,
            )
    out = out.view(*shape, d_v)
    return Flash(out, log_sum_exp.view(shape)) if return_log_sum_exp else out


def width(d: int) -> int:
    """The room for a row: a power of 2, and not less than `tl.dot` on a GPU wants."""
    return max(16, 1 << max(d - 1, 0).bit_length())


def sizes(dtype: torch.dtype, widest: int, interpreted: bool) -> Tiles:
    """Tiles that fit: in the 64 KB of a small GPU's SRAM, and in the registers."""
    if interpreted:
        return Tiles(32, 32, 4)
    if dtype == torch.float32:  # twice the bytes, and no tensor cores
        if widest <= 64:
            return Tiles(64, 32, 8)
        return Tiles(32, 16, 4) if widest <= 128 else Tiles(16, 16, 4)
    if widest <= 64:
        return Tiles(64, 64, 4)
    return Tiles(64, 32, 8) if widest <= 128 else Tiles(32, 16, 4)


def _checked(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | npt.ArrayLike | None
) -> Inputs:
    check_tensors({"q": (q, "n_q d_k"), "k": (k, "n_k d_k"), "v": (v, "n_k d_v")})
    for name, x in (("q", q), ("k", k), ("v", v)):
        if x.requires_grad and torch.is_grad_enabled():
            raise RuntimeError(
                f"triton_attention has no gradient, and {name} requires one: call it "
                "under torch.no_grad(), or call nn.flash_attention."
            )
        if x.dtype not in DTYPES:
            raise TypeError(
                "triton_attention takes float32, float16 and bfloat16, but the dtype "
                f"of {name} is {short(x)}; nn.flash_attention takes it."
            )
    given = inside(q, k, v, mask, None)
    for name, d in (("d_k", q.shape[-1]), ("d_v", v.shape[-1])):
        if d > WIDEST:
            raise ShapeError(
                f"triton_attention keeps whole rows on the chip, {name} of at most "
                f"{WIDEST}, but {name}={d}; nn.flash_attention takes any."
            )
    if given.mask is not None and given.mask.shape[1:4] != (1, 1, 1):
        n_k = k.shape[-2]
        raise ShapeError(
            "triton_attention takes a padding mask, (batch, 1, 1, n_k) with "
            f"n_k={n_k}, but this one differs between heads or queries; "
            "nn.flash_attention takes any."
        )
    return given


def _kernel(device: torch.device) -> ModuleType:
    """The module with the kernel; the one place from which triton is loaded."""
    if importlib.util.find_spec("triton") is None:
        raise ImportError(
            "triton_attention needs the package triton, and it is not installed: "
            "`python -m pip install triton` brings it (about 1 GB, for Linux).",
            name="triton",
        )
    told = os.environ.get("TRITON_INTERPRET", "0") not in ("", "0")
    if told or device.type != "cpu":  # else nothing is loaded that decides for good
        from attnlib.nn import triton_kernel

        if triton_kernel.INTERPRETED:
            _check_interpreter(triton_kernel.VERSION, np.__version__)
            return triton_kernel
        if not told:
            return triton_kernel
        raise RuntimeError(
            "TRITON_INTERPRET was set after triton had been imported, which reads it "
            "once: start Python afresh and set it first."
        )
    raise RuntimeError(
        "Triton compiles for a GPU, and these tensors lie on the CPU: to run the "
        "kernel there in Triton's interpreter, set the environment variable "
        "TRITON_INTERPRET to 1 before triton is first imported."
    )


def _check_interpreter(triton: str, numpy: str) -> None:
    """Raise for a pair that stops in the middle with a sentence about scalars."""
    old, new = (tuple(map(int, version.split(".")[:2])) for version in (triton, numpy))
    if old < (3, 7) and new >= (2, 4):
        raise ImportError(
            f"The interpreter of triton {triton} does not work with NumPy {numpy}: it "
            "needs triton 3.7 or later.",
            name="triton",
        )


def _padding(given: Inputs) -> Tensor | None:
    """Which keys are real, (batch, n_k), as bytes."""
    if given.mask is None:
        return None
    mask = given.mask[:, 0, 0, 0]
    mask = mask.expand(given.q.shape[0], given.k.shape[-2])
    return mask.to(torch.int8).contiguous()


def _product(kernel: ModuleType, dtype: torch.dtype) -> Any:
    """The dtype of what is multiplied. NumPy, the interpreter, knows no bfloat16."""
    if dtype == torch.bfloat16 and kernel.INTERPRETED:
        dtype = torch.float32
    return getattr(kernel.tl, str(dtype).removeprefix("torch."))
