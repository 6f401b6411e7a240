"""Figures: `show` for every figure of the course, and charts drawn by plotly.

The charts are `curves`, `bars`, `heat` and `histograms`. They stand still: plotly's
slider cannot be reached from the keyboard, so what moves is an explorer
(`attnlib.explorers`).
"""

from attnlib.figures.chart import Figure
from attnlib.figures.charts import bars, curves
from attnlib.figures.maps import heat, histograms
from attnlib.figures.show import show

__all__ = ["Figure", "bars", "curves", "heat", "histograms", "show"]
