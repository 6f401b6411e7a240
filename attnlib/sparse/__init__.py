"""Sparse attention: leave most pairs out, without making the matrix they are out of.

A mask does not save anything: the scores behind it are computed first and hidden then.
Here only the scores that a pattern allows are computed, so time and memory follow the
pattern: n_q times w for a window of w keys, not n_q times n_k. Every function gives
what `scaled_dot_product` gives under the mask of the same name in `attnlib.masks`.

How far a token sees through several layers is in `layers_between` and `reach`.
"""

from attnlib.sparse.bands import Window, window
from attnlib.sparse.global_tokens import WindowAndGlobal, window_and_global
from attnlib.sparse.layers import layers_between, reach
from attnlib.sparse.patterns import bigbird_blocks, fixed_blocks
from attnlib.sparse.slabs import Blocks, blocks

__all__ = [
    "Blocks",
    "Window",
    "WindowAndGlobal",
    "bigbird_blocks",
    "blocks",
    "fixed_blocks",
    "layers_between",
    "reach",
    "window",
    "window_and_global",
]
