"""Flash attention's dropout, which a seed decides, and its errors."""

import numpy as np
import pytest
import torch
from torch_tools import close, normal, one_thread  # noqa: F401

from attnlib.nn import flash_attention, scaled_dot_product
from attnlib.nn.flash.drop import Drop
from attnlib.shapes import ShapeError

SMALL = {"block_q": 3, "block_k": 2}


def kept(rate, seed, n_heads=1, n_q=300, n_k=300):
    """All of what stays, at once."""
    drop = Drop(rate, seed, (1, n_heads, 1), (n_q, n_k), torch.device("cpu"))
    return drop.kept((0, slice(0, n_heads)), slice(0, n_q), slice(0, n_k)).double()


# Dropout.


def test_dropout_is_the_plain_form_with_what_stays():
    q, k = normal(2, 4, 5, 3, grad=True), normal(2, 2, 7, 3, seed=1, grad=True)
    v = normal(2, 2, 7, 2, seed=2, grad=True)
    ours = flash_attention(q, k, v, dropout=0.3, seed=6, **SMALL)
    # Without a mask the batch joins the heads: two sequences of two KV heads are four.
    drop = Drop(0.3, 6, (1, 4, 2), (5, 7), q.device)
    keep = drop.kept((0, slice(0, 4)), slice(0, 5), slice(0, 7)).view(2, 4, 5, 7)
    assert 0 < keep.sum() < keep.numel()
    wide = [x.repeat_interleave(2, 1) for x in (k, v)]
    theirs = (scaled_dot_product(q, *wide).weights * keep / 0.7) @ wide[1]
    close(ours, theirs)
    upstream = normal(*ours.shape, seed=9)
    pairs = zip(
        torch.autograd.grad(ours, (q, k, v), upstream),
        torch.autograd.grad(theirs, (q, k, v), upstream),
        strict=True,
    )
    for mine, other in pairs:
        close(mine, other)


@pytest.mark.parametrize("mask", [None, torch.ones(3, 1, 1, 9, dtype=torch.bool)])
def test_what_is_dropped_does_not_depend_on_tiles_masks_or_threads(mask):
    q, k, v = (normal(3, 2, 9, 4, seed=seed) for seed in range(3))
    options = {"dropout": 0.5, "seed": 1}
    whole = flash_attention(q, k, v, **options)
    close(flash_attention(q, k, v, mask=mask, **options, **SMALL), whole)
    torch.set_num_threads(2)
    close(flash_attention(q, k, v, mask=mask, block_q=4, **options), whole)


def test_a_seed_repeats_and_another_does_not():
    q = normal(2, 8, 4)
    outs = [flash_attention(q, q, q, dropout=0.5, seed=s) for s in (1, 1, 2, -1, 2**40)]
    close(outs[0], outs[1], atol=0)
    for other in outs[2:]:
        assert not torch.allclose(outs[0], other)


def test_without_a_seed_torchs_generator_decides():
    q = normal(2, 8, 4)
    outs = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        outs.append(flash_attention(q, q, q, dropout=0.5))
    close(outs[0], outs[1], atol=0)
    assert not torch.equal(outs[0], outs[2])
    state = torch.random.get_rng_state()
    flash_attention(q, q, q, dropout=0.5, seed=3)
    flash_attention(q, q, q)
    assert torch.equal(state, torch.random.get_rng_state())


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("seed", [0, 1, 12345])
def test_what_is_dropped_looks_like_coins(rate, seed):
    heads = kept(rate, seed, n_heads=4)
    share = 1 - rate
    limit = 5 * (share * rate) ** 0.5
    assert abs(heads.mean() - share) < limit / heads.numel() ** 0.5
    for axis in ((0, 1), (0, 2)):  # every key, every query
        means = heads.mean(axis)
        assert (means - share).abs().max() < limit / (heads.numel() / 300) ** 0.5
    coins = (heads - share) / (share * rate) ** 0.5
    n = coins[0].numel() ** 0.5
    neighbours = {
        "queries": coins[:, 1:] * coins[:, :-1],
        "keys": coins[:, :, 1:] * coins[:, :, :-1],
        "heads": coins[1:] * coins[:-1],
        "far": coins[:, 256:] * coins[:, :-256],
        "diagonal": coins * coins.mT,
        "squares": coins[:, 1:, 1:]
        * coins[:, 1:, :-1]
        * coins[:, :-1, 1:]
        * coins[:, :-1, :-1],
        "seeds": coins[0] * (kept(rate, seed + 1)[0] - share) / (share * rate) ** 0.5,
    }
    for name, product in neighbours.items():
        spread = product.std() / product.numel() ** 0.5
        assert abs(product.mean()) < 5 * spread + 1e-3, (name, n)


def test_keys_that_differ_in_one_bit_are_dropped_apart():
    drop = Drop(0.5, 0, (1, 1, 1), (1000, 2), torch.device("cpu"))
    drop._of_key[:] = torch.tensor([0, -(2**31)], dtype=torch.int32)
    one, other = drop.kept((0, slice(0, 1)), slice(0, 1000), slice(0, 2))[0].mT
    assert 0.4 < (one == other).double().mean() < 0.6


