"""Softcap, QK-norm, sigmaReparam: NumPy's numbers, gradients, masks, small floats.

And what two articles advise: measured, so that it stays true that it does not help.
"""

import copy
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch_tools import close, normal, one_thread  # noqa: F401

from attnlib import numerics
from attnlib.nn import KVCache, MultiHeadAttention, scaled_dot_product
from attnlib.nn.stable import (
    QKNorm,
    SigmaLinear,
    Softcap,
    article_clip,
    article_noise,
    hold_norms,
    softcap,
)
from attnlib.shapes import ShapeError

steady = settings(derandomize=True, deadline=None, max_examples=40)
HALVES = [torch.float16, torch.bfloat16]


def made(**more):
    generator = torch.Generator().manual_seed(0)
    more = {"dtype": torch.float64, "init": "linear", "generator": generator} | more
    return MultiHeadAttention(12, 4, n_kv_heads=2, **more)


def gradients(function, *inputs):
    return torch.autograd.gradcheck(function, inputs, raise_exception=True)


# Softcap.


@steady
@given(st.floats(0.01, 1e3), st.floats(0.01, 1e3))
def test_softcap_is_numpys(cap, size):
    scores = size * normal(2, 3, 5)
    close(softcap(scores, cap), torch.from_numpy(numerics.softcap(scores, cap)))
    assert torch.equal(Softcap(cap)(scores), softcap(scores, cap))


def test_softcap_keeps_an_order_and_a_gradient_where_clipping_does_not():
    for bend, alive in ((lambda z: softcap(z, 50.0), True), (article_clip, False)):
        scores = torch.tensor([60.0, 55.0], dtype=torch.float64, requires_grad=True)
        weights = torch.softmax(bend(scores), -1)
        weights[0].backward()
        assert (weights[0] > weights[1]).item() is alive
        assert (scores.grad.abs() > 1e-3).all().item() is alive
        assert scores.grad.any().item() is alive


def test_gradients_of_softcap():
    assert gradients(lambda z: softcap(4 * z, 3.0), normal(2, 5, grad=True))


@pytest.mark.parametrize("dtype", HALVES)
def test_softcap_of_infinity_is_the_cap(dtype):
    scores = torch.tensor([math.inf, -math.inf, 1.0], dtype=dtype, requires_grad=True)
    capped = softcap(scores, 50.0)
    assert capped.dtype == dtype
    assert capped[:2].tolist() == [50, -50]
    capped.sum().backward()
    assert scores.grad.isfinite().all()


# QK-norm.


@steady
@given(st.integers(0, 4), st.integers(0, 4), st.integers(0, 5), st.floats(-20, 20))
def test_qk_norm_is_numpys(n_q, n_k, d_k, scale):
    q, k = normal(2, n_q, d_k), 1e3 * normal(2, n_k, d_k, seed=1)
    wanted = numerics.qk_norm(q, k, scale)
    norm = QKNorm(scale, dtype=torch.float64)
    close(norm(q, k), torch.from_numpy(wanted.scores))
    close(norm.query(q), torch.from_numpy(scale * wanted.q))
    close(norm.key(k), torch.from_numpy(wanted.k))


def test_qk_norm_where_squares_overflow_and_where_all_is_zero():
    norm = QKNorm(2.0)
    x = torch.tensor([[3e30, 4e30], [3e-30, 4e-30], [0, 0]], requires_grad=True)
    wanted = torch.tensor([[1.2, 1.6], [1.2, 1.6], [0, 0]])
    close(norm.query(x), wanted, 1e-6)
    norm.query(x)[2].sum().backward()
    assert x.grad.isfinite().all()


def test_gradients_of_qk_norm_and_of_its_scale():
    norm = QKNorm(3.0, dtype=torch.float64)
    q, k = normal(2, 3, 4, grad=True), normal(2, 5, 4, seed=1, grad=True)

    def scores(q, k, scale):
        return torch.func.functional_call(norm, {"scale": scale}, (q, k))

    assert gradients(scores, q, k, norm.scale)


