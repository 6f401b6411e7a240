"""The KV cache: keys and values that were computed once, kept for the next tokens.

When a text is written token by token, every new query looks at all keys so far, and
those do not change. A cache keeps them, for one layer: n_kv_heads * (d_k + d_v)
numbers a token. Where a query looks at its last neighbours only, so does the cache.
"""

from __future__ import annotations

import weakref

import numpy.typing as npt
import torch
from torch import Tensor

from attnlib import masks
from attnlib.nn.room import Room, check_fit
from attnlib.shapes import ShapeError, size


class KVCache:
    """Keys and values of the tokens so far, for one layer.

    Start with an empty one for every layer and every text, and hand it to each call:

    >>> cache = KVCache()
    >>> k, v = cache.append(torch.ones(2, 3, 4), torch.ones(2, 3, 5))
    >>> k, v = cache.append(torch.ones(2, 1, 4), torch.ones(2, 1, 5))
    >>> cache.length, tuple(k.shape), tuple(v.shape)
    (4, (2, 4, 4), (2, 4, 5))

    Where no gradients are wanted (`torch.no_grad()`), new tokens are written behind the
    old ones, into room that was reserved before; it doubles when it is full. With
    gradients each append makes a copy. Either way what was handed out never changes,
    and `copy.copy(cache)` is a branch that leaves the original alone.

    Keys are kept as the scores need them: already rotated, where positions rotate
    them. Rotated again they would be wrong.

    Args:
        left: how many keys before its own position a query sees, as in
            `masks.window`; all, if left out. Older ones are forgotten, and
            `MultiHeadAttention` hides them in longer pieces of text, too.
        capacity: for how many tokens to reserve room at once, where that is known.

    >>> cache = KVCache(left=2)
    >>> for _ in range(5):
    ...     k, v = cache.append(torch.ones(2, 1, 4), torch.ones(2, 1, 4))
    >>> cache.length, cache.n_kept, k.shape[-2]
    (5, 2, 3)
    """

    def __init__(self, *, left: int | None = None, capacity: int = 0) -> None:
        self.left = None if left is None else size("left", left)
        self.capacity = size("capacity", capacity)
        self.k: Tensor | None = None  # (..., n_kv_heads, n_kept, d_k)
        self.v: Tensor | None = None  # (..., n_kv_heads, n_kept, d_v)
        self._forgotten = 0
        self._room: Room | None = None
        self._layer: weakref.ref[object] | None = None
        self._memory: tuple[Tensor, Tensor] | None = None

    def __repr__(self) -> str:
        return f"KVCache(length={self.length}, n_bytes={self.n_bytes})"

    @property
    def length(self) -> int:
        """How many tokens came so far: the position of the next one."""
        return self._forgotten + self.n_kept

    @property
    def n_kept(self) -> int:
        """How many of them are in it: all, or the last `left`."""
        return 0 if self.k is None else self.k.shape[-2]

    @property
    def n_bytes(self) -> int:
        """How much memory the keys and values take; twice as much may be reserved."""
        kept = (self.k, self.v)
        return sum(t.numel() * t.element_size() for t in kept if t is not None)

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Add the keys and values of new tokens, and return all that they look at.

        Args:
            k: (..., n_kv_heads, n, d_k).
            v: (..., n_kv_heads, n, d_v).

        Returns:
            The keys that were kept and the new ones, (..., n_kv_heads, n_kept + n,
            d_k), and the values likewise with d_v.

        Raises:
            ShapeError: k and v differ in n, or do not fit what is in the cache.
            TypeError: their dtype is not the one in the cache.
        """
        k, v = self.joined(k, v)
        self.keep(k, v)
        return k, v

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
        in_place = not torch.is_grad_enabled() and not torch.compiler.is_compiling()
        if self.k is None or self.v is None:
            if not (in_place and self.capacity):
                return k, v
            self._room = Room(k, v, self.capacity)
            return self._room.add(k[..., :0, :], v[..., :0, :], 0)
        check_fit("k", k, self.k)
        check_fit("v", v, self.v)
        if not in_place:
            return torch.cat([self.k, k], dim=-2), torch.cat([self.v, v], dim=-2)
        n = k.shape[-2]
        start = None if self._room is None else self._room.find(self.k, self.v, n)
        if self._room is None or start is None:
            n_needed = max(2 * (self.n_kept + n), self.capacity)
            self._room, start = Room(self.k, self.v, n_needed), 0
        return self._room.add(k, v, start)

    def keep(self, k: Tensor, v: Tensor) -> None:
        """Keep what `joined` gave, or the last `left` tokens of it."""
        n = k.shape[-2]
        length = self._forgotten + n  # k begins with what was kept
        if self.left is not None and n > self.left:
            k, v = k[..., n - self.left :, :], v[..., n - self.left :, :]
        self.k, self.v = k, v
        self._forgotten = length - k.shape[-2]

    def look(
        self, mask: Tensor | npt.ArrayLike | None, q: Tensor, k: Tensor
    ) -> Tensor | npt.ArrayLike | None:
        """The mask for these queries and for the keys that `joined` gave.

        Without `left` it is the mask itself. Else its columns of forgotten tokens are
        cut off, and the window is put over it.
        """
        if self.left is None:
            return mask
        n_q, n_k = q.shape[-2], k.shape[-2]
        if mask is not None:
            mask = torch.as_tensor(mask, device=q.device)
            if mask.shape[-1:] == (self._forgotten + n_k,):
                mask = mask[..., self._forgotten :]
        if n_k <= self.left + 1 and n_q <= 1:  # the window is all there is
            return mask
        window = torch.from_numpy(masks.window(n_q, n_k, left=self.left)).to(q.device)
        if mask is None or mask.dtype != torch.bool:  # a wrong mask is named later
            return window if mask is None else mask
        return mask & window

    def clear(self) -> None:
        """Forget everything, for the next text."""
        self.k = self.v = self._room = self._layer = self._memory = None
        self._forgotten = 0

    def claim(
        self, layer: object, memory: tuple[Tensor, Tensor] | None
    ) -> tuple[Tensor, Tensor] | None:
        """Return the keys and values of this very memory, if they are here already.

        Raises ValueError where the cache belongs to another layer, or holds another
        memory than the one asked for: both would be read without a complaint.
        """
        if memory is not None and self.left is not None:
            raise ValueError(
                f"a cache with left={self.left} forgets tokens; a memory needs a "
                "KVCache() that keeps all."
            )
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
