"""`attnlib mutation`: what share of wrong answers the exercises refuse."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from attnlib import exercises
from attnlib.commands.parser import seed

ALL_REFUSED, SOME_SURVIVED, UNKNOWN = 0, 1, 2

DESCRIPTION = """\
Change the solution of each exercise in one place after the other, hand every such
mutant to the check, and count what it refuses.

A mutant that gives the same results as the solution on all that the exercise allows is
equivalent; these are listed with a reason in attnlib/data/equivalent_mutants.json. The
score is killed / (mutants - equivalent). Of the killed, the named were told the name of
their mistake, the specific that or what else is wrong with them; the raised ended with
an error, which any check would see. The exit status is 0 if all scores are 100 %,
1 if a mutant survived, and 2 if there is no such exercise,
or the counts could not be written.
"""
HEAD = (
    *("exercise", "mutants", "killed", "named", "specific", "raised"),
    *("equivalent", "survived"),
)
WIDTH = 22  # of the names


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Tell argparse what the command takes."""
    parser = commands.add_parser(
        "mutation",
        help="measure what share of wrong answers the exercises refuse",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--exercise", action="append", metavar="NAME", help="only this; may be repeated"
    )
    parser.add_argument("--list", action="store_true", help="show what survived")
    parser.add_argument(
        "--equivalent", action="store_true", help="show what is equivalent, and why"
    )
    parser.add_argument("--seed", type=seed, default=0, help="draws the cases; 0")
    parser.add_argument(
        "--write", type=Path, metavar="FILE", help="the counts, as JSON"
    )
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Judge all mutants, print a table. Returns the exit status."""
    from attnlib.exercises import mutation

    there = mutation.measured()
    asked = given.exercise or there
    for name in asked:
        if name not in there:
            print(_unknown(name), file=sys.stderr)
            return UNKNOWN
    _row(HEAD, "score")
    scores = {}
    for name in asked:
        scores[name] = mutation.score(name, seed=given.seed)
        _print(name, scores[name])
        if given.list:
            for survivor in scores[name].survivors:
                print(f"    {survivor}")
        if given.equivalent:
            for changed, reason in mutation.equivalent(name).items():
                print(f"    {changed}\n        {reason}")
    whole = sum(scores.values(), mutation.Score())
    if len(asked) > 1:
        _print("all", whole)
    if given.write is not None:
        scores["all"] = whole
        text = json.dumps({n: numbers(s) for n, s in scores.items()}, indent=2)
        try:
            given.write.write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            print(f"{given.write} could not be written: {error}.", file=sys.stderr)
            return UNKNOWN
    return SOME_SURVIVED if whole.survivors else ALL_REFUSED


def numbers(score: object) -> dict[str, object]:
    """A score as JSON: its counts and its share."""
    counts = dict(vars(score))
    survivors = counts.pop("survivors")
    share = round(score.share, 4)  # type: ignore[attr-defined]
    return {**counts, "survived": len(survivors), "score": share}


def _print(name: str, score: object) -> None:
    found = numbers(score)
    counts = [found[key] for key in HEAD[1:]]
    _row((name, *counts), f"{100 * float(str(found['score'])):.1f} %")


def _row(cells: tuple[object, ...], last: str) -> None:
    first, *rest = map(str, cells)
    wide = zip(rest, HEAD[1:], strict=True)
    middle = "  ".join(cell.rjust(len(head)) for cell, head in wide)
    print(f"{first:<{WIDTH}}{middle}  {last:>8}", flush=True)


def _unknown(name: str) -> str:
    if name in exercises.names():
        return f"{name} is graded by mutants itself: it has no mutation score."
    return f"There is no exercise {name}."
