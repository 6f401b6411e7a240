"""Parts around the scores: softmax, softcap, normed queries."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from attnlib.clinic import probes
from attnlib.clinic.case import Case
from attnlib.clinic.families.grouped import QK_NORM
from attnlib.clinic.families.half import CAPPED_SCORES
from attnlib.clinic.families.softmax import SOFTMAX
from attnlib.clinic.part import (
    Cases,
    Complete,
    Form,
    Meant,
    Options,
    Part,
    Takes,
    real,
)
from attnlib.clinic.part_laws import (
    BLIND_TO_SIZE,
    CAPPED,
    ROWS_SUM,
    SHIFT,
)

Rng = np.random.Generator
Float = npt.NDArray[np.float64]


def _softmax(options: Options, takes: Takes) -> tuple[Form, ...]:
    empty = options.get("empty_rows", True)

    def cases(with_axis: bool) -> Cases:
        def made(rng: Rng) -> tuple[Case, ...]:
            found = [
                case
                for case in probes.scores_cases(rng)
                if (with_axis or len(case.args) == 1)
                and (empty or "all scores are -inf" not in case.name)
            ]
            if with_axis:
                found = [Case(c.name, (*c.args, -1)[:2]) for c in found]
            return tuple(found)

        return made

    meant = (Meant(SOFTMAX),)
    forms = []
    axis = takes.named("axis", "dim")
    if takes.fits(2) and (axis or not takes.names):
        keyword = (axis,) if axis in takes.by_keyword else ()
        forms.append(Form("softmax(x, axis)", cases(True), meant, keyword))
    elif axis in takes.by_keyword and axis:
        forms.append(Form(f"softmax(x, {axis})", cases(True), meant, (axis,)))
    if takes.fits(1):
        other = "other axes than the last: it takes no axis."
        forms.append(Form("softmax(x)", cases(False), meant, untested=(other,)))
    return tuple(forms)


def _softcap(options: Options, takes: Takes) -> tuple[Form, ...]:
    fixed = options.get("cap")
    masked = takes.named("mask", "allowed", "look")
    order = takes.names[:3]
    mask_last = masked in order and order.index(masked) == 2
    some = np.array([[True, True, False], [True, False, True]])

    def scores(rng: Rng, n_q: int, n_k: int, size: float) -> Float:
        return np.asarray(np.round(rng.normal(size=(n_q, n_k)) * size, 2))

    def plain(rng: Rng) -> list[tuple[Float, float]]:
        cap = real(fixed) if fixed is not None else 0.0
        large = np.array([[60.0, 55.0, 20.0], [-2.0, 90.0, 1.0]])
        return [
            (large, cap or 30.0),
            (scores(rng, 2, 3, 4.0), cap or 5.0),
            (scores(rng, 4, 5, 9.0), cap or 8.0),
            (scores(rng, 2, 3, 3.0), cap or 2.5),
        ]

    def with_cap(rng: Rng) -> tuple[Case, ...]:
        return tuple(Case(_cap_name(s, c), (s, c)) for s, c in plain(rng))

    def without(rng: Rng) -> tuple[Case, ...]:
        return tuple(Case(_cap_name(s, c), (s,)) for s, c in plain(rng))

    def with_mask(rng: Rng) -> tuple[Case, ...]:
        found = []
        for s, c in plain(rng):
            mask = some if s.shape == some.shape else rng.random(s.shape) < 0.7
            mask[:, 1] = True
            args = (s, c, mask) if mask_last else (s, mask, c)
            found.append(Case(f"{_cap_name(s, c)}, masked", args))
        return tuple(found)

    def complete(case: Case) -> Case:
        s, *more = case.args
        cap = next((a for a in more if not isinstance(a, np.ndarray)), fixed)
        mask = next((a for a in more if isinstance(a, np.ndarray)), None)
        mask = np.ones(np.asarray(s).shape, bool) if mask is None else mask
        return Case(case.name, (s, mask, cap))

    alone = replace(CAPPED_SCORES, slots={"cap": CAPPED_SCORES.slots["cap"]})
    bare = (Meant(alone, "", complete),)
    forms = []
    if masked and takes.fits(3):
        call = f"softcap({', '.join(order)})"
        forms.append(Form(call, with_mask, (Meant(CAPPED_SCORES, "", complete),)))
    if takes.fits(2) and not masked:
        forms.append(Form("softcap(scores, cap)", with_cap, bare))
    if takes.fits(1) and fixed is not None:
        forms.append(Form("softcap(scores)", without, bare))
    return tuple(forms)


def _cap_name(scores: Float, cap: float) -> str:
    n_q, n_k = scores.shape
    return f"{n_q} queries, {n_k} keys, cap {cap:g}"


def _qk_norm(options: Options, takes: Takes) -> tuple[Form, ...]:
    kinds = {
        "rms": "the root mean square becomes 1",
        "unit": "the length becomes 1",
        "layer": "the mean is taken off first",
    }
    said = options.get("kind")
    meant = tuple(
        Meant(QK_NORM, "" if said else words, _kind(kind))
        for kind, words in kinds.items()
        if said in (None, kind)
    )

    def cases(d: int | None, *ranks: int) -> Cases:
        shapes: tuple[tuple[int, ...], ...] = (
            (2, 3, 4, 6),
            (3, 2, 5, 4),
            (3, 4, 6),
            (2, 5, 8),
        )
        if d:
            shapes = tuple((*shape[:-1], d) for shape in shapes)
        sizes = (1.0, 10.0, 2.0, 5.0)

        def made(rng: Rng) -> tuple[Case, ...]:
            found = []
            for shape, size in zip(shapes, sizes, strict=True):
                q = probes.table(rng, *shape)
                q = np.where(q == 0, 0.5, q) * size
                q *= rng.integers(1, 4, size=(*shape[:-1], 1))  # each its own size
                if len(shape) in ranks:
                    k = (probes.table(rng, *shape) + 0.0625,) if with_keys else ()
                    found.append(Case(f"q of shape {shape}", (q, *k)))
            return tuple(found)

        return made

    with_keys = takes.required == 2
    call = "qk_norm(q, k)" if with_keys else "qk_norm(q)"
    if not (takes.fits(1) or with_keys):
        return ()
    no_batch = "arrays without a batch: it takes batches only."
    three = "batches: it takes (n_heads, n, d_k) only."
    forms = []
    for d in dict.fromkeys((takes.width, None)):
        forms += [
            Form(call, cases(d, 4, 3), meant),
            Form(call, cases(d, 4), meant, untested=(no_batch,), largest=True),
            Form(call, cases(d, 3), meant, untested=(three,)),
        ]
    return tuple(forms)


def _kind(kind: str) -> Complete:
    def complete(case: Case) -> Case:
        return Case(case.name, (case.args[0], kind))

    return complete


SCORES = (
    Part(
        "softmax",
        "softmax(x, axis)",
        "weights, in the shape of x",
        "Weights that sum to 1 along an axis. A slice of -inf throughout gives zeros.",
        _softmax,
        options={"empty_rows": "True or False"},
        laws=(ROWS_SUM, SHIFT),
    ),
    Part(
        "softcap",
        "softcap(scores, cap)",
        "capped scores, in the shape of scores",
        "cap · tanh(scores / cap); with a mask, -inf is written over it afterwards.",
        _softcap,
        "M37",
        {"cap": "a number"},
        (CAPPED,),
    ),
    Part(
        "qk_norm",
        "qk_norm(q)",
        "normalised queries, in the shape of q",
        "Each query of each head is divided by its own size, over its d_k features.",
        _qk_norm,
        "M38",
        {"kind": "'rms' | 'unit' | 'layer'"},
        (BLIND_TO_SIZE,),
    ),
)
