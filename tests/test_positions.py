"""Vectors and biases of positions: against loops, torch, published code and numbers.

RoPE and its extensions have `test_positions_rotary.py`.
"""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib.attention import softmax
from attnlib.example import X
from attnlib.masks import causal, padding
from attnlib.positions import (
    alibi_bias,
    alibi_slopes,
    clipped_distances,
    count_positions,
    distances,
    grid,
    look_up,
    relative_bias,
    relative_buckets,
    sinusoidal,
)
from attnlib.shapes import ShapeError

steady = settings(derandomize=True, deadline=None, max_examples=60)
sizes = st.integers(0, 6)


def toeplitz(matrix):
    """How far the diagonals of a square matrix are from being constant."""
    n = len(matrix)
    return max(np.ptp(np.diagonal(matrix, offset)) for offset in range(1 - n, n))


# sinusoidal


@steady
@given(st.integers(0, 9), st.integers(1, 9), st.sampled_from([100.0, 10000.0]))
def test_sinusoidal_is_its_rule(n, d_model, base):
    table = sinusoidal(n, d_model, base=base)
    assert table.shape == (n, d_model)
    for pos in range(n):
        for c in range(d_model):
            angle = pos / base ** ((c - c % 2) / d_model)
            wave = math.cos(angle) if c % 2 else math.sin(angle)
            assert table[pos, c] == pytest.approx(wave, abs=1e-13)


def test_sinusoidal_is_what_everyone_computes_with_exp_and_log_in_torch():
    n, d = 50, 12
    positions = torch.arange(n, dtype=torch.float64)[:, None]
    steps = torch.arange(0, d, 2, dtype=torch.float64)
    angles = positions * torch.exp(steps * (-math.log(10000.0) / d))
    expected = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
    np.testing.assert_allclose(sinusoidal(n, d), expected.numpy(), atol=1e-13)


def test_sinusoidal_sees_distances_only_and_wrong_exponents_do_not():
    table = sinusoidal(40, 16)
    assert toeplitz(table @ table.T) < 1e-12
    # The mistake: every column its own frequency, base^(-c / d), as often published.
    angles = np.arange(40)[:, None] * 10000.0 ** (-np.arange(16) / 16)
    wrong = np.where(np.arange(16) % 2, np.cos(angles), np.sin(angles))
    assert toeplitz(wrong @ wrong.T) > 0.5


def test_an_odd_width_lacks_one_cosine_and_its_properties_with_it():
    table = sinusoidal(30, 7, base=20.0)
    assert toeplitz(table @ table.T) > 0.1
    assert toeplitz(table[:, :-1] @ table[:, :-1].T) < 1e-12
    # The frequencies are those of d_model=7, not those of 8 cut off.
    assert table[1, 2] == pytest.approx(math.sin(20 ** (-2 / 7)))


def test_a_step_is_one_rotation_everywhere():
    d, step = 6, 5
    table = sinusoidal(20, d)
    turn = np.zeros((d, d))
    for i in range(0, d, 2):
        t = step * 10000.0 ** (-i / d)
        turn[i : i + 2, i : i + 2] = [
            [math.cos(t), -math.sin(t)],
            [math.sin(t), math.cos(t)],
        ]
    np.testing.assert_allclose(table[step:], table[:-step] @ turn, atol=1e-12)


def test_every_position_has_the_same_length():
    lengths = np.linalg.norm(sinusoidal(100, 10), axis=1)
    np.testing.assert_allclose(lengths, math.sqrt(5), atol=1e-13)


# tables


def test_look_up_is_torchs_embedding():
    rng = np.random.default_rng(0)
    table, positions = rng.normal(size=(7, 3)), rng.integers(0, 7, size=(2, 5))
    expected = torch.nn.functional.embedding(
        torch.from_numpy(positions), torch.from_numpy(table)
    )
    np.testing.assert_array_equal(look_up(table, positions), expected.numpy())
    assert look_up(table, []).shape == (0, 3)


@steady
@given(st.integers(0, 4), st.integers(0, 4))
def test_grid_is_its_rule(n_rows, n_columns):
    rows = np.arange(n_rows * 2.0).reshape(n_rows, 2)
    columns = 100 + np.arange(n_columns * 3.0).reshape(n_columns, 3)
    table = grid(rows, columns)
    assert table.shape == (n_rows * n_columns, 5)
    for r in range(n_rows):
        for c in range(n_columns):
            patch = table[r * n_columns + c]
            np.testing.assert_array_equal(patch, [*rows[r], *columns[c]])


