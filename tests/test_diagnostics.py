"""Entropy, saturation and gradients: known values, and PyTorch's autograd."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from torch.nn.functional import scaled_dot_product_attention as sdpa

from attnlib.attention import scaled_dot_product, softmax
from attnlib.diagnostics import (
    effective_keys,
    entropy,
    jacobian_norm,
    saturated_share,
    scaled_dot_product_backward,
    softmax_backward,
    softmax_jacobian,
)
from attnlib.shapes import ShapeError

steady = settings(derandomize=True, deadline=None, max_examples=50)
scores = hnp.arrays(
    np.float64,
    hnp.array_shapes(min_dims=1, max_dims=3, max_side=5),
    elements=st.floats(-20, 20),
)


# entropy and saturation


@pytest.mark.parametrize("n", [1, 2, 7])
def test_entropy_of_uniform_one_hot_and_empty(n):
    assert entropy(np.full(n, 1 / n)) == pytest.approx(math.log(n))
    assert effective_keys(np.full(n, 1 / n)) == pytest.approx(n)
    one_hot = np.eye(n)[0]
    assert entropy(one_hot) == 0
    assert math.copysign(1, entropy(one_hot)) == 1  # not -0, which would print as -0.0
    assert effective_keys(one_hot) == 1
    assert entropy(np.zeros(n)) == effective_keys(np.zeros(n)) == 0


@steady
@given(scores)
def test_entropy_is_torchs(x):
    weights = softmax(x)
    logits = torch.from_numpy(x)
    expected = torch.distributions.Categorical(logits=logits).entropy().numpy()
    np.testing.assert_allclose(entropy(weights), expected, rtol=0, atol=1e-9)
    assert (entropy(weights) <= math.log(x.shape[-1]) + 1e-12).all()


def test_saturated_rows_are_counted_without_the_empty_ones():
    weights = np.zeros((2, 4, 3))
    weights[0, :2, 0] = 1  # two saturated, two empty
    weights[1] = 1 / 3
    assert saturated_share(weights).tolist() == [1, 0]
    weights[0, 2] = [0.99, 0.01, 0]  # at the threshold is not beyond it
    assert saturated_share(weights)[0] == pytest.approx(2 / 3)
    assert saturated_share(weights, threshold=0.98)[0] == 1
    assert saturated_share(np.zeros((4, 3))) == 0
    assert saturated_share(np.zeros((0, 3))) == 0


def test_scale_keeps_rows_from_saturating():
    rng = np.random.default_rng(0)
    q, k = rng.normal(size=(512, 256)), rng.normal(size=(64, 256))
    raw = scaled_dot_product(q, k, k, scale=1.0).weights
    scaled = scaled_dot_product(q, k, k).weights
    assert saturated_share(raw) > 0.4  # measured beforehand: about a half
    assert saturated_share(scaled) == 0
    assert (
        np.median(jacobian_norm(raw)) < 0.06 < 0.15 < np.median(jacobian_norm(scaled))
    )


# the gradient of softmax


@steady
@given(scores)
def test_jacobian_is_autograds(x):
    row = x.reshape(-1, x.shape[-1])[0]
    expected = torch.autograd.functional.jacobian(
        lambda s: torch.softmax(s, -1), torch.from_numpy(row)
    ).numpy()
    jacobian = softmax_jacobian(softmax(row))
    np.testing.assert_allclose(jacobian, expected, rtol=0, atol=1e-12)
    norm = np.linalg.norm(expected)
    np.testing.assert_allclose(jacobian_norm(softmax(row)), norm, atol=1e-12)


def test_jacobian_of_a_batch_is_the_jacobian_of_each_row():
    weights = softmax(np.random.default_rng(0).normal(size=(2, 3, 4)))
    jacobian = softmax_jacobian(weights)
    assert jacobian.shape == (2, 3, 4, 4)
    np.testing.assert_array_equal(jacobian[1, 2], softmax_jacobian(weights[1, 2]))
    np.testing.assert_allclose(jacobian.sum(axis=-1), 0, atol=1e-15)
    np.testing.assert_allclose(jacobian, np.swapaxes(jacobian, -1, -2), atol=1e-15)


@steady
@given(scores, st.integers(0, 99))
def test_softmax_backward_is_autograds_and_the_jacobian_times_the_gradient(x, seed):
    grad = np.random.default_rng(seed).normal(size=x.shape)
    leaf = torch.from_numpy(x).requires_grad_()
    torch.softmax(leaf, -1).backward(torch.from_numpy(grad))
    ours = softmax_backward(softmax(x), grad)
    np.testing.assert_allclose(ours, leaf.grad.numpy(), rtol=0, atol=1e-12)
    product = (softmax_jacobian(softmax(x)) @ grad[..., None])[..., 0]
    np.testing.assert_allclose(ours, product, rtol=0, atol=1e-12)


def test_no_gradient_passes_a_saturated_or_an_empty_row():
    grad = [[3.0, -1.0, 2.0]] * 2
    assert (softmax_backward([[0, 1, 0], [0, 0, 0]], grad) == 0).all()


# the gradient of attention


def autograd(q, k, v, mask, grad, scale):
    leaves = [torch.from_numpy(array).requires_grad_() for array in (q, k, v)]
    mask = None if mask is None else torch.from_numpy(mask)
    sdpa(*leaves, attn_mask=mask, scale=scale).backward(torch.from_numpy(grad))
    return [leaf.grad.numpy() for leaf in leaves]


@steady
@given(st.data(), st.integers(1, 4), st.integers(1, 5), st.integers(1, 4))
def test_attention_backward_is_autograds_with_empty_rows_too(data, n_q, n_k, d_k):
    mask = data.draw(st.none() | hnp.arrays(bool, (n_q, n_k)))
    scale = data.draw(st.sampled_from([None, 1.0, 0.0, -0.7]))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    shapes = (2, n_q, d_k), (2, n_k, d_k), (2, n_k, 3), (2, n_q, 3)
    q, k, v, grad = (rng.normal(size=shape) for shape in shapes)
    ours = scaled_dot_product_backward(q, k, v, mask, grad, scale=scale)
    expected = autograd(q, k, v, mask, grad, scale)
    for gradient, theirs in zip((ours.q, ours.k, ours.v), expected, strict=True):
        np.testing.assert_allclose(gradient, theirs, rtol=0, atol=1e-10)


def test_gradients_of_broadcast_arguments_are_summed():
    rng = np.random.default_rng(0)
    q, grad = rng.normal(size=(2, 3, 4, 5)), rng.normal(size=(2, 3, 4, 7))
    k, v = rng.normal(size=(1, 6, 5)), rng.normal(size=(6, 7))
    ours = scaled_dot_product_backward(q, k, v, None, grad)
    leaves = [torch.from_numpy(array).requires_grad_() for array in (q, k, v)]
    scores = leaves[0] @ leaves[1].mT / 5**0.5
    (torch.softmax(scores, -1) @ leaves[2]).backward(torch.from_numpy(grad))
    for gradient, leaf in zip((ours.q, ours.k, ours.v), leaves, strict=True):
        assert gradient.shape == leaf.shape
        np.testing.assert_allclose(gradient, leaf.grad.numpy(), rtol=0, atol=1e-10)


def test_every_stage_of_the_gradient_is_the_slope_of_the_loss():
    rng = np.random.default_rng(0)
    q, k, v, grad = (rng.normal(size=s) for s in ((3, 4), (5, 4), (5, 2), (3, 2)))
    stages = scaled_dot_product(q, k, v)
    ours = scaled_dot_product_backward(q, k, v, None, grad)

    def slope(loss, stage):
        slopes = np.zeros_like(stage)
        for index in np.ndindex(stage.shape):
            step = np.zeros_like(stage)
            step[index] = 1e-6
            slopes[index] = (loss(stage + step) - loss(stage - step)) / 2e-6
        return slopes

    losses = {
        "weights": lambda weights: (grad * (weights @ v)).sum(),
        "scores": lambda scores: (grad * (softmax(scores) @ v)).sum(),
        "raw_scores": lambda raw: (grad * (softmax(raw / 2) @ v)).sum(),
    }
    for name, loss in losses.items():
        expected = slope(loss, getattr(stages, name))
        np.testing.assert_allclose(getattr(ours, name), expected, atol=1e-8)


def test_zero_tokens_have_no_gradient():
    q, k, v = np.ones((0, 3)), np.ones((4, 3)), np.ones((4, 2))
    ours = scaled_dot_product_backward(q, k, v, None, np.ones((0, 2)))
    assert ours.q.shape == (0, 3)
    assert (ours.k == 0).all()
    ours = scaled_dot_product_backward(k, q, np.ones((0, 2)), None, np.ones((4, 2)))
    assert (ours.q == 0).all()


def test_queries_without_features_have_an_empty_gradient():
    q, k, v = np.ones((3, 0)), np.ones((4, 0)), np.ones((4, 2))
    ours = scaled_dot_product_backward(q, k, v, None, np.ones((3, 2)))
    assert ours.q.shape == (3, 0)
    np.testing.assert_allclose(ours.v, 3 / 4)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_gradients_keep_the_type(dtype):
    q, k, v = (np.ones(shape, dtype) for shape in ((3, 4), (5, 4), (5, 2)))
    ours = scaled_dot_product_backward(q, k, v, None, np.ones((3, 2), dtype))
    assert {ours.q.dtype, ours.k.dtype, ours.v.dtype} == {np.dtype(dtype)}


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: entropy(1.0),
            "weights needs the axes (n_k) at its end, but its shape is ().",
        ),
        (
            lambda: saturated_share([1.0]),
            "weights needs the axes (n_q, n_k) at its end, but its shape is (1,).",
        ),
        (
            lambda: softmax_backward([0.5, 0.5], [1.0]),
            "grad has shape (1,), but weights have shape (2,).",
        ),
        (
            lambda: scaled_dot_product_backward(
                np.ones((3, 4)), np.ones((5, 4)), np.ones((5, 2)), None, np.ones((3, 4))
            ),
            "grad_out has shape (3, 4), but out has shape (3, 2).",
        ),
    ],
)
def test_errors_say_which_size(call, text):
    with pytest.raises(ShapeError) as error:
        call()
    assert str(error.value) == text
