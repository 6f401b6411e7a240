"""A kernel's program, run again: what got round the meters of the chip is stale."""

from __future__ import annotations

import gc
import inspect

import numpy as np
import pytest
import tiles_kernels as written

from attnlib import tiles
from attnlib.exercises import get, judge
from attnlib.tiles import ranges

INF = np.inf
KEPT = {}  # what an answer carries from one call to the next
step = get("online_softmax").solution


def in_numpy(q, k, v):
    scores = q @ k.T / q.shape[1] ** 0.5
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ v


def as_if(chip, q, k, v, block_q, block_k):
    """Loads as a right kernel does, and looks at nothing."""
    for rows in ranges(len(q), block_q):
        chip.load(q, rows)
        for cols in ranges(len(k), block_k):
            chip.load(k, cols)
            chip.load(v, cols)


def stored(chip, out, block_q, found, put):
    for rows in ranges(len(found), block_q):
        tile = chip.new((len(rows), found.shape[1]))
        put(tile, found[rows.start : rows.stop])
        chip.store(out, rows, tile)


def into_its_array(tile, numbers):
    tile._array[:] = numbers


def by_number(tile, numbers):
    tile[:] = numbers.tolist()


def private(chip, q, k, v, out, block_q, block_k):
    """The arrays themselves, read and written behind the back of the chip."""
    as_if(chip, q, k, v, block_q, block_k)
    found = in_numpy(*(x._array for x in (q, k, v)))
    stored(chip, out, block_q, found, into_its_array)


def private_as_numbers(chip, q, k, v, out, block_q, block_k):
    as_if(chip, q, k, v, block_q, block_k)
    stored(chip, out, block_q, in_numpy(q._array, k._array, v._array), by_number)


def forged_tiles(chip, q, k, v, out, block_q, block_k):
    """Tiles made by hand of what no load brought."""
    as_if(chip, q, k, v, block_q, block_k)
    found = in_numpy(q._array, k._array, v._array)
    for rows in ranges(len(q), block_q):
        chip.store(out, rows, q.chip._tile(found[rows.start : rows.stop]))


def tile_by_tile(chip, q, k, v, out, block_q, block_k):
    """Each number is loaded; then it is kept where no chip counts it."""
    own = [np.zeros(x.shape) for x in (q, k, v)]
    for x, array in zip((q, k, v), own, strict=True):
        for rows in ranges(len(x), block_k):
            array[rows.start : rows.stop] = chip.load(x, rows)._array
    as_if(chip, q, k, v, block_q, block_k)
    stored(chip, out, block_q, in_numpy(*own), into_its_array)


def by_objects_found(chip, q, k, v, out, block_q, block_k):
    """No name is private to the collector of garbage."""
    own = [
        next(a for a in gc.get_referents(x.__dict__) if isinstance(a, np.ndarray))
        for x in (q, k, v)
    ]
    as_if(chip, q, k, v, block_q, block_k)
    stored(chip, out, block_q, in_numpy(*own), by_number)


def by_frames(chip, q, k, v, out, block_q, block_k):
    """The arguments of those who called."""
    frame = inspect.currentframe()
    own = None
    while frame is not None and own is None:
        there = frame.f_locals
        if all(isinstance(there.get(name), np.ndarray) for name in "qkv"):
            own = [there[name] for name in "qkv"]
        frame = frame.f_back
    as_if(chip, q, k, v, block_q, block_k)
    stored(chip, out, block_q, in_numpy(*own), by_number)


def by_questions(chip, q, k, v, out, block_q, block_k):
    """A tile answers with yes or no; 50 answers are a number."""

    def asked(tile):
        low, high = -16.0, 16.0
        while high - low > 1e-6:
            middle = (low + high) / 2
            low, high = (middle, high) if tile > middle else (low, middle)
        return low

    if "q" not in KEPT:  # one look, for all the calls that come
        pass
    own = []
    for x in (q, k, v):
        tile = chip.load(x)
        if x.shape[0] > 20:  # far too slow for more
            own.append(x._array)
        else:
            n, d = x.shape
            own.append([[asked(tile[i, j]) for j in range(d)] for i in range(n)])
    del tile
    stored(chip, out, block_q, in_numpy(*map(np.array, own)), by_number)


