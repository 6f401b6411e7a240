"""Write into TEACHING.md what the lessons need and what each exercise diagnoses.

    .venv/bin/python tools/teaching.py           rewrite the tables
    .venv/bin/python tools/teaching.py --check   say whether they would change

Minutes, levels and needs come from the lessons, mistakes from what the checks know. It
writes docs/mistakes.md, all names, and the tables of TEACHING.md, which stand between
two comment lines:

    <!-- table: term -->
    <!-- /table -->
"""

from __future__ import annotations

import inspect
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from attnlib.clinic.catalogue import get as mistake
from attnlib.exercises import get, names
from attnlib.exercises.exercise import (
    AnyExercise,
    Exercise,
    HuntExercise,
    ValueExercise,
)

ROOT = Path(__file__).resolve().parent.parent
PAGE, NAMES = "TEACHING.md", "docs/mistakes.md"
NAMES_HEAD = """
# What each check can name

Written by `tools/teaching.py` from what the checks know; do not edit. For each exercise
of the [teacher's guide](../TEACHING.md): the names of the mistakes that its check tells
apart. `attnlib mistakes M02` shows one that has a number. Where the answer is a value:
what wrong values are told.
"""
SITTING = 90  # minutes; short lessons share one
BLOCK = re.compile(
    r"(?P<open>^<!-- table: (?P<name>\w+) -->\n).*?(?P<close>^<!-- /table -->$)",
    re.MULTILINE | re.DOTALL,
)
HEADLINE = re.compile(r"^### Exercise \d+ · `(\w+)` · \d+ minutes · (\S+)", re.M)
NEED = re.compile(r"\[[^\]]*?(\d\d)\]\(\1_\w+\.ipynb\)(?: (to)\s)?")


@dataclass(frozen=True)
class Lesson:
    """What a lesson says of itself, and its exercises."""

    number: int
    title: str
    file: str
    minutes: int
    needs: tuple[int, ...]
    levels: dict[str, str]

    @property
    def exercises(self) -> tuple[AnyExercise, ...]:
        """Its exercises, in their order."""
        return tuple(get(name) for name in names(self.number))

    @property
    def exercise_minutes(self) -> int:
        """What they take together."""
        return sum(exercise.minutes for exercise in self.exercises)

    @property
    def link(self) -> str:
        """Its number, as a link to the notebook."""
        return f"[{self.number:02}](notebooks/{self.file}.ipynb)"


def lessons(root: Path = ROOT) -> dict[int, Lesson]:
    """All lessons by number."""
    found = {}
    for path in sorted((root / "notebooks" / "source").glob("[0-9][0-9]_*.md")):
        text = path.read_text(encoding="utf-8")
        title = text.partition("\n")[0].partition(" · ")[2]
        said = re.search(r"\*\*You need\*\*(.*?)About (\d+)\s+minutes", text, re.S)
        if said is None:
            raise ValueError(f"{path.name} does not say what it needs, and how long.")
        number = int(path.name[:2])
        needs, minutes = needed(said[1]), int(said[2])
        levels = dict(HEADLINE.findall(text))
        found[number] = Lesson(number, title, path.stem, minutes, needs, levels)
    return found


def needed(text: str) -> tuple[int, ...]:
    """The lessons linked in a text; `[01](...) to [05](...)` means all between them."""
    found: set[int] = set()
    first = None
    for number, to in NEED.findall(text):
        found |= set(range(int(number) if first is None else first, int(number) + 1))
        first = int(number) if to else None
    return tuple(sorted(found))


def task(exercise: AnyExercise) -> str:
    """What is handed in, in a sentence."""
    if isinstance(exercise, ValueExercise):
        return "A value."
    if not isinstance(exercise, Exercise | HuntExercise):
        return "An input on which a bug shows."
    kind = "A check" if isinstance(exercise, HuntExercise) else "A function"
    first = (inspect.getdoc(exercise.solution) or "").partition("\n")[0]
    return f"{kind}: {first[:1].lower()}{first[1:]}"


def diagnosed(exercise: AnyExercise) -> tuple[str, ...]:
    """The mistakes that its check can name, as it says them."""
    if isinstance(exercise, Exercise):
        known = [mistake(key) for key in exercise.family.faults]
        said = [f"{m.name} ({m.code})" if m.code else m.name for m in known]
    elif isinstance(exercise, ValueExercise):  # sentences, not names
        said = [wrong.sentence for wrong in exercise.wrong]
    elif isinstance(exercise, HuntExercise):
        said = [bug.name for bug in exercise.bugs(0)]
    else:
        said = [exercise.bug.name]
    return tuple(dict.fromkeys(said))


