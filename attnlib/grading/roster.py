"""The list of a class: who should have handed in, and by which name or number.

A CSV file with one row a student: `student` (what the grades say), `name`, `id` (the
number or login that the school's system knows). The first row may name the columns;
without it they stand in this order. Commas, semicolons or tabs.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from attnlib.grading import letters
from attnlib.grading.folder import Handed

LARGEST = 10_000_000  # bytes

_HEADS = {
    "student": "student, username, user, login, sis login id, email, e-mail",
    "name": "name, full name, display name, student name, vollständiger name",
    "id": "id, sis user id, orgdefinedid, matrikelnummer, number, userid, participant",
    "first": "first name, firstname, given name, vorname",
    "last": "last name, lastname, surname, family name, nachname",
}


class RosterError(ValueError):
    """The list cannot be used as it is; the message says which row, and why."""


@dataclass(frozen=True)
class Student:
    """One row of the list."""

    student: str
    name: str = ""
    system_id: str = ""


@dataclass(frozen=True)
class Matched:
    """What was handed in, set against the list.

    `handed` holds a pair for each file: whose it is, and the file. `missing` handed
    nothing in. `strangers` are in no row of the list; they are graded all the same.
    """

    handed: tuple[tuple[str, Handed], ...]
    missing: tuple[Student, ...]
    strangers: tuple[str, ...]


def read(data: bytes) -> tuple[Student, ...]:
    """Return the students of a list.

    Args:
        data: the content of the CSV file, in any usual encoding.

    Raises:
        RosterError: it is empty, has no column of students, or two rows of one student
            say different things.
    """
    rows = _rows(data)
    columns = _columns(rows[0][1]) if rows else {}
    if columns:
        del rows[0]
    else:
        columns = {"student": 0, "name": 1, "id": 2}
    if not rows:
        raise RosterError("The list of students is empty.")
    return _students(rows, columns)


def unknown(data: bytes) -> str:
    """A sentence on columns that are not known, where none holds the ids; or "".

    Args:
        data: a list that `read` takes.
    """
    head = _rows(data)[0][1]
    columns = _columns(head)
    others = [f"`{one}`" for one in head if one and not _meaning(one)]
    if not columns or "id" in columns or not others:
        return ""
    known = "; ".join(_HEADS[meaning] for meaning in ("student", "name", "id"))
    verb = "is" if len(others) == 1 else "are"
    return (
        f"The list of the class has no column of ids, and {', '.join(others)} {verb} "
        f"not known here. Known are: {known}."
    )


def _rows(data: bytes) -> list[tuple[int, list[str]]]:
    """The rows in which something stands, each with its number."""
    if len(data) > LARGEST:
        raise RosterError(f"The list has more than {LARGEST // 1_000_000} MB.")
    text = letters.decode(data)[0].replace("\0", "").lstrip("\ufeff \n\r")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    told = re.match(r"sep=(.)\n", text)  # Excel's own line
    first = text.split("\n", 1)[0]
    mark = told.group(1) if told else max(";\t,", key=first.count)
    lines = csv.reader(io.StringIO(text[told.end() if told else 0 :]), delimiter=mark)
    try:
        rows = [(lines.line_num, [letters.clean(c) for c in row]) for row in lines]
    except csv.Error as error:
        raise RosterError(f"Row {lines.line_num} of the list: {error}.") from None
    return [(line, row) for line, row in rows if any(row)]


def _columns(row: Sequence[str]) -> dict[str, int]:
    """Which column holds what, if this is a row of heads."""
    found: dict[str, int] = {}
    for place, head in enumerate(row):
        if meaning := _meaning(head):
            found.setdefault(meaning, place)
    return found


def _meaning(head: str) -> str:
    """What a column of this head holds; "" if that is not known."""
    plain = re.sub(r"\s+", " ", head.casefold().replace("_", " ").strip(" #*"))
    return next((m for m, names in _HEADS.items() if plain in names.split(", ")), "")


def _students(
    rows: Iterable[tuple[int, list[str]]], columns: dict[str, int]
) -> tuple[Student, ...]:
    found: dict[str, tuple[int, Student]] = {}
    ids: dict[str, int] = {}
    for line, row in rows:
        has = {m: row[at] for m, at in columns.items() if at < len(row)}
        name = (
            has.get("name") or f"{has.get('first', '')} {has.get('last', '')}".strip()
        )
        number = has.get("id", "")
        student = Student(has.get("student") or name or number, name, number)
        if not student.student:
            raise RosterError(f"Row {line} of the list names no student.")
        key = letters.key(student.student)
        before = found.setdefault(key, (line, student))
        if before[1] != student:
            raise RosterError(
                f"Rows {before[0]} and {line} of the list are both {student.student}, "
                f"and say different things."
            )
        if number and ids.setdefault(letters.key(number), before[0]) != before[0]:
            raise RosterError(
                f"Rows {ids[letters.key(number)]} and {line} of the list have the same "
                f"id, {number}."
            )
    return tuple(student for _, student in found.values())


def match(roster: Sequence[Student], handed: Sequence[Handed]) -> Matched:
    """Say whose each file is, who is missing, and who is not on the list.

    First by the name as it stands, then by the name in any order of its parts, with or
    without accents and spaces, then by the number of the school's system.

    Args:
        roster: the list of the class.
        handed: what `find` found.
    """
    by_key: dict[str, set[int]] = {}
    for place, student in enumerate(roster):
        login = student.student.split("@")[0]
        for key in _keys(student.student, student.name, student.system_id, login):
            by_key.setdefault(key, set()).add(place)
    seen: set[int] = set()
    pairs: list[tuple[str, Handed]] = []
    strangers: list[str] = []
    for one in handed:
        row = _place(one, by_key)
        if row is None:
            pairs.append((one.student, one))
            if one.student not in strangers:
                strangers.append(one.student)
        else:
            seen.add(row)
            pairs.append((roster[row].student, one))
    missing = tuple(s for place, s in enumerate(roster) if place not in seen)
    return Matched(tuple(pairs), missing, tuple(strangers))


def _place(handed: Handed, by_key: dict[str, set[int]]) -> int | None:
    """The row of a student: the first way of looking that leads to exactly one."""
    login = handed.student.split("@")[0]
    by_name = _only(_keys(handed.student, login), by_key)
    # Another system may number other people so: a name that fits says more.
    return _only(_keys(handed.system_id), by_key) if by_name is None else by_name


def _only(keys: Iterable[str], by_key: dict[str, set[int]]) -> int | None:
    for key in keys:
        places = by_key.get(key, set())
        if len(places) == 1:
            return next(iter(places))
    return None


def _keys(*names: str) -> list[str]:
    """The ways in which names may be written, the surest first."""
    found: list[str] = []
    for name in filter(None, names):
        found.append(letters.key(name))
    for name in filter(None, names):
        bare = unicodedata.normalize("NFKD", letters.key(name))
        bare = "".join(c for c in bare if not unicodedata.combining(c))
        words = sorted(re.findall(r"\w+", bare.replace("_", " ")))
        if words:
            found.append("sorted " + " ".join(words))
            found += ["joined " + "".join(re.findall(r"[^\W_]+", bare))]
            found += ["joined " + "".join(w) for w in _turned(bare)]
    return list(dict.fromkeys(found))


def _turned(name: str) -> list[list[str]]:
    """Last name first, as Canvas joins them: smithalice."""
    words = re.findall(r"[^\W_]+", name)
    return [[*words[at:], *words[:at]] for at in range(1, min(len(words), 6))]
