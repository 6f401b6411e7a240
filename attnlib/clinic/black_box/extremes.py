"""Questions at the edge, put to a subject whose ordinary answers are understood.

Each looks at one thing: empty rows, huge scores, scores far below a fill value, hidden
scores far above the others, NaN, many keys, float16, chance. The subject's answer is
compared with what its ordinary behaviour (right, or with known mistakes) gives there.
"""

from __future__ import annotations

from attnlib.clinic.black_box.edge_fills import fills
from attnlib.clinic.black_box.edge_masks import empty, planted
from attnlib.clinic.black_box.edge_modules import cached
from attnlib.clinic.black_box.edge_scores import half, huge, long
from attnlib.clinic.black_box.edge_tools import Edge, Extras
from attnlib.clinic.black_box.exam import Diagnosis, Exam


def extremes(exam: Exam, known: Diagnosis, *, empty_rows: bool = True) -> Extras:
    """Put all extreme questions; `known` must have a reading."""
    extras = Extras()
    looks = (fills, empty, huge, long, half, planted, cached)
    for look in looks if empty_rows else looks[:1] + looks[2:]:
        look(Edge(exam, known, extras))
    return extras