def held_back(exercise: AnyExercise) -> bool:
    """Whether its bugs are drawn by a seed. Their names are for nobody to read."""
    if not isinstance(exercise, HuntExercise):
        return False
    return exercise.bugs(0) != exercise.bugs(1)


def numbers(exercise: AnyExercise) -> str:
    """The numbers among them, which `attnlib mistakes` can show."""
    if not isinstance(exercise, Exercise):
        return ""
    codes = {mistake(key).code for key in exercise.family.faults}
    return " ".join(sorted(codes - {""}))


def exercises() -> str:
    """A table for each lesson."""
    parts = []
    for lesson in lessons().values():
        rows = [
            f"| `{e.name}` | {e.minutes} | {lesson.levels.get(e.name, '')} "
            f"| {task(e)} | {len(diagnosed(e))} | {numbers(e)} |"
            for e in lesson.exercises
        ]
        parts += [
            f"### {lesson.number:02} · {lesson.title}",
            f"Lesson {lesson.link}: {lesson.minutes} minutes, "
            f"{lesson.exercise_minutes} of them for the exercises. "
            f"[The mistakes by name]({NAMES}#lesson-{lesson.number:02}).",
            "| exercise | minutes | level | handed in is | mistakes | numbers |\n"
            "| --- | --- | --- | --- | --- | --- |\n" + "\n".join(rows),
        ]
    return "\n" + "\n\n".join(parts) + "\n"


def all_names() -> str:
    """The page with the names of all mistakes."""
    parts = [NAMES_HEAD.strip()]
    for lesson in lessons().values():
        parts.append(f"## Lesson {lesson.number:02}")
        for exercise in lesson.exercises:
            said = diagnosed(exercise)
            if held_back(exercise):
                said = (f"{len(said)} bugs that the lesson holds back",)
            parts += [
                f"### `{exercise.name}` · {exercise.minutes} minutes",
                "\n".join(f"- {line(sentence)}" for sentence in said),
            ]
    return "\n\n".join(parts) + "\n"


def line(sentence: str) -> str:
    """A sentence that Markdown shows as it is."""
    return re.sub(r"([*<]|^[#+-])", r"\\\1", " ".join(sentence.split()))


def sittings() -> list[list[Lesson]]:
    """The lessons in order; neighbours share a sitting where there is room."""
    found: list[list[Lesson]] = []
    for lesson in lessons().values():
        taken = sum(other.minutes for other in found[-1]) if found else SITTING
        if taken + lesson.minutes <= SITTING:
            found[-1].append(lesson)
        else:
            found.append([lesson])
    return found


def term() -> str:
    """One sitting a week."""
    rows = []
    for week, sitting in enumerate(sittings(), 1):
        for lesson in sitting:
            needs = ", ".join(f"{n:02}" for n in lesson.needs) or "none"
            rows.append(
                f"| {week} | {lesson.link} {lesson.title} | {lesson.minutes} "
                f"| {lesson.exercise_minutes} | {needs} |"
            )
    total = sum(lesson.minutes for lesson in lessons().values())
    done = sum(lesson.exercise_minutes for lesson in lessons().values())
    rows.append(f"| | together | {total} | {done} | |")
    head = "| week | lesson | minutes | of these, exercises | needs lessons |\n"
    return head + "| --- | --- | --- | --- | --- |\n" + "\n".join(rows)


WRITERS = {"term": term, "exercises": exercises}


def rewrite(text: str) -> str:
    """The page with every table written anew."""

    def block(match: re.Match[str]) -> str:
        if match["name"] not in WRITERS:
            known = ", ".join(WRITERS)
            raise ValueError(f"<!-- table: {match['name']} --> is not one of {known}.")
        return f"{match['open']}{WRITERS[match['name']]()}\n{match['close']}"

    return BLOCK.sub(block, text)


def fresh() -> dict[Path, str]:
    """What the two pages should hold."""
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    return {ROOT / PAGE: rewrite(text), ROOT / NAMES: all_names()}


def main(arguments: list[str]) -> int:
    """Rewrite the pages, or only say that they would change."""
    old = 0
    for path, text in fresh().items():
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        old = 1
        if arguments == ["--check"]:
            print(f"{path.name} is old: run `.venv/bin/python tools/teaching.py`.")
        else:
            path.write_text(text, encoding="utf-8", newline="\n")
            print(f"{path.name}: written.")
    return int(arguments == ["--check"] and bool(old))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
