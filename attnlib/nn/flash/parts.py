"""The gradients that some of the keys bring, when all of them were looked at."""

from __future__ import annotations

from torch import Tensor

from attnlib.nn.flash.attention import Flash, plan_for
from attnlib.nn.flash.backward import flash_backward
from attnlib.nn.flash.inputs import inside


def part_gradients(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    found: Flash,
    d_out: Tensor,
    *,
    causal: bool,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of q, k and v through these keys.

    `found` is what the queries found among *all* keys, wherever those lie: with it the
    weights of a part are right as they stand. Batch axes must be equal, not broadcast.
    """
    given = inside(q, k, v, None, None)
    plan = plan_for(given, causal, scale, (None, None), None, True)
    front = given.q.shape[:-1]
    results = (
        found.out.reshape(*front, v.shape[-1]),
        found.log_sum_exp.reshape(front),
    )
    d_out = d_out.reshape(*front, v.shape[-1])
    tensors = (given.q, given.k, given.v, None)
    d_q, d_k, d_v, _ = flash_backward(plan, tensors, results, (d_out, None), False)
    return d_q.reshape(q.shape), d_k.reshape(k.shape), d_v.reshape(v.shape)
