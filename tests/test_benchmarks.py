"""The runner of the timed comparisons, and that the benchmark of flash attention runs.

No test looks at a time or at a size in memory that a machine may change.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"
sys.path.append(str(BENCHMARKS))

import memory  # noqa: E402
import ratios  # noqa: E402

# Ratios: a clock that says what the candidates cost.


class Clock:
    """Time that passes only where a candidate says so, times a speed of the machine."""

    def __init__(self):
        self.now, self.speed, self.calls = 0.0, 1.0, []

    def candidate(self, name, cost):
        def run():
            self.calls.append(name)
            self.now += cost * self.speed

        return run

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(time, "process_time", made)
    monkeypatch.setattr(time, "perf_counter", made)
    return made


def test_ratios_are_medians_of_rounds_beside_a_null(clock):
    runs = {"ours": clock.candidate("ours", 3), "sdpa": clock.candidate("sdpa", 2)}
    found = ratios.compare(runs, "sdpa", rounds=5)
    assert found["ours"] == ratios.Ratio(1.5, 1.5, 1.5, 3)
    assert found["sdpa"].ratio == found["null"].ratio == 1
    # Two calls each to see how long one takes, and then by turns.
    rounds = clock.calls[6:15]
    assert rounds == [
        *["ours", "sdpa", "sdpa"],
        *["sdpa", "sdpa", "ours"],
        *["sdpa", "ours", "sdpa"],
    ]


def test_a_machine_that_slows_down_changes_no_ratio(clock):
    runs = {"ours": clock.candidate("ours", 3), "sdpa": clock.candidate("sdpa", 2)}
    slow = clock.candidate("null", 0)

    def slower():
        clock.speed *= 1.01  # by one percent at every call
        runs["sdpa"]()
        slow()

    found = ratios.compare({"ours": runs["ours"], "sdpa": slower}, "sdpa", rounds=9)
    assert found["ours"].ratio == pytest.approx(1.5, abs=0.03)
    assert found["ours"].low < found["ours"].ratio < found["ours"].high


def test_short_calls_are_repeated_in_one_sample(clock):
    runs = {"sdpa": clock.candidate("sdpa", 0.001)}
    found = ratios.compare(runs, "sdpa", rounds=1, least=0.005)
    assert clock.calls == ["sdpa"] * (2 + 2 + 5 + 5)
    assert found["sdpa"].seconds == pytest.approx(0.001)


def test_threads_are_given_back():
    before = torch.get_num_threads()
    with ratios.threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before


def test_a_table_says_which_aims_are_met():
    found = {"ours": ratios.Ratio(0.5, 0.4, 0.8, 0.002)}
    found["null"] = ratios.Ratio(1, 0.9, 1.1, 0.004)
    rows = [
        ratios.row("time", found, "ours", 0.4),
        ratios.row("times faster", found, "ours", 2, more=True),
        ratios.Row("no aim", 7.0),
    ]
    assert ratios.table("Title", rows).splitlines() == [
        "Title",
        "  time             0.50  aim <= 0.4: MISSED    [0.40-0.80]  "
        "null 1.00 [0.90-1.10]       2.0 ms",
        "  times faster     2.00  aim >= 2: met         [1.25-2.50]  "
        "null 1.00 [0.90-1.10]       2.0 ms",
        "  no aim           7.00",
    ]
    assert [each["met"] for each in ratios.numbers(rows).values()] == [
        False,
        True,
        True,
    ]


# Memory: a process of its own.


def holds(megabytes):
    """A call that takes so much memory, and gives it back."""
    return lambda: torch.ones(megabytes * memory.MB // 4).sum()


def fails(megabytes):
    raise ValueError(f"no {megabytes} MB here.")


def leaves(code):
    return lambda: os._exit(code)


@pytest.mark.skipif(
    sys.platform != "linux", reason="elsewhere the mark is not set back"
)
def test_the_peak_of_a_call_is_what_it_takes():
    assert memory.peak(holds, 80) == pytest.approx(80, abs=8)


def test_what_goes_wrong_in_the_other_process_is_said_here():
    with pytest.raises(ValueError, match="no 3 MB here"):
        memory.peak(fails, 3)
    with pytest.raises(MemoryError) as error:
        memory.peak(leaves, 9)
    assert str(error.value) == (
        "leaves(9,) ended with exit code 9 before its memory was measured."
    )


def test_the_slope_is_the_power():
    assert memory.slope({2: 12, 8: 192, 4: 47}) == pytest.approx(2)
    assert memory.slope({2: 0, 4: 0}) == 0


# The whole.


def test_the_benchmark_of_flash_attention_runs(tmp_path):
    out = tmp_path / "flash.json"
    done = subprocess.run(
        [sys.executable, BENCHMARKS / "flash.py", "--quick", "--out", out],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "aim" not in done.stdout
    tables = json.loads(out.read_text())
    assert len(tables) >= 7
    for title, rows in tables.items():
        assert f"{title}\n" in done.stdout
        assert rows
        assert {type(row["reached"]) for row in rows.values()} == {float}
