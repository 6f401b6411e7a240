"""Laws that every attention keeps, for what is wrong and has no name.

Each law changes a question in a way that must not matter, or must matter in a known
way, and looks at what comes out. The smallest sizes are tried first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from attnlib.clinic.black_box import module_laws
from attnlib.clinic.black_box.bench import Bench, FunctionBench
from attnlib.clinic.black_box.edge_tools import Shown
from attnlib.clinic.black_box.module_bench import ModuleBench
from attnlib.clinic.black_box.questions import Maker, Question
from attnlib.clinic.black_box.traits import Traits
from attnlib.clinic.report import Unknown
from attnlib.clinic.sight import number
from attnlib.shapes import Array

CLOSE = 1e-4
SMALL = "a small input"
SIZES = ((1, 1, 1, 1), (1, 2, 1, 1), (2, 2, 2, 1), (2, 3, 2, 1), (3, 4, 5, 2))


@dataclass(frozen=True)
class Law:
    """Its name, and how to break it: a changed question, and what must come out."""

    name: str
    change: Callable[[Question], Question]
    expect: Callable[[Array], Array]  # from the first output to the one after
    part: Callable[[Array], Array] = lambda out: out  # what must not change


def broken(bench: Bench, traits: Traits) -> Unknown | None:
    """The first law that the subject breaks, on the smallest input that shows it."""
    if isinstance(bench, ModuleBench):
        return module_laws.broken(bench, traits)
    if not isinstance(bench, FunctionBench):
        return None
    for law in _laws(bench, traits):
        for asked in _small(bench):
            unknown = _breaks(bench, law, asked)
            if unknown is not None:
                return unknown
    return differs(bench, traits)


def differs(bench: FunctionBench, traits: Traits) -> Unknown | None:
    """That the output is not softmax(q k^T / sqrt(d_k)) v, on the smallest input."""
    for asked in (*_small(bench), *bench.questions):
        answer = bench.ask(asked)
        if answer.error is not None and asked.name == SMALL:
            continue  # as RoPE does where d_k is odd
        right = bench.simulate(asked, traits, frozenset({"guarded"}))
        law = "out = softmax(q kᵀ / √d_k) v"
        if answer.error is not None:
            kind = type(answer.error).__name__
            return Unknown(law, f"It raises {kind}: {answer.error}.", example(asked))
        if answer.out is None:
            return Unknown(law, answer.sentence, example(asked))
        if answer.out.shape != right.shape:
            said = (
                f"Its output has the shape {answer.out.shape}; {right.shape} is right."
            )
            return Unknown(law, said, example(asked))
        wrong = ~np.isclose(answer.out, right, rtol=1e-3, atol=CLOSE, equal_nan=True)
        if wrong.any():
            at = tuple(int(i) for i in np.argwhere(wrong)[0])
            said = (
                f"Its output at {list(at)} is {number(float(answer.out[at]))}; "
                f"{number(float(right[at]))} is right."
            )
            return Unknown(law, said, example(asked))
    return None


def _breaks(bench: FunctionBench, law: Law, asked: Question) -> Unknown | None:
    first = bench.ask(asked).out
    try:
        changed = law.change(asked)
    except _DoesNotApply:
        return None
    second = bench.ask(changed).out
    if first is None or second is None:
        return None
    wanted, second = law.part(law.expect(first)), law.part(second)
    if wanted.shape != second.shape:
        return None
    apart = np.abs(wanted - second)
    if not (apart > CLOSE * max(1.0, float(np.abs(wanted).max(initial=0.0)))).any():
        return None
    at = tuple(int(i) for i in np.unravel_index(int(np.nanargmax(apart)), apart.shape))
    said = (
        f"Its output at {list(at)} is then {number(float(second[at]))}, and "
        f"{number(float(wanted[at]))} without that change."
    )
    if law.name == CONSTANT:
        said = f"Its output at {list(at)} is then {number(float(second[at]))}."
    return Unknown(law.name, said, example(asked))


class _DoesNotApply(Exception):
    """This question is too small for the law."""


CONSTANT = "values that are all 1 come out as 1: each row of weights sums to 1"


def _laws(bench: FunctionBench, traits: Traits) -> Iterator[Law]:
    def ones(asked: Question) -> Question:
        return replace(asked, v=np.ones_like(asked.v))

    def doubled(asked: Question) -> Question:
        return replace(asked, v=asked.v * 2)

    def other_query(asked: Question) -> Question:
        if asked.q.shape[-2] < 2:
            raise _DoesNotApply
        q = asked.q.copy()
        q[..., 1:, :] = q[..., 1:, :] + 1.5
        return replace(asked, q=q)

    def reversed_keys(asked: Question) -> Question:
        k, v = asked.k[..., ::-1, :].copy(), asked.v[..., ::-1, :].copy()
        return replace(asked, k=k, v=v)

    def constant(asked: Question) -> Question:
        k = asked.k + 2.0 * np.ones(asked.k.shape[-1])
        return replace(asked, k=k)

    yield Law(CONSTANT, ones, np.ones_like)
    yield Law(
        "values twice as large come out twice as large", doubled, lambda out: 2 * out
    )
    yield Law(
        "the same number added to all keys changes nothing: softmax does not see it",
        constant,
        _same,
    )
    if bench.takes.dims and max(bench.takes.dims) > 2:
        yield Law(
            "the items of a batch do not see each other", _other(0), _same, _first(0)
        )
    if max(bench.takes.dims or (4,)) > 3:
        yield Law("heads do not see each other", _other(1), _same, _first(1))
    if not (traits.causal or traits.rope or traits.alibi or traits.window):
        yield Law("the order of the keys does not matter", reversed_keys, _same)
    yield Law("queries do not see each other", other_query, _same, _first(-2))


def _same(out: Array) -> Array:
    return out


def _first(axis: int) -> Callable[[Array], Array]:
    return lambda out: np.take(out, 0, axis=axis)


def _other(axis: int) -> Callable[[Question], Question]:
    def change(asked: Question) -> Question:
        if asked.q.ndim <= axis + 2 or asked.q.shape[axis] < 2:
            raise _DoesNotApply
        arrays = []
        for array in (asked.q, asked.k, asked.v):
            array = array.copy()
            np.moveaxis(array, axis, 0)[1:] += 1.5
            arrays.append(array)
        return replace(asked, q=arrays[0], k=arrays[1], v=arrays[2])

    return change


def _small(bench: FunctionBench) -> Iterator[Question]:
    make = Maker(np.random.default_rng(bench.seed + 3), bench.takes)
    for n_q, n_k, d_k, d_v in SIZES:
        batch = (1, 1) if n_q < 3 else (2, 3)
        yield make.ask(SMALL, n_q, n_k, d_k, d_v, batch=batch)


def example(asked: Question) -> str:
    """A question as a person can type it, or its sizes if it is large."""
    if asked.q.size + asked.k.size + asked.v.size > 40:
        return f"{asked.name} ({asked.sizes()})"
    lines = [f"{name} = {getattr(asked, name).tolist()}" for name in ("q", "k", "v")]
    if asked.mask is not None:
        lines.append(f"mask = {asked.mask.tolist()}")
    return "\n".join(lines)


def at_edge(law: str, shown: Shown) -> Unknown:
    """What an extreme question showed, though no known mistake gives just that."""
    question, answer, right = shown.question, shown.answer, shown.right
    small = isinstance(question, Question)
    example_text = (
        example(question) if small else f"{question.name} ({question.sizes()})"
    )
    if answer.out is None:
        error = answer.error
        said = answer.sentence or f"It raises {type(error).__name__}: {error}."
        return Unknown(law, f"Given {question.name}: {said}", example_text)
    if right is None or right.shape != answer.out.shape:
        return Unknown(law, f"Given {question.name}, its shape is wrong.", example_text)
    wrong = ~np.isclose(answer.out, right, rtol=1e-3, atol=CLOSE, equal_nan=True)
    if not wrong.any():
        return Unknown(
            law, f"Given {question.name}, it differs a little.", example_text
        )
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    said = (
        f"Given {question.name}, its output at {list(at)} is "
        f"{number(float(answer.out[at]))}; {number(float(right[at]))} is right."
    )
    return Unknown(law, said, example_text)
