"""`attnlib solutions`: lessons with every exercise solved."""

from __future__ import annotations

import argparse
from pathlib import Path

from attnlib.commands import lessons
from attnlib.grading import solutions


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Tell argparse what the command takes."""
    parser = commands.add_parser(
        "solutions",
        help="write lessons with every exercise solved",
        description="Write lessons with every exercise solved and its check passed. "
        "Checks are asked here and now; the first cell of each lesson is run for it.",
    )
    lessons.takes(parser)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Write them. Returns the exit status."""

    def one(content: bytes, path: Path) -> tuple[Path, bytes]:
        return Path(path.name), solutions.solved(content, path.name)

    return lessons.make(given, one)
