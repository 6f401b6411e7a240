"""A small language model, written to be read: what LLaMA is made of, on two pages.

    x = embedding[ids]
    for each layer:
        x = x + attention(norm(x))      RoPE, grouped heads, causal
        x = x + mlp(norm(x))            SwiGLU
    logits = norm(x) embedding^T        the same table, read backwards

Everything a layer computes can be had by name: `model(ids, return_stages=True)`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from attnlib.nn.cache import KVCache
from attnlib.nn.heads import split_heads
from attnlib.nn.multihead import MultiHead, MultiHeadAttention
from attnlib.nn.rotary import Rotary
from attnlib.shapes import ShapeError


@dataclass(frozen=True)
class LanguageSizes:
    """How large a `LanguageModel` is."""

    n_tokens: int  #   how many different tokens there are
    n_layers: int
    d_model: int
    n_heads: int
    n_kv_heads: int
    d_k: int
    d_mlp: int
    n_context: int  #  how many tokens a window had in training
    base: float = 10000.0  # of RoPE


@dataclass(frozen=True, kw_only=True)
class LayerStages(MultiHead):
    """All stages of one layer, in their order; those of attention are in `MultiHead`.

    The order is x, normed, q_plain and k_plain, then q to out, middle, mlp_normed, mlp,
    result.
    """

    x: Tensor  #          (..., n, d_model)  what the layer is given
    normed: Tensor  #     (..., n, d_model)  what attention reads
    q_plain: Tensor  #    (..., n_heads, n, d_k)  before RoPE; q is after it
    k_plain: Tensor  #    (..., n_kv_heads, n, d_k)
    middle: Tensor  #     (..., n, d_model)  x + out
    mlp_normed: Tensor  # (..., n, d_model)  what the MLP reads
    mlp: Tensor  #        (..., n, d_model)
    result: Tensor  #     (..., n, d_model)  middle + mlp: x of the next layer


@dataclass(frozen=True)
class LanguageStages:
    """All stages of one call of `LanguageModel`."""

    embedded: Tensor  #               (..., n, d_model)
    layers: tuple[LayerStages, ...]
    normed: Tensor  #                 (..., n, d_model)
    logits: Tensor  #                 (..., n, n_tokens)


class RMSNorm(nn.Module):
    """Divide every token by its root mean square, then scale each feature.

    y = gain x / sqrt(mean(x^2) + 1e-5)

    >>> RMSNorm(2)(torch.tensor([[3.0, 4.0]])).detach().norm().round(decimals=3)
    tensor(1.4140)
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(d_model))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise x, (..., d_model)."""
        size = (x**2).mean(-1, keepdim=True) + 1e-5
        return self.gain * x * size.rsqrt()


class SwiGLU(nn.Module):
    """The MLP of a layer: one product opens and closes what another one brings.

    y = (silu(x W_gate) * (x W_up)) W_down
    """

    def __init__(self, d_model: int, d_mlp: int) -> None:
        super().__init__()
        self.W_gate = nn.Linear(d_model, d_mlp, bias=False)
        self.W_up = nn.Linear(d_model, d_mlp, bias=False)
        self.W_down = nn.Linear(d_mlp, d_model, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Treat every token of x, (..., d_model), on its own."""
        opened = nn.functional.silu(self.W_gate(x)) * self.W_up(x)
        y: Tensor = self.W_down(opened)
        return y


class Layer(nn.Module):
    """Attention, then the MLP; each reads a normed x, and adds what it found to x."""

    def __init__(self, sizes: LanguageSizes) -> None:
        super().__init__()
        self.attention_norm = RMSNorm(sizes.d_model)
        self.attention = MultiHeadAttention(
            sizes.d_model,
            sizes.n_heads,
            n_kv_heads=sizes.n_kv_heads,
            d_k=sizes.d_k,
            bias=False,
            rotate=Rotary(sizes.base),
        )
        self.mlp_norm = RMSNorm(sizes.d_model)
        self.mlp = SwiGLU(sizes.d_model, sizes.d_mlp)

    def forward(
        self, x: Tensor, cache: KVCache | None = None, *, return_stages: bool = False
    ) -> Tensor | LayerStages:
        """Give the x of the next layer, (..., n, d_model), or every step to it."""
        if return_stages:
            return self._stages(x, cache)
        normed = self.attention_norm(x)
        x = x + self.attention(normed, causal=True, cache=cache)
        y: Tensor = x + self.mlp(self.mlp_norm(x))
        return y

    def _stages(self, x: Tensor, cache: KVCache | None) -> LayerStages:
        attention = self.attention
        normed = self.attention_norm(x)
        q_plain = split_heads(attention.W_q(normed), attention.n_heads, attention.d_k)
        k_plain = split_heads(
            attention.W_k(normed), attention.n_kv_heads, attention.d_k
        )
        heads = attention(normed, causal=True, cache=cache, return_stages=True)
        middle = x + heads.out
        mlp_normed = self.mlp_norm(middle)
        mlp = self.mlp(mlp_normed)
        return LayerStages(
            **vars(heads),
            x=x,
            normed=normed,
            q_plain=q_plain,
            k_plain=k_plain,
            middle=middle,
            mlp_normed=mlp_normed,
            mlp=mlp,
            result=middle + mlp,
        )


