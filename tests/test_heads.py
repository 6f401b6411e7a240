"""Heads: the index map, the loop over heads, PyTorch's module, and shared heads."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import scaled_dot_product_attention as sdpa

from attnlib.attention import scaled_dot_product
from attnlib.heads import (
    merge_heads,
    multi_head,
    parameter_count,
    repeat_heads,
    split_heads,
)
from attnlib.masks import causal, padding
from attnlib.shapes import ShapeError

steady = settings(derandomize=True, deadline=None, max_examples=60)
sizes = st.integers(0, 4)
heads = st.integers(1, 4)
batches = st.sampled_from([(), (2,), (0,), (3, 2)])


def matrices(d_model, n_heads, d_k, d_v, *, n_kv_heads=None, d_memory=None, seed=0):
    rng = np.random.default_rng(seed)
    n_kv_heads, d_memory = n_kv_heads or n_heads, d_memory or d_model
    shapes = (
        (d_model, n_heads * d_k),
        (d_memory, n_kv_heads * d_k),
        (d_memory, n_kv_heads * d_v),
        (n_heads * d_v, d_model),
    )
    return [rng.normal(size=shape) / 2 for shape in shapes]


def tokens(*shape, seed=9):
    return np.random.default_rng(seed).normal(size=shape)


# split and merge


@steady
@given(batches, sizes, heads, sizes)
def test_split_follows_its_index_map_and_merge_undoes_it(batch, n, n_heads, d):
    x = np.arange(np.prod((*batch, n, n_heads * d), dtype=int))
    x = x.reshape(*batch, n, n_heads * d)
    split = split_heads(x, n_heads)
    assert split.shape == (*batch, n_heads, n, d)
    for h in range(n_heads):
        np.testing.assert_array_equal(split[..., h, :, :], x[..., h * d : (h + 1) * d])
    np.testing.assert_array_equal(merge_heads(split), x)


def test_a_reshape_alone_mixes_tokens():
    x = np.arange(24).reshape(4, 6)
    assert not np.array_equal(split_heads(x, 3), x.reshape(3, 4, 2))


def test_split_copies_nothing_and_keeps_the_type():
    x = np.ones((3, 4), np.float16)
    assert np.shares_memory(split_heads(x, 2), x)
    assert split_heads(x, 2).dtype == merge_heads(split_heads(x, 2)).dtype == np.float16


def test_split_reads_a_transposed_array_as_well():
    x = tokens(6, 4).T
    np.testing.assert_array_equal(split_heads(x, 3), split_heads(x.copy(), 3))


# multi_head


def by_a_loop(x, W_q, W_k, W_v, W_o, n_heads, n_kv_heads, memory, mask):
    """Every head alone: its columns of the matrices, its rows of W_o, summed."""
    d_k, d_v = W_q.shape[1] // n_heads, W_v.shape[1] // n_kv_heads
    out = 0
    for h in range(n_heads):
        shared = h // (n_heads // n_kv_heads)
        q = x @ W_q[:, h * d_k : (h + 1) * d_k]
        k = memory @ W_k[:, shared * d_k : (shared + 1) * d_k]
        v = memory @ W_v[:, shared * d_v : (shared + 1) * d_v]
        out = out + scaled_dot_product(q, k, v, mask).out @ W_o[h * d_v : (h + 1) * d_v]
    return out


@steady
@given(batches, sizes, sizes, heads, st.integers(1, 3), sizes, sizes)
def test_batched_heads_equal_the_loop(batch, n_q, n_k, n_kv_heads, group, d_k, d_v):
    n_heads, d_model, d_memory = n_kv_heads * group, 5, 3
    weights = matrices(
        d_model, n_heads, d_k, d_v, n_kv_heads=n_kv_heads, d_memory=d_memory
    )
    x, memory = tokens(*batch, n_q, d_model), tokens(*batch, n_k, d_memory, seed=8)
    mask = causal(n_q, n_k)
    stages = multi_head(
        x, *weights, n_heads, n_kv_heads=n_kv_heads, memory=memory, mask=mask
    )
    assert stages.q.shape == (*batch, n_heads, n_q, d_k)
    assert stages.k.shape == (*batch, n_kv_heads, n_k, d_k)
    assert stages.v.shape == (*batch, n_kv_heads, n_k, d_v)
    assert stages.weights.shape == (*batch, n_heads, n_q, n_k)
    assert stages.mixed.shape == (*batch, n_heads, n_q, d_v)
    expected = by_a_loop(x, *weights, n_heads, n_kv_heads, memory, mask)
    np.testing.assert_allclose(stages.out, expected, rtol=0, atol=1e-12)


def load(module, W_q, W_k, W_v, W_o):
    """Our columns are torch's rows."""
    with torch.no_grad():
        if module.in_proj_weight is not None:
            module.in_proj_weight.copy_(torch.from_numpy(np.hstack([W_q, W_k, W_v]).T))
        else:
            module.q_proj_weight.copy_(torch.from_numpy(W_q.T))
            module.k_proj_weight.copy_(torch.from_numpy(W_k.T))
            module.v_proj_weight.copy_(torch.from_numpy(W_v.T))
        module.out_proj.weight.copy_(torch.from_numpy(W_o.T))