def test_dropout_keeps_the_mean():
    q, k = normal(1, 2), normal(4, 2, seed=1)
    v = torch.eye(4, dtype=torch.float64)
    many = q.expand(20_000, 2)
    ours = flash_attention(many, k, v, dropout=0.25, seed=0)
    exact = scaled_dot_product(q, k, v).weights
    close(ours.mean(0), exact[0], atol=0.01)
    close(ours[ours != 0].view(-1), (exact / 0.75).expand(20_000, 4)[ours != 0])


# Errors.

ONE = torch.ones(3, 2)


@pytest.mark.parametrize(
    ("tensors", "options", "kind", "text"),
    [
        (
            (torch.ones(3, 2), torch.ones(5, 4), ONE),
            {},
            ShapeError,
            "d_k is 2 in q with shape (3, 2) but 4 in k with shape (5, 4); q and k "
            "must agree in d_k.",
        ),
        (
            (torch.ones(3), ONE, ONE),
            {},
            ShapeError,
            "q needs the axes (n_q, d_k) at its end, but its shape is (3,).",
        ),
        (
            (torch.ones(2, 1, 3, 2), torch.ones(5, 1, 3, 2), ONE),
            {},
            ShapeError,
            "the batch axes of q (2, 1), k (5, 1) and v () do not broadcast.",
        ),
        (
            (ONE, torch.ones(2, 3, 2), torch.ones(3, 3, 2)),
            {},
            ShapeError,
            "the batch axes of q (), k (2,) and v (3,) do not broadcast.",
        ),
        (
            (torch.ones(6, 3, 2), *[torch.ones(4, 3, 2)] * 2),
            {},
            ShapeError,
            "n_heads=6 is not a multiple of n_kv_heads=4.",
        ),
        (
            (np.ones((3, 2)), ONE, ONE),
            {},
            TypeError,
            "q must be a torch.Tensor, but it is a ndarray; torch.from_numpy(q) makes "
            "one.",
        ),
        (
            (ONE, ONE.double(), ONE),
            {},
            TypeError,
            "q, k and v must have one dtype, but they have float32, float64 and "
            "float32.",
        ),
        (
            (ONE, ONE, ONE.to("meta")),
            {},
            TypeError,
            "q, k and v must have one device, but they have cpu, cpu and meta.",
        ),
        (
            (ONE, ONE, ONE),
            {"mask": torch.zeros(3, 3)},
            TypeError,
            "mask must be boolean (True = may look), but its dtype is float32; numbers "
            "to add to the scores are bias.",
        ),
        (
            (ONE, ONE, ONE),
            {"mask": torch.ones(3, 4, dtype=torch.bool)},
            ShapeError,
            "mask with shape (3, 4) does not broadcast to the scores' shape (3, 3), "
            "which ends in (n_q, n_k).",
        ),
        (
            [torch.ones(2, 4, 3, 2)] * 3,
            {"mask": torch.ones(2, 3, 3, dtype=torch.bool)},
            ShapeError,
            "mask with shape (2, 3, 3) does not broadcast to the scores' shape "
            "(2, 4, 3, 3), which ends in (n_q, n_k); a mask for each sequence of the "
            "batch needs an axis of 1 for the heads.",
        ),
        (
            (ONE, ONE, ONE),
            {"bias": torch.ones(3, 3, dtype=torch.bool)},
            TypeError,
            "bias is added to the scores; a boolean one is a mask.",
        ),
        (
            (ONE, ONE, ONE),
            {"bias": torch.ones(2, 3, 3)},
            ShapeError,
            "bias with shape (2, 3, 3) does not broadcast to the scores' shape (3, 3), "
            "which ends in (n_q, n_k).",
        ),
        (
            (ONE, ONE, ONE),
            {"bias": torch.zeros(3, 3, dtype=torch.int64)},
            TypeError,
            "bias must be a floating tensor, but its dtype is int64.",
        ),
        (
            (ONE, ONE, ONE),
            {"dropout": 1.0},
            ValueError,
            "dropout must be at least 0 and less than 1, but it is 1.0.",
        ),
        (
            (ONE, ONE, ONE),
            {"dropout": 0.1, "seed": 0.5},
            TypeError,
            "seed must be a whole number, but it is 0.5.",
        ),
        (
            (ONE, ONE, ONE),
            {"block_q": 0},
            ShapeError,
            "block_q must be at least 1, but it is 0.",
        ),
        (
            (ONE, ONE, ONE),
            {"block_k": 2.0},
            TypeError,
            "block_k must be a whole number, but it is 2.0.",
        ),
        (
            (ONE, ONE, ONE),
            {"scale": "half"},
            TypeError,
            "scale must be one number, but it is 'half'.",
        ),
    ],
)
def test_errors_name_the_sizes(tensors, options, kind, text):
    with pytest.raises(kind) as error:
        flash_attention(*tensors, **options)
    assert str(error.value) == text
