"""`attnlib export nbgrader`: lessons for another grader."""

from __future__ import annotations

import argparse
from pathlib import Path

from attnlib.commands import lessons
from attnlib.commands.parser import Parser
from attnlib.grading import nbgrader

MEASURED = (
    "nbgrader judges inside the student's process. Measured with nbgrader 0.9.6 on 33 "
    "bad submissions: a blank notebook that changes how cells are compiled got all "
    "points; an answer that ends its process lost every point and reads 0; a cell "
    "pasted twice ended the batch, and 9 students had no grade; the cells that grade "
    "can be read by the student. `attnlib grade` was built so that none of these "
    "happens. There is no secret seed here either: the checks ask what they ask in the "
    "lesson."
)


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Tell argparse what the command takes."""
    parser = commands.add_parser(
        "export",
        help="write lessons for another grader: nbgrader",
        description="Write lessons for another grader.",
    )
    kinds = parser.add_subparsers(
        dest="kind", metavar="GRADER", required=True, parser_class=Parser
    )
    kind = kinds.add_parser(
        "nbgrader",
        help="as assignments of nbgrader; first read what was measured: --help",
        description="Write each lesson as an assignment of nbgrader: the instructor's "
        "version, with solutions, as FOLDER/source/03_masks/03_masks.ipynb. FOLDER is "
        "the folder of the nbgrader course; nbgrader generate_assignment makes the "
        "students' version of it.",
        epilog=MEASURED,
    )
    lessons.takes(kind)
    kind.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Write them. Returns the exit status."""

    def one(content: bytes, path: Path) -> tuple[Path, bytes]:
        place = Path("source") / path.stem / path.name
        return place, nbgrader.assignment(content, path.name)

    return lessons.make(given, one)
