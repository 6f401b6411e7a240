"""nbval, made strict: what the root conftest.py collects for each notebook.

nbval alone lets a cell without outputs and count pass unchecked, waits for a dead
kernel until the cell's timeout, and gives up on an output after five seconds. Here
an unexecuted cell stops the collection, a dead kernel fails in seconds, and every
kernel runs under the offline guard. A cell that needs a real model which is not here
must run, too, but counts as skipped, with the reason. Compared are all outputs but two
kinds: the pictures (`image/png`), which the build adds for readers without a kernel,
and the live model ids of widgets, which the build leaves out.

A lesson of the course is run as it is stored; then, in the same kernel, from its first
exercise to its end again with every exercise solved. What stands before the first
exercise cannot know of an answer, so it is not run a second time.
"""

from __future__ import annotations

import inspect
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import dropwhile
from pathlib import Path
from queue import Empty
from typing import Any

import notebook_source  # first: it makes the import of nbformat cheap
import offline_guard
import pytest
from nbval.kernel import CURRENT_ENV_KERNEL_NAME, RunningKernel
from nbval.plugin import IPyNbCell, IPyNbFile, NbCellError

SOLVE = Path(__file__).with_name("solve.py")
SOLVED = notebook_source.ROOT / "build" / "solved"
OUTPUT_TIMEOUT = 60  # seconds; a busy machine with two cores is slow to answer
NOT_COMPARED = ("image/png", notebook_source.WIDGET_VIEW)
LAST_NUMPY_LESSON = "04"


class Kernel(RunningKernel):  # type: ignore[misc]
    """A kernel whose death is noticed while a cell runs."""

    def await_reply(self, msg_id: str, timeout: float | None = None) -> None:
        end = time.monotonic() + (timeout or float("inf"))
        while True:
            try:
                left = end - time.monotonic()
                message = self.get_message("shell", timeout=max(0.1, min(1.0, left)))
            except Empty:
                if not self.is_alive():
                    raise RuntimeError("the kernel died while this cell ran.") from None
                if time.monotonic() >= end:
                    raise
                continue
            if message["parent_header"].get("msg_id") == msg_id:
                return


class LessonCell(IPyNbCell):  # type: ignore[misc]
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.output_timeout = OUTPUT_TIMEOUT

    def runtest(self) -> None:
        missing = notebook_source.lacks_model(self.cell)
        if missing:
            self.options["check"] = False
        try:
            super().runtest()
        finally:
            refused = self.parent.refused()
        if refused:
            raise NbCellError(
                self.cell_num, f"The cell tried to: {refused}", self.cell.source
            )
        if missing:
            pytest.skip(missing)


class SolvedCell(LessonCell):
    """A cell behind the first stub, as it stands in the solved notebook."""

    def runtest(self) -> None:
        self.cell = self.parent.solved()[self.cell_num]
        super().runtest()

    def reportinfo(self) -> tuple[Any, int, str]:
        place, line, name = super().reportinfo()
        return place, line, f"{name}, solved"


class LessonFile(IPyNbFile):  # type: ignore[misc]
    """A notebook as it is stored; if it is a lesson, its exercises solved as well."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._solved: list[Any] = []
        self.skip_compare = (
            *(k for k in self.skip_compare if not k.startswith("image/")),
            *NOT_COMPARED,
        )

    def collect(self) -> Iterator[LessonCell]:
        cells = list(super().collect())
        unexecuted = [
            f"{item.cell.get('id', '?')} ({item.cell.source.splitlines()[0]})"
            for item in cells
            if item.cell.source.strip() and item.cell.execution_count is None
        ]
        skipped = [item.cell.get("id", "?") for item in cells if item.options["skip"]]
        if unexecuted or skipped:
            raise self.CollectError(
                f"{self.path.name}: cells without execution, which nbval would pass "
                f"unchecked: {', '.join(unexecuted + skipped)}. "
                f"Build it: python course.py notebooks {self.path.stem[:2]}"
            )
        yield from (self._again(LessonCell, item, item.name) for item in cells)
        if self.path.parent == notebook_source.NOTEBOOKS:
            for item in dropwhile(_is_no_stub, cells):
                yield self._again(SolvedCell, item, f"{item.name}, solved")

    def _again(self, kind: type[LessonCell], item: IPyNbCell, name: str) -> LessonCell:
        cell: LessonCell = kind.from_parent(
            self,
            name=name,
            cell_num=item.cell_num,
            cell=item.cell,
            options=item.options,
        )
        return cell

    def setup(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._record = Path(self._folder.name) / "refused.txt"
        self.kernel = Kernel(
            CURRENT_ENV_KERNEL_NAME,
            cwd=str(self.path.parent),
            startup_timeout=self.config.option.nbval_kernel_startup_timeout,
        )
        self.setup_sanitize_files()
        numpy_only = self.path.name[:2].isdigit() and (
            self.path.name[:2] <= LAST_NUMPY_LESSON
        )
        code = (
            f"exec({inspect.getsource(offline_guard)!r}, scope := {{}}); "
            f"scope['guard']({str(self._record)!r}, no_torch={numpy_only}); del scope"
        )
        message = self.kernel.execute_cell_input(code, allow_stdin=False)
        self.kernel.await_reply(message, timeout=OUTPUT_TIMEOUT)

    def teardown(self) -> None:
        super().teardown()
        if hasattr(self, "_folder"):
            self._folder.cleanup()

    def refused(self) -> str:
        """What the guard refused since it was last asked; "" if nothing."""
        if not self._record.exists():
            return ""
        lines = self._record.read_text().splitlines()
        self._record.unlink()
        return "; ".join(lines)

    def solved(self) -> list[Any]:
        """The cells of code with every exercise solved, made when they are needed."""
        if not self._solved:
            made = subprocess.run(
                [sys.executable, str(SOLVE), self.path.stem],
                capture_output=True,
                text=True,
                encoding="utf-8",
            )
            if made.returncode:
                raise RuntimeError(
                    f"{self.path.stem} cannot be solved:\n{made.stdout}{made.stderr}"
                )
            content = (SOLVED / self.path.name).read_bytes()
            notebook = notebook_source.from_bytes(content)
            self._solved = [c for c in notebook.cells if c.cell_type == "code"]
        return self._solved


def _is_no_stub(item: IPyNbCell) -> bool:
    return "exercise" not in item.cell.metadata.get("tags", [])
