"""What attention costs: formulas, no arrays.

- `parameters`: numbers learned. `model_parameters`.
- `flops`: multiplications and additions. `attention_flops`, `mlp_flops`.
- `pairs`: what masks leave. `allowed_pairs`, `causal_share`.
- `activations`: what is kept for gradients. `saved_activations`, `checkpointing`.
- `cache`: bytes of keys and values in decoding. `kv_bytes_per_token`, `cache_bytes`.
- `traffic`: bytes between HBM and the chip. `flash_traffic`, `untiled_traffic`.
- `ring`: bytes between ranks that share a text. `ring_traffic`.
- `paper`: the FlashAttention paper's numbers. `flash_figure_2`.
- `roofline`: what sets the time. `roofline`.
- `models`: sizes of known models. `KNOWN_CACHES`, `TABLE_3`.
"""

from attnlib.cost.activations import (
    Checkpointing,
    Saved,
    best_segment,
    checkpointing,
    saved_activations,
    score_bytes,
)
from attnlib.cost.cache import cache_bytes, kv_bytes_per_token, mla_bytes_per_token
from attnlib.cost.flops import AttentionFlops, attention_flops, mlp_flops
from attnlib.cost.models import (
    BERT_BASE,
    GPT2_SMALL,
    KNOWN_CACHES,
    LLAMA2_7B,
    TABLE_3,
    Cached,
    Variant,
)
from attnlib.cost.pairs import allowed_pairs, causal_share
from attnlib.cost.paper import (
    PASSES,
    Reported,
    flash_figure_2,
    flash_gpu_bytes,
    standard_gpu_bytes,
)
from attnlib.cost.parameters import ModelSizes, Parameters, model_parameters
from attnlib.cost.ring import RingTraffic, ring_traffic
from attnlib.cost.roofline import Roofline, roofline
from attnlib.cost.sizes import HeadSizes, head_sizes
from attnlib.cost.traffic import Traffic, flash_traffic, untiled_traffic

__all__ = [
    "BERT_BASE",
    "GPT2_SMALL",
    "KNOWN_CACHES",
    "LLAMA2_7B",
    "PASSES",
    "TABLE_3",
    "AttentionFlops",
    "Cached",
    "Checkpointing",
    "HeadSizes",
    "ModelSizes",
    "Parameters",
    "Reported",
    "RingTraffic",
    "Roofline",
    "Saved",
    "Traffic",
    "Variant",
    "allowed_pairs",
    "attention_flops",
    "best_segment",
    "cache_bytes",
    "causal_share",
    "checkpointing",
    "flash_figure_2",
    "flash_gpu_bytes",
    "flash_traffic",
    "head_sizes",
    "kv_bytes_per_token",
    "mla_bytes_per_token",
    "mlp_flops",
    "model_parameters",
    "ring_traffic",
    "roofline",
    "saved_activations",
    "score_bytes",
    "standard_gpu_bytes",
    "untiled_traffic",
]
