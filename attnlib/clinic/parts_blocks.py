"""Softmax block by block, and the loss of distillation, as parts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from attnlib.clinic import probes
from attnlib.clinic.case import Case, Result
from attnlib.clinic.families.distillation import DISTILLATION_LOSS
from attnlib.clinic.families.online import ONLINE_BLOCKS, ONLINE_SOFTMAX
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
from attnlib.clinic.part_laws import LOG_N, NO_DIVERGENCE

Rng = np.random.Generator
Float = npt.NDArray[np.float64]


def _online(options: Options, takes: Takes) -> tuple[Form, ...]:
    empty = options.get("empty_rows", True)

    def made(rng: Rng) -> tuple[tuple[str, Float, int], ...]:
        rising = np.sort(probes.table(rng, 3, 7), axis=-1)
        mixed = probes.table(rng, 2, 8)
        falling = -np.sort(-probes.table(rng, 3, 6), axis=-1)
        # So far apart that weights are 0 and 1: float32 is too coarse there for more.
        low = rng.permuted([[0.0, 1, 2, 3, 4, 5]] * 2, axis=-1) * 32 - 1600.0
        lower = rng.permuted([[0.0, 1, 2, 3, 4]] * 2, axis=-1) * 128 - 60000.0
        huge = probes.table(rng, 2, 6)
        huge[:, :2], huge[:, 2:4] = huge[:, :2] + 900.0, huge[:, 2:4] - 900.0
        huge[1] = huge[1, ::-1]
        hidden = probes.table(rng, 3, 6)
        hidden[0, :2] = hidden[1, 2:4] = hidden[2, :4] = -np.inf
        found = [
            ("scores in ascending order", rising, 2),
            ("scores in any order", mixed, 3),
            ("scores in descending order", falling, 4),
            ("one block for all", mixed[:, :5], 5),
            ("scores around -1500", low, 2),
            ("scores around -60000", lower, 2),
            ("scores of 900 and of -900", huge, 2),
            ("blocks that are hidden altogether", hidden, 2),
        ]
        if empty:
            none = hidden.copy()
            none[1] = -np.inf
            found.append(("a row that is hidden altogether", none, 2))
        return tuple(found)

    def values(rng: Rng, scores: Float) -> Float:
        return probes.table(rng, scores.shape[-1], 3)

    def sized(rng: Rng) -> tuple[Case, ...]:
        return tuple(
            Case(f"{name}, blocks of {b}", (s, values(rng, s), b))
            for name, s, b in made(rng)
        )

    def lists(rng: Rng) -> tuple[Case, ...]:
        found = []
        for name, s, b in made(rng):
            v, starts = values(rng, s), range(0, s.shape[-1], b)
            blocks = [s[:, i : i + b] for i in starts]
            found.append(Case(name, (blocks, [v[i : i + b] for i in starts])))
        return tuple(found)

    forms = []
    if takes.at(0, "q") and takes.at(1, "k"):  # an attention: it wants no scores
        return ()
    if takes.fits(3):
        call = "online_softmax(scores, v, block)"
        forms.append(Form(call, sized, (Meant(ONLINE_SOFTMAX),)))
    if takes.fits(2):
        call = "online_softmax(score_blocks, value_blocks)"
        forms.append(Form(call, lists, (Meant(ONLINE_BLOCKS),)))
    return tuple(forms)


TEMPERATURES = (1.0, 2.0, 3.0, 4.0, 5.0, 0.5, 10.0, 20.0)


def _distillation(options: Options, takes: Takes) -> tuple[Form, ...]:
    said = options.get("temperature")
    named = takes.named("temp", "tau") or ("t" if "t" in takes.names else "")
    by_name = named in takes.by_keyword
    teacher_first = takes.at(0, "teach", "target") and not takes.at(1, "teach")
    third = (takes.fits(3) and (bool(named) or takes.required > 2)) or by_name
    kinds = {"divergence": "", "cross entropy": "the cross-entropy with the teacher"}
    kind = options.get("kind")

    def meant(temperatures: tuple[float | None, ...]) -> tuple[Meant, ...]:
        found = []
        for t in temperatures:
            for name, words in kinds.items():
                if kind not in (None, name):
                    continue
                family = DISTILLATION_LOSS
                if name != "divergence":  # then the entropy is left out on purpose
                    targets = family.slots["target"]
                    kept = tuple(k for k in targets if k == "distil_softmax_twice")
                    family = replace(family, slots={**family.slots, "target": kept})
                told = [words] if words and not kind else []
                told += (
                    [f"the temperature is {t:g}"] if t not in (None, 1, said) else []
                )
                found.append(Meant(family, ", ".join(told), _at(t, name), _one))
        return tuple(found)

    def cases(with_t: bool) -> Cases:
        def made(rng: Rng) -> tuple[Case, ...]:
            found = []
            for n, classes, t in ((2, 3, 1.0), (4, 5, 2.0), (3, 7, 4.0), (5, 4, 3.0)):
                student, teacher = (probes.table(rng, n, classes) for _ in range(2))
                teacher[0, 0] += 2.0  # no two classes lie level by chance
                name = f"{n} examples, {classes} classes"
                name += f", temperature {t:g}" if with_t else ""
                args = (student, teacher, t) if with_t else (student, teacher)
                found.append(Case(name, args))
            equal = probes.table(rng, 2, 4)
            more = (2.0,) if with_t else ()
            found.append(Case("student and teacher agree", (equal, equal, *more)))
            return tuple(found)

        return made

    forms = []
    order = (1, 0, 2) if teacher_first else ()
    if third:
        call = f"distillation_loss(student, teacher, {named or 'temperature'})"
        keyword = (named,) if by_name else ()
        forms.append(Form(call, cases(True), meant((None,)), keyword, order))
    elif takes.fits(2):
        fixed: tuple[float, ...] = (real(said),) if said else TEMPERATURES
        call = "distillation_loss(student, teacher)"
        forms.append(Form(call, cases(False), meant(fixed), order=order))
    return tuple(forms)


def _at(t: float | None, kind: str) -> Complete:
    def complete(case: Case) -> Case:
        args = case.args if t is None else (*case.args[:2], t)
        return Case(case.name, (*args, kind))

    return complete


def _one(case: Case, loss: Result) -> Result:
    """One number, whatever axes of size 1 it has."""
    return loss.reshape(()) if loss.size == 1 else loss


BLOCKS = (
    Part(
        "online_softmax",
        "online_softmax(scores, v, block)",
        "softmax(scores) @ v, (n_q, d_v)",
        "The same as at once, from blocks of keys: a running maximum, a sum and an "
        "output.",
        _online,
        "M36",
        {"empty_rows": "True or False"},
    ),
    Part(
        "distillation_loss",
        "distillation_loss(student, teacher, temperature)",
        "one number",
        "T² times the mean over the batch of KL(teacher || student), from logits "
        "(batch, classes).",
        _distillation,
        "M44",
        {"temperature": "a number", "kind": "'divergence' | 'cross entropy'"},
        (NO_DIVERGENCE, LOG_N),
    ),
)
