"""Which exercise tells strong students from weak ones: a correlation, with its doubt.

For each exercise: Pearson's correlation between a student's share of its points and the
same student's share of all other points (for right and wrong alone this is the
point-biserial correlation). The interval holds 95 % of the values that so few students
leave possible (Fisher's z). Of fewer than ten students nothing is said.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attnlib.grading.class_of import Class
from attnlib.grading.sentences import counted

FEWEST = 10
NORMAL = 1.959964  # 95 % of a normal distribution lies between minus this and this


@dataclass(frozen=True)
class Separates:
    """One exercise. `r` is None where it cannot be said."""

    exercise: str
    students: int
    mean: float  # share of its points
    r: float | None = None
    low: float = 0.0
    high: float = 0.0

    @property
    def sentence(self) -> str:
        """What that means, with the number of students."""
        n = self.students
        of = counted(n, "student")
        if n < FEWEST:
            return f"Too few to say: {of}, and {FEWEST} is the least."
        if self.r is None:
            return f"All {n} students have the same here, or the same in all the rest."
        numbers = f"r = {self.r:.2f}, {self.low:.2f} to {self.high:.2f}, {of}"
        if self.low > 0:
            return f"Who is strong in the rest is stronger here, too ({numbers})."
        if self.high < 0:
            return (
                f"Who is strong in the rest is weaker here: look at what it asks "
                f"({numbers})."
            )
        return f"No clear connection with the rest ({numbers})."


def of_class(all_: Class) -> list[Separates]:
    """Each exercise, in the order of the grades."""
    shares: dict[str, list[tuple[float, float | None]]] = {}
    for student in all_.students():
        counted = [grade for grade in student.grades if grade.counts and grade.of]
        points, of = sum(g.points for g in counted), sum(g.of for g in counted)
        for grade in counted:
            others = of - grade.of
            rest = (points - grade.points) / others if others else None
            mine = grade.points / grade.of
            shares.setdefault(grade.exercise, []).append((mine, rest))
    return [_one(name, pairs) for name, pairs in shares.items()]


def _one(name: str, pairs: Sequence[tuple[float, float | None]]) -> Separates:
    n = len(pairs)
    mean = math.fsum(mine for mine, _ in pairs) / n
    plain = Separates(name, n, mean)
    if n < FEWEST or any(rest is None for _, rest in pairs):
        return plain
    table = np.asarray(sorted(pairs), float)  # sorted: sums do not see the order
    spread = table - table.mean(axis=0)
    below = math.sqrt(float((spread[:, 0] ** 2).sum() * (spread[:, 1] ** 2).sum()))
    if below < 1e-12:
        return plain
    r = float((spread[:, 0] * spread[:, 1]).sum()) / below
    r = max(-1.0, min(1.0, r))
    z, width = math.atanh(max(-0.999999, min(0.999999, r))), NORMAL / math.sqrt(n - 3)
    return Separates(name, n, mean, r, math.tanh(z - width), math.tanh(z + width))
