"""The module: NumPy's multi_head, nn.MultiheadAttention and SDPA, and its errors."""

import copy
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.functional import scaled_dot_product_attention as sdpa
from torch_tools import close, normal, one_thread  # noqa: F401

from attnlib import heads, masks
from attnlib.nn import MultiHeadAttention
from attnlib.shapes import ShapeError

steady = settings(derandomize=True, deadline=None, max_examples=40)
sizes = st.integers(0, 4)
least_one = st.integers(1, 3)
batches = st.sampled_from([(), (2,), (0,), (3, 2)])
STAGES = ("q", "k", "v", "raw_scores", "scores", "weights", "mixed", "out")


def made(*arguments, seed=0, **more):
    """A module in float64 whose biases are no zeros."""
    generator = torch.Generator().manual_seed(seed)
    return MultiHeadAttention(
        *arguments, init="linear", generator=generator, dtype=torch.float64, **more
    )


def matrix(part):
    return part.weight.detach().numpy().T


def matrix_with_bias(part):
    """One more row, which x meets with a 1: NumPy's multi_head has no bias."""
    return np.vstack([matrix(part), part.bias.detach().numpy()])


def with_one(x):
    return np.concatenate([x, np.ones((*x.shape[:-1], 1))], axis=-1)


def gradients(out, *inputs):
    upstream = normal(*out.shape, seed=9)
    return torch.autograd.grad(out, inputs, upstream, retain_graph=True)


# NumPy.


@steady
@given(batches, sizes, sizes, least_one, least_one, least_one, least_one, st.booleans())
def test_all_stages_are_numpys(batch, n_q, n_k, n_kv_heads, group, d_k, d_v, bias):
    n_heads, d_model, d_memory = n_kv_heads * group, 5, 3
    attention = made(
        d_model,
        n_heads,
        n_kv_heads=n_kv_heads,
        d_k=d_k,
        d_v=d_v,
        d_memory=d_memory,
        bias=bias,
    )
    x, memory = normal(*batch, n_q, d_model), normal(*batch, n_k, d_memory, seed=1)
    mask = masks.causal(n_q, n_k)  # empty rows where n_q > n_k
    ours = attention(x, memory, mask=mask, return_stages=True)
    read, tokens = (matrix_with_bias, with_one) if bias else (matrix, np.asarray)
    theirs = heads.multi_head(
        tokens(x.numpy()),
        *(read(part) for part in (attention.W_q, attention.W_k, attention.W_v)),
        matrix(attention.W_o),
        n_heads,
        n_kv_heads=n_kv_heads,
        memory=tokens(memory.numpy()),
        mask=mask,
    )
    for stage in STAGES:
        expected = torch.from_numpy(getattr(theirs, stage))
        if stage == "out" and bias:
            expected = expected + attention.W_o.bias
        close(getattr(ours, stage), expected)
    close(attention(x, memory, causal=True), ours.out)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_self_attention_is_a_memory_of_itself(n):
    attention, x = made(6, 3, n_kv_heads=1), normal(2, n, 6)
    close(attention(x), attention(x, x))
    assert attention(x).shape == (2, n, 6)


def test_strides_do_not_matter_and_inputs_stay():
    attention = made(6, 2)
    x, memory = normal(5, 2, 6).transpose(0, 1), normal(2, 6, 4, seed=1).mT
    assert not x.is_contiguous()
    assert not memory.is_contiguous()
    before = x.clone(), memory.clone()
    close(attention(x, memory), attention(x.contiguous(), memory.contiguous()), 1e-14)
    assert torch.equal(x, before[0])
    assert torch.equal(memory, before[1])