def test_a_grid_of_sinusoids_sees_shifts_of_the_picture_only():
    table = grid(sinusoidal(3, 4), sinusoidal(5, 6))
    similar = (table @ table.T).reshape(3, 5, 3, 5)
    np.testing.assert_allclose(similar[0, 1, 1, 3], similar[1, 2, 2, 4], atol=1e-13)


# positions of a padded batch


@steady
@given(st.lists(st.booleans(), max_size=8))
def test_count_positions_is_its_rule(real_tokens):
    counted = count_positions(np.array(real_tokens, bool))
    expected = [max(0, sum(real_tokens[: i + 1]) - 1) for i in range(len(real_tokens))]
    assert counted.tolist() == expected


def test_left_padding_leaves_the_positions_as_if_alone():
    left = padding([3, 5], 5)[:, 0, 0, ::-1]
    assert count_positions(left).tolist() == [[0, 0, 0, 1, 2], [0, 1, 2, 3, 4]]
    assert count_positions(padding([3], 5)[0, 0, 0]).tolist()[:3] == [0, 1, 2]


# distances and ALiBi


@steady
@given(sizes, sizes)
def test_distances_agree_with_the_causal_mask(n_q, n_k):
    found = distances(n_q, n_k)
    assert found.shape == (n_q, n_k)
    assert found.tolist() == [
        [j - (n_k - n_q + i) for j in range(n_k)] for i in range(n_q)
    ]
    np.testing.assert_array_equal(found <= 0, causal(n_q, n_k))


def published_slopes(n):
    """As the authors define them: recursive, by repeated multiplication."""
    if math.log2(n).is_integer():
        ratio = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [ratio * ratio**i for i in range(n)]
    below = 2 ** math.floor(math.log2(n))
    more = published_slopes(2 * below)[0::2]
    return published_slopes(below) + more[: n - below]


def test_slopes_known_by_heart():
    assert alibi_slopes(8).tolist() == [2.0**-i for i in range(1, 9)]
    assert alibi_slopes(8)[0] == 0.5  # with n_heads + 1 or from h = 0 it would be 1
    np.testing.assert_allclose(alibi_slopes(16), 2.0 ** (-np.arange(1, 17) / 2))
    twelve = [2.0**-i for i in range(1, 9)] + [0.707107, 0.353553, 0.176777, 0.088388]
    np.testing.assert_allclose(alibi_slopes(12), twelve, atol=5e-7)


@pytest.mark.parametrize("n_heads", [*range(1, 34), 40, 63, 64, 71])
def test_slopes_are_the_published_ones_for_any_number_of_heads(n_heads):
    np.testing.assert_allclose(
        alibi_slopes(n_heads), published_slopes(n_heads), rtol=1e-12
    )


def test_slopes_of_twelve_heads_are_not_the_plain_formula():
    plain = 2.0 ** (-8 * np.arange(1, 13) / 12)
    assert np.abs(alibi_slopes(12) - plain).max() > 0.1
    assert (np.diff(alibi_slopes(12)) > 0).any()  # not sorted


@steady
@given(st.integers(1, 6), sizes, sizes)
def test_alibi_bias_is_its_rule(n_heads, n_q, n_k):
    bias, slopes = alibi_bias(n_heads, n_q, n_k), published_slopes(n_heads)
    assert bias.shape == (n_heads, n_q, n_k)
    assert not np.signbit(bias[bias == 0]).any()
    for h in range(n_heads):
        for i in range(n_q):
            for j in range(n_k):
                expected = -slopes[h] * abs(j - (n_k - n_q + i))
                assert bias[h, i, j] == pytest.approx(expected, rel=1e-12)


def test_alibi_gives_a_causal_row_the_weights_of_the_published_form():
    rng = np.random.default_rng(0)
    scores = np.where(causal(4, 6), rng.normal(size=(3, 4, 6)), -np.inf)
    published = np.array(published_slopes(3))[:, None, None] * np.arange(6)
    ours = softmax(scores + alibi_bias(3, 4, 6))
    np.testing.assert_allclose(ours, softmax(scores + published), atol=1e-14)


