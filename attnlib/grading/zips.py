"""Look into a zip archive that anyone may have made. Nothing is written to disk."""

from __future__ import annotations

import datetime
import io
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from attnlib.grading import letters
from attnlib.grading.notebook import LARGEST
from attnlib.grading.skim import MEGABYTE

MOST_DIRECTORY = 4_000_000  # bytes of the list of entries; each takes 47 and more
LARGEST_INNER = 250_000_000  # bytes of a zip inside a zip, which is held in memory
CHUNK = 1_000_000

_FAILURES = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    ValueError,  # also UnicodeDecodeError
    RuntimeError,  # also NotImplementedError
    OverflowError,
    MemoryError,
    LookupError,
)


class BadZip(Exception):
    """An archive, or an entry of it, that is not read; the message is a sentence."""


@dataclass(frozen=True)
class Entry:
    """A file in an archive. A `problem` is the sentence why it is not read."""

    index: int
    parts: tuple[str, ...]
    size: int
    when: float
    problem: str = ""


class _Careful(io.BufferedIOBase):
    """What a zip is read through, so that a false length costs no memory."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > MOST_DIRECTORY:
            megabytes = size // MEGABYTE + 1
            raise BadZip(
                f"The archive lists too many files: the list alone has {megabytes} MB."
            )
        return self._file.read(-1 if size is None else size)

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def seekable(self) -> bool:
        return True


class Archive:
    """A zip that was opened: its files by number, and what is in them.

    Raises:
        BadZip: the archive is damaged, or lists too many files.
    """

    def __init__(self, file: IO[bytes]) -> None:
        try:
            self._zip = zipfile.ZipFile(_Careful(file))
        except _FAILURES as error:
            raise BadZip(f"The archive is damaged ({_spoken(error)}).") from None

    def entries(self) -> Iterator[Entry]:
        """The files of the archive, folders left out."""
        for index, info in enumerate(self._zip.infolist()):
            name = _name(info).replace("\\", "/")
            parts, problem = _path(name)
            if parts and not name.endswith("/"):
                problem = problem or _refused(info, LARGEST_INNER)
                yield Entry(index, parts, info.file_size, _when(info), problem)

    def content(self, index: int, most: int = LARGEST) -> bytes:
        """The bytes of one file.

        Raises:
            BadZip: it is too large, locked, or damaged.
        """
        try:
            info = self._zip.infolist()[index]
            if _refused(info, most):
                raise BadZip(_refused(info, most))
            read = []
            with self._zip.open(info) as stream:
                while piece := stream.read(CHUNK):
                    read.append(piece)
            return b"".join(read)
        except _FAILURES as error:
            raise BadZip(f"The archive is damaged ({_spoken(error)}).") from None


def content(file: IO[bytes], inside: tuple[int, ...]) -> bytes:
    """The bytes of a file in an archive, or in an archive in that archive.

    Args:
        file: the outermost archive.
        inside: the number of the file in each.

    Raises:
        BadZip: one of them is not to be read.
    """
    for index in inside[:-1]:
        file = io.BytesIO(Archive(file).content(index, LARGEST_INNER))
    return Archive(file).content(inside[-1])


def _spoken(error: BaseException) -> str:
    said = letters.clean(str(error))[:100].rstrip(".")
    return said or type(error).__name__


def _refused(info: zipfile.ZipInfo, most: int) -> str:
    """The sentence why an entry is not read, or nothing."""
    if stat.S_ISLNK(info.external_attr >> 16):
        return "It is a link, and is not followed."
    if info.flag_bits & 0x1:
        return "It is locked with a password."
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "It is packed in a way that is not read: use an ordinary zip."
    if info.file_size > most:
        return (
            f"It has {info.file_size // MEGABYTE} MB when unpacked, more than the "
            f"{most // MEGABYTE} MB that are read."
        )
    return ""


def _name(info: zipfile.ZipInfo) -> str:
    """The name of an entry. Older programs write it in the letters of their country."""
    if info.flag_bits & 0x800:
        return info.orig_filename
    try:
        raw = info.orig_filename.encode("cp437")
    except UnicodeEncodeError:
        return info.orig_filename
    return letters.decode(raw, last="cp437")[0] if raw.strip(b"\0") else ""


def _path(name: str) -> tuple[tuple[str, ...], str]:
    """The parts of an entry's name, and what is wrong with it."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    problem = ""
    if ".." in parts:
        problem = "Its name leads out of the archive (..)."
    elif name.startswith("/") or re.match(r"[A-Za-z]:", name):
        problem = "Its name is a place on some disk, not in the archive."
    kept = (letters.clean(part)[:200] for part in parts if part != "..")
    return tuple(part for part in kept if part)[-30:], problem


def _when(info: zipfile.ZipInfo) -> float:
    try:
        return datetime.datetime(*info.date_time).timestamp()
    except (ValueError, OverflowError, OSError):
        return 0.0
