"""The sizes of the heads, with what is left out filled in."""

from __future__ import annotations

from dataclasses import dataclass

from attnlib.shapes import ShapeError, size


@dataclass(frozen=True)
class HeadSizes:
    """How large an attention is, every size known."""

    d_model: int
    n_heads: int
    n_kv_heads: int
    d_k: int
    d_v: int


def head_sizes(
    d_model: int,
    n_heads: int,
    n_kv_heads: int | None = None,
    d_k: int | None = None,
    d_v: int | None = None,
) -> HeadSizes:
    """Fill in the sizes that were left out, as `attnlib.heads.multi_head` reads them.

    n_kv_heads = n_heads; d_k = d_model / n_heads; d_v = d_k

    Args:
        d_model: how many numbers a token has.
        n_heads: how many query heads.
        n_kv_heads: how many key and value heads; n_heads if left out.
        d_k: numbers in a query or key of one head; d_model / n_heads if left out.
        d_v: numbers in a value of one head; d_k if left out.

    Returns:
        All sizes; there is no array, hence no shape.

    Raises:
        ShapeError: d_model is no multiple of n_heads, n_heads none of n_kv_heads.
        TypeError: a size is not a whole number.

    Cost: none worth counting.
    Source: Vaswani et al. 2017, section 3.2.2; Ainslie et al. 2023 for groups.
    Lesson: 11.

    >>> head_sizes(12, 4, n_kv_heads=2)
    HeadSizes(d_model=12, n_heads=4, n_kv_heads=2, d_k=3, d_v=3)
    """
    d_model, n_heads = size("d_model", d_model, 1), size("n_heads", n_heads, 1)
    n_kv_heads = n_heads if n_kv_heads is None else size("n_kv_heads", n_kv_heads, 1)
    if n_heads % n_kv_heads:
        raise ShapeError(
            f"n_heads={n_heads} is not a multiple of n_kv_heads={n_kv_heads}."
        )
    if d_k is None and d_model % n_heads:
        raise ShapeError(f"d_model={d_model} is not a multiple of n_heads={n_heads}.")
    d_k = d_model // n_heads if d_k is None else size("d_k", d_k, 1)
    d_v = d_k if d_v is None else size("d_v", d_v, 1)
    return HeadSizes(d_model, n_heads, n_kv_heads, d_k, d_v)