def test_a_cached_step_has_the_last_row_of_the_whole():
    np.testing.assert_array_equal(alibi_bias(3, 2, 7), alibi_bias(3, 7)[:, -2:])


# buckets


def t5_buckets(ahead, n_buckets, max_distance, bidirectional):
    """T5's rule as its code has it, one distance at a time, in torch's float32."""
    start, n = 0, -ahead
    if bidirectional:
        n_buckets //= 2
        start, n = (n_buckets if n < 0 else 0), abs(n)
    else:
        n = max(n, 0)
    exact = n_buckets // 2
    if n < exact:
        return start + n
    log = torch.log(torch.tensor(float(n)) / exact) / math.log(max_distance / exact)
    return start + min(exact + int(log * (n_buckets - exact)), n_buckets - 1)


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(("n_buckets", "max_distance"), [(32, 128), (12, 50), (8, 20)])
def test_buckets_are_those_of_t5(n_buckets, max_distance, bidirectional):
    found = relative_buckets(
        1,
        1000,
        n_buckets=n_buckets,
        max_distance=max_distance,
        bidirectional=bidirectional,
    )
    rule = (n_buckets, max_distance, bidirectional)
    assert found[0].tolist() == [t5_buckets(j - 999, *rule) for j in range(1000)]
    keys_ahead = relative_buckets(
        500, n_buckets=n_buckets, max_distance=max_distance, bidirectional=bidirectional
    )[0]
    assert keys_ahead.tolist() == [t5_buckets(j, *rule) for j in range(500)]


def test_buckets_begin_where_whole_numbers_say():
    # Of 8 far buckets from 8 to 128, every second one begins at a power of two.
    edges = [8, 12, 16, 23, 32, 46, 64, 91]
    row = relative_buckets(1, 200)[0, ::-1]  # by distance behind
    assert [int(np.argmax(row == b)) for b in range(8, 16)] == edges
    assert row[-1] == 15


