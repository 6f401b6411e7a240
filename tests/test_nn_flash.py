"""Flash attention gives what the plain form gives: values, gradients, log-sum-exp."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import scaled_dot_product_attention as sdpa
from torch_tools import close, normal, one_thread  # noqa: F401

from attnlib import attention as plain
from attnlib import masks
from attnlib.nn import flash_attention, scaled_dot_product
from attnlib.nn.flash.attention import plan_for
from attnlib.nn.flash.inputs import inside

steady = settings(derandomize=True, deadline=None, max_examples=60)
sizes = st.integers(0, 7)
blocks = st.sampled_from([1, 2, 3, 5, None])
NAMES = ("out", "q", "k", "v")
SMALL = {"block_q": 3, "block_k": 2}  # several tiles, and ragged ones


def coin(*shape, seed=5, share=0.6):
    return torch.from_numpy(np.random.default_rng(seed).random(shape) < share)


def inputs(batch, n_q, n_k, d_k=3, d_v=2, grad=False):
    shapes = ((n_q, d_k), (n_k, d_k), (n_k, d_v))
    return [normal(*batch, *s, seed=i, grad=grad) for i, s in enumerate(shapes)]


def gradients(out, *inputs, seed=9):
    upstream = normal(*out.shape, seed=seed).to(out.dtype)
    return torch.autograd.grad(out, inputs, upstream)


def same(ours, theirs, *inputs, atol=1e-10):
    """The values, and the gradients of everything that has one."""
    close(ours, theirs, atol)
    pairs = zip(gradients(ours, *inputs), gradients(theirs, *inputs), strict=True)
    for mine, other in pairs:
        close(mine, other, atol)


# NumPy defines the values, and SDPA the gradients.


@steady
@given(
    st.sampled_from([(), (2,), (0,), (3, 2), (2, 1, 3)]),
    *[sizes] * 4,
    st.sampled_from([None, 0.3, -1.0, 0.0]),
    st.booleans(),
    st.booleans(),
    blocks,
    blocks,
)
def test_values_are_numpys(
    batch, n_q, n_k, d_k, d_v, scale, causal, masked, block_q, block_k
):
    q, k, v = inputs(batch, n_q, n_k, d_k, d_v)
    mask = coin(*batch, n_q, n_k) if masked else None
    ours = flash_attention(
        q, k, v, mask=mask, causal=causal, scale=scale, block_q=block_q, block_k=block_k
    )
    look = np.ones((n_q, n_k), bool) if mask is None else mask.numpy()
    if causal:
        look = look & masks.causal(n_q, n_k)
    arrays = (tensor.numpy() for tensor in (q, k, v))
    theirs = plain.scaled_dot_product(*arrays, look, scale=scale).out
    close(ours, torch.from_numpy(np.asarray(theirs)))


@steady
@given(
    st.sampled_from([(), (2,), (3, 2)]),
    *[st.integers(1, 6)] * 4,
    st.booleans(),
    blocks,
    blocks,
    sizes,
)
def test_values_and_gradients_are_sdpas(
    batch, n_q, n_k, d_k, d_v, causal, block_q, block_k, seed
):
    q, k, v = inputs(batch, n_q, n_k, d_k, d_v, grad=True)
    mask = coin(*batch, n_q, n_k, seed=seed)
    mask[..., -1] |= True  # SDPA need not define empty rows
    if n_q > n_k:
        causal = False
    look = mask & torch.from_numpy(masks.causal(n_q, n_k)) if causal else mask
    look |= ~look.any(-1, keepdim=True) & (torch.arange(n_k) == 0)
    mask |= look
    ours = flash_attention(
        q, k, v, mask=mask, causal=causal, block_q=block_q, block_k=block_k
    )
    same(ours, sdpa(q, k, v, look), q, k, v)


@pytest.mark.parametrize("causal", [False, True])
def test_float32_is_as_near_to_float64_as_sdpa_at_the_tiles_that_are_chosen(causal):
    shape = (2, 700, 64)  # ragged: 700 = 2 * 256 + 188
    q, k, v = (normal(*shape, seed=seed, grad=True) for seed in range(3))
    exact = sdpa(q, k, v, is_causal=causal)
    singles = [x.detach().float().requires_grad_() for x in (q, k, v)]
    ours = flash_attention(*singles, causal=causal)
    theirs = sdpa(*singles, is_causal=causal)
    assert ours.dtype == torch.float32
    right = [exact, *gradients(exact, q, k, v)]
    mine = [ours, *gradients(ours, *singles)]
    other = [theirs, *gradients(theirs, *singles)]
    for name, good, a, b in zip(NAMES, right, mine, other, strict=True):
        error, limit = ((x.double() - good).norm() / good.norm() for x in (a, b))
        assert error < max(2 * limit, 1e-6), name


# Heads, batches, strides.


@pytest.mark.parametrize("n_kv_heads", [1, 2, 6])
@pytest.mark.parametrize("causal", [False, True])
def test_grouped_heads_read_one_kv_head(n_kv_heads, causal):
    q = normal(2, 6, 5, 4, grad=True)
    k = normal(2, n_kv_heads, 7, 4, seed=1, grad=True)
    v = normal(2, n_kv_heads, 7, 3, seed=2, grad=True)
    mask, bias = coin(2, 6, 5, 7), normal(6, 5, 7, seed=3, grad=True)
    ours = flash_attention(q, k, v, mask=mask, bias=bias, causal=causal, **SMALL)
    wide = (x.repeat_interleave(6 // n_kv_heads, 1) for x in (k, v))
    theirs = scaled_dot_product(q, *wide, mask, causal=causal, score_bias=bias).out
    same(ours, theirs, q, k, v, bias)


@pytest.mark.parametrize(
    ("of_q", "of_k", "of_v"),
    [
        ((2, 3), (3,), ()),
        ((2, 1, 3), (4, 1), (1, 1, 3)),
        ((), (2, 3), (3,)),
        ((1, 3), (2, 3), (2, 1)),
        ((0, 2), (2,), (1, 2)),
    ],
)
@pytest.mark.parametrize("masked", [False, True])
def test_batch_axes_broadcast(of_q, of_k, of_v, masked):
    q, k = normal(*of_q, 4, 3, grad=True), normal(*of_k, 5, 3, seed=1, grad=True)
    v = normal(*of_v, 5, 2, seed=2, grad=True)
    batch = np.broadcast_shapes(of_q, of_k, of_v)
    mask = coin(*batch[:-1], 1, 4, 5) if masked else None
    ours = flash_attention(q, k, v, mask=mask, **SMALL)
    same(ours, scaled_dot_product(q, k, v, mask).out, q, k, v)


def test_strides_do_not_matter():
    q = normal(2, 5, 4, 3).transpose(1, 2).requires_grad_()  # as split_heads leaves it
    k = normal(2, 4, 12, 3, seed=1)[:, :, ::2].requires_grad_()
    v = normal(4, 6, 2, 2, seed=2).permute(3, 0, 1, 2).requires_grad_()
    assert not any(tensor.is_contiguous() for tensor in (q, k, v))
    ours = flash_attention(q, k, v, causal=True, **SMALL)
    same(ours, scaled_dot_product(q, k, v, causal=True).out, q, k, v)


# The log-sum-exp: its value, its gradient, and what it is for.


def test_the_log_sum_exp_is_that_of_the_scores_and_has_a_gradient():
    q, k, v = inputs((2,), 5, 7, grad=True)
    mask = coin(5, 7)
    mask |= ~mask.any(-1, keepdim=True)
    ours = flash_attention(q, k, v, mask=mask, return_log_sum_exp=True, **SMALL)
    stages = scaled_dot_product(q, k, v, mask)
    theirs = torch.logsumexp(stages.scores, -1)
    close(ours.log_sum_exp, theirs)
    weight = normal(2, 5, seed=8)
    mine = ours.out.sum() + (weight * ours.log_sum_exp).sum()
    other = stages.out.sum() + (weight * theirs).sum()
    pairs = zip(
        *(torch.autograd.grad(x, (q, k, v)) for x in (mine, other)), strict=True
    )
    for a, b in pairs:
        close(a, b)


def test_parts_of_the_keys_are_joined_by_their_log_sum_exp():
    q, k, v = inputs((2,), 5, 7, grad=True)
    mask = coin(5, 7)
    mask[2] = False
    parts = [
        flash_attention(
            q, k[:, keys], v[:, keys], mask=mask[:, keys], return_log_sum_exp=True
        )
        for keys in (slice(0, 3), slice(3, 7))
    ]
    logs = torch.stack([part.log_sum_exp for part in parts])
    largest = logs.max(0).values
    largest = torch.where(largest == -torch.inf, 0, largest)
    share = (logs - largest).exp()
    share = share / share.sum(0).clamp(min=1e-300)
    joined = (share[..., None] * torch.stack([part.out for part in parts])).sum(0)
    same(joined, flash_attention(q, k, v, mask=mask), q, k, v)


def test_a_gradient_of_nan_at_an_empty_row_stays_there():
    q, k, v = inputs((2,), 5, 7, grad=True)
    mask = coin(5, 7)
    mask[2] = False
    found = flash_attention(q, k, v, mask=mask, return_log_sum_exp=True)
    log = found.log_sum_exp  # joined with an empty one: NaN where both are -inf
    joined = torch.logaddexp(log, torch.full_like(log, -torch.inf))
    for grad in torch.autograd.grad(joined.sum(), (q, k)):
        assert grad.isfinite().all()


# Derivatives.


@pytest.mark.parametrize("how", ["plain", "causal", "mask", "dropout", "grouped"])
def test_gradients_agree_with_small_steps(how):
    n_kv = 1 if how == "grouped" else 2
    q = normal(2, 5, 3, grad=True)
    k, v = normal(n_kv, 4, 3, seed=1, grad=True), normal(n_kv, 4, 2, seed=2, grad=True)
    bias = normal(2, 1, 4, seed=3, grad=True)
    mask = coin(5, 4)
    mask[1] = False
    options = {
        "causal": {"causal": True},
        "mask": {"mask": mask},
        "dropout": {"dropout": 0.4, "seed": 3},
    }.get(how, {})

    def both(q, k, v, bias):
        found = flash_attention(
            q, k, v, bias=bias, return_log_sum_exp=True, **options, **SMALL
        )
        return found.out, found.log_sum_exp.nan_to_num(neginf=0.0)

    assert torch.autograd.gradcheck(both, (q, k, v, bias))


def test_a_second_derivative_is_one_sentence():
    q, k, v = inputs((2,), 3, 4, grad=True)
    out = flash_attention(q, k, v)
    (of_q,) = torch.autograd.grad(out.sum(), q, create_graph=True)
    with pytest.raises(RuntimeError) as error:
        of_q.sum().backward()
    assert str(error.value) == (
        "flash_attention has no second derivative, because backward keeps no weights "
        "to differentiate; attnlib.nn.scaled_dot_product has one."
    )


def test_only_what_needs_a_gradient_gets_one():
    q, k, v = inputs((2,), 3, 4)
    k.requires_grad_()
    out = flash_attention(q, k, v)
    close(gradients(out, k)[0], gradients(scaled_dot_product(q, k, v).out, k)[0])
    assert not flash_attention(q, k.detach(), v).requires_grad
    with torch.no_grad():
        assert not flash_attention(q, k, v).requires_grad


def test_torch_func_follows():
    q, k, v = inputs((2,), 5, 7)
    bias = normal(5, 7, seed=3)

    def total(attention, q, k, v, **more):
        return attention(q, k, v, **more).sum()

    def plain_form(q, k, v, bias):
        return scaled_dot_product(q, k, v, score_bias=bias).out

    ours = torch.func.grad(total, (1, 2, 3))(flash_attention, q, k, v, bias=bias)
    theirs = torch.func.grad(total, (1, 2, 3))(plain_form, q, k, v, bias=bias)
    for mine, other in zip(ours, theirs, strict=True):
        close(mine, other)


@pytest.mark.parametrize("options", [{"causal": True}, {"dropout": 0.1}, {}])
def test_everything_is_made_where_q_is(options):
    shape = (2, 4, 9, 3)  # on the device "meta" tensors have no numbers, but a place
    q, k, v = (torch.empty(shape, device="meta", requires_grad=True) for _ in range(3))
    bias = torch.empty(9, 9, device="meta", requires_grad=True)
    out = flash_attention(q, k, v, bias=bias, **options, **SMALL)
    grads = torch.autograd.grad(out.sum(), (q, k, v, bias))
    assert {x.device.type for x in (out, *grads)} == {"meta"}
    assert out.shape == shape


@pytest.mark.parametrize("causal", [False, True])
def test_backward_takes_longer_blocks_unless_they_are_given(causal):
    q = torch.zeros(1, 8, 600, 4)
    given = inside(q, q, q, None, None)
    plan = plan_for(given, causal, 1.0, (None, None), None, True)
    assert plan.block_q < plan.backward().block_q
    assert plan.backward().room(q).numel() <= 2**17
    plan = plan_for(given, causal, 1.0, (60, 30), None, True)
    assert plan.block_q == plan.backward().block_q == 60
