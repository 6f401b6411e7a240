"""The benchmarks of windows and of the cache run; what they measure is not asked."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        (
            "windows",
            [
                "forward, times faster than masked +[0-9.]+ +aim >= 12:",
                "forward and backward, times faster +[0-9.]+ +aim >= 15:",
                "n 256 to 512: forward, times +[0-9.]+ +aim <= 2.2:",
                "density 0.[0-9]+, n 512: forward / full +[0-9.]+ +aim <= 0.3:",
                "memory grows as n to the power +-?[0-9.]+ +aim <= 1.05:",
            ],
        ),
        (
            "cache",
            [
                "32 tokens, times faster than all again by SDPA +[0-9.]+",
                "times the difference to all at once +0.00 +aim <= 1: met",
                "2 KV heads, a token after 64: what is more / the least +-?[0-9.]",
                "2 KV heads, one query, 64 keys: ours / SDPA +[0-9.]+ +aim <= 0.85:",
                "a token after 64: memory / keys +[0-9.]+ +aim <= 1:",
            ],
        ),
    ],
)
def test_the_benchmark_runs_and_sets_each_aim_beside_what_was_reached(name, labels):
    done = subprocess.run(
        [sys.executable, "-W", "error", f"{BENCHMARKS / name}.py", "--quick"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for label in labels:
        assert re.search(label, done.stdout), f"{label} is not in\n{done.stdout}"
