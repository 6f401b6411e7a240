"""Where a token stands, told to an attention that cannot see it.

Without a mask, attention gives shuffled tokens shuffled results: it has no sense of
order. A position is told in one of three places, a module each:

- `absolute`: a vector added to each token. `sinusoidal`, `look_up`, `grid`.
- `bias`: a number added to each scaled score. `alibi_bias`, `relative_bias`.
- `rotary`: queries and keys turned by an angle. `rope`.

`extension` stretches RoPE beyond the length it was trained on. Queries stand as in
`masks`: query i at position n_k - n_q + i, the last query beside the last key.

RoPE turns pairs of features, and there are two ways to pair them:

===============  ==================  ====================================
layout           pair i is           used by
===============  ==================  ====================================
"interleaved"    2 i and 2 i + 1     RoFormer, GPT-J, Llama as Meta has it
"half"           i and i + d / 2     GPT-NeoX, Llama in transformers
===============  ==================  ====================================

Both are right, and one reordering of the features apart (`change_layout`). The weights
decide which one a model needs. At position 0 the two give the same, so a wrong layout
gets the first token right and the rest wrong.
"""

from attnlib.positions.absolute import count_positions, grid, look_up, sinusoidal
from attnlib.positions.bias import (
    alibi_bias,
    alibi_slopes,
    clipped_distances,
    distances,
    relative_bias,
    relative_buckets,
)
from attnlib.positions.extension import (
    dynamic_scale,
    interpolate_positions,
    ntk_base,
    yarn_attention_factor,
    yarn_frequencies,
    yarn_range,
)
from attnlib.positions.rotary import (
    change_layout,
    half_order,
    interleaved_order,
    rope,
    rope_frequencies,
)

__all__ = [
    "alibi_bias",
    "alibi_slopes",
    "change_layout",
    "clipped_distances",
    "count_positions",
    "distances",
    "dynamic_scale",
    "grid",
    "half_order",
    "interleaved_order",
    "interpolate_positions",
    "look_up",
    "ntk_base",
    "relative_bias",
    "relative_buckets",
    "rope",
    "rope_frequencies",
    "sinusoidal",
    "yarn_attention_factor",
    "yarn_frequencies",
    "yarn_range",
]
