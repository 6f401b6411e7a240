"""The initialisations: their bounds, PyTorch's own, and how large scores start."""

import pytest
import torch
from torch import nn
from torch_tools import one_thread  # noqa: F401

from attnlib import numerics
from attnlib.nn import MultiHeadAttention, initialise
from attnlib.nn.init import first_weights
from attnlib.shapes import ShapeError

D = 512
XAVIER, FUSED, LINEAR = 0.076547, 0.054127, 0.044194  # bounds at d_model = 512


def drawn(init, *, seed=0, **more):
    generator = torch.Generator().manual_seed(seed)
    return MultiHeadAttention(D, 8, init=init, generator=generator, **more)


@pytest.mark.parametrize(
    ("init", "more", "inner", "outer"),
    [
        ("xavier", {}, XAVIER, XAVIER),
        ("xavier_gain", {"gain": 0.02}, 0.02 * XAVIER, 0.02 * XAVIER),
        ("pytorch_fused", {}, FUSED, LINEAR),
        ("pytorch_separate", {}, XAVIER, LINEAR),
        ("linear", {}, LINEAR, LINEAR),
    ],
)
def test_uniform_schemes_fill_their_bounds(init, more, inner, outer):
    attention = drawn(init, **more)
    for part in (attention.W_q, attention.W_k, attention.W_v, attention.W_o):
        bound = outer if part is attention.W_o else inner
        largest = part.weight.abs().max().item()
        assert 0.999 * bound < largest <= bound * 1.00002
        assert part.weight.std().item() == pytest.approx(bound / 3**0.5, rel=0.01)
        if init == "linear":
            assert 0.9 * LINEAR < part.bias.abs().max().item() <= LINEAR
        else:
            assert (part.bias == 0).all()


def test_gpt2_makes_w_o_smaller_the_deeper_the_model():
    attention = drawn("gpt2", n_layers=12)
    for part in (attention.W_q, attention.W_k, attention.W_v):
        assert part.weight.std().item() == pytest.approx(0.02, rel=0.01)
        assert part.weight.abs().max() > 0.07  # normal, not uniform
    assert attention.W_o.weight.std().item() == pytest.approx(0.02 / 24**0.5, rel=0.01)


@pytest.mark.parametrize("other", [None, 256])
def test_pytorchs_own_module_has_these_bounds(other):
    torch.manual_seed(0)
    theirs = nn.MultiheadAttention(D, 8, kdim=other, vdim=other)
    scheme = "pytorch_fused" if other is None else "pytorch_separate"
    ours = drawn(scheme, d_memory=other)
    if other is None:
        pairs = zip(
            (ours.W_q, ours.W_k, ours.W_v), theirs.in_proj_weight.chunk(3), strict=True
        )
    else:
        pairs = [(ours.W_q, theirs.q_proj_weight), (ours.W_k, theirs.k_proj_weight)]
    for part, weight in [*pairs, (ours.W_o, theirs.out_proj.weight)]:
        torch.testing.assert_close(
            part.weight.abs().max(), weight.abs().max(), rtol=1e-3, atol=0
        )


def test_grouped_heads_count_in_the_fused_fan():
    attention = drawn("pytorch_fused", n_kv_heads=2)
    bound = (6 / (512 + 512 + 128 + 128)) ** 0.5
    for part in (attention.W_q, attention.W_k, attention.W_v):
        assert part.weight.abs().max().item() == pytest.approx(bound, rel=1e-3)


