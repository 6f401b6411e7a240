"""Activations: what the forward pass keeps for the gradients, and checkpointing.

A product keeps both its factors, a softmax its result. So the usual attention keeps the
weights of every head, and that is what grows with n^2.
"""

from __future__ import annotations

from dataclasses import dataclass

from attnlib.cost.sizes import head_sizes
from attnlib.shapes import size


@dataclass(frozen=True)
class Saved:
    """Bytes that one attention keeps for the backward pass, beside its W."""

    x: int  #        the tokens: W_q, W_k and W_v share them
    q: int
    k: int
    v: int
    weights: int  #  0 if they are recomputed
    flags: int  #    truth values: masks, empty rows, what was dropped
    mixed: int  #    what W_o reads
    extra: int  #    the log-sum-exp

    @property
    def total(self) -> int:
        """All of them."""
        qkv = self.q + self.k + self.v
        return self.x + qkv + self.weights + self.flags + self.mixed + self.extra

    @property
    def linear(self) -> int:
        """What grows with n, and not with n^2."""
        return self.x + self.q + self.k + self.v + self.mixed + self.extra


def saved_activations(
    n: int,
    d_model: int,
    n_heads: int,
    *,
    n_kv_heads: int | None = None,
    d_k: int | None = None,
    d_v: int | None = None,
    batch: int = 1,
    itemsize: int = 4,
    causal: bool = False,
    mask_size: int = 0,
    dropout: bool = False,
    fused: bool = False,
) -> Saved:
    """Count what `attnlib.nn.MultiHeadAttention` keeps for its gradients.

    batch n_heads n^2 itemsize for the weights, and 5 batch n d_model itemsize

    The weights are there twice where softmax is not the last to touch them: with a mask
    (empty rows are set to 0) and with dropout. A fused kernel (flash attention, torch's
    SDPA) keeps q, k, v, its result and one number a query instead.

    Args:
        n: how many tokens.
        d_model: how many numbers a token has.
        n_heads: how many query heads.
        n_kv_heads: how many key and value heads; n_heads if left out.
        d_k: numbers in a query or key of one head; d_model / n_heads if left out.
        d_v: numbers in a value of one head; d_k if left out.
        batch: how many sequences.
        itemsize: bytes a number takes.
        causal: whether it is causal, a flag for each pair.
        mask_size: how many truth values a mask has that is handed over; 0 for none.
        dropout: whether weights are dropped, a flag for each weight.
        fused: what a fused kernel keeps, in place of our steps.

    Returns:
        Bytes, part by part; there is no array, hence no shape.

    Raises:
        ShapeError: sizes that do not fit, named one by one.
        TypeError: a size is not a whole number.

    Cost: none worth counting.
    Source: counted on what torch saves; Korthikanti et al. 2022 for a whole layer.
    Lesson: 11.

    >>> usual = saved_activations(1024, 512, 8)
    >>> fused = saved_activations(1024, 512, 8, fused=True)
    >>> usual.total / 2**20, fused.total / 2**20
    (42.0, 10.03125)
    """
    n, batch, itemsize = size("n", n), size("batch", batch), size("itemsize", itemsize)
    mask_size = size("mask_size", mask_size)
    h = head_sizes(d_model, n_heads, n_kv_heads, d_k, d_v)
    tokens, rows = batch * n * itemsize, batch * h.n_heads * n
    pairs = rows * n
    flags = mask_size + (rows if mask_size else 0) + dropout * pairs
    flags += n * n if causal and n > 1 else 0  # one query alone sees every key
    copies = 2 if mask_size or dropout else 1
    return Saved(
        x=tokens * h.d_model,
        q=tokens * h.n_heads * h.d_k,
        k=tokens * h.n_kv_heads * h.d_k,
        v=tokens * h.n_kv_heads * h.d_v,
        weights=0 if fused else copies * pairs * itemsize,
        flags=0 if fused else flags,
        mixed=tokens * h.n_heads * h.d_v,
        extra=rows * max(4, itemsize) if fused else 0,
    )