@pytest.mark.parametrize("dtype", HALVES)
def test_qk_norm_in_small_floats(dtype):
    q = (40 * normal(5, 64)).to(dtype)  # |q|^2 is 10^5: more than float16 has
    norm = QKNorm(10.0)
    assert norm.query(q).dtype == dtype
    close(norm(q, q).diagonal().float(), torch.full((5,), 10.0), 0.1)


def test_scores_are_bounded_by_the_scale_however_loud_the_weights_are():
    attention = made(qk_norm=5.0)
    with torch.no_grad():
        attention.W_q.weight *= 1e3
        attention.W_k.weight *= 1e3
    stages = attention(normal(2, 7, 12), return_stages=True)
    assert stages.scores.abs().max() <= 5 + 1e-12
    plain = made()(normal(2, 7, 12), return_stages=True)
    assert stages.weights.max() < 1 - 1e-5
    assert plain.weights.shape == stages.weights.shape


# Inside MultiHeadAttention.


def test_in_the_module_the_scores_are_numpys():
    attention, x = made(qk_norm=7.0, on_scores=Softcap(3.0)), normal(2, 5, 12)
    stages = attention(x, return_stages=True)
    q = attention.W_q(x).reshape(2, 5, 4, 3).transpose(1, 2).detach()
    k = attention.W_k(x).reshape(2, 5, 2, 3).transpose(1, 2).detach()
    k = k.repeat_interleave(2, 1)
    normed = numerics.qk_norm(q, k, 7.0).scores
    close(stages.raw_scores, torch.from_numpy(normed))
    close(stages.scores, torch.from_numpy(numerics.softcap(normed, 3.0)))
    close(stages.out, attention(x))


def test_without_them_nothing_changed():
    attention, x = made(), normal(2, 5, 12)
    close(attention(x), made(on_scores=lambda scores: scores)(x))
    assert [name for name, _ in attention.named_parameters()] == [
        f"{part}.{kind}"
        for part in ("W_q", "W_k", "W_v", "W_o")
        for kind in ("weight", "bias")
    ]
    attention.on_scores, attention.qk_norm = Softcap(1e9), QKNorm(3.0).double()
    close(attention(x), made(qk_norm=3.0)(x))


@pytest.mark.parametrize("more", [{"on_scores": Softcap(0.5)}, {"qk_norm": 4.0}])
def test_masks_hold_and_empty_rows_are_zeros(more):
    attention, x = made(**more), 30 * normal(2, 5, 12)
    look = torch.from_numpy(np.random.default_rng(1).random((5, 5)) < 0.6)
    look[3] = False
    stages = attention(x, mask=look, return_stages=True)
    assert (stages.weights[..., ~look] == 0).all()
    assert (stages.mixed[..., 3, :] == 0).all()
    assert stages.weights[..., look].min() > 0
    x.requires_grad_()
    attention(x, mask=look).sum().backward()
    assert x.grad.isfinite().all()


def test_a_bias_comes_after_the_cap():
    q, k, v = (normal(3, 2, seed=seed) for seed in range(3))
    bias = 100 * torch.eye(3, dtype=torch.float64)
    capped = scaled_dot_product(q, k, v, score_bias=bias, on_scores=Softcap(0.1))
    assert capped.scores.diagonal().min() > 99
    assert (capped.scores - bias).abs().max() <= 0.1


def test_gradients_through_the_module():
    attention = made(qk_norm=2.0, on_scores=Softcap(1.5))
    names, parameters = zip(*attention.named_parameters(), strict=True)
    assert "qk_norm.scale" in names

    def out(x, *values):
        given = dict(zip(names, values, strict=True))
        return torch.func.functional_call(attention, given, (x,), {"causal": True})

    assert gradients(out, normal(1, 3, 12, grad=True), *parameters)


@pytest.mark.parametrize("rotated", [False, True])
def test_token_by_token_with_a_cache(rotated):
    rotate = (lambda x, at: x * (1 + at[:, None])) if rotated else None
    attention, x = (
        made(qk_norm=3.0, on_scores=Softcap(2.0), rotate=rotate),
        normal(2, 5, 12),
    )
    cache = KVCache()
    pieces = [attention(x[:, i : i + 1], causal=True, cache=cache) for i in range(5)]
    close(torch.cat(pieces, 1), attention(x, causal=True))


