"""What is to be graded: which file of which student, and who handed nothing in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from attnlib.grading import letters, roster, told_inside
from attnlib.grading.folder import Handed
from attnlib.grading.grades import Graded
from attnlib.grading.roster import Student

NOTHING = "Nothing was handed in."


@dataclass(frozen=True)
class Task:
    """One file of one student."""

    student: str
    handed: Handed

    @property
    def key(self) -> str:
        """What it is called in a journal."""
        return f"{self.student}\n{self.handed.where}"


@dataclass(frozen=True)
class Person:
    """Who a student is to a school's system."""

    student: str
    name: str = ""
    number: str = ""  # from the list of the class
    system_id: str = ""  # from the name that a system gave to a file


@dataclass(frozen=True)
class Plan:
    """All tasks by the names of their students, and what a teacher should know."""

    tasks: tuple[Task, ...]
    missing: tuple[Graded, ...]
    people: dict[str, Person]
    notes: tuple[str, ...] = ()


def make(
    handed: Sequence[Handed],
    students: Sequence[Student] | None,
    lesson: int | None,
    notes: Iterable[str] = (),
) -> Plan:
    """Say what is graded.

    Of several files of one student that could be the one of this lesson, it is the one
    whose name says so, else one whose name says nothing, else the only one there is;
    of several, the newest. What stands in a file tells its lesson where its name does
    not: two renamed lessons are two, and a renamed copy is no second one.

    Args:
        handed: what `folder.find` found.
        students: the list of the class, if there is one.
        lesson: the one that is graded; None for all that was handed in.
        notes: what a teacher should know already.
    """
    notes = list(notes)
    absent: tuple[Student, ...] = ()
    if students is None:
        pairs = list(zip(_told_apart(handed), handed, strict=True))
        notes += _may_be_one(pairs)
    else:
        matched = roster.match(students, handed)
        pairs, absent = list(matched.handed), matched.missing
        if matched.strangers:
            names = ", ".join(matched.strangers)
            notes.append(f"Not on the list, but graded: {names}.")
    files: dict[str, list[Handed]] = defaultdict(list)
    for student, one in pairs:
        files[student].append(one)
    rows = {row.student: row for row in students or ()}
    missing = [Graded(one.student, "", "missing", NOTHING) for one in absent]
    tasks: list[Task] = []
    for student, there in files.items():
        kept, problem = _of_lesson(there, lesson)
        if problem:
            missing.append(Graded(student, "", "missing", problem))
        for one in kept:
            tasks.append(Task(student, one))
            if one.others:
                others = ", ".join(one.others)
                notes.append(f"{student}: graded is {one.where}; not {others}.")
        dropped = [
            one.where
            for one in there
            if kept
            and one not in kept
            and (lesson is None or one.lesson in (lesson, None))
        ]
        if dropped:
            graded = ", ".join(one.where for one in kept)
            notes.append(f"{student}: graded is {graded}; not {', '.join(dropped)}.")
    notes += _alike(files)
    tasks.sort(key=lambda task: (letters.key(task.student), task.key))
    missing.sort(key=lambda one: (letters.key(one.student), one.student))
    people = {
        student: _person(student, rows.get(student), files.get(student, ()))
        for student in (*files, *(one.student for one in absent))
    }
    return Plan(tuple(tasks), tuple(missing), people, tuple(notes))


def _alike(students: Iterable[str]) -> Iterator[str]:
    """Names that differ in case alone: two students, or one who wrote it twice."""
    spelt: dict[str, list[str]] = defaultdict(list)
    for student in students:
        spelt[letters.key(student)].append(student)
    for names in spelt.values():
        if len(names) > 1:
            yield (
                f"{' and '.join(sorted(names))} differ in large and small letters "
                f"alone, and are graded as {len(names)} students. If it is one, a list "
                "of the class (--roster) says so."
            )


def _may_be_one(pairs: Sequence[tuple[str, Handed]]) -> Iterator[str]:
    """A name with the number of a system and without: of one who also sent a mail?"""
    spelt: dict[str, dict[str, str]] = defaultdict(dict)
    for student, one in pairs:
        spelt[letters.key(one.student)][student] = one.system_id
    for numbers in spelt.values():
        if len(numbers) > 1 and not all(numbers.values()) and any(numbers.values()):
            yield (
                f"{' and '.join(sorted(numbers))} have one name, and are graded as "
                f"{len(numbers)} students. If it is one, who also sent a mail, a list "
                "of the class (--roster) says so."
            )


def _told_apart(handed: Sequence[Handed]) -> list[str]:
    """Two students of one name have their numbers beside it."""
    numbers: dict[str, set[str]] = defaultdict(set)
    for one in handed:
        numbers[letters.key(one.student)].add(one.system_id)
    return [
        f"{one.student} ({one.system_id})"
        if one.system_id and len(numbers[letters.key(one.student)]) > 1
        else one.student
        for one in handed
    ]


def _by_lesson(there: Sequence[Handed]) -> dict[int | None, Handed]:
    """Of each lesson the file that counts: one that can be read before one that cannot,
    one whose name says the lesson before one that only holds it, then the newest."""

    def weight(one: Handed) -> tuple[bool, bool, float, str]:
        return not one.problem, one.lesson is not None, one.when, one.where

    several = len(there) > 1  # else nothing is gained by looking into it
    return {
        told_inside.lesson_of(one) if several else one.lesson: one
        for one in sorted(there, key=weight)
    }


def _of_lesson(there: Sequence[Handed], lesson: int | None) -> tuple[list[Handed], str]:
    """The files that count, and why there is none."""
    newest = _by_lesson(there)
    if lesson is None:
        kept = list(newest.values())
        return [one for one in kept if not one.problem] or kept[-1:], ""
    for number in (lesson, None):
        if number in newest and not (newest[number].problem and number is None):
            return [newest[number]], ""
    if len(newest) == 1:  # its name may be wrong: the answers are found by theirs
        return list(newest.values()), ""
    if None in newest:
        return [newest[None]], ""
    others = ", ".join(f"{n:02d}" for n in sorted(n for n in newest if n is not None))
    return [], f"There is nothing of lesson {lesson:02d}, only of {others}."


def _person(student: str, row: Student | None, files: Iterable[Handed]) -> Person:
    numbers = sorted({one.system_id for one in files if one.system_id})
    system_id = numbers[-1] if numbers else ""
    if row is None:
        return Person(student, student, "", system_id)
    return Person(student, row.name or student, row.system_id, system_id)