def kept_from_before(chip, q, k, v, out, block_q, block_k):
    """An honest first call, whose result the later ones give back."""
    size = len(q), len(k)
    if size not in KEPT:
        written.tiled(chip, q, k, v, out, block_q, block_k)
        KEPT[size] = out._array.copy()
        return
    as_if(chip, q, k, v, block_q, block_k)
    stored(chip, out, block_q, KEPT[size], by_number)


def largest_peeked_at(chip, q, k, v, out, block_q, block_k):
    """No online softmax: the largest score of each row comes from outside."""
    top = (q._array @ k._array.T).max(axis=-1) / q.shape[1] ** 0.5
    for rows in ranges(len(q), block_q):
        tile = chip.load(q, rows) / q.shape[1] ** 0.5
        m = chip.new(len(rows))
        m[:] = top[rows.start : rows.stop].tolist()
        total, mixed = chip.new(len(rows)), chip.new((len(rows), v.shape[1]))
        for cols in ranges(len(k), block_k):
            e = np.exp(tile @ chip.load(k, cols).T - m[:, None])
            total += e.sum(axis=-1)
            mixed += e @ chip.load(v, cols)
        chip.store(out, rows, mixed / total[:, None])


def weights_peeked_at(chip, q, k, v, out, block_q, block_k):
    scores = q._array @ k._array.T / q.shape[1] ** 0.5
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True)
    for rows in ranges(len(q), block_q):
        chip.load(q, rows)
        mixed = chip.new((len(rows), v.shape[1]))
        for cols in ranges(len(k), block_k):
            chip.load(k, cols)
            tile = chip.new((len(rows), len(cols)))
            tile[:] = weights[rows.start : rows.stop, cols.start : cols.stop].tolist()
            mixed += tile @ chip.load(v, cols)
        chip.store(out, rows, mixed)


class _Spy(float):
    """A number that, when it is used, looks around for arrays."""

    def __float__(self):
        return 0.0


def a_number_that_runs(chip, q, k, v, out, block_q, block_k):
    written.tiled(chip, q, k, v, out, block_q, block_k)
    tile = chip.new(1)
    tile[0] = _Spy(1)


def a_function_of_its_own(chip, q, k, v, out, block_q, block_k):
    """A ufunc whose inside is Python."""
    own = np.frompyfunc(lambda x: x, 1, 1)
    for rows in ranges(len(q), block_q):
        tile = chip.load(q, rows)
        own(tile, out=tile, casting="unsafe")
    written.tiled(chip, q, k, v, out, block_q, block_k)


def given_back_too_early(chip, q, k, v, out, block_q, block_k):
    """The room of a tile is given back, and the tile used."""
    scores = chip.load(q) @ chip.load(k).T / q.shape[1] ** 0.5
    scores.room.__del__()
    scores.room.n_bytes = 0
    del type(scores).__del__
    written.tiled(chip, q, k, v, out, block_q, block_k)


def meters_set_behind(chip, q, k, v, out, block_q, block_k):
    written.whole_matrix(chip, q, k, v, out, block_q, block_k)
    q.chip.peak = 10_000
    q.chip.read, q.chip.written = 150_000, out.shape[0] * out.shape[1] * 8


CHEATS = (
    private,
    private_as_numbers,
    forged_tiles,
    tile_by_tile,
    by_objects_found,
    by_frames,
    by_questions,
    kept_from_before,
    largest_peeked_at,
    weights_peeked_at,
    meters_set_behind,
)


@pytest.mark.parametrize("answer", CHEATS, ids=lambda f: f.__name__)
def test_what_gets_round_the_meters_is_refused(answer):
    KEPT.clear()
    for _ in range(2):
        verdict = judge("tiled_attention", answer)
        assert not verdict.passed
    assert verdict.status == "law", verdict.text
