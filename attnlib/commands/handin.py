"""`attnlib handin`: put a lesson into the box of this student, in a classroom.

The hub says where the box is. It is a folder that only this student can write into and
only the teacher can read; TEACHING.md says how a school makes it.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from attnlib import exercises
from attnlib.grading import lessons, written
from attnlib.grading.sentences import counted

BOX = "ATTNLIB_BOX"
NO_BOX = (
    f"Here is no box to hand in to (${BOX} is not set): hand the notebook in as your "
    "teacher says, or name the folder with --box."
)
READABLE = 0o644  # the teacher reads it; that no one else does is up to the box


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Tell argparse what the command takes."""
    parser = commands.add_parser(
        "handin",
        help="hand in a lesson, in a classroom that has a box for it",
        description="Hand in a lesson: the notebook, as it was last saved, is copied "
        "into your box. Do it again to replace it. It says which exercises are still "
        "blank.",
    )
    parser.add_argument(
        "lesson", metavar="LESSON", help="03, or the path of a notebook"
    )
    parser.add_argument(
        "--box", type=Path, metavar="FOLDER", help=f"where to (default: ${BOX})"
    )
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Copy it and say what was handed in. Returns the exit status."""
    box = given.box or (Path(os.environ[BOX]) if os.environ.get(BOX) else None)
    if box is None:
        print(NO_BOX, file=sys.stderr)
        return 2
    try:
        path = _find(given.lesson, Path())
        content = path.read_bytes()
        said = _receipt(path, lessons.read(content, path.name))
        place = box / path.name
        written.whole(place, content)
        place.chmod(READABLE)
    except lessons.LessonError as error:
        print(f"Nothing was handed in. {error}", file=sys.stderr)
        return 2
    except OSError as error:
        why = (error.strerror or "unknown").lower()
        said = f"Nothing was handed in. The box {box} does not take it: {why}."
        print(said, file=sys.stderr)
        return 2
    print(said)
    return 0


def _find(lesson: str, here: Path) -> Path:
    """The notebook; a cell of a lesson runs in notebooks, a terminal above it."""
    inside = here.resolve().name == lessons.HOME
    try:
        (path,) = lessons.find([lesson], here.resolve().parent if inside else here)
    except lessons.LessonError:
        if not inside:
            raise
        (path,) = lessons.find([lesson], here)
    return path


def _receipt(path: Path, document: lessons.Document) -> str:
    """What was handed in: since when it is saved, and what is blank in it."""
    ago = max(0, round((time.time() - path.stat().st_mtime) / 60))
    saved = "just now" if ago < 1 else f"{counted(ago, 'minute')} ago"
    said = f"Handed in: {path.name}, saved {saved}"
    try:
        asked = lessons.stubs(document)
    except lessons.LessonError:  # a copied cell: the grader finds answers all the same
        return f"{said}."
    blank = [name for name, (cell, _) in asked.items() if _blank(name, cell)]
    begun = f"{len(asked) - len(blank)} of {len(asked)} exercises begun"
    left = f"; blank: {', '.join(blank)}" if blank else ""
    return f"{said}; {begun}{left}."


def _blank(name: str, cell: lessons.Cell) -> bool:
    return lessons.source(cell).strip() == exercises.get(name).stub_source.strip()
