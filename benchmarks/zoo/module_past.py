"""The same right modules, called another way: causal on demand, or with a cache."""

from __future__ import annotations

from dataclasses import replace

import torch

from .module_gpt import GPT2
from .module_hub import LLAMA
from .module_raw import KERNEL


def call_causal(module, probe):
    """Call forward(x, memory, mask, causal=True)."""
    mask = probe.mask
    if probe.padding is not None:
        mask = probe.padding[:, None] if mask is None else mask & probe.padding[:, None]
    return module(probe.x, probe.memory, mask, causal=True)


def call_past(module, probe):
    """Call a Hugging Face decoder twice: all tokens but two, then those two."""
    if (probe.memory, probe.mask, probe.padding) != (None, None, None):
        return None
    name = "layer_past" if hasattr(module, "c_attn") else "past_key_value"
    more = {"use_cache": True} if name == "layer_past" else {}
    first, past = module(probe.x[:, :-2], **more)
    second, _ = module(probe.x[:, -2:], **{name: past}, **more)
    return torch.cat([first, second], dim=1)


CAUSAL_KERNEL = replace(KERNEL, call=call_causal, features=lambda m: {"causal": True})
GPT2_PAST = replace(GPT2, call=call_past)
LLAMA_PAST = replace(LLAMA, call=call_past)
