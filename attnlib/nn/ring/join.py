"""Two partial results of the same queries, each over some keys, made one."""

from __future__ import annotations

import torch

from attnlib.nn.flash import Flash
from attnlib.nn.shapes import check_tensors
from attnlib.shapes import ShapeError


def join_parts(one: Flash, other: Flash) -> Flash:
    """Join what the same queries found among two sets of keys.

    L = log(e^L1 + e^L2), out = e^(L1 - L) out1 + e^(L2 - L) out2

    The two weights sum to 1: each is the share of the whole sum of exponentials that
    lies with these keys. In what order parts are joined does not matter, but for
    rounding. A query that saw nothing on one side (L = -inf) takes the other as it is;
    if it saw nothing on either, it stays at zeros and -inf.

    Args:
        one: out (..., n_q, d_v) and log_sum_exp (..., n_q), as `flash_attention`
            returns them with `return_log_sum_exp=True`.
        other: likewise, of the same shapes, over other keys.

    Returns:
        out (..., n_q, d_v) and log_sum_exp (..., n_q) over the keys of both.

    Raises:
        ShapeError: the shapes of the two differ.
        TypeError: something is not a floating tensor.

    Cost: about 3 n_q d_v FLOPs, and no second look at any key.
    Source: Dao et al. 2022, algorithm 1; Liu et al. 2023 for the ring.
    Lesson: 16.

    >>> logs = torch.tensor([0.0]), torch.tensor([1.0986123])  # log 1 and log 3
    >>> found = [Flash(torch.tensor([[x]]), L) for x, L in zip((0.0, 4.0), logs)]
    >>> join_parts(*found).out.tolist()
    [[3.0]]
    """
    check_tensors(
        {
            "one.out": (one.out, "n_q d_v"),
            "one.log_sum_exp": (one.log_sum_exp, "n_q"),
            "other.out": (other.out, "n_q d_v"),
            "other.log_sum_exp": (other.log_sum_exp, "n_q"),
        }
    )
    both = one, other
    rows = {rows for x in both for rows in (x.out.shape[:-1], x.log_sum_exp.shape)}
    if len(rows) > 1:
        names = "out {}, log_sum_exp {}".format
        of_one, of_other = (
            names(tuple(x.out.shape), tuple(x.log_sum_exp.shape)) for x in (one, other)
        )
        raise ShapeError(
            f"the parts are of different queries: {of_one}, and {of_other}."
        )
    log = torch.logaddexp(one.log_sum_exp, other.log_sum_exp)
    base = log.masked_fill(log == -torch.inf, 0)  # -inf - (-inf) would be NaN
    shares = [(x.log_sum_exp - base).exp()[..., None] for x in (one, other)]
    return Flash(shares[0] * one.out + shares[1] * other.out, log)
