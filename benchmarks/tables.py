"""Tables that are printed as they come, and written to one file at the end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ratios import Row, numbers, table


class Tables:
    """What one benchmark found. Without aims, where the sizes are too small for any."""

    def __init__(self, aims: bool) -> None:
        self.aims = aims
        self.fine = True
        self.kept: dict[str, object] = {}

    def show(self, title: str, rows: Sequence[Row], *, counts: bool = True) -> None:
        """Print a table; a missed aim counts, if it is asked to."""
        if not self.aims:
            rows = [replace(each, aim=None) for each in rows]
        print(table(title, rows), flush=True)
        self.kept[title] = numbers(rows)
        self.fine &= not counts or all(each.met for each in rows)

    def write(self, target: Path | None) -> int:
        """Write all to a JSON file, if there is to be one; the exit code."""
        if target is not None:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(json.dumps(self.kept, indent=1) + "\n")
            print(f"written: {target}")
        return 0 if self.fine else 1
