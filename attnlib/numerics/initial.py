"""How large the first weights are, and so how large the first scores.

A scheme is a rule for the standard deviation of a weight matrix. With inputs of
variance 1, it fixes the standard deviation of the scores before the first step: near
0, attention starts out even; far above 1, it starts out one-hot.
"""

from __future__ import annotations

import math

from attnlib.shapes import size

SCHEMES = {  # attnlib.nn has the same names, but for the last two
    "xavier": "Xavier for each matrix by itself",
    "xavier_gain": "Xavier times a gain",
    "pytorch_fused": "nn.MultiheadAttention: Xavier for W_q, W_k, W_v as one matrix",
    "pytorch_separate": "the same, where keys or values have a width of their own",
    "linear": "nn.Linear's default, uniform within 1 / sqrt(fan_in)",
    "gpt2": "GPT-2's 0.02 for W_q, W_k and W_v",
    "gpt2_residual": "GPT-2's 0.02 / sqrt(2 n_layers) for W_o",
    "normal": "N(0, 1): no rule at all",
}


def init_std(
    scheme: str,
    fan_in: int,
    fan_out: int,
    n_layers: int | None = None,
    gain: float | None = None,
) -> float:
    """Give the standard deviation of a weight matrix at initialisation, by its scheme.

    xavier, pytorch_separate: sqrt(2 / (fan_in + fan_out)); xavier_gain: gain times it;
    pytorch_fused: sqrt(2 / (fan_in + 3 fan_out)); linear: 1 / sqrt(3 fan_in);
    gpt2: 0.02; gpt2_residual: 0.02 / sqrt(2 n_layers); normal: 1

    Xavier has the same standard deviation in its uniform and its normal form. Fused,
    it takes the three matrices for one with 3 fan_out outputs: each entry comes out
    smaller by sqrt(2) where fan_in is fan_out. The two of PyTorch are for W_q, W_k and
    W_v; its W_o is "linear".

    Args:
        scheme: a key of `SCHEMES`.
        fan_in: how many numbers go in, d_model.
        fan_out: how many come out of one of the matrices, n_heads * d_k.
        n_layers: how many layers the model has; gpt2_residual needs it.
        gain: the factor of xavier_gain, and only of it.

    Returns:
        The standard deviation.

    Raises:
        ValueError: there is no such scheme, its number is missing, or another one's is
            given.
        TypeError: a size is not a whole number.
        ShapeError: a size is smaller than 1.

    Cost: none worth counting.
    Source: Glorot and Bengio 2010, equation 12; Radford et al. 2018, section 4.1, and
        2019, section 2.3.
    Lesson: 09.

    >>> init_std("pytorch_fused", 512, 512)
    0.03125
    >>> round(init_std("xavier", 512, 512) / init_std("pytorch_fused", 512, 512), 4)
    1.4142
    """
    if scheme not in SCHEMES:
        raise ValueError(
            f"there is no initialisation named {scheme!r}; there are "
            f"{', '.join(SCHEMES)}."
        )
    fan_in = size("fan_in", fan_in, least=1)
    fan_out = size("fan_out", fan_out, least=1)
    if gain is not None and scheme != "xavier_gain":
        raise ValueError(
            f"gain={gain} belongs to xavier_gain, but the scheme is {scheme}."
        )
    if n_layers is not None:
        n_layers = size("n_layers", n_layers, least=1)
        if not scheme.startswith("gpt2"):
            raise ValueError(
                f"n_layers={n_layers} belongs to gpt2_residual, but the scheme is "
                f"{scheme}."
            )
    match scheme:
        case "xavier" | "pytorch_separate":
            return math.sqrt(2 / (fan_in + fan_out))
        case "xavier_gain":
            if gain is None:
                raise ValueError("xavier_gain needs gain, but it was left out.")
            return abs(gain) * math.sqrt(2 / (fan_in + fan_out))
        case "pytorch_fused":
            return math.sqrt(2 / (fan_in + 3 * fan_out))
        case "linear":
            return 1 / math.sqrt(3 * fan_in)
        case "gpt2":
            return 0.02
        case "gpt2_residual":
            if n_layers is None:
                raise ValueError("gpt2_residual needs n_layers, but it was left out.")
            return 0.02 / math.sqrt(2 * n_layers)
    return 1.0  # normal


def logit_std(
    std: float, d_model: int, d_k: int, *, scale: float | None = None
) -> float:
    """Say how far the scores spread at initialisation, for two unrelated tokens.

    std(scores) = scale sqrt(d_k) d_model std^2, and so d_model std^2 with the usual
    scale of 1 / sqrt(d_k)

    Tokens of variance 1 are projected by W_q and W_k, whose entries have the standard
    deviation `std`: a query has the variance d_model std^2, and so has a key.

    Args:
        std: the standard deviation of the entries of W_q and of W_k.
        d_model: how many numbers a token has.
        d_k: how many numbers a query has.
        scale: factor on the raw scores; 1 / sqrt(d_k) if left out.

    Returns:
        The standard deviation of the scores, before softmax.

    Raises:
        ValueError: std is negative.
        TypeError: a size is not a whole number.
        ShapeError: a size is smaller than 1.

    Cost: none worth counting.
    Source: Vaswani et al. 2017, footnote 4, carried back to the weights.
    Lesson: 09.

    >>> for scheme in ("linear", "xavier", "pytorch_fused", "gpt2", "normal"):
    ...     print(scheme, round(logit_std(init_std(scheme, 512, 512), 512, 64), 3))
    linear 0.333
    xavier 1.0
    pytorch_fused 0.5
    gpt2 0.205
    normal 512.0
    """
    d_model = size("d_model", d_model, least=1)
    d_k = size("d_k", d_k, least=1)
    if std < 0:
        raise ValueError(f"std must be at least 0, but it is {std}.")
    if scale is None:
        scale = 1 / math.sqrt(d_k)
    return abs(scale) * math.sqrt(d_k) * d_model * std**2