# PyTorch's module.


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize(("kdim", "vdim"), [(None, None), (7, 7), (7, 5), (None, 5)])
def test_from_torch_gives_the_same_values_and_gradients(bias, batch_first, kdim, vdim):
    torch.manual_seed(3)
    theirs = nn.MultiheadAttention(
        12,
        3,
        bias=bias,
        kdim=kdim,
        vdim=vdim,
        batch_first=batch_first,
        dtype=torch.float64,
    )
    if bias:
        nn.init.normal_(theirs.in_proj_bias)
        nn.init.normal_(theirs.out_proj.bias)
    ours = MultiHeadAttention.from_torch(theirs)
    x, memory = normal(2, 4, 12), normal(2, 6, kdim or 12, seed=1)
    values = normal(2, 6, vdim or 12, seed=2)
    if kdim == vdim:
        values = memory
    inputs = [tensor.requires_grad_() for tensor in (x, memory, values)]
    real, before = masks.padding([4, 6], 6), masks.causal(4, 6)
    stages = ours(
        x,
        memory,
        values=None if values is memory else values,
        mask=real,
        causal=True,
        return_stages=True,
    )
    turned = inputs if batch_first else [tensor.transpose(0, 1) for tensor in inputs]
    out, weights = theirs(
        *turned,
        key_padding_mask=torch.from_numpy(~real[:, 0, 0]),  # True = must not look
        attn_mask=torch.from_numpy(~before),
        average_attn_weights=False,
    )
    out = out if batch_first else out.transpose(0, 1)
    close(stages.out, out)
    close(stages.weights, weights)
    different = inputs[:2] if values is memory else inputs
    for mine, other in zip(
        gradients(stages.out, *different), gradients(out, *different), strict=True
    ):
        close(mine, other)
    out.sum().backward()
    stages.out.sum().backward()
    close(ours.W_o.weight.grad, theirs.out_proj.weight.grad)
    if kdim is None and vdim is None:
        fused = theirs.in_proj_weight.grad
        parts = (ours.W_q, ours.W_k, ours.W_v)
        close(torch.cat([part.weight.grad for part in parts]), fused)


def test_from_torch_copies_and_keeps_type_mode_and_dropout():
    theirs = nn.MultiheadAttention(8, 2, dropout=0.3, dtype=torch.float16).eval()
    ours = MultiHeadAttention.from_torch(theirs)
    assert ours.W_q.weight.dtype == torch.float16
    assert (ours.dropout, ours.training) == (0.3, False)
    before = ours.W_q.weight.clone()
    nn.init.zeros_(theirs.in_proj_weight)
    assert torch.equal(ours.W_q.weight, before)


@pytest.mark.parametrize("name", ["add_bias_kv", "add_zero_attn"])
def test_from_torch_refuses_keys_that_are_no_tokens(name):
    with pytest.raises(ValueError, match="there is no such key here") as error:
        MultiHeadAttention.from_torch(nn.MultiheadAttention(8, 2, **{name: True}))
    assert f"{name}=True" in str(error.value)


def test_from_torch_refuses_another_module():
    with pytest.raises(TypeError) as error:
        MultiHeadAttention.from_torch(nn.Linear(2, 2))
    assert str(error.value) == (
        "from_torch takes an nn.MultiheadAttention, but it was given a Linear."
    )


# SDPA.


@pytest.mark.parametrize("n_kv_heads", [1, 2, 3, 6])
def test_shared_heads_and_their_gradients_are_sdpas(n_kv_heads):
    attention, x = made(12, 6, n_kv_heads=n_kv_heads), normal(2, 5, 12)
    stages = attention(x.requires_grad_(), causal=True, return_stages=True)
    mixed = sdpa(stages.q, stages.k, stages.v, is_causal=True, enable_gqa=True)
    out = attention.W_o(mixed.transpose(1, 2).flatten(2))
    close(stages.out, out)
    parameters = (x, *attention.parameters())
    mine = torch.autograd.grad(stages.out.square().sum(), parameters, retain_graph=True)
    for one, other in zip(
        mine, torch.autograd.grad(out.square().sum(), parameters), strict=True
    ):
        close(one, other)


# Masks, bias, dropout, precision.


def test_an_empty_row_gives_the_bias_of_w_o_and_finite_gradients():
    attention, x = made(6, 2), normal(2, 4, 6).requires_grad_()
    mask = torch.ones(2, 1, 4, 4, dtype=torch.bool)
    mask[0] = False  # a whole sequence that sees nothing
    out = attention(x, mask=mask)
    close(out[0], attention.W_o.bias.expand(4, 6), atol=0)
    out.square().sum().backward()
    assert x.grad.isfinite().all()
    assert (x.grad[0] == 0).all()
    assert (x.grad[1] != 0).all()
    assert all(part.grad.isfinite().all() for part in attention.parameters())


def test_without_a_bias_an_empty_row_gives_zeros():
    attention = made(6, 2, bias=False)
    assert (attention(normal(3, 6), mask=masks.causal(3, 3) & False) == 0).all()


def test_a_masked_key_changes_nothing():
    attention, x = made(6, 3), normal(2, 5, 6)
    mask = masks.padding([3, 5], 5)
    changed = x.clone()
    changed[0, 3:] = 99.0
    close(attention(x, mask=mask)[0, :3], attention(changed, mask=mask)[0, :3], atol=0)


