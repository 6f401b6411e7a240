"""Functions for ranks to run that go wrong on purpose, on one of the ranks.

The others wait for it, as they would in earnest, in the ring.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import torch

from attnlib.nn.ring.attention import ring_attention
from attnlib.nn.ring.placement import Stripes


def raises(rank: int, n_ranks: int, bad: int) -> None:
    """Rank `bad` raises; the others wait for its keys."""
    if rank == bad:
        raise ValueError("this text has no end")
    _attend(n_ranks)


def dies(rank: int, n_ranks: int, bad: int) -> None:
    """Rank `bad` ends without a word, as for want of memory; the others wait for it."""
    if rank == bad:
        os._exit(9)
    _attend(n_ranks)


def hangs(rank: int, n_ranks: int, bad: int, folder: str | None = None) -> None:
    """Rank `bad` does nothing for an hour; the others wait for it."""
    if folder is not None:
        Path(folder, str(rank)).write_text(str(os.getpid()))
    if rank == bad:
        sleeps()
    _attend(n_ranks)


def sleeps() -> None:
    """Do nothing for an hour."""
    time.sleep(3600)


def _attend(n_ranks: int) -> None:
    x = torch.zeros(2, 3)
    ring_attention(x, x, x, Stripes(2 * n_ranks, n_ranks))
