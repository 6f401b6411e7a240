"""Windows along slabs: SDPA's numbers and gradients with the dense mask, errors."""

import copy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import scaled_dot_product_attention as sdpa
from torch_tools import close, normal, one_thread  # noqa: F401

from attnlib import masks
from attnlib.nn import scaled_dot_product, slabs, window_attention, windows
from attnlib.shapes import ShapeError

steady = settings(derandomize=True, deadline=None, max_examples=60)
sizes = st.integers(0, 13)


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    """Tiles so small that a short sequence has many, and one head at a time."""
    monkeypatch.setattr(windows, "ROWS", 3)
    monkeypatch.setattr(windows, "ALIGN", 1)
    monkeypatch.setattr(slabs, "SCORES", 25)


def dense(n_q, n_k, left, right=0, n_global=0, causal=None):
    mask = masks.window(n_q, n_k, left=left, right=right)
    mask = mask | masks.global_tokens(n_q, n_k, n_global=n_global)
    if causal or (causal is None and right == 0):
        mask = mask & masks.causal(n_q, n_k)
    return torch.from_numpy(mask)


def inputs(*batch, n_q, n_k, d_k=3, d_v=2, n_kv=None, grad=False, dtype=None):
    of_k = batch if n_kv is None else (*batch[:-1], n_kv)
    shapes = ((*batch, n_q, d_k), (*of_k, n_k, d_k), (*of_k, n_k, d_v))
    made = [normal(*shape, seed=seed) for seed, shape in enumerate(shapes)]
    return [x.to(dtype or x.dtype).requires_grad_(grad) for x in made]


def gradients(out, tensors, rounded=torch.float64):
    upstream = normal(*out.shape, seed=9).to(rounded).to(out.dtype)
    return torch.autograd.grad(out, tensors, upstream)


# Values and gradients: those of the dense mask.


@steady
@given(st.data(), sizes, sizes, st.booleans())
def test_it_is_the_dense_mask(data, n_q, n_k, future):
    most = max(n_q, n_k, 1) - 1
    left = data.draw(st.integers(0, most))
    right = data.draw(st.integers(0, most)) if future else 0
    n_global = data.draw(st.integers(0, n_k))
    causal = data.draw(st.sampled_from([None, False] if right else [None, False, True]))
    q, k, v = inputs(2, n_q=n_q, n_k=n_k, grad=True)
    how = {"left": left, "right": right, "n_global": n_global, "causal": causal}
    ours = window_attention(q, k, v, **how)
    theirs = scaled_dot_product(q, k, v, dense(n_q, n_k, **how)).out
    close(ours, theirs)
    for one, other in zip(
        gradients(ours, (q, k, v)), gradients(theirs, (q, k, v)), strict=True
    ):
        close(one, other)


@pytest.mark.parametrize("rows", [1, 4, 128])
@pytest.mark.parametrize(("scores", "align"), [(1, 4), (10**6, 16)])
@pytest.mark.parametrize("n_global", [0, 2, 5])
@pytest.mark.parametrize("right", [0, 6])
def test_sdpa_says_the_same_whatever_the_tiles(
    monkeypatch, rows, scores, align, n_global, right
):
    monkeypatch.setattr(windows, "ROWS", rows)
    monkeypatch.setattr(windows, "ALIGN", align)
    monkeypatch.setattr(slabs, "SCORES", scores)
    q, k, v = inputs(2, 3, n_q=29, n_k=31, grad=True)
    how = {"left": 5, "right": right, "n_global": n_global}
    ours = window_attention(q, k, v, **how)
    theirs = sdpa(q, k, v, attn_mask=dense(29, 31, **how))
    close(ours, theirs)
    for one, other in zip(
        gradients(ours, (q, k, v)), gradients(theirs, (q, k, v)), strict=True
    ):
        close(one, other)


@pytest.mark.parametrize("n_global", [0, 3])
def test_gradcheck(n_global):
    tensors = inputs(2, n_q=8, n_k=9, grad=True)

    def window(*tensors):
        return window_attention(*tensors, left=2, right=1, n_global=n_global, scale=0.8)

    assert torch.autograd.gradcheck(window, tensors)


@pytest.mark.parametrize("n_kv", [1, 2])
def test_query_heads_share_kv_heads(n_kv):
    tensors = inputs(2, 4, n_q=10, n_k=11, n_kv=n_kv, grad=True)
    ours = window_attention(*tensors, left=3, n_global=1)
    mask = dense(10, 11, left=3, n_global=1)
    theirs = sdpa(*tensors, attn_mask=mask, enable_gqa=True)
    close(ours, theirs)
    for one, other in zip(
        gradients(ours, tensors), gradients(theirs, tensors), strict=True
    ):
        close(one, other)


