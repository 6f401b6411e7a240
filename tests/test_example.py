"""The example of the course: small, uneven, and fit to be computed by hand."""

import math

import numpy as np
import pytest

from attnlib import example
from attnlib.attention import scaled_dot_product

ARRAYS = {name: getattr(example, name) for name in ("X", "W_q", "W_k", "W_v")}


def test_all_sizes_differ():
    shapes = {name: array.shape for name, array in ARRAYS.items()}
    assert shapes == {"X": (3, 4), "W_q": (4, 2), "W_k": (4, 2), "W_v": (4, 5)}
    assert len(example.TOKENS) == len(example.TOKENS_EN) == 3
    assert len(example.FEATURES) == 4


def test_full_rank_so_that_no_score_table_is_ruled_out():
    assert np.linalg.matrix_rank(example.X) == 3


@pytest.mark.parametrize("name", ARRAYS)
def test_nobody_can_change_it(name):
    with pytest.raises(ValueError, match="read-only"):
        ARRAYS[name][0, 0] = 9


def test_by_hand_in_plain_python():
    def product(a, b):
        columns = list(zip(*b, strict=True))
        return [[sum(map(float.__mul__, r, c)) for c in columns] for r in a]

    X, W_q, W_k, W_v = (ARRAYS[name].tolist() for name in ARRAYS)
    q, k, v = product(X, W_q), product(X, W_k), product(X, W_v)
    raw = product(q, [list(column) for column in zip(*k, strict=True)])
    powers = [[math.exp(score / math.sqrt(2)) for score in row] for row in raw]
    weights = [[power / sum(row) for power in row] for row in powers]
    stages = scaled_dot_product(*(example.X @ W for W in list(ARRAYS.values())[1:]))
    np.testing.assert_allclose(stages.raw_scores, raw, rtol=1e-13)
    np.testing.assert_allclose(stages.weights, weights, rtol=1e-13)
    np.testing.assert_allclose(stages.out, product(weights, v), rtol=1e-13)


def test_it_teaches_because_it_is_neither_symmetric_nor_saturated():
    q, k, v = (example.X @ W for W in (example.W_q, example.W_k, example.W_v))
    stages = scaled_dot_product(q, k, v)
    off_diagonal = np.abs(stages.raw_scores - stages.raw_scores.T)[
        np.triu_indices(3, 1)
    ]
    assert off_diagonal.min() > 0.1
    assert 0.02 < stages.weights.min() < stages.weights.max() < 0.9
    unscaled = scaled_dot_product(q, k, v, scale=1.0)
    assert np.abs(unscaled.weights - stages.weights).max() > 0.05
