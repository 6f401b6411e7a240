"""Figures that need the kernel: tables a learner edits, and what follows from them.

`Workbench` is the general one; `mask_painter` is a workbench with one mask.
"""

from attnlib.widgets.workbench import Workbench, mask_painter

__all__ = ["Workbench", "mask_painter"]
