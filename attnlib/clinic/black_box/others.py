"""Read other right kinds of attention off the outputs: biases, sinks, no softmax.

Queries of zero make all scores equal, so that what is seen then is what was added: a
bias, a sink. What was read must give all other answers of the subject, too.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from attnlib.clinic.black_box import module_reading
from attnlib.clinic.black_box.added import Bias, Extra
from attnlib.clinic.black_box.bench import Bench, FunctionBench
from attnlib.clinic.black_box.module_bench import ModuleBench
from attnlib.clinic.black_box.questions import Maker
from attnlib.clinic.black_box.traits import Traits
from attnlib.clinic.black_box.without_softmax import EPS, LINEAR, Kernel
from attnlib.clinic.subject import Answer
from attnlib.shapes import Array

SMALL = 6  # tokens that show whether there is anything to read
SIZES = (192, 96, 64, 48, 32, 24, 16, 12, 8, 6)
USUAL = 48  # tokens that most subjects take
PATIENCE = 3.0  # CPU seconds that one reading may take, as the smaller ones tell
NEAR = 1e-4
LARGEST = 30.0  # a learned bias that is larger hides, and is a mask


def others(
    bench: Bench, told: Traits, kinds: Sequence[Traits], first: tuple[Any, Answer]
) -> Iterator[Traits]:
    """Right kinds that fit what queries of zero show; the simplest first."""
    plain = [kind for kind in kinds if not (kind.rope or kind.alibi or kind.qk_norm)]
    yield from _linear(bench, plain[:2], *first)
    small = weights(bench, SMALL)
    if isinstance(bench, ModuleBench) and small is None:
        extra = module_reading.extra(bench)
        for kind in plain[:3] if extra is not None else ():
            yield replace(kind, extra=extra)
    if small is None or not np.isfinite(small).all() or (small < 0).any():
        return
    sums = small.sum(axis=-1)
    rest = bool((sums < 1 - NEAR).all())
    if (sums < NEAR).any():
        return
    if not rest and (not np.allclose(sums, 1, atol=NEAR) or _even(small)):
        return
    if rest and _even(small):
        wider = weights(bench, SMALL + 3)
        for sink in () if wider is None else _sinks(small, wider):
            for kind in kinds:
                yield replace(kind, extra=Extra(sink))
        for b in () if wider is None else _sigmoids(small, wider):
            for kind in plain:
                yield replace(kind, kernel=Kernel("sigmoid", bias=b))
    elif not told.alibi:
        yield from _biased(bench, plain[:3], Extra(np.zeros(1)) if rest else None)


def _linear(
    bench: Bench, kinds: Sequence[Traits], question: Any, answer: Answer
) -> Iterator[Traits]:
    """Linear attentions that give about the answer to one question."""
    out = answer.out
    guarded = frozenset({"guarded"})  # products of relu may all be 0, and 0 / 0 NaN
    for kind in kinds if out is not None else ():
        for kernel in LINEAR:
            about = bench.simulate(question, replace(kind, kernel=kernel), guarded)
            if out is None or about.shape != out.shape:
                return
            if np.allclose(about, out, rtol=1e-2, atol=1e-3):
                for eps in EPS:
                    yield replace(kind, kernel=replace(kernel, eps=eps))


def _biased(
    bench: Bench, kinds: Sequence[Traits], extra: Extra | None
) -> Iterator[Traits]:
    """Kinds with the bias that is seen, perhaps beside a sink."""
    whole = largest(bench)
    bias = None if whole is None else bias_of(whole)
    if bias is None:
        return
    module = isinstance(bench, ModuleBench) and bench.takes.memory
    for memory in (False, True) if module and not bias.by_place else (False,):
        for kind in kinds:
            yield replace(kind, bias=replace(bias, memory=memory), extra=extra)


def weights(bench: Bench, n: int) -> Array | None:
    """What n queries of zero see of n keys: (items, n_heads or 1, n, n)."""
    if isinstance(bench, ModuleBench):
        return module_reading.weights(bench, n)
    if not isinstance(bench, FunctionBench):
        return None
    make = Maker(np.random.default_rng(bench.seed + 6), bench.takes)
    asked = make.xray("queries of zero", n, n, 4)
    out = bench.ask(replace(asked, q=np.zeros_like(asked.q))).out
    if out is None or out.shape != (*asked.q.shape[:-1], n):
        return None
    return out if out.ndim == 4 else np.asarray(out.reshape(-1, 1, n, n))


def largest(bench: Bench) -> Array | None:
    """The same for as many tokens as the subject takes, and has the time for."""
    start = time.process_time()
    usual = weights(bench, USUAL)
    each = (time.process_time() - start) / USUAL**2
    if usual is not None and bias_of(usual) is None:
        return None  # nor would more tokens, which take long, show a bias
    for n in SIZES:
        too_long = n > USUAL and (usual is None or each * n**2 > PATIENCE)
        seen = usual if n == USUAL else None if too_long else weights(bench, n)
        if seen is not None:
            return seen
    return None


def _even(table: Array) -> bool:
    """Whether in each row all that are not 0 are equal."""
    least = np.where(table > 0, table, np.inf).min(axis=-1)
    return bool((table.max(axis=-1) - least < NEAR).all())


def _logs(seen: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.where(seen > 0, np.log(np.maximum(seen, 1e-300)), np.nan)


def _sinks(*seen: Array) -> Iterator[Array]:
    """Logits of a key that takes the rest of each row: (n_heads,).

    They must be the same in all rows, and for any number of keys.
    """
    each = []
    for table in seen:
        with np.errstate(divide="ignore", invalid="ignore"):
            each.append(np.log(1 / table.max(axis=-1) - (table > 0).sum(axis=-1)))
    logits = np.concatenate(each, axis=-1)
    heads = logits.mean(axis=(0, 2))
    if not np.isfinite(heads).all() or np.abs(logits - heads[:, None]).max() > 1e-2:
        return
    if np.abs(heads).max() < 1e-3:
        yield np.zeros(1)
    yield heads if np.ptp(heads) > 1e-6 else heads[:1]


def _sigmoids(*seen: Array) -> Iterator[float | None]:
    """Biases of a sigmoid that give these weights; None for -log n."""
    found = []
    for table in seen:
        w = table[table > 0]
        if np.ptp(w) > 1e-6:
            return
        found.append(float(np.log(w.mean() / (1 - w.mean()))))
    logs = [-np.log(table.shape[-1]) for table in seen]
    if np.allclose(found, logs, atol=1e-3):
        yield None
    elif np.ptp(found) < 1e-3 and found[0] < -0.1:
        yield float(found[0])


def bias_of(seen: Array) -> Bias | None:
    """The bias that weights without scores show, if it may be a learned one."""
    if not np.isfinite(seen).all() or (seen.sum(axis=-1) < NEAR).any():
        return None
    n = seen.shape[-1]
    logs = _logs(seen)
    rest = 1 - seen.sum(axis=-1, keepdims=True)
    if (rest > NEAR).all():  # what a sink takes is a measure for all
        logs = logs - np.log(rest)
        level = 0.0 * rest
    else:
        level = np.nanmean(logs, axis=-1, keepdims=True)
    table = logs - level
    if np.nanmax(np.abs(table - table[:1])) > 1e-3:  # not the same in all items
        return None
    if (np.isnan(table) != np.isnan(table[0, 0])).any():
        return None
    rows = np.asarray(table.mean(axis=0))
    if np.nanmax(np.abs(rows)) > LARGEST or len(np.unique(rows.round(3))) < 3:
        return None
    apart = np.arange(n) - np.arange(n)[:, None]
    near = _fits(rows, [np.abs(apart), np.broadcast_to(np.arange(n), (n, n))])
    if near or any(_steps(head) for head in rows):
        return None
    by_distance = _by_distance(rows, fixed=bool((rest > NEAR).all()))
    if by_distance is not None:
        return Bias(_merged(by_distance), ends=n == SIZES[0])
    return Bias(_merged(np.nan_to_num(rows)), by_place=True)


def _merged(numbers: Array) -> Array:
    """One row where all heads have the same numbers."""
    same = np.allclose(numbers, numbers[:1], atol=1e-5)
    return np.asarray(numbers[:1] if same else numbers)


def _steps(head: Array) -> bool:
    """Whether it takes one of two values: a mask, and no numbers that were learned."""
    row = head[len(head) // 2]
    flat = np.unique(np.round(row[np.isfinite(row)], 3))
    return len(flat) == 2


def _fits(rows: Array, tables: Sequence[Array]) -> bool:
    """Whether the bias is a multiple of distances or places, as ALiBi's is."""
    n = min(rows.shape[-1], 16)
    tables = [table[:n, :n] for table in tables]
    for head in rows[:, :n, :n]:
        seen = np.isfinite(head)
        columns = [np.where(seen, t, np.nan)[seen] for t in tables]
        each = np.repeat(np.eye(n), seen.sum(axis=-1), axis=0)
        system = np.column_stack([*columns, each])
        solution = np.linalg.lstsq(system, head[seen], rcond=None)[0]
        if np.abs(system @ solution - head[seen]).max() > 1e-3:
            return False
    return True


def _by_distance(rows: Array, *, fixed: bool) -> Array | None:
    """(n_heads, 2 n - 1), if in each row the bias is a function of the distance.

    Each row has a constant of its own: softmax does not see it. With a sink there is
    none (`fixed`).
    """
    n = rows.shape[-1]
    numbers = np.full((len(rows), 2 * n - 1), np.nan)
    start = n // 2  # a row that sees on both sides, if any does
    order = sorted(range(n), key=lambda i: abs(i - start))
    for i in order:
        row = rows[:, i]
        at = np.arange(n) - i + n - 1
        known = numbers[:, at]
        both = np.isfinite(known) & np.isfinite(row)
        if i != start and not both.any(axis=-1).all():
            return None
        shift = np.zeros((len(rows), 1))
        if i != start and not fixed:
            shift = np.nanmean(np.where(both, known - row, np.nan), axis=-1)[:, None]
        moved = row + shift
        if both.any() and np.nanmax(np.where(both, np.abs(known - moved), 0)) > 2e-3:
            return None
        numbers[:, at] = np.where(np.isfinite(known), known, moved)
    return np.nan_to_num(numbers)
