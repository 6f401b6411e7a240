"""What goes round: a rank sends to the next one, and receives from the one before."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

KEYS, GRADIENTS = 0, 1  # tags, so that the two kinds of messages cannot be mixed up


@dataclass
class Meter:
    """What one rank computed and sent; handed to `ring_attention`, which adds to it."""

    forward: int = 0  #   bytes sent to the next rank, in the forward pass
    backward: int = 0  #  and in the backward pass
    messages: int = 0  #  of both
    pairs: list[int] = field(default_factory=list)  # computed forward, step by step


@dataclass(frozen=True)
class Block:
    """Keys and values, or their gradients, as one piece of memory: one message."""

    flat: Tensor
    k: Tensor  # views of it
    v: Tensor

    @staticmethod
    def of(k: Tensor, v: Tensor) -> Block:
        """Copy keys and values into one piece."""
        return Block.over(torch.cat([k.flatten(), v.flatten()]), k, v)

    @staticmethod
    def over(flat: Tensor, k: Tensor, v: Tensor) -> Block:
        """The same memory, read in the shapes of k and v."""
        of_k, of_v = flat[: k.numel()], flat[k.numel() :]
        return Block(flat, of_k.view(k.shape), of_v.view(v.shape))


@dataclass(frozen=True)
class Coming:
    """A block on its way here, and the one that went away meanwhile."""

    works: list[Any]
    block: Block
    sent: Block  # held, so that its memory stays until it is sent

    def wait(self) -> Block:
        """The block, once it is here; the process group's timeout limits the wait."""
        for work in self.works:
            work.wait()
        return self.block


class Ring:
    """A rank's place in a process group, and its two neighbours."""

    def __init__(self, group: dist.ProcessGroup | None = None) -> None:
        if not (dist.is_available() and dist.is_initialized()):
            raise RuntimeError(
                "ring_attention runs on the ranks of a process group, and there is "
                "none: start them with run_ranks, or call init_process_group first."
            )
        self.group = group
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)
        if self.rank < 0:
            raise RuntimeError("this process is not a rank of the group it was given.")

    def pass_on(self, block: Block, tag: int) -> Coming:
        """Send a block to the next rank, and begin to receive one, without waiting."""
        empty = Block.over(torch.empty_like(block.flat), block.k, block.v)
        works = dist.batch_isend_irecv(
            [
                dist.P2POp(dist.isend, block.flat, self._at(1), self.group, tag),
                dist.P2POp(dist.irecv, empty.flat, self._at(-1), self.group, tag),
            ]
        )
        return Coming(works, empty, block)

    def agree(self, asked: dict[str, object]) -> None:
        """Raise on every rank, and not on one alone, unless all ask for the same."""
        told: list[Any] = [None] * self.size
        dist.all_gather_object(told, asked, group=self.group)
        for other, theirs in enumerate(told):
            for name, value in told[0].items():
                if theirs[name] != value:
                    raise ValueError(
                        f"all ranks must agree in {name}, but it is {value} on rank 0 "
                        f"and {theirs[name]} on rank {other}."
                    )

    def _at(self, offset: int) -> int:
        """A neighbour, by its number in the whole world."""
        place = (self.rank + offset) % self.size
        return place if self.group is None else dist.get_global_rank(self.group, place)
