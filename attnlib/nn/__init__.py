"""The PyTorch side: the same attention as in NumPy, differentiable and trainable.

This is the one part of the library that imports torch when it is imported. The names,
the axes and the meaning of a mask are those of `attnlib.attention`, and in float64 the
numbers are the same, too.
"""

from attnlib.nn.attention import Attention, scaled_dot_product
from attnlib.nn.block_sparse import block_sparse_attention
from attnlib.nn.cache import KVCache
from attnlib.nn.flash import Flash, flash_attention
from attnlib.nn.init import initialise
from attnlib.nn.multihead import MultiHead, MultiHeadAttention
from attnlib.nn.triton_flash import triton_attention
from attnlib.nn.windows import window_attention

__all__ = [
    "Attention",
    "Flash",
    "KVCache",
    "MultiHead",
    "MultiHeadAttention",
    "block_sparse_attention",
    "flash_attention",
    "initialise",
    "scaled_dot_product",
    "triton_attention",
    "window_attention",
]
