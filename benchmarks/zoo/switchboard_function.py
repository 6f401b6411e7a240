"""Single mistakes and pairs, set on the switchboard.

A pair counts only if it can be told from the right attention, from each single mistake
and from every other pair: its results on many random probes decide, in float64.
"""

from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np

from .made import drawn
from .switchboard import Board, Meant, attention_of

SEEN = 1e-3  # so large is a difference that float32 shows, too


@dataclass(frozen=True)
class Wrong:
    """One wrong position: its code, its switch and how it stands then."""

    code: str
    switch: str
    position: object
    fill: float | None = None

    def set(self, board):
        board = replace(board, **{self.switch: self.position})
        return board if self.fill is None else replace(board, fill=self.fill)


EVERYWHERE = (
    Wrong("M01", "scale", "none"),
    Wrong("M02", "scale", "root of heads * d"),
    Wrong("M02", "scale", "root of n"),
    Wrong("M03", "scale", "d"),
    Wrong("M46", "roles", "k asks q"),
    Wrong("M46", "roles", "k is said"),
    Wrong("M46", "roles", "q asks q"),
    Wrong("M46", "roles", "k asks v"),
    Wrong("M46", "roles", "turned"),
    Wrong("M04", "axis", "queries"),
    Wrong("M04", "axis", "heads"),
    Wrong("M05", "axis", "heads and keys"),
    Wrong("M06", "softmax", "naive"),
    Wrong("M47", "softmax", "twice"),
    Wrong("M47", "softmax", "none"),
    Wrong("M07", "mask", "hide the allowed"),
    Wrong("M08", "mask", "add"),
    Wrong("M09", "mask", "multiply"),
    Wrong("M09", "mask", "fill with 0"),
    Wrong("M10", "mask", "after"),
    Wrong("M11", "mask", "hide", -1e4),
    Wrong("M11", "mask", "hide", -50.0),
    Wrong("M11", "mask", "hide", -1e3),
    Wrong("M12", "mask", "hide, then scale", -100.0),
    Wrong("M12", "mask", "hide, then scale", -1e4),
    Wrong("M15", "whose", "padding of queries"),
    Wrong("M17", "whose", "another item's"),
    Wrong("M14", "empty", "NaN"),
    Wrong("M14", "empty", "uniform"),
    Wrong("M14", "empty", "mean"),
    Wrong("M34", "mix", "dropout"),
    Wrong("M45", "mix", "NaN made zero"),
)
# What a board is meant to be, and the mistakes that it makes possible
SPECIAL = (
    (
        {"causal": True},
        Wrong("M18", "causal", "strict"),
        Wrong("M18", "causal", "one ahead"),
        Wrong("M19", "causal", "top left"),
        Wrong("M16", "causal", "either"),
        Wrong("M16", "causal", "mask instead"),
        Wrong("M16", "causal", "mask ignored"),
    ),
    ({"window": 3}, Wrong("M32", "window", 1), Wrong("M32", "window", -1)),
    ({"n_heads": 6, "n_kv_heads": 2}, Wrong("M33", "groups", "tile")),
    (
        {"softcap": 4.0},
        Wrong("M37", "cap", "none"),
        Wrong("M37", "cap", "mask, then cap"),
        Wrong("M37", "cap", "not divided"),
    ),
    (
        {"qk_norm": True},
        Wrong("M38", "norm", "none"),
        Wrong("M38", "norm", "q"),
        Wrong("M38", "norm", "over tokens"),
    ),
)


def meant_by(intent):
    known = {key: intent[key] for key in intent if key in Meant.__annotations__}
    return Meant(**known)


