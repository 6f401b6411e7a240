"""Sizes of models that people know, with where each is written."""

from __future__ import annotations

from dataclasses import dataclass

from attnlib.cost.cache import kv_bytes_per_token, mla_bytes_per_token
from attnlib.cost.parameters import ModelSizes

BERT_BASE = ModelSizes(  # Devlin et al. 2019; bert-base-uncased: 109 482 240
    n_tokens=30522,
    d_model=768,
    n_heads=12,
    d_mlp=3072,
    n_layers=12,
    n_positions=512,
    n_segments=2,
    pooler=True,
)
GPT2_SMALL = ModelSizes(  # Radford et al. 2019; gpt2: 124 439 808
    n_tokens=50257, d_model=768, n_heads=12, d_mlp=3072, n_layers=12, n_positions=1024
)
LLAMA2_7B = ModelSizes(  # Touvron et al. 2023; 6 738 415 616
    n_tokens=32000,
    d_model=4096,
    n_heads=32,
    d_mlp=11008,
    n_layers=32,
    gated=True,
    bias=False,
    norm=1,
    tied=False,
)


@dataclass(frozen=True)
class Cached:
    """What a token of a model takes in the cache, in numbers of two bytes."""

    name: str
    n_layers: int
    n_heads: int
    n_kv_heads: int  #   0 where keys and values are kept compressed
    d_k: int  #        of a value, and of a key without what RoPE turns apart
    source: str
    d_latent: int = 0
    d_rotary: int = 0
    window: int | None = None  # how many tokens a query sees

    @property
    def bytes_per_token(self) -> int:
        """Bytes in all layers."""
        if self.d_latent:
            return mla_bytes_per_token(self.n_layers, self.d_latent, self.d_rotary)
        return kv_bytes_per_token(self.n_layers, self.n_kv_heads, self.d_k)

    @property
    def bytes_with_all_heads(self) -> int:
        """Bytes if every query head had keys and values of its own (MHA)."""
        d_key = self.d_k + self.d_rotary
        return kv_bytes_per_token(self.n_layers, self.n_heads, d_key, self.d_k)


_SKU = "models/sku_list.py in meta-llama/llama-models"
KNOWN_CACHES = (
    Cached("GPT-2 small", 12, 12, 12, 64, "GPT2Config in transformers"),
    Cached("GPT-2 XL", 48, 25, 25, 64, "the configuration of gpt2-xl"),
    Cached("Llama-2-7B", 32, 32, 32, 128, "LlamaConfig in transformers"),
    Cached("Llama-2-13B", 40, 40, 40, 128, "Touvron et al. 2023, no groups below 34B"),
    Cached("Llama-2-70B", 80, 64, 8, 128, _SKU),
    Cached("Llama-3-8B", 32, 32, 8, 128, _SKU),
    Cached("Mistral-7B", 32, 32, 8, 128, "Jiang et al. 2023, table 1", window=4096),
    Cached("Llama-3.1-405B", 126, 128, 8, 128, _SKU),
    Cached("DeepSeek-V2", 60, 128, 0, 128, "DeepSeek-AI 2024, section 3.1.2", 512, 64),
    Cached("DeepSeek-V3", 61, 128, 0, 128, "DeepSeek-AI 2024b, section 4.2", 512, 64),
)


@dataclass(frozen=True)
class Variant:
    """A row of table 3 of the Transformer paper."""

    row: str
    changed: str
    sizes: ModelSizes
    published: int  # million parameters, as printed


def _row(row: str, changed: str, published: int, **changes: int) -> Variant:
    of_base = {"d_model": 512, "n_heads": 8, "d_mlp": 2048, "n_layers": 6} | changes
    n_layers = of_base["n_layers"]
    sizes = ModelSizes(
        n_tokens=37000,
        n_cross_layers=n_layers,
        bias=False,
        norm=0,
        **of_base,  # type: ignore[arg-type]  # ints, for fields that are ints
    )
    return Variant(row, changed, sizes, published)


TABLE_3 = (
    _row("base", "", 65),
    _row("A", "h=1", 65, n_heads=1),
    _row("A", "h=4", 65, n_heads=4),
    _row("A", "h=16", 65, n_heads=16),
    _row("A", "h=32", 65, n_heads=32),
    _row("B", "d_k=16", 58, d_k=16, d_v=64),
    _row("B", "d_k=32", 60, d_k=32, d_v=64),
    _row("C", "N=2", 36, n_layers=2),
    _row("C", "N=4", 50, n_layers=4),
    _row("C", "N=8", 80, n_layers=8),
    _row("C", "d_model=256", 28, d_model=256, d_k=32),
    _row("C", "d_model=1024", 168, d_model=1024, d_k=128),
    _row("C", "d_ff=1024", 53, d_mlp=1024),
    _row("C", "d_ff=4096", 90, d_mlp=4096),
    _row("big", "", 213, d_model=1024, n_heads=16, d_mlp=4096),
)
