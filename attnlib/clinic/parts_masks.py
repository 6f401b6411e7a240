"""Parts that are masks: causal, padding. Any polarity, any axes of size 1."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from attnlib.clinic.case import Case, Result
from attnlib.clinic.families.masks import CAUSAL
from attnlib.clinic.families.windows import PADDING
from attnlib.clinic.part import (
    Broken,
    Call,
    Form,
    Law,
    Meant,
    Options,
    Part,
    Takes,
    whole,
)
from attnlib.clinic.words import listed

Rng = np.random.Generator
MASK = "'may look' | 'blocked' | 'added'"
KEYS = ("k", "len", "src", "mem", "total", "size", "max", "col", "s", "t")
LOW = -1e8  # what lies below is taken for a fill of an additive mask


def squeezed(case: Case, mask: Result) -> Result:
    """Without axes of size 1 in front: (1, 1, n_q, n_k) is as good as (n_q, n_k)."""
    while mask.ndim > 2 and mask.shape[0] == 1:
        mask = mask[0]
    return mask


def of_batch(case: Case, mask: Result) -> Result:
    """(batch, 1, 1, n_k), or that with n_q in place of a 1, as (batch, n_k)."""
    while mask.ndim > 2 and mask.shape[1] == 1 and (mask.ndim > 3 or mask.shape[2] > 1):
        mask = mask[:, 0]
    return mask


def from_added(mask: Result) -> Result:
    """0 and -inf, or a very low number, as True and False; else as it is."""
    if mask.dtype.kind != "f":
        return mask
    low = mask.astype(np.float64) < LOW
    return np.asarray(mask == 0) if ((mask == 0) | low).all() else mask


def from_numbers(mask: Result) -> Result:
    """1 and 0 as True and False; else as it is."""
    if mask.dtype.kind == "b" or not ((mask == 0) | (mask == 1)).all():
        return mask
    return np.asarray(mask == 1)


def inverted(mask: Result) -> Result:
    """True = blocked as True = may look."""
    return np.logical_not(mask) if mask.dtype.kind == "b" else mask


def meanings(meant: Meant, options: Options) -> tuple[Meant, ...]:
    """A mask may say True, 1 or 0 for "may look". Inverted it may be only if asked."""
    said = options.get("mask", "may look")
    before = meant.tidy

    def made(feature: str, *steps: Callable[[Result], Result]) -> Meant:
        def tidy(case: Case, mask: Result) -> Result:
            mask = before(case, mask)
            for step in steps:
                mask = step(mask)
            return mask

        words = ", ".join(w for w in (meant.feature, feature) if w)
        return Meant(meant.family, words, meant.complete, tidy)

    added = made("an additive mask, 0 and -inf", from_added)
    if said == "added":
        return (added,)
    if said == "blocked":
        return (made("", from_numbers, inverted),)
    return (
        made(""),
        made("1 and 0 for True and False", from_numbers),
        added,
    )


def _causal(options: Options, takes: Takes) -> tuple[Form, ...]:
    meant = meanings(Meant(CAUSAL, tidy=squeezed), options)

    def rectangles(rng: Rng) -> tuple[Case, ...]:
        sizes = ((2, 4), (1, 7), (5, 5), (3, 6))
        cases = [Case(sizes_of(n_q, n_k), (n_q, n_k)) for n_q, n_k in sizes]
        alone = Case("3 tokens", (3,) if takes.required < 2 else (3, 3))
        return (alone, *cases)

    def squares(rng: Rng) -> tuple[Case, ...]:
        return tuple(Case(f"{n} tokens", (n,)) for n in (3, 1, 5, 8))

    def behind_cache(rng: Rng) -> tuple[Case, ...]:
        sizes = ((3, 0), (2, 2), (1, 6), (5, 0), (3, 3))
        return tuple(
            Case(f"{sizes_of(n, n + past)}, {past} in the cache", (n, past))
            for n, past in sizes
        )

    def all_keys(case: Case) -> Case:
        n, past = (whole(a) for a in case.args)
        return Case(case.name, (n, n + past))

    other = takes.named("device", "dtype", "batch")
    if takes.fits(2) and takes.at(1, "past", "offset", "cache"):
        past = meanings(Meant(CAUSAL, "", all_keys, squeezed), options)
        return (Form("causal(n, past)", behind_cache, past),)
    forms = []
    if takes.wants(1, *KEYS) and not (other and other in takes.names[:2]):
        forms.append(Form("causal(n_q, n_k)", rectangles, meant))
    if takes.fits(1):
        only_square = "more keys than queries (M19): it takes one size only."
        forms.append(Form("causal(n)", squares, meant, untested=(only_square,)))
    return tuple(forms)


def sizes_of(n_q: int, n_k: int) -> str:
    queries = "1 query" if n_q == 1 else f"{n_q} queries"
    return f"{queries} and {n_k} keys"


def _padding(options: Options, takes: Takes) -> tuple[Form, ...]:
    def with_keys(case: Case) -> Case:
        lengths = np.asarray(case.args[0])
        n_k = case.args[1] if len(case.args) > 1 else int(lengths.max())
        return Case(case.name, (lengths, n_k))

    meant = meanings(Meant(PADDING, "", with_keys, of_batch), options)

    def cases(rng: Rng) -> tuple[Case, ...]:
        some = rng.integers(1, 8, size=5)
        some[:2] = 7, 2
        calls = (((2, 4, 3), 5), ((4, 1), 6), (some.tolist(), 7), ((3, 0, 5, 2), 9))
        return tuple(_lengths(list(lengths), n_k) for lengths, n_k in calls)

    def alone(rng: Rng) -> tuple[Case, ...]:
        return tuple(
            Case(case.name, case.args[:1])
            for case in (
                _lengths([2, 4, 3], 4),
                _lengths([6, 1], 6),
                _lengths([3] * 2 + [5], 5),
            )
        )

    def tokens(rng: Rng) -> tuple[Case, ...]:
        found = []
        for case in cases(rng):
            lengths, n_k = np.asarray(case.args[0]), whole(case.args[1])
            text = rng.integers(3, 50, size=(len(lengths), n_k))
            text[np.arange(n_k) >= lengths[:, None]] = 0
            args = (text, 0) if takes.required > 1 else (text,)
            found.append(Case(f"tokens, {case.name}", args))
        return tuple(found)

    def read(case: Case) -> Case:
        real = np.asarray(case.args[0]) != 0
        return Case(case.name, (real.sum(axis=-1), real.shape[-1]))

    if takes.at(0, "tok", "seq", "src", "_id", "ids", "input") and not takes.at(
        0, "len"
    ):
        of_tokens = meanings(Meant(PADDING, "", read, of_batch), options)
        fits = takes.fits(1) or takes.at(1, "pad")
        return (Form("padding(tokens)", tokens, of_tokens),) if fits else ()
    forms = []
    other = takes.named("device", "dtype")
    if takes.wants(1, *KEYS, "n") and not (other and other in takes.names[:2]):
        forms.append(Form("padding(lengths, n_k)", cases, meant))
    if takes.fits(1):
        longest = "more keys than the longest sequence has: it takes no n_k."
        forms.append(Form("padding(lengths)", alone, meant, untested=(longest,)))
    return tuple(forms)


def _lengths(lengths: list[int], n_k: int) -> Case:
    told = ", ".join(map(str, lengths))
    return Case(f"lengths {told}, {n_k} keys", (np.array(lengths), n_k))


def _grows(call: Call) -> Broken | None:
    """Each query of a causal mask sees one key more than the one before."""
    for n in range(1, 9):
        mask = call(n, n)
        mask = call(n) if mask is None else mask
        if mask is None or mask.shape != (n, n) or mask.dtype.kind != "b":
            return None
        counts = np.count_nonzero(mask, axis=-1)
        if counts.tolist() != list(range(1, n + 1)):
            keys = listed([str(count) for count in counts.tolist()])
            return Broken(
                f"Of {n} queries, the first to last see {keys} keys.", f"n = {n}"
            )
    return None


CAUSAL_PART = Part(
    "causal",
    "causal(n_q, n_k)",
    "a mask (n_q, n_k)",
    "Query i of n_q stands at position n_k - n_q + i and sees the keys up to there.",
    _causal,
    options={"mask": MASK, "causal": "True or False"},
    laws=(Law("each query sees one key more than the one before", _grows),),
)
PADDING_PART = Part(
    "padding",
    "padding(lengths, n_k)",
    "a mask (batch, n_k), or with axes of size 1 for heads and queries",
    "The first `lengths` keys of each sequence are real.",
    _padding,
    options={"mask": MASK},
)
MASKS = (CAUSAL_PART, PADDING_PART)
