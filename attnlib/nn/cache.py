"""The KV cache: keys and values that were computed once, kept for the next tokens.

When a text is written token by token, every new query looks at all keys so far, and
those do not change. A cache keeps them, for one layer: n_kv_heads * (d_k + d_v)
numbers a token.
"""

from __future__ import annotations

import weakref

import torch
from torch import Tensor

from attnlib.shapes import ShapeError


class KVCache:
    """Keys and values of the tokens so far, for one layer.

    Start with an empty one for every layer and every text, and hand it to each call:

    >>> cache = KVCache()
    >>> k, v = cache.append(torch.ones(2, 3, 4), torch.ones(2, 3, 5))
    >>> k, v = cache.append(torch.ones(2, 1, 4), torch.ones(2, 1, 5))
    >>> cache.length, tuple(k.shape), tuple(v.shape)
    (4, (2, 4, 4), (2, 4, 5))

    Nothing is written in place: each append copies what is there, which costs no more
    than the attention that reads it next, keeps gradients right, and makes
    `copy.copy(cache)` a branch that leaves the original alone.

    Keys are kept as the scores need them: already rotated, where positions rotate
    them. Rotated again they would be wrong.
    """

    def __init__(self) -> None:
        self.k: Tensor | None = None  # (..., n_kv_heads, length, d_k)
        self.v: Tensor | None = None  # (..., n_kv_heads, length, d_v)
        self._layer: weakref.ref[object] | None = None
        self._memory: tuple[Tensor, Tensor] | None = None

    def __repr__(self) -> str:
        return f"KVCache(length={self.length}, n_bytes={self.n_bytes})"

    @property
    def length(self) -> int:
        """How many tokens are in it: the position of the next one."""
        return 0 if self.k is None else self.k.shape[-2]

    @property
    def n_bytes(self) -> int:
        """How much memory the keys and values take."""
        kept = (self.k, self.v)
        return sum(t.numel() * t.element_size() for t in kept if t is not None)

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Add the keys and values of new tokens, and return all of them.

        Args:
            k: (..., n_kv_heads, n, d_k).
            v: (..., n_kv_heads, n, d_v).

        Returns:
            All keys (..., n_kv_heads, length, d_k), all values likewise with d_v.

        Raises:
            ShapeError: k and v differ in n, or do not fit what is in the cache.
            TypeError: their dtype is not the one in the cache.
        """
        self.k, self.v = self.joined(k, v)
        return self.k, self.v

    def joined(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """All keys and values, as after `append`, without keeping the new ones."""
        for name, new in (("k", k), ("v", v)):
            if new.ndim < 2:
                raise ShapeError(
                    f"{name} needs the axes (n, d) at its end, but its shape is "
                    f"{tuple(new.shape)}."
                )
        if k.shape[-2] != v.shape[-2]:
            raise ShapeError(
                f"k brings {k.shape[-2]} tokens to the cache, but v brings "
                f"{v.shape[-2]}."
            )
        if self.k is None or self.v is None:
            return k, v
        _check_fit("k", k, self.k)
        _check_fit("v", v, self.v)
        return torch.cat([self.k, k], dim=-2), torch.cat([self.v, v], dim=-2)

    def clear(self) -> None:
        """Forget everything, for the next text."""
        self.k = self.v = self._layer = self._memory = None

    def claim(
        self, layer: object, memory: tuple[Tensor, Tensor] | None
    ) -> tuple[Tensor, Tensor] | None:
        """Return the keys and values of this very memory, if they are here already.

        Raises ValueError where the cache belongs to another layer, or holds another
        memory than the one asked for: both would be read without a complaint.
        """
        if self.k is None or self.v is None:
            self._layer, self._memory = weakref.ref(layer), memory
            return None
        if self._layer is not None and self._layer() is not layer:
            raise ValueError(
                f"this cache holds {self.length} tokens of another layer; every layer "
                "needs a KVCache of its own."
            )
        kept = self._memory
        if memory is None and kept is None:
            return None
        if memory is None:
            raise ValueError(
                f"this cache holds the {self.length} tokens of a memory; x without a "
                "memory needs a KVCache of its own."
            )
        if kept is None:
            raise ValueError(
                f"this cache holds {self.length} tokens of x; a memory needs a KVCache "
                "of its own."
            )
        if any(new is not old for new, old in zip(memory, kept, strict=True)):
            raise ValueError(
                f"this cache holds the {self.length} tokens of another memory; hand "
                "over the same tensor again, or a new KVCache."
            )
        return self.k, self.v


def _check_fit(name: str, new: Tensor, kept: Tensor) -> None:
    if new.dtype != kept.dtype:
        raise TypeError(
            f"the cache holds {name} in {kept.dtype}, but {new.dtype} was appended."
        )
    before, after = tuple(kept.shape), tuple(new.shape)
    if before[:-2] != after[:-2] or before[-1] != after[-1]:
        raise ShapeError(
            f"the cache holds {name} with shape {before}, but {after} was appended; "
            "only the axis of the tokens, the last but one, may differ."
        )
