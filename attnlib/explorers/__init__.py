"""Small tables that answer to the hand, as self-contained HTML.

`explore` puts a slider over states computed beforehand, `follow` and `follow_tokens`
follow an element from table to table, `switches` turns things on and off, `budget`
sets what things may cost, `lights` shows what is well and what is missing. The parts
are `matrix`, `bars`, `histogram` and `note`.
"""

from attnlib.explorers.budget import budget
from attnlib.explorers.elements import follow_tokens
from attnlib.explorers.explorer import Explorer, explore, follow
from attnlib.explorers.lights import lights
from attnlib.explorers.parts import bars, histogram, matrix, note
from attnlib.explorers.switches import switches

__all__ = [
    "Explorer",
    "bars",
    "budget",
    "explore",
    "follow",
    "follow_tokens",
    "histogram",
    "lights",
    "matrix",
    "note",
    "switches",
]
