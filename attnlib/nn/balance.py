"""How loud each head is, measured where there are heads, for autograd to follow.

Before `W_o` a head has an axis of its own; after it, `out[:, i]` is a token. The NumPy
side, `attnlib.head_diagnostics`, watches; what is here can be added to a loss as well.
"""

from __future__ import annotations

from torch import Tensor

from attnlib.nn.multihead import MultiHeadAttention
from attnlib.nn.shapes import check_tensor, check_tensors, counted_rows, wide
from attnlib.shapes import ShapeError, size


def head_loudness(mixed: Tensor, rows: Tensor | None = None) -> Tensor:
    """Measure how loud each head is: the root mean square of what it mixes.

    loudness_h = root of the mean over texts, tokens and features of mixed_h^2

    A mean, not a sum: it grows neither with the number of texts nor with their length.
    A silent head has 0, and a gradient of 0 with it.

    Args:
        mixed: the heads' results before W_o, (..., n_heads, n_q, d_v).
        rows: boolean, broadcastable to (..., n_q), without an axis of heads: which
            tokens count. All of them, if left out.

    Returns:
        The loudness, (n_heads,).

    Raises:
        ShapeError: mixed has fewer than three axes, one of its axes is empty, or rows
            do not fit.
        TypeError: mixed is not a floating tensor, or rows are not boolean.

    Cost: 2 FLOPs a number.
    Source: the names of the course.
    Lesson: 14.

    >>> import torch
    >>> head_loudness(torch.tensor([[[3.0, 3.0]], [[0.0, 0.0]]])).tolist()
    [3.0, 0.0]
    """
    sizes = check_tensors({"mixed": (mixed, "n_heads n_q d_v")})
    for name in sizes:
        size(name, sizes[name], least=1)
    squares = (wide(mixed) ** 2).mean(-1).transpose(-1, -2)  # (..., n_q, n_heads)
    counted = counted_rows(rows, squares[..., 0], "n_q")
    squares = squares.masked_fill(~counted[..., None], 0.0)
    mean = squares.reshape(-1, sizes["n_heads"]).sum(0) / counted.sum().clamp(min=1)
    # The root has no slope at 0: a silent head would turn all gradients into NaN.
    silent = mean == 0
    loud = mean.masked_fill(silent, 1.0).sqrt().masked_fill(silent, 0.0)
    return loud.to(mixed.dtype)


def written_loudness(
    attention: MultiHeadAttention, mixed: Tensor, rows: Tensor | None = None
) -> Tensor:
    """Measure how loudly each head writes: what it mixes, after its part of W_o.

    written_h = head_loudness of mixed_h W_o[rows of head h]

    out is the sum of what the heads write, and the bias. Ten times quieter in W_v and
    ten times louder in W_o is the same head: this number does not change, that of
    `head_loudness` does.

    Args:
        attention: whose W_o it is. No shape.
        mixed: its heads' results before W_o, (..., n_heads, n_q, d_v).
        rows: boolean, broadcastable to (..., n_q): which tokens count.

    Returns:
        The loudness, (n_heads,).

    Raises:
        ShapeError: mixed does not fit the attention, or rows do not fit mixed.
        TypeError: mixed is not a floating tensor, or rows are not boolean.

    Cost: that of W_o; n_heads times its result is held.
    Source: the sum over heads of Elhage et al. 2021, section "attention heads are
        independent and additive".
    Lesson: 14.

    >>> import torch
    >>> attention = MultiHeadAttention(6, n_heads=3, d_v=4)
    >>> written_loudness(attention, torch.zeros(2, 3, 5, 4)).tolist()
    [0.0, 0.0, 0.0]
    """
    n_heads, d_v = attention.n_heads, attention.d_v
    check_tensors({"mixed": (mixed, "n_heads n_q d_v")}, n_heads=n_heads, d_v=d_v)
    W_o = attention.W_o.weight.T.reshape(n_heads, d_v, attention.d_model)
    return head_loudness(mixed @ W_o.to(mixed.dtype), rows)


def imbalance(loudness: Tensor) -> Tensor:
    """Say in one number how unequally loud the heads are; fit to be added to a loss.

    (std / mean)^2 over the heads, the std with n_heads below the bar

    It is the same for a model whose heads are all ten times louder, and for a batch
    twice as large: a factor in front of it means the same in every model. 0 says
    equally loud, and one loud head among silent ones gives n_heads - 1.

    Args:
        loudness: from `head_loudness` or `written_loudness`, (n_heads,).

    Returns:
        One number, at least 0; 0 where all heads are silent.

    Raises:
        ShapeError: loudness has another number of axes than one, or no heads.
        TypeError: loudness is not a floating tensor.

    Cost: none to speak of.
    Source: the squared coefficient of variation, Shazeer et al. 2017, section 4.
    Lesson: 14.

    >>> import torch
    >>> imbalance(torch.tensor([2.0, 2.0])).item()
    0.0
    >>> imbalance(torch.tensor([1.0, 1.0, 0.0, 0.0])).item()
    1.0
    """
    check_tensor("loudness", loudness)
    if loudness.ndim != 1 or not len(loudness):
        raise ShapeError(
            "loudness must be (n_heads,), one number a head, but its shape is "
            f"{tuple(loudness.shape)}."
        )
    mean = loudness.mean()
    spread: Tensor = ((loudness - mean) ** 2).mean()
    return spread / (mean**2).masked_fill(mean == 0, 1.0)
