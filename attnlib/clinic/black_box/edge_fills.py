"""A finite number where a mask hides: is it read off, or does it show when asked?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from attnlib.clinic.black_box import influence
from attnlib.clinic.black_box.edge_tools import DIVIDED, NATURAL, Edge, not_finite
from attnlib.clinic.black_box.edges import NARROW, SHIFT, WIDE
from attnlib.clinic.black_box.questions import Question
from attnlib.clinic.subject import Answer
from attnlib.shapes import Mask

Table = npt.NDArray[Any]


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


def _read(edge: Edge, asked: tuple[Any, Answer]) -> tuple[Table, Table, Mask] | None:
    """Weights as they were seen, scores as they meet the mask, and who looks at whom.

    Rows are what sums to 1, whatever else the subject does wrong.
    """
    known, bench = edge.known, edge.exam.bench
    question, out = asked[0], asked[1].out
    if out is None:
        return None
    view = bench.view(question, out, known.traits)
    if view.weights is None or view.allowed is None:
        return None
    scores = bench.scores(question, known.traits, edge.base, known.found)
    weights, allowed = np.asarray(view.weights), _looks(edge, question, view.allowed)
    if scores.shape != weights.shape:
        return None
    allowed = np.broadcast_to(allowed, weights.shape)
    if edge.has("weights_transposed"):
        weights = np.swapaxes(weights, -1, -2)
    if edge.has("axis_second_last"):
        weights, scores = np.swapaxes(weights, -1, -2), np.swapaxes(scores, -1, -2)
        allowed = np.swapaxes(allowed, -1, -2)
    return weights, scores, allowed


def _looks(edge: Edge, question: Any, right: object) -> Mask:
    """Who may look at whom, as the subject has it; right, where that does not show."""
    if isinstance(question, Question):
        shown = edge.out(replace(question, q=question.q * 0.0), "guarded")
        if shown is not None and np.isfinite(shown).all():
            look = shown > 0
            if edge.has("weights_transposed"):
                look = np.swapaxes(look, -1, -2)
            return np.asarray(look)
    return np.asarray(right, dtype=np.bool_)


def _put(edge: Edge, question: Any, answer: Answer) -> tuple[float, bool] | None:
    """The fill that one answer shows, and whether it was added."""
    read = _read(edge, (question, answer))
    return None if read is None else influence.fill(*read, any_scores=True)


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
        hidden = influence.is_round(before) and not influence.is_round(value)
        return (early, asked, before) if hidden else (late, asked, value)
    d_k = asked[0].q.shape[-1] if asked[0].xray else NARROW  # where the value shows
    d_k, other_d_k = float(d_k), WIDE if d_k == NARROW else NARROW
    again = edge.ask(f"moved 0.0 {other_d_k}")
    put = None if again is None else _put(edge, *again)
    other = put[0] if put is not None else _weighed(edge, how or "moved", other_d_k)
    if other is not None and abs(other / value - (d_k / other_d_k) ** 0.5) < 0.02:
        return early, asked, value * d_k**0.5
    return late, asked, value


def _weighed(edge: Edge, kind: str, d_k: int) -> float | None:
    """Bisect a constant until hidden and shown keys of a row weigh about the same."""
    low, high = 0.0, 4 * SHIFT
    for _ in range(40):
        middle = (low + high) / 2
        asked = edge.ask(f"{kind} {middle!r} {d_k}")
        out = None if asked is None else asked[1].out
        if asked is None or out is None:
            return None
        read = _read(edge, asked)
        if read is None:
            return None
        weights, scores, allowed = read
        rows = (~allowed).any(axis=-1) & allowed.any(axis=-1)
        if not rows.any():
            return None
        weights, scores, allowed = weights[rows], scores[rows], allowed[rows]
        hidden = np.where(allowed, 0, weights)
        share = hidden.sum(axis=-1) / weights.sum(axis=-1)
        if not np.isfinite(share).all():
            return None
        if share.min() > 1e-9 and share.max() < 1 - 1e-9:
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
