"""A function for ranks to run: attention of a text that was cut up, and its gradients.

New processes import what they run, so it cannot stand in a notebook.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from attnlib.nn.ring.attention import ring_attention
from attnlib.nn.ring.placement import Placement
from attnlib.nn.ring.travel import Meter


@dataclass(frozen=True)
class Found:
    """What one rank found, of its own tokens."""

    out: Tensor
    d_q: Tensor
    d_k: Tensor
    d_v: Tensor
    meter: Meter


def attend(
    rank: int,
    n_ranks: int,
    whole: tuple[Tensor, Tensor, Tensor, Tensor],
    placement: Placement,
    causal: bool,
) -> Found:
    """Take the own share of q, k, v and the gradient at out; go forward and backward.

    Each rank is handed the whole text, only because this is a test: it uses its share.
    """
    device = torch.device("cuda", rank) if dist.get_backend() == "nccl" else "cpu"
    q, k, v, d_out = (placement.share(x, rank).to(device) for x in whole)
    for x in (q, k, v):
        x.requires_grad_()
    meter = Meter()
    out = ring_attention(q, k, v, placement, causal=causal, meter=meter)
    grads = torch.autograd.grad(out, (q, k, v), d_out)
    d_q, d_k, d_v = (x.cpu() for x in grads)
    return Found(out.detach().cpu(), d_q, d_k, d_v, meter)


def attend_each(
    rank: int,
    n_ranks: int,
    whole: tuple[Tensor, Tensor, Tensor, Tensor],
    placements: list[Placement],
    causal: bool,
) -> list[Found]:
    """The same for several placements: processes are started once for all."""
    return [attend(rank, n_ranks, whole, p, causal) for p in placements]
