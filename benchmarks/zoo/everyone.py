"""All specimens: every file of the zoo that ends with SPECIMENS."""

from collections import Counter
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path

from .specimen import Specimen


@cache
def everyone() -> tuple[Specimen, ...]:
    """Every specimen of every file, in the order of the files' names."""
    found: list[Specimen] = []
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path.stem in ("__init__", "everyone"):
            continue
        module = import_module(f"{__package__}.{path.stem}")
        found += getattr(module, "SPECIMENS", ())
    counted: Counter[str] = Counter()
    for i, specimen in enumerate(found):
        counted[specimen.name] += 1
        if counted[specimen.name] > 1:  # results are listed by name
            name = f"{specimen.name} ({counted[specimen.name]})"
            found[i] = replace(specimen, name=name)
    return tuple(found)


def kind_of(specimen: Specimen) -> str:
    """Whether it is one of the "right", the "singles" or the "pairs"."""
    return ("right", "singles", "pairs")[min(len(specimen.codes), 2)]
