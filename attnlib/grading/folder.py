"""Find what a class handed in: files, folders, archives, in any order and depth.

Nothing is unpacked to disk and no link is followed. Of several files of one lesson by
one student the newest counts: by the time that the system tells, else by the time of
the file (in an archive: the one it notes), else by the number of the copy, `(2)` or
`-Copy2`, else the last name in the alphabet. Files of different lessons are all kept.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from attnlib.grading import letters, students, zips
from attnlib.grading.notebook import LARGEST
from attnlib.grading.skim import MEGABYTE, Unreadable

DEEPEST = 25  # folders in folders
TOO_DEEP = f"It lies in more than {DEEPEST} folders."
DEEPEST_ZIP = 3  # zips in zips
MOST_FILES = 200_000
MOST_ZIPS = 50  # in one student's archive
MOST_UNPACKED = 500_000_000  # bytes of the zips in one student's archive
MOST_UNPACKED_OF_CLASS = 4_000_000_000  # and in the archive of a class

_NOTEBOOK = re.compile(r"\.ipynb(?:\.json|\.txt)?(?:[ _]?\(\d+\))?$", re.I)
_SCRIPT = re.compile(r"\.py(?:\.txt)?$", re.I)
_ZIP = re.compile(r"\.zip(?:[ _]?\(\d+\))?$", re.I)
# What someone may hand in instead; other files beside a class's are the teacher's own.
_INSTEAD = re.compile(r"\.(?:rar|7z|t?gz|tar|pdf|html?|docx?|odt|pages|md|webarchive)$")
_SKIPPED = {"__macosx", "__pycache__", "node_modules", "site-packages", "venv"}


@dataclass(frozen=True)
class Handed:
    """One file that a student handed in, or the sentence why there is none to read.

    `where` is its way below the folder; `others` are older files of the same lesson,
    and files that were refused. `path` and `inside` say where the bytes lie.
    """

    student: str
    where: str
    problem: str = ""
    lesson: int | None = None
    system_id: str = ""
    when: float = 0.0
    others: tuple[str, ...] = ()
    path: Path = field(default=Path(), repr=False)
    inside: tuple[int, ...] = field(default=(), repr=False)

    @property
    def data(self) -> bytes:
        """The bytes of the file, read now.

        Raises:
            Unreadable: there is a problem, or the file is gone or too large.
        """
        if self.problem:
            raise Unreadable(self.problem)
        try:
            with self.path.open("rb") as file:
                if self.inside:
                    return zips.content(file, self.inside)
                content = file.read(LARGEST + 1)
        except zips.BadZip as error:
            raise Unreadable(str(error)) from None
        except OSError as error:
            raise Unreadable(f"It cannot be opened: {error.strerror}.") from None
        if len(content) > LARGEST:
            raise Unreadable(f"It has more than {LARGEST // MEGABYTE} MB.")
        return content


@dataclass(frozen=True)
class _File:
    parts: tuple[str, ...]
    path: Path
    inside: tuple[int, ...] = ()
    when: float = 0.0
    problem: str = ""
    empty: bool = False  # a folder or an archive with nothing in it

    @property
    def kind(self) -> str:
        name = self.parts[-1]
        if _NOTEBOOK.search(name):
            return "notebook"
        if _SCRIPT.search(name):
            return "script"
        return "zip" if _ZIP.search(name) else "other"


def find(folder: Path | str) -> list[Handed]:
    """Return what each student handed in, in the order of their names.

    Args:
        folder: holds files, or a folder or archive for each student, or what Moodle,
            Canvas, Blackboard, Brightspace, Sakai or nbgrader give out. It may be the
            archive that they give out, as it is, or the one file of a student.

    Raises:
        NotADirectoryError: there is no such folder or file, or it is of another kind.
    """
    folder = Path(folder)
    alone = _File((_shown(folder.name),), folder)
    if folder.is_dir():
        there = _walk(folder, ())
    elif not folder.is_file():
        raise NotADirectoryError(f"There is no folder, archive or notebook {folder}.")
    elif alone.kind == "zip":
        there = _Unpacking(folder).files((folder.name,), 0.0)
    elif alone.kind != "other":
        there = iter([alone])
    else:
        raise NotADirectoryError(
            f"{folder} is no folder, zip archive or notebook: name the folder in which "
            "it lies."
        )
    files = sorted(filter(_of_a_student, there), key=lambda file: file.parts)
    origins = students.origins([file.parts for file in files])
    groups: dict[tuple[str, str], list[tuple[_File, students.Origin]]] = {}
    for file, origin in zip(files, origins, strict=True):
        groups.setdefault(origin.key, []).append((file, origin))
    order = sorted(groups, key=lambda key: (letters.key(key[0]), key))
    return [handed for key in order for handed in _handed(groups[key])]


def _of_a_student(file: _File) -> bool:
    """Whether it counts: a list beside the folders of students is the teacher's."""
    if len(file.parts) > 1 or file.kind != "other" or file.empty or file.problem:
        return True
    return _INSTEAD.search(file.parts[0].casefold()) is not None


