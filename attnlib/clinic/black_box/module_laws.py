"""Laws that every module of attention keeps, for what is wrong and has no name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from attnlib.clinic.black_box.module_bench import ModuleBench
from attnlib.clinic.black_box.module_questions import ModuleMaker
from attnlib.clinic.black_box.projected import Asked
from attnlib.clinic.black_box.traits import Traits
from attnlib.clinic.report import Unknown
from attnlib.clinic.sight import number

CLOSE = 1e-4
Places = npt.NDArray[np.int_]


def broken(bench: ModuleBench, traits: Traits) -> Unknown | None:
    """The first law that the module breaks, on the fewest tokens that show it."""
    for tokens in (1, 2, 3, 5):
        make = ModuleMaker(
            np.random.default_rng(bench.seed + 3), bench.takes, bench.weights
        )
        asked = make.ask(f"{tokens} tokens", tokens)
        for law, changed, part in _changes(bench, asked, traits):
            unknown = _breaks(bench, law, asked, changed, part)
            if unknown is not None:
                return unknown
    return _differs(bench, traits)


def _changes(
    bench: ModuleBench, asked: Asked, traits: Traits
) -> Iterator[tuple[str, Asked, slice | Places]]:
    """A law, the same question changed, and the items that must stay as they are."""
    x = asked.x.copy()
    x[1:] += 1.0
    memory = asked.memory
    if memory is not None:
        memory = memory.copy()
        memory[1:] += 1.0
    yield (
        "the items of a batch do not see each other",
        replace(asked, x=x, memory=memory),
        slice(0, 1),
    )
    n = asked.x.shape[1]
    free = not (traits.causal or traits.rope or traits.alibi or traits.window)
    if n > 1 and free and asked.memory is None:
        turned = replace(asked, x=asked.x[:, ::-1].copy())
        yield (
            "tokens in another order give outputs in that order",
            turned,
            np.arange(n)[::-1],
        )


def _breaks(
    bench: ModuleBench, law: str, asked: Asked, changed: Asked, part: slice | Places
) -> Unknown | None:
    first, second = bench.ask(asked).out, bench.ask(changed).out
    if (
        first is None
        or second is None
        or first.shape != second.shape
        or first.ndim != 3
    ):
        return None
    if isinstance(part, slice):
        wanted, second = first[part], second[part]
    else:
        wanted = first[:, part]
    apart = np.abs(wanted - second)
    if not (apart > CLOSE * max(1.0, float(np.abs(wanted).max(initial=0.0)))).any():
        return None
    at = tuple(int(i) for i in np.unravel_index(int(np.nanargmax(apart)), apart.shape))
    said = (
        f"Its output at {list(at)} is {number(float(second[at]))}, where "
        f"{number(float(wanted[at]))} would keep the law."
    )
    return Unknown(law, said, f"{asked.name} ({asked.sizes()})")


def _differs(bench: ModuleBench, traits: Traits) -> Unknown | None:
    law = "out = softmax(q kᵀ / √d_k) v in each head, then W_o"
    for asked in bench.questions:
        answer = bench.ask(asked)
        where = f"{asked.name} ({asked.sizes()})"
        if answer.out is None:
            error = answer.error
            said = answer.sentence or f"It raises {type(error).__name__}: {error}."
            return Unknown(law, said, where)
        right = bench.simulate(asked, traits, frozenset({"guarded"}))
        if answer.out.shape != right.shape:
            said = (
                f"Its output has the shape {answer.out.shape}; {right.shape} is right."
            )
            return Unknown(law, said, where)
        wrong = ~np.isclose(answer.out, right, rtol=1e-3, atol=CLOSE, equal_nan=True)
        if wrong.any():
            at = tuple(int(i) for i in np.argwhere(wrong)[0])
            said = (
                f"With weights of the examiner's, its output at {list(at)} is "
                f"{number(float(answer.out[at]))}; {number(float(right[at]))} is right."
            )
            return Unknown(law, said, where)
    return None