def test_a_memory_is_normed_once_and_queries_every_time():
    attention, memory, cache = made(qk_norm=3.0), normal(2, 6, 12, seed=1), KVCache()
    for seed in (2, 3):
        x = normal(2, 4, 12, seed=seed)
        close(attention(x, memory, cache=cache), attention(x, memory))


@pytest.mark.parametrize("dtype", HALVES)
def test_the_module_in_small_floats(dtype):
    loud, x = made(qk_norm=4.0, on_scores=Softcap(20.0)), 5 * normal(2, 5, 12)
    small = copy.deepcopy(loud).to(dtype)
    out = small(x.to(dtype), causal=True)
    assert out.dtype == dtype
    close(out.double(), loud(x, causal=True), 0.1)
    assert made(qk_norm=4.0, dtype=dtype).qk_norm.scale.dtype == dtype


def test_softcap_saves_what_float16_overflowed():
    q = torch.full((1, 128), 23.0, dtype=torch.float16, requires_grad=True)
    plain = scaled_dot_product(q, q, q)
    capped = scaled_dot_product(q, q, q, on_scores=Softcap(50.0))
    assert plain.out.isnan().all()
    assert capped.out.isfinite().all()
    capped.out.sum().backward()
    assert q.grad.isfinite().all()


@pytest.mark.parametrize(
    ("wrong", "kind", "text"),
    [
        (
            lambda: softcap(torch.ones(2), 0),
            ValueError,
            "cap must be larger than 0 and finite, but it is 0.",
        ),
        (
            lambda: Softcap(math.inf),
            ValueError,
            "cap must be larger than 0 and finite, but it is inf.",
        ),
        (
            lambda: softcap(np.ones(2), 5),
            TypeError,
            "scores must be a torch.Tensor, but it is a ndarray; "
            "torch.from_numpy(scores) makes one.",
        ),
        (
            lambda: QKNorm(1.0)(torch.ones(2, 3), torch.ones(2, 4)),
            ShapeError,
            "d_k is 3 in q with shape (2, 3) but 4 in k with shape (2, 4); q and k "
            "must agree in d_k.",
        ),
        (
            lambda: made(on_scores=lambda scores: scores[..., :2])(normal(5, 12)),
            ShapeError,
            "on_scores was given the scores with shape (4, 5, 5) and returned "
            "(4, 5, 2); the shape must stay.",
        ),
        (
            lambda: article_clip(torch.ones(2), -50.0),
            ValueError,
            "bound must be larger than 0 and finite, but it is -50.0.",
        ),
        (
            lambda: hold_norms(nn.Linear(2, 3)),
            TypeError,
            "hold_norms changes the parts of a module; for a Linear by itself there is "
            "SigmaLinear.from_linear.",
        ),
    ],
)
def test_errors_say_what_was_found(wrong, kind, text):
    with pytest.raises(kind) as error:
        wrong()
    assert str(error.value) == text


# sigmaReparam.


def sigma(n_in=5, n_out=7, **more):
    part = SigmaLinear(n_in, n_out, **{"dtype": torch.float64} | more)
    with torch.no_grad():
        part.weight.copy_(normal(n_out, n_in))
        part.bias.copy_(normal(n_out, seed=7))
    part.find_norm()
    return part


@steady
@given(st.integers(1, 6), st.integers(1, 6), st.floats(-3, 3))
def test_the_held_matrix_is_numpys(n_in, n_out, gamma):
    part = sigma(n_in, n_out, gamma=gamma)
    wanted = torch.from_numpy(numerics.sigma_reparam(normal(n_out, n_in), gamma))
    close(part.held(), wanted)
    close(part.eval().held(), wanted)
    x = normal(2, 3, n_in, seed=1)
    close(part(x), x @ wanted.T + part.bias)


def test_pytorchs_spectral_norm_agrees():
    part, theirs = sigma(gamma=2.0).eval(), nn.Linear(5, 7, dtype=torch.float64)
    with torch.no_grad():
        theirs.weight.copy_(part.weight)
    theirs = nn.utils.parametrizations.spectral_norm(theirs, n_power_iterations=200)
    close(part.held(), 2 * theirs.weight, 1e-8)


