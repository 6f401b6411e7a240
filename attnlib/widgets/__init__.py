"""Figures that need the kernel: tables a learner edits, and what follows from them.

`Workbench` is the general one; `mask_painter` is a workbench with one mask. `progress`
is a bar for long cells, and leaves one line. `Board` is such a bar with the charts of a
training under it, and `dashboard` the figure of all charts.
"""

from attnlib.widgets.dashboard import Board, dashboard
from attnlib.widgets.painter import mask_painter
from attnlib.widgets.progress import progress
from attnlib.widgets.workbench import Workbench

__all__ = ["Board", "Workbench", "dashboard", "mask_painter", "progress"]