@pytest.mark.parametrize(
    ("of_q", "of_k"),
    [((), ()), ((2, 3), (3,)), ((1, 3), (2, 3)), ((), (2,)), ((3,), ()), ((0,), (0,))],
)
def test_other_batch_axes_broadcast(of_q, of_k):
    q = normal(*of_q, 7, 3, grad=True)
    k, v = normal(*of_k, 8, 3, seed=1, grad=True), normal(*of_k, 8, 2, seed=2)
    ours = window_attention(q, k, v, left=2)
    theirs = scaled_dot_product(q, k, v, dense(7, 8, left=2)).out
    close(ours, theirs)
    for one, other in zip(gradients(ours, (q, k)), gradients(theirs, (q, k)), strict=1):
        close(one, other)


def test_strides_do_not_matter():
    q, k, v = (normal(2, 9, 3, 4, seed=seed).transpose(1, 2) for seed in range(3))
    assert not q.is_contiguous()
    ours = window_attention(q, k, v, left=2)
    close(ours, window_attention(*(x.contiguous() for x in (q, k, v)), left=2), 0)


# Floats of other sizes, and huge ones.


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_half_precision_is_as_near_as_rounding_lets_it(dtype):
    rounded = inputs(2, 3, n_q=40, n_k=40, dtype=dtype)
    exact = [x.double().requires_grad_() for x in rounded]
    tensors = [x.requires_grad_() for x in rounded]
    ours = window_attention(*tensors, left=11, n_global=2)
    theirs = sdpa(*exact, attn_mask=dense(40, 40, left=11, n_global=2))
    assert ours.dtype == dtype
    pairs = [(ours, theirs)]
    pairs += zip(
        gradients(ours, tensors, dtype), gradients(theirs, exact, dtype), strict=True
    )
    for one, other in pairs:
        assert one.dtype == dtype
        error = (one.double() - other).norm() / other.norm()
        assert error < (4 if dtype == torch.float32 else 0.35) * torch.finfo(dtype).eps


def test_scores_past_the_end_of_float16_do_no_harm():
    q, k, v = (300 * x for x in inputs(n_q=9, n_k=9, dtype=torch.float16))
    out = window_attention(q, k, v / 300, left=3)
    exact = sdpa(
        q.double(), k.double(), v.double() / 300, attn_mask=dense(9, 9, left=3)
    )
    close(out.double(), exact, atol=2e-3)


# Rules of the course.


def test_a_query_without_keys_gets_zeros_and_so_do_its_gradients():
    q, k, v = inputs(2, n_q=9, n_k=4, grad=True)
    out = window_attention(q, k, v, left=1)
    assert torch.equal(out[:, :5], torch.zeros(2, 5, 2, dtype=out.dtype))
    d_q, d_k, d_v = gradients(out, (q, k, v))
    assert torch.equal(d_q[:, :5], torch.zeros(2, 5, 3, dtype=out.dtype))
    assert torch.isfinite(d_k).all()
    assert torch.isfinite(d_v).all()


def test_the_future_stays_hidden_from_global_tokens_too():
    q, k, v = inputs(n_q=9, n_k=9)
    later_k, later_v = k.clone(), v.clone()
    later_k[5:], later_v[5:] = 7.0, 7.0
    before = window_attention(q, k, v, left=2, n_global=3)
    after = window_attention(q, later_k, later_v, left=2, n_global=3)
    assert torch.equal(after[:5], before[:5])
    seen = window_attention(q, later_k, later_v, left=2, n_global=3, causal=False)
    assert not torch.allclose(seen[:3], before[:3])


def test_a_nan_outside_the_window_is_not_seen():
    q, k, v = inputs(n_q=20, n_k=20)
    k[0] = v[0] = torch.nan
    out = window_attention(q, k, v, left=2)
    assert torch.isfinite(out[6:]).all()


def test_inputs_stay_untouched_and_no_graph_is_kept_without_need():
    q, k, v = inputs(2, n_q=8, n_k=8)
    before = copy.deepcopy((q, k, v))
    assert not window_attention(q, k, v, left=2).requires_grad
    for one, other in zip((q, k, v), before, strict=True):
        assert torch.equal(one, other)


