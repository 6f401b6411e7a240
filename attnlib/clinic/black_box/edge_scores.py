"""At the edge of scores: huge ones, many, and more than float16 holds."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlib.clinic.black_box.edge_tools import (
    AXES,
    FILLS,
    NATURAL,
    WEAK,
    Edge,
    lost,
    not_finite,
)
from attnlib.clinic.black_box.search import wider_than
from attnlib.clinic.black_box.slots import CAP
from attnlib.clinic.subject import Answer

BLOCKS = (5, 6, 7, 8, 10, 12, 16, 20, 24, 25, 32, 40, 48, 50, 64, 80, 96, 100, 128)


def _in_half(edge: Edge) -> bool:
    """Whether all that came back fits into float16, though more was handed in."""
    if edge.exam.bench.dtype in ("float16", "bfloat16"):
        return False
    outs = [out for out in edge.known.seen if out is not None]
    if any(wider_than(out, np.float16) for out in outs):
        return False
    rights = [edge.out(question) for question in edge.known.questions]
    return any(wider_than(out, np.float16) for out in rights if out is not None)


def huge(edge: Edge) -> None:
    """Softmax is exact however large the scores are."""
    if _in_half(edge):
        edge.mistake("half_inside", (edge.known.questions[0], edge.known.answers[0]))
        return
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
            for key in ("shift_global", "not_stable", "scores_clipped"):
                if edge.fits(answer.out, edge.out(question, key)):
                    in_half = key == "not_stable" and not half
                    in_half = in_half and _only_beyond_half(edge, asked)
                    edge.mistake("raw_overflow" if in_half else key, asked)
                    return
            for key in CAP["cap"] if edge.known.traits.softcap else ():
                if edge.fits(answer.out, edge.out(question, key)):
                    edge.mistake(key, asked)
                    return
            if edge.has(*AXES):
                return  # what is subtracted along a wrong axis is part of that mistake
            if lost(answer.out, plain[1]):
                in_half = not half and _only_beyond_half(edge, asked)
                edge.mistake("raw_overflow" if in_half else "not_stable", asked)
            else:
                edge.law("softmax is exact for scores of any size", asked)
            return
    if edge.has(*FILLS) or edge.known.traits.qk_norm or edge.known.traits.softcap:
        return
    narrow = edge.exam.bench.dtype in ("float16", "bfloat16")
    asked = None if narrow else edge.ask("shifted")
    out = None if asked is None else asked[1].out
    if asked is None or out is None or edge.usual(asked):
        return
    if (
        edge.has("not_stable")
        or edge.fits(out, edge.out(asked[0], "not_stable"))
        or not_finite(out)
        or not np.abs(out).max(initial=0.0) > 1e-6
    ):
        edge.mistake("online_finite_start", asked)
    else:
        edge.law("a constant in all scores changes nothing", asked)


def _only_beyond_half(edge: Edge, asked: tuple[Any, Answer]) -> bool:
    """Whether what is lost there is not lost where raw scores still fit float16.

    Scores of thousands are far beyond every exp: what keeps those subtracts the
    largest, and loses the others by their type.
    """
    if not lost(asked[1].out, edge.out(asked[0], "guarded")):
        return False
    less = edge.ask("thousands")
    if less is None or less[1].out is None:
        return False
    return not lost(less[1].out, edge.out(less[0], "guarded"))


def long(edge: Edge) -> None:
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
        for kind in ("out", "sum", "both", "wrong", "mean"):
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
    if not_finite(answer.out):
        edge.mistake("online_empty_block", asked)
    else:
        edge.law("many keys are treated as few are", asked)


def half(edge: Edge) -> None:
    """Scores beyond 65504 in float16, unless the queries are scaled before."""
    bench = edge.exam.bench
    if edge.known.traits.qk_norm or edge.has("raw_overflow"):
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
    must = bench.dtype == "float16" or getattr(bench, "must_half", False)
    if answer.out is None:
        if must and "overflow" in str(answer.error):
            edge.mistake("fill_billion", asked)
        elif must:
            edge.law("it works in float16", asked)
    elif not_finite(answer.out) or lost(answer.out, plain):
        if must and not edge.has("not_stable"):
            edge.mistake("raw_overflow", asked)
        elif not must:
            edge.extras.cautions.append(edge.shown("raw_overflow", asked))
