"""Flash attention in tiles, on a chip that counts every byte it moves.

- `online`: softmax from one block of keys at a time. `online_step`, `online_attention`.
- `chip`: so many bytes of SRAM, and meters. `Chip`.
- `forward`, `backward`: flash attention. `flash_forward`, `flash_trace`,
  `flash_backward`.
- `untiled`: the usual attention on the same chip. `untiled_forward`,
  `untiled_backward`.
- `blocks`: how large tiles may be. `block_sizes`, `sram_needed`.
- `kernels`: runs a kernel that you wrote. `run_kernel`.

What the counts should be, as formulas, stands in `attnlib.cost`.
"""

from attnlib.tiles.arrays import ChipError, InHBM, Tile
from attnlib.tiles.backward import FlashGradients, flash_backward
from attnlib.tiles.blocks import block_sizes, sram_needed
from attnlib.tiles.chip import Chip, ChipFull
from attnlib.tiles.forward import Flash, Step, flash_forward, flash_trace
from attnlib.tiles.kernels import Run, over_the_cap, run_kernel
from attnlib.tiles.online import (
    Online,
    online_attention,
    online_start,
    online_step,
    ranges,
)
from attnlib.tiles.untiled import Untiled, untiled_backward, untiled_forward

__all__ = [
    "Chip",
    "ChipError",
    "ChipFull",
    "Flash",
    "FlashGradients",
    "InHBM",
    "Online",
    "Run",
    "Step",
    "Tile",
    "Untiled",
    "block_sizes",
    "flash_backward",
    "flash_forward",
    "flash_trace",
    "online_attention",
    "online_start",
    "online_step",
    "over_the_cap",
    "ranges",
    "run_kernel",
    "sram_needed",
    "untiled_backward",
    "untiled_forward",
]
