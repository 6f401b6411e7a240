"""The command line: `attnlib doctor`, or `python -m attnlib doctor`.

Each command stands in `attnlib.commands`; the doctor's is printed here.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
from collections.abc import Sequence

import attnlib
from attnlib import checkpoints, doctor
from attnlib.commands import (
    examine,
    export,
    grade,
    handin,
    mistakes,
    mutation,
    release,
    solutions,
)
from attnlib.commands.parser import Parser

INTERRUPTED, NOBODY_READS = 130, 141  # 128 and the number of the signal
SIGNS = {"ok": "ok      ", "old": "too old ", "missing": "missing "}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status.

    Args:
        arguments: what stands after `attnlib`; the command line's own if left out.

    Returns:
        0 if all is well, 1 if something is left to do, 2 if a command could not do
        its work. Wrong usage exits with 2. 130 if it was interrupted, and 141 if
        nobody reads on: both are what a shell says of such an end.
    """
    try:
        try:
            return _run(arguments)
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()  # what is still to be written fails here, not later
    except BrokenPipeError:  # as in `attnlib mistakes | head`
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):  # it may have no number
                os.dup2(nowhere, stream.fileno())
        return NOBODY_READS
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return INTERRUPTED


def _run(arguments: Sequence[str] | None) -> int:
    """The same; what ends it early is handled by `main`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a pipe on Windows knows no √
            stream.reconfigure(errors="replace")
    parser = Parser(
        prog="attnlib", description="Attention by Hand: the library of the course."
    )
    parser.add_argument("--version", action="version", version=attnlib.__version__)
    commands: argparse._SubParsersAction[argparse.ArgumentParser] = (
        parser.add_subparsers(dest="command", metavar="command", parser_class=Parser)
    )
    look = commands.add_parser(
        "doctor",
        help="see what is installed, what is missing, and what to do about it",
        description="See what is installed, what is missing, and what to do about it. "
        "The exit status is 0 if nothing is left to do, else 1.",
    )
    look.add_argument(
        "--tests", action="store_true", help="also what only the tests need"
    )
    look.add_argument(
        "--versions", action="store_true", help="also all versions, for a bug report"
    )
    look.set_defaults(run=_doctor)
    examine.add(commands)
    mistakes.add(commands)
    mutation.add(commands)
    grade.add(commands)
    solutions.add(commands)
    release.add(commands)
    export.add(commands)
    handin.add(commands)
    given = parser.parse_args(arguments)
    if given.command is None:
        parser.print_help()
        return 0
    return int(given.run(given))


def _doctor(given: argparse.Namespace) -> int:
    findings = doctor.examine(tests=given.tests)
    for name, state, advice in findings:
        print(f"{SIGNS[state]}{name}" + (f": {advice}" if advice else ""))
    _models()
    if doctor.torch_build() == "CUDA":
        print("\ntorch is a CUDA build: it works, and is 3 GB larger than the CPU one.")
    if given.versions:
        print()
        for name, version in doctor.versions().items():
            print(f"{name} {version}")
    well = doctor.healthy(findings)
    todo = sum(finding.state != "ok" for finding in findings)
    things = "thing is" if todo == 1 else "things are"
    print("\nAll is well." if well else f"\n{todo} {things} left to do.")
    return 0 if well else 1


def _models() -> None:
    """Which real models are there: whatever it says, the machine is well."""
    found = doctor.models()
    print("\nreal models, optional:")
    for name, state, purpose in found:
        print(f"{'here    ' if state == 'ok' else 'not here'} {name}: {purpose}")
    if not doctor.healthy(found):
        print(f"To get them, {checkpoints.GET}.")


if __name__ == "__main__":
    sys.exit(main())
