"""Attention by Hand: the library behind the course.

Import from the modules, so that a line reads like the idea:

>>> from attnlib.attention import scaled_dot_product
>>> from attnlib.masks import causal

NumPy defines the right answer. Nothing here loads torch, plotly or ipywidgets;
`attnlib.nn` and the figures do that when you import them.
"""

__version__ = "0.1.0"
