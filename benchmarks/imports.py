"""Processor time of importing attnlib, beside importing NumPy.

Fresh Pythons take turns, so that a busy moment hits every row. The medians are printed
and nothing is gated: what may be loaded at all is a test (tests/test_architecture.py).
"""

import statistics
import subprocess
import sys

ROUNDS = 9
ROWS = {
    "numpy": "numpy",
    "attnlib": "attnlib",
    "numpy, attnlib": "numpy, attnlib",
    "the NumPy levels": (
        "attnlib.attention, attnlib.masks, attnlib.heads, attnlib.diagnostics"
    ),
    "the exercises": "attnlib.exercises",
    "the explorers": "attnlib.explorers",
    "a whole setup cell": (
        "attnlib.attention, attnlib.masks, attnlib.heads, attnlib.exercises, "
        "attnlib.explorers, attnlib.figures, attnlib.widgets"
    ),
    "plotly, for a curve": "plotly.graph_objects",
}
CODE = "import time; t = time.process_time(); import {}; print(time.process_time() - t)"


def seconds(modules: str) -> float:
    """Processor time of one import in a fresh Python."""
    command = [sys.executable, "-c", CODE.format(modules)]
    return float(subprocess.check_output(command, text=True))


def main() -> None:
    times: dict[str, list[float]] = {row: [] for row in ROWS}
    for _ in range(ROUNDS):
        for row, modules in ROWS.items():
            times[row].append(seconds(modules))
    numpy = statistics.median(times["numpy"])
    print(f"{'import':<22}{'seconds':>8}{'beyond numpy':>14}{'times numpy':>13}")
    for row, values in times.items():
        median = statistics.median(values)
        print(f"{row:<22}{median:8.3f}{median - numpy:+14.3f}{median / numpy:13.2f}")
    print(f"Medians of {ROUNDS} fresh processes. The aim: attnlib under +0.300.")


if __name__ == "__main__":
    main()
