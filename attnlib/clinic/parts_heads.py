"""Parts that move heads: split, merge, repeat the shared keys."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from attnlib.clinic import probes
from attnlib.clinic.case import Case
from attnlib.clinic.families.grouped import REPEAT_KV
from attnlib.clinic.families.splits import MERGE_HEADS, SPLIT_HEADS
from attnlib.clinic.part import (
    Cases,
    Complete,
    Form,
    Meant,
    Options,
    Part,
    Takes,
    whole,
)

Rng = np.random.Generator
BATCHES = "arrays without a batch: it takes batches only."
NO_BATCHES = "batches: it takes one text only."


def _split(options: Options, takes: Takes) -> tuple[Form, ...]:
    def cases(*ranks: int) -> Cases:
        shapes = ((3, 4, 2), (5, 12, 3), (4, 6, 1))
        batches = ((2, 5, 12, 4), (3, 4, 6, 2), (2, 3, 10, 5))

        def made(rng: Rng) -> tuple[Case, ...]:
            found = []
            for *shape, n_heads in (*shapes, *batches):
                heads = "1 head" if n_heads == 1 else f"{n_heads} heads"
                name = f"x of shape {tuple(shape)}, {heads}"
                if len(shape) in ranks:
                    found.append(Case(name, (probes.table(rng, *shape), n_heads)))
            return tuple(found)

        return made

    call, meant = "split_heads(x, n_heads)", (Meant(SPLIT_HEADS),)
    if not takes.fits(2):
        return ()
    return (
        Form(call, cases(2, 3), meant),
        Form(call, cases(3), meant, untested=(BATCHES,), largest=True),
        Form(call, cases(2), meant, untested=(NO_BATCHES,)),
    )


def _merge(options: Options, takes: Takes) -> tuple[Form, ...]:
    told = takes.fits(2) and takes.at(1, "head") and takes.required > 1

    def heads_alone(case: Case) -> Case:
        return Case(case.name, case.args[:1])

    def cases(*ranks: int) -> Cases:
        shapes = ((2, 3, 2), (3, 5, 4), (1, 4, 3), (2, 4, 5, 3), (3, 2, 4, 5))

        def made(rng: Rng) -> tuple[Case, ...]:
            found = []
            for shape in shapes:
                args: tuple[object, ...] = (probes.table(rng, *shape),)
                if len(shape) in ranks:
                    args = (*args, shape[-3]) if told else args
                    found.append(Case(f"heads of shape {shape}", args))
            return tuple(found)

        return made

    call = "merge_heads(x, n_heads)" if told else "merge_heads(x)"
    meant = (Meant(MERGE_HEADS, "", heads_alone),)
    if not (takes.fits(1) or told):
        return ()
    return (
        Form(call, cases(3, 4), meant),
        Form(call, cases(4), meant, untested=(BATCHES,), largest=True),
        Form(call, cases(3), meant, untested=(NO_BATCHES,)),
    )


def _repeat(options: Options, takes: Takes) -> tuple[Form, ...]:
    of_all = takes.at(1, "head") and not takes.at(1, "rep", "group", "kv")

    def complete(axis: int) -> Complete:
        def with_axis(case: Case) -> Case:
            k, n_rep = case.args
            if of_all:
                n_rep = whole(n_rep) // np.asarray(k).shape[axis]
            return Case(case.name, (k, n_rep, axis))

        return with_axis

    order = tuple(k for k in REPEAT_KV.slots["order"] if k != "repeat_on_tokens")
    found_out = replace(REPEAT_KV, slots={**REPEAT_KV.slots, "order": order})
    said = options.get("axes")
    first = Meant(REPEAT_KV if said else found_out, "", complete(-3))
    words = "" if said else "tokens stand before heads: (batch, n, n_kv_heads, d)"
    second = Meant(REPEAT_KV if said else found_out, words, complete(-2))
    meant = {"heads first": (first,), "tokens first": (second,)}

    def cases(*ranks: int) -> Cases:
        calls = (
            ((2, 2, 3, 4), 3),
            ((2, 3, 5, 2), 2),
            ((1, 4, 3, 2), 2),
            ((2, 4, 3), 2),
        )
        more = (((2, 1, 4, 3), 4), ((3, 5, 2), 3))

        def made(rng: Rng) -> tuple[Case, ...]:
            return tuple(
                Case(
                    f"k of shape {shape}, {shape[-3] * n} heads"
                    if of_all
                    else f"k of shape {shape}, n_rep={n}",
                    (probes.table(rng, *shape), shape[-3] * n if of_all else n),
                )
                for shape, n in (*calls, *more)
                if len(shape) in ranks
            )

        return made

    call = "repeat_kv(k, n_heads)" if of_all else "repeat_kv(k, n_rep)"
    chosen = meant.get(str(said), (first, second))
    if of_all:  # how many heads there are depends on the axis that is meant
        chosen = (first,)
    if not takes.fits(2):
        return ()
    return (
        Form(call, cases(4, 3), chosen),
        Form(call, cases(4), chosen, untested=(BATCHES,), largest=True),
        Form(call, cases(3), chosen, untested=(NO_BATCHES,)),
    )


HEADS = (
    Part(
        "split_heads",
        "split_heads(x, n_heads)",
        "heads (..., n_heads, n, d)",
        "The features of each token are cut into heads: neighbours stay together.",
        _split,
    ),
    Part(
        "merge_heads",
        "merge_heads(x)",
        "tokens (..., n, n_heads * d)",
        "The heads of each token are joined again.",
        _merge,
    ),
    Part(
        "repeat_kv",
        "repeat_kv(k, n_rep)",
        "keys for all heads, (..., n_kv_heads * n_rep, n, d)",
        "Each key head stands n_rep times in a row, for the query heads that share it.",
        _repeat,
        "M33",
        {"axes": "'heads first' | 'tokens first'"},
    ),
)