def _skipped(name: str) -> bool:
    return name.startswith((".", "~$")) or name.casefold() in _SKIPPED


def _walk(folder: Path, parts: tuple[str, ...]) -> Iterator[_File]:
    """All files below a folder, also those in archives, in the order of names."""
    waiting = [(folder, parts)]
    count = 0
    while waiting:
        folder, parts = waiting.pop()
        try:
            with os.scandir(folder) as listed:
                entries = sorted(listed, key=lambda entry: entry.name)
        except OSError as error:
            problem = f"The folder cannot be opened: {error.strerror}."
            yield _File(parts or ("?",), folder, problem=problem)
            continue
        kept = [entry for entry in entries if not _skipped(entry.name)]
        if not kept and parts:
            yield _File(parts, folder, empty=True)
        for entry in reversed(kept):
            path, name = Path(entry.path), _shown(entry.name)
            count += 1
            if count > MOST_FILES:
                return
            if entry.is_symlink():
                problem = "It is a link, and is not followed."
                yield _File((*parts, name), path, problem=problem)
            elif entry.is_dir(follow_symlinks=False) and len(parts) < DEEPEST:
                waiting.append((path, (*parts, name)))
            elif entry.is_file(follow_symlinks=False):
                yield from _file(entry, (*parts, name))
            else:
                deep = entry.is_dir(follow_symlinks=False)
                problem = TOO_DEEP if deep else "It is no file, but a pipe or a device."
                yield _File((*parts, name), path, problem=problem)


def _shown(name: str) -> str:
    """A file's name as text: on this disk it may be in another country's letters."""
    raw = os.fsencode(name)
    return letters.clean(letters.decode(raw)[0]) or "?"


def _file(entry: os.DirEntry[str], parts: tuple[str, ...]) -> Iterator[_File]:
    path = Path(entry.path)
    try:
        told = entry.stat(follow_symlinks=False)
    except OSError as error:
        problem = f"It cannot be opened: {error.strerror}."
        yield _File(parts, path, problem=problem)
        return
    file = _File(parts, path, when=told.st_mtime)
    if file.kind == "zip":
        yield from _Unpacking(path).files(parts, told.st_mtime)
    elif told.st_size > LARGEST and file.kind != "other":
        problem = f"It has {told.st_size // MEGABYTE} MB, too many to read."
        yield _File(parts, path, problem=problem)
    else:
        yield file


