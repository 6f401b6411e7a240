"""Outcomes in a file as they come, so that a run of hours may end and go on.

The first line says which code and which libraries made them: what another version said
is not counted with what this one says.
"""

import hashlib
import importlib.metadata
import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from zoo.tally import Outcome

ROOT = Path(__file__).resolve().parents[2]
CODE = ("attnlib/**/*.py", "benchmarks/zoo/*.py")
LIBRARIES = ("numpy", "torch")
Key = tuple[str, int, str]


class Journal:
    """A file of outcomes; without a name, nothing is kept."""

    def __init__(self, path: Path | None) -> None:
        self.path, self.seen = path, []
        if path is None or not path.exists() or not path.stat().st_size:
            if path is not None:
                path.write_text(json.dumps(made_by()) + "\n", encoding="utf-8")
            return
        first, lines = _read(path)
        if first != json.dumps(made_by()):
            raise ValueError(
                f"{path} was written by another version of the clinic, its zoo or a "
                "library; name another file, or remove this one."
            )
        path.write_text("\n".join([first, *lines, ""]), encoding="utf-8")
        self.seen = list(map(_outcome, lines))

    def add(self, outcome: Outcome) -> None:
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(outcome)) + "\n")

    def of(self, keys: Iterable[Key]) -> list[Outcome]:
        """The outcomes that stood in it and are among what is asked now."""
        asked = set(keys)
        return [o for o in self.seen if (o.name, o.seed, o.dtype) in asked]


def not_good(path: Path) -> set[str]:
    """The specimens that were not as they should be, whatever version examined them."""
    _, lines = _read(path)
    return {outcome.name for outcome in map(_outcome, lines) if not outcome.good}


def made_by() -> dict[str, str]:
    """What an outcome depends on, in short."""
    digest = hashlib.sha256()
    for path in sorted(path for pattern in CODE for path in ROOT.glob(pattern)):
        digest.update(f"{path.relative_to(ROOT).as_posix()}\n".encode())
        digest.update(path.read_bytes().replace(b"\r\n", b"\n"))
    versions = {name: importlib.metadata.version(name) for name in LIBRARIES}
    return {"code": digest.hexdigest()[:16], **versions}


def _read(path: Path) -> tuple[str, list[str]]:
    """The first line, and the others but for a last one that was cut off."""
    first, *lines, _ = path.read_text(encoding="utf-8").split("\n")
    return first, lines


def _outcome(line: str) -> Outcome:
    told: dict[str, object] = json.loads(line)
    lists = {k: tuple(v) for k, v in told.items() if isinstance(v, list)}
    return Outcome(**{**told, **lists})  # type: ignore[arg-type]
