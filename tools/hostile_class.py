"""A class of attackers, with honest students among them.

The attacks are tests/grading_corpus/: one small file each, whose function `answer`
takes the place of an exercise's, and may call `right`, which is right. Four of them and
one right answer make a notebook. What they know of the machine is written `@SEED@`.
"""

from __future__ import annotations

import functools
import io
import json
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path

from attnlib.exercises import get, names

CORPUS = Path(__file__).resolve().parent.parent / "tests" / "grading_corpus"
LESSON = 3
*ATTACKED, KEPT = names(LESSON)  # graded in this order: the right answer comes last
SETUP = "import numpy as np\nfrom attnlib.attention import softmax\n"
WROTE = "ANSWER OF ada 7c2e"  # stands in what honest students hand in
# These also run before the answers that need them; and cells that no answer needs.
AT_THE_TOP = {"infinite_loop", "swallows_every_exception", "os_exit", "sys_exit"}
AT_THE_TOP |= {"kills_everybody", "segfault", "fork_bomb", "memory_hog"}
BESIDE = ("infinite_loop", "os_exit", "kills_everybody", "asks_for_input")
# Files that are traps: what each one is.
FILES = {
    "a link.zip": "An archive with a link to a file of the grader's.",
    "a bomb.zip": "An archive of 300 kB that unpacks to 300 MB.",
    "bombs in bombs.zip": "An archive of archives of archives, six deep.",
    "leads outside.zip": "An archive whose file is named `../../ada.ipynb`.",
    "symlink.ipynb": "A link to what another student handed in.",
}
NAME = "<img src=x onerror=alert(3)> '\"& =1+1"
HONEST = ("ada", "bob", "zoe", NAME)  # bob has a mistake, zoe attacks that nobody runs


@dataclass(frozen=True)
class Attack:
    """One file of the corpus; `at_top`: its code runs before there is an answer."""

    name: str
    source: str
    at_top: bool = False

    @property
    def key(self) -> str:
        """What it is called in the table."""
        return f"{self.name} at the top" if self.at_top else self.name

    @property
    def says(self) -> str:
        """What it does, in a sentence."""
        said = self.source.split('"""')[1]
        return f"At the top level: {said}" if self.at_top else said

    @property
    def exercise(self) -> str:
        """The exercise for which it is made, or nothing."""
        found = re.search(r"^# exercise: (\w+)$", self.source, re.M)
        return found[1] if found else ""

    def cell(self, exercise: str) -> str:
        """Its code as the answer to an exercise."""
        own = f"attack_on_{exercise}" if self.at_top else exercise
        cell = re.sub(r"\banswer\b", own, self.source)
        if self.at_top:
            first = f"first_{exercise}"
            cell += f"\n\n{first} = {own}()\n\n\ndef {exercise}(*args):\n"
            cell += f"    return {first}, right_{exercise}(*args)\n"
        return re.sub(r"\bright\b", f"right_{exercise}", cell)


def source(name: str) -> str:
    """The text of an attack."""
    return next(CORPUS.glob(f"{name}.[pt][yx]*")).read_text(encoding="utf-8")


def attacks() -> list[Attack]:
    """All of them, in the order of their names."""
    files = sorted([*CORPUS.glob("*.py"), *CORPUS.glob("*.txt")])
    found = [Attack(path.stem, path.read_text(encoding="utf-8")) for path in files]
    above = [Attack(a.name, a.source, True) for a in found if a.name in AT_THE_TOP]
    return found + above


def packed() -> list[dict[str, Attack]]:
    """Which attack takes the place of which answer, notebook by notebook."""
    waiting = sorted(attacks(), key=lambda one: not one.exercise)
    made: list[dict[str, Attack]] = []
    for one in waiting:
        places = [one.exercise] if one.exercise else ATTACKED
        for notebook in made:
            free = [place for place in places if place not in notebook]
            if free:
                notebook[free[0]] = one
                break
        else:
            made.append({places[0]: one})
    return made


def notebook(*cells: str) -> bytes:
    """A notebook with these cells of code."""
    found = [{"cell_type": "code", "source": cell} for cell in (SETUP, *cells)]
    return json.dumps({"cells": found}).encode()


def right(exercise: str, name: str = "") -> str:
    """The right answer, perhaps under another name."""
    text: str = get(exercise).solution_source
    return re.sub(rf"\bdef {exercise}\b", f"def {name or exercise}", text)


def hostile(notebook_: dict[str, Attack]) -> bytes:
    """A notebook of attacks, with one right answer."""
    cells = []
    for exercise, attack in notebook_.items():
        cells += [right(exercise, f"right_{exercise}"), attack.cell(exercise)]
    return notebook(*cells, right(KEPT))


def honest(*more: str) -> bytes:
    """All answers right."""
    return notebook(f"# {WROTE}", *more, *map(right, names(LESSON)))


def zipped(*entries: tuple[str, bytes], link: bool = False) -> bytes:
    """An archive of these files, or of links."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries:
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (0o120777 if link else 0o100644) << 16
            archive.writestr(info, data)
    return held.getvalue()


def bomb() -> bytes:
    """300 MB of nothing."""
    return zipped(("a.ipynb", bytes(300_000_000)))


def hand_in(folder: Path, places: dict[str, str]) -> None:
    """Write the files of the class.

    Args:
        folder: it is empty.
        places: what attackers know: where things lie, for `@SEED@` and the like.
    """
    wrong = right("causal").replace("k=n_k - n_q", "k=0")
    beside = [re.sub(r"\banswer\b", f"x{n}", source(s)) for n, s in enumerate(BESIDE)]
    beside += [f"x{n}()" for n in range(len(BESIDE))]
    others = map(right, names(LESSON)[1:])
    files = {
        "ada.ipynb": honest(),
        "bob.ipynb": notebook(wrong, *others),
        "zoe.ipynb": honest(*beside),
        f"{NAME}.ipynb": honest(),
        "a link.zip": zipped(("a.ipynb", places["@SEED@"].encode()), link=True),
        "a bomb.zip": bomb(),
        "leads outside.zip": zipped(("../../ada.ipynb", honest())),
        "bombs in bombs.zip": functools.reduce(
            lambda inner, n: zipped(*((f"{n}{m}.zip", inner) for m in "abc")),
            range(6),
            zipped(("a.ipynb", honest())),
        ),
    }
    files |= {f"m{n:02d}.ipynb": hostile(one) for n, one in enumerate(packed())}
    for name, data in files.items():
        for word, place in places.items():
            data = data.replace(word.encode(), place.encode())
        (folder / name).write_bytes(data)
    (folder / "symlink.ipynb").symlink_to(folder / "ada.ipynb")