def test_power_iteration_finds_the_norm_and_follows_it():
    part = sigma()
    with torch.no_grad():
        part.u.copy_(nn.functional.normalize(normal(7, seed=9), dim=0))
    start = torch.linalg.matrix_norm(part.eval().held(), 2).item()
    part.train()
    for _ in range(100):
        part.held()
    close(torch.linalg.matrix_norm(part.held(), 2).item(), 1.0)
    assert abs(start - 1) > 0.01
    before = part.u.clone()
    part.eval().held()
    assert torch.equal(part.u, before)  # nothing moves outside of training


def test_in_training_the_norm_stays_gammas():
    net = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 2)).double()
    with torch.no_grad():
        for seed, parameter in enumerate(net.parameters()):
            parameter.copy_(normal(*parameter.shape, seed=seed))
    sgd = torch.optim.SGD(hold_norms(net).parameters(), lr=0.05)
    x, y = normal(20, 5), 3 * normal(20, 2, seed=1)
    first = ((net(x) - y) ** 2).mean().item()
    for _ in range(50):
        sgd.zero_grad()
        loss = ((net(x) - y) ** 2).mean()
        loss.backward()
        sgd.step()
    for part in (net[0], net[2]):
        norm = torch.linalg.matrix_norm(part.held(), 2).item()
        assert norm == pytest.approx(abs(part.gamma.item()), rel=0.01)
        assert part.gamma.item() != 1
    assert loss.item() < first


def test_gradients_of_the_matrix_and_of_gamma():
    part = sigma().eval()

    def out(x, weight, gamma):
        given = {"weight": weight, "gamma": gamma}
        return torch.func.functional_call(part, given, (x,))

    assert gradients(out, normal(2, 5, grad=True), part.weight, part.gamma)


def test_the_gradient_does_not_depend_on_the_length_of_w():
    gradient = []
    for factor in (1.0, 10.0):
        part = sigma().eval()
        with torch.no_grad():
            part.weight *= factor
        part(normal(2, 5)).square().sum().backward()
        close((part.weight.grad * part.weight.detach()).sum().item(), 0.0)
        gradient.append(factor * part.weight.grad)
    close(*gradient)


def test_a_matrix_of_zeros_stays_zeros():
    part = sigma()
    with torch.no_grad():
        part.weight.zero_()
    part.find_norm()
    assert not part.held().any()
    part(normal(2, 5)).sum().backward()
    assert part.weight.grad.isfinite().all()


def test_an_earlier_graph_survives_later_forward_passes():
    part = sigma().eval()
    loss = part(normal(2, 5)).sum()
    part.train()(normal(2, 5))
    loss.backward()
    assert part.weight.grad.isfinite().all()


@pytest.mark.parametrize("dtype", HALVES)
def test_sigma_in_small_floats_and_under_autocast(dtype):
    exact = sigma(16, 8).float()
    small = copy.deepcopy(exact).to(dtype)
    assert small.held().dtype == dtype
    close(torch.linalg.matrix_norm(small.held().float(), 2).item(), 1.0, 0.02)
    held = exact.eval().held()
    with torch.autocast("cpu", dtype=dtype):
        assert exact(normal(2, 16).float()).dtype == dtype
        close(exact.held(), held, 1e-6)


def test_a_model_can_be_held_and_start_as_it_was():
    attention, x = made(), normal(2, 5, 12)
    before = attention(x)
    names = {name for name, _ in attention.named_parameters()}
    assert hold_norms(attention, gamma=None) is attention
    close(attention(x), before)
    held = {name for name, _ in attention.named_parameters()}
    assert held - names == {f"W_{part}.gamma" for part in "qkvo"}
    hold_norms(attention)  # once is enough
    close(attention(x), before)


def test_a_held_module_bounds_its_scores_and_their_entropy():
    attention = hold_norms(made(bias=False))
    with torch.no_grad():
        attention.W_q.weight *= 1e3
    x = nn.functional.normalize(normal(7, 12), dim=-1)
    stages = attention(x, return_stages=True)
    scale = attention.d_k**-0.5
    assert stages.scores.abs().max() <= scale + 1e-9
    weights = stages.weights.detach().numpy()
    entropy = -(weights * np.log(weights)).sum(-1)
    assert entropy.min() >= numerics.entropy_bound(scale * math.sqrt(7), 7)


