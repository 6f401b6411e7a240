"""How pytest reads notebooks: each cell is a test, run and compared strictly.

There is no switch for it: `pytest notebooks` runs every lesson as it is stored, and
then its exercises solved; `pytest notebooks/01_name.ipynb` does so with one; `pytest
tests` runs no notebook of the course. In parallel: `pytest -n 2` (pyproject.toml keeps
the cells of one notebook together).

nbval is switched off as a plugin (`-p no:nbval`) and used as a library, so that its
two seconds of imports are paid only where a notebook is collected.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--cell-timeout",
        dest="nbval_cell_timeout",
        type=float,
        default=120,
        help="Seconds that a cell of a notebook may take.",
    )


def pytest_configure(config: pytest.Config) -> None:
    # What nbval reads from the command line, fixed: never lax, always this Python.
    config.option.nbval = True
    config.option.nbval_lax = False
    config.option.nbval_current_env = True
    config.option.nbval_kernel_name = None
    config.option.nbval_kernel_startup_timeout = 60
    # No sanitizer: what a lesson prints is the same on every machine.
    config.option.nbval_sanitize_with = None
    config.option.nbdime = False
    # A profile or an editor of the user's must not change what a lesson prints.
    (ROOT / "build" / "ipython").mkdir(parents=True, exist_ok=True)
    os.environ["IPYTHONDIR"] = str(ROOT / "build" / "ipython")


def pytest_collect_file(
    file_path: Path, parent: pytest.Collector
) -> pytest.Collector | None:
    if file_path.suffix != ".ipynb":
        return None
    from strict_nbval import LessonFile

    return LessonFile.from_parent(parent, path=file_path)
