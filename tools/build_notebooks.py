"""Build the notebooks of the course: python tools/build_notebooks.py [01 03 ...]

Reads notebooks/source/NN_name.md, runs it from the top in a fresh kernel, draws the
pictures of its figures, and writes notebooks/NN_name.ipynb if that changed. A lesson
that fails is named with its cell, and its old notebook is kept.

  python tools/build_notebooks.py            every lesson, two at a time
  python tools/build_notebooks.py 01         lesson 01 only
  python tools/build_notebooks.py --redraw   draw every picture anew
  python tools/build_notebooks.py --check    start no kernel: source = notebook? rules?
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import notebook_source as ns
from lesson_rules import broken_rules
from nbclient import NotebookClient
from nbclient.exceptions import (
    CellExecutionError,
    CellTimeoutError,
    DeadKernelError,
)
from own_kernel import OwnKernel
from pictures import Drawer, add_pictures, known_pictures

from attnlib.grading.written import whole

CELL_TIMEOUT = 120  # seconds; a whole lesson must take less than 60

# Two kernels share two cores: more threads inside each only get in the way.
THREADS = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB_MAXIMUM")
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in THREADS}


def execute(lesson: str, notebook: Any, cwd: Path) -> Any:
    """Run a notebook in a fresh kernel; say which cell failed and how."""
    current: list[Any] = [None]

    def remember(cell: Any, cell_index: int) -> None:
        current[0] = cell

    with tempfile.TemporaryDirectory() as home:
        client = NotebookClient(
            notebook,
            kernel_manager_class=OwnKernel,
            timeout=CELL_TIMEOUT,
            extra_arguments=["--log-level=ERROR"],
            store_widget_state=False,
            record_timing=False,
            resources={"metadata": {"path": str(cwd)}},
            on_cell_start=remember,
        )
        try:
            # A profile of the author's must not change what a learner gets.
            environment = {**os.environ, **ONE_THREAD, "IPYTHONDIR": home}
            asyncio.run(client.async_execute(env=environment))
        except CellExecutionError as error:
            message = f"{error.ename}: {error.evalue}"
        except CellTimeoutError:
            message = f"it ran longer than {CELL_TIMEOUT} seconds."
        except DeadKernelError:
            message = "the kernel died while it ran."
        else:
            message = ""
    if message:
        raise ns.LessonError(f"{ns.where(lesson, current[0])}: {message}")
    for cell in notebook.cells:
        if "raises-exception" in cell.metadata.get("tags", []) and not any(
            output.output_type == "error" for output in cell.outputs
        ):
            raise ns.LessonError(
                f"{ns.where(lesson, cell)} is tagged raises-exception, but raises none."
            )
    return notebook


def run_lesson(source: Path, cwd: Path) -> Any:
    """Read, execute and normalise one lesson; returns the notebook or the error."""
    lesson = source.stem
    try:
        notebook = ns.read_source(source)
        for cell in notebook.cells:
            if missing := ns.lacks_model(cell):
                raise ns.LessonError(f"{ns.where(lesson, cell)}: {missing}")
        return ns.canonical(lesson, execute(lesson, notebook, cwd))
    except ns.LessonError as error:
        return error


def build(
    sources: list[Path],
    out: Path = ns.NOTEBOOKS,
    *,
    jobs: int = 2,
    redraw: bool = False,
    say: Callable[[str], None] = print,
) -> list[ns.LessonError]:
    """Build each source into `out`; return what failed. Old notebooks are kept."""
    failures: list[ns.LessonError] = []
    # Kernels are processes of their own, so threads are enough to run two at once.
    with ThreadPoolExecutor(max(1, jobs)) as pool, Drawer() as drawer:
        started = time.monotonic()
        notebooks = pool.map(lambda source: run_lesson(source, out), sources)
        for source, notebook in zip(sources, notebooks, strict=True):
            stored = out / f"{source.stem}.ipynb"
            old = stored.read_bytes() if stored.exists() else None
            try:
                if isinstance(notebook, ns.LessonError):
                    raise notebook
                known = {} if old is None or redraw else known_pictures(old)
                add_pictures(source.stem, notebook, known, drawer)
            except ns.LessonError as error:
                failures.append(error)
                say(f"FAILED  {error}" + (" The old notebook is kept." if old else ""))
                continue
            new = ns.to_bytes(notebook)
            seconds = time.monotonic() - started
            if new == old:
                say(f"same    {stored.name} ({seconds:.0f} s)")
            else:
                whole(stored, new)  # a build that is stopped leaves the old file
                say(f"built   {stored.name} ({seconds:.0f} s, {len(new) // 1000} kB)")
    return failures


def check(sources: list[Path], out: Path = ns.NOTEBOOKS) -> list[str]:
    """All that can be said about the stored notebooks without a kernel."""
    faults: list[str] = []
    for source in sources:
        stored = out / f"{source.stem}.ipynb"
        faults += ns.differences(source, stored)
        if stored.exists():
            faults += broken_rules(source.stem, stored.read_bytes())
    return faults


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("lessons", nargs="*", help="01, or 01_name; all without any")
    parser.add_argument("--check", action="store_true", help="start no kernel")
    parser.add_argument("--redraw", action="store_true", help="draw all pictures anew")
    parser.add_argument("-j", "--jobs", type=int, default=2, help="kernels at once")
    options = parser.parse_args(arguments)
    try:
        sources = ns.find_sources(options.lessons)
        failures: list[Any] = []
        if not options.check:
            failures = build(sources, jobs=options.jobs, redraw=options.redraw)
    except ns.LessonError as error:
        print(f"FAILED  {error}")
        return 1
    failed = bool(failures)
    for fault in check(sources):
        failed = failed or options.check
        print(f"{'FAILED ' if options.check else 'note   '} {fault}")
    if not failed:
        print(f"{len(sources)} lessons {'agree' if options.check else 'done'}.")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
