"""The parts of attention that can be examined by themselves, by name.

>>> sorted(PARTS)[:4]
['alibi_bias', 'alibi_slopes', 'causal', 'distillation_loss']
>>> PARTS["alibi_slopes"].call
'alibi_slopes(n_heads)'
"""

from __future__ import annotations

from attnlib.clinic.part import Part
from attnlib.clinic.parts_blocks import BLOCKS
from attnlib.clinic.parts_heads import HEADS
from attnlib.clinic.parts_masks import MASKS
from attnlib.clinic.parts_positions import POSITIONS
from attnlib.clinic.parts_rotary import ROTARY
from attnlib.clinic.parts_scores import SCORES
from attnlib.clinic.parts_slopes import SLOPES
from attnlib.clinic.parts_windows import WINDOWS

_ALL = (*SCORES, *BLOCKS, *MASKS, *WINDOWS, *POSITIONS, *ROTARY, *SLOPES, *HEADS)

PARTS: dict[str, Part] = {part.name: part for part in _ALL}