@steady
@given(sizes, sizes, st.integers(2, 9).map(lambda n: 2 * n), st.integers(0, 40))
def test_buckets_are_in_range_toeplitz_and_monotone(n_q, n_k, n_buckets, more):
    found = relative_buckets(
        n_q, n_k, n_buckets=n_buckets, max_distance=n_buckets // 4 + 1 + more
    )
    assert found.shape == (n_q, n_k)
    assert ((found >= 0) & (found < n_buckets)).all()
    np.testing.assert_array_equal(found[1:, 1:], found[:-1, :-1])
    np.testing.assert_array_equal(found >= n_buckets // 2, distances(n_q, n_k) > 0)


@steady
@given(sizes, sizes, st.integers(0, 4))
def test_clipped_distances_are_their_rule(n_q, n_k, limit):
    found = clipped_distances(n_q, n_k, max_distance=limit)
    expected = [
        [min(max(j - (n_k - n_q + i), -limit), limit) + limit for j in range(n_k)]
        for i in range(n_q)
    ]
    assert found.shape == (n_q, n_k)
    assert found.tolist() == expected


def test_relative_bias_looks_up_each_head():
    rng = np.random.default_rng(0)
    table, buckets = rng.normal(size=(8, 3)), relative_buckets(4, 6, n_buckets=8)
    bias = relative_bias(table, buckets)
    assert bias.shape == (3, 4, 6)
    for h, i, j in np.ndindex(3, 4, 6):
        assert bias[h, i, j] == table[buckets[i, j], h]


def test_alibi_is_a_relative_bias_with_a_fixed_table():
    limit = 9
    steps = -np.abs(np.arange(-limit, limit + 1))
    table = steps[:, None] * alibi_slopes(5)
    bias = relative_bias(table, clipped_distances(4, 7, max_distance=limit))
    np.testing.assert_array_equal(bias, alibi_bias(5, 4, 7))


# what positions are for


def test_attention_without_positions_shuffles_with_its_tokens_and_with_them_not():
    order = np.array([2, 0, 1])

    def attend(x, bias=0.0):
        return softmax(x @ x.T + bias) @ x

    np.testing.assert_allclose(attend(X[order]), attend(X)[order], atol=1e-14)
    told = sinusoidal(*X.shape)
    assert np.abs(attend(X[order] + told) - attend(X + told)[order]).max() > 0.1
    bias = alibi_bias(8, 3)[0]  # the steepest slope, 1 / 2
    assert np.abs(attend(X[order], bias) - attend(X, bias)[order]).max() > 0.01


# errors


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (
            lambda: sinusoidal(-1, 4),
            ShapeError,
            "n must be at least 0, but it is -1.",
        ),
        (
            lambda: sinusoidal(3, 0),
            ShapeError,
            "d_model must be at least 1, but it is 0.",
        ),
        (
            lambda: sinusoidal(3, 4, base=1),
            ValueError,
            "base must be above 1, but it is 1.",
        ),
        (
            lambda: sinusoidal(3, 4, base="10000"),
            TypeError,
            "base must be one number, but it is '10000'.",
        ),
        (
            lambda: sinusoidal(3, 4, base=True),
            TypeError,
            "base must be one number, but it is True.",
        ),
        (
            lambda: sinusoidal(3, 4, base=[1.0, 2.0]),
            TypeError,
            "base must be one number, but it is [1.0, 2.0].",
        ),
        (
            lambda: sinusoidal(3, 4, base=math.inf),
            ValueError,
            "base must be finite, but it is inf.",
        ),
        (
            lambda: look_up(np.ones((512, 2)), [3, 512]),
            IndexError,
            "position 512 has no row: the table has n_rows=512, for positions from 0 "
            "on.",
        ),
        (
            lambda: look_up(np.ones((4, 2)), [[0], [-1]]),
            IndexError,
            "position -1 has no row: the table has n_rows=4, for positions from 0 on.",
        ),
        (
            lambda: look_up(np.ones(4), [0]),
            ShapeError,
            "table must have 2 axes, but its shape is (4,).",
        ),
        (
            lambda: look_up(np.ones((4, 2)), [0.0]),
            TypeError,
            "positions must be whole numbers, but their dtype is float64.",
        ),
        (
            lambda: grid(np.ones((4, 2)), np.ones(3)),
            ShapeError,
            "columns must have 2 axes, but its shape is (3,).",
        ),
        (
            lambda: count_positions([1, 0]),
            TypeError,
            "real_tokens must be boolean, but its dtype is int64.",
        ),
        (
            lambda: count_positions(np.bool_(True)),
            ShapeError,
            "real_tokens needs the axes (n) at its end, but its shape is ().",
        ),
        (
            lambda: alibi_slopes(0),
            ShapeError,
            "n_heads must be at least 1, but it is 0.",
        ),
        (
            lambda: alibi_bias(2, 3, 2.0),
            TypeError,
            "n_k must be a whole number, but it is 2.0.",
        ),
        (
            lambda: relative_buckets(2, n_buckets=7),
            ShapeError,
            "n_buckets=7 does not halve into two sides.",
        ),
        (
            lambda: relative_buckets(2, n_buckets=2),
            ShapeError,
            "n_buckets must be at least 4, but it is 2.",
        ),
        (
            lambda: relative_buckets(2, n_buckets=32, max_distance=8),
            ShapeError,
            "max_distance=8 must be above 8, where the buckets of one distance each "
            "end.",
        ),
        (
            lambda: clipped_distances(2, max_distance=-1),
            ShapeError,
            "max_distance must be at least 0, but it is -1.",
        ),
        (
            lambda: relative_bias(np.ones((4, 2)), [[0, 4]]),
            IndexError,
            "bucket 4 has no row: the table has n_buckets=4.",
        ),
        (
            lambda: relative_bias(np.ones((4, 2)), [[-1]]),
            IndexError,
            "bucket -1 has no row: the table has n_buckets=4.",
        ),
        (
            lambda: relative_bias(np.ones(4), [[0]]),
            ShapeError,
            "table must have 2 axes, but its shape is (4,).",
        ),
        (
            lambda: relative_bias(np.ones((4, 2)), [0]),
            ShapeError,
            "buckets must have 2 axes, but its shape is (1,).",
        ),
    ],
)
def test_errors_say_which_size(call, kind, text):
    with pytest.raises(kind) as error:
        call()
    assert type(error.value) is kind
    assert str(error.value) == text
