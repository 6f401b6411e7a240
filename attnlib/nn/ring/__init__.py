"""Ring attention: one long text on several processes, exact, forward and backward.

- `attention`: `ring_attention`, what is called on every rank.
- `placement`: which tokens lie where, and who sees what. `Blocks`, `Stripes`, `Zigzag`.
- `join`: `join_parts`, two partial results made one by their log-sum-exp.
- `travel`: the two neighbours of a rank, and what went to them. `Meter`.
- `launch`: `run_ranks` starts processes on this machine, and ends them in any case.
- `rank`: the program that such a process runs.
- `work`, `faults`: functions for ranks to run: one that is right, and some that fail.

`ring_attention` needs a process group of torch.distributed and nothing else of this:
on many machines `torchrun` starts the processes.
"""

from attnlib.nn.ring import faults, work
from attnlib.nn.ring.attention import ring_attention
from attnlib.nn.ring.join import join_parts
from attnlib.nn.ring.launch import RankError, run_ranks
from attnlib.nn.ring.placement import Blocks, Look, Placement, Stripes, Zigzag
from attnlib.nn.ring.travel import Meter

__all__ = [
    "Blocks",
    "Look",
    "Meter",
    "Placement",
    "RankError",
    "Stripes",
    "Zigzag",
    "faults",
    "join_parts",
    "ring_attention",
    "run_ranks",
    "work",
]
