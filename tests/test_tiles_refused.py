"""What would get past the meters of the chip by accident, and what it is told."""

import math

import numpy as np
import pytest

from attnlib.shapes import ShapeError
from attnlib.tiles import Chip, ChipError, Tile

X = np.arange(20.0).reshape(5, 4)


# What would get past the meters.

PAST = {
    "a product in HBM": (
        lambda chip, q, out: q @ q,
        "q lies in HBM, where nothing is computed; chip.load copies rows of it to the "
        "chip.",
    ),
    "a tile with HBM": (lambda chip, q, out: chip.load(q) + q, "q lies in HBM, where"),
    "a slice": (lambda chip, q, out: q[0:3], "q lies in HBM, where"),
    "turned": (lambda chip, q, out: q.T, "q lies in HBM, where"),
    "np.exp": (lambda chip, q, out: np.exp(q), "q lies in HBM, where"),
    "np.where": (lambda chip, q, out: np.where(q, 1, 0), "q lies in HBM, where"),
    "np.asarray": (lambda chip, q, out: np.asarray(q), "q lies in HBM, where"),
    "a loop": (lambda chip, q, out: list(q), "q lies in HBM, where"),
    "an assignment": (
        lambda chip, q, out: out.__setitem__(0, chip.load(q, range(1))),
        "out lies in HBM; chip.store copies a tile from the chip into rows of it.",
    ),
    "np.full": (
        lambda chip, q, out: np.maximum(np.full(5, -np.inf), chip.load(q)[:, 0]),
        "an array of shape (5,) comes from neither HBM nor the chip; chip.new, "
        "chip.arange and chip.load make what a tile can be used with.",
    ),
    "np.tri": (
        lambda chip, q, out: np.where(np.tri(5, 4) > 0, chip.load(q), 0),
        "an array of shape (5, 4) comes from neither HBM nor the chip",
    ),
    "an in-place sum": (
        lambda chip, q, out: np.zeros((5, 4)).__iadd__(chip.load(q)),
        "an array of shape (5, 4) comes from neither HBM nor the chip",
    ),
    "out=": (
        lambda chip, q, out: np.exp(chip.load(q), out=np.zeros((5, 4))),
        "an array of shape (5, 4) comes from neither HBM nor the chip",
    ),
    "an array is filled": (
        lambda chip, q, out: np.zeros((5, 4)).__setitem__(slice(5), chip.load(q)),
        "a tile lies on the chip and leaves it only through chip.store; chip.new makes "
        "room for numbers on the chip.",
    ),
    "np.array": (lambda chip, q, out: np.array([chip.load(q)]), "a tile lies on the"),
    "float": (lambda chip, q, out: float(chip.load(q)[0, 0]), "a tile lies on the"),
    "math": (lambda chip, q, out: math.exp(chip.load(q)[0, 0]), "a tile lies on the"),
    "an array is stored": (
        lambda chip, q, out: chip.store(out, range(5), np.zeros((5, 4))),
        "store writes a tile, but what it was handed, ndarray, is not on the chip.",
    ),
    "an array is loaded": (
        lambda chip, q, out: chip.load(np.zeros((5, 4))),
        "load needs an array that lies in HBM, as chip.hbm(array) gives it, but what "
        "it was handed, ndarray, lies in no HBM.",
    ),
    "a tile is loaded": (
        lambda chip, q, out: chip.load(chip.load(q)),
        "load needs an array that lies in HBM, as chip.hbm(array) gives it, but what "
        "it was handed, Tile, is on the chip already.",
    ),
    "another chip's HBM": (
        lambda chip, q, out: Chip().load(q),
        "q lies in the HBM of another chip.",
    ),
    "another chip's tile": (
        lambda chip, q, out: chip.load(q) + Chip().new((5, 4)),
        "two tiles of different chips do not meet.",
    ),
}


@pytest.mark.parametrize("way", PAST)
def test_nothing_gets_past_the_meters_by_accident(way):
    chip = Chip()
    q, out = chip.hbm(X, "q"), chip.hbm(np.zeros((5, 4)), "out")
    compute, text = PAST[way]
    with pytest.raises(ChipError) as caught:
        compute(chip, q, out)
    said = str(caught.value)
    assert said.startswith(text)
    assert said.endswith(".")


def test_an_array_is_not_filled_number_by_number_either():
    number = Chip().new(3)[0]
    with pytest.raises(ValueError, match="setting an array element") as caught:
        np.zeros(3)[0] = number  # NumPy says something of its own first
    assert isinstance(caught.value.__cause__, ChipError)


def test_rows_that_do_not_fit():
    chip = Chip()
    q, tile = chip.hbm(X, "q"), chip.new((2, 4))
    for compute, text in (
        (
            lambda: chip.load(q, range(4, 7)),
            "load was asked for rows 4 to 6 of q, which has 5 rows, the last of them "
            "row 4.",
        ),
        (
            lambda: chip.store(q, range(2, 5), tile),
            "store writes a tile of shape (2, 4) to a place of shape (3, 4) in q with "
            "shape (5, 4).",
        ),
        (
            lambda: chip.load(q, (range(1),) * 3),
            "load was asked for 3 axes of q, whose shape is (5, 4).",
        ),
        (
            lambda: chip.load(q, range(0, 4, 2)),
            "load takes rows that lie side by side, but not range(0, 4, 2).",
        ),
    ):
        with pytest.raises(ShapeError) as caught:
            compute()
        assert str(caught.value) == text
    with pytest.raises(TypeError, match=r"load takes rows as a range or a slice, but"):
        chip.load(q, 3)
    assert chip.traffic == 0


def test_a_function_that_numpy_calls_gets_tiles():
    chip = Chip()
    tile = chip.load(chip.hbm(np.arange(6.0).reshape(2, 3)))
    seen = []

    def total(row):
        seen.append(row)
        return row.sum()

    sums = np.apply_along_axis(total, 1, tile)
    assert all(isinstance(row, Tile) for row in seen)
    out = np.zeros(2)
    chip.store(chip.hbm(out), None, sums)
    assert out.tolist() == [3.0, 12.0]
    with pytest.raises(ChipError, match="neither HBM nor the chip"):
        np.apply_along_axis(lambda _: np.ones(3), 1, tile)


def test_objects_of_python_lie_on_no_chip():
    chip = Chip()
    x = chip.hbm(np.ones(3))
    with pytest.raises(ChipError, match="no bytes can be counted"):
        chip.load(x).astype(object)
    with pytest.raises(ChipError, match="no bytes can be counted"):
        chip.load(x, dtype=object)
