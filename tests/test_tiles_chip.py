"""The chip: what it counts, what it refuses, and that nothing gets past the meters."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib.shapes import ShapeError
from attnlib.tiles import Chip, ChipFull, Tile

steady = settings(derandomize=True, deadline=None, max_examples=60)
X = np.arange(20.0).reshape(5, 4)


@pytest.fixture
def chip():
    return Chip(sram_bytes=400)


# Counting.


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, bool])
def test_a_load_counts_the_bytes_that_lie_in_hbm(dtype):
    chip = Chip()
    x = X.astype(dtype)
    tile = chip.load(chip.hbm(x), range(1, 3), np.float64)
    assert (chip.read, chip.written) == (2 * 4 * x.itemsize, 0)
    assert chip.in_use == tile.nbytes == 64  # on the chip they are wider


def test_a_store_counts_what_hbm_takes_and_writes_there():
    chip, out = Chip(), np.zeros((5, 4), np.float32)
    tile = chip.new((2, 2), 7.0, np.float64)
    chip.store(chip.hbm(out), (range(1, 3), range(2)), tile)
    assert (chip.read, chip.written, chip.traffic) == (0, 16, 16)
    assert out.tolist()[1] == [7, 7, 0, 0]


def test_a_new_tile_moves_nothing_and_takes_room(chip):
    tile = chip.new((3, 2), -np.inf)
    assert (chip.traffic, chip.in_use) == (0, 48)
    assert np.isneginf(tile).all()
    assert chip.arange(range(3, 6)).shape == (3,)


def test_room_is_given_back_when_no_name_holds_a_tile(chip):
    a = chip.new((5, 2))
    view, turned = a[1:3], a.T
    assert chip.in_use == 80  # two views take nothing
    b = a + view.sum()
    assert chip.in_use == 160
    del a, view
    assert chip.in_use == 160  # `turned` still looks at it
    del turned, b
    assert (chip.in_use, chip.peak) == (0, 168)
    small = chip.new(1)
    assert (chip.in_use, chip.peak) == (small.nbytes, 168)


def test_in_place_takes_no_room(chip):
    a = chip.new((5, 4), 2.0)
    before = chip.peak
    a *= 2
    np.exp(a, out=a)
    np.copyto(a, 1.0, where=a > 2)
    assert chip.peak - before <= 20  # the mask
    assert (a == 1).all()


def test_a_choice_by_a_mask_is_a_copy_and_a_slice_is_none(chip):
    a = chip.load(chip.hbm(X))
    assert chip.in_use == 160
    chosen = a[a[:, 0] > 7]
    assert (chosen.shape, chip.in_use) == ((3, 4), 160 + 96)


def test_products_are_counted():
    chip = Chip()
    x = chip.load(chip.hbm(X))
    assert (x @ x.T).shape == (5, 5)
    assert chip.flops == 2 * 5 * 5 * 4


def test_new_tiles_are_as_wide_as_the_widest_float_in_hbm_and_at_least_float32():
    chip = Chip()
    assert chip.new(1).dtype == np.float64
    chip.hbm(X.astype(np.float16))
    assert chip.new(1).dtype == np.float32
    chip.hbm(X > 3)
    assert chip.new(1).dtype == np.float32
    chip.hbm(X)
    assert chip.new(1).dtype == np.float64


# Computing: a tile gives what the array gives.

WAYS = {
    "exp": lambda x: np.exp(-x),
    "product": lambda x: x @ x.T,
    "max": lambda x: x.max(axis=-1),
    "np.max": lambda x: np.max(x, axis=0, keepdims=True),
    "sum": lambda x: x.sum(),
    "mean": lambda x: x.mean(axis=1, keepdims=True),
    "where": lambda x: np.where(x > 3, x, -np.inf),
    "einsum": lambda x: np.einsum("ij,kj->ik", x, x),
    "min": lambda x: x.min(axis=1) + x.swapaxes(0, 1).transpose().max(),
    "reshape": lambda x: x.reshape(2, 10)[:, ::3],
    "newaxis": lambda x: x[:, None] / (1 + x[None, :, 0, None]),
    "power": lambda x: 2.0 * x**2 - 1,
    "any": lambda x: (x > 17).any(axis=1) | (x < 1).all(axis=1),
    "copy": lambda x: x.copy().astype(np.float32),
    "reduce": lambda x: np.maximum.reduce(x, axis=1),
    "concatenate": lambda x: np.concatenate([x, x]),
    "float64": lambda x: np.float64(3) * x,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_tile_computes_what_an_array_computes(way):
    chip, store = Chip(), Chip()
    found = WAYS[way](chip.load(chip.hbm(X)))
    wanted = np.asarray(WAYS[way](X))
    assert isinstance(found, Tile)
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    out = np.zeros_like(wanted)
    store = chip.hbm(out)
    chip.store(store, None, found)
    np.testing.assert_array_equal(out, wanted)
    assert len(chip.load(chip.hbm(X))) == 5


@steady
@given(st.lists(st.sampled_from(sorted(WAYS)), max_size=6), st.randoms())
def test_in_use_is_the_sum_of_what_is_held(ways, random):
    chip = Chip()
    x = chip.load(chip.hbm(X))
    held = [WAYS[way](x) for way in ways]
    random.shuffle(held)
    while held:
        held.pop()
        rooms = {id(t.room): t.room.n_bytes for t in [*held, x]}
        assert chip.in_use == sum(rooms.values()) <= chip.peak


# What does not fit.


def test_what_does_not_fit_is_refused_before_it_is_made(chip):
    x = chip.hbm(np.ones((10, 5)), "x")
    kept = chip.load(x, range(9))
    with pytest.raises(
        ChipFull,
        match=r"^an array of shape \(2, 5\) in float64 takes 80 bytes, but of the "
        r"chip's 400 bytes of SRAM 40 are free\.$",
    ):
        chip.load(x, range(2))
    with pytest.raises(ChipFull, match=r"shape \(9, 5\) in float64 takes 360 bytes"):
        kept + 1
    assert (chip.read, chip.in_use) == (360, 360)  # nothing was counted, nothing kept
    del kept
    assert chip.in_use == 0


def test_a_product_far_too_large_takes_no_memory():
    chip = Chip(sram_bytes=2_000_000)
    column = chip.new((100_000, 1), 1.0)
    with pytest.raises(ChipFull, match=r"shape \(100000, 100000\) in float64"):
        column @ column.T
    with pytest.raises(ChipFull, match=r"shape \(100000, 100000\) in bool"):
        np.greater(column, column.T)


def test_a_chip_of_no_size():
    with pytest.raises(ShapeError, match=r"sram_bytes must be at least 1, but it is 0"):
        Chip(0)
    with pytest.raises(TypeError, match=r"sram_bytes must be a whole number"):
        Chip(64.0)


def test_a_slice_ends_where_the_array_ends():
    chip = Chip()
    assert chip.load(chip.hbm(X), slice(3, 9)).shape == (2, 4)
    assert chip.load(chip.hbm(X), range(5, 5)).shape == (0, 4)


def test_a_tile_shows_its_numbers_and_a_chip_its_meters(chip):
    assert repr(chip.new(2, 0.5)) == "Tile([0.5, 0.5])"
    assert repr(chip.hbm(X, "q")) == "InHBM(q, shape=(5, 4), dtype=float64)"
    assert repr(chip) == ("Chip(sram_bytes=400, read=0, written=0, in_use=0, peak=16)")


def test_a_shape_that_does_not_fit_is_numpys_to_say(chip):
    with pytest.raises(ValueError, match="could not be broadcast"):
        chip.new((2, 3)) + chip.new((4, 5))
    with pytest.raises(ValueError, match="matmul"):
        chip.new((2, 3)) @ chip.new((4, 5))


def test_a_copied_meter_stays(chip):
    before = copy.copy(chip)
    chip.load(chip.hbm(X))
    assert (before.read, chip.read) == (0, 160)
