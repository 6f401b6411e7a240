"""At the edge of masks: weak fills, queries that may look at nothing, hidden NaN."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlib.clinic.black_box import influence
from attnlib.clinic.black_box.edge_tools import (
    AXES,
    DIVIDED,
    FILLS,
    NATURAL,
    UNHIDES,
    Edge,
    not_finite,
)
from attnlib.clinic.black_box.edges import NARROW, SHIFT, WIDE
from attnlib.clinic.subject import Answer
from attnlib.shapes import Array


def fills(edge: Edge) -> None:
    """A finite number where the mask hides: what if real scores lie below it?"""
    if edge.has(*NATURAL) or _weak_in_sight(edge):
        return
    if edge.known.traits.qk_norm or edge.known.traits.softcap:
        return  # the scores cannot pass it
    asked = edge.ask("shifted mask")
    if asked is not None and asked[1].out is not None and not edge.usual(asked):
        question, answer = asked
        if edge.fits(answer.out, *(edge.out(question, key) for key in DIVIDED)):
            edge.extras.cautions.append(edge.shown("renormalised", asked))
            return
        lifted = _weighed(edge, "lifted", NARROW)
        if lifted is not None and lifted > -SHIFT:
            edge.mistake(*_weak(edge, lifted, asked, "lifted"))
            return
        value = _weighed(edge, "moved", NARROW)
        filled = (edge.out(question, "mask_fill_10000", w) for w in ("", "guarded"))
        if value is not None or edge.fits(answer.out, *filled):
            edge.mistake(*_weak(edge, value, asked))
        elif not not_finite(answer.out):
            edge.law("a constant in all scores changes nothing", asked)
        return
    asked = edge.ask("above")
    if asked is None or asked[1].out is None or edge.usual(asked):
        return
    question, answer = asked
    value = _weighed(edge, "lifted", NARROW)
    added = edge.out(question, "mask_fill_added"), edge.out(question, "hidden_lowered")
    if edge.fits(answer.out, *(edge.out(question, key) for key in DIVIDED)):
        edge.extras.cautions.append(edge.shown("renormalised", asked))
    elif value is not None or edge.fits(answer.out, *added):
        edge.mistake(*_weak(edge, value, asked, "lifted"))
    elif not_finite(answer.out):
        edge.extras.cautions.append(edge.shown("renormalised", asked))
    else:
        edge.law("a hidden key has no influence", asked)


def _weak_in_sight(edge: Edge) -> bool:
    """A fill that the weights of an ordinary question show, if only by e^-50."""
    bench = edge.exam.bench
    for question, answer in zip(edge.known.questions, edge.known.answers, strict=True):
        hides = bench.hides(question) or edge.known.traits.causal
        if not question.xray or answer.out is None or not hides:
            continue
        put = _put(edge, question, answer)
        if put is None or put[0] > -1:
            continue
        how = "lifted" if put[1] else ""
        edge.mistake(*_weak(edge, put[0], (question, answer), how))
        return True
    return False


def _put(edge: Edge, question: Any, answer: Answer) -> tuple[float, bool] | None:
    """The fill that one answer shows, and whether it was added."""
    known, bench = edge.known, edge.exam.bench
    if answer.out is None:
        return None
    view = bench.view(question, answer.out, known.traits)
    if view.weights is None or view.allowed is None:
        return None
    scores = bench.scores(question, known.traits, edge.base, known.found)
    if scores.shape != view.weights.shape:
        return None
    weights, allowed = np.asarray(view.weights), np.asarray(view.allowed)
    return influence.fill(weights, scores, allowed, any_scores=True)


def _weak(
    edge: Edge, value: float | None, asked: tuple[Any, Answer], how: str = ""
) -> tuple[str, tuple[Any, Answer], float | None]:
    """M11, or M12 where the number depends on d_k, or is round only before the root."""
    added = how == "lifted"
    late = "mask_fill_added" if added else "mask_fill_other"
    early = "mask_added_before_scale" if added else "mask_before_scale"
    if value is None or value > -1:
        return late, asked, value
    cap = edge.known.traits.softcap
    if cap is not None and abs(value + cap) < 1e-2 * cap:
        return "cap_after_mask", asked, value
    fixed = edge.exam.bench.fixed_d_k
    if fixed is not None:
        before = value * fixed**0.5
        hidden = _round(before) and not _round(value)
        return (early, asked, before) if hidden else (late, asked, value)
    d_k = asked[0].q.shape[-1] if asked[0].xray else NARROW  # where the value shows
    d_k, other_d_k = float(d_k), WIDE if d_k == NARROW else NARROW
    again = edge.ask(f"moved 0.0 {other_d_k}")
    put = None if again is None else _put(edge, *again)
    other = put[0] if put is not None else _weighed(edge, how or "moved", other_d_k)
    if other is not None and abs(other / value - (d_k / other_d_k) ** 0.5) < 0.02:
        return early, asked, value * d_k**0.5
    return late, asked, value


def _round(value: float) -> bool:
    digits = f"{abs(value):.3e}".split("e")[0]
    return digits[2:].rstrip("0") == "" or digits[3:].rstrip("0") == ""


def _weighed(edge: Edge, kind: str, d_k: int) -> float | None:
    """Bisect a constant until hidden and shown keys of a row weigh about the same."""
    low, high = 0.0, 4 * SHIFT
    for _ in range(40):
        middle = (low + high) / 2
        asked = edge.ask(f"{kind} {middle!r} {d_k}")
        out = None if asked is None else asked[1].out
        if asked is None or out is None:
            return None
        view = edge.exam.bench.view(asked[0], out, edge.known.traits)
        if view.weights is None or view.allowed is None or view.raw_scores is None:
            return None
        weights = np.asarray(view.weights)
        allowed = np.asarray(view.allowed, dtype=np.bool_)
        rows = (~allowed).any(axis=-1) & allowed.any(axis=-1)
        weights, allowed = weights[rows], allowed[rows]
        hidden = np.where(allowed, 0, weights)
        share = hidden.sum(axis=-1) / weights.sum(axis=-1)
        if not np.isfinite(share).all():
            return None
        if share.min() > 1e-9 and share.max() < 1 - 1e-9:
            scores = np.asarray(view.raw_scores)[rows] / float(view.sizes["d_k"]) ** 0.5
            shown = np.where(allowed, weights, 0)
            best = np.where(allowed, scores, -np.inf).max(axis=-1)
            ratio = np.log(hidden.max(axis=-1) / shown.max(axis=-1))
            if kind == "lifted":
                best = best - np.where(allowed, -np.inf, scores).max(axis=-1)
            return float(f"{float(np.median(ratio + best)):.4g}")
        if share.max() < 0.5:
            low = middle
        else:
            high = middle
    return None


def empty(edge: Edge) -> None:
    """A query that may look at nothing gets zeros."""
    asked = edge.ask("empty")
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
    row, good = _of_empty(question, out), _of_empty(question, natural)
    guarded = edge.out(question, "guarded")
    usual = [None if o is None else _of_others(question, o) for o in (natural, guarded)]
    if np.isfinite(out).all() and np.isnan(edge.exam.bench.gradients(question)).any():
        edge.mistake("empty_row_gradient", asked)
        return
    if np.isnan(row).any():
        if not (np.isnan(good).any() and edge.has(*UNHIDES, *AXES)):
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
    for kind in ("planted in sight", "planted in a query"):
        asked = edge.ask(kind)
        if asked is None or asked[1].out is None:
            continue
        question, out = asked[0], asked[1].out
        right = edge.out(question)
        if right is None or right.shape != out.shape:
            continue
        must = np.isnan(right)
        if kind == "planted in sight":  # only those who look at it: the others may not
            other = edge.exam.bench.extreme("none planted", edge.known.traits)
            moved = edge.out(other)
            if moved is None:
                continue
            must &= np.abs(moved) > 1e3
        if (must & ~np.isnan(out)).any():
            if kind == "planted in sight":
                edge.mistake("nan_hidden", asked)
            else:
                edge.extras.cautions.append(edge.shown("nan_of_query_hidden", asked))
            return
    asked = edge.ask("planted")
    hidden = None if asked is None else asked[1].out
    if asked is not None and hidden is not None and np.isnan(hidden).any():
        edge.extras.cautions.append(edge.shown("nan_through_mask", asked))