def test_items_of_a_batch_do_not_see_each_other():  # batch_first, wrong, lets them
    attention, x = made(6, 3), normal(3, 5, 6)
    changed = x.clone()
    changed[0] = 7.0
    assert torch.equal(attention(x)[1:], attention(changed)[1:])
    assert not torch.equal(attention(x)[0], attention(changed)[0])


def test_a_score_bias_for_each_head_learns():
    attention, x = made(6, 3), normal(2, 4, 6)
    bias = normal(3, 4, 4).requires_grad_()
    stages = attention(x, score_bias=bias, return_stages=True)
    close(stages.scores, stages.raw_scores / 2**0.5 + bias)
    stages.out.square().sum().backward()
    assert (bias.grad != 0).all()


def test_dropout_is_off_in_eval_and_on_in_training():
    attention, x = made(8, 2, dropout=0.5), normal(2, 5, 8)
    without = made(8, 2)
    attention.eval()
    assert torch.equal(attention(x), attention(x))
    close(attention(x), without(x))
    attention.train()
    torch.manual_seed(0)
    first, second = attention(x), attention(x)
    assert not torch.allclose(first, second)
    torch.manual_seed(0)
    assert torch.equal(first, attention(x))
    weights = attention(x, return_stages=True).weights
    close(weights.sum(-1), torch.ones(2, 2, 5).double())


def test_training_without_dropout_and_eval_are_the_same_numbers():
    attention, x = made(8, 2), normal(2, 5, 8)
    mask = masks.padding([0, 3], 5)
    trained = attention.train()(x, mask=mask)
    with torch.no_grad():
        assert torch.equal(trained, attention.eval()(x, mask=mask))


@pytest.mark.parametrize(
    ("dtype", "atol"), [(torch.float16, 2e-3), (torch.bfloat16, 2e-2)]
)
def test_half_precision_stays_close_to_float64(dtype, atol):
    attention = made(32, 4, n_kv_heads=2).to(dtype)
    exact = copy.deepcopy(attention).double()
    x = normal(2, 7, 32).to(dtype)
    ours = attention(x, causal=True)
    assert ours.dtype == dtype
    close(ours.double(), exact(x.double(), causal=True), atol)
    ours.float().square().sum().backward()
    assert all(part.grad.isfinite().all() for part in attention.parameters())


def test_it_runs_under_autocast():
    attention, x = made(8, 2).float(), normal(2, 5, 8).float()
    attention.rotate = lambda x, positions: x.float()  # angles are float32
    with torch.autocast("cpu", torch.bfloat16):
        half = attention(x, causal=True)
    close(half.float(), attention(x, causal=True), 2e-2)


# The module as a module.


def test_names_and_shapes_of_the_state():
    state = MultiHeadAttention(8, 4, n_kv_heads=2, d_v=3, d_memory=5).state_dict()
    assert {name: tuple(tensor.shape) for name, tensor in state.items()} == {
        "W_q.weight": (8, 8),
        "W_q.bias": (8,),
        "W_k.weight": (4, 5),
        "W_k.bias": (4,),
        "W_v.weight": (6, 5),
        "W_v.bias": (6,),
        "W_o.weight": (8, 12),
        "W_o.bias": (8,),
    }
    names = list(MultiHeadAttention(8, 4, bias=False).state_dict())
    assert names == ["W_q.weight", "W_k.weight", "W_v.weight", "W_o.weight"]


@pytest.mark.parametrize("bias", [False, True])
def test_it_has_as_many_numbers_as_the_formula_says(bias):
    attention = MultiHeadAttention(12, 6, n_kv_heads=2, d_v=5, bias=bias)
    count = heads.parameter_count(12, 6, n_kv_heads=2, d_v=5, bias=bias)
    assert sum(part.numel() for part in attention.parameters()) == count


def test_copies_pickles_and_prints():
    attention, x = made(8, 4, n_kv_heads=2), normal(2, 3, 8)
    for other in (
        copy.deepcopy(attention),
        pickle.loads(pickle.dumps(attention)),
    ):
        assert torch.equal(attention(x), other(x))
    loaded = made(8, 4, n_kv_heads=2, seed=1)
    loaded.load_state_dict(attention.state_dict())
    assert torch.equal(attention(x), loaded(x))
    assert "n_heads=4, n_kv_heads=2, d_k=2" in repr(attention)