class _Unpacking:
    """The files in one archive on disk, with limits for all archives in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.left_of_class = MOST_UNPACKED_OF_CLASS

    def files(self, parts: tuple[str, ...], when: float) -> Iterator[_File]:
        try:
            with self.path.open("rb") as file:
                yield from self._inside(zips.Archive(file), parts, (), [0, 0])
        except zips.BadZip as error:
            yield _File(parts, self.path, when=when, problem=str(error))
        except OSError as error:
            problem = f"It cannot be opened: {error.strerror}."
            yield _File(parts, self.path, when=when, problem=problem)

    def _inside(
        self,
        archive: zips.Archive,
        parts: tuple[str, ...],
        inside: tuple[int, ...],
        spent: list[int],
    ) -> Iterator[_File]:
        """`spent`: archives and bytes so far in one entry of the outermost archive."""
        empty = True
        for entry in archive.entries():
            whole = (*parts, *entry.parts)
            way = (*inside, entry.index)
            if any(_skipped(part) for part in entry.parts) or len(whole) > 3 * DEEPEST:
                continue
            empty = False
            file = _File(whole, self.path, way, entry.when, entry.problem)
            if file.kind != "zip" or file.problem:
                yield file
                continue
            if not inside:
                spent = [0, 0]
            spent[0] += 1
            spent[1] += entry.size
            self.left_of_class -= entry.size
            too_many = spent[0] > MOST_ZIPS or spent[1] > MOST_UNPACKED
            if too_many or self.left_of_class < 0 or len(way) >= DEEPEST_ZIP:
                problem = "It is one archive too many inside other archives."
                yield _File(whole, self.path, way, entry.when, problem)
                continue
            try:
                content = archive.content(entry.index, zips.LARGEST_INNER)
                inner = zips.Archive(io.BytesIO(content))
                yield from self._inside(inner, whole, way, spent)
            except zips.BadZip as error:
                yield _File(whole, self.path, way, entry.when, str(error))
        if empty:
            yield _File(parts, self.path, inside, empty=True)


def _handed(files: list[tuple[_File, students.Origin]]) -> list[Handed]:
    """What one student handed in: for each lesson the newest file."""
    name = letters.clean(min(origin.student for _, origin in files)) or "?"
    good = [pair for pair in files if not pair[0].problem and not pair[0].empty]
    readable = [pair for pair in good if pair[0].kind == "notebook"]
    readable = readable or [pair for pair in good if pair[0].kind == "script"]
    bad = [file for file, _ in files if file.problem][:20]
    refused = [f"{_where(file)} ({file.problem})" for file in bad]
    if not readable:
        return [_nothing(name, files)]
    slots: dict[tuple[int, str], list[tuple[_File, students.Origin]]] = {}
    for file, origin in readable:
        own = _copy(origin)[0] if origin.lesson is None else ""
        slot = (99 if origin.lesson is None else origin.lesson, own)
        slots.setdefault(slot, []).append((file, origin))
    found = []
    for slot in sorted(slots):
        *older, (file, origin) = sorted(slots[slot], key=_age)
        others = [*(f"{_where(one)} (older)" for one, _ in older[-20:]), *refused]
        found.append(
            Handed(
                name,
                _where(file),
                lesson=origin.lesson,
                system_id=origin.system_id,
                when=file.when,
                others=tuple(others),
                path=file.path,
                inside=file.inside,
            )
        )
    return found


def _age(pair: tuple[_File, students.Origin]) -> tuple[str, float, int, str]:
    file, origin = pair
    return origin.attempt, file.when, _copy(origin)[1], _where(file)


def _copy(origin: students.Origin) -> tuple[str, int]:
    """What the copies of a file share, and the number of this copy."""
    name = letters.key(students.stem(origin.file))
    return students.without_copy(name, again=bool(origin.system_id))


def _where(file: _File) -> str:
    return "/".join(file.parts)


def _nothing(name: str, files: list[tuple[_File, students.Origin]]) -> Handed:
    """A student without a notebook: why."""
    file, origin = next((pair for pair in files if pair[0].problem), files[0])
    problem = file.problem
    if not problem:
        there = [one.parts[-1] for one, _ in files if not one.empty]
        few = ", ".join(there[:3]) + (" and others" if len(there) > 3 else "")
        problem = f"There is no notebook, only {few}." if there else "It is empty."
    return Handed(name, _where(file), problem, origin.lesson, origin.system_id)
