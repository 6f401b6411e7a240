"""The secret of a class: any bytes, of which the hidden inputs are made."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

FEWEST = 16  # bytes
MAKE = "head -c 32 /dev/urandom > secret.txt"


class SecretError(ValueError):
    """This file is no secret to grade with; the message says why."""


def read(path: Path, outside: Sequence[Path]) -> str:
    """Return a text made of the file: the same bytes always give the same.

    White space at both ends does not count: editors add it.

    Args:
        path: the file.
        outside: folders that others see; the file may not lie in them.

    Raises:
        SecretError: it lies there, is too short, or cannot be read.
    """
    for folder in outside:
        if lies_in(path, folder):
            raise SecretError(
                f"The seed file {path} lies in {folder}, where students or reports "
                f"are: move it elsewhere."
            )
    try:
        data = path.read_bytes().strip()
    except OSError as error:
        why = (error.strerror or "unknown").lower()
        raise SecretError(
            f"The seed file {path} cannot be read ({why}). Make one with: {MAKE}"
        ) from None
    if not data:
        raise SecretError(f"The seed file {path} is empty. Make one with: {MAKE}")
    if len(data) < FEWEST:
        raise SecretError(
            f"The seed file {path} has {len(data)} bytes, and {FEWEST} is the least "
            f"that nobody guesses. Make one with: {MAKE}"
        )
    return hashlib.sha256(b"attnlib grade\n" + data).hexdigest()


def lies_in(path: Path, folder: Path) -> bool:
    """Whether a file lies in a folder, also by way of a link."""
    places = (path.absolute(), path.resolve())
    folders = (folder.absolute(), folder.resolve())
    return any(place.is_relative_to(one) for place in places for one in folders)