def test_a_compiler_follows_it_without_a_break():
    attention, x = made(8, 4, n_kv_heads=2), normal(2, 3, 8)
    compiled = torch.compile(attention, backend="eager", fullgraph=True)
    mask = torch.from_numpy(masks.padding([2, 3], 3))
    with torch.no_grad():
        out = compiled(x, mask=mask, causal=True)
        close(out, attention(x, mask=mask, causal=True))


# Errors.


def call(*shapes, made_with=None, **more):
    attention = MultiHeadAttention(8, 2, **(made_with or {}))
    return attention(*(torch.ones(shape) for shape in shapes), **more)


@pytest.mark.parametrize(
    ("wrong", "kind", "text"),
    [
        (
            lambda: MultiHeadAttention(10, 4),
            ShapeError,
            "d_model=10 is not a multiple of n_heads=4.",
        ),
        (
            lambda: MultiHeadAttention(8, 4, n_kv_heads=3),
            ShapeError,
            "n_heads=4 is not a multiple of n_kv_heads=3.",
        ),
        (
            lambda: MultiHeadAttention(8, 0),
            ShapeError,
            "n_heads must be at least 1, but it is 0.",
        ),
        (
            lambda: MultiHeadAttention(8, 2.0),
            TypeError,
            "n_heads must be a whole number, but it is 2.0.",
        ),
        (
            lambda: MultiHeadAttention(8, 2, dropout=-0.1),
            ValueError,
            "dropout must be at least 0 and less than 1, but it is -0.1.",
        ),
        (
            lambda: call((3, 7)),
            ShapeError,
            "d_model is 8, but x with shape (3, 7) has 7 there.",
        ),
        (
            lambda: call((8,)),
            ShapeError,
            "x needs the axes (n_q, d_model) at its end, but its shape is (8,).",
        ),
        (
            lambda: call((3, 8), (4, 6)),
            ShapeError,
            "d_memory is 8, but memory with shape (4, 6) has 6 there.",
        ),
        (
            lambda: call((3, 8), made_with={"d_memory": 6}),
            ShapeError,
            "this module needs a memory: it reads d_memory=6, but x has d_model=8.",
        ),
        (
            lambda: call((3, 8), (4, 8), made_with={"d_values": 6}),
            ShapeError,
            "this module needs values: it reads d_values=6, but the memory has "
            "d_memory=8.",
        ),
        (
            lambda: call((3, 8), (4, 8), values=torch.ones(5, 8)),
            ShapeError,
            "n_k is 4, but values with shape (5, 8) has 5 there.",
        ),
        (
            lambda: call((3, 8), values=torch.ones(3, 8)),
            ValueError,
            "values were given without a memory.",
        ),
        (
            lambda: call((2, 3, 8), (5, 4, 8)),
            ShapeError,
            "the batch axes of q (2, 2), k (5, 2) and v (5, 2) do not broadcast.",
        ),
        (
            lambda: call((2, 3, 8), mask=torch.ones(2, 3, 3, dtype=torch.bool)[:1, :2]),
            ShapeError,
            "mask with shape (1, 2, 3) does not broadcast to the scores' shape "
            "(2, 2, 3, 3), which ends in (n_q, n_k).",
        ),
        (
            lambda: call((3, 8), positions=torch.arange(3)),
            ValueError,
            "positions were given, but the module has no rotate.",
        ),
        (
            lambda: call((3, 8), (4, 8), made_with={"rotate": lambda x, at: x}),
            ValueError,
            "rotate puts x at its positions, but a memory has none in the same text; "
            "cross-attention needs a module without rotate.",
        ),
        (
            lambda: call(
                (3, 8),
                made_with={"rotate": lambda x, at: x},
                positions=torch.arange(1),
            ),
            ShapeError,
            "positions has shape (1,), which must end in n_q=3, the tokens of x.",
        ),
        (
            lambda: call((3, 8), made_with={"rotate": lambda x, at: x[..., :2]}),
            ShapeError,
            "rotate was given q with shape (2, 3, 4) and returned (2, 3, 2); the shape "
            "must stay.",
        ),
        (
            lambda: MultiHeadAttention(8, 2)(np.ones((3, 8))),
            TypeError,
            "x must be a torch.Tensor, but it is a ndarray; torch.from_numpy(x) makes "
            "one.",
        ),
    ],
)
def test_errors_say_which_size(wrong, kind, text):
    with pytest.raises(kind) as error:
        wrong()
    assert str(error.value) == text
