"""Grade a class of attackers, and write down what each sandbox makes of them.

    .venv/bin/python tools/hostile.py            grade it in all sandboxes; rewrite both
    .venv/bin/python tools/hostile.py --page     rewrite the page alone

It is the command of teachers, with small limits. What became of each attack stands in
tests/grading_corpus/verdicts.csv, and as a table in docs/sandbox.md.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import io
import json
import os
import re
import socket
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from hostile_class import CORPUS, FILES, LESSON, WROTE, attacks, hand_in, packed, right

from attnlib.exercises import names
from attnlib.grading.sandbox import choose
from attnlib.grading.sandbox.bubblewrap import Bubblewrap
from attnlib.grading.sandbox.landlock import Landlock
from attnlib.grading.sandbox.plain import Plain

VERDICTS = CORPUS / "verdicts.csv"
PAGE = Path(__file__).resolve().parent.parent / "docs" / "sandbox.md"
KINDS = {kind.name: kind for kind in (Bubblewrap, Landlock, Plain)}
OR = " or "
# Where the table stands in the page.
BLOCK = re.compile(r"(?<=<!-- table: verdicts -->\n).*(?=<!-- /table -->)", re.S)
# What no output may hold, beside what honest students wrote.
SEED = "a seed that nobody else may know 5b1f"
AROUND = "a password in the environment 9d4a"
SHORT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[2]); "
    "import hostile; hostile.shorten(); "
    "from attnlib.grading.worker import main; main(int(sys.argv[1]))"
)


def shorten() -> None:
    """In a worker: small limits, so that a class is graded in seconds."""
    from attnlib.exercises import judging
    from attnlib.grading import remote, session
    from attnlib.grading.sandbox.limits import Limits

    judge = functools.partial(judging.judge_function, limit=0.4)
    judging.judge_function = judge  # type: ignore[assignment]
    remote.SPARE, remote.DEFINING = 0.6, 1.2
    small = Limits(memory=256 << 20, processes=32, printed=256 << 20)
    session.Limits = lambda: small  # type: ignore[misc,assignment]


@dataclass
class Run:
    """One class, graded in one sandbox."""

    graded: dict[str, dict[str, Any]]  # by student, as the journal has it
    verdicts: dict[str, str]  # by attack
    said: str  # what was printed
    called: bool  # whether the server was reached
    out: Path
    class_: Path
    given: dict[str, bytes]  # the files, as they were handed in

    def outputs(self) -> dict[Path, bytes]:
        """All that was written."""
        files = (path for path in self.out.rglob("*") if path.is_file())
        return {path: path.read_bytes() for path in files}

    def leaks(self) -> dict[Path, set[str]]:
        """Which secrets stand in which file."""
        found = {path: secrets_in(data) for path, data in self.outputs().items()}
        return {path: told for path, told in found.items() if told}


def secrets_in(data: bytes) -> set[str]:
    """The secrets of the grader and of others, and lines of right answers."""
    lines = {line.strip() for name in names(LESSON) for line in right(name).split("\n")}
    lines = {line for line in lines if len(line) > 40 and "return" in line}
    return {s for s in (SEED, WROTE, AROUND, *lines) if s.encode() in data}


def run(folder: Path, sandbox: str) -> Run:
    """Grade the class with the command of teachers, in this sandbox.

    Args:
        folder: an empty one.
        sandbox: the name of its kind.
    """
    from attnlib.__main__ import main

    class_, out, seed = folder / "class", folder / "out", folder / "seed"
    class_.mkdir()
    seed.write_text(SEED, encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        places = {"@CLASS@": class_, "@SEED@": seed, "@PORT@": port}
        places |= {"@WRITE CLASS@": class_, "@WRITE OUT@": out}
        if "files" not in KINDS[sandbox](folder).promises:
            # It would do so, where whoever grades is not root.
            places |= dict.fromkeys(("@WRITE CLASS@", "@WRITE OUT@"), "/nowhere")
        hand_in(class_, {word: str(place) for word, place in places.items()})
        given = {path.name: path.read_bytes() for path in class_.iterdir()}
        command = ["grade", str(class_), "--seed-file", str(seed), "-o", str(out)]
        command += ["--lesson", str(LESSON), "--allow-unsandboxed", "-j", "2"]
        printed = io.StringIO()
        heard = contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed)
        with _only(sandbox), heard[0], heard[1]:
            main(command)
        server.settimeout(0)
        try:
            server.accept()[0].close()
            called = True
        except OSError:
            called = False
    lines = (out / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    told = [json.loads(line)["graded"] for line in lines[1:]]
    graded = {one["student"]: one for one in told}
    done = Run(graded, {}, printed.getvalue(), called, out, class_, given)
    done.verdicts = _verdicts(done)
    return done


@contextlib.contextmanager
def _only(sandbox: str) -> Iterator[None]:
    """The command as it is, in one kind of sandbox, with small limits."""
    from attnlib.grading import run as runs

    short = functools.partial(runs.Pool, start=SHORT)
    tools = str(Path(__file__).resolve().parent)
    with (
        mock.patch.object(choose, "candidates", lambda room, _: [KINDS[sandbox](room)]),
        mock.patch.object(runs, "Pool", short),
        mock.patch.object(sys, "path", [*sys.path, tools]),
        mock.patch.dict(os.environ, {"ATTNLIB_SECRET": AROUND}),
    ):
        yield


def _verdicts(done: Run) -> dict[str, str]:
    """What became of each attack, in a few words."""
    found = {}
    for number, one in enumerate(packed()):
        student = f"m{number:02d}"
        grades = {g["exercise"]: g for g in done.graded[student]["grades"]}
        for exercise, attack in one.items():
            grade = grades[exercise]
            verdict = grade["status"]
            notes = " ".join(grade["notes"])
            if "attnlib's own" in notes or "not written in it" in notes:
                verdict += ", noted"
            if secrets_in(json.dumps(grade, ensure_ascii=False).encode()):
                verdict += ", tells the secret"
            found[attack.key] = verdict
    for name in FILES:
        of = [g for g in done.graded.values() if g["where"].startswith(name)]
        found[name] = of[0]["status"] if of else "not there"
    return dict(sorted(found.items()))


Table = dict[str, dict[str, str]]  # by attack, by sandbox


def table() -> Table:
    """What is expected of each attack in each sandbox."""
    with VERDICTS.open(encoding="utf-8", newline="") as file:
        return {row.pop("attack"): row for row in csv.DictReader(file)}


def fits(verdict: str, expected: str) -> bool:
    """Whether a verdict is one of those that may be."""
    return verdict in expected.split(OR)


def written(runs: dict[str, Run]) -> str:
    """The table with what these runs found. Chance may choose between two verdicts:
    those that are known stay."""
    known = table() if VERDICTS.exists() else {}
    rows = [["attack", *KINDS]]
    for attack in next(iter(runs.values())).verdicts:
        row = [attack]
        for kind in KINDS:
            old = known.get(attack, {}).get(kind, "")
            new = runs[kind].verdicts[attack] if kind in runs else ""
            told = filter(None, {*old.split(OR), new})
            row.append(OR.join(sorted(told)))
        rows.append(row)
    held = io.StringIO()
    csv.writer(held, lineterminator="\n").writerows(rows)
    return held.getvalue()


def page(text: str) -> str:
    """The page with the table as it is."""
    says = {one.key: one.says for one in attacks()} | FILES
    lines = [f"| what is handed in | {' | '.join(KINDS)} |"]
    lines.append("| --- " * (1 + len(KINDS)) + "|")
    for attack, row in table().items():
        cells = [says[attack].rstrip("."), *(row[kind] for kind in KINDS)]
        lines.append(f"| {' | '.join(cells)} |")
    made = "\n".join(lines) + "\n"
    return BLOCK.sub(lambda _: made, text)


def main(arguments: list[str]) -> int:
    if arguments != ["--page"]:
        runs = {}
        for kind in KINDS:
            with tempfile.TemporaryDirectory() as folder:
                runs[kind] = run(Path(folder), kind)
            print(f"{kind}: {len(runs[kind].verdicts)} attacks")
        VERDICTS.write_text(written(runs), encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
