"""Ways to attend, full and cheaper, that small models can be trained with.

Each is called as `attend(q, k, v)`, (batch, n, d) each, or with an axis of heads before
n. They say in torch what `attnlib.lowrank` says in NumPy, so that gradients go through.
Those that take `real` leave out keys that are fillers: it is True where a key is none.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.functional import elu, scaled_dot_product_attention

from attnlib.shapes import size

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]  # (batch, n, d) three times, to one


def masked(mask: npt.NDArray[np.bool_]) -> Attend:
    """Make attention under a fixed mask, as a function of q, k and v.

    softmax(q k^T / sqrt(d_k)) v, where the mask is False: no weight

    Args:
        mask: boolean, (n_q, n_k). True = may look.

    Returns:
        A function of q, k, v, (batch, n, d) each.

    Raises:
        TypeError: the mask is not boolean.

    Cost: that of all pairs.
    Source: Vaswani et al. 2017, equation 1.
    Lesson: 13.

    >>> x = torch.eye(3)[None]
    >>> bool((masked(np.eye(3, dtype=bool))(x, x, x) == x).all())
    True
    """
    if mask.dtype != np.bool_:
        raise TypeError(f"mask must be boolean, but its dtype is {mask.dtype}.")
    look = torch.from_numpy(mask)
    return lambda q, k, v: scaled_dot_product_attention(q, k, v, look)


def pooled(q: Tensor, k: Tensor, v: Tensor, real: Tensor | None = None) -> Tensor:
    """Look at the means of every 4 keys, as `lowrank.pooled` with width 4.

    softmax(q pool(k)^T / sqrt(d_k)) pool(v)

    Args:
        q: (batch, n_q, d_k).
        k: (batch, n_k, d_k), n_k a multiple of 4.
        v: (batch, n_k, d_v).
        real: truth values, (batch, n_k). A mean is that of the keys that are real;
            where none of the 4 is, it is hidden.

    Returns:
        The result, (batch, n_q, d_v).

    Raises:
        RuntimeError: n_k is no multiple of 4.

    Cost: a quarter of all pairs.
    Source: Rae et al. 2019, for mean pooling.
    Lesson: 13.

    >>> pooled(torch.zeros(1, 1, 2), torch.zeros(1, 4, 2), torch.eye(4)[None])
    tensor([[[0.2500, 0.2500, 0.2500, 0.2500]]])
    """
    if real is None:
        k, v = (_by_four(x).mean(-2) for x in (k, v))
        return scaled_dot_product_attention(q, k, v)
    n_real = _by_four(real[..., None]).sum(-2)
    k, v = (_by_four(x * real[..., None]).sum(-2) / n_real.clamp(min=1) for x in (k, v))
    return scaled_dot_product_attention(q, k, v, (n_real > 0).mT)


def _by_four(x: Tensor) -> Tensor:
    """(..., n, d) -> (..., n / 4, 4, d)."""
    return x.reshape(*x.shape[:-2], -1, 4, x.shape[-1])


def linear(q: Tensor, k: Tensor, v: Tensor, real: Tensor | None = None) -> Tensor:
    """Attend through sums over the keys, as `lowrank.linear`.

    out_i = f(q_i) S / (f(q_i) . z), with S = sum f(k_j)^T v_j and z = sum f(k_j)

    Args:
        q: (batch, n_q, d_k).
        k: (batch, n_k, d_k).
        v: (batch, n_k, d_v).
        real: truth values, (batch, n_k). The sums are over the keys that are real.

    Returns:
        The result, (batch, n_q, d_v).

    Raises:
        RuntimeError: shapes that do not fit.

    Cost: grows as n_q + n_k.
    Source: Katharopoulos et al. 2020.
    Lesson: 13.

    >>> linear(torch.zeros(1, 1, 2), torch.zeros(1, 4, 2), torch.eye(4)[None])
    tensor([[[0.2500, 0.2500, 0.2500, 0.2500]]])
    """
    f_q, f_k = elu(q) + 1, elu(k) + 1
    if real is not None:
        f_k = f_k * real[..., None]
    out: Tensor = f_q @ (f_k.mT @ v) / (f_q @ f_k.sum(-2, keepdim=True).mT)
    return out


class LowRank(nn.Module):
    """Mix all keys down to a few with a matrix that is trained, and look at those.

    softmax(q (E k)^T / sqrt(d_k)) (E v)

    Args:
        n_short: how many mixtures there are. No shape.
        n: how many keys are mixed, at most: for fewer, E's first columns serve.
        generator: where E is drawn from; torch's own if left out.

    Raises:
        ShapeError: a size is smaller than 1.
        TypeError: a size is not a whole number.

    Cost: n_short pairs a query.
    Source: Wang et al. 2020 (Linformer).
    Lesson: 13.

    >>> x = torch.zeros(1, 6, 2)
    >>> LowRank(3, 6)(x, x, x).shape
    torch.Size([1, 6, 2])
    """

    def __init__(
        self, n_short: int, n: int, *, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        n_short, n = size("n_short", n_short, least=1), size("n", n, least=1)
        self.E = nn.Parameter(torch.randn(n_short, n, generator=generator) * n**-0.5)

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, real: Tensor | None = None
    ) -> Tensor:
        """The result, (batch, n_q, d_v); fillers are zeros in the mixtures."""
        E = self.E[:, : k.shape[-2]]
        if real is not None:
            k, v = (x * real[..., None] for x in (k, v))
        return scaled_dot_product_attention(q, E @ k, E @ v)


class OneHead(nn.Module):
    """One head, x looking at a memory, around any attention.

    out = attend(x W_q, memory W_k, memory W_v)

    Args:
        attend: called as `attend(q, k, v)`, (batch, n, d) each; a module is trained as
            well. No shape.
        d_model: numbers of a token, and of a value.
        d_k: numbers of a query and of a key.
        generator: where the tables are drawn from; torch's own if left out.

    Raises:
        ShapeError: a size is smaller than 1.
        TypeError: a size is not a whole number.

    Cost: that of the attention, and 3 products with tables.
    Source: the names of the course.
    Lesson: 13.

    >>> from torch.nn.functional import scaled_dot_product_attention
    >>> head = OneHead(scaled_dot_product_attention, 8, 3)
    >>> head(torch.zeros(2, 1, 8), torch.zeros(2, 5, 8)).shape
    torch.Size([2, 1, 8])
    """

    def __init__(
        self,
        attend: Attend,
        d_model: int,
        d_k: int,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        d_model, d_k = size("d_model", d_model, least=1), size("d_k", d_k, least=1)

        def drawn(n_out: int) -> nn.Parameter:
            table = torch.randn(d_model, n_out, generator=generator)
            return nn.Parameter(table * d_model**-0.5)

        self.attend = attend
        self.W_q, self.W_k, self.W_v = drawn(d_k), drawn(d_k), drawn(d_model)

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        """What x finds in the memory, (batch, n, d_model)."""
        return self.attend(x @ self.W_q, memory @ self.W_k, memory @ self.W_v)
