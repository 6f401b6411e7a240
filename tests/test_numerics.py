"""Float types, first weights, bounded scores: PyTorch's bits, simulation, theorems."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from attnlib.attention import softmax
from attnlib.diagnostics import entropy
from attnlib.masks import causal
from attnlib.nn.init import SCHEMES as DRAWN
from attnlib.numerics import (
    SCHEMES,
    entropy_bound,
    fill_effect,
    init_std,
    limits,
    logit_std,
    qk_norm,
    round_to_bfloat16,
    scores_scaled_after,
    scores_scaled_before,
    sigma_reparam,
    softcap,
    softmax_limits,
    stored,
)
from attnlib.shapes import ShapeError

steady = settings(derandomize=True, deadline=None, max_examples=100)
TYPES = ("float16", "bfloat16", "float32", "float64")
TORCH = {name: getattr(torch, name) for name in TYPES}


def bits(array):
    return np.asarray(array, np.float32).view(np.uint32)


# bfloat16, bit for bit


def by_torch(x):
    return torch.from_numpy(x).to(torch.bfloat16).float().numpy()


def test_every_upper_half_with_telling_lower_halves_rounds_as_torch_rounds():
    upper = np.arange(2**16, dtype=np.uint32)[:, None] << 16
    lower = np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)
    x = (upper | lower).view(np.float32)  # infinities, NaN, subnormals, both zeros
    ours, theirs = round_to_bfloat16(x), by_torch(x)
    np.testing.assert_array_equal(np.isnan(ours), np.isnan(x))
    numbers = ~np.isnan(x)
    np.testing.assert_array_equal(bits(ours)[numbers], bits(theirs)[numbers])
    assert (bits(ours)[numbers] & 0xFFFF == 0).all()


@steady
@given(hnp.arrays(np.uint32, hnp.array_shapes(min_dims=0, min_side=0, max_side=5)))
def test_any_bits_round_as_torch_rounds_and_stay_when_rounded_again(pattern):
    x = np.asarray(pattern).view(np.float32)
    x = np.where(np.isnan(x), np.float32(0), x)
    ours = round_to_bfloat16(x)
    assert ours.shape == x.shape
    np.testing.assert_array_equal(bits(ours), bits(by_torch(x)))
    np.testing.assert_array_equal(bits(round_to_bfloat16(ours)), bits(ours))


def test_float64_goes_through_float32_as_in_torch():
    x = np.array([1 + 2**-8 + 2**-40, 1e300, -1e300, 1e-300])
    np.testing.assert_array_equal(bits(round_to_bfloat16(x)), bits(by_torch(x)))


def test_ties_go_to_the_even_number():
    ties = [1 + 2**-8, 1 + 3 * 2**-8, -257.0, 258.0, 259.0]
    assert round_to_bfloat16(ties).tolist() == [1, 1 + 2**-6, -256, 258, 260]


# what a type holds


@pytest.mark.parametrize("name", TYPES)
def test_limits_are_torchs(name):
    ours, theirs = limits(name), torch.finfo(TORCH[name])
    assert (ours.largest, ours.lowest) == (theirs.max, theirs.min)
    assert ours.epsilon == theirs.eps
    assert ours.smallest == theirs.tiny * theirs.eps
    assert stored(ours.smallest, name) == ours.smallest
    assert stored(ours.smallest / 2, name) == 0
    assert stored(ours.largest, name) == ours.largest
    assert stored(1 + ours.epsilon / 4, name) == 1 < stored(1 + ours.epsilon, name)


@pytest.mark.parametrize("name", TYPES)
def test_stored_is_torchs(name):
    x = np.random.default_rng(0).normal(size=1000).astype(
        np.float32
    ) * 2.0 ** np.arange(-50, 50).repeat(10).astype(np.float32)
    theirs = torch.from_numpy(x).to(TORCH[name]).double().numpy()
    np.testing.assert_array_equal(stored(x, name).astype(np.float64), theirs)


def test_types_may_be_numpys():
    assert limits(np.float16) == limits("float16") == limits(np.dtype("float16"))


@pytest.mark.parametrize("name", TYPES)
def test_exp_leaves_the_type_where_it_is_said(name):
    found = softmax_limits(name)
    step = 0.01 if name.endswith(("32", "64")) else 1.0
    x = [found.exp_overflow - step, found.exp_overflow + step]
    x += [found.exp_underflow + step, found.exp_underflow - step]
    below, above, small, nothing = (
        torch.exp(torch.tensor(x, dtype=torch.float64).to(TORCH[name]).double())
        .to(TORCH[name])
        .tolist()
    )
    assert 0 < below < math.inf == above
    assert nothing == 0 < small


def test_the_naive_softmax_fails_just_beyond_and_ours_does_not():
    for name in ("float16", "float32", "float64"):
        end = softmax_limits(name).exp_overflow
        x = np.array([end * 1.02, 0], name)
        with np.errstate(over="ignore", invalid="ignore"):
            naive = np.exp(x) / np.exp(x).sum()
        assert np.isnan(naive[0])
        assert np.isfinite(softmax(x)).all()


@pytest.mark.parametrize("name", TYPES)
def test_beyond_the_gap_the_largest_weight_is_one(name):
    gap = softmax_limits(name).one_hot_gap
    # 1 / (1 + e) is 1 - e: computed so, since 1 + e would round before it is stored.
    one, less = (1 - stored(math.exp(-lead), "float64") for lead in (gap + 1, gap - 1))
    assert stored(less, name) < 1 == stored(one, name)
    theirs = torch.softmax(torch.tensor([gap + 1, 0], dtype=TORCH[name]), -1)
    assert theirs[0] == 1


# fill values


def test_the_fills_that_reports_are_about():
    assert fill_effect(-1e9, "float32").hides
    assert fill_effect(-1e9, "float16").stored == -math.inf
    assert math.isnan(fill_effect(-1e9, "float16").empty_row)
    assert fill_effect(-1e9, "float32").empty_row == 0.25  # on keys that were hidden
    assert not fill_effect(-10, "float32").hides
    assert fill_effect(-1e4, "float32", score=-2e4).hidden_weight == 1
    assert fill_effect(-math.inf, "float32", score=-2e4).hides


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("fill", [-5.0, -30.0, -1e4, -1e9, -math.inf])
@pytest.mark.parametrize("score", [3.0, -40.0, -2e4])
def test_the_weight_of_a_hidden_key_is_torchs(name, fill, score):
    row = torch.tensor([fill, score], dtype=torch.float64).to(TORCH[name])
    theirs = torch.softmax(row.double(), -1).to(TORCH[name])[0].item()
    found = fill_effect(fill, name, score=score)
    assert found.hidden_weight == pytest.approx(
        theirs, rel=1e-2 if "16" in name else 1e-6
    )
    assert found.hides == (theirs == 0)
    assert found.stored == row[0].item()


@pytest.mark.parametrize("name", TYPES)
def test_the_lowest_number_hides_but_two_of_them_are_minus_infinity(name):
    lowest = limits(name).lowest
    assert fill_effect(lowest, name).hides
    assert fill_effect(lowest, name, n_k=5).empty_row == 0.2
    with np.errstate(over="ignore"):
        assert stored(np.float64(lowest) * 2, name) == -math.inf


def test_torch_refuses_the_fill_that_float16_cannot_hold():
    scores, hidden = torch.zeros(4, dtype=torch.float16), torch.tensor([True] * 4)
    with pytest.raises(RuntimeError, match="without overflow"):
        scores.masked_fill(hidden, -1e9)
    assert torch.softmax(scores.masked_fill(hidden, -torch.inf), -1).isnan().all()


# the product of float16


def test_the_scale_saves_the_score_only_when_it_comes_first():
    loud = np.full((1, 128), 23.0)
    assert scores_scaled_after(loud, loud, "float16") == math.inf
    assert scores_scaled_before(loud, loud, "float16") == 5984  # exactly: 5984.95
    for name in ("bfloat16", "float32", "float64"):  # as wide as float32, or wider
        after = scores_scaled_after(loud, loud, name)
        np.testing.assert_allclose(after, 23**2 * 128**0.5, rtol=limits(name).epsilon)
    loud = np.full((1, 128), 30.0)
    assert scores_scaled_after(loud, loud, "float16") == math.inf
    assert scores_scaled_before(loud, loud, "float16") == 10184


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
def test_scores_are_torchs_in_that_type(name):
    rng = np.random.default_rng(0)
    q, k = rng.normal(size=(2, 3, 64)), rng.normal(size=(2, 5, 64))
    a, b = torch.from_numpy(q).to(TORCH[name]), torch.from_numpy(k).to(TORCH[name])
    step = limits(name).epsilon * 4
    for ours, theirs in (
        (scores_scaled_after(q, k, name), (a @ b.mT) * 64**-0.5),
        (scores_scaled_before(q, k, name), (a * 64**-0.5) @ b.mT),
    ):
        assert ours.shape == (2, 3, 5)
        np.testing.assert_allclose(ours, theirs.double().numpy(), rtol=0, atol=step)


def test_scores_without_tokens_or_features():
    assert scores_scaled_after(np.ones((0, 4)), np.ones((3, 4)), "float16").size == 0
    empty = scores_scaled_before(np.ones((2, 0)), np.ones((3, 0)), "bfloat16")
    assert empty.tolist() == [[0.0] * 3] * 2


# initialisation


def test_schemes_are_pytorchs():
    torch.manual_seed(0)
    fused = torch.nn.MultiheadAttention(512, 8)
    # One in_proj_weight for all three, unless the keys have a size of their own.
    separate = torch.nn.MultiheadAttention(512, 8, kdim=256)
    normal = torch.nn.init.xavier_normal_(torch.empty(512, 512), gain=0.02)
    for weight, expected in (
        (fused.in_proj_weight, init_std("pytorch_fused", 512, 512)),
        (fused.out_proj.weight, init_std("linear", 512, 512)),
        (separate.q_proj_weight, init_std("pytorch_separate", 512, 512)),
        (separate.k_proj_weight, init_std("pytorch_separate", 256, 512)),
        (torch.nn.Linear(512, 256).weight, init_std("linear", 512, 256)),
        (normal, init_std("xavier_gain", 512, 512, gain=0.02)),
    ):
        assert weight.std().item() == pytest.approx(expected, rel=0.01)
    assert fused.in_proj_weight.max().item() == pytest.approx(0.054127, rel=1e-3)
    assert init_std("pytorch_fused", 512, 512) == 0.03125
    assert init_std("xavier_gain", 512, 512, gain=0.02) == pytest.approx(
        0.00088, rel=0.01
    )


def test_the_names_are_those_of_attnlib_nn():
    assert set(SCHEMES) - set(DRAWN) == {"gpt2_residual", "normal"}
    assert set(DRAWN) < set(SCHEMES)


def test_gpt2s_numbers():
    assert init_std("gpt2", 768, 768) == 0.02
    # c_proj of the 12 layers of GPT-2 was measured at 0.00408.
    assert init_std("gpt2_residual", 768, 768, n_layers=12) == pytest.approx(
        0.00408, abs=5e-6
    )
    assert init_std("normal", 3, 4) == 1


# Measured beforehand with d_model 512 and 8 heads.
MEASURED = {
    ("linear", None): 0.336,
    ("xavier", None): 0.996,
    ("pytorch_fused", None): 0.498,
    ("gpt2", None): 0.207,
    ("xavier_gain", 0.02): 0.0004,
    ("normal", None): 520.0,
}


@pytest.mark.parametrize(("scheme", "gain"), MEASURED)
def test_the_spread_of_the_first_scores_is_the_simulated_one(scheme, gain):
    d_model, n_heads, n = 512, 8, 256
    std = init_std(scheme, d_model, d_model, gain=gain)
    predicted = logit_std(std, d_model, d_model // n_heads)
    assert predicted == pytest.approx(MEASURED[scheme, gain], rel=0.02)
    rng = np.random.default_rng(0)
    x, memory = rng.normal(size=(2, n, d_model))
    half = std * 3**0.5  # uniform: only variances count
    W_q, W_k = rng.uniform(-half, half, size=(2, d_model, d_model))
    q, k = ((t @ W).reshape(n, n_heads, -1) for t, W in ((x, W_q), (memory, W_k)))
    scores = np.einsum("ihd,jhd->hij", q, k) / 8
    assert scores.std() == pytest.approx(predicted, rel=0.02)


def test_the_scale_takes_part_in_the_spread():
    assert logit_std(0.1, 64, 16, scale=1.0) == pytest.approx(
        4 * logit_std(0.1, 64, 16)
    )
    assert logit_std(0.0, 64, 16) == 0
    assert set(SCHEMES) >= {scheme for scheme, _ in MEASURED}


# softcap


@steady
@given(hnp.arrays(np.float64, 4, elements=st.floats(-1e3, 1e3)), st.floats(0.5, 100))
def test_softcap_is_bounded_odd_and_keeps_the_order(z, cap):
    capped = softcap(z, cap)
    theirs = cap * torch.tanh(torch.from_numpy(z) / cap)
    np.testing.assert_allclose(capped, theirs.numpy(), rtol=1e-12, atol=1e-12)
    assert (np.abs(capped) <= cap).all()
    np.testing.assert_array_equal(softcap(-z, cap), -capped)
    assert (np.diff(capped[np.argsort(z)]) >= -1e-12).all()
    small = np.abs(z) < cap / 100
    np.testing.assert_allclose(capped[small], z[small], rtol=1e-4, atol=1e-300)


def test_clipping_loses_an_order_that_softcap_keeps():
    z = np.array([60.0, 55.0, 0.0])
    assert softmax(np.clip(z, -50, 50))[:2] == pytest.approx([0.5, 0.5])
    assert softmax(z)[:2] == pytest.approx([0.9933, 0.0067], abs=1e-4)
    assert softmax(softcap(z, 50))[0] == pytest.approx(0.839, abs=1e-3)


def test_a_cap_after_the_mask_lets_the_future_in():
    # Five keys with scores of 0 may be seen, and one is hidden.
    mask = np.array([True] * 5 + [False])
    for cap, mass in ((1.0, 0.0685), (50.0, 3.86e-23)):
        after = softmax(softcap(np.where(mask, 0.0, -np.inf), cap))
        assert after[5] == pytest.approx(mass, rel=1e-2)
        assert after[5] == pytest.approx(1 / (1 + 5 * math.exp(cap)))
        before = softmax(np.where(mask, softcap(np.zeros(6), cap), -np.inf))
        assert before.tolist() == [0.2] * 5 + [0]
    z, mask = np.random.default_rng(0).normal(size=(8, 8)), causal(8)
    right = softmax(np.where(mask, softcap(z, 1.0), -np.inf))
    wrong = softmax(softcap(np.where(mask, z, -np.inf), 1.0))
    assert (right[~mask] == 0).all()
    assert wrong[~mask].sum() / 8 > 0.07


def test_softcap_keeps_the_type():
    assert softcap(np.ones(2, np.float16), 50).dtype == np.float16
    assert softcap([100, 0], 1).tolist() == [1, 0]


# QK-norm


@steady
@given(st.integers(0, 99), st.sampled_from([10.0, 1e-3, 1e200]))
def test_qk_norm_does_not_see_how_large_W_q_is(seed, factor):
    rng = np.random.default_rng(seed)
    x, W_q, k = (
        rng.normal(size=(5, 8)),
        rng.normal(size=(8, 4)),
        rng.normal(size=(6, 4)),
    )
    plain, larger = qk_norm(x @ W_q, k, 7.0), qk_norm(x @ (W_q * factor), k, 7.0)
    np.testing.assert_allclose(larger.scores, plain.scores, rtol=0, atol=1e-12)
    assert (np.abs(plain.scores) <= 7 + 1e-12).all()


def test_qk_norm_is_torchs_normalize_in_each_head():
    rng = np.random.default_rng(0)
    q, k = rng.normal(size=(2, 3, 4, 8)), rng.normal(size=(2, 1, 5, 8))
    found = qk_norm(q, k, 3.0)
    a, b = (torch.nn.functional.normalize(torch.from_numpy(t), dim=-1) for t in (q, k))
    np.testing.assert_allclose(found.q, a.numpy(), rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.k, b.numpy(), rtol=0, atol=1e-12)
    theirs = 3 * torch.cosine_similarity(
        torch.from_numpy(q)[..., :, None, :], torch.from_numpy(k)[..., None, :, :], -1
    )
    np.testing.assert_allclose(found.scores, theirs.numpy(), rtol=0, atol=1e-12)


def test_qk_norm_of_zeros_and_of_large_float16():
    assert qk_norm(np.zeros((2, 3)), np.ones((1, 3)), 5.0).scores.tolist() == [[0], [0]]
    large = np.full((1, 64), 6e4, np.float16)
    found = qk_norm(large, large, 1.0)
    assert found.scores.dtype == np.float16
    assert found.scores == pytest.approx(1, abs=2e-3)
    assert qk_norm(np.ones((0, 3)), np.ones((2, 3)), 1.0).scores.shape == (0, 2)


# the bound on the entropy, and the norm


@pytest.mark.parametrize(
    ("n", "values"),
    [
        (16, [2.716801, 1.767526, 0.213723, 0.000833]),
        (64, [4.143699, 3.681461, 0.922715, 0.004609]),
    ],
)
def test_the_bound_is_the_known_number_and_is_reached(n, values):
    sigma = np.array([1.0, 3.0, 6.0, 12.0])
    np.testing.assert_allclose(entropy_bound(sigma, n), values, rtol=0, atol=5e-7)
    worst = np.full(n, -1 / math.sqrt(n * (n - 1)))
    worst[0] = math.sqrt((n - 1) / n)
    assert np.linalg.norm(worst) == pytest.approx(1)
    reached = entropy(softmax(sigma[:, None] * worst))
    np.testing.assert_allclose(reached, values, rtol=0, atol=5e-7)


@steady
@given(
    st.integers(1, 12),
    st.floats(0, 40),
    st.data(),
)
def test_no_scores_of_that_norm_have_less_entropy(n, sigma, data):
    z = data.draw(hnp.arrays(np.float64, n, elements=st.floats(-1, 1)))
    norm = np.linalg.norm(z)
    z = sigma * z / norm if norm > 1e-6 else 0 * z
    assert entropy(softmax(z)) >= entropy_bound(sigma, n) - 1e-9


def test_the_bound_ends_at_even_weights_and_at_one_key():
    assert entropy_bound(0.0, 7) == pytest.approx(math.log(7))
    assert entropy_bound([0.0, 3.0], 1).tolist() == [0, 0]
    assert entropy_bound(1e4, 7) == 0
    assert (np.diff(entropy_bound(np.linspace(0, 20, 99), 7)) < 0).all()


def test_the_theorem_holds_from_the_weights_on():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(16, 8)) / 4
    W_q, W_k = sigma_reparam(rng.normal(size=(2, 8, 8)), gamma=1.5)
    sigma = np.linalg.norm(W_k @ W_q.T, 2) * np.linalg.norm(x @ x.T, 2)
    assert sigma <= 1.5**2 * np.linalg.norm(x, 2) ** 2 + 1e-12
    found = entropy(softmax(x @ W_q @ (x @ W_k).T))
    assert found.min() >= entropy_bound(sigma, 16)


@pytest.mark.parametrize("shape", [(5, 3), (2, 3, 4), (1, 1)])
def test_the_reparametrised_weight_has_the_norm_gamma(shape):
    W = np.random.default_rng(0).normal(size=shape)
    ours = torch.from_numpy(sigma_reparam(W, gamma=0.7))
    norms = torch.linalg.matrix_norm(ours, 2).numpy()
    np.testing.assert_allclose(norms, 0.7, rtol=1e-12)
    np.testing.assert_allclose(sigma_reparam(W * 10, 0.7), ours.numpy(), rtol=1e-12)
    ratio = ours.numpy() / W
    np.testing.assert_allclose(ratio, np.broadcast_to(ratio[..., :1, :1], shape))


def test_the_spectral_norm_layer_of_torch_agrees():
    layer = torch.nn.Linear(6, 4, bias=False, dtype=torch.float64)
    W = layer.weight.detach().numpy().copy()
    parametrised = torch.nn.utils.parametrizations.spectral_norm(
        layer, n_power_iterations=200
    )
    theirs = parametrised.weight.detach().numpy()
    np.testing.assert_allclose(sigma_reparam(W), theirs, rtol=0, atol=1e-9)


def test_zero_empty_and_half_weights():
    assert sigma_reparam(np.zeros((2, 3))).tolist() == [[0] * 3] * 2
    assert sigma_reparam(np.ones((0, 3))).shape == (0, 3)
    assert sigma_reparam(np.ones((2, 2), np.float16)).dtype == np.float16


# errors


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (
            lambda: limits("float8"),
            TypeError,
            "dtype must be one of float16, bfloat16, float32, float64, but it is "
            "'float8'.",
        ),
        (
            lambda: stored(1.0, torch.bfloat16),
            TypeError,
            "dtype must be one of float16, bfloat16, float32, float64, but it is "
            "torch.bfloat16.",
        ),
        (
            lambda: stored(1.0, None),
            TypeError,
            "dtype must be one of float16, bfloat16, float32, float64, but it is None.",
        ),
        (
            lambda: round_to_bfloat16("one"),
            TypeError,
            "x must be an array of numbers, but it is a str.",
        ),
        (
            lambda: fill_effect(-1e4, "float16", score=-1e5),
            ValueError,
            "score=-100000.0 is not finite in float16: no fill can be judged.",
        ),
        (
            lambda: fill_effect(1e9, "float16"),
            ValueError,
            "fill=1000000000.0 is inf in float16: it hides nothing.",
        ),
        (
            lambda: fill_effect(-1e9, "float16", n_k=0),
            ShapeError,
            "n_k must be at least 1, but it is 0.",
        ),
        (
            lambda: scores_scaled_after(np.ones((2, 3)), np.ones((2, 4)), "float16"),
            ShapeError,
            "d_k is 3 in q with shape (2, 3) but 4 in k with shape (2, 4); q and k "
            "must agree in d_k.",
        ),
        (
            lambda: init_std("he", 4, 4),
            ValueError,
            "there is no initialisation named 'he'; there are xavier, xavier_gain, "
            "pytorch_fused, pytorch_separate, linear, gpt2, gpt2_residual, normal.",
        ),
        (
            lambda: init_std("gpt2_residual", 4, 4),
            ValueError,
            "gpt2_residual needs n_layers, but it was left out.",
        ),
        (
            lambda: init_std("xavier_gain", 4, 4),
            ValueError,
            "xavier_gain needs gain, but it was left out.",
        ),
        (
            lambda: init_std("gpt2", 4, 4, gain=0.02),
            ValueError,
            "gain=0.02 belongs to xavier_gain, but the scheme is gpt2.",
        ),
        (
            lambda: init_std("linear", 4, 4, n_layers=2),
            ValueError,
            "n_layers=2 belongs to gpt2_residual, but the scheme is linear.",
        ),
        (
            lambda: init_std("linear", 0, 4),
            ShapeError,
            "fan_in must be at least 1, but it is 0.",
        ),
        (
            lambda: init_std("linear", 4, 4, n_layers=0),
            ShapeError,
            "n_layers must be at least 1, but it is 0.",
        ),
        (
            lambda: logit_std(-0.1, 4, 4),
            ValueError,
            "std must be at least 0, but it is -0.1.",
        ),
        (
            lambda: softcap([1.0], 0),
            ValueError,
            "cap must be larger than 0 and finite, but it is 0.0.",
        ),
        (
            lambda: softcap([1.0], math.nan),
            ValueError,
            "cap must be larger than 0 and finite, but it is nan.",
        ),
        (
            lambda: qk_norm([1.0], [[1.0]], 1.0),
            ShapeError,
            "q needs the axes (n_q, d_k) at its end, but its shape is (1,).",
        ),
        (
            lambda: entropy_bound(-1.0, 4),
            ValueError,
            "sigma must be at least 0, but one is -1.0.",
        ),
        (
            lambda: entropy_bound(1.0, 0),
            ShapeError,
            "n must be at least 1, but it is 0.",
        ),
        (
            lambda: sigma_reparam([1.0]),
            ShapeError,
            "W needs the axes (d_in, d_out) at its end, but its shape is (1,).",
        ),
    ],
)
def test_errors_say_what_was_found(call, kind, text):
    with pytest.raises(kind) as error:
        call()
    assert type(error.value) is kind
    assert str(error.value) == text
