"""The benchmark of the grader runs, and what it says of a class and of memory is so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from attnlib.attention import softmax
from attnlib.exercises import judge
from attnlib.grading.sandbox import choose as choosing

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"
sys.path.append(str(BENCHMARKS))

import grading  # noqa: E402
import handed_answers  # noqa: E402
import handed_in  # noqa: E402
import watched  # noqa: E402

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="grading is for Linux alone"
)


def backend():
    try:
        choosing.choose()
    except choosing.NoSandbox:
        return "plain"
    return "best"


def test_the_benchmark_grades_a_small_class_rightly(tmp_path):
    out = tmp_path / "grading.json"
    options = ["--n", "5", "--loops", "1", "--backend", backend(), "--out", out]
    done = subprocess.run(
        [sys.executable, BENCHMARKS / "grading.py", *options],
        capture_output=True,
        text=True,
        check=False,
    )
    told = json.loads(out.read_text())
    assert told["wrong"] == [], done.stdout + done.stderr
    assert (told["submissions"], told["verdicts"], told["right"]) == (5, 25, 25)
    assert sum(told["kinds"].values()) == 5
    assert told["left running"] == 0
    assert "every verdict right: met" in done.stdout
    for name, value in told.items():
        assert name == "wrong" or name in done.stdout
        assert "MB" not in name or value > 0


def test_a_class_is_the_same_for_a_seed_and_has_all_kinds():
    assert handed_in.hand_in(20, 4) == handed_in.hand_in(20, 4)
    made = handed_in.hand_in(100, 20)
    found = handed_in.kinds(made)
    assert sum(n for kind, n in found.items() if kind.startswith("loop: ")) == 20
    assert len([kind for kind in found if kind.startswith("loop: ")]) == 10
    assert found["blank"] == 8
    assert (found["right"], found["mistakes"]) == (32, 32)
    assert {one.name for one in made} == {f"student{n:03d}" for n in range(100)}


KNOWN = [
    (name, known)
    for name in handed_answers.NAMES
    for known in (
        *map(handed_answers.Known, handed_answers.RIGHT[name]),
        *handed_answers.WRONG[name],
    )
]


@pytest.mark.parametrize(("name", "known"), KNOWN)
@pytest.mark.parametrize("seed", [1, 2**31 + 5])
def test_what_is_known_of_an_answer_is_so(name, known, seed):
    """With every seed: it is a throw-away one with which the class is graded."""
    names = {"np": np, "softmax": softmax}
    exec(known.source, names)
    verdict = judge(name, names[name], seed)
    assert verdict.status == known.status
    assert {mistake.key for mistake in verdict.mistakes} == known.mistakes


def rows(handed):
    """A table as the grader writes it if it does well."""
    return [
        {
            "student": one.name,
            "exercise": name,
            "points": "8" if status == "passed" else "0",
            "of": "8",
            "status": status,
            "mistakes": "; ".join(sorted(mistakes)),
        }
        for one in handed
        for name, (status, mistakes) in one.expected.items()
    ]


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"status": "law"}, "law, full marks"),
        ({"points": "7.5"}, "passed, 7.5 points"),
        ({"mistakes": "mask_ignored"}, "passed, mask_ignored, full marks"),
        ({"student": "nobody"}, "no row"),
    ],
)
def test_a_wrong_verdict_is_seen(change, found):
    handed = [one for one in handed_in.hand_in(30, 3) if one.kind == "right"]
    table = rows(handed)
    assert grading.compared(handed, table) == (5 * len(handed), [])
    table[3] |= change
    first = grading.compared(handed, table)[1][0]
    assert (first.exercise, first.expected) == ("create_mask", "passed, full marks")
    assert first.found == found


def test_points_for_an_answer_that_never_ends_are_wrong():
    handed = [one for one in handed_in.hand_in(8, 2) if "loop" in one.kind]
    table = rows(handed)
    assert grading.compared(handed, table)[1] == []
    table[2]["points"] = "1"
    assert grading.compared(handed, table)[1][0].found == "timeout, 1 points"


def test_only_answers_that_compute_long_are_taken_off():
    took = watched.Watched(0, 60.0, 30.0, (0.9, 10.0, 0.2), {"grader": 5_000_000}, 0)
    told = grading.numbers(took, handed_in.hand_in(8, 1), 40, [])
    assert told["processor, seconds a submission beyond"] == 2.5
    assert (told["minutes"], told["memory of the grader, MB"]) == (1.0, 5)


BURNS = """
import subprocess, sys, time
code = "import time\\nwhile time.process_time() < 0.5: pass"
child = subprocess.Popen([sys.executable, "-c", code])
child.wait()
held = bytearray(60_000_000)
time.sleep(0.5)
sys.exit(3)
"""


def test_a_program_is_watched_with_its_children(tmp_path):
    command = [sys.executable, "-c", BURNS]
    took = watched.watch(command, dict(os.environ), tmp_path / "out")
    assert took.code == 3
    assert took.processor >= 0.5
    assert took.memory["grader"] > 60_000_000 > took.memory["other"]
    assert (took.left, took.answers) == (0, ())


LEAVES = """
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(4)"])
time.sleep(1)
"""


def test_what_a_program_leaves_behind_is_counted(tmp_path):
    command = [sys.executable, "-c", LEAVES]
    took = watched.watch(command, dict(os.environ), tmp_path / "out")
    assert took.left == 1