def test_what_is_computed_grows_as_n_not_as_n_squared(monkeypatch):
    monkeypatch.setattr(windows, "ROWS", 128)
    counts = []
    for n in (4096, 8192):
        plan = windows.Windows(
            n, n, 255, 0, 4, True, torch.float32, torch.device("cpu")
        )
        counts.append(sum(tile.n_scores for tile in plan()))
        allowed = n * (256 + 4)
        assert allowed * 0.97 < counts[-1] < 1.5 * allowed
    assert counts[1] / counts[0] == pytest.approx(2, abs=0.05)
    assert len(plan._kept) < 8  # one bias for all tiles away from the ends


# Errors.


@pytest.mark.parametrize(
    ("how", "kind", "text"),
    [
        (
            {"left": 9},
            ShapeError,
            "left=9 makes a window wider than the sequence, n_q=8 and n_k=9; left=8 "
            "reaches everything. (The tokens are the last axis but one.)",
        ),
        (
            {"left": 1, "right": 20},
            ShapeError,
            "right=20 makes a window wider than the sequence, n_q=8 and n_k=9; "
            "right=8 reaches everything. (The tokens are the last axis but one.)",
        ),
        ({"left": -1}, ShapeError, "left must be at least 0, but it is -1."),
        ({"left": 2.0}, TypeError, "left must be a whole number, but it is 2.0."),
        (
            {"left": 1, "n_global": 10},
            ShapeError,
            "n_global=10 is more than the n_k=9 keys.",
        ),
        (
            {"left": 1, "right": 2, "causal": True},
            ValueError,
            "causal hides what comes after a query, but right=2 shows it; take "
            "right=0, or causal=False.",
        ),
    ],
)
def test_a_window_that_makes_no_sense_is_refused(how, kind, text):
    with pytest.raises(kind) as error:
        window_attention(*inputs(2, n_q=8, n_k=9), **how)
    assert str(error.value) == text


@pytest.mark.parametrize(
    ("change", "kind", "text"),
    [
        (
            lambda q, k, v: (q, k[..., :2], v),
            ShapeError,
            "d_k is 3 in q with shape (2, 4, 8, 3) but 2 in k with shape (2, 4, 9, 2); "
            "q and k must agree in d_k.",
        ),
        (
            lambda q, k, v: (q, k, v[..., 1:, :]),
            ShapeError,
            "n_k is 9 in k with shape (2, 4, 9, 3) but 8 in v with shape (2, 4, 8, 2); "
            "k and v must agree in n_k.",
        ),
        (
            lambda q, k, v: (q, k[:, :3], v[:, :3]),
            ShapeError,
            "n_heads=4 of q is not a multiple of n_kv_heads=3 of k and v.",
        ),
        (
            lambda q, k, v: (q, k[:, :2], v),
            ShapeError,
            "the batch axes of q (2, 4), k (2, 2) and v (2, 4) do not broadcast.",
        ),
        (
            lambda q, k, v: (q, k.float(), v),
            TypeError,
            "q, k and v must have one dtype, but they have float64, float32 and "
            "float64.",
        ),
        (
            lambda q, k, v: (q, k.to("meta"), v),
            TypeError,
            "q, k and v must be on one device, but they are on cpu, meta and cpu.",
        ),
        (
            lambda q, k, v: (q.numpy(), k, v),
            TypeError,
            "q must be a torch.Tensor, but it is a ndarray; torch.from_numpy(q) makes "
            "one.",
        ),
        (
            lambda q, k, v: (q.long(), k, v),
            TypeError,
            "q must be a floating tensor, but its dtype is int64.",
        ),
    ],
)
def test_tensors_that_do_not_fit_are_named(change, kind, text):
    with pytest.raises(kind) as error:
        window_attention(*change(*inputs(2, 4, n_q=8, n_k=9)), left=1)
    assert str(error.value) == text


def test_a_second_derivative_is_a_clear_error():
    q, k, v = inputs(n_q=5, n_k=5, grad=True)
    out = window_attention(q, k, v, left=1)
    (d_q,) = torch.autograd.grad(out.sum(), q, create_graph=True)
    text = (
        "window_attention has no second derivative; attnlib.nn.scaled_dot_product with "
        "a mask has one."
    )
    with pytest.raises(NotImplementedError) as error:
        torch.autograd.grad(d_q.sum(), q)
    assert str(error.value) == text


def test_numpy_integers_are_sizes():
    q, k, v = inputs(n_q=5, n_k=5)
    two = window_attention(q, k, v, left=np.int64(2))
    close(two, window_attention(q, k, v, left=2), 0)
