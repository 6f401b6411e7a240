"""The core in PyTorch: NumPy's numbers, SDPA's gradients, zeros for empty rows."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import scaled_dot_product_attention as sdpa
from torch_tools import close, normal, one_thread  # noqa: F401

from attnlib import attention as plain
from attnlib import masks
from attnlib.nn import scaled_dot_product
from attnlib.shapes import ShapeError

steady = settings(derandomize=True, deadline=None, max_examples=60)
sizes = st.integers(0, 4)
batches = st.sampled_from([(), (2,), (0,), (3, 2)])
STAGES = ("raw_scores", "scores", "weights", "out")


def coin(*shape, seed=5, share=0.6):
    return torch.from_numpy(np.random.default_rng(seed).random(shape) < share)


# Values: NumPy defines them.


@steady
@given(batches, sizes, sizes, sizes, sizes, st.sampled_from([None, 0.3]), st.booleans())
def test_all_stages_are_numpys(batch, n_q, n_k, d_k, d_v, scale, masked):
    q, k, v = (
        normal(*batch, n, d, seed=seed)
        for seed, (n, d) in enumerate(((n_q, d_k), (n_k, d_k), (n_k, d_v)))
    )
    mask = coin(*batch, n_q, n_k) if masked else None
    ours = scaled_dot_product(q, k, v, mask, scale=scale)
    numpy_mask = None if mask is None else mask.numpy()
    arrays = (tensor.numpy() for tensor in (q, k, v))
    theirs = plain.scaled_dot_product(*arrays, numpy_mask, scale=scale)
    for stage in STAGES:
        close(getattr(ours, stage), torch.from_numpy(getattr(theirs, stage)))


def test_strides_do_not_matter():
    q = normal(5, 2, 3).transpose(0, 1)  # (2, 5, 3)
    k = normal(2, 12, 3, seed=1)[:, ::2]  # (2, 6, 3)
    v = normal(4, 6, 2, seed=2).permute(2, 1, 0)  # (2, 6, 4)
    assert not any(tensor.is_contiguous() for tensor in (q, k, v))
    ours = scaled_dot_product(q, k, v)
    copies = (tensor.contiguous() for tensor in (q, k, v))
    close(ours.out, scaled_dot_product(*copies).out, atol=1e-14)


@steady
@given(sizes, sizes)
def test_causal_is_the_mask_of_the_course(n_q, n_k):
    q, k, v = normal(2, n_q, 3), normal(2, n_k, 3, seed=1), normal(2, n_k, 3, seed=2)
    mask = coin(n_q, n_k)
    before = masks.causal(n_q, n_k)
    ours = scaled_dot_product(q, k, v, mask, causal=True).weights
    close(ours, scaled_dot_product(q, k, v, mask.numpy() & before).weights, atol=0)
    hidden = ~(mask & torch.from_numpy(before))
    assert (ours[:, hidden] == 0).all()


def test_one_query_with_causal_sees_every_key():  # SDPA's is_causal shows it one
    q, k, v = normal(1, 3), normal(5, 3, seed=1), normal(5, 3, seed=2)
    ours = scaled_dot_product(q, k, v, causal=True).out
    close(ours, scaled_dot_product(q, k, v).out)
    assert not torch.allclose(sdpa(q, k, v, is_causal=True), ours)


# Gradients: SDPA's where it has them, and a numerical check.


def gradients(out, *inputs, seed=9):
    upstream = normal(*out.shape, seed=seed).to(out.dtype)
    return torch.autograd.grad(out, inputs, upstream)


@steady
@given(
    st.sampled_from([(), (2,), (3, 2)]), *[st.integers(1, 4)] * 4, st.booleans(), sizes
)
def test_values_and_gradients_are_sdpas(batch, n_q, n_k, d_k, d_v, causal, seed):
    q = normal(*batch, n_q, d_k, grad=True)
    k = normal(*batch, n_k, d_k, seed=1, grad=True)
    v = normal(*batch, n_k, d_v, seed=2, grad=True)
    mask = coin(*batch, n_q, n_k, seed=seed)
    if causal:
        mask &= torch.from_numpy(masks.causal(n_q, n_k))
    mask |= ~mask.any(-1, keepdim=True)  # SDPA need not define empty rows
    ours = scaled_dot_product(q, k, v, mask).out
    theirs = sdpa(q, k, v, mask)
    close(ours, theirs)
    for mine, other in zip(
        gradients(ours, q, k, v), gradients(theirs, q, k, v), strict=True
    ):
        close(mine, other)


def test_a_score_bias_is_sdpas_float_mask_with_its_gradient():
    q, k, v = normal(2, 3, 4), normal(2, 5, 4, seed=1), normal(2, 5, 2, seed=2)
    bias = normal(3, 5, seed=3, grad=True)
    ours, theirs = scaled_dot_product(q, k, v, score_bias=bias).out, sdpa(q, k, v, bias)
    close(ours, theirs)
    close(gradients(ours, bias)[0], gradients(theirs, bias)[0])


def test_gradients_agree_with_small_steps_also_of_second_order():
    q, k, v = normal(3, 2, grad=True), normal(4, 2, seed=1, grad=True), normal(4, 3)
    v.requires_grad_()
    mask = coin(3, 4)
    mask[1] = False

    def out(q, k, v):
        return scaled_dot_product(q, k, v, mask).out

    assert torch.autograd.gradcheck(out, (q, k, v))
    assert torch.autograd.gradgradcheck(out, (q, k, v))


@pytest.mark.parametrize("how", ["mask", "bias", "causal", "no keys"])
def test_an_empty_row_gives_zeros_and_finite_gradients(how):
    n_k = {"causal": 2, "no keys": 0}.get(how, 5)
    q = normal(2, 4, 3, grad=True)
    k, v = normal(2, n_k, 3, seed=1, grad=True), normal(2, n_k, 3, seed=2, grad=True)
    mask = torch.ones(4, n_k, dtype=torch.bool)
    mask[0] = False
    bias = torch.zeros(4, n_k, dtype=torch.float64)
    arguments = {
        "mask": {"mask": mask},
        "bias": {"score_bias": bias.masked_fill(~mask, -torch.inf)},
        "causal": {"causal": True},
        "no keys": {},
    }[how]
    ours = scaled_dot_product(q, k, v, **arguments)
    assert (ours.weights[:, 0] == 0).all()
    assert (ours.out[:, 0] == 0).all()
    of_q, of_k, of_v = gradients(ours.out, q, k, v)
    assert (of_q[:, 0] == 0).all()
    assert all(grad.isfinite().all() for grad in (of_q, of_k, of_v))
    if how != "no keys":
        assert of_q[:, 3].abs().sum() > 0


# Half precision, dropout.


@pytest.mark.parametrize(
    ("dtype", "atol"), [(torch.float16, 3e-3), (torch.bfloat16, 3e-2)]
)
def test_half_precision_stays_close_to_float64(dtype, atol):
    q, k, v = (normal(2, 16, 32, seed=seed).to(dtype) for seed in range(3))
    mask = coin(16, 16)
    mask[3] = False
    bias = normal(16, 16, seed=4).float()
    ours = scaled_dot_product(q, k, v, mask, score_bias=bias)
    wide = (tensor.double() for tensor in (q, k, v))
    exact = scaled_dot_product(*wide, mask, score_bias=bias.to(dtype).double())
    assert {getattr(ours, stage).dtype for stage in STAGES} == {dtype}
    close(ours.out.double(), exact.out, atol=atol)
    assert (ours.out[:, 3] == 0).all()


def test_dropout_keeps_the_mean_and_the_returned_weights():
    q, k, v = normal(1, 2), normal(4, 2, seed=1), torch.eye(4, dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    many = q.expand(20_000, 1, 2)
    ours = scaled_dot_product(many, k, v, dropout=0.25, generator=generator)
    exact = scaled_dot_product(q, k, v).weights
    close(ours.weights[0], exact)  # before dropout: rows sum to 1
    close(ours.out.mean(0), exact, atol=0.01)  # v is the identity: out = kept weights
    kept = ours.out / exact
    assert (kept == 0).double().mean() == pytest.approx(0.25, abs=0.01)
    kept = kept[kept != 0]
    close(kept, torch.full_like(kept, 1 / 0.75))


def test_dropout_draws_from_the_generator_and_leaves_the_global_one():
    q = normal(6, 3)
    state = torch.random.get_rng_state()
    outs = [
        scaled_dot_product(
            q, q, q, dropout=0.5, generator=torch.Generator().manual_seed(seed)
        ).out
        for seed in (1, 1, 2)
    ]
    close(outs[0], outs[1], atol=0)
    assert not torch.equal(outs[0], outs[2])
    assert torch.equal(state, torch.random.get_rng_state())


# Errors.

ONE = torch.ones(3, 2)


@pytest.mark.parametrize(
    ("arguments", "kind", "text"),
    [
        (
            (torch.ones(3, 2), torch.ones(5, 4), ONE),
            ShapeError,
            "d_k is 2 in q with shape (3, 2) but 4 in k with shape (5, 4); q and k "
            "must agree in d_k.",
        ),
        (
            (torch.ones(3), ONE, ONE),
            ShapeError,
            "q needs the axes (n_q, d_k) at its end, but its shape is (3,).",
        ),
        (
            (torch.ones(2, 3, 2), torch.ones(5, 3, 2), ONE),
            ShapeError,
            "the batch axes of q (2,), k (5,) and v () do not broadcast.",
        ),
        (
            (np.ones((3, 2)), ONE, ONE),
            TypeError,
            "q must be a torch.Tensor, but it is a ndarray; torch.from_numpy(q) makes "
            "one.",
        ),
        (
            (ONE, torch.ones(3, 2, dtype=torch.int64), ONE),
            TypeError,
            "k must be a floating tensor, but its dtype is int64.",
        ),
        (
            (ONE, ONE.double(), ONE),
            TypeError,
            "q, k and v must have one dtype, but they have float32, float64 and "
            "float32.",
        ),
        (
            (ONE, ONE, ONE, torch.zeros(3, 3)),
            TypeError,
            "mask must be boolean (True = may look), but its dtype is float32; numbers "
            "to add to the scores are score_bias.",
        ),
        (
            (ONE, ONE, ONE, torch.ones(3, 4, dtype=torch.bool)),
            ShapeError,
            "mask with shape (3, 4) does not broadcast to the scores' shape (3, 3), "
            "which ends in (n_q, n_k).",
        ),
        (
            (*[torch.ones(2, 4, 3, 2)] * 3, torch.ones(2, 3, 3, dtype=torch.bool)),
            ShapeError,
            "mask with shape (2, 3, 3) does not broadcast to the scores' shape "
            "(2, 4, 3, 3), which ends in (n_q, n_k); a mask for each sequence of the "
            "batch needs an axis of 1 for the heads.",
        ),
    ],
)
def test_errors_name_the_sizes(arguments, kind, text):
    with pytest.raises(kind) as error:
        scaled_dot_product(*arguments)
    assert str(error.value) == text


@pytest.mark.parametrize(
    ("of_q", "of_k", "fine"),
    [((2, 1), (3,), True), ((0,), (1,), True), ((2,), (0,), False), ((2, 3), (2,), 0)],
)
def test_batch_axes_broadcast_or_not(of_q, of_k, fine):
    q, k = torch.ones(*of_q, 4, 2), torch.ones(*of_k, 5, 2)
    if fine:
        batch = np.broadcast_shapes(of_q, of_k)
        assert scaled_dot_product(q, k, k).out.shape == (*batch, 4, 2)
    else:
        with pytest.raises(ShapeError, match="do not broadcast"):
            scaled_dot_product(q, k, k)


@pytest.mark.parametrize(
    ("arguments", "kind", "text"),
    [
        (
            {"score_bias": torch.ones(3, 3, dtype=torch.bool)},
            TypeError,
            "score_bias is added to the scores; a boolean one is a mask.",
        ),
        (
            {"score_bias": torch.ones(2, 3, 3)},
            ShapeError,
            "score_bias with shape (2, 3, 3) does not broadcast to the scores' shape "
            "(3, 3), which ends in (n_q, n_k).",
        ),
        (
            {"score_bias": torch.zeros(3, 3, dtype=torch.int64)},
            TypeError,
            "score_bias must be a floating tensor, but its dtype is int64.",
        ),
        (
            {"dropout": 1.0},
            ValueError,
            "dropout must be at least 0 and less than 1, but it is 1.0.",
        ),
    ],
)
def test_errors_of_the_options(arguments, kind, text):
    with pytest.raises(kind) as error:
        scaled_dot_product(ONE, ONE, ONE, **arguments)
    assert str(error.value) == text
