"""A class that hands lesson 03 in, for the benchmark of the grader.

The files are the lesson's notebook as it is stored, with answers in it of which it is
known what they are.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from handed_answers import LOOPS, NAMES, RIGHT, WRONG, Known

LESSON = Path(__file__).resolve().parent.parent / "notebooks" / "03_masks.ipynb"


@dataclass(frozen=True)
class Submission:
    """One file, and what its grades have to be: by exercise, or one for all."""

    name: str
    data: bytes
    kind: str
    expected: dict[str, tuple[str, frozenset[str]]] = field(default_factory=dict)


BROKEN = ("cut off", "empty", "no notebook", "syntax")


def hand_in(n: int, loops: int, seed: int = 0) -> list[Submission]:
    """`n` files, `loops` of them with an answer that never ends.

    Of the others a tenth is blank, a tenth broken; the rest are right or have mistakes.
    """
    rng = random.Random(seed)
    lesson = json.loads(LESSON.read_text(encoding="utf-8"))
    rest = n - loops
    few = max(1, rest // 10) if rest >= 4 else 0
    kinds = ["loop"] * loops + ["blank"] * few + ["broken"] * few
    left = n - len(kinds)
    kinds += ["right"] * (left // 2) + ["mistakes"] * (left - left // 2)
    count: dict[str, int] = dict.fromkeys(kinds, 0)
    made = []
    rng.shuffle(kinds)
    for number, kind in enumerate(kinds):
        made.append(_one(f"student{number:03d}", kind, count[kind], lesson, rng))
        count[kind] += 1
    return made


def _one(
    name: str, kind: str, turn: int, lesson: dict[str, Any], rng: random.Random
) -> Submission:
    answers = {each: Known(rng.choice(RIGHT[each])) for each in NAMES}
    if kind == "blank":
        answers = {}
    elif kind == "loop":
        which = list(LOOPS)[turn % len(LOOPS)]
        kind = f"loop: {which}"
        answers["document_mask"] = Known(LOOPS[which], "timeout")
    elif kind == "mistakes":
        for each in rng.sample(NAMES, rng.randint(1, 3)):
            answers[each] = rng.choice(WRONG[each])
    elif kind == "broken":
        kind = f"broken: {BROKEN[turn % len(BROKEN)]}"
        if kind == "broken: syntax":
            answers["causal"] = Known("def causal(n_q, n_k=None:\n    ...", "syntax")
    expected = {
        each: (answers[each].status, answers[each].mistakes)
        if each in answers
        else ("not started", frozenset[str]())
        for each in NAMES
    }
    data = _notebook(lesson, {each: known.source for each, known in answers.items()})
    spoiled = {
        "broken: cut off": data[: len(data) // 2],
        "broken: empty": b"",
        "broken: no notebook": b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
    }
    if kind in spoiled:
        nothing = ("unreadable", frozenset[str]())
        return Submission(name, spoiled[kind], kind, dict.fromkeys(NAMES, nothing))
    return Submission(name, data, kind, expected)


def _notebook(lesson: dict[str, Any], answers: dict[str, str]) -> bytes:
    """The lesson as it is stored, figures and all, with answers in its stubs."""
    made = copy.deepcopy(lesson)
    for cell in made["cells"]:
        source = "".join(cell["source"])
        for name, answer in answers.items():
            tags = cell["metadata"].get("tags", ())
            if "exercise" in tags and source.startswith(f"def {name}("):
                cell["source"] = answer.splitlines(keepends=True)
    return json.dumps(made).encode()


def kinds(handed: Sequence[Submission]) -> dict[str, int]:
    """How many of each kind there are."""
    found: dict[str, int] = {}
    for one in handed:
        found[one.kind] = found.get(one.kind, 0) + 1
    return dict(sorted(found.items()))
