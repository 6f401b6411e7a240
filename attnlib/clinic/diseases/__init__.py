"""The catalogue M01 to M47: for each, its texts, its reports, and a run of it.

`catalogue` holds the many wrong versions that the engine tells apart; here are the
mistakes that they are versions of.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from attnlib.clinic.diseases.disease import Disease, Shown

__all__ = ["Disease", "Shown", "all_diseases", "get"]


@cache
def all_diseases() -> dict[str, Disease]:
    """All entries by number, in order.

    >>> list(all_diseases())[:3]
    ['M01', 'M02', 'M03']
    """
    found: dict[str, Disease] = {}
    for part in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{part.name}")
        for disease in getattr(module, "DISEASES", ()):
            if disease.code in found:
                raise ValueError(f"Two entries have the number {disease.code}.")
            found[disease.code] = disease
    return dict(sorted(found.items()))


def get(code: str) -> Disease:
    """The entry of this number.

    >>> get("M04").name
    'The softmax runs over the wrong axis'
    """
    return all_diseases()[code]