@pytest.mark.parametrize("d_memory", [12, 7])
def test_equal_to_torchs_module_with_both_masks(d_memory):
    batch, n_q, n_k, n_heads, d_model = 2, 4, 6, 3, 12
    weights = matrices(d_model, n_heads, 4, 4, d_memory=d_memory)
    module = torch.nn.MultiheadAttention(
        d_model,
        n_heads,
        bias=False,
        batch_first=True,
        kdim=d_memory,
        vdim=d_memory,
        dtype=torch.float64,
    )
    load(module, *weights)
    x, memory = tokens(batch, n_q, d_model), tokens(batch, n_k, d_memory, seed=8)
    real, before = padding([4, 6], n_k), causal(n_q, n_k)
    ours = multi_head(x, *weights, n_heads, memory=memory, mask=real & before)
    x, memory = torch.from_numpy(x), torch.from_numpy(memory)
    out, average = module(
        x,
        memory,
        memory,
        key_padding_mask=torch.from_numpy(~real[:, 0, 0]),  # True = must not look
        attn_mask=torch.from_numpy(~before),
    )
    np.testing.assert_allclose(ours.out, out.detach().numpy(), rtol=0, atol=1e-10)
    weights = ours.weights.mean(axis=1)  # torch hands back the average over heads
    np.testing.assert_allclose(weights, average.detach().numpy(), rtol=0, atol=1e-10)


@pytest.mark.parametrize("n_kv_heads", [1, 2, 3, 6])
def test_shared_heads_are_sdpas_enable_gqa(n_kv_heads):
    q, k, v = tokens(2, 6, 4, 5), tokens(2, n_kv_heads, 7, 5, seed=1), None
    v = tokens(2, n_kv_heads, 7, 5, seed=2)
    ours = scaled_dot_product(q, repeat_heads(k, 6), repeat_heads(v, 6)).out
    q, k, v = (torch.from_numpy(array) for array in (q, k, v))
    theirs = sdpa(q, k, v, enable_gqa=True).numpy()
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10)


def test_neighbouring_query_heads_share_and_no_others():
    k = np.array([10.0, 20.0]).reshape(2, 1, 1)
    assert repeat_heads(k, 6).ravel().tolist() == [10, 10, 10, 20, 20, 20]


def test_grouped_heads_are_many_heads_with_repeated_columns():
    W_q, W_k, W_v, W_o = matrices(8, 4, 3, 5, n_kv_heads=2)
    x = tokens(2, 6, 8)
    grouped = multi_head(x, W_q, W_k, W_v, W_o, 4, n_kv_heads=2)

    def repeat(W, d):
        return merge_heads(repeat_heads(split_heads(W, 2), 4)).reshape(8, 4 * d)

    full = multi_head(x, W_q, repeat(W_k, 3), repeat(W_v, 5), W_o, 4)
    np.testing.assert_allclose(grouped.out, full.out, atol=1e-13)


def test_one_head_is_plain_attention():
    W_q, W_k, W_v, W_o = matrices(4, 1, 2, 5)
    x = tokens(3, 4)
    plain = scaled_dot_product(x @ W_q, x @ W_k, x @ W_v)
    stages = multi_head(x, W_q, W_k, W_v, W_o, 1)
    np.testing.assert_allclose(stages.weights[0], plain.weights)
    np.testing.assert_allclose(stages.out, plain.out @ W_o)


def test_a_head_has_a_score_table_of_rank_d_k():
    stages = multi_head(tokens(7, 12), *matrices(12, 4, 3, 3), 4)
    assert np.linalg.matrix_rank(stages.raw_scores).tolist() == [3, 3, 3, 3]


def test_inputs_stay_and_float32_stays():
    arrays = [array.astype(np.float32) for array in matrices(6, 3, 2, 2)]
    x = tokens(2, 5, 6).astype(np.float32)
    before = [array.copy() for array in (x, *arrays)]
    for array in (x, *arrays):
        array.flags.writeable = False
    stages = multi_head(x, *arrays, 3, mask=padding([3, 5], 5))
    assert stages.out.dtype == np.float32
    for old, new in zip(before, (x, *arrays), strict=True):
        np.testing.assert_array_equal(old, new)


# parameters


