"""Flash attention in PyTorch: exact, differentiable, and never an n_q x n_k matrix.

- `attention`: `flash_attention`, what is called.
- `inputs`: what may be given, and how it lies inside.
- `plan`, `looks`, `drop`: tiles, who may look at whom in one, what is dropped in one.
- `forward`, `backward`: the algorithm.
- `call`: the two as one operation of autograd.
- `parts`: gradients through some of the keys, for keys that lie on several machines.

The same algorithm in NumPy, on a chip that counts bytes, is `attnlib.tiles`.
"""

from attnlib.nn.flash.attention import Flash, flash_attention

__all__ = ["Flash", "flash_attention"]
