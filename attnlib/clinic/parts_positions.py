"""Parts that say where a token stands: sinusoid, learned rows, beside fillers."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt

from attnlib.clinic import probes
from attnlib.clinic.case import RIGHT, Case, Faults, Result
from attnlib.clinic.families import learned
from attnlib.clinic.families.positions import BASE, SINUSOIDAL, sinusoidal
from attnlib.clinic.part import (
    Cases,
    Form,
    Meant,
    Options,
    Part,
    Takes,
    real,
    whole,
)
from attnlib.clinic.part_laws import TOEPLITZ
from attnlib.clinic.parts_rotary import of_base

Rng = np.random.Generator

_frequency = SINUSOIDAL.slots["frequency"]
SINUSOIDAL_ALONE = replace(
    SINUSOIDAL,
    slots={
        **SINUSOIDAL.slots,
        "frequency": (
            *_frequency,
            "frequency_of_cosines",
            "frequency_of_odd_columns",
            "base_10000",
        ),
        "width": ("odd_width_breaks", "odd_width_cut", "odd_width_grows"),
    },
)


def one_table(case: Case, table: Result) -> Result:
    """Without axes of size 1 in front: (1, n, d) is as good as (n, d)."""
    while table.ndim > 2 and table.shape[0] == 1:
        table = table[0]
    if table.ndim == 3 and table.shape[1] == 1:  # (n, 1, d), as in nn.Transformer
        table = table[:, 0]
    return table


def halves_apart(case: Case, table: Result) -> Result:
    """All sines before all cosines, put back beside one another."""
    table = one_table(case, table)
    d = table.shape[-1]
    if table.ndim != 2 or d < 2:
        return table
    mixed = np.empty_like(table)
    mixed[:, 0::2], mixed[:, 1::2] = table[:, : (d + 1) // 2], table[:, (d + 1) // 2 :]
    return mixed


def _to_the_end(
    n: int, d_model: int, base: float, *, faults: Faults = RIGHT
) -> npt.NDArray[np.float64]:
    """The table of tensor2tensor: the slowest pair turns by exactly 1/base."""
    return sinusoidal(n, d_model, base, faults=faults | {"frequency_to_the_end"})


def _sinusoidal(options: Options, takes: Takes) -> tuple[Form, ...]:
    base = real(options.get("base") or BASE)
    family = of_base(SINUSOIDAL_ALONE, base)

    apart = replace(
        family, slots={k: v for k, v in family.slots.items() if k != "columns"}
    )
    layouts = {
        "interleaved": Meant(family, tidy=one_table),
        "concatenated": Meant(
            apart, "all sines stand before all cosines", tidy=halves_apart
        ),
    }
    to_the_end = replace(
        apart,
        slots={k: v for k, v in apart.slots.items() if k != "frequency"},
        implementation=partial(_to_the_end, base=base),
    )
    ends = "their exponents run from 0 to exactly 1"
    layouts["concatenated, as in tensor2tensor"] = Meant(
        to_the_end,
        f"all sines stand before all cosines, and {ends}",
        tidy=halves_apart,
    )
    said = options.get("layout")
    meant = tuple(
        m for name, m in layouts.items() if said in (None, name.split(",")[0])
    )

    def cases(rng: Rng) -> tuple[Case, ...]:
        sizes = ((3, 4), (5, 6), (4, 2), (9, 10), (20, 16), (1, 8), (4, 5), (6, 7))
        return tuple(Case(f"n={n}, d_model={d}", (n, d)) for n, d in sizes)

    def even(rng: Rng) -> tuple[Case, ...]:
        return tuple(case for case in cases(rng) if whole(case.args[1]) % 2 == 0)

    if not takes.fits(2):
        return ()
    call = "sinusoidal(n, d_model)"
    wide = ("dim", "d_", "hid", "emb", "channel", "feature", "width")
    width_first = (takes.at(0, *wide) or takes.names[:1] == ("d",)) and not (
        takes.at(1, *wide) or takes.names[1:2] == ("d",)
    )
    order = (1, 0) if width_first else ()
    odd = "odd widths: it has none, or a way of its own."
    return (
        Form(call, cases, meant, order=order, strict=True),
        Form(call, even, meant, order=order, untested=(odd,), largest=True),
    )


def _learned(options: Options, takes: Takes) -> tuple[Form, ...]:
    offset = whole(options.get("offset") or 0)

    def complete(case: Case) -> Case:
        table, n, *past = case.args
        return Case(case.name, (table, n, past[0] if past else 0, offset))

    meant = (Meant(learned.LEARNED_POSITIONS, "", complete, one_table),)

    def made(with_past: bool) -> Cases:
        def cases(rng: Rng) -> tuple[Case, ...]:
            found = []
            for rows, n, past in ((9, 3, 0), (12, 4, 3), (14, 1, 5), (11, 2, 1)):
                table = probes.table(rng, rows + offset, 4)
                table[:, 0] = np.arange(len(table))  # no two rows are equal
                told = f", {past} in the cache" if with_past else ""
                name = f"a table of {len(table)} rows, {n} tokens{told}"
                args = (table, n, past) if with_past else (table, n)
                found.append(Case(name, args))
            return tuple(found)

        return cases

    forms = []
    if takes.wants(2, "past", "offset", "cache", "start", "begin"):
        forms.append(Form("learned_positions(table, n, past)", made(True), meant))
    if takes.fits(2):
        cached = "tokens behind a cache: it takes no length of the cache."
        call = "learned_positions(table, n)"
        forms.append(Form(call, made(False), meant, untested=(cached,)))
    return tuple(forms)


def _padded(options: Options, takes: Takes) -> tuple[Form, ...]:
    def at_tokens(case: Case, places: Result) -> Result:
        real = np.asarray(case.args[0], dtype=bool)
        if places.shape != real.shape:
            return places
        return np.where(real, places, 0).astype(np.float64)

    meant = (Meant(learned.PADDED_POSITIONS, tidy=at_tokens),)

    def cases(rng: Rng) -> tuple[Case, ...]:
        def rows(n: int, *fillers: int) -> npt.NDArray[np.bool_]:
            return np.asarray(np.arange(n) >= np.array(fillers)[:, None])

        masks = (rows(4, 0, 2), rows(6, 3, 0, 1), rows(5, 4, 2), rows(7, 2, 2, 5, 0))
        return tuple(
            Case(f"{len(m)} texts with fillers in front, {m.shape[1]} places", (m,))
            for m in masks
        )

    def numbers(rng: Rng) -> tuple[Case, ...]:
        return tuple(
            Case(c.name, (np.asarray(c.args[0]).astype(np.int64),)) for c in cases(rng)
        )

    call = "padded_positions(real)"
    forms = (Form(call, numbers, meant), Form(call, cases, meant))
    return forms if takes.fits(1) else ()


POSITIONS = (
    Part(
        "sinusoidal",
        "sinusoidal(n, d_model)",
        "a table (n, d_model)",
        "Sines and cosines of position times frequency, 10000^(-2 i / d_model).",
        _sinusoidal,
        "M30",
        {"layout": "'interleaved' | 'concatenated'", "base": "a number"},
        (TOEPLITZ,),
    ),
    Part(
        "learned_positions",
        "learned_positions(table, n, past)",
        "the rows of n tokens, (n, d_model)",
        "Rows past to past + n - 1 of the table; with an offset where a model has one.",
        _learned,
        "M29",
        {"offset": "a number"},
    ),
    Part(
        "padded_positions",
        "padded_positions(real)",
        "a position for each token, (batch, n)",
        "Positions where fillers stand in front: the running sum of the mask, minus 1. "
        "What fillers get does not matter.",
        _padded,
        "M28",
    ),
)
