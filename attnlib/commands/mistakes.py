"""`attnlib mistakes`: the catalogue, or one mistake with a run of it."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Iterator, Sequence

import numpy as np

from attnlib.clinic import diseases
from attnlib.clinic.diseases import Disease, Shown

WIDTH = 88
WHERE = {
    "function": "in a function of attention",
    "module": "in a module with heads and weights of its own",
    "part": "in a part: a mask, a position, a loss",
    "training": "in training",
    "file": "in files of weights",
    "library": "in how a library is called",
}


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Tell argparse what the command takes."""
    parser = commands.add_parser(
        "mistakes",
        help="list the mistakes people make with attention, or show one",
        description="List the mistakes people make with attention. With a number, "
        "show that one: what it is, how it shows, where it was seen, and a run of it.",
    )
    parser.add_argument("code", nargs="?", metavar="CODE", help="M01 to M47")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Print the list, or one entry. Returns the exit status."""
    entries = diseases.all_diseases()
    if given.code is None:
        for disease in entries.values():
            print(f"{disease.code}  {disease.name}")
        print("\nattnlib mistakes M02 shows one of them, and runs it.")
        return 0
    code = given.code.upper()
    if code.removeprefix("M").isdecimal():
        code = f"M{int(code.removeprefix('M')):02}"  # 2 and m2 are M02
    if code not in entries:
        codes = list(entries)
        print(
            f"There is no mistake {given.code}: {codes[0]} to {codes[-1]}.",
            file=sys.stderr,
        )
        return 2
    print(page(entries[code]))
    return 0


def page(disease: Disease) -> str:
    """One entry as text, with the numbers of its run."""
    return "\n".join(_lines(disease))


def _lines(disease: Disease) -> Iterator[str]:
    yield from _wrapped(f"{disease.code} {disease.name}.")
    yield from _wrapped(f"Found {WHERE[disease.where]}.")
    for label, text in (
        ("What you notice", disease.symptom),
        ("What is asked", disease.probe),
        ("Why", disease.explanation),
    ):
        yield ""
        yield from _wrapped(f"{label}: {text}")
    yield ""
    yield "Hints:"
    for number, hint in enumerate(disease.hints, start=1):
        yield from _wrapped(f"{number}. {hint}", "   ")
    yield ""
    yield from _run(disease)
    names = list(dict.fromkeys(mistake.name for mistake in disease.variants))
    if names:
        yield ""
        yield "Wrong versions that the clinic can run and tell apart:"
        for name in names:
            yield from _wrapped(f"- {name}", "  ")
    if disease.reports:
        yield ""
        yield from _wrapped(f"Seen in public: {', '.join(disease.reports)}")


def _run(disease: Disease) -> Iterator[str]:
    try:
        shown = disease.run()
    except ModuleNotFoundError as error:  # torch, in an installation without it
        yield f"It was not run: there is no module {error.name} here."
        return
    yield from _wrapped(f"Run just now. {shown.setting}")
    yield from table(shown)


def table(shown: Shown) -> Iterator[str]:
    """Right and wrong side by side, or one below the other where that is too wide."""
    for what, right, wrong in shown.rows:
        left, other = _block(right), _block(wrong)
        wide = max(len("right"), *(len(line) for line in left))
        yield f"  {what}"
        if 4 + wide + 4 + max(len(line) for line in other) > WIDTH:
            for label, block in (("right", left), ("wrong", other)):
                yield f"    {label}"
                yield from (f"      {line}" for line in block)
            continue
        yield f"    {'right':{wide}}    wrong"
        for i in range(max(len(left), len(other))):
            a, b = (block[i] if i < len(block) else "" for block in (left, other))
            yield f"    {a:{wide}}    {b}".rstrip()


def _block(value: object) -> list[str]:
    """A number, a sentence, a row or a table, as lines of text."""
    if isinstance(value, str):
        return textwrap.wrap(value, 60) or [""]
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        return [str(value)]
    rows = [[number(cell) for cell in row] for row in np.atleast_2d(array).tolist()]
    width = max(len(cell) for row in rows for cell in row)
    return ["  ".join(f"{cell:>{width}}" for cell in row) for row in rows]


def number(value: float) -> str:
    """A number as a person reads it, the same on every machine.

    >>> number(0.5), number(1.5e-5), number(float("-inf")), number(3)
    ('0.5', '1.5e-05', '-inf', '3')
    """
    if isinstance(value, bool):
        return str(value)
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "inf" if value > 0 else "-inf"
    if abs(value) < 1e-12:  # rounding, or -0
        return "0"
    if value == round(value):
        return f"{value:.0f}" if abs(value) < 1e6 else f"{value:.1e}"
    text = f"{value:.3f}" if abs(value) >= 0.1 else f"{value:.3g}"
    return text.rstrip("0").rstrip(".") if "e" not in text else text


def _wrapped(text: str, indent: str = "") -> Sequence[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
