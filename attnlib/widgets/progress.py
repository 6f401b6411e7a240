"""`progress`: a bar that moves while a long cell runs, and one line in its place after.

The bar is plain HTML that the kernel replaces, no widget with a model of its own: when
the cell is done, nothing is left of it but a line that is the same every time, so
that it can be stored and compared.

In a `with` block, one bar serves several trainings, and an interrupt ends them all.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from html import escape
from typing import Self
from uuid import uuid4

from attnlib.shapes import size

PAUSE = 0.1  # seconds between two pictures of the bar


class Progress:
    """A bar; call it with the number of steps done and the loss.

    As the `with` of a block it adds up the steps of all trainings in it. Without one,
    an interrupt would end only the training that runs, and a loop start the next.
    """

    def __init__(
        self, total: int, label: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.total, self.label = size("total", total), label
        self.line = f"{label}, {self.total} steps."
        self._clock, self._last = clock, clock()
        self._block, self._before, self._step = False, 0, 0
        self._place = uuid4().hex
        self._open = _in_a_kernel()
        if not self._open:
            print(self.line)
            return
        # nbval compares what is shown first, and the file holds what is shown last.
        self._show(self.line, update=False)
        self._show(self.bar(0))

    def __call__(self, step: int, loss: float) -> None:
        """Show how far it is; at most ten times a second, however often it is told."""
        self._step = step
        now = self._clock()
        if self._open and now - self._last >= PAUSE:
            self._last = now
            self._show(self.bar(self._before + step, f", loss {loss:.3g}"))
        if step >= self.total and not self._block:
            self.close()

    def close(self) -> None:
        """Leave the line and no bar; `train` does it, however the training ended."""
        if self._block:  # not the end: the next training counts on from here
            self._before, self._step = self._before + self._step, 0
        elif self._open:
            self._open = False
            self._show(self.line)

    def stop(self) -> None:
        """End the block, if this is one; `train` calls it when it was interrupted."""
        if self._block:
            raise KeyboardInterrupt

    def __enter__(self) -> Self:
        self._block = True
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> bool:
        self._block = False
        self.close()
        interrupted = kind is KeyboardInterrupt
        if interrupted:
            print(f"{self.label}: what was to follow is left out.")
        return interrupted

    def bar(self, step: int, more: str = "") -> str:
        """The bar as HTML."""
        label, far = escape(self.label), f"{step} of {self.total} steps"
        return (
            f'<div class="attn-progress"><label>{label} <progress '
            f'style="width: 16em; vertical-align: middle" max="{max(self.total, 1)}" '
            f'value="{step}" aria-label="{label}" aria-valuetext="{far}"></progress>'
            f"</label> {far}{escape(more)}</div>"
        )

    def _show(self, what: str, update: bool = True) -> None:
        from IPython.display import display

        bundle = {"text/plain": self.line}
        if what != self.line:
            bundle["text/html"] = what
        display(bundle, raw=True, display_id=self._place, update=update)  # type: ignore[no-untyped-call]


def progress(total: int, label: str = "Training") -> Progress:
    """A bar that shows how far a training is, to hand to `attnlib.nn.train.train`.

    In a notebook it moves while the cell runs; afterwards one line stands there. In a
    terminal there is only the line.

    In a `with` block it serves several trainings, and an interrupt ends the block:

        with progress(3 * 100, "Three trainings") as bar:
            for seed in range(3):
                train(model(seed), loss, 100, lr=0.003, report=bar)

    Args:
        total: how many steps there will be, in all trainings together.
        label: what is being done, in a word or two; screen readers say it, too.

    Returns:
        A function of the number of steps done and the loss.

    Raises:
        TypeError, ShapeError: total is not a whole number of at least 0.

    >>> report = progress(2, "Training with scale")
    Training with scale, 2 steps.
    >>> report(1, 0.5), report(2, 0.25)
    (None, None)
    """
    return Progress(total, label)


def _in_a_kernel() -> bool:
    """Whether what is displayed can be replaced later: not so in a terminal."""
    from IPython import get_ipython

    return hasattr(get_ipython(), "kernel")