@pytest.mark.parametrize("n_heads", [1, 2, 4, 8])
@pytest.mark.parametrize("bias", [False, True])
def test_parameters_are_torchs_and_do_not_depend_on_the_heads(n_heads, bias):
    module = torch.nn.MultiheadAttention(8, n_heads, bias=bias)
    count = parameter_count(8, n_heads, bias=bias)
    assert count == sum(parameter.numel() for parameter in module.parameters())
    assert count == 4 * 8**2 + (4 * 8 if bias else 0)


@steady
@given(heads, st.integers(1, 3), heads, heads)
def test_parameters_are_the_numbers_in_the_matrices(n_kv_heads, group, d_k, d_v):
    n_heads = n_kv_heads * group
    arrays = matrices(7, n_heads, d_k, d_v, n_kv_heads=n_kv_heads)
    count = parameter_count(7, n_heads, n_kv_heads=n_kv_heads, d_k=d_k, d_v=d_v)
    assert count == sum(array.size for array in arrays)


def test_parameters_of_known_models():
    # BERT-base: 768 with biases. Llama-3 8B: 4096, 32 query heads of 128, 8 shared.
    assert parameter_count(768, 12, bias=True) == 2_362_368
    assert parameter_count(4096, 32, n_kv_heads=8) == 41_943_040


# errors


def call(n_heads=2, *, W=(8, 8, 8, 8), rows=8, **more):
    arrays = [np.ones((rows, columns)) for columns in W]
    return multi_head(np.ones((3, 8)), *arrays, n_heads, **more)


@pytest.mark.parametrize(
    ("wrong", "kind", "text"),
    [
        (
            lambda: split_heads(np.ones((3, 10)), 4),
            ShapeError,
            "d_model=10 is not a multiple of n_heads=4.",
        ),
        (
            lambda: split_heads(np.ones(10), 2),
            ShapeError,
            "x needs the axes (n, d_model) at its end, but its shape is (10,).",
        ),
        (
            lambda: split_heads(np.ones((3, 4)), 0),
            ShapeError,
            "n_heads must be at least 1, but it is 0.",
        ),
        (
            lambda: split_heads(np.ones((3, 4)), 2.0),
            TypeError,
            "n_heads must be a whole number, but it is 2.0.",
        ),
        (
            lambda: merge_heads(np.ones((3, 4))),
            ShapeError,
            "x needs the axes (n_heads, n, d) at its end, but its shape is (3, 4).",
        ),
        (
            lambda: repeat_heads(np.ones((4, 3, 2)), 6),
            ShapeError,
            "n_heads=6 is not a multiple of n_kv_heads=4.",
        ),
        (
            lambda: repeat_heads(np.ones((0, 3, 2)), 6),
            ShapeError,
            "n_heads=6 is not a multiple of n_kv_heads=0.",
        ),
        (
            lambda: call(4, n_kv_heads=3),
            ShapeError,
            "n_heads=4 is not a multiple of n_kv_heads=3.",
        ),
        (
            lambda: call(W=(7, 8, 8, 8)),
            ShapeError,
            "W_q has 7 columns, not a multiple of n_heads=2.",
        ),
        (
            lambda: call(W=(8, 8, 7, 8)),
            ShapeError,
            "W_v has 7 columns, not a multiple of n_kv_heads=2.",
        ),
        (
            lambda: call(n_kv_heads=1),
            ShapeError,
            "W_k has 8 columns, but n_kv_heads=1 heads of d_k=4 need 4.",
        ),
        (
            lambda: call(W=(8, 8, 4, 8)),
            ShapeError,
            "W_o has 8 rows, but n_heads=2 heads of d_v=2 need 4.",
        ),
        (
            lambda: call(rows=5),
            ShapeError,
            "d_model is 8 in x with shape (3, 8) but 5 in W_q with shape (5, 8); "
            "x and W_q must agree in d_model.",
        ),
        (
            lambda: call(memory=np.ones((6, 5))),
            ShapeError,
            "d_memory is 5 in memory with shape (6, 5) but 8 in W_k with shape (8, 8); "
            "memory and W_k must agree in d_memory.",
        ),
        (
            lambda: multi_head(np.ones((3, 8)), *[np.ones((2, 8, 8))] * 4, 2),
            ShapeError,
            "W_q must have 2 axes, but its shape is (2, 8, 8).",
        ),
        (
            lambda: call(mask=np.ones((4, 4), bool)),
            ShapeError,
            "mask with shape (4, 4) does not broadcast to the scores' shape (2, 3, 3), "
            "which ends in (n_q, n_k).",
        ),
        (
            lambda: parameter_count(10, 4),
            ShapeError,
            "d_model=10 is not a multiple of n_heads=4.",
        ),
        (
            lambda: parameter_count(8, 4, n_kv_heads=3),
            ShapeError,
            "n_heads=4 is not a multiple of n_kv_heads=3.",
        ),
    ],
)
def test_errors_say_which_size(wrong, kind, text):
    with pytest.raises(kind) as error:
        wrong()
    assert str(error.value) == text
