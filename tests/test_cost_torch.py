"""The formulas against what torch counts and saves in attnlib's own modules."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.functional import scaled_dot_product_attention as sdpa
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode
from torch_tools import one_thread  # noqa: F401

from attnlib import cost
from attnlib.nn import KVCache, MultiHeadAttention, flash_attention
from attnlib.nn.language import LanguageModel, LanguageSizes
from attnlib.nn.multihead import merge_heads, split_heads

few = st.integers(1, 5)
steady = settings(derandomize=True, deadline=None, max_examples=25)


def counted(function):
    with FlopCounterMode(display=False) as counter:
        function()
    return counter.get_total_flops()


def saved(module, *inputs, **arguments):
    """Bytes that autograd saves, each storage once, without the parameters."""
    kept = {}
    parameters = {p.untyped_storage().data_ptr() for p in module.parameters()}

    def pack(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor  # held, so ids stay
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        out = module(*inputs, **arguments)
    sizes = {
        pointer: tensor.untyped_storage().nbytes()
        for pointer, tensor in kept.items()
        if pointer not in parameters
    }
    assert out.requires_grad
    return sum(sizes.values())


# FLOPs.


@steady
@given(few, few, few, few, few, few, few)
def test_flops_of_multi_head_attention(n_q, n_k, n_kv, group, d_k, d_v, batch):
    d_model, d_memory = 6, 7
    n_heads = n_kv * group
    module = MultiHeadAttention(
        d_model, n_heads, n_kv_heads=n_kv, d_k=d_k, d_v=d_v, d_memory=d_memory
    )
    x = torch.randn(batch, n_q, d_model, requires_grad=True)
    memory = torch.randn(batch, n_k, d_memory, requires_grad=True)
    said = cost.attention_flops(
        n_q,
        d_model,
        n_heads,
        n_k=n_k,
        n_kv_heads=n_kv,
        d_k=d_k,
        d_v=d_v,
        d_memory=d_memory,
        batch=batch,
    )
    assert counted(lambda: module(x, memory)) == said.forward
    assert counted(lambda: module(x, memory).sum().backward()) == said.training


def test_a_gradient_that_nobody_asks_for_is_not_computed():
    """The first layer of a model: its x needs none, and three products are left out."""
    module, n = MultiHeadAttention(12, 3), 5
    said = cost.attention_flops(n, 12, 3)
    done = counted(lambda: module(torch.randn(n, 12)).sum().backward())
    assert said.training - done == 3 * said.projections // 4


def test_the_fused_kernel_is_not_counted_on_a_cpu():
    q = torch.randn(1, 2, 8, 4)
    assert counted(lambda: sdpa(q, q, q)) == 0


def test_one_step_of_decoding():
    module, n = MultiHeadAttention(16, 4, n_kv_heads=2), 9
    cache = KVCache()
    module(torch.randn(1, n, 16), causal=True, cache=cache)
    said = cost.attention_flops(1, 16, 4, n_k=n + 1, n_kv_heads=2)
    keys = cost.attention_flops(n, 16, 4, n_k=0, n_kv_heads=2)  # W_q and W_o alone
    per_token = cost.kv_bytes_per_token(1, 2, 4, itemsize=4)
    assert cache.n_bytes == cost.cache_bytes(per_token, n)
    done = counted(lambda: module(torch.randn(1, 1, 16), causal=True, cache=cache))
    # Only the new token's key and value are computed: those of n others are not.
    others = cost.attention_flops(0, 16, 4, n_k=n, n_kv_heads=2).projections
    assert done == said.forward - others
    assert keys.core == 0
    assert cache.n_bytes == cost.cache_bytes(per_token, n + 1)


def sizes():
    return LanguageSizes(
        n_tokens=11,
        n_layers=3,
        d_model=12,
        n_heads=4,
        n_kv_heads=2,
        d_k=6,
        d_mlp=20,
        n_context=16,
    )


def test_a_whole_language_model():
    s, n = sizes(), 7
    model = LanguageModel(s)
    of_model = cost.ModelSizes(
        n_tokens=s.n_tokens,
        d_model=s.d_model,
        n_heads=s.n_heads,
        n_kv_heads=s.n_kv_heads,
        d_k=s.d_k,
        d_mlp=s.d_mlp,
        n_layers=s.n_layers,
        gated=True,
        bias=False,
        norm=1,
    )
    assert sum(p.numel() for p in model.parameters()) == (
        cost.model_parameters(of_model).total
    )
    attention = cost.attention_flops(
        n, s.d_model, s.n_heads, n_kv_heads=s.n_kv_heads, d_k=s.d_k
    )
    mlp = cost.mlp_flops(n, s.d_model, s.d_mlp, gated=True)
    logits = 2 * n * s.d_model * s.n_tokens
    ids = torch.arange(n)[None]
    assert counted(lambda: model(ids)) == (
        s.n_layers * (attention.forward + mlp) + logits
    )


# What is saved.


@steady
@given(few, few, few, few, st.booleans(), st.sampled_from([0.0, 0.25]))
def test_what_multi_head_attention_saves(n, n_heads, d, batch, causal, dropout):
    n, d_model = n + 1, n_heads * d
    module = MultiHeadAttention(d_model, n_heads, dropout=dropout)
    x = torch.randn(batch, n, d_model)
    said = cost.saved_activations(
        n, d_model, n_heads, batch=batch, causal=causal, dropout=dropout > 0
    )
    assert saved(module, x, causal=causal) == said.total


@pytest.mark.parametrize("shape", [(2, 1, 1, 7), (7, 7)])
@pytest.mark.parametrize("dropout", [0.0, 0.25])
def test_a_mask_doubles_the_weights_that_are_saved(shape, dropout):
    x, mask = torch.randn(2, 7, 24), torch.ones(shape, dtype=torch.bool)
    said = cost.saved_activations(
        7, 24, 4, batch=2, mask_size=mask.numel(), dropout=dropout > 0
    )
    assert said.weights == 2 * cost.score_bytes(7, n_heads=4, batch=2, itemsize=4)
    assert saved(MultiHeadAttention(24, 4, dropout=dropout), x, mask=mask) == said.total


def test_shared_heads_save_their_keys_once():
    x = torch.randn(2, 7, 24)
    said = cost.saved_activations(7, 24, 4, n_kv_heads=2, batch=2)
    assert said.k == x.nbytes // 2
    assert saved(MultiHeadAttention(24, 4, n_kv_heads=2), x) == said.total


class Fused(nn.Module):
    """The same layer with torch's fused kernel in the middle."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        a = self.layer
        q, k, v = (split_heads(w(x), a.n_heads, a.d_k) for w in (a.W_q, a.W_k, a.W_v))
        return a.W_o(merge_heads(sdpa(q, k, v)))


