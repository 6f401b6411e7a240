"""What the tests of the ring let ranks run; new processes import it."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import threading
import time
from pathlib import Path

import torch
import torch.distributed as dist

from attnlib.nn.ring import Meter, ring_attention
from attnlib.nn.ring.work import Found, attend


def many(rank, n_ranks, calls):
    """Several rings, one after the other: processes are started once for all."""
    return [attend(rank, n_ranks, *call) for call in calls]


def crossed(rank, n_ranks, whole, placement, scale):
    """More queries than keys, of which all ranks hold their own; no mask."""
    q, k, v, d_out = whole
    mine = slice(rank * 5, rank * 5 + 5)
    q, d_out = q[..., mine, :], d_out[..., mine, :]
    k, v = (placement.share(x, rank) for x in (k, v))
    for x in (q, k, v):
        x.requires_grad_()
    meter = Meter()
    out = ring_attention(q, k, v, placement, scale=scale, meter=meter)
    return Found(out.detach(), *torch.autograd.grad(out, (q, k, v), d_out), meter)


def in_a_group(rank, n_ranks, whole, placement):
    """Ranks 1 and 3 share a text; the others know nothing of it."""
    group = dist.new_group([1, 3])
    if rank in (0, 2):
        return None
    q, k, v = (placement.share(x, rank // 2) for x in whole)
    return ring_attention(q, k, v, placement, causal=True, group=group)


def disagrees(rank, n_ranks, placement, what):
    """One rank asks for something else than the others."""
    x = torch.zeros(2, placement.n_local, 4)
    odd = rank == n_ranks - 1
    if what == "shape" and odd:
        x = torch.zeros(3, placement.n_local, 4)
    if what == "dtype" and odd:
        x = x.double()
    try:
        ring_attention(x, x, x, placement, causal=what == "causal" and odd)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


def twice(rank, n_ranks, placement):
    """A second derivative."""
    x = torch.ones(placement.n_local, 3, requires_grad=True)
    out = ring_attention(x, x, x, placement).square().sum()
    (slope,) = torch.autograd.grad(out, x, create_graph=True)
    try:
        slope.sum().backward()
    except RuntimeError as error:
        return str(error)
    return "nothing"


def wrong_calls(rank, n_ranks, placement):
    """Calls that do not fit, and what they are told."""
    x, said = torch.zeros(4, placement.n_local, 6), []
    other = type(placement)(2 * placement.n, 2 * n_ranks)
    for q, k, v, place, causal in (
        (x, x, x, other, False),
        (x[:, 1:], x, x, placement, True),
        (x, x[:, 1:], x[:, 1:], placement, False),
        (x, x[:3], x[:3], placement, False),
        (x, x[:2], x, placement, False),
        (x, x, x, "stripes", False),
        (x.long(), x, x, placement, False),
    ):
        try:
            ring_attention(q, k, v, place, causal=causal)
        except (ValueError, TypeError) as error:
            said.append(f"{type(error).__name__}: {error}")
        else:
            said.append("nothing")
    return said


def greets(rank, n_ranks, *words):
    """Print, and return what came."""
    print(f"I am {rank}")
    print("of", n_ranks)
    return (rank, *words, torch.get_num_threads(), dist.get_backend())


def returns_a_lock(rank, n_ranks):
    """What cannot be sent back."""
    return threading.Lock()


def killed(rank, n_ranks, bad):
    """One rank is killed from outside; the others wait for it."""
    if rank == bad:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.barrier()


def spins(rank, n_ranks, folder, bad):
    """One rank computes for ever, the others wait for it; each says who it is."""
    Path(folder, str(rank)).write_text(str(os.getpid()), encoding="utf-8")
    while rank == bad:
        time.sleep(0)
    dist.barrier()


def stops(rank, n_ranks, folder):
    """All are stopped, as by a debugger: they do not even answer."""
    Path(folder, str(rank)).write_text(str(os.getpid()), encoding="utf-8")
    os.kill(os.getpid(), signal.SIGSTOP)


def mute(rank, n_ranks, bad):
    """One rank closes the pipe by which it answers, and lives on."""
    if rank == bad:
        for fd in range(3, 256):
            with contextlib.suppress(OSError):
                if stat.S_ISFIFO(os.fstat(fd).st_mode):
                    os.close(fd)
        time.sleep(100)
    dist.barrier()


def prints(rank, n_ranks):
    """A rank says how far it came, and raises."""
    print("so far")
    raise ValueError("no farther")
