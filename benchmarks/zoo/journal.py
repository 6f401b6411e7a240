"""Outcomes in a file as they come, so that a run of hours may end and go on.

The first line says which code and which libraries made them: what another version said
is not counted with what this one says.
"""

import hashlib
import importlib.metadata
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from zoo.tally import Outcome

ROOT = Path(__file__).resolve().parents[2]
CODE = ("attnlib/*.py", "attnlib/clinic/**/*.py", "attnlib/nn/*.py", "benchmarks/zoo")
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
        first, *rest = path.read_text(encoding="utf-8").split("\n")
        if first != json.dumps(made_by()):
            raise ValueError(
                f"{path} was written by another version of the clinic, its zoo or a "
                "library; name another file, or remove this one."
            )
        half = rest.pop()  # "" after the last line; what stands here was cut off
        if half:
            path.write_text("\n".join([first, *rest, ""]), encoding="utf-8")
        self.seen = [_outcome(json.loads(line)) for line in rest]

    def add(self, outcome: Outcome) -> None:
        self.seen.append(outcome)
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(outcome)) + "\n")

    def of(self, keys: Iterable[Key]) -> list[Outcome]:
        """The outcomes in it that are among what is asked now."""
        asked = set(keys)
        return [o for o in self.seen if (o.name, o.seed, o.dtype) in asked]


def not_good(path: Path) -> set[str]:
    """The specimens that were not as they should be, whatever version examined them."""
    _, *lines = path.read_text(encoding="utf-8").splitlines()
    seen = (_outcome(json.loads(line)) for line in lines)
    return {outcome.name for outcome in seen if not outcome.good}


def made_by() -> dict[str, str]:
    """What an outcome depends on, in short."""
    digest = hashlib.sha256()
    for path in sorted(_files()):
        digest.update(f"{path.relative_to(ROOT).as_posix()}\n".encode())
        digest.update(path.read_bytes().replace(b"\r\n", b"\n"))
    versions = {name: importlib.metadata.version(name) for name in LIBRARIES}
    return {"code": digest.hexdigest()[:16], **versions}


def _files() -> Sequence[Path]:
    return [
        path
        for pattern in CODE
        for path in ROOT.glob(pattern if "*" in pattern else f"{pattern}/*.py")
    ]


def _outcome(told: dict[str, object]) -> Outcome:
    lists = {k: tuple(v) for k, v in told.items() if isinstance(v, list)}
    return Outcome(**{**told, **lists})  # type: ignore[arg-type]