def test_it_is_copied_saved_and_drawn_anew():
    attention, x = hold_norms(made()).eval(), normal(2, 5, 12)
    other = hold_norms(made()).eval()
    with torch.no_grad():
        for parameter in attention.parameters():
            parameter.add_(0.1 * normal(*parameter.shape, seed=4))
    attention.train()(x)
    other.load_state_dict(attention.eval().state_dict())
    close(other(x), attention(x))
    close(copy.deepcopy(attention)(x), attention(x))
    attention.reset_parameters(torch.Generator().manual_seed(3))
    attention.W_q.find_norm()
    norm = torch.linalg.matrix_norm(attention.W_q.held(), 2).item()
    assert norm == pytest.approx(abs(attention.W_q.gamma.item()))


# What the articles advise: it is as they have it, and this is what it does.


def test_clipping_makes_loud_scores_equal_and_takes_their_gradient():
    scores = torch.tensor([60.0, 55.0, 0.0], dtype=torch.float64, requires_grad=True)
    true = torch.softmax(scores, -1)
    assert [round(w, 3) for w in true.tolist()] == [0.993, 0.007, 0.0]
    clipped = torch.softmax(article_clip(scores), -1)
    assert [round(w, 3) for w in clipped.tolist()] == [0.5, 0.5, 0.0]
    clipped[0].backward()
    assert scores.grad[:2].tolist() == [0, 0]


def test_softmax_needs_no_clipping():
    loud = torch.tensor([1000.0, 999.0])
    close(torch.softmax(loud, -1), torch.softmax(loud - 1000, -1))


def test_clipped_after_the_mask_hidden_keys_come_back():
    q, k, v = normal(1, 2), normal(4, 2, seed=1), torch.eye(4, dtype=torch.float64)
    look = torch.tensor([[True, True, False, False]])
    stages = scaled_dot_product(q, k, v, mask=look)
    quiet = stages.scores - 1000  # the same weights, and all below -50
    close(torch.softmax(quiet, -1), stages.weights)
    wrong = torch.softmax(article_clip(quiet), -1)
    close(wrong, torch.full((1, 4), 0.25, dtype=torch.float64))
    before = scaled_dot_product(q, k, v, mask=look, on_scores=article_clip)
    assert (before.weights[..., 2:] == 0).all()  # clipped before the mask: no harm


@steady
@given(st.integers(2, 9), st.floats(0.1, 20))
def test_noise_moves_no_weight_by_more_than_it_is(n, size):
    scores = size * normal(40, n)
    generator = torch.Generator().manual_seed(0)
    noisy = article_noise(scores, generator=generator)
    noise = noisy - scores
    assert 0.005 < noise.std().item() < 0.015
    weights, after = torch.softmax(scores, -1), torch.softmax(noisy, -1)
    largest = noise.abs().max().item()
    assert (after / weights - 1).abs().max().item() <= math.expm1(2 * largest) + 1e-9


def test_noise_does_not_free_a_row_that_is_one_hot():
    scores = torch.tensor([[20.0, 0, 0, 0]], dtype=torch.float64).repeat(1000, 1)
    noisy = article_noise(scores, generator=torch.Generator().manual_seed(0))

    def entropy(z):
        return torch.distributions.Categorical(logits=z).entropy().mean().item()

    assert entropy(noisy) == pytest.approx(entropy(scores), rel=0.01)
    assert entropy(scores) < 1e-6


def test_noise_heals_no_nan_lets_no_hidden_key_in_and_is_never_off():
    scores = torch.tensor([math.nan, -math.inf, 1.0])
    noisy = article_noise(scores)
    assert noisy[0].isnan()
    assert noisy[1] == -math.inf
    attention = made(on_scores=article_noise).eval()
    x = normal(1, 5, 12)
    assert not torch.equal(attention(x), attention(x))


def test_noise_is_drawn_from_its_generator_and_in_the_scores_type():
    for dtype in (torch.float64, *HALVES):
        scores = torch.zeros(3, 4, dtype=dtype)
        pair = [
            article_noise(scores, 1.0, generator=torch.Generator().manual_seed(5))
            for _ in range(2)
        ]
        assert pair[0].dtype == dtype
        assert torch.equal(*pair)
