"""The benchmarks of windows and of the cache run; what they measure is not asked."""

import importlib
import json
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
                "forward, times faster than masked +[0-9.]+",
                "forward and backward, times faster +[0-9.]+",
                "n 256 to 512: forward, times +[0-9.]+",
                "density 0.[0-9]+, n 512: forward / full +[0-9.]+",
                "memory grows as n to the power +-?[0-9.]+",
            ],
        ),
        (
            "cache",
            [
                "32 tokens, times faster than all again by SDPA +[0-9.]+",
                "times the difference to all at once +0.00",
                "2 KV heads, a token after 64: what is more / the least +-?[0-9.]",
                "2 KV heads, one query, 64 keys: ours / SDPA +[0-9.]+",
                "a token after 64: memory / keys +[0-9.]+",
            ],
        ),
    ],
)
def test_the_benchmark_runs_and_writes_what_it_found(name, labels, tmp_path):
    out = tmp_path / "found.json"
    script = str(BENCHMARKS / f"{name}.py")
    done = subprocess.run(
        [sys.executable, "-W", "error", script, "--quick", "--out", str(out)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for label in labels:
        assert re.search(label, done.stdout), f"{label} is not in\n{done.stdout}"
    tables = json.loads(out.read_text())
    rows = [row for table in tables.values() for row in table.values()]
    assert all(row["aim"] is None and row["met"] for row in rows)


def test_a_missed_aim_is_seen_beside_what_was_reached(capsys, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    tables, row = importlib.import_module("tables"), importlib.import_module("ratios")
    found = tables.Tables(aims=True)
    found.show("two", [row.Row("slow", 0.5, 12, more=True)], counts=False)
    assert "slow     0.50  aim >= 12: MISSED" in capsys.readouterr().out
    assert found.write(None) == 0
    found.show("one", [row.Row("slow", 3.0, 0.3)])
    assert found.write(None) == 1
