"""What a ring sends, against counting hop by hop; test_nn_ring has what it did send."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib import cost
from attnlib.shapes import ShapeError

SMALL = st.integers(1, 6)


@settings(derandomize=True, deadline=None)
@given(SMALL, SMALL, SMALL, SMALL, SMALL, st.sampled_from([2, 4, 8]))
def test_hop_by_hop(n_local, n_ranks, n_kv_heads, d_k, d_v, itemsize):
    """The blocks of one rank are followed: every hop is sent by some rank."""
    block = n_local * n_kv_heads * (d_k + d_v)
    forward = backward = 0
    for step in range(n_ranks):
        if step < n_ranks - 1:
            forward += block * itemsize
            backward += block * itemsize
        if n_ranks > 1:
            backward += block * max(4, itemsize)
    found = cost.ring_traffic(
        n_local * n_ranks, n_ranks, n_kv_heads, d_k, d_v, itemsize=itemsize
    )
    assert (found.forward, found.backward) == (forward, backward)
    assert found.total == forward + backward
    assert found.step == block * itemsize


def test_all_ranks_together_send_each_key_and_value_to_all_others():
    found = cost.ring_traffic(1200, 6, 2, 64)
    assert 6 * found.forward == 5 * cost.cache_bytes(
        cost.kv_bytes_per_token(1, 2, 64, itemsize=4), 1200
    )


def test_texts_and_the_width_of_gradients():
    one = cost.ring_traffic(12, 3, 2, 4, itemsize=2)
    assert cost.ring_traffic(12, 3, 2, 4, batch=5, itemsize=2).total == 5 * one.total
    narrow = cost.ring_traffic(12, 3, 2, 4, itemsize=2, grad_itemsize=2)
    assert one.backward - narrow.backward == 3 * one.step


def test_sizes_that_make_no_sense():
    with pytest.raises(ShapeError, match="n=10 is not a multiple of n_ranks=4"):
        cost.ring_traffic(10, 4, 1, 2)
    with pytest.raises(ShapeError, match="n_ranks must be at least 1"):
        cost.ring_traffic(10, 0, 1, 2)
    with pytest.raises(TypeError, match="d_k must be a whole number"):
        cost.ring_traffic(10, 2, 1, 2.0)
