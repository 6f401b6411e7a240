"""ALiBi as parts: its slopes, and its bias as far as it changes weights."""

from __future__ import annotations

import numpy as np

from attnlib.clinic.case import Case, Result
from attnlib.clinic.families import learned
from attnlib.clinic.families.slopes import ALIBI_SLOPES
from attnlib.clinic.part import Form, Meant, Options, Part, Takes, whole
from attnlib.clinic.part_laws import FALL_EVENLY

Rng = np.random.Generator


def _flat(case: Case, slopes: Result) -> Result:
    """(n_heads, 1, 1) and the like as (n_heads,)."""
    return slopes.reshape(-1) if slopes.size == max(slopes.shape, default=1) else slopes


def _slopes(options: Options, takes: Takes) -> tuple[Form, ...]:
    def negative(case: Case, slopes: Result) -> Result:
        return -_flat(case, slopes).astype(np.float64)

    meant = (
        Meant(ALIBI_SLOPES, tidy=_flat),
        Meant(ALIBI_SLOPES, "the slopes have their minus", tidy=negative),
    )

    def every(rng: Rng) -> tuple[Case, ...]:
        return _heads((4, 8, 12, 6, 1, 16, 3, 20))

    def powers(rng: Rng) -> tuple[Case, ...]:
        return _heads((4, 8, 1, 16, 32))

    refused = "counts of heads that are no power of two: it refuses them."
    call = "alibi_slopes(n_heads)"
    forms = (Form(call, every, meant), Form(call, powers, meant, untested=(refused,)))
    return forms if takes.fits(1) else ()


def _heads(counts: tuple[int, ...]) -> tuple[Case, ...]:
    return tuple(Case(f"{n} head{'s' * (n > 1)}", (n,)) for n in counts)


def _bias(options: Options, takes: Takes) -> tuple[Form, ...]:
    def tidy(case: Case, bias: Result) -> Result:
        while bias.ndim > 3 and bias.shape[0] == 1:
            bias = bias[0]
        if bias.ndim != 3 or bias.dtype.kind != "f":
            return bias
        n_q = whole(case.args[1])
        if bias.shape[1] == 1 and n_q > 1:  # one row for all queries, as the reference
            bias = np.broadcast_to(bias, (len(bias), n_q, bias.shape[-1]))
        return learned.tidy_bias(bias)

    def complete(case: Case) -> Case:
        n_heads, *sizes = case.args
        return Case(case.name, (n_heads, sizes[0], sizes[-1]))

    meant = (Meant(learned.ALIBI_BIAS, "", complete, tidy),)

    def cases(rng: Rng) -> tuple[Case, ...]:
        sizes = ((4, 3, 3), (8, 2, 5), (12, 1, 6), (3, 4, 7), (10, 5, 5))
        return tuple(
            Case(f"{h} heads, n_q={q}, n_k={k}", (h, q, k)) for h, q, k in sizes
        )

    def squares(rng: Rng) -> tuple[Case, ...]:
        sizes = ((4, 3), (8, 5), (12, 6), (3, 4))
        return tuple(Case(f"{h} heads, {n} tokens", (h, n)) for h, n in sizes)

    heads_last = "head" in "".join(takes.names[-1:]).lower() and not takes.at(0, "head")
    ahead = "keys behind the query's own place: a causal mask hides them."
    forms = []
    if takes.fits(3):
        call = "alibi_bias(n_heads, n_q, n_k)"
        order: tuple[int, ...] = (1, 2, 0) if heads_last else ()
        forms.append(Form(call, cases, meant, order=order, untested=(ahead,)))
    if takes.fits(2):
        only_square = "more keys than queries: it takes one size only."
        call = "alibi_bias(n_heads, n)"
        order = (1, 0) if heads_last else ()
        untested = (ahead, only_square)
        forms.append(Form(call, squares, meant, order=order, untested=untested))
    return tuple(forms)


SLOPES = (
    Part(
        "alibi_slopes",
        "alibi_slopes(n_heads)",
        "a slope for each head, (n_heads,)",
        "2^(-8 (h + 1) / n) for n a power of two; for others those of the power below, "
        "and every second of twice that power.",
        _slopes,
        "M31",
        laws=(FALL_EVENLY,),
    ),
    Part(
        "alibi_bias",
        "alibi_bias(n_heads, n_q, n_k)",
        "a bias (n_heads, n_q, n_k)",
        "Minus slope times distance. Only what changes weights under a causal mask is "
        "compared.",
        _bias,
        "M31",
    ),
)