def probes(intent, rng):
    """Many (q, k, v, mask): plain, steep, lowered, of unequal lengths, masked, ..."""
    front, n, d = (3, 6), 7, 4
    kv = (3, intent.get("n_kv_heads", 6))

    def draw(n_q=n):
        q, k, v = rng.normal(size=(3, *front, n, d))
        return q[..., :n_q, :], k[:, : kv[1]], v[:, : kv[1]]

    full = np.eye(n, dtype=bool) | (rng.random((n, n)) < 0.6)
    full[:, 0] = True
    gap = full.copy()
    gap[4] = False
    padding = np.arange(n) < np.array([7, 5, 3])[:, None, None, None]
    padding = np.broadcast_to(padding, (3, 1, n, n))
    for mask in (None, full, gap, np.broadcast_to(np.arange(n) < 5, (n, n)), padding):
        q, k, v = draw()
        yield q, k, v, mask
        yield q * 40, k * 40, v, mask
    some = np.broadcast_to(np.arange(n) < 5, (n, n))
    for loudness in (40, 70, 700, 7e3, 3e4):  # the last two keys stand above the rest
        q, k, v = draw()
        q[..., 0], k[..., :5, 0], k[..., 5:, 0] = 1, -loudness * np.sqrt(d), 0
        yield q, k, v, some
    yield q, k - k[..., 5:, :].max(), v, None
    yield (*draw(3), None)
    yield (*draw(3), full[4:])
    q, k, v = draw()
    q[..., 2, :] = np.nan
    yield q, k, v, None


def results(board, intent):
    """What a board says to all probes; None where it raises, 1e6 where it says NaN."""
    out = []
    for q, k, v, mask in probes(intent, np.random.default_rng(7)):
        try:
            out.append(attention_of(board, meant_by(intent))(q, k, v, mask))
        except ValueError:
            out.append(None)
    return [x if x is None else np.nan_to_num(x, nan=1e6) for x in out]


def differ(some, others):
    return any(
        a is not None and b is not None and (abs(a - b) > SEEN * (1 + abs(b))).any()
        for a, b in zip(some, others, strict=True)
    )


# Pairs of which nobody can say that they are two mistakes: without a scale, it does
# not show that the fill stands before it (M11); where a mask does not hide, or an axis
# other than that of the keys is divided, no row is empty for the softmax.
ONE_IN_TRUTH = {
    frozenset(("M01", "M12")),
    *(frozenset((code, "M14")) for code in ("M04", "M07", "M08", "M09", "M11", "M12")),
}


def pairs_of(first, second, intent):
    """For each two codes, positions that can be told apart, if there are any."""
    singles = {w: results(w.set(Board()), intent) for w in {*first, *second}}
    known = [results(Board(), intent), *singles.values()]
    found = []
    for turn, choices in enumerate(by_codes(first, second)):
        start = turn % len(choices)  # not always the first positions of a code
        for pair in choices[start:] + choices[:start]:
            out = results(pair[1].set(pair[0].set(Board())), intent)
            if all(differ(out, other) for other in known):
                found.append(pair)
                known.append(out)
                break
    return found


def by_codes(first, second):
    """Pairs of different switches; those of the same two codes in one list."""
    pairs = combinations(first, 2) if first is second else product(first, second)
    groups = {}
    for a, b in pairs:
        codes = frozenset((a.code, b.code))
        if a.switch != b.switch and len(codes) == 2 and codes not in ONE_IN_TRUTH:
            groups.setdefault(codes, []).append((a, b))
    return groups.values()


def specimen(wrongs, intent):
    board = Board()
    for wrong in wrongs:
        board = wrong.set(board)

    def build(rng):
        return attention_of(board, meant_by(intent), int(rng.integers(1 << 30)))

    name = " and ".join(f"{w.switch} {w.position}" for w in wrongs)
    fill = "".join(f" ({w.fill:g})" for w in wrongs if w.fill is not None)
    meant = "".join(f", {key}={value}" for key, value in intent.items())
    codes = " ".join(w.code for w in wrongs)
    return drawn(codes, f"switches, {name}{fill}{meant}", build, "switches", **intent)


def all_specimens():
    yield from (specimen((wrong,), {}) for wrong in EVERYWHERE)
    yield from (specimen(pair, {}) for pair in pairs_of(EVERYWHERE, EVERYWHERE, {}))
    for intent, *special in SPECIAL:
        yield from (specimen((wrong,), intent) for wrong in special)
        for pair in pairs_of(special, EVERYWHERE, intent):
            yield specimen(pair, intent)


SPECIMENS = tuple(all_specimens())
