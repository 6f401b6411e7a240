"""What came of many examinations: tables, numbers, and whether the aims hold."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

PAIRS_FOUND = 0.98
SHOWN = 60  # failures listed one by one


@dataclass(frozen=True)
class Outcome:
    """One examination of one specimen, and what it is."""

    name: str
    kind: str  # "right", "singles" or "pairs"
    codes: tuple[str, ...]  # what it has
    seed: int
    dtype: str
    healthy: bool
    named: tuple[str, ...]  # what it was said to have
    unknown: str  # the law that was broken, where no mistake fits; or ""
    refused: str  # why it was not examined; or ""
    seconds: float
    alone: bool = False  # nothing was remembered from an examination before

    @property
    def found(self) -> bool:
        """It is wrong, and was examined and said to be wrong."""
        return bool(self.codes) and not self.healthy and not self.refused

    @property
    def exact(self) -> bool:
        """Exactly what it has was named, and nothing else was blamed."""
        return self.found and self.named == self.codes and not self.unknown

    @property
    def among(self) -> bool:
        """All that it has was named, perhaps among others."""
        return self.found and set(self.codes) <= set(self.named)

    @property
    def one(self) -> bool:
        """At least one of what it has was named."""
        return self.found and bool(set(self.codes) & set(self.named))

    @property
    def good(self) -> bool:
        """As it should be: a pair may be named in part, if it is found."""
        if self.kind == "right":
            return self.healthy
        return self.found if self.kind == "pairs" else self.exact

    @property
    def said(self) -> str:
        """What the examination said, in short."""
        if self.refused:
            return f"refused: {self.refused}"
        words = list(self.named)
        if self.unknown:
            words.append(f"unknown ({self.unknown})")
        return ", ".join(words) or "healthy"


def of_kind(outcomes: Sequence[Outcome], kind: str) -> list[Outcome]:
    return [outcome for outcome in outcomes if outcome.kind == kind]


def counts(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """How many of these were found, named, named among others, named in part."""
    numbers = {"of": len(outcomes)}
    for name in ("found", "exact", "among", "one"):
        numbers[name] = sum(getattr(outcome, name) for outcome in outcomes)
    return numbers


def by_code(outcomes: Sequence[Outcome]) -> dict[str, dict[str, int]]:
    """For each mistake: its counts over the specimens that have it alone."""
    singles = of_kind(outcomes, "singles")
    codes = sorted({outcome.codes[0] for outcome in singles})
    table = {}
    for code in codes:
        mine = [outcome for outcome in singles if outcome.codes[0] == code]
        table[code] = {
            "specimens": len({outcome.name for outcome in mine}),
            **counts(mine),
        }
    return table


def holds(outcomes: Sequence[Outcome]) -> bool:
    """Whether the aims are reached by what was examined."""
    pairs = of_kind(outcomes, "pairs")
    found = sum(outcome.found for outcome in pairs)
    rest = [outcome for outcome in outcomes if outcome.kind != "pairs"]
    return all(o.good for o in rest) and found >= PAIRS_FOUND * len(pairs)


def seconds(outcomes: Sequence[Outcome]) -> dict[str, dict[str, float]]:
    """The middle one, the 95 % one and the largest, and the share under a second."""
    rows = {
        "alone": [o.seconds for o in outcomes if o.alone],
        "after others": [o.seconds for o in outcomes if not o.alone],
    }
    table = {}
    for name, times in rows.items():
        if times:
            middle, most = np.percentile(times, [50, 95])
            table[name] = {
                "median": round(float(middle), 3),
                "95 %": round(float(most), 3),
                "largest": round(max(times), 3),
                "under 1 s": round(float(np.mean(np.less(times, 1.0))), 4),
            }
    return table


def failures(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """What was not as it should be, a row for each specimen and each answer."""
    rows: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in outcomes:
        if not outcome.good or (outcome.kind == "pairs" and not outcome.exact):
            rows.setdefault((outcome.name, outcome.said), []).append(outcome)
    order = {"right": 0, "singles": 1, "pairs": 2}
    listed = [
        {
            "specimen": name,
            "kind": same[0].kind,
            "is": list(same[0].codes),
            "said": said,
            "times": len(same),
            "first": min((o.seed, o.dtype) for o in same),
            "missed": not same[0].good,
            "refused": bool(same[0].refused),
        }
        for (name, said), same in rows.items()
    ]

    def place(row: dict[str, Any]) -> tuple[Any, ...]:
        less = order[row["kind"]], row["refused"], not row["missed"]
        return *less, row["is"], row["specimen"], row["said"]

    return sorted(listed, key=place)


def summary(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """All numbers; the same for the same seeds, but for the seconds."""
    right = of_kind(outcomes, "right")
    return {
        "singles": by_code(outcomes),
        "pairs": counts(of_kind(outcomes, "pairs")),
        "right": {
            "specimens": len({outcome.name for outcome in right}),
            "of": len(right),
            "accused": sum(bool(o.named or o.unknown) for o in right),
            "refused": sum(bool(o.refused) for o in right),
        },
        "seconds": seconds(outcomes) if outcomes else {},
        "failures": failures(outcomes),
        "aims": holds(outcomes),
    }


def percent(part: int, whole: int) -> str:
    """Rounded down, so that 100 % means all."""
    return f"{np.floor(1000 * part / whole) / 10:g} %" if whole else "-"


def tables(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """The lines to print."""
    if not outcomes:
        yield "nothing was examined."
        return
    yield from _singles(outcomes)
    yield from _pairs(of_kind(outcomes, "pairs"))
    yield from _right(of_kind(outcomes, "right"))
    yield ""
    yield "seconds of one core for an examination (aim: under 1)"
    for name, row in seconds(outcomes).items():
        yield (
            f"    {name:24}median {row['median']:.2f}, 95 % {row['95 %']:.2f}, "
            f"largest {row['largest']:.2f}; under 1 s {100 * row['under 1 s']:.1f} %"
        )
    slow = max(outcomes, key=lambda outcome: outcome.seconds)
    yield f"    the slowest: {slow.name} (seed {slow.seed}, {slow.dtype})"
    yield from _failures(outcomes)
    yield ""
    yield "the aims hold." if holds(outcomes) else "THE AIMS ARE NOT REACHED."


def _singles(outcomes: Sequence[Outcome]) -> Iterator[str]:
    table = by_code(outcomes)
    if not table:
        return
    yield ""
    yield f"{'single':8}{'specimens':>10}{'of':>7}{'found':>8}{'named':>8}{'among':>8}"
    for code, row in table.items():
        yield (
            f"{code:8}{row['specimens']:10}{row['of']:7}{row['found']:8}"
            f"{row['exact']:8}{row['among']:8}"
            + ("" if row["exact"] == row["of"] else "   <")
        )
    total = counts(of_kind(outcomes, "singles"))
    n = total["of"]
    yield (
        f"{'all':8}{sum(row['specimens'] for row in table.values()):10}{n:7}"
        f"{percent(total['found'], n):>8}{percent(total['exact'], n):>8}"
        f"{percent(total['among'], n):>8}"
    )


def _pairs(pairs: Sequence[Outcome]) -> Iterator[str]:
    if not pairs:
        return
    total = counts(pairs)
    n = total["of"]
    yield ""
    yield f"pairs: {len({o.name for o in pairs})} specimens, {n} examinations"
    for name, text in (
        ("found", "found (aim: 98 %)"),
        ("exact", "both named, no other"),
        ("among", "both named"),
        ("one", "at least one named"),
    ):
        yield f"    {text:24}{total[name]:7}{percent(total[name], n):>9}"


def _right(right: Sequence[Outcome]) -> Iterator[str]:
    if not right:
        return
    accused = [o for o in right if o.named or o.unknown]
    refused = [o for o in right if o.refused]
    yield ""
    yield f"right: {len({o.name for o in right})} specimens, {len(right)} examinations"
    yield f"    {'accused (aim: none)':24}{len(accused):7}"
    yield f"    {'refused':24}{len(refused):7}"


def _failures(outcomes: Sequence[Outcome]) -> Iterator[str]:
    rows = failures(outcomes)
    if not rows:
        return
    yield ""
    yield "not as it should be (how often, which, first seed and type: what was said)"
    for row in rows[:SHOWN]:
        seed, dtype = row["first"]
        mark = "" if row["missed"] else "in part: "
        yield (
            f"{row['times']:5}  {mark}{row['specimen']} [{seed}, {dtype}]: "
            f"{row['said'][:160]}"
        )
    if len(rows) > SHOWN:
        yield f"       and {len(rows) - SHOWN} more"
