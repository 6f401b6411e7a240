"""Parameters: how many numbers a model learns, part by part."""

from __future__ import annotations

from dataclasses import dataclass

from attnlib.cost.sizes import head_sizes
from attnlib.shapes import size


@dataclass(frozen=True, kw_only=True)
class ModelSizes:
    """What has to be known of a model to count its parameters."""

    n_tokens: int  #             how many different tokens there are
    d_model: int
    n_heads: int
    d_mlp: int
    n_layers: int  #             of self-attention and MLP
    n_cross_layers: int = 0  #   with a second attention before the MLP: a decoder's
    n_kv_heads: int | None = None
    d_k: int | None = None
    d_v: int | None = None
    n_positions: int = 0  #      learned positions
    n_segments: int = 0  #       BERT's two sentences
    gated: bool = False  #       a third matrix in the MLP
    bias: bool = True
    norm: int = (
        2  #             numbers a norm has for a feature: 2 LayerNorm, 1 RMSNorm
    )
    n_outer_norms: int = 1  #    before the first or after the last layer
    tied: bool = True  #         the output reads the table of the tokens backwards
    pooler: bool = False  #      BERT's last matrix


@dataclass(frozen=True)
class Parameters:
    """How many parameters each part of a model has."""

    embedding: int  # tokens, positions, segments, and the output if it is not tied
    attention: int
    mlp: int
    norms: int
    pooler: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.embedding + self.attention + self.mlp + self.norms + self.pooler


def model_parameters(sizes: ModelSizes) -> Parameters:
    """Count the parameters of a Transformer.

    attention: d_model (n_heads + n_kv_heads) (d_k + d_v) a layer, and biases;
    mlp: 2 d_model d_mlp, or 3 with a gate, and biases

    Args:
        sizes: of the model.

    Returns:
        The parts; there is no array, hence no shape.

    Raises:
        ShapeError: sizes that do not fit, named one by one.
        TypeError: a size is not a whole number.

    Cost: none worth counting.
    Source: Vaswani et al. 2017, section 3; Devlin et al. 2019; Radford et al. 2019.
    Lesson: 11.

    >>> gpt2 = ModelSizes(n_tokens=50257, d_model=768, n_heads=12, d_mlp=3072,
    ...                   n_layers=12, n_positions=1024)
    >>> model_parameters(gpt2).attention, model_parameters(gpt2).total
    (28348416, 124439808)
    """
    h = head_sizes(sizes.d_model, sizes.n_heads, sizes.n_kv_heads, sizes.d_k, sizes.d_v)
    d, d_mlp = h.d_model, size("d_mlp", sizes.d_mlp)
    n_layers = size("n_layers", sizes.n_layers)
    n_cross = size("n_cross_layers", sizes.n_cross_layers)
    table = size("n_tokens", sizes.n_tokens) * d
    rows = sizes.n_positions + sizes.n_segments
    attention = d * (h.n_heads + h.n_kv_heads) * (h.d_k + h.d_v)
    mlp = (3 if sizes.gated else 2) * d * d_mlp
    if sizes.bias:
        attention += h.n_heads * h.d_k + h.n_kv_heads * (h.d_k + h.d_v) + d
        mlp += (2 if sizes.gated else 1) * d_mlp + d
    n_norms = 2 * n_layers + 3 * n_cross + sizes.n_outer_norms
    return Parameters(
        embedding=table + rows * d + (0 if sizes.tied else table),
        attention=(n_layers + 2 * n_cross) * attention,
        mlp=(n_layers + n_cross) * mlp,
        norms=n_norms * sizes.norm * d,
        pooler=d * d + d if sizes.pooler else 0,
    )
