"""Softmax and attention against PyTorch, and what must hold for every input."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from torch.nn.attention.bias import causal_lower_right
from torch.nn.functional import scaled_dot_product_attention as sdpa

from attnlib.attention import scaled_dot_product, softmax
from attnlib.masks import causal
from attnlib.shapes import ShapeError

steady = settings(derandomize=True, deadline=None, max_examples=60)
sizes = st.integers(0, 5)
floats = st.floats(-1e3, 1e3)
batches = st.sampled_from([(), (2,), (0,), (3, 2)])


def random_qkv(batch, n_q, n_k, d_k, d_v, seed=0):
    rng = np.random.default_rng(seed)
    shapes = (n_q, d_k), (n_k, d_k), (n_k, d_v)
    return [rng.normal(size=(*batch, *shape)) for shape in shapes]


def torch_sdpa(q, k, v, mask=None, **more):
    q, k, v = (torch.from_numpy(np.ascontiguousarray(array)) for array in (q, k, v))
    if isinstance(mask, np.ndarray):
        mask = torch.from_numpy(mask)
    return sdpa(q, k, v, attn_mask=mask, **more).numpy()


# softmax


@steady
@given(
    hnp.arrays(np.float64, hnp.array_shapes(max_dims=3, max_side=5), elements=floats)
)
def test_softmax_is_torchs_on_every_axis(x):
    for axis in range(-x.ndim, x.ndim):
        expected = torch.softmax(torch.from_numpy(x), axis).numpy()
        np.testing.assert_allclose(softmax(x, axis), expected, rtol=0, atol=1e-12)


@steady
@given(hnp.arrays(np.float64, (3, 4), elements=floats), floats)
def test_softmax_rows_sum_to_one_and_forget_a_shift(x, shift):
    weights = softmax(x)
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-12)
    np.testing.assert_allclose(softmax(x + shift), weights, atol=1e-9)


def test_softmax_by_hand():
    # e / (e + 1) and 1 / (e + 1)
    np.testing.assert_allclose(
        softmax([1.0, 0.0]), [0.7310585786300049, 0.2689414213699951], rtol=1e-15
    )


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_huge_scores_are_finite_in_every_float(dtype):
    big = np.finfo(dtype).max
    weights = softmax(np.array([big, big, -big / 2], dtype))
    assert weights.dtype == dtype
    assert weights.tolist() == [0.5, 0.5, 0.0]


def test_an_empty_slice_gives_zeros_and_leaves_the_others_alone():
    x = np.array([[-np.inf, -np.inf], [0.0, -np.inf]])
    assert softmax(x).tolist() == [[0, 0], [1, 0]]
    assert softmax(x, axis=0).tolist() == [[0, 0], [1, 0]]


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3), (2, 0, 3)])
def test_no_scores_give_no_weights(shape):
    assert softmax(np.zeros(shape)).shape == shape


@pytest.mark.parametrize(("shape", "axis"), [((5000, 2), 0), ((2, 5000), 1)])
def test_many_equal_scores_in_float16_still_sum_to_one(shape, axis):
    # Summed in float16 along axis 0, 5000 ones are 2048.
    weights = softmax(np.zeros(shape, np.float16), axis)
    assert weights.dtype == np.float16
    np.testing.assert_allclose(weights.astype(float).sum(axis), 1, rtol=1e-3)


def test_more_equal_scores_than_float16_can_count():
    weights = softmax(np.zeros(70_000, np.float16))
    assert weights[0] > 0


@pytest.mark.parametrize("x", [np.array([0, 1]), np.array([False, True]), [0, 1]])
def test_whole_numbers_become_float64(x):
    weights = softmax(x)
    assert weights.dtype == np.float64
    np.testing.assert_allclose(weights, softmax([0.0, 1.0]))


def test_a_wrong_axis_is_numpys_own_error():
    with pytest.raises(np.exceptions.AxisError):
        softmax([1.0, 2.0], axis=1)


# scaled_dot_product


@steady
@given(batches, sizes, sizes, sizes, sizes)
def test_all_sizes_work_zero_among_them(batch, n_q, n_k, d_k, d_v):
    stages = scaled_dot_product(*random_qkv(batch, n_q, n_k, d_k, d_v))
    for stage in (stages.raw_scores, stages.scores, stages.weights):
        assert stage.shape == (*batch, n_q, n_k)
    assert stages.out.shape == (*batch, n_q, d_v)
    assert np.isfinite(stages.out).all()
    np.testing.assert_allclose(stages.weights.sum(-1), 1 if n_k else 0, atol=1e-12)


@steady
@given(
    st.data(),
    st.integers(1, 5),
    st.integers(1, 5),
    st.integers(1, 4),
    st.integers(0, 9),
)
def test_equal_to_sdpa_with_any_mask_empty_rows_too(data, n_q, n_k, d_k, seed):
    mask = data.draw(hnp.arrays(bool, (n_q, n_k)))
    q, k, v = random_qkv((2, 3), n_q, n_k, d_k, 5, seed)
    out = scaled_dot_product(q, k, v, mask).out
    np.testing.assert_allclose(out, torch_sdpa(q, k, v, mask), rtol=0, atol=1e-10)
    assert (out[..., ~mask.any(axis=1), :] == 0).all()


@pytest.mark.parametrize("scale", [None, 0.3, 1.0, 0.0, -2.0])
def test_equal_to_sdpa_at_every_scale(scale):
    q, k, v = random_qkv((2, 3), 4, 6, 5, 7)
    expected = torch_sdpa(q, k, v, scale=scale)
    out = scaled_dot_product(q, k, v, scale=scale).out
    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize(("n_q", "n_k"), [(1, 6), (4, 6), (6, 6)])
def test_causal_is_torchs_lower_right(n_q, n_k):
    q, k, v = random_qkv((2, 3), n_q, n_k, 5, 5)
    expected = torch_sdpa(q, k, v, causal_lower_right(n_q, n_k))
    out = scaled_dot_product(q, k, v, causal(n_q, n_k)).out
    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-10)


def test_is_causal_of_sdpa_is_not_ours_when_sizes_differ():
    q, k, v = random_qkv((1,), 2, 5, 3, 4)
    top_left = torch_sdpa(q, k, v, is_causal=True)
    np.testing.assert_allclose(top_left[0, 0], v[0, 0])  # its first query sees one key
    assert not np.allclose(scaled_dot_product(q, k, v, causal(2, 5)).out, top_left)


def test_the_stages_follow_the_formula():
    q, k, v = random_qkv((2,), 3, 4, 5, 6)
    mask = causal(3, 4)
    stages = scaled_dot_product(q, k, v, mask)
    np.testing.assert_allclose(stages.raw_scores, np.einsum("bid,bjd->bij", q, k))
    seen = np.broadcast_to(mask, stages.scores.shape)
    np.testing.assert_allclose(stages.scores[seen], (stages.raw_scores / 5**0.5)[seen])
    assert (stages.scores[~seen] == -np.inf).all()
    assert (stages.weights[~seen] == 0).all()
    np.testing.assert_allclose(stages.out, np.einsum("bij,bjd->bid", stages.weights, v))


def test_keys_may_come_in_any_order():
    q, k, v = random_qkv((), 3, 6, 4, 5)
    order = np.random.default_rng(1).permutation(6)
    out = scaled_dot_product(q, k[order], v[order]).out
    np.testing.assert_allclose(out, scaled_dot_product(q, k, v).out, atol=1e-14)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_type_of_the_floats_stays(dtype):
    q, k, v = (array.astype(dtype) for array in random_qkv((2,), 3, 4, 5, 6))
    for scale in (None, 2, np.float64(0.5), np.array(0.5)):
        stages = scaled_dot_product(q, k, v, causal(3, 4), scale=scale)
        for stage in (stages.raw_scores, stages.scores, stages.weights, stages.out):
            assert stage.dtype == dtype
    exact = scaled_dot_product(
        *(array.astype(float) for array in (q, k, v)), causal(3, 4)
    )
    error = np.abs(scaled_dot_product(q, k, v, causal(3, 4)).out - exact.out).max()
    assert error < 20 * np.finfo(dtype).eps


def test_whole_numbers_are_computed_in_float64():
    q, k, v = np.eye(2, dtype=int), np.eye(2, dtype=np.uint8), [[True], [False]]
    stages = scaled_dot_product(q, k, v)
    assert stages.out.dtype == np.float64
    assert stages.raw_scores.tolist() == [[1, 0], [0, 1]]


def test_views_in_any_order_give_the_same_and_inputs_stay():
    q, k, v = random_qkv((2,), 3, 4, 5, 6)
    expected = scaled_dot_product(q, k, v).out
    views = [
        np.swapaxes(np.swapaxes(array, -1, -2).copy(), -1, -2) for array in (q, k, v)
    ]
    views[0] = np.repeat(q, 2, axis=0)[::2]
    for array in views:
        assert not array.flags["C_CONTIGUOUS"]
        array.flags.writeable = False
    before = [array.copy() for array in views]
    np.testing.assert_allclose(scaled_dot_product(*views).out, expected, atol=1e-14)
    for old, new in zip(before, views, strict=True):
        np.testing.assert_array_equal(old, new)


def test_batch_axes_broadcast():
    q, _, _ = random_qkv((2, 3), 4, 5, 6, 7)
    _, k, v = random_qkv((3,), 4, 5, 6, 7, seed=1)
    stages = scaled_dot_product(q, k, v)
    assert stages.out.shape == (2, 3, 4, 7)
    alone = scaled_dot_product(q[1, 2], k[2], v[2]).out
    np.testing.assert_allclose(stages.out[1, 2], alone, atol=1e-14)


def test_a_mask_hides_nan_in_a_key_but_not_in_its_value():
    q, k, v = random_qkv((), 2, 3, 4, 5)
    mask = np.array([True, True, False])
    clean = scaled_dot_product(q, k, v, mask).out
    k[2] = np.nan
    np.testing.assert_array_equal(scaled_dot_product(q, k, v, mask).out, clean)
    v[2] = np.nan
    assert np.isnan(scaled_dot_product(q, k, v, mask).out).all()
    k[2] = 0
    assert np.isnan(torch_sdpa(q, k, v, np.broadcast_to(mask, (2, 3)).copy())).all()


@pytest.mark.parametrize(
    ("q", "k", "v", "text"),
    [
        (
            (3, 2),
            (5, 4),
            (5, 6),
            "d_k is 2 in q with shape (3, 2) but 4 in k with shape (5, 4); "
            "q and k must agree in d_k.",
        ),
        (
            (3, 4),
            (5, 4),
            (2, 6),
            "n_k is 5 in k with shape (5, 4) but 2 in v with shape (2, 6); "
            "k and v must agree in n_k.",
        ),
        (
            (7, 3, 4),
            (8, 5, 4),
            (5, 6),
            "the batch axes of q (7,), k (8,) and v () do not broadcast.",
        ),
        (
            (4,),
            (5, 4),
            (5, 6),
            "q needs the axes (n_q, d_k) at its end, but its shape is (4,).",
        ),
    ],
)
def test_shapes_that_do_not_fit(q, k, v, text):
    with pytest.raises(ShapeError) as error:
        scaled_dot_product(np.ones(q), np.ones(k), np.ones(v))
    assert str(error.value) == text


HINT = "; a mask for each sequence of the batch needs an axis of 1 for the heads"


@pytest.mark.parametrize(
    ("batch", "mask", "hint"),
    [
        ((), (2, 5), ""),
        ((), (1, 3, 5), ""),
        ((2, 7), (4, 3, 5), ""),
        ((2, 7), (7, 5), ""),
        ((2, 7), (2, 3, 5), HINT),
        ((2, 7), (2, 1, 5), HINT),
    ],
)
def test_masks_that_do_not_fit(batch, mask, hint):
    q, k, v = random_qkv(batch, 3, 5, 4, 6)
    with pytest.raises(ShapeError) as error:
        scaled_dot_product(q, k, v, np.ones(mask, bool))
    assert str(error.value) == (
        f"mask with shape {mask} does not broadcast to the scores' shape "
        f"{(*batch, 3, 5)}, which ends in (n_q, n_k){hint}."
    )


@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_a_mask_of_numbers_is_refused(dtype):
    q, k, v = random_qkv((), 3, 5, 4, 6)
    with pytest.raises(TypeError) as error:
        scaled_dot_product(q, k, v, np.ones((3, 5), dtype))
    assert str(error.value) == (
        f"mask must be boolean (True = may look), but its dtype is {dtype}; "
        "a mask of 0 and 1 becomes one with mask.astype(bool)."
    )


def test_a_scale_that_is_no_number_is_refused():
    q, k, v = random_qkv((), 3, 5, 4, 6)
    with pytest.raises(TypeError) as error:
        scaled_dot_product(q, k, v, scale=[1, 2])
    assert str(error.value) == "scale must be one number, but it is [1, 2]."
