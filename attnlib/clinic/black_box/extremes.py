"""Questions at the edge, put to a subject whose ordinary answers are understood.

Each looks at one thing: empty rows, huge scores, scores far below a fill value, hidden
scores far above the others, NaN, many keys, float16, chance. The subject's answer is
compared with what its ordinary behaviour (right, or with known mistakes) gives there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from attnlib.clinic.black_box import influence
from attnlib.clinic.black_box.core import Unforeseen
from attnlib.clinic.black_box.edges import SHIFT
from attnlib.clinic.black_box.exam import Diagnosis, Exam
from attnlib.clinic.black_box.search import HALF_PRECISION, Seen, same, tolerances
from attnlib.clinic.black_box.slots import CAP
from attnlib.clinic.case import Faults
from attnlib.clinic.subject import Answer
from attnlib.shapes import Array

BLOCKS = (5, 6, 7, 8, 10, 12, 16, 20, 24, 25, 32, 40, 48, 50, 64, 80, 96, 100, 128)


@dataclass(frozen=True)
class Shown:
    """One mistake that an extreme question showed."""

    key: str
    question: Any
    answer: Answer
    right: Seen  # what is right there
    number: float | None = None  # a number read off, such as a fill value


@dataclass
class Extras:
    """What the extreme questions showed."""

    mistakes: list[Shown] = field(default_factory=list)
    cautions: list[Shown] = field(default_factory=list)
    laws: list[tuple[str, Shown]] = field(default_factory=list)  # broken, without name
    untested: list[str] = field(default_factory=list)


def extremes(exam: Exam, known: Diagnosis, *, empty_rows: bool = True) -> Extras:
    """Put all extreme questions; `known` must have a reading."""
    extras = Extras()
    looks = (_fills, _empty, _huge, _long, _half, _planted, _cached)
    for look in looks if empty_rows else looks[:1] + looks[2:]:
        look(_Edge(exam, known, extras))
    return extras


class _Edge:
    """The tools that each look at the edge shares."""

    def __init__(self, exam: Exam, known: Diagnosis, extras: Extras) -> None:
        self.exam, self.known, self.extras = exam, known, extras
        self.base: Faults = known.base or frozenset()

    def ask(self, kind: str) -> tuple[Any, Answer] | None:
        question = self.exam.bench.extreme(kind, self.known.traits)
        if question is None:
            return None
        answer = self.exam.bench.ask(question)
        if answer.timed_out:
            self.extras.untested.append(f"{question.name}: it took too long.")
            return None
        return question, answer

    def out(self, question: Any, *more: str, base: Faults | None = None) -> Seen:
        """What the known behaviour, and some mistakes more, give."""
        faults = (self.base if base is None else base) | frozenset(more)
        with np.errstate(all="ignore"):
            try:
                return np.asarray(
                    self.exam.bench.simulate(
                        question, self.known.traits, faults, self.known.found
                    )
                )
            except (ValueError, IndexError, Unforeseen):
                return None

    def fits(self, yours: Seen, *candidates: Seen, rough: bool = False) -> bool:
        """Whether an answer is one of these.

        `rough`: scores are so large that float32, in which many take a softmax, rounds
        them to hundredths; what is wrong there is wrong altogether.
        """
        tolerance = HALF_PRECISION if rough else tolerances([yours])[-1]
        return any(same(yours, other, tolerance) for other in candidates)

    def usual(self, asked: tuple[Any, Answer]) -> bool:
        """Whether the answer is that of the known behaviour."""
        question, answer = asked
        plain = self.out(question), self.out(question, "guarded")
        return self.fits(answer.out, *plain, rough=True)

    def shown(
        self, key: str, asked: tuple[Any, Answer], number: float | None = None
    ) -> Shown:
        question, answer = asked
        return Shown(key, question, answer, self.right(question), number)

    def right(self, question: Any) -> Seen:
        """What is right; queries that may look at nothing get zeros."""
        return self.out(question, "guarded", base=frozenset())

    def mistake(
        self, key: str, asked: tuple[Any, Answer], number: float | None = None
    ) -> None:
        self.extras.mistakes.append(self.shown(key, asked, number))

    def law(self, law: str, asked: tuple[Any, Answer]) -> None:
        self.extras.laws.append((law, self.shown("", asked)))

    def has(self, *keys: str) -> bool:
        """Whether one of these mistakes was found, here or before."""
        found = self.base | {shown.key for shown in self.extras.mistakes}
        return bool(found & set(keys))


AXES = (
    "axis_second_last",
    "axis_heads",
    "softmax_over_heads",
    "axis_zero",
    "axis_table",
    "axis_heads_and_table",
    "axis_batch_and_heads",
    "axis_everything",
    "softmax_missing",
    "sigmoid",
    "not_normalised",
    "log_softmax",
    "divides_by_mean",
)
WEAK = ("mask_fill_10000", "mask_fill_100", "mask_fill_10", "mask_fill_added")
DIVIDED = ("mask_after_divided", "mask_after_divided_safely")
FILLS = (
    "mask_fill_10",
    "mask_fill_100",
    "mask_fill_10000",
    "mask_fill_other",
    "mask_fill_added",
    "mask_fill_zero",
    "mask_fill_one",
    "mask_before_scale",
    "mask_added_before_scale",
)
NATURAL = ("mask_added", "mask_subtracted", "mask_after", "mask_ignored", *FILLS)


def _fills(edge: _Edge) -> None:
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
        lifted = _weighed(edge, "lifted", 3)
        if lifted is not None and lifted > -SHIFT:
            edge.mistake(*_weak(edge, lifted, asked, "lifted"))
            return
        value = _weighed(edge, "moved", 3)
        filled = (edge.out(question, "mask_fill_10000", w) for w in ("", "guarded"))
        if value is not None or edge.fits(answer.out, *filled):
            edge.mistake(*_weak(edge, value, asked))
        elif not _not_finite(answer.out):
            edge.law("a constant in all scores changes nothing", asked)
        return
    asked = edge.ask("above")
    if asked is None or asked[1].out is None or edge.usual(asked):
        return
    question, answer = asked
    value = _weighed(edge, "lifted", 3)
    added = edge.out(question, "mask_fill_added"), edge.out(question, "hidden_lowered")
    if edge.fits(answer.out, *(edge.out(question, key) for key in DIVIDED)):
        edge.extras.cautions.append(edge.shown("renormalised", asked))
    elif value is not None or edge.fits(answer.out, *added):
        edge.mistake(*_weak(edge, value, asked, "lifted"))
    elif _not_finite(answer.out):
        edge.extras.cautions.append(edge.shown("renormalised", asked))
    else:
        edge.law("a hidden key has no influence", asked)


def _weak_in_sight(edge: _Edge) -> bool:
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


def _put(edge: _Edge, question: Any, answer: Answer) -> tuple[float, bool] | None:
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
    edge: _Edge, value: float | None, asked: tuple[Any, Answer], how: str = ""
) -> tuple[str, tuple[Any, Answer], float | None]:
    """M11, or M12 where the number depends on d_k, or is round only before the root."""
    added = how == "lifted"
    late = "mask_fill_added" if added else "mask_fill_other"
    early = "mask_added_before_scale" if added else "mask_before_scale"
    if value is None or value > -1:
        return late, asked, value
    fixed = edge.exam.bench.fixed_d_k
    if fixed is not None:
        before = value * fixed**0.5
        hidden = _round(before) and not _round(value)
        return (early, asked, before) if hidden else (late, asked, value)
    wider = edge.ask("moved 0.0 7")
    put = None if wider is None else _put(edge, *wider)
    other = put[0] if put is not None else _weighed(edge, how or "moved", 7)
    if other is not None and abs(other / value - (3 / 7) ** 0.5) < 0.02:
        return early, asked, value * 3**0.5
    return late, asked, value


def _round(value: float) -> bool:
    digits = f"{abs(value):.3e}".split("e")[0]
    return digits[2:].rstrip("0") == "" or digits[3:].rstrip("0") == ""


def _weighed(edge: _Edge, kind: str, d_k: int) -> float | None:
    """Bisect a constant until hidden and shown keys of a row weigh about the same."""
    low, high = 0.0, 4 * SHIFT
    for _ in range(40):
        middle = (low + high) / 2
        asked = edge.ask(f"{kind} {middle!r} {d_k}")
        if asked is None or asked[1].out is None:
            return None
        question, answer = asked
        view = edge.exam.bench.view(question, answer.out, edge.known.traits)
        if view.weights is None or view.allowed is None or view.raw_scores is None:
            return None
        weights, allowed = np.asarray(view.weights), np.asarray(view.allowed)
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


def _empty(edge: _Edge) -> None:
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
    elif edge.fits(row, np.zeros_like(row)) or (
        zeroed is not None and edge.fits(row, _of_empty(question, zeroed))
    ):
        return
    elif edge.has(*NATURAL, *UNHIDES) and edge.fits(row, good):
        return
    elif not edge.has(*FILLS):  # a finite fill does just that: the same mistake
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
    if getattr(question, "padding", None) is not None:
        return np.asarray(out[1])
    return np.asarray(out[..., 1, :])


def _of_others(question: Any, out: Array) -> Array:
    """What stands elsewhere."""
    if getattr(question, "padding", None) is not None:
        return np.asarray(out[:1])
    return np.asarray(out[..., np.arange(out.shape[-2]) != 1, :])


UNHIDES = (  # with these, an empty row is not what the subject takes for one
    "mask_inverted",
    "mask_replaced_by_causal",
    "mask_transposed",
    "mask_times_infinity",
    "causal_dropped_beside_mask",
    "mask_dropped_beside_causal",
    "combined_by_or",
    "padding_missing",
    "padding_on_queries",
    "softmax_missing",
    "softmax_on_out",
    "sigmoid",
    "cap_after_mask",
    "softmax_twice",
    "batch_first",
)


def _huge(edge: _Edge) -> None:
    """Softmax is exact however large the scores are."""
    if edge.has("half_inside") or any("online_" in key for key in edge.base):
        return  # what overflows there is part of that mistake
    half = edge.exam.bench.dtype == "float16"
    asked = edge.ask("huge for half" if half else "huge")
    if asked is not None:
        question, answer = asked
        if answer.out is None:
            edge.law("huge scores are no error", asked)
            return
        plain = edge.out(question), edge.out(question, "guarded")
        if not edge.usual(asked):
            for key in WEAK:
                if not edge.has(*NATURAL) and edge.fits(
                    answer.out,
                    edge.out(question, key),
                    edge.out(question, key, "guarded"),
                ):
                    edge.mistake(key, asked)
                    return
            for key in ("not_stable", "shift_global", "scores_clipped"):
                if edge.fits(answer.out, edge.out(question, key)):
                    edge.mistake(key, asked)
                    return
            for key in CAP["cap"] if edge.known.traits.softcap else ():
                if edge.fits(answer.out, edge.out(question, key)):
                    edge.mistake(key, asked)
                    return
            if edge.has(*AXES):
                return  # what is subtracted along a wrong axis is part of that mistake
            if _lost(answer.out, plain[1]):
                edge.mistake("not_stable", asked)
            else:
                edge.law("softmax is exact for scores of any size", asked)
            return
    if edge.has(*FILLS) or edge.known.traits.qk_norm or edge.known.traits.softcap:
        return
    narrow = edge.exam.bench.dtype in ("float16", "bfloat16")
    asked = None if narrow else edge.ask("shifted")
    if asked is None or asked[1].out is None:
        return
    question, answer = asked
    if edge.usual(asked):
        return
    if edge.fits(answer.out, edge.out(question, "shift_global")):
        edge.mistake("shift_global", asked)
    elif (
        edge.has("not_stable")
        or edge.fits(answer.out, edge.out(question, "not_stable"))
        or _not_finite(answer.out)
        or not np.abs(answer.out).max(initial=0.0) > 1e-6
    ):
        edge.mistake("online_finite_start", asked)
    else:
        edge.law("a constant in all scores changes nothing", asked)


def _long(edge: _Edge) -> None:
    """More keys than fit into a block, for those that work in blocks."""
    asked = edge.ask("long")
    if asked is None:
        return
    question, answer = asked
    if answer.out is None:
        edge.extras.untested.append(
            f"{question.name}: it raised an error or took too long."
        )
        return
    plain = edge.out(question), edge.out(question, "guarded")
    if not edge.fits(answer.out, *plain):
        for kind in ("out", "sum", "both", "wrong"):
            for size in BLOCKS:
                key = f"online_{kind}_{size}"
                if edge.fits(answer.out, edge.out(question, key)):
                    edge.mistake(key, asked)
                    return
        edge.law("many keys are treated as few are", asked)
        return
    asked = edge.ask("long mask")
    if asked is None or asked[1].out is None:
        return
    question, answer = asked
    if edge.fits(answer.out, edge.out(question), edge.out(question, "guarded")):
        return
    if edge.has(*FILLS):
        return
    if _not_finite(answer.out):
        edge.mistake("online_empty_block", asked)
    else:
        edge.law("many keys are treated as few are", asked)


def _half(edge: _Edge) -> None:
    """Scores beyond 65504 in float16, unless the queries are scaled before."""
    bench = edge.exam.bench
    if edge.known.traits.qk_norm:
        return
    if bench.dtype in ("float16", "bfloat16"):
        asked = edge.ask("many equal")
        if asked is not None and asked[1].out is not None:
            plain = edge.out(asked[0])
            if not edge.fits(asked[1].out, plain):
                edge.mistake("sum_in_half", asked)
                return
    asked = None if bench.dtype == "bfloat16" else edge.ask("half")
    if asked is None:
        return
    question, answer = asked
    plain = edge.out(question, "guarded")
    must = bench.dtype == "float16"
    if answer.out is None:
        if must and "overflow" in str(answer.error):
            edge.mistake("fill_billion", asked)
        elif must:
            edge.law("it works in float16", asked)
    elif _not_finite(answer.out) or _lost(answer.out, plain):
        if must and not edge.has("not_stable"):
            edge.mistake("raw_overflow", asked)
        elif not must:
            edge.extras.cautions.append(edge.shown("raw_overflow", asked))


CACHED = (
    "aligned_top_left",
    "rope_chunk_from_zero",
    "rope_q_from_zero",
    "rope_k_turned_twice",
    "rope_cache_turned_twice",
    "alibi_from_zero",
    "window_top_left",
    "causal_missing",
)


def _cached(edge: _Edge) -> None:
    """The last tokens give the same with a cache of the first as in one go."""
    asked = edge.exam.bench.in_two_parts()
    if asked is None or asked[1].out is None:
        return
    question, answer = asked
    if edge.fits(answer.out, edge.out(question), edge.out(question, "guarded")):
        return
    for key in CACHED:
        if edge.fits(
            answer.out, edge.out(question, key), edge.out(question, key, "guarded")
        ):
            edge.mistake(key, asked)
            return
    edge.law("a cache changes nothing: in two parts as in one", asked)


def _planted(edge: _Edge) -> None:
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
    if asked is None or asked[1].out is None:
        return
    question, answer = asked
    if np.isnan(answer.out).any():
        edge.extras.cautions.append(edge.shown("nan_through_mask", asked))


def _lost(out: Seen, right: Seen) -> bool:
    """NaN or infinity, or whole rows of zeros, where there should be numbers."""
    if out is None or right is None or out.shape != right.shape:
        return False
    zeros = (out == 0).all(axis=-1) & (right != 0).any(axis=-1)
    return bool(zeros.any() or (_not_finite(out) and not _not_finite(right)))


def _not_finite(out: Seen) -> bool:
    return out is not None and not np.isfinite(out).all()
