"""How a fused matrix is cut into q, k and v, found out by what its columns do.

A text of one token has one key, so that only the values have an influence: what else
is changed changes nothing. And a feature that only the first token has reaches the
other tokens by its key and its value, never by its query. Where a mistake breaks both
rules, a third is left: the result grows in proportion to the values, to nothing else.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlib.clinic.tensors import torch
from attnlib.shapes import Array

Cut = Callable[[Any], Any]  # (n_in, columns of all) -> (n_in, columns of one, ...)
Cuts = dict[str, Cut]
SMALL = 1e-10  # relative; a larger difference is an influence


@dataclass
class Bench:
    """Calls the copy, and changes parts of its parameters for a moment."""

    out: Callable[[Array], Array | None]  # x (batch, n, d_model) -> the result
    d_model: int
    d_memory: int | None = None  # if it differs from d_model, and must be given
    seed: int = 0

    def tokens(self, n: int) -> Array:
        """A text of n tokens, the same at every call."""
        rng = np.random.default_rng(self.seed + 7)
        return np.round(rng.normal(size=(1, n, self.d_model)) * 8) / 8

    def moved(self, view: Any, x: Array, step: float = 1.0) -> Array | None:
        """By how much each number of the result changes if `view` is changed."""
        before = self.out(x)
        after = self.changed(view, x, step)
        if before is None or after is None or before.shape != after.shape:
            return None
        with np.errstate(all="ignore"):
            moved = np.abs(after - before) / (1.0 + np.abs(before))
        moved[np.isnan(before) & np.isnan(after)] = 0.0
        return np.asarray(moved)

    def changed(self, view: Any, x: Array, step: float) -> Array | None:
        """The result while `view` is changed."""
        with self.together([view], step):
            return self.out(x)

    @contextlib.contextmanager
    def together(self, views: list[Any], step: float) -> Iterator[None]:
        """All views changed for a moment, in a direction that is always the same."""
        kept = [view.clone() for view in views]
        rng = np.random.default_rng(self.seed + 9)
        try:
            with torch.no_grad():
                for view in views:
                    noise = rng.normal(size=tuple(view.shape)) * step
                    view.add_(torch.from_numpy(noise).to(view))
            yield
        finally:
            with torch.no_grad():
                for view, before in zip(views, kept, strict=True):
                    view.copy_(before)

    def still(self, view: Any, x: Array) -> bool:
        """Whether a change of `view` has no influence."""
        moved = self.moved(view, x)
        return moved is not None and bool((moved < SMALL).all())

    def moves(self, view: Any, x: Array) -> bool:
        """Whether a change of `view` has an influence."""
        moved = self.moved(view, x)
        return moved is not None and bool((moved > SMALL).any())


def layouts(letters: str, heads: dict[str, int], width: int) -> Iterator[Cuts]:
    """Every way in which `width` columns may hold the letters q, k and v."""
    total = sum(heads[r] for r in letters)
    if width % total:
        return
    d = width // total
    orders = list(itertools.permutations(letters))
    for order in orders:  # side by side
        yield dict(_side_by_side(order, heads, d))
    count = {heads[r] for r in letters}
    many = len(letters)
    if len(count) == 1:
        n = count.pop()
        for order in orders:
            for shape, at in (((n, many, d), 1), ((n, d, many), 2), ((d, many, n), 1)):
                yield {r: _in_blocks(shape, at, i) for i, r in enumerate(order)}
    elif letters == "qkv":  # the queries of a group, then their key and value
        n, group = heads["k"], heads["q"] // heads["k"]
        shape = (n, group + 2, d)
        yield {
            "q": _in_blocks(shape, 1, slice(0, group)),
            "k": _in_blocks(shape, 1, group),
            "v": _in_blocks(shape, 1, group + 1),
        }


def _side_by_side(
    order: tuple[str, ...], heads: dict[str, int], d: int
) -> Iterator[tuple[str, Cut]]:
    start = 0
    for role in order:
        end = start + heads[role] * d
        yield role, _columns(start, end)
        start = end


def _columns(start: int, end: int) -> Cut:
    return lambda matrix: matrix[:, start:end]


def _in_blocks(shape: tuple[int, ...], axis: int, at: int | slice) -> Cut:
    def cut(matrix: Any) -> Any:
        blocks = matrix.unflatten(1, shape)
        index: list[Any] = [slice(None)] * blocks.ndim
        index[axis + 1] = at
        return blocks[tuple(index)]

    return cut


def find_layout(
    bench: Bench, matrix: Callable[[], Any], letters: str, heads: dict[str, int]
) -> tuple[Cuts, bool] | None:
    """How the columns of `matrix()`, (n_in, columns), are cut; and whether it is sure.

    Where what the columns do does not tell, as in a wrong attention it may not, the
    parts are taken to lie side by side in the order of the letters.
    """
    view = matrix()
    found = list(layouts(letters, heads, view.shape[1]))
    if not found:
        return None
    fitting = found
    if "v" in letters:
        fitting = _by_values(bench, view, letters, found)
        fitting = fitting or _in_proportion(bench, view, letters, found)
    if not fitting:
        return found[0], False
    if {"q", "k"} <= set(letters) and len(fitting) > 1:
        first = fitting[0]
        if not _asks(bench, first["q"](view)) and _asks(bench, first["k"](view)):
            swapped = {**first, "q": first["k"], "k": first["q"]}
            return swapped, True
    return fitting[0], True


def _by_values(bench: Bench, view: Any, letters: str, found: list[Cuts]) -> list[Cuts]:
    """The ways of cutting whose other columns do nothing in a text of one token."""
    one = bench.tokens(1)
    known: dict[tuple[int, ...], bool] = {}
    others = [r for r in letters if r != "v"]
    for cuts in found:
        columns = _which(cuts["v"], view)
        if columns not in known:
            still = all(bench.still(cuts[r](view), one) for r in others)
            known[columns] = still and bench.moves(cuts["v"](view), one)
            if known[columns]:
                return [c for c in found if _which(c["v"], view) == columns]
    return []


def _in_proportion(
    bench: Bench, view: Any, letters: str, found: list[Cuts]
) -> list[Cuts]:
    """The ways of cutting whose values alone act in proportion.

    This holds where weights of one token are no longer 1: with a softmax over heads,
    with weights that are not normalised, or with no softmax at all.
    """
    three = bench.tokens(3)
    before = bench.out(three)
    if before is None or not np.isfinite(before).all():
        return []
    known: dict[tuple[int, ...], bool] = {}

    def bent(parts: list[Any]) -> bool | None:
        """Whether twice the change of some parts is not twice the effect."""
        with bench.together(parts, 0.5):
            once = bench.out(three)
        with bench.together(parts, 1.0):
            twice = bench.out(three)
        if once is None or twice is None or once.shape != before.shape:
            return None
        effect = np.abs(once - before).max()
        if not np.isfinite(twice).all() or not effect > SMALL:
            return None
        return bool(np.abs(twice - 2 * once + before).max() > 1e-3 * effect)

    for cuts in found:
        columns = _which(cuts["v"], view)
        if columns not in known:
            others = [cuts[r](view) for r in letters if r != "v"]
            straight = bent([cuts["v"](view)]) is False
            known[columns] = straight and bent(others) is True
            if known[columns]:
                return [c for c in found if _which(c["v"], view) == columns]
    return []


def _which(cut: Cut, view: Any) -> tuple[int, ...]:
    columns = torch.arange(view.shape[1]).unsqueeze(0)
    return tuple(sorted(cut(columns).flatten().tolist()))


def _asks(bench: Bench, part: Any) -> bool:
    """Whether a part makes queries: what only token 0 has does not reach token 1."""
    two = bench.tokens(2)
    two[0, :, 0] = (1.0, 0.0)
    moved = bench.moved(part[0], two)
    if moved is None:
        return False
    return bool((moved[0, 1] < SMALL).all() and (moved[0, 0] > SMALL).any())


def is_flipped(bench: Bench, tensor: Any, role: str) -> bool | None:
    """Whether a square matrix is used as (n_out, n_in); None if that cannot be told."""
    if role == "o":
        text = bench.tokens(3)
        upright, flipped = (
            _one_column(bench.moved(view, text)) for view in (tensor[:, 0], tensor[0])
        )
    else:
        text = np.zeros((1, 2, bench.d_model))
        text[0, :, 0] = (1.0, -0.5)
        if not bench.moves(tensor, text):
            return None
        upright = bench.still(tensor[1:], text)
        flipped = bench.still(tensor[:, 1:], text)
    return None if upright == flipped else flipped


def _one_column(moved: Array | None) -> bool:
    if moved is None:
        return False
    return bool((moved[..., 1:] < SMALL).all() and (moved[..., 0] > SMALL).any())