class LanguageModel(nn.Module):
    """Give, at every place of a text, a logit for each token that could come next.

    Args:
        sizes: how large it is.
        generator: where the first weights are drawn from; torch's own if left out.

    Raises:
        ShapeError, TypeError: sizes that do not fit, named one by one.

    Cost: 2 FLOPs a weight and token, and what attention costs.
    Source: Touvron et al. 2023 (LLaMA), section 2.2; Ainslie et al. 2023 for groups;
        Press and Wolf 2017 for the table used twice.
    Lesson: 06.

    >>> sizes = LanguageSizes(11, 2, 8, n_heads=4, n_kv_heads=2, d_k=6, d_mlp=12,
    ...                       n_context=9)
    >>> model = LanguageModel(sizes)
    >>> model(torch.tensor([[3, 1, 4]])).shape
    torch.Size([1, 3, 11])
    >>> stages = model(torch.tensor([[3, 1, 4]]), return_stages=True)
    >>> len(stages.layers), stages.layers[1].weights.shape
    (2, torch.Size([1, 4, 3, 3]))
    """

    def __init__(
        self, sizes: LanguageSizes, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.sizes = sizes
        self.embedding = nn.Embedding(sizes.n_tokens, sizes.d_model)
        self.layers = nn.ModuleList(Layer(sizes) for _ in range(sizes.n_layers))
        self.norm = RMSNorm(sizes.d_model)
        self.reset_parameters(generator)

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw all weights anew."""
        # Loud embeddings, so that a token stays known while layers add to it; then the
        # last norm must be soft, or the first logits would be large.
        nn.init.normal_(self.embedding.weight, 0.0, 0.5, generator)
        nn.init.constant_(self.norm.gain, self.sizes.d_model**-0.5)
        for layer in self.layers:
            assert isinstance(layer, Layer)
            layer.attention.reset_parameters(generator)
            for read in (layer.mlp.W_gate, layer.mlp.W_up):
                nn.init.normal_(read.weight, 0.0, 0.05, generator)
            std = 0.02 / (2 * self.sizes.n_layers) ** 0.5
            nn.init.normal_(layer.mlp.W_down.weight, 0.0, std, generator)
            nn.init.ones_(layer.attention_norm.gain)
            nn.init.ones_(layer.mlp_norm.gain)

    def forward(
        self,
        ids: Tensor,
        *,
        caches: list[KVCache] | None = None,
        return_stages: bool = False,
    ) -> Tensor | LanguageStages:
        """Read a text, and say what could come next after each of its tokens.

        Args:
            ids: whole numbers, (..., n).
            caches: one `KVCache` for each layer; ids then are the tokens that come
                after those in the caches.
            return_stages: return every step of every layer, not only the logits.

        Returns:
            The logits, (..., n, n_tokens), or all stages.

        Raises:
            ShapeError: another number of caches than layers.
            ValueError: an id is not below n_tokens.
        """
        self._check(ids, caches)
        x = embedded = self.embedding(ids)
        kept: list[LayerStages] = []
        for number, layer in enumerate(self.layers):
            cache = None if caches is None else caches[number]
            if return_stages:
                kept.append(layer(x, cache, return_stages=True))
                x = kept[-1].result
            else:
                x = layer(x, cache)
        normed = self.norm(x)
        logits: Tensor = normed @ self.embedding.weight.T
        if not return_stages:
            return logits
        return LanguageStages(embedded, tuple(kept), normed, logits)

    @torch.no_grad()
    def generate(
        self,
        ids: Tensor,
        n_new: int,
        *,
        temperature: float = 0.0,
        generator: torch.Generator | None = None,
        use_cache: bool = True,
    ) -> Tensor:
        """Go on with a text, one token after the other.

        Args:
            ids: the text so far, (..., n), at least one token.
            n_new: how many tokens to add.
            temperature: 0 takes the likeliest token; else the logits are divided by it
                and a token is drawn.
            generator: where tokens are drawn from; torch's own if left out.
            use_cache: keep keys and values instead of computing them again; the
                result is the same.

        Returns:
            The text with the new tokens, (..., n + n_new).

        Raises:
            ShapeError: the text is empty, or would grow past n_context.
            ValueError: the temperature is negative.
        """
        n = ids.shape[-1]
        if n == 0:
            raise ShapeError("generate needs at least one token to start from.")
        if n + n_new > self.sizes.n_context:
            raise ShapeError(
                f"{n} tokens and {n_new} new ones are more than the n_context="
                f"{self.sizes.n_context} that the model was trained on."
            )
        if temperature < 0:
            raise ValueError(
                f"temperature must not be negative, but it is {temperature}."
            )
        caches = None
        if use_cache:
            caches = [KVCache(capacity=n + n_new) for _ in self.layers]
        for _ in range(n_new):
            new = ids if caches is None else ids[..., caches[0].length :]
            logits = self(new, caches=caches)[..., -1, :]
            if temperature == 0:
                nxt = logits.argmax(-1, keepdim=True)
            else:
                chances = torch.softmax(logits / temperature, -1)
                nxt = torch.multinomial(
                    chances.reshape(-1, chances.shape[-1]), 1, generator=generator
                ).reshape(*chances.shape[:-1], 1)
            ids = torch.cat([ids, nxt], dim=-1)
        return ids

    def _check(self, ids: Tensor, caches: list[KVCache] | None) -> None:
        n_tokens = self.sizes.n_tokens
        if ids.numel() and not 0 <= int(ids.min()) <= int(ids.max()) < n_tokens:
            found = sorted({int(ids.min()), int(ids.max())})
            raise ValueError(
                f"ids must be from 0 to n_tokens - 1 = {n_tokens - 1}, but there is "
                f"{found[0] if found[0] < 0 else found[-1]}."
            )
        if caches is not None and len(caches) != len(self.layers):
            raise ShapeError(
                f"a model of n_layers={len(self.layers)} needs as many caches, but "
                f"{len(caches)} were given."
            )
