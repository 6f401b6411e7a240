"""Fewer keys, or none: attention whose cost does not grow with n_q times n_k.

- `low_rank`: Linformer, n_k keys mixed down to r by a learned matrix.
- `pooled`, `pool`: the mean of every few neighbouring keys stands for them.
- `memory_compressed`: a strided convolution stands for them.
- `linear`, `linear_dense`: no softmax, hence no matrix at all; both give the same.
- `hierarchical`: attention inside pieces, then to their means; `article_pooled` is the
  article's version of it, as it stands.

None of them equals softmax attention over all keys. How far it is away is a number to
measure on the task at hand; the cost is known beforehand.
"""

from attnlib.lowrank.hierarchy import (
    ArticlePooled,
    Hierarchical,
    article_pooled,
    hierarchical,
)
from attnlib.lowrank.running_sums import (
    Linear,
    LinearDense,
    features,
    linear,
    linear_dense,
)
from attnlib.lowrank.short_keys import (
    ShortKeys,
    low_rank,
    memory_compressed,
    pool,
    pooled,
)

__all__ = [
    "ArticlePooled",
    "Hierarchical",
    "Linear",
    "LinearDense",
    "ShortKeys",
    "article_pooled",
    "features",
    "hierarchical",
    "linear",
    "linear_dense",
    "low_rank",
    "memory_compressed",
    "pool",
    "pooled",
]
