"""The first numbers in W_q, W_k, W_v and W_o, by the names of those who chose them.

They decide how large the scores are before anything is learned, and so how sharp the
first weights. fan_in is the width of what a matrix reads, fan_out of what it writes.

==================  =====================================  ========================
scheme              W_q, W_k, W_v: standard deviation      W_o
==================  =====================================  ========================
xavier              sqrt(2 / (fan_in + fan_out))           the same
xavier_gain         gain sqrt(2 / (fan_in + fan_out))      the same
pytorch_fused       the same, fan_out of all three added   sqrt(1 / (3 fan_in))
pytorch_separate    sqrt(2 / (fan_in + fan_out))           sqrt(1 / (3 fan_in))
linear              sqrt(1 / (3 fan_in))                   the same
gpt2                0.02                                   0.02 / sqrt(2 n_layers)
==================  =====================================  ========================

All are uniform but gpt2, which is normal. Biases start at 0, except in `linear`, where
they are drawn like the weights. `nn.MultiheadAttention` keeps W_q, W_k, W_v in one
matrix and so takes their fan_out three times: it starts smaller by sqrt(2) than the
formula it cites.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from attnlib.shapes import size

if TYPE_CHECKING:
    from attnlib.nn.multihead import MultiHeadAttention

SCHEMES = (
    "xavier",
    "xavier_gain",
    "pytorch_fused",
    "pytorch_separate",
    "linear",
    "gpt2",
)


@dataclass(frozen=True)
class FirstWeights:
    """How attention starts, before anything is learned."""

    score_std: float  # of the scaled scores
    entropy: float  #   of the rows of weights, in parts of ln n: 1 is even, 0 one-hot
    largest: float  #   weight of a row, on average
    finite: float  #    the part of the rows without NaN; the others are left out above
    gradient: float  #  that of W_q in parts of that of W_v


@torch.no_grad()
def initialise(
    attention: MultiHeadAttention,
    scheme: str,
    *,
    gain: float | None = None,
    n_layers: int | None = None,
    generator: torch.Generator | None = None,
) -> None:
    """Draw the weights of an attention module anew, by a scheme with a name.

    std = gain sqrt(2 / (fan_in + fan_out)) for Xavier; the module lists the others.

    Args:
        attention: the module; its W_q, W_k, W_v, W_o are overwritten. No shape.
        scheme: one of xavier, xavier_gain, pytorch_fused, pytorch_separate, linear,
            gpt2.
        gain: the factor of xavier_gain, and only of it.
        n_layers: how many layers the model has, for gpt2, and only for it.
        generator: where the numbers are drawn from; torch's own if left out.

    Returns:
        None; the shapes of the weights stay.

    Raises:
        ValueError: there is no such scheme, its number is missing, another one's is
            given, or pytorch_fused meets inputs of several widths.

    Cost: one draw a weight.
    Source: Glorot and Bengio 2010, equation 16; Radford et al. 2019 (GPT-2), section
        2.3; torch.nn.MultiheadAttention and torch.nn.Linear.
    Lesson: 09.

    >>> from attnlib.nn import MultiHeadAttention
    >>> attention = MultiHeadAttention(512, 8)
    >>> initialise(attention, "pytorch_fused")
    >>> round(attention.W_q.weight.abs().max().item(), 3)
    0.054
    """
    _check(scheme, gain, n_layers)
    q_k_v = (attention.W_q, attention.W_k, attention.W_v)
    everything = (*q_k_v, attention.W_o)
    if scheme == "pytorch_fused":
        _check_fused(q_k_v)
    for part in everything:
        if part.bias is not None:
            nn.init.zeros_(part.bias)
    if scheme in ("xavier", "xavier_gain"):
        for part in everything:
            factor = 1.0 if gain is None else gain
            nn.init.xavier_uniform_(part.weight, factor, generator)
    elif scheme == "pytorch_fused":
        fans = attention.d_model + sum(part.out_features for part in q_k_v)
        for part in q_k_v:
            _uniform(part.weight, (6 / fans) ** 0.5, generator)
        _as_linear(attention.W_o, generator)
    elif scheme == "pytorch_separate":
        for part in q_k_v:
            nn.init.xavier_uniform_(part.weight, 1.0, generator)
        _as_linear(attention.W_o, generator)
    elif scheme == "linear":
        for part in everything:
            _as_linear(part, generator)
            if part.bias is not None:
                _uniform(part.bias, part.in_features**-0.5, generator)
    elif n_layers is not None:  # gpt2
        for part in q_k_v:
            nn.init.normal_(part.weight, 0.0, 0.02, generator)
        # Each layer adds to the residual stream twice: attention, then the MLP.
        std = 0.02 / (2 * n_layers) ** 0.5
        nn.init.normal_(attention.W_o.weight, 0.0, std, generator)


def first_weights(
    attention: MultiHeadAttention,
    n: int = 64,
    *,
    dtype: torch.dtype = torch.float64,
    generator: torch.Generator | None = None,
) -> FirstWeights:
    """Measure how a module spreads its attention over n random tokens.

    entropy = mean of -sum(w ln w) / ln n, for tokens and a gradient drawn from N(0, 1)

    The module is left alone: a copy of it computes, in the given type, with all its
    rounding; the results are summed up in float64.

    Args:
        attention: a module for self-attention. No shape.
        n: how many tokens; at least 2.
        dtype: torch.float64, float32, bfloat16 or float16.
        generator: where the tokens are drawn from; torch's own if left out.

    Returns:
        score_std, entropy, largest, finite and gradient.

    Raises:
        TypeError: n is not a whole number, or dtype is not a floating type.
        ShapeError: n is smaller than 2, or the module needs a memory.

    Cost: a forward and a backward pass over n tokens.
    Source: the names of the course.
    Lesson: 09.

    >>> from attnlib.nn import MultiHeadAttention
    >>> generator = torch.Generator().manual_seed(0)
    >>> layer = MultiHeadAttention(
    ...     512, 8, init="gpt2", n_layers=12, generator=generator)
    >>> start = first_weights(layer, generator=generator)
    >>> round(start.score_std, 1), start.entropy > 0.98
    (0.2, True)
    """
    n = size("n", n, least=2)
    if not dtype.is_floating_point:
        raise TypeError(f"dtype must be a floating type, but it is {dtype}.")
    layer = copy.deepcopy(attention).to(dtype).eval()
    where = layer.W_q.weight.device

    def draw() -> Tensor:  # in float64, so that every type gets the same tokens
        shape = (n, attention.d_model)
        drawn = torch.randn(shape, generator=generator, dtype=torch.float64)
        return drawn.to(where, dtype)

    stages = layer(draw(), return_stages=True)
    weights = stages.weights.detach().double()
    finite = weights.isfinite().all(-1)
    rows = weights[finite]
    stages.out.backward(draw())
    norms = []
    for part in (layer.W_q, layer.W_v):
        gradient = part.weight.grad
        assert gradient is not None  # out depends on both
        norms.append(torch.linalg.vector_norm(gradient.double()).item())
    return FirstWeights(
        score_std=stages.scores.detach().double().std().item(),
        entropy=torch.special.entr(rows).sum(-1).mean().item() / math.log(n),
        largest=rows.amax(-1).mean().item(),
        finite=finite.double().mean().item(),
        gradient=norms[0] / norms[1] if norms[1] else math.nan,
    )


def _as_linear(part: nn.Linear, generator: torch.Generator | None) -> None:
    """What nn.Linear does to its weight: uniform within 1 / sqrt(fan_in)."""
    _uniform(part.weight, part.in_features**-0.5, generator)


def _uniform(tensor: Tensor, bound: float, generator: torch.Generator | None) -> None:
    nn.init.uniform_(tensor, -bound, bound, generator)


def _check(scheme: str, gain: float | None, n_layers: int | None) -> None:
    if scheme not in SCHEMES:
        raise ValueError(
            f"there is no initialisation named {scheme!r}; there are "
            f"{', '.join(SCHEMES)}."
        )
    numbers = {"xavier_gain": ("gain", gain), "gpt2": ("n_layers", n_layers)}
    for owner, (name, number) in numbers.items():
        if scheme == owner and number is None:
            raise ValueError(f"{scheme} needs {name}, but it was left out.")
        if scheme != owner and number is not None:
            raise ValueError(
                f"{name}={number} belongs to {owner}, but the scheme is {scheme}."
            )
    if n_layers is not None and n_layers < 1:
        raise ValueError(f"n_layers must be at least 1, but it is {n_layers}.")


def _check_fused(q_k_v: tuple[nn.Linear, ...]) -> None:
    """One matrix cannot hold three that read inputs of several widths."""
    widths = [part.in_features for part in q_k_v]
    if len(set(widths)) > 1:
        raise ValueError(
            "pytorch_fused needs one width for what W_q, W_k and W_v read, but they "
            f"read {widths}; there PyTorch does what is called pytorch_separate here."
        )
