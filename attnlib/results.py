"""Results of experiments that take too long for a lesson: stored, with their settings.

`tools/experiments/<name>.py` runs one anew and writes `<name>.json` into `RESULTS`: its
settings, their hash, and the numbers of every run.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "data" / "results"


def stored(name: str) -> dict[str, Any]:
    """Read the stored result of an experiment.

    Args:
        name: of the script that ran it, such as "length"; no shape.

    Returns:
        What the script wrote: "settings" and the numbers.

    Raises:
        ValueError: there is no such result, or its settings were changed by hand.

    Cost: one small file is read.
    Source: `tools/experiments`.
    Lesson: 07, 08, 09.

    >>> stored("length")["settings"]["seeds"]
    [0, 1, 2]
    """
    path = RESULTS / f"{name}.json"
    if not path.is_file():
        there = ", ".join(sorted(p.stem for p in RESULTS.glob("*.json")))
        raise ValueError(f"there is no stored result {name!r}; there are: {there}.")
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if settings_hash(found["settings"]) != found["settings_sha256"]:
        raise ValueError(
            f"the settings in {path.name} are not those that its numbers were made "
            f"with; run python tools/experiments/{name}.py, or take the file anew."
        )
    return found


def settings_hash(settings: dict[str, Any]) -> str:
    """Give the SHA-256 of settings: what the stored numbers must have been made with.

    Args:
        settings: of an experiment, as JSON can hold them; no shape.

    Returns:
        64 hexadecimal digits.

    Raises:
        TypeError: JSON cannot hold them.

    Cost: none to speak of.
    Source: FIPS 180-4.
    Lesson: 07, 08, 09.

    >>> settings_hash({"seeds": (0, 1)}) == settings_hash({"seeds": [0, 1]})
    True
    """
    packed = json.dumps(settings, sort_keys=True).encode()
    return hashlib.sha256(packed).hexdigest()
