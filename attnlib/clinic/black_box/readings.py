"""Where one answer can be read in two ways: by names, by float types, by sizes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from attnlib.clinic.black_box.exam import Diagnosis
from attnlib.clinic.catalogue import catalogue, get
from attnlib.clinic.report import Report
from attnlib.clinic.subject import FunctionSubject, ModuleSubject

DOUBTED = {"mask_inverted", "look_inverted", "mask_times_infinity"}
WHY = {
    "mask": "True of its key_padding_mask was read as a filler, as in PyTorch.",
    "dtype": "It was examined in float32: in float64 its own fill value overflows.",
}


def another(
    subject: FunctionSubject | ModuleSubject,
    report: Report,
    mask: str,
    dtype: str | None,
) -> dict[str, str]:
    """Keywords under which what looks wrong may be right, or nothing."""
    call: Any = getattr(subject.ask, "__self__", None)
    roles = getattr(call, "roles", {})
    keys = {one.key for one in report.mistakes}
    named = [str(name) for role, name in roles.items() if role in ("mask", "padding")]
    turned = keys & {"mask_inverted", "look_inverted"} or report.unknown
    if mask == "may look" and turned and any("key_padding" in n for n in named):
        return {"mask": "blocked"}
    if dtype is None and "mask_times_infinity" in keys:
        return {"dtype": "float32"}
    return {}


# If the mask was meant so, nothing was wrong: what to say then.
MEANT = {
    "mask_added": "added",
    "mask_inverted": "blocked",
    "look_inverted": "blocked",
}


def with_meaning(report: Report, mask: str) -> Report:
    """A mask that is not what it was taken for: the mend also names the keyword."""
    if mask != "may look":
        return report
    mistakes = tuple(
        replace(
            one,
            mend=f'{one.mend} If its mask is meant so, say mask="{MEANT[one.key]}".',
        )
        if one.key in MEANT
        else one
        for one in report.mistakes
    )
    return replace(report, mistakes=mistakes)


def or_else(known: Diagnosis) -> list[str]:
    """Other mistakes that have the same effect at these sizes."""
    first = [get(key) for key in known.readings[0] if key in catalogue()]
    for reading in known.readings[1:]:
        other = [get(key) for key in reading if key in catalogue()]
        if {m.code for m in other} != {m.code for m in first} and other:
            names = " and ".join(f"{m.code} {m.name}".strip() for m in other)
            return [f"At these sizes it could as well be: {names}."]
    return []


def is_sdpa(attention: object) -> bool:
    """Whether it is PyTorch's own function, handed in as it is."""
    name = getattr(attention, "__name__", "")
    return name == "scaled_dot_product_attention" and not hasattr(attention, "__code__")


def of_torch(report: Report) -> Report:
    """PyTorch aligns is_causal to the top left by design: to know, and no mistake."""
    aligned = tuple(m for m in report.mistakes if m.key == "aligned_top_left")
    others = tuple(m for m in report.mistakes if m.key != "aligned_top_left")
    return replace(report, mistakes=others, cautions=(*report.cautions, *aligned))
