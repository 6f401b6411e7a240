"""RoPE and its extensions: against torch's complex numbers, loops, known numbers."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib.positions import (
    change_layout,
    count_positions,
    dynamic_scale,
    half_order,
    interleaved_order,
    interpolate_positions,
    ntk_base,
    rope,
    rope_frequencies,
    yarn_attention_factor,
    yarn_frequencies,
    yarn_range,
)
from attnlib.shapes import ShapeError

steady = settings(derandomize=True, deadline=None, max_examples=60)
LAYOUTS = ["interleaved", "half"]
layouts = st.sampled_from(LAYOUTS)


def random(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def torch_interleaved(x, positions, base=10000.0):
    """Pairs as complex numbers, as Meta's Llama has it."""
    n, d = x.shape[-2:]
    w = 1.0 / base ** (torch.arange(0, d, 2, dtype=torch.float64) / d)
    angles = torch.outer(torch.as_tensor(positions, dtype=torch.float64), w)
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], d // 2, 2))
    turned = pairs * torch.polar(torch.ones(n, d // 2, dtype=torch.float64), angles)
    return torch.view_as_real(turned).flatten(-2)


def torch_half(x, positions, base=10000.0):
    """A matrix product with [[0, 1], [-1, 0]] in blocks, as GPT-NeoX's rotate_half."""
    d = x.shape[-1]
    w = 1.0 / base ** (torch.arange(0, d, 2, dtype=torch.float64) / d)
    angles = torch.outer(torch.as_tensor(positions, dtype=torch.float64), w)
    angles = torch.cat([angles, angles], dim=-1)
    eye, zero = torch.eye(d // 2).double(), torch.zeros(d // 2, d // 2).double()
    swap = torch.cat([torch.cat([zero, eye], 1), torch.cat([-eye, zero], 1)], 0)
    return x * angles.cos() + (x @ swap) * angles.sin()


BY_TORCH = {"interleaved": torch_interleaved, "half": torch_half}


# rope


@steady
@given(
    st.lists(st.integers(0, 3), max_size=2),
    st.integers(0, 5),
    st.integers(1, 5).map(lambda half: 2 * half),
    layouts,
    st.integers(-5, 3000),
)
def test_rope_is_torchs_in_values_and_gradient(batch, n, d, layout, start):
    x, grad_out = random(*batch, n, d), random(*batch, n, d, seed=1)
    positions = start + np.arange(n)
    there = torch.tensor(x, requires_grad=True)
    turned = BY_TORCH[layout](there, positions)
    turned.backward(torch.from_numpy(grad_out))
    out = rope(x, positions, layout=layout)
    assert out.shape == x.shape
    np.testing.assert_allclose(out, turned.detach().numpy(), atol=1e-11)
    # A rotation's transpose turns back: no formula for the gradient is needed.
    back = rope(grad_out, -positions, layout=layout)
    np.testing.assert_allclose(back, there.grad.numpy(), atol=1e-11)


def test_rope_by_hand():
    x, t = [[1.0, 0.0, 0.0, 2.0]], 3.0
    c, s, c2, s2 = math.cos(t), math.sin(t), math.cos(t / 100), math.sin(t / 100)
    interleaved = rope(x, [3])[0]
    np.testing.assert_allclose(interleaved, [c, s, -2 * s2, 2 * c2], atol=1e-15)
    half = rope(x, [3], layout="half")[0]
    np.testing.assert_allclose(half, [c, -2 * s2, s, 2 * c2], atol=1e-15)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shift", [1, 100, 5000, -7])
def test_rope_does_not_see_a_shift_of_all_positions(layout, shift):
    q, k = random(4, 8), random(6, 8, seed=1)
    at_q, at_k = np.arange(2, 6), np.arange(6)

    def raw_scores(by):
        turned = rope(k, at_k + by, layout=layout)
        return rope(q, at_q + by, layout=layout) @ turned.T

    np.testing.assert_allclose(raw_scores(shift), raw_scores(0), atol=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rope_of_one_vector_everywhere_has_toeplitz_scores(layout):
    q, k = (np.tile(random(1, 8, seed=s), (30, 1)) for s in (0, 1))
    at = np.arange(30)
    scores = rope(q, at, layout=layout) @ rope(k, at, layout=layout).T
    np.testing.assert_allclose(scores[1:, 1:], scores[:-1, :-1], atol=1e-12)


@steady
@given(st.integers(1, 4), st.integers(1, 6).map(lambda half: 2 * half), layouts)
def test_rope_keeps_lengths_and_position_0_and_turns_back(n, d, layout):
    x, positions = random(2, n, d), np.arange(n) * 17
    out = rope(x, positions, layout=layout)
    lengths = np.linalg.norm(x, axis=-1)
    np.testing.assert_allclose(np.linalg.norm(out, axis=-1), lengths, atol=1e-12)
    np.testing.assert_array_equal(out[:, 0], x[:, 0])
    np.testing.assert_allclose(rope(out, -positions, layout=layout), x, atol=1e-12)


def test_a_cached_key_is_turned_once_at_its_own_position():
    q, k = random(3, 7, 4), random(3, 7, 4, seed=1)
    whole = rope(q, np.arange(7)) @ np.swapaxes(rope(k, np.arange(7)), -1, -2)
    cache = np.empty((3, 0, 4))
    for t in range(7):
        cache = np.concatenate([cache, rope(k[:, t : t + 1], [t])], axis=1)
        step = rope(q[:, t : t + 1], [t]) @ np.swapaxes(cache, -1, -2)
        np.testing.assert_allclose(step[:, 0], whole[:, t, : t + 1], atol=1e-12)


def test_positions_may_differ_by_sequence_with_an_axis_for_the_heads():
    x = random(2, 3, 5, 4)  # batch 2, 3 heads, n 5
    real = np.array([[False, False, True, True, True], [True] * 5])
    out = rope(x, count_positions(real)[:, None])
    np.testing.assert_array_equal(out[0, :, 2:], rope(x[0, :, 2:], np.arange(3)))
    np.testing.assert_array_equal(out[1], rope(x[1], np.arange(5)))


def test_as_many_sequences_as_heads_are_not_mixed_up():
    x, positions = random(3, 3, 5, 4), np.arange(15).reshape(3, 5)
    with pytest.raises(ShapeError, match="with an axis of 1 for the heads"):
        rope(x, positions)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_type_stays_and_far_positions_stay_exact(dtype):
    x = random(3, 8).astype(dtype)
    positions = np.array([0, 1000, 100_000], np.int32)
    out = rope(x, positions)
    assert out.dtype == dtype
    exact = rope(x.astype(np.float64), positions)
    # One rounding at the end, half of eps at most, and no more: angles are float64.
    limit = np.finfo(dtype).eps / 2 * np.abs(exact) + np.finfo(dtype).tiny
    assert (np.abs(out - exact) <= limit).all()


def test_whole_numbers_and_inputs_left_alone():
    assert rope([[1, 0]], [2]).dtype == np.float64
    x = random(2, 5, 6)[:, ::2].swapaxes(0, 1)[..., ::-1]  # not contiguous
    before = x.copy()
    np.testing.assert_array_equal(rope(x, [0, 3]), rope(before, [0, 3]))
    np.testing.assert_array_equal(x, before)


# two layouts


@steady
@given(st.integers(1, 5), st.integers(1, 8).map(lambda half: 2 * half))
def test_one_order_of_the_features_turns_one_layout_into_the_other(n, d):
    x, at, order = random(n, d), 3 * np.arange(n) + 1, half_order(d)
    assert order.tolist() == [*range(0, d, 2), *range(1, d, 2)]
    np.testing.assert_array_equal(
        rope(x[:, order], at, layout="half"), rope(x, at)[:, order]
    )
    back = interleaved_order(d)
    np.testing.assert_array_equal(back, np.argsort(order))
    np.testing.assert_array_equal(
        rope(x[:, back], at), rope(x, at, layout="half")[:, back]
    )


def test_a_wrong_layout_is_right_at_position_0_only():
    x = random(5, 8)
    apart = np.abs(rope(x, np.arange(5)) - rope(x, np.arange(5), layout="half"))
    assert apart[0].max() == 0
    assert (apart[1:].max(axis=1) > 0.2).all()


def test_weights_change_as_in_the_conversion_of_llama():
    d_model, n_heads, d = 5, 3, 8  # with d = 4 both orders are the same
    W = random(d_model, n_heads * d)
    there = torch.from_numpy(W.T).reshape(n_heads, d // 2, 2, d_model)
    expected = there.transpose(1, 2).reshape(n_heads * d, d_model).T.numpy()
    changed = change_layout(W, "half", n_heads)
    np.testing.assert_array_equal(changed, expected)
    np.testing.assert_array_equal(change_layout(changed, "interleaved", n_heads), W)


def test_changed_weights_give_the_same_scores_in_the_other_layout():
    n_heads, d, at = 3, 8, np.arange(6)
    x, W_q, W_k = random(6, 5), random(5, 24, seed=1), random(5, 24, seed=2)

    def raw_scores(W_q, W_k, layout):
        heads = [(x @ W).reshape(6, n_heads, d).swapaxes(0, 1) for W in (W_q, W_k)]
        q, k = (rope(head, at, layout=layout) for head in heads)
        return q @ np.swapaxes(k, -1, -2)

    there = change_layout(W_q, "half", n_heads), change_layout(W_k, "half", n_heads)
    expected = raw_scores(W_q, W_k, "interleaved")
    np.testing.assert_allclose(raw_scores(*there, "half"), expected, atol=1e-12)
    wrong = raw_scores(W_q, W_k, "half")
    np.testing.assert_allclose(
        np.diagonal(wrong, 0, -2, -1), np.diagonal(expected, 0, -2, -1), atol=1e-12
    )  # a token and itself: distance 0 looks right
    assert np.abs(wrong - expected).max() > 1


# frequencies and longer texts


@steady
@given(st.integers(1, 64).map(lambda half: 2 * half), st.floats(2, 1e6))
def test_frequencies_are_their_rule(d, base):
    expected = [1 / base ** (2 * i / d) for i in range(d // 2)]
    np.testing.assert_allclose(rope_frequencies(d, base), expected, rtol=1e-12)


def test_interpolation_is_slower_turning():
    x, at = random(9, 8), np.arange(9)
    by_positions = rope(x, interpolate_positions(at, 4))
    slowed = rope(x, at, frequencies=rope_frequencies(8) / 4)
    np.testing.assert_allclose(by_positions, slowed, atol=1e-14)


def test_ntk_base_known_and_what_it_does():
    base = ntk_base(10000.0, 4, 128)
    assert round(base, 3) == 40889.942
    slowed = rope_frequencies(128) / rope_frequencies(128, base)
    assert slowed[0] == 1
    assert slowed[-1] == pytest.approx(4, rel=1e-13)
    assert (np.diff(slowed) > 0).all()
    assert ntk_base(500.0, 1, 6) == 500.0


def test_dynamic_scale_of_transformers_is_13_where_4_is_meant():
    assert dynamic_scale(4 * 2048, 2048, factor=4) == 13
    assert dynamic_scale(4 * 2048, 2048) == 4
    assert dynamic_scale(2048, 2048, factor=4) == 1
    assert dynamic_scale(3, 2048) == 1


def published_yarn(d, scale, base, length, fast=32, slow=1):
    """As the authors write it, one pair at a time."""

    def pair(turns):
        return d * math.log(length / (turns * 2 * math.pi)) / (2 * math.log(base))

    low = max(math.floor(pair(fast)), 0)
    high = min(math.ceil(pair(slow)), d - 1)
    if low == high:
        high += 0.001
    mixed = []
    for i in range(d // 2):
        w = 1 / base ** (2 * i / d)
        keep = 1 - min(max((i - low) / (high - low), 0), 1)
        mixed.append(w / scale * (1 - keep) + w * keep)
    return mixed


@steady
@given(
    st.integers(2, 64).map(lambda half: 2 * half),
    st.floats(1, 64),
    st.sampled_from([1e4, 1e5, 5e5]),
    st.integers(64, 8192),
)
def test_yarn_is_as_published(d, scale, base, length):
    found = yarn_frequencies(d, scale, base=base, trained_length=length)
    np.testing.assert_allclose(
        found, published_yarn(d, scale, base, length), rtol=1e-12
    )


def test_yarn_known_numbers():
    assert yarn_range(128, trained_length=4096) == (20, 46)
    assert round(yarn_attention_factor(4), 6) == 1.138629
    assert yarn_attention_factor(1) == 1
    slowed = rope_frequencies(128) / yarn_frequencies(128, 4, trained_length=4096)
    assert (slowed[:21] == 1).all()
    np.testing.assert_allclose(slowed[46:], 4, rtol=1e-15)
    assert (np.diff(slowed[20:47]) > 0).all()


def test_yarn_where_every_pair_turns_often_or_none_does():
    plain = rope_frequencies(8, 2.0)
    assert yarn_range(8, base=2.0, trained_length=10**6) == (7, 7)
    assert yarn_range(8, base=2.0, trained_length=2) == (0, 0)
    often = yarn_frequencies(8, 4, base=2.0, trained_length=10**6)
    np.testing.assert_array_equal(often, plain)
    seldom = yarn_frequencies(8, 4, trained_length=2)
    np.testing.assert_allclose(seldom[1:], rope_frequencies(8)[1:] / 4, rtol=1e-15)


# errors


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (
            lambda: rope(np.ones((3, 5)), [0, 1, 2]),
            ShapeError,
            "d=5 is odd, but RoPE turns features in pairs.",
        ),
        (
            lambda: rope(np.ones((3, 4)), [0, 1]),
            ShapeError,
            "n is 3 in x with shape (3, 4) but 2 in positions with shape (2,); x and "
            "positions must agree in n.",
        ),
        (
            lambda: rope(np.ones((3, 4)), [7]),  # one position is not stretched
            ShapeError,
            "n is 3 in x with shape (3, 4) but 1 in positions with shape (1,); x and "
            "positions must agree in n.",
        ),
        (
            lambda: rope(np.ones((2, 5, 3, 4)), np.ones((2, 3))),
            ShapeError,
            "positions with shape (2, 3) do not fit x with shape (2, 5, 3, 4): they "
            "need the shape (n) or as many axes as x has before d, with an axis of 1 "
            "for the heads.",
        ),
        (
            lambda: rope(np.ones((2, 5, 3, 4)), np.ones((2, 4, 3))),
            ShapeError,
            "positions with shape (2, 4, 3) do not fit x with shape (2, 5, 3, 4): they "
            "need the shape (n) or as many axes as x has before d, with an axis of 1 "
            "for the heads.",
        ),
        (
            lambda: rope(np.ones((1, 4)), [True]),
            TypeError,
            "positions must be numbers, but their dtype is bool.",
        ),
        (
            lambda: rope(np.ones((1, 4)), [1], layout="neox"),
            ValueError,
            "layout must be 'interleaved' or 'half', but it is 'neox'.",
        ),
        (
            lambda: rope(np.ones((1, 4)), [1], frequencies=[1.0, 0.5, 0.1]),
            ShapeError,
            "frequencies must have shape (2,), one for each pair of d=4, but their "
            "shape is (3,).",
        ),
        (
            lambda: rope_frequencies(0),
            ShapeError,
            "d must be at least 2, but it is 0.",
        ),
        (
            lambda: rope_frequencies(4, 0.5),
            ValueError,
            "base must be above 1, but it is 0.5.",
        ),
        (
            lambda: change_layout(np.ones((5, 12)), "half", 5),
            ShapeError,
            "the last axis of x, 12, is not a multiple of n_heads=5.",
        ),
        (
            lambda: change_layout(np.ones((5, 12)), "half", 4),
            ShapeError,
            "d=3 is odd, but RoPE turns features in pairs.",
        ),
        (
            lambda: change_layout(np.ones(4), "split"),
            ValueError,
            "to must be 'interleaved' or 'half', but it is 'split'.",
        ),
        (
            lambda: interpolate_positions([1], 0.5),
            ValueError,
            "scale must be at least 1, but it is 0.5.",
        ),
        (
            lambda: ntk_base(10000.0, 512 / 1024, 128),  # the article's shrinking base
            ValueError,
            "scale must be at least 1, but it is 0.5.",
        ),
        (
            lambda: ntk_base(10000.0, 2, 2),
            ShapeError,
            "d=2 has one pair, which turns by 1 whatever the base: NTK needs d >= 4.",
        ),
        (
            lambda: dynamic_scale(8, 0),
            ShapeError,
            "trained_length must be at least 1, but it is 0.",
        ),
        (
            lambda: dynamic_scale(8, 4, factor=0),
            ValueError,
            "factor must be at least 1, but it is 0.",
        ),
        (
            lambda: yarn_range(8, trained_length=64, slow=0),
            ValueError,
            "slow must be above 0, but it is 0.",
        ),
        (
            lambda: yarn_frequencies(8, 2, trained_length=64, fast=1),
            ValueError,
            "fast=1 must be above slow=1.",
        ),
        (
            lambda: yarn_frequencies(8, math.nan, trained_length=64),
            ValueError,
            "scale must be finite, but it is nan.",
        ),
        (
            lambda: yarn_attention_factor(0.99),
            ValueError,
            "scale must be at least 1, but it is 0.99.",
        ),
    ],
)
def test_errors_say_which_size(call, kind, text):
    with pytest.raises(kind) as error:
        call()
    assert type(error.value) is kind
    assert str(error.value) == text
