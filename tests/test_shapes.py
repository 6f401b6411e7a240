"""Names of axes, and the exact words of the errors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib.shapes import ShapeError, check_shapes, numbers, size

steady = settings(derandomize=True, deadline=None, max_examples=60)
sizes = st.integers(0, 4)


@steady
@given(st.lists(sizes, max_size=3), sizes, sizes)
def test_the_last_axes_are_named_and_the_others_are_free(batch, n, d):
    array = np.zeros((*batch, n, d))
    assert check_shapes({"x": (array, "n d")}) == {"n": n, "d": d}


@steady
@given(sizes, sizes, sizes)
def test_one_name_has_one_size(n_q, n_k, d_k):
    arrays = {
        "q": (np.zeros((n_q, d_k)), "n_q d_k"),
        "k": (np.zeros((n_k, 3)), "n_k d_k"),
    }
    if d_k == 3:
        assert check_shapes(arrays) == {"n_q": n_q, "n_k": n_k, "d_k": 3}
    else:
        with pytest.raises(ShapeError):
            check_shapes(arrays)


def test_lists_are_read_and_arrays_are_not_copied():
    array = np.ones((2, 3))
    assert numbers("x", array) is array
    assert numbers("x", [[1, 2]]).shape == (1, 2)


@pytest.mark.parametrize(
    ("arrays", "known", "text"),
    [
        (
            {"q": (np.ones((3, 2)), "n_q d_k"), "k": (np.ones((5, 4)), "n_k d_k")},
            {},
            "d_k is 2 in q with shape (3, 2) but 4 in k with shape (5, 4); "
            "q and k must agree in d_k.",
        ),
        (
            {"x": (np.ones((3, 2)), "n d_model")},
            {"d_model": 8},
            "d_model is 8, but x with shape (3, 2) has 2 there.",
        ),
        (
            {"q": (np.ones(3), "n_q d_k")},
            {},
            "q needs the axes (n_q, d_k) at its end, but its shape is (3,).",
        ),
        (
            {"W": (np.ones((3, 2)), "n n")},
            {},
            "n is 3 in W with shape (3, 2) but 2 in W with shape (3, 2); W and W must "
            "agree in n.",
        ),
    ],
)
def test_shape_errors_say_which_size(arrays, known, text):
    with pytest.raises(ShapeError) as error:
        check_shapes(arrays, **known)
    assert str(error.value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "q must be an array of numbers, but it is a NoneType of dtype object."),
        ("猫", "q must be an array of numbers, but it is a str."),
        ([1, None], "q must be an array of numbers, but it is a list of dtype object."),
        (
            np.array([1j]),
            "q must be an array of numbers, but it is a ndarray of dtype complex128.",
        ),
    ],
)
def test_what_is_no_array_of_numbers_is_named(value, text):
    with pytest.raises(TypeError) as error:
        numbers("q", value)
    assert str(error.value) == text


def test_a_ragged_list_keeps_numpys_reason():
    with pytest.raises(
        TypeError, match=r"^q must be .* cannot read it: .*inhomogen.*\.$"
    ):
        numbers("q", [[1.0, 2.0], [3.0]])


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3), np.array(3)])
def test_every_kind_of_whole_number_is_a_size(value):
    assert size("n_q", value) == 3
    assert type(size("n_q", value)) is int
    assert size("n_q", value, least=3) == 3


@pytest.mark.parametrize(
    ("value", "least", "kind", "text"),
    [
        (-1, 0, ShapeError, "n_q must be at least 0, but it is -1."),
        (0, 1, ShapeError, "n_q must be at least 1, but it is 0."),
        (3.0, 0, TypeError, "n_q must be a whole number, but it is 3.0."),
        (True, 0, TypeError, "n_q must be a whole number, but it is True."),
        ("3", 0, TypeError, "n_q must be a whole number, but it is '3'."),
        (None, 0, TypeError, "n_q must be a whole number, but it is None."),
        (
            np.array([3, 4]),
            0,
            TypeError,
            "n_q must be a whole number, but it is array([3, 4]).",
        ),
    ],
)
def test_what_is_no_size_is_named(value, least, kind, text):
    with pytest.raises(kind) as error:
        size("n_q", value, least)
    assert str(error.value) == text
