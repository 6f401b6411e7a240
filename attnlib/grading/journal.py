"""What is graded so far: a file with one line for each submission.

Each line is on the disk before the next submission is begun, so whatever ends a run,
what was graded is kept. The first line says which seed (salted and hashed, never the
seed), which version of the library and which exercises the grades are of; a run with
others does not go on from it.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import attnlib
from attnlib.grading.grades import Grade, Graded

FORM = 1
WHAT = {
    "seed": "another seed",
    "version": "another version of the library or of your own exercises",
    "asked": "another choice of exercises or points",
}


class JournalError(ValueError):
    """There is a journal that does not fit; the message says how."""


class Journal:
    """A journal that is open for writing.

    Args:
        path: of the file.
        secret: of the class.
        version: see `version`.
        asked: the lesson and all else that the grades depend on.
        resume: go on from what is there; without it nothing may be there.

    Raises:
        JournalError: it does not fit, or there is one and `resume` was not said.
        OSError: it cannot be written.
    """

    def __init__(
        self, path: Path, secret: str, version: str, asked: str, resume: bool = False
    ) -> None:
        self.path = path
        self.kept: dict[str, tuple[str, Graded]] = {}  # by key: hash and grades
        there = path.exists() and path.stat().st_size > 0
        if there and not resume:
            n = len(_graded(_lines(path)))
            of = "1 submission" if n == 1 else f"{n} submissions"
            raise JournalError(
                f"{path} holds the grades of {of} of an earlier run: go on from there "
                f"with --resume, or take another folder with -o."
            )
        end = 0
        if there:
            lines = list(_lines(path))
            if lines:
                _fits(path, lines[0][1], secret, version, asked)
                self.kept = _graded(lines)
                end = lines[-1][0]
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            _alone(self._file, path)
            os.ftruncate(self._file, end)  # half a line of a run that was killed
            if not end:
                salt = secrets.token_hex(16)
                self._write(
                    {
                        "journal": FORM,
                        "salt": salt,
                        "seed": _hidden(secret, salt),
                        "version": version,
                        "asked": asked,
                    }
                )
        except BaseException:
            os.close(self._file)
            raise

    def add(self, key: str, told: str, graded: Graded) -> None:
        """Keep the grades of a submission.

        Args:
            key: which it is.
            told: the hash of its bytes.

        Raises:
            OSError: the disk is full. What was kept before is kept.
        """
        self._write({"key": key, "hash": told, "graded": asdict(graded)})
        self.kept[key] = (told, graded)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _write(self, line: dict[str, Any]) -> None:
        raw = json.dumps(line, ensure_ascii=True).encode() + b"\n"
        before = os.fstat(self._file).st_size
        try:
            while raw:
                raw = raw[os.write(self._file, raw) :]
            os.fsync(self._file)
        except OSError:
            os.ftruncate(self._file, before)
            raise


def version(more: str = "") -> str:
    """The version of the library, with a hash of its source and of what it counts with.

    Args:
        more: what else the grades depend on, such as a teacher's own exercises.
    """
    told = hashlib.sha256(f"{np.__version__}\n{more}\n".encode())
    package = Path(attnlib.__file__).parent
    for path in sorted(package.rglob("*.py")):
        told.update(f"{path.relative_to(package).as_posix()}\n".encode())
        told.update(path.read_bytes())
    return f"{attnlib.__version__}+{told.hexdigest()[:16]}"


def _alone(file: int, path: Path) -> None:
    """No other run may write here as long as the file is open."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise JournalError(
            f"Another run is writing into {path.parent}: wait for it, or take another "
            f"folder with -o."
        ) from None


def _hidden(secret: str, salt: str) -> str:
    """A hash from which nobody finds the secret, even if it is an easy one."""
    raw = hashlib.scrypt(secret.encode(), salt=salt.encode(), n=2**14, r=8, p=1)
    return raw[:32].hex()


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each whole line with the place where it ends; the first bad one ends them."""
    end = 0
    with path.open("rb") as file:
        for raw in file:
            end += len(raw)
            try:
                line = json.loads(raw)
            except ValueError:
                return
            if not raw.endswith(b"\n") or not isinstance(line, dict):
                return
            yield end, line


def _fits(
    path: Path, head: dict[str, Any], secret: str, version: str, asked: str
) -> None:
    if head.get("journal") != FORM:
        raise JournalError(f"{path} is no journal of this program: take another -o.")
    seed = _hidden(secret, str(head.get("salt")))
    differs = [
        WHAT[what]
        for what, same in (
            ("seed", hmac.compare_digest(seed, str(head.get("seed")))),
            ("version", head.get("version") == version),
            ("asked", head.get("asked") == asked),
        )
        if not same
    ]
    if differs:
        raise JournalError(
            f"{path} holds grades of {' and of '.join(differs)}: mixed, they would not "
            f"be fair; grade all anew into another folder with -o."
        )


def _graded(lines: Any) -> dict[str, tuple[str, Graded]]:
    """By key: the last line counts."""
    found: dict[str, tuple[str, Graded]] = {}
    for _, line in lines:
        if "graded" in line:
            found[line["key"]] = line["hash"], _read(line["graded"])
    return found


def _read(said: dict[str, Any]) -> Graded:
    grades = tuple(
        Grade(
            **{
                **one,
                "mistakes": tuple(one["mistakes"]),
                "notes": tuple(one["notes"]),
            }
        )
        for one in said["grades"]
    )
    return Graded(**{**said, "grades": grades})
