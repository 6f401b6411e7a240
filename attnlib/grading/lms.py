"""Files that a school's system reads: Canvas, Moodle, Gradescope.

All have the same maximum: what was asked of the class. A student without grades is in
none of them, for an empty row might be read as a zero. Nor is one of whom a file could
not be read, or an answer not be graded, until that is mended: these are no zeros. Look
at the preview that each system shows before it takes
anything in.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from attnlib.grading.class_of import Class, Whole
from attnlib.grading.grades import Grade, shown
from attnlib.grading.pages import named
from attnlib.grading.plan import Person
from attnlib.grading.written import harmless, table

CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
MOODLE = (
    *("Identifier", "Full name", "ID number", "Username", "Grade"),
    *("Maximum Grade", "Last modified (grade)", "Feedback comments"),
)


def canvas(all_: Class) -> bytes:
    """`canvas.csv`: for Grades, Import.

    A column for each total. Canvas knows a student by `ID` (its own number, which it
    puts into the names of downloaded files) or by `SIS User ID` or `SIS Login ID`; here
    these are the id and the student of the list. The second row says what can be
    reached. Canvas offers to make a new assignment of this title, or to fill an old
    one.

    Source: Canvas Instructor Guide, "How do I import grades in the Gradebook?".
    """
    there = [one for one in all_.students() if one.settled]
    most = sum(all_.worth.values())
    empty = [""] * (len(CANVAS) - 1)
    rows: list[Sequence[str]] = [
        [*CANVAS, harmless(all_.title)],
        ["    Points Possible", *empty, shown(most)],
    ]
    for one in there:
        who = all_.person(one.student)
        own = who.system_id if who.system_id.isascii() else ""
        number = "" if who.number == own else who.number
        cells = [who.name or one.student, own, number, _login(who), ""]
        rows.append([*map(harmless, cells), shown(one.points)])
    return table(rows).encode()


def moodle(all_: Class) -> bytes:
    """`moodle.csv`: for an assignment's "Upload grading worksheet", or Grades, Import.

    The worksheet needs `Identifier` ("Participant 12345", the number that Moodle puts
    into the names of downloaded folders), `Grade`, and `Last modified (grade)`, which
    is empty: allow "update records that have been modified". The import into the
    gradebook asks which column is what: map `ID number`, or `Username`, and `Grade`.

    Source: Moodle, mod/assign/feedback/offline/importgradeslib.php (English names);
    docs.moodle.org, "Grade import".
    """
    rows: list[Sequence[str]] = [MOODLE]
    for one in all_.students():
        if not one.settled:
            continue
        who = all_.person(one.student)
        identifier = f"Participant {who.system_id}" if who.system_id.isdecimal() else ""
        cells = [identifier, who.name or one.student, who.number, _login(who)]
        grade = [shown(one.points), shown(one.of), "", harmless(said(one))]
        rows.append([*map(harmless, cells), *grade])
    return table(rows).encode()


def _login(who: Person) -> str:
    """What is on the list beside a name; without a list nobody knows a login."""
    return who.student if who.number or who.name != who.student else ""


def said(one: Whole) -> str:
    """A student's grades in one line: what fits into a system's own feedback."""
    return "; ".join(_said(grade) for grade in one.counted)


def _said(grade: Grade) -> str:
    points = f"{grade.exercise}: {shown(grade.points)} of {shown(grade.of)}"
    names = ", ".join(map(named, grade.mistakes))
    return f"{points} ({names})" if names else points


def gradescope(one: Whole) -> bytes:
    """`gradescope/<student>.json`: what an autograder leaves in results/results.json.

    Source: gradescope-autograders.readthedocs.io, "Autograder Specifications", output
    format: `score`, and `tests` with name, score, max_score, status, output.
    """
    told = {
        "score": _number(one.points),
        "output": f"{shown(one.points)} of {shown(one.of)} points.",
        "output_format": "text",
        "visibility": "visible",
        "tests": list(_tests(one)),
    }
    return (json.dumps(told, ensure_ascii=False, indent=1) + "\n").encode(
        "utf-8", "replace"
    )


def _tests(one: Whole) -> Iterator[dict[str, object]]:
    for grade in one.counted:
        hint = f"\nA hint. {grade.further}" if grade.further else ""
        yield {
            "name": grade.exercise,
            "score": _number(grade.points),
            "max_score": _number(grade.of),
            "status": "passed" if grade.status == "passed" else "failed",
            "output": grade.text + hint,
            "output_format": "text",
            "visibility": "visible",
        }


def _number(hundredths: int) -> float | int:
    """As a number of JSON: 2.5, and 12 without a point."""
    return hundredths / 100 if hundredths % 100 else hundredths // 100
