"""Figures that need the kernel: tables a learner edits, and what follows from them.

`Workbench` is the general one; `mask_painter` is a workbench with one mask.
"""

from attnlib.widgets.painter import mask_painter
from attnlib.widgets.workbench import Workbench

__all__ = ["Workbench", "mask_painter"]
