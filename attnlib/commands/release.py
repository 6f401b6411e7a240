"""`attnlib release`: lessons as students get them."""

from __future__ import annotations

import argparse
from pathlib import Path

from attnlib.commands import lessons
from attnlib.grading import release


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Tell argparse what the command takes."""
    parser = commands.add_parser(
        "release",
        help="write lessons as students get them: blank, without outputs",
        description="Write lessons as students get them: every exercise is the blank "
        "stub, also where you filled it in; outputs are cleared; cells of yours stay, "
        "but for those with the tag `teacher`. A cell of yours that holds a solution "
        "is named, and nothing is written.",
    )
    lessons.takes(parser)
    parser.add_argument(
        "--keep-outputs",
        action="store_true",
        help="keep what is stored below the cells, but for answers and checks",
    )
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Write them. Returns the exit status."""

    def one(content: bytes, path: Path) -> tuple[Path, bytes]:
        blank = release.released(content, path.name, given.keep_outputs)
        return Path(path.name), blank

    return lessons.make(given, one)