@pytest.mark.parametrize(
    ("init", "more", "std"),
    [
        ("xavier", {}, 0.996),
        ("pytorch_fused", {}, 0.498),
        ("linear", {}, 0.336),
        ("gpt2", {"n_layers": 12}, 0.207),
        ("xavier_gain", {"gain": 0.02}, 0.0004),
    ],
)
def test_the_scores_start_as_large_as_was_measured(init, more, std):
    attention = drawn(init, **more)
    x = torch.randn(4, 64, D, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        scores = attention(x, return_stages=True).scores
    assert scores.std().item() == pytest.approx(std, rel=0.04)


def test_a_generator_repeats_and_another_seed_does_not():
    first, again, other = (drawn("xavier", seed=seed) for seed in (0, 0, 1))
    assert torch.equal(first.W_o.weight, again.W_o.weight)
    assert not torch.equal(first.W_o.weight, other.W_o.weight)
    again.reset_parameters(torch.Generator().manual_seed(1))
    assert torch.equal(again.W_k.weight, other.W_k.weight)
    initialise(again, "linear")
    assert again.W_k.weight.abs().max() < 0.0445
    assert again.W_k.weight.requires_grad


@pytest.mark.parametrize("scheme", ["pytorch_fused", "pytorch_separate", "linear"])
def test_all_weights_come_from_the_generator_whatever_was_there(scheme):
    first, second = MultiHeadAttention(8, 2), MultiHeadAttention(8, 2)
    for attention in (first, second):
        initialise(attention, scheme, generator=torch.Generator().manual_seed(3))
    for name, weight in first.state_dict().items():
        assert torch.equal(weight, second.state_dict()[name])


@pytest.mark.parametrize(
    ("scheme", "more", "text"),
    [
        (
            "kaiming",
            {},
            "there is no initialisation named 'kaiming'; there are xavier, "
            "xavier_gain, pytorch_fused, pytorch_separate, linear, gpt2.",
        ),
        ("gpt2", {}, "gpt2 needs n_layers, but it was left out."),
        ("xavier_gain", {}, "xavier_gain needs gain, but it was left out."),
        (
            "xavier",
            {"gain": 0.5},
            "gain=0.5 belongs to xavier_gain, but the scheme is xavier.",
        ),
        ("gpt2", {"n_layers": 0}, "n_layers must be at least 1, but it is 0."),
        (
            "pytorch_fused",
            {},
            "pytorch_fused needs one width for what W_q, W_k and W_v read, but they "
            "read [8, 6, 6]; there PyTorch does what is called pytorch_separate here.",
        ),
    ],
)
def test_errors_say_what_is_missing(scheme, more, text):
    attention = MultiHeadAttention(8, 2, d_memory=6, init="linear")
    before = {name: part.clone() for name, part in attention.state_dict().items()}
    with pytest.raises(ValueError) as error:  # noqa: PT011
        initialise(attention, scheme, **more)
    assert str(error.value) == text
    after = attention.state_dict()
    assert all(torch.equal(after[name], part) for name, part in before.items())


# How attention starts, measured.

SMALL_FLOATS = [torch.float16, torch.bfloat16]


def measured(attention, **more):
    return first_weights(attention, generator=torch.Generator().manual_seed(1), **more)


@pytest.mark.parametrize(
    ("init", "more", "std", "entropy"),
    [
        ("linear", {}, 0.336, 0.99),
        ("xavier", {}, 0.996, 0.88),
        ("pytorch_fused", {}, 0.498, 0.97),
        ("gpt2", {"n_layers": 12}, 0.207, 0.995),
        ("xavier_gain", {"gain": 0.02}, 0.0004, 1.0),
        ("xavier_gain", {"gain": 5.0}, 25.0, 0.04),
    ],
)
def test_how_attention_starts_by_scheme(init, more, std, entropy):
    start = measured(drawn(init, **more))
    assert start.score_std == pytest.approx(std, rel=0.03)
    assert start.entropy == pytest.approx(entropy, abs=0.01)
    assert start.finite == 1
    attention = drawn(init, **more)
    theory = numerics.logit_std(attention.W_q.weight.std().item(), D, 64)
    assert start.score_std == pytest.approx(theory, rel=0.05)


def normal_by_no_rule():
    attention, generator = drawn("xavier"), torch.Generator().manual_seed(2)
    with torch.no_grad():
        for part in (attention.W_q, attention.W_k, attention.W_v, attention.W_o):
            part.weight.normal_(generator=generator)
    return attention


def test_normal_weights_start_one_hot():
    start = measured(normal_by_no_rule())
    assert start.score_std == pytest.approx(512, rel=0.03)
    assert start.entropy < 0.01
    assert start.largest > 0.99


def test_a_small_gain_for_q_and_k_starts_even_and_slow():
    attention = drawn("xavier")
    full = measured(attention)
    with torch.no_grad():
        attention.W_q.weight *= 0.02
        attention.W_k.weight *= 0.02
    assert attention.W_q.weight.std().item() == pytest.approx(0.00088, rel=0.01)
    start = measured(attention)
    assert start.largest == pytest.approx(1 / 64, rel=0.01)
    assert start.gradient == pytest.approx(0.02, abs=0.003)
    assert full.gradient == pytest.approx(1, rel=0.1)


@pytest.mark.parametrize("dtype", SMALL_FLOATS)
@pytest.mark.parametrize("init", ["linear", "xavier", "pytorch_fused"])
def test_small_floats_start_as_large_ones(dtype, init):
    attention = drawn(init)
    exact, start = measured(attention), measured(attention, dtype=dtype)
    assert start.entropy == pytest.approx(exact.entropy, abs=2e-3)
    assert start.score_std == pytest.approx(exact.score_std, rel=0.01)
    assert attention.W_q.weight.dtype == torch.float32
    assert attention.W_q.weight.grad is None


def test_in_float16_loud_weights_are_no_longer_finite():
    attention = normal_by_no_rule()
    with torch.no_grad():
        attention.W_q.weight *= 8
    start = measured(attention, dtype=torch.float16)
    assert 0 < start.finite < 1
    assert 0 <= start.entropy < 0.01  # of the rows that are left
    assert measured(attention, dtype=torch.bfloat16).finite == 1


def test_two_tokens_at_least_and_a_floating_type():
    with pytest.raises(ShapeError, match=r"^n must be at least 2, but it is 1\.$"):
        first_weights(drawn("xavier"), 1)
    with pytest.raises(TypeError, match=r"^dtype must be a floating type, but it is "):
        first_weights(drawn("xavier"), dtype=torch.int8)
