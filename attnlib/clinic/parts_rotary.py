"""RoPE as a part: both layouts, any base, with positions, a start, or neither."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from attnlib.clinic import probes
from attnlib.clinic.case import Case, Family, Result
from attnlib.clinic.families.positions import BASE, ROPE
from attnlib.clinic.part import (
    Cases,
    Complete,
    Form,
    Meant,
    Options,
    Part,
    Takes,
    real,
    whole,
)
from attnlib.clinic.part_laws import KEEPS_LENGTHS, POSITION_ZERO, SEES_DISTANCES

Rng = np.random.Generator
OTHER_BASES = (500000.0, 1000000.0)  # of models since Llama 3
PLACES = ("pos", "place", "index", "ids", "token", "step")
START = ("offset", "start", "past", "begin", "cache")

ROPE_ALONE = replace(
    ROPE,
    slots={
        **ROPE.slots,
        "frequency": (*ROPE.slots["frequency"], "base_10000"),
        "positions": (*ROPE.slots["positions"], "places_along_heads"),
    },
)


def of_base(family: Family, base: float) -> Family:
    """The family for another base; what the wrong ones are called has to fit, too."""
    if base == BASE:
        return family
    implementation = partial(family.implementation, base=base)
    named = ("base_1000", "base_100000", "base_500000")
    slots = {
        name: tuple(key for key in keys if key not in named)
        for name, keys in family.slots.items()
    }
    return replace(family, slots=slots, implementation=implementation)


def _rope(options: Options, takes: Takes) -> tuple[Form, ...]:
    said, base = options.get("layout"), options.get("base")
    bases = (real(base),) if base is not None else (BASE, *OTHER_BASES)
    layouts = ("interleaved", "half") if said is None else (str(said),)
    start = len(takes.names) > 1 and any(w in takes.names[1].lower() for w in START)

    def meant(tokens_first: bool) -> tuple[Meant, ...]:
        found = []
        for number in bases:
            for layout in layouts:
                words = [] if said else [PAIRED[layout]]
                if base is None and number != BASE:
                    words.append(f"the base is {number:g}")
                words += ["tokens stand before heads"] if tokens_first else []
                complete = _placed(layout, tokens_first)
                family = of_base(ROPE_ALONE, number)
                tidy = _heads_first if tokens_first else _as_it_is
                found.append(Meant(family, ", ".join(words), complete, tidy))
        return tuple(found)

    def cases(ranks: tuple[int, ...], tokens_first: bool, d: int | None) -> Cases:
        shapes = tuple(((*s[:-1], d), p) for s, p in SHAPES) if d else SHAPES

        def made(rng: Rng) -> tuple[Case, ...]:
            return tuple(
                case
                for shape, places in shapes
                if len(shape) in ranks
                and (case := _turn_case(rng, shape, places, told, start, tokens_first))
            )

        return made

    told = start or takes.wants(1, *PLACES)
    if not (takes.fits(1) or told):
        return ()
    call = "rope(x, positions)" if told else "rope(x)"
    if start:
        call = f"rope(x, {takes.names[1]})"
    first = options.get("axes") != "tokens first"
    said_d = options.get("d")
    widths = (whole(said_d),) if said_d else (takes.width, None)
    forms = []
    for d in dict.fromkeys(widths):
        if first:
            forms += [Form(call, cases((2, 3, 4), False, d), meant(False))]
        for rank, words in ((4, "four axes"), (3, "three axes"), (2, "two axes")):
            note = f"arrays of other than {words}: it does not take them."
            one = Form(
                call,
                cases((rank,), False, d),
                meant(False),
                untested=(note,),
                largest=rank == 4,
            )
            forms += [one] if first else []
        if options.get("axes") != "heads first":
            forms.append(Form(call, cases((4,), True, d), meant(True)))
    return tuple(forms)


PAIRED = {
    "interleaved": "pairs are neighbours, 2 i and 2 i + 1",
    "half": "feature i is paired with i + d/2",
}
SHAPES = (
    ((3, 4), (0, 1, 2)),
    ((4, 6), (5, 6, 9, 30)),
    ((5, 8), (0, 1, 2, 3, 4)),
    ((2, 5, 8), (0, 1, 2, 3, 4)),
    ((2, 4, 10), (21, 0, 17, 25)),
    ((3, 4, 6), (2, 3, 4, 5)),
    ((2, 3, 5, 8), (0, 1, 2, 3, 4)),
    ((2, 3, 4, 6), (7, 8, 9, 10)),
    ((1, 2, 3, 4), (0, 1, 2)),
)


def _turn_case(
    rng: Rng,
    shape: tuple[int, ...],
    places: tuple[int, ...],
    told: bool,
    start: bool,
    tokens_first: bool,
) -> Case | None:
    """A call of rope: with positions, with a start, or with neither."""
    in_order = places == tuple(range(places[0], places[0] + len(places)))
    alone = not told
    if (alone and not (in_order and places[0] == 0)) or (start and not in_order):
        return None
    x = probes.table(rng, *shape)
    x = np.where(x == 0, 0.5, x)  # a 0 could hide what it is multiplied by
    if tokens_first:
        x = np.ascontiguousarray(np.swapaxes(x, -2, -3))
    listed = ", ".join(map(str, places))
    name = f"x of shape {x.shape}, positions {listed}"
    if alone:
        return Case(name, (x,))
    return Case(name, (x, places[0] if start else np.array(places)))


def _placed(layout: str, tokens_first: bool) -> Complete:
    def complete(case: Case) -> Case:
        x = np.asarray(case.args[0])
        if tokens_first:
            x = np.swapaxes(x, -2, -3)
        told = case.args[1] if len(case.args) > 1 else 0
        places: object = told
        if not isinstance(told, np.ndarray):
            places = np.arange(x.shape[-2]) + whole(told)
        return Case(case.name, (x, places, layout))

    return complete


def _as_it_is(case: Case, result: Result) -> Result:
    return result


def _heads_first(case: Case, result: Result) -> Result:
    return np.swapaxes(result, -2, -3) if result.ndim > 2 else result


ROTARY = (
    Part(
        "rope",
        "rope(x, positions)",
        "the turned x, in its shape",
        "Each pair of features of x (..., n_heads, n, d) is turned by its frequency "
        "times the position of its token.",
        _rope,
        "M27",
        {
            "layout": "'interleaved' | 'half'",
            "base": "a number",
            "d": "a number",
            "axes": "'heads first' | 'tokens first'",
        },
        (KEEPS_LENGTHS, POSITION_ZERO, SEES_DISTANCES),
    ),
)