def score_bytes(
    n_q: int,
    n_k: int | None = None,
    *,
    n_heads: int = 1,
    batch: int = 1,
    itemsize: int = 2,
) -> int:
    """Count the bytes of one matrix of scores, or of weights.

    batch n_heads n_q n_k itemsize

    Args:
        n_q: how many queries.
        n_k: how many keys; n_q if left out.
        n_heads: how many query heads.
        batch: how many sequences.
        itemsize: bytes a number takes; 2 for float16 and bfloat16.

    Returns:
        Bytes; there is no array, hence no shape.

    Raises:
        ShapeError: a size is negative.
        TypeError: a size is not a whole number.

    Cost: none worth counting.
    Source: Vaswani et al. 2017, equation 1.
    Lesson: 11.

    >>> score_bytes(4096) // 2**20, score_bytes(4096, n_heads=32) // 2**20
    (32, 1024)
    """
    n_q = size("n_q", n_q)
    n_k = n_q if n_k is None else size("n_k", n_k)
    many = size("batch", batch) * size("n_heads", n_heads)
    return many * n_q * n_k * size("itemsize", itemsize)


@dataclass(frozen=True)
class Checkpointing:
    """What recomputing saves in a stack of layers, and what it costs."""

    plain: int  #        bytes kept without it
    kept: int  #         bytes kept with it: what goes into each segment
    peak: int  #         kept, and all that one segment needs while it is recomputed
    flops_ratio: float  # FLOPs of a step with it, over those without


def checkpointing(
    n_layers: int, layer_bytes: int, input_bytes: int, *, segment: int = 1
) -> Checkpointing:
    """Say what it saves to keep only what goes into each segment of layers.

    plain = n_layers layer; kept = ceil(n_layers / segment) input;
    peak = kept + segment layer; FLOPs (1 + 1 + 2) / (1 + 2) = 4/3

    4/3 holds where the second run is a whole one, as with `use_reentrant=True`. With
    False PyTorch stops before the last product of a segment: a little less.

    Args:
        n_layers: how many layers.
        layer_bytes: what one layer keeps for its gradients, its input included.
        input_bytes: what goes into a layer.
        segment: how many layers are recomputed together.

    Returns:
        Bytes before and after, and the ratio of FLOPs; there is no array, hence no
        shape.

    Raises:
        ShapeError: a size is negative, or the segment less than 1.
        TypeError: a size is not a whole number.

    Cost: none worth counting.
    Source: Chen et al. 2016, section 4.
    Lesson: 11.

    >>> checkpointing(100, 20, 20, segment=10)
    Checkpointing(plain=2000, kept=200, peak=400, flops_ratio=1.3333333333333333)
    """
    n_layers = size("n_layers", n_layers)
    layer_bytes = size("layer_bytes", layer_bytes)
    segment = min(size("segment", segment, least=1), max(1, n_layers))
    kept = -(-n_layers // segment) * size("input_bytes", input_bytes)
    return Checkpointing(
        plain=n_layers * layer_bytes,
        kept=kept,
        peak=kept + min(segment, n_layers) * layer_bytes,
        flops_ratio=4 / 3,
    )


def best_segment(n_layers: int, layer_bytes: int, input_bytes: int) -> int:
    """Find how many layers a segment should have for the lowest peak.

    near sqrt(n_layers input / layer): with layer = input, sqrt(n_layers)

    Args:
        n_layers: how many layers.
        layer_bytes: what one layer keeps for its gradients.
        input_bytes: what goes into a layer.

    Returns:
        The number of layers; there is no array, hence no shape.

    Raises:
        ShapeError: a size is less than 1.
        TypeError: a size is not a whole number.

    Cost: n_layers candidates are tried.
    Source: Chen et al. 2016, section 4.2.
    Lesson: 11.

    >>> best_segment(100, 20, 20), best_segment(100, 2000, 20)
    (10, 1)
    """
    n_layers = size("n_layers", n_layers, least=1)
    layer_bytes = size("layer_bytes", layer_bytes, least=1)
    input_bytes = size("input_bytes", input_bytes, least=1)
    peaks = {
        s: checkpointing(n_layers, layer_bytes, input_bytes, segment=s).peak
        for s in range(1, n_layers + 1)
    }
    return min(peaks, key=lambda s: peaks[s])
