"""What keeps scores from growing in training, and two pieces of advice that do not.

`softcap` bends the scores, `QKNorm` takes the length out of queries and keys, and
`SigmaLinear` holds the norm of a weight matrix. The first two go into
`MultiHeadAttention` as `on_scores` and `qk_norm`; `hold_norms` puts the third in the
place of its four matrices.

`article_clip` and `article_noise` are what two of the articles advise instead. They
are here to be measured.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from attnlib.nn.shapes import check_tensor, check_tensors, wide
from attnlib.nn.sigma import SigmaLinear, hold_norms

__all__ = [
    "QKNorm",
    "SigmaLinear",
    "Softcap",
    "article_clip",
    "article_noise",
    "hold_norms",
    "softcap",
]


def softcap(scores: Tensor, cap: float) -> Tensor:
    """Bend scores so that none leaves the range from -cap to cap.

    cap tanh(scores / cap)

    Order and gradient are kept: the slope is 1 - tanh^2, small far out and never 0
    before rounding. Cap first, then mask, as `on_scores` does: -inf becomes -cap.

    Args:
        scores: scaled and not yet masked, (..., n_q, n_k).
        cap: the largest size of a score; Gemma 2 has 50.

    Returns:
        The capped scores, the same shape as `scores`.

    Raises:
        TypeError: scores is no floating tensor.
        ValueError: cap is not larger than 0 and finite.

    Cost: 2 FLOPs and 1 tanh a score.
    Source: Gemma Team 2024 (Gemma 2), section 2; Bello et al. 2016.
    Lesson: 09.

    >>> [round(x, 2) for x in softcap(torch.tensor([0.5, 60.0, 55.0]), 50.0).tolist()]
    [0.5, 41.68, 40.02]
    """
    check_tensor("scores", scores)
    return _positive("cap", cap) * torch.tanh(scores / cap)


class Softcap(nn.Module):
    """`softcap` as a module, to be handed over as `on_scores`.

    >>> Softcap(50.0)(torch.tensor([60.0])).item() < 42
    True
    """

    def __init__(self, cap: float) -> None:
        super().__init__()
        self.cap = _positive("cap", cap)

    def forward(self, scores: Tensor) -> Tensor:
        return softcap(scores, self.cap)

    def extra_repr(self) -> str:
        return f"cap={self.cap}"


class QKNorm(nn.Module):
    """Queries and keys of length 1 in each head, and a learned number instead.

    scores = scale (q / |q|) (k / |k|)^T

    No score is larger than the scale, however large W_q and W_k grow. The scale stands
    in the place of 1 / sqrt(d_k). A vector of zeros stays zeros. Many later models
    norm with RMSNorm and a gain for each of the d_k numbers; the idea is the same.

    Args:
        scale: the first value of the number that is learned.
        device, dtype: of that number.

    Source: Henry et al. 2020.

    >>> norm = QKNorm(10.0)
    >>> q, k = torch.tensor([[3.0, 4.0]]), torch.tensor([[30.0, 40.0], [4.0, 3.0]])
    >>> [round(x, 2) for x in norm(q, k)[0].tolist()]
    [10.0, 9.6]
    """

    def __init__(
        self,
        scale: float,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        first = torch.tensor(float(scale), device=device, dtype=dtype)
        self.scale = nn.Parameter(first)

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        """Return the scores, (..., n_q, n_k), of q (..., n_q, d_k) and k."""
        check_tensors({"q": (q, "n_q d_k"), "k": (k, "n_k d_k")})
        return self.query(q) @ self.key(k).transpose(-1, -2)

    def query(self, q: Tensor) -> Tensor:
        """Return queries of a length of `scale`."""
        return _unit(q) * self.scale.to(q.dtype)

    def key(self, k: Tensor) -> Tensor:
        """Return keys of length 1."""
        return _unit(k)


def article_clip(scores: Tensor, bound: float = 50.0) -> Tensor:
    """Clip scores to [-50, 50], as one of the articles advises against NaN.

    min(max(scores, -bound), bound)

    Softmax subtracts the largest score, so that no score overflows it, clipped or not.
    What the clipping does: scores beyond the bound become equal and lose their
    gradient, and a hidden key, clipped after the mask, has a score of -50 again.

    Args:
        scores: (..., n_q, n_k).
        bound: the largest size of a score.

    Returns:
        The clipped scores, the same shape as `scores`.

    Raises:
        TypeError: scores is no floating tensor.
        ValueError: bound is not larger than 0 and finite.

    Cost: 2 comparisons a score.
    Source: what to avoid; `softcap` is the tool.
    Lesson: 09.

    >>> torch.softmax(article_clip(torch.tensor([60.0, 55.0])), -1).tolist()
    [0.5, 0.5]
    """
    check_tensor("scores", scores)
    bound = _positive("bound", bound)
    return scores.clamp(-bound, bound)


def article_noise(
    scores: Tensor, std: float = 0.01, *, generator: torch.Generator | None = None
) -> Tensor:
    """Add noise to the scores, as one of the articles advises for the first steps.

    scores + std N(0, 1)

    A weight w changes by about std of itself, so 1 % at most; a weight of 1 stays 1,
    NaN stays NaN, and -inf stays -inf. As in the article, nothing switches it off
    after training.

    Args:
        scores: scaled, (..., n_q, n_k).
        std: the standard deviation of the noise.
        generator: where the noise is drawn from; torch's own if left out.

    Returns:
        The scores with noise, the same shape as `scores`.

    Raises:
        TypeError: scores is no floating tensor.

    Cost: one draw a score.
    Source: what to avoid.
    Lesson: 09.

    >>> scores = torch.tensor([0.0, -torch.inf])
    >>> torch.softmax(article_noise(scores), -1).tolist()
    [1.0, 0.0]
    """
    check_tensor("scores", scores)
    noise = torch.randn(
        scores.shape, generator=generator, dtype=scores.dtype, device=scores.device
    )
    return scores + std * noise


def _positive(name: str, value: float) -> float:
    if not 0 < value < math.inf:
        raise ValueError(f"{name} must be larger than 0 and finite, but it is {value}.")
    return float(value)


def _unit(vectors: Tensor) -> Tensor:
    """Vectors of length 1; zeros stay zeros, with a gradient that stays finite."""
    if vectors.shape[-1] == 0:
        return vectors
    exact = wide(vectors)
    # Squares overflow long before the numbers do; those of numbers up to 1 never.
    largest = exact.detach().abs().amax(-1, keepdim=True)
    even = exact / largest.masked_fill(largest == 0, 1.0)
    length = torch.linalg.vector_norm(even, dim=-1, keepdim=True)
    unit: Tensor = even / length.masked_fill(length == 0, 1.0)
    return unit.to(vectors.dtype)
