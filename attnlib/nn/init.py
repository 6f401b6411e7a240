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

from typing import TYPE_CHECKING

import torch
from torch import nn

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


def _as_linear(part: nn.Linear, generator: torch.Generator | None) -> None:
    """What nn.Linear does to its weight: uniform within 1 / sqrt(fan_in)."""
    _uniform(part.weight, part.in_features**-0.5, generator)


def _uniform(
    tensor: torch.Tensor, bound: float, generator: torch.Generator | None
) -> None:
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
