"""Solve the notebooks: python tools/solve.py [01 03 ...] fills build/solved.

As `attnlib solutions` does it, but only where a lesson or the library changed. The
tests then run the solved notebooks as strictly as the others.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from attnlib.grading.solutions import solve
from attnlib.grading.written import whole

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
SOLVED = ROOT / "build" / "solved"


def write_solved(stored: Path) -> bool:
    """Write the solved form of one notebook; False if it was there already."""
    content = stored.read_bytes()
    parts = [*sorted((ROOT / "attnlib").rglob("*.py")), Path(__file__)]
    digest = hashlib.sha256(content)
    for part in parts:
        digest.update(part.read_bytes())
    target, seal = SOLVED / stored.name, SOLVED / f"{stored.stem}.seal"
    if target.exists() and seal.exists() and seal.read_text() == digest.hexdigest():
        return False
    SOLVED.mkdir(parents=True, exist_ok=True)
    # Two test workers may do this at once: each writes whole files, and the same.
    whole(target, solve(content))
    whole(seal, digest.hexdigest().encode())
    return True


def main(names: list[str]) -> int:
    for stored in sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb")):
        if names and not any(stored.stem.startswith(name) for name in names):
            continue
        try:
            made = write_solved(stored)
        except Exception as error:
            print(f"FAILED  lesson {stored.stem}, {type(error).__name__}: {error}")
            return 1
        print(f"{'solved' if made else 'same  '}  build/solved/{stored.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
