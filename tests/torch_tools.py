"""What the tests of attnlib.nn share: one thread, float64, random tensors, nearness."""

import numpy as np
import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread():
    """Sums in the same order everywhere; import it to use it."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def in_float64():
    """New tensors in float64, as in the lessons that train; import it to use it."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


def normal(*shape, seed=0, grad=False):
    array = np.random.default_rng(seed).normal(size=shape)
    return torch.from_numpy(array).requires_grad_(grad)


def close(ours, theirs, atol=1e-10):
    torch.testing.assert_close(ours, theirs, rtol=0, atol=atol)
