"""How well a class is graded: minutes, memory, processor, and whether it is fair.

Made is a class that hands lesson 03 in (it needs no torch): right answers in several
styles, known mistakes, blank notebooks, broken files, and, a fifth of all, answers that
never end. `attnlib grade -j 2` grades it with a seed that is thrown away. Of each
answer it is known what is to be said: the status, the mistakes, and full marks or none.

The processor's seconds are those of all processes: the grader, its workers, the
sandboxes, and the answers. An answer's own run time is what the process in which it
runs computed, where that was more than a second: so only of those that never end is any
taken off; whatever else is computed counts as the grader's.

A lesson with torch takes longer, as each sandbox imports it: 14 solved files of lesson
05 took 2.7 seconds of the processor each, all counted, on two busy cores.

The aims: every verdict right, less than 3 seconds of the processor for a submission
beyond its own run time, nothing left running. The exit status is 0 only if they hold. A
full run writes benchmarks/results/grading.json. Linux only.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import secrets
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
if str(HERE) not in sys.path:
    sys.path.insert(0, str(HERE))

from handed_answers import NAMES  # noqa: E402
from handed_in import Submission, hand_in, kinds  # noqa: E402
from watched import Watched, watch  # noqa: E402

RESULTS = HERE / "results" / "grading.json"
BACKENDS = ("best", "bubblewrap", "landlock", "plain")
MOST = 3.0  # seconds of the processor for a submission, beyond its own run time
LONG = 1.0  # an answer that computed less than that is not taken off
MB = 1_000_000
NO_POINTS = ("not started", "missing", "syntax", "timeout")
# The command as it is, but that other sandboxes are not looked at.
ONLY = """
import sys
from attnlib.__main__ import main
from attnlib.grading.sandbox import choose
from attnlib.grading.sandbox import bubblewrap, landlock, plain
kinds = {
    "bubblewrap": bubblewrap.Bubblewrap,
    "landlock": landlock.Landlock,
    "plain": plain.Plain,
}
kind = kinds[sys.argv.pop(1)]
choose.candidates = lambda room, allowed: [kind(room)]
sys.exit(main(sys.argv[1:]))
"""


@dataclass(frozen=True)
class Wrong:
    """A verdict that is not what it has to be."""

    student: str
    kind: str
    exercise: str
    expected: str
    found: str


def compared(
    handed: Sequence[Submission], rows: Sequence[dict[str, str]]
) -> tuple[int, list[Wrong]]:
    """How many verdicts were looked at, and those that are wrong."""
    found = {(row["student"], row["exercise"]): row for row in rows}
    wrong = []
    for one in handed:
        for name in NAMES:
            status, mistakes = one.expected[name]
            row = found.pop((one.name, name), None)
            expected = said(status, sorted(mistakes), _full(status))
            if row is None:
                seen = "no row"
            else:
                keys = sorted(filter(None, row["mistakes"].split("; ")))
                seen = said(row["status"], keys, _share(row, status))
            if seen != expected:
                wrong.append(Wrong(one.name, one.kind, name, expected, seen))
    for (student, name), row in found.items():
        wrong.append(Wrong(student, "nobody's", name, "no row", row["status"]))
    return len(handed) * len(NAMES), wrong


def said(status: str, mistakes: Sequence[str], share: str) -> str:
    """A verdict in a line."""
    return ", ".join(filter(None, (status, " and ".join(mistakes), share)))


def _full(status: str) -> str:
    if status == "passed":
        return "full marks"
    return "no points" if status in NO_POINTS else ""


def _share(row: dict[str, str], status: str) -> str:
    """Full marks or no points, where it is known which it has to be."""
    if not _full(status):
        return "full marks" if row["points"] == row["of"] else ""
    if row["points"] == row["of"]:
        return "full marks"
    return "no points" if row["points"] == "0" else f"{row['points']} points"


def graded(
    handed: Sequence[Submission], backend: str, jobs: int, room: Path
) -> tuple[Watched, list[dict[str, str]], str]:
    """Grade a class: what it took, the table of grades, what was printed."""
    where, out, seed = room / "class", room / "out", room / "seed"
    where.mkdir()
    for one in handed:
        (where / f"{one.name}.ipynb").write_bytes(one.data)
    seed.write_text(secrets.token_hex(32))
    program = ["-m", "attnlib"] if backend == "best" else ["-c", ONLY, backend]
    options = ["--seed-file", str(seed), "-o", str(out), "-j", str(jobs)]
    if backend == "plain":
        options.append("--allow-unsandboxed")
    command = [sys.executable, *program, "grade", str(where), *options]
    printed = room / "printed.txt"
    took = watch([*command, "--lesson", "03"], dict(os.environ), printed)
    text = printed.read_text(encoding="utf-8", errors="replace")
    table = out / "grades.csv"
    if not table.exists():
        return took, [], text
    with table.open(encoding="utf-8-sig", newline="") as file:
        return took, list(csv.DictReader(file)), text


def numbers(
    took: Watched, handed: Sequence[Submission], verdicts: int, wrong: Sequence[Wrong]
) -> dict[str, Any]:
    """What is written to the file."""
    own = sum(seconds for seconds in took.answers if seconds >= LONG)
    beyond = (took.processor - own) / len(handed)
    return {
        "submissions": len(handed),
        "kinds": kinds(handed),
        "minutes": round(took.seconds / 60, 2),
        "memory of the grader, MB": round(took.memory.get("grader", 0) / MB),
        "memory of the largest worker, MB": round(took.memory.get("worker", 0) / MB),
        "memory of the largest answer, MB": round(took.memory.get("answer", 0) / MB),
        "processor, seconds in all": round(took.processor, 1),
        "of these answers that never end": round(own, 1),
        "processor, seconds a submission beyond": round(beyond, 2),
        "verdicts": verdicts,
        "right": verdicts - len(wrong),
        "wrong": [vars(one) for one in wrong],
        "left running": took.left,
    }


def shown(told: dict[str, Any]) -> str:
    """The same as a table."""
    lines = []
    for name, value in told.items():
        if isinstance(value, dict):
            value = ", ".join(f"{count} {kind}" for kind, count in value.items())
        if name != "wrong":
            lines.append(f"  {name:<40} {value}")
    for one in told["wrong"]:
        lines.append(
            f"  WRONG  {one['student']} ({one['kind']}), {one['exercise']}: "
            f"{one['found']}; it is: {one['expected']}"
        )
    return "\n".join(lines)


def options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--n", type=int, default=100, help="submissions (100)")
    parser.add_argument("--loops", type=int, help="of them never end; a fifth")
    parser.add_argument("-j", type=int, default=2, dest="jobs", metavar="N")
    parser.add_argument("--backend", choices=BACKENDS, default="best")
    parser.add_argument("--class-seed", type=int, default=0, help="who made what (0)")
    parser.add_argument("--out", type=Path, help="write the numbers there as JSON")
    given = parser.parse_args(arguments)
    given.loops = given.n // 5 if given.loops is None else given.loops
    if given.n < 1 or given.jobs < 1 or not 0 <= given.loops <= given.n:
        parser.error("--n and -j want at least 1, and --loops at most --n")
    return given


def main(arguments: Sequence[str] | None = None) -> int:
    given = options(arguments)
    if sys.platform != "linux":
        print("attnlib grade is for Linux, and so is this.", file=sys.stderr)
        return 2
    handed = hand_in(given.n, given.loops, given.class_seed)
    print(
        f"{given.n} submissions, {given.loops} never end, -j {given.jobs}", flush=True
    )
    with tempfile.TemporaryDirectory(prefix="attnlib-bench-") as room:
        took, rows, text = graded(handed, given.backend, given.jobs, Path(room))
    if not rows:
        print(text, file=sys.stderr)
        return 2
    sandbox = text.partition("Sandbox: ")[2].partition(".\n")[0]
    verdicts, wrong = compared(handed, rows)
    load = [round(each, 1) for each in os.getloadavg()]
    told = {
        "sandbox": sandbox,
        "processes at once": given.jobs,
        "cores": len(os.sched_getaffinity(0)),
        "load of the machine at the end": load[1],
        **numbers(took, handed, verdicts, wrong),
    }
    print(shown(told))
    fine = not wrong and not took.left
    print(f"  every verdict right: {'MISSED' if wrong else 'met'}")
    beyond = told["processor, seconds a submission beyond"]
    met = beyond < MOST
    print(f"  less than {MOST:g} seconds a submission: {'met' if met else 'MISSED'}")
    whole = given.n == 100 and given.backend == "best"
    target = given.out or (RESULTS if whole else None)
    if target is not None:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(told, indent=1) + "\n")
        print(f"written: {target}")
    if Counter(row["status"] for row in rows)["ungraded"]:
        print(text, file=sys.stderr)
    return 0 if fine and met else 1


if __name__ == "__main__":
    sys.exit(main())
