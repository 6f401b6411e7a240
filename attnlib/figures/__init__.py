"""Figures: `show` for every figure of the course, and charts drawn by plotly."""

from attnlib.figures.show import show

__all__ = ["show"]
