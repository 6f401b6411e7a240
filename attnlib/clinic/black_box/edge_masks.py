"""At the edge of masks: queries that may look at nothing, hidden NaN."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlib.clinic.black_box.edge_tools import (
    AXES,
    FILLS,
    NATURAL,
    UNHIDES,
    Edge,
)
from attnlib.clinic.subject import Answer
from attnlib.shapes import Array


def empty(edge: Edge) -> None:
    """A query that may look at nothing gets zeros."""
    asked = edge.ask("empty")
    if asked is not None and edge.has("mask_inverted", "look_inverted"):
        asked = edge.turned(asked)  # to it, the row that sees all is the empty one
    if asked is None:
        return
    question, answer = asked
    if answer.out is None:
        edge.law("a query that may look at nothing gets zeros", asked)
        return
    out, natural = answer.out, edge.out(question)
    if natural is None or natural.shape != out.shape:
        return
    zeroed = edge.out(question, "guarded", "empty_zeroed")
    if edge.has("weights_transposed"):
        _empty_of_turned(edge, asked)
        return
    row = _of_empty(question, out)
    # That a finite fill shares evenly is what is asked here, though no mistake before.
    bare = edge.out(question, base=edge.base - {"fill_lowest_finite"})
    good = _of_empty(question, natural if bare is None else bare)
    guarded = edge.out(question, "guarded")
    usual = [None if o is None else _of_others(question, o) for o in (natural, guarded)]
    if np.isfinite(out).all() and np.isnan(edge.exam.bench.gradients(question)).any():
        edge.mistake("empty_row_gradient", asked)
        return
    if np.isnan(row).any():
        if not (np.isnan(good).any() and edge.has(*NAN_BY_ITSELF)):
            edge.mistake("empty_row_nan", asked)
    elif not edge.fits(_of_others(question, out), *usual):
        edge.law("an empty row changes no other row", asked)
    elif (
        edge.fits(row, np.zeros_like(row))
        or (zeroed is not None and edge.fits(row, _of_empty(question, zeroed)))
        or (edge.has(*NATURAL, *UNHIDES) and edge.fits(row, good))
    ):
        return
    elif not edge.has(
        *FILLS, "cap_after_mask"
    ):  # a finite fill does just that: the same mistake
        kinds = {
            "empty_row_filled": edge.out(question, "fill_lowest_finite"),
            "empty_row_unmasked": edge.out(question, "mask_ignored"),
        }
        for key, other in kinds.items():
            if other is not None and edge.fits(row, _of_empty(question, other)):
                edge.mistake(key, asked)
                return
        edge.mistake("empty_row_leaks", asked)


NAN_BY_ITSELF = (  # what hides gives NaN with these, in rows that are not empty, too
    "mask_times_infinity",
    "softmax_on_out",
    *(key for key in AXES if key != "softmax_over_heads"),
)


def _empty_of_turned(edge: Edge, asked: tuple[Any, Answer]) -> None:
    """Weights that were transposed spread an empty row over all outputs."""
    question, out = asked[0], asked[1].out
    guarded = edge.out(question, "guarded")
    if out is None or guarded is None or edge.fits(out, guarded):
        return
    if np.isnan(out).any() and not np.isnan(guarded).any():
        edge.mistake("empty_row_nan", asked)
    elif edge.fits(out, edge.out(question, "fill_lowest_finite")):
        edge.mistake("empty_row_filled", asked)
    elif not edge.has(*FILLS):
        edge.mistake("empty_row_leaks", asked)


def _of_empty(question: Any, out: Array) -> Array:
    """What stands where a query may look at nothing: row 1, or the item of padding."""
    if getattr(question, "padding", None) is not None or question.item:
        return np.asarray(out[1])
    return np.asarray(out[..., 1, :])


def _of_others(question: Any, out: Array) -> Array:
    """What stands elsewhere."""
    if getattr(question, "padding", None) is not None or question.item:
        return np.asarray(out[:1])
    return np.asarray(out[..., np.arange(out.shape[-2]) != 1, :])


def planted(edge: Edge) -> None:
    """A NaN in the values: it must be seen where it is in sight."""
    in_sight = "a key" if edge.has("values_are_keys") else "sight"
    for kind in (f"planted in {in_sight}", "planted in a query"):
        asked = edge.ask(kind)
        if asked is None or asked[1].out is None:
            continue
        question, out = asked[0], asked[1].out
        right = edge.out(question)
        if right is None or right.shape != out.shape:
            continue
        must = np.isnan(right)
        if kind == "planted in a key":  # which is its value as well
            must[..., 1:] = False
        if kind == "planted in sight":  # only those who look at it: the others may not
            other = edge.exam.bench.extreme("none planted", edge.known.traits)
            moved = edge.out(other)
            if moved is None:
                continue
            must &= np.abs(moved) > 1e3
        if (must & ~np.isnan(out)).any():
            if kind != "planted in a query":
                edge.mistake("nan_hidden", asked)
            else:
                edge.extras.cautions.append(edge.shown("nan_of_query_hidden", asked))
            return
    asked = edge.ask("planted")
    hidden = None if asked is None else asked[1].out
    if asked is not None and hidden is not None and np.isnan(hidden).any():
        edge.extras.cautions.append(edge.shown("nan_through_mask", asked))