def test_what_the_fused_kernel_saves():
    x = torch.randn(2, 64, 24)
    module = Fused(MultiHeadAttention(24, 4))
    said = cost.saved_activations(64, 24, 4, batch=2, fused=True)
    copied = saved(module, x)
    # W_o may read the kernel's result where it lies: then it is saved once, not twice.
    assert copied in (said.total, said.total - said.mixed)


class OurFlash(nn.Module):
    def forward(self, q, k, v):
        return flash_attention(q, k, v, causal=True)


def test_what_our_flash_attention_saves():
    q, k, v = (torch.randn(2, 4, 64, 6, requires_grad=True) for _ in range(3))
    said = cost.saved_activations(64, 24, 4, batch=2, fused=True)
    assert saved(OurFlash(), q, k, v) == said.total - said.x


# Checkpointing.


class Stack(nn.Module):
    def __init__(self, n_layers, how):
        super().__init__()
        self.layers = nn.ModuleList(MultiHeadAttention(16, 4) for _ in range(n_layers))
        self.how = how

    def forward(self, x):
        for layer in self.layers:
            x = x + self.how(layer, x)
        return x


def plain(layer, x):
    return layer(x)


def recomputed(layer, x):
    return checkpoint(layer, x, use_reentrant=False)


def reentrant(layer, x):
    return checkpoint(layer, x, use_reentrant=True)


def step(model, x):
    return counted(lambda: model(x).sum().backward())


def test_checkpointing_costs_a_third_more_flops():
    x = torch.randn(2, 9, 16, requires_grad=True)
    said = cost.attention_flops(9, 16, 4, batch=2)
    usual, again, old = (
        step(Stack(3, how), x) for how in (plain, recomputed, reentrant)
    )
    assert usual == 3 * said.training
    assert old / usual == cost.checkpointing(3, 1, 1).flops_ratio == 4 / 3
    # Without reentrance torch stops as soon as it has what was saved: the product
    # with W_o comes last, and its result is needed by nobody.
    assert old - again == 3 * said.projections // 4


def test_with_reentrance_the_parameters_get_no_gradient_if_the_input_needs_none():
    x = torch.randn(2, 9, 16)
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        out = Stack(1, reentrant)(x)
    assert not out.requires_grad
    model = Stack(1, recomputed)
    model(x).sum().backward()
    assert all(p.grad is not None for p in model.parameters())


def test_what_checkpointing_keeps():
    """With reentrance, each layer saves its input and nothing else."""
    n_layers, x = 3, torch.randn(2, 9, 16, requires_grad=True)
    layer = cost.saved_activations(9, 16, 4, batch=2).total
    said = cost.checkpointing(n_layers, layer, x.nbytes)
    assert saved(Stack(n_layers, plain), x) == said.plain
    assert saved(Stack(n_layers, reentrant), x) == said.kept
