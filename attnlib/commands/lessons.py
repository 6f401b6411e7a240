"""What the commands that make notebooks of lessons have in common."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from attnlib import exercises
from attnlib.exercises.private import PrivateError
from attnlib.grading import lessons

Make = Callable[[bytes, Path], tuple[Path, bytes]]


def takes(parser: argparse.ArgumentParser) -> None:
    """Tell argparse which lessons, whereto, and with whose exercises."""
    parser.add_argument(
        "lessons",
        nargs="+",
        metavar="LESSON",
        help="03, or the path of a notebook; numbers are looked for in notebooks/",
    )
    parser.add_argument(
        "-o",
        "--out",
        required=True,
        type=Path,
        metavar="FOLDER",
        help="where to write; made if it is not there",
    )
    parser.add_argument(
        "--exercises",
        type=Path,
        metavar="FOLDER",
        help="with exercises of your own",
    )
    parser.add_argument(
        "--force", action="store_true", help="write over files that differ"
    )


def make(given: argparse.Namespace, one: Make) -> int:
    """Make something of each lesson and write all, or nothing and say why.

    Args:
        given: what `takes` asked for.
        one: a notebook's content and path -> where it goes in the folder, and what.
    """
    try:
        if given.exercises is not None:
            exercises.use(given.exercises)
        paths = lessons.find(given.lessons, Path())
        made: dict[Path, bytes] = {}
        for path in paths:
            place, content = _made(path, one)
            if given.out / place in made:
                raise lessons.LessonError(
                    f"Two of these notebooks are named {path.name}: write them into "
                    "two folders."
                )
            made[given.out / place] = content
        lessons.write(made, paths, given.force)
    except (lessons.LessonError, PrivateError) as error:
        print(error, file=sys.stderr)
        return 2
    except OSError as error:
        why = (error.strerror or "unknown").lower()
        print(f"{error.filename or given.out}: {why}.", file=sys.stderr)
        return 2
    for path in made:
        print(path)
    return 0


def _made(path: Path, one: Make) -> tuple[Path, bytes]:
    try:
        return one(path.read_bytes(), path)
    except lessons.LessonError as error:
        said = str(error).strip()
        if path.name not in said:
            said = f"{path.name}: {said[0].lower()}{said[1:]}"
        raise lessons.LessonError(said) from None
    except OSError:
        raise
    except Exception as error:  # of the notebook's own setup cell
        kind = type(error).__name__
        raise lessons.LessonError(f"{path.name}: {kind}: {error}") from None
