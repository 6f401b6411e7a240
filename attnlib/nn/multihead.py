"""Multi-head attention as a PyTorch module, self and cross, with few or many KV heads.

The four matrices are `nn.Linear`, so that whatever works on a Linear works here. They
keep their weight transposed: `attention.W_q.weight.T` is the W_q of `multi_head`.
Inputs are always (..., n, d_model), the batch first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy.typing as npt
import torch
from torch import Tensor, nn

from attnlib.nn.attention import OnScores, check_dropout, scaled_dot_product
from attnlib.nn.cache import KVCache
from attnlib.nn.convert import arguments, copy_weights
from attnlib.nn.heads import merge_heads, split_heads
from attnlib.nn.init import initialise
from attnlib.nn.inputs import check_inputs
from attnlib.nn.shapes import unchanged
from attnlib.nn.stable import QKNorm
from attnlib.shapes import ShapeError, size

Rotate = Callable[[Tensor, Tensor], Tensor]  # (x, positions) -> x, the same shape


@dataclass(frozen=True)
class MultiHead:
    """All stages of one call of `MultiHeadAttention`, in the order of the formula."""

    q: Tensor  #          (..., n_heads, n_q, d_k)  rotated, if positions rotate
    k: Tensor  #          (..., n_kv_heads, n_k, d_k)  with those of the cache
    v: Tensor  #          (..., n_kv_heads, n_k, d_v)
    raw_scores: Tensor  # (..., n_heads, n_q, n_k)
    scores: Tensor  #     (..., n_heads, n_q, n_k)
    weights: Tensor  #    (..., n_heads, n_q, n_k)  of each head, before dropout
    mixed: Tensor  #      (..., n_heads, n_q, d_v)
    out: Tensor  #        (..., n_q, d_model)


class MultiHeadAttention(nn.Module):
    """Several heads of attention, and W_o to mix their results.

    out = merge(softmax(q_h k_h^T / sqrt(d_k)) v_h for each head h) W_o + b_o

    Args:
        d_model: how many numbers a token of x has, going in and coming out.
        n_heads: how many query heads.
        n_kv_heads: how many key and value heads; n_heads if left out. Neighbouring
            query heads share one: grouped-query attention, multi-query with one.
        d_k: numbers in a query or key of one head; d_model / n_heads if left out.
        d_v: numbers in a value of one head; d_k if left out.
        d_memory: how many numbers a token of memory has; d_model if left out.
        d_values: the same for `values`; d_memory if left out.
        bias: whether each of the four products adds a vector.
        dropout: the part of the weights that is dropped in training, never in eval.
        rotate: a function of (q or k, positions) that puts positions into both, as
            RoPE does. Gets (..., n, d_k) and the positions, (n,) counted from the
            start of the text, or whatever forward is given.
        qk_norm: the first value of the number that scales scores of normed queries and
            keys, see `attnlib.nn.stable.QKNorm`; left out, they are not normed.
        on_scores: a function of the scaled scores, before bias and mask, such as
            `attnlib.nn.stable.Softcap`.
        init: the name of an initialisation, see `attnlib.nn.init`.
        gain, n_layers: what the initialisations xavier_gain and gpt2 need.
        generator: where the first weights are drawn from; torch's own if left out.
        device, dtype: of the parameters.

    Raises:
        ShapeError: sizes that do not fit, named one by one.
        TypeError: a size is not a whole number.
        ValueError: dropout is not in [0, 1), or the initialisation does not fit.

    Cost: the products with the four matrices, and n_heads times the cost of
        `scaled_dot_product`; n_heads n_q n_k weights are kept for the gradients.
    Source: Vaswani et al. 2017, section 3.2.2; Ainslie et al. 2023 for groups.
    Lesson: 05.

    >>> attention = MultiHeadAttention(8, n_heads=4, n_kv_heads=2)
    >>> attention(torch.ones(1, 3, 8), causal=True).shape
    torch.Size([1, 3, 8])
    >>> stages = attention(torch.ones(1, 3, 8), return_stages=True)
    >>> stages.k.shape, stages.weights.shape
    (torch.Size([1, 2, 3, 2]), torch.Size([1, 4, 3, 3]))
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        n_kv_heads: int | None = None,
        d_k: int | None = None,
        d_v: int | None = None,
        d_memory: int | None = None,
        d_values: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
        rotate: Rotate | None = None,
        qk_norm: float | None = None,
        on_scores: OnScores | None = None,
        init: str = "xavier",
        gain: float | None = None,
        n_layers: int | None = None,
        generator: torch.Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.d_model = size("d_model", d_model, least=1)
        self.n_heads = size("n_heads", n_heads, least=1)
        self.n_kv_heads = _size("n_kv_heads", n_kv_heads, self.n_heads)
        if self.n_heads % self.n_kv_heads:
            raise ShapeError(
                f"n_heads={n_heads} is not a multiple of n_kv_heads={n_kv_heads}."
            )
        if d_k is None and d_model % n_heads:
            raise ShapeError(
                f"d_model={d_model} is not a multiple of n_heads={n_heads}."
            )
        self.d_k = _size("d_k", d_k, d_model // n_heads)
        self.d_v = _size("d_v", d_v, self.d_k)
        self.d_memory = _size("d_memory", d_memory, self.d_model)
        self.d_values = _size("d_values", d_values, self.d_memory)
        check_dropout(dropout)
        self.dropout = dropout
        self.rotate = rotate
        self.on_scores = on_scores
        self.qk_norm: QKNorm | None = None
        if qk_norm is not None:
            self.qk_norm = QKNorm(qk_norm, device=device, dtype=dtype)
        self.init, self.gain, self.n_layers = init, gain, n_layers

        def linear(n_in: int, n_out: int) -> nn.Linear:
            return nn.Linear(n_in, n_out, bias=bias, device=device, dtype=dtype)

        self.W_q = linear(self.d_model, self.n_heads * self.d_k)
        self.W_k = linear(self.d_memory, self.n_kv_heads * self.d_k)
        self.W_v = linear(self.d_values, self.n_kv_heads * self.d_v)
        self.W_o = linear(self.n_heads * self.d_v, self.d_model)
        self.reset_parameters(generator)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights anew, as the module was told when it was made."""
        initialise(
            self,
            self.init,
            gain=self.gain,
            n_layers=self.n_layers,
            generator=generator,
        )

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        *,
        values: Tensor | None = None,
        mask: Tensor | npt.ArrayLike | None = None,
        causal: bool = False,
        score_bias: Tensor | None = None,
        positions: Tensor | None = None,
        cache: KVCache | None = None,
        return_stages: bool = False,
    ) -> Tensor | MultiHead:
        """Let every token of x look at the tokens of memory, or of x itself.

        Args:
            x: the tokens that ask, (..., n_q, d_model).
            memory: the tokens that are looked at, (..., n_k, d_memory); x if left out.
            values: what the values are made of, (..., n_k, d_values); memory if left
                out.
            mask: boolean, broadcastable to (..., n_heads, n_q, n_k). True = may look.
                A mask that differs by batch needs an axis of 1 for the heads. With a
                cache, n_k counts all tokens before, too; those it forgot do no harm.
            causal: hide what comes after a query; the last query stands beside the
                last key.
            score_bias: added to the scores, broadcastable to (..., n_heads, n_q, n_k).
            positions: what `rotate` is given: where x stands in the text, (n_q,), or
                (batch, 1, n_q); after what is in the cache, if left out.
            cache: keeps keys and values for the next call. Without a memory it grows by
                x; with a memory it is filled once.
            return_stages: return all stages, not only the result.

        Returns:
            The result, (..., n_q, d_model), or all stages.

        Raises:
            ShapeError, TypeError: tensors that do not fit, named one by one.
            ValueError: memory together with rotate, values without memory, positions
                without rotate, or a cache that belongs elsewhere.
        """
        source = check_inputs(self, x, memory, values, positions)
        q = split_heads(self.W_q(x), self.n_heads, self.d_k)
        if self.qk_norm is not None:
            q = self.qk_norm.query(q)
        known = None if cache is None else cache.claim(self, source)
        if known is not None:
            k, v = known
        else:
            of_k, of_v = source or (x, x)
            k = split_heads(self.W_k(of_k), self.n_kv_heads, self.d_k)
            v = split_heads(self.W_v(of_v), self.n_kv_heads, self.d_v)
            if self.qk_norm is not None:
                k = self.qk_norm.key(k)
            if self.rotate is not None:
                start = 0 if cache is None else cache.length
                if positions is None:
                    positions = torch.arange(x.shape[-2], device=x.device) + start
                q = unchanged("rotate", "q", q, self.rotate(q, positions))
                k = unchanged("rotate", "k", k, self.rotate(k, positions))
            if cache is not None:
                k, v = cache.joined(k, v)
                mask = cache.look(mask, q, k)
        heads = scaled_dot_product(
            q,
            k,
            v,
            mask,
            causal=causal,
            score_bias=score_bias,
            scale=None if self.qk_norm is None else 1.0,  # the norm has its own
            on_scores=self.on_scores,
            dropout=self.dropout if self.training else 0.0,
            grouped=True,
        )
        if cache is not None:  # only now: a call that failed leaves it as it was
            cache.keep(k, v)
        out: Tensor = self.W_o(merge_heads(heads.out))
        if not return_stages:
            return out
        return MultiHead(
            q, k, v, heads.raw_scores, heads.scores, heads.weights, heads.out, out
        )

    @classmethod
    def from_torch(cls, module: nn.MultiheadAttention) -> Self:
        """Make a module that computes what an `nn.MultiheadAttention` computes.

        The weights are copied. Ours reads (batch, n, d_model) always; hand it the
        inputs transposed where the other was made with batch_first=False. Where kdim
        and vdim differ, its key is our memory and its value our values.

        Args:
            module: the other module.

        Returns:
            A new module, with the same dtype, device and mode.

        Raises:
            TypeError: it is no nn.MultiheadAttention.
            ValueError: it was made with add_bias_kv or add_zero_attn.

        >>> theirs = nn.MultiheadAttention(8, 2, batch_first=True)
        >>> ours, x = MultiHeadAttention.from_torch(theirs), torch.ones(1, 3, 8)
        >>> torch.allclose(ours(x), theirs(x, x, x)[0], atol=1e-6)
        True
        """
        ours = cls(**arguments(module))
        copy_weights(module, ours)
        return ours.train(module.training)

    def extra_repr(self) -> str:
        """The sizes, for print(module)."""
        names = "d_model n_heads n_kv_heads d_k d_v d_memory d_values dropout"
        return ", ".join(f"{name}={getattr(self, name)}" for name in names.split())


def _size(name: str, value: int | None, otherwise: int) -> int:
    return otherwise if value is None else size(name, value, least=1)
