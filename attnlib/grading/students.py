"""Who handed a file in, and which lesson it is, read off the names on its way.

Known are the names that Moodle, Canvas, Blackboard, Brightspace and Sakai give to what
they hand out. Elsewhere it is the first folder (or archive) below the one of the class,
or the name of a file that lies in no folder.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from attnlib.grading import letters

Parts = tuple[str, ...]

LESSONS = (
    "start_here",
    "three_tokens",
    "why_sqrt_dk",
    "masks",
    "many_heads",
    "numpy_to_torch",
    "inside_a_real_model",
    "words_look_at_a_picture",
    "where_am_i",
    "starting_and_staying_stable",
    "the_attention_clinic",
    "what_it_costs",
    "flash_attention",
    "cheaper_patterns",
    "shaping_heads",
    "the_help_desk",
    "beyond_one_machine",
    "bug_bash",
)
_ENDING = re.compile(
    r"(?:\.(?:ipynb|py|zip|json|txt|rar|7z|t?gz|tar|pdf|html?|docx?))*$"
    r"|\.(?:ipynb|zip)[ _]?\(\d+\)$",
    re.I,
)
_COPY = re.compile(r"(?:[ _-]*(?:copy|kopie|副本)[ _]?(\d*)|[ _]?\((\d+)\))$", re.I)
_AGAIN = re.compile(r"-(\d{1,2})$")  # Canvas, when something is handed in again
_BETWEEN = re.compile(r"[\s_.-]+")
_WORDS = {"lesson", "lektion", "homework", "hw", "assignment", "submission", "notebook"}
_WORDS |= {
    "submissions",
    "abgaben",
    "exercises",
    "solution",
    "solutions",
    "solved",
    "answers",
    "final",
    "abgabe",
    "exercise",
}
_OF_LESSONS = {w for lesson in LESSONS for w in lesson.split("_") if len(w) > 2}
_OF_THE_COURSE = {
    "notebooks",
    "attnlib",
    "tests",
    "docs",
    "tools",
    "benchmarks",
    "source",
}
_OF_THE_COURSE |= {"binder", "data", "src", "build", "solved", "images", "course"}

_SYSTEMS = (
    # Moodle: Alice Smith_12345_assignsubmission_file_/03_masks.ipynb
    re.compile(
        r"(?P<name>.+?)_(?P<id>\d+)_assignsubmission_(?:file|onlinetext)_?(?P<rest>.*)"
    ),
    # Blackboard: 03 Masks_asmith_attempt_2026-10-01-23-59-00_03_masks.ipynb
    re.compile(
        r"(?P<task>.+)_(?P<name>[^_]+)_attempt_(?P<when>\d{4}(?:-\d\d){5})_?(?P<rest>.*)"
    ),
    # Brightspace: 1234-567 - Alice Smith - Oct 1, 2026 1159 PM - 03_masks.ipynb
    re.compile(
        r"(?P<id>\d+)-\d+ - (?P<name>.+?) - (?:\d+ )?\w+ ?\d*,? \d{4} \d{3,4} ?[AP]M"
        r"(?: - (?P<rest>.*))?"
    ),
    # Sakai: Smith, Alice(asmith)/Submission attachment(s)/03_masks.ipynb
    re.compile(r"(?P<name>[^(),]+, [^(),]+)\((?P<id>[^()]+)\)(?P<rest>)"),
    # Canvas: smithalice_LATE_12345_67890_03_masks-1.ipynb
    re.compile(
        r"(?P<name>[^_\d][^_]*)_(?:LATE_)?(?P<id>\d{3,})_\d{3,}_(?P<rest>.+)", re.I
    ),
)


@dataclass(frozen=True)
class Origin:
    """Who handed a file in: the name, the number a system gave them, the lesson."""

    student: str
    system_id: str = ""
    lesson: int | None = None
    attempt: str = ""  # of a system that names the time of handing in
    place: int = 0  # which part of the path names the student
    file: str = ""  # the file's own name, before a system renamed it

    @property
    def key(self) -> tuple[str, str]:
        """The same for all files of one student.

        A number says who it is, however the name is written. Without one, Ann and ann
        may be two, and neither may lose a grade to the other.
        """
        spelt = letters.key if self.system_id else letters.clean
        return spelt(self.student), self.system_id


def stem(name: str) -> str:
    """A file's name without .ipynb, .zip and what browsers add to them."""
    return _ENDING.sub("", name).strip() or name


def without_copy(name: str, again: bool = False) -> tuple[str, int]:
    """A stem without `(1)` or `-Copy1`, and that number; or also without `-1`."""
    found = _COPY.search(name) or (_AGAIN.search(name) if again else None)
    if not found or not found.start():
        return name, 0
    number = next((group for group in found.groups() if group), "1")
    return name[: found.start()], int(number)


def origins(paths: Sequence[Parts]) -> list[Origin]:
    """Who handed in each file. All paths at once: what is common says nothing.

    Args:
        paths: for each file its folders and archives, below the folder of the class,
            and its name.
    """
    known = [_by_system(path) for path in paths]
    others = [path for path, found in zip(paths, known, strict=True) if not found]
    # The folders and archives in which a system's names stand. Who lies there without
    # one is named at that depth; beside them lies, say, who sent a mail.
    ways = {p[: found.place] for p, found in zip(paths, known, strict=True) if found}
    around = [[len(way) for way in ways if path[: len(way)] == way] for path in others]
    beside = [path for path, there in zip(others, around, strict=True) if not there]
    alone = _depth(beside)
    tops = {
        path: path[min(max(there, default=alone), len(path) - 1)]
        for path, there in zip(others, around, strict=True)
    }
    different = sorted(set(tops.values()))
    names = dict(zip(different, _names(different), strict=True))
    return [
        found or Origin(names[tops[path]], lesson=lesson_of(path), file=path[-1])
        for path, found in zip(paths, known, strict=True)
    ]


def lesson_of(path: Parts) -> int | None:
    """The number of the lesson that the file's name, or a folder's, tells."""
    for part in reversed(path):
        plain = _plain(part)
        for number, name in enumerate(LESSONS):
            if f"{number:02}_{name}" in plain or (len(name) > 8 and name in plain):
                return number
    words = _plain(path[-1]).split("_")
    digits = next((word for word in words if word.isdecimal()), "")
    rest = [word for word in words if not word.isdecimal()]
    if len(digits) == 2 and int(digits) < len(LESSONS) and _WORDS.issuperset(rest):
        return int(digits)
    return None


def _by_system(path: Parts) -> Origin | None:
    for place, part in enumerate(path):
        for system in _SYSTEMS:
            found = system.fullmatch(part if place < len(path) - 1 else stem(part))
            if not found:
                continue
            has = found.groupdict()
            rest = [has["rest"]] if has.get("rest") else []
            return Origin(
                has["name"].strip(),
                has.get("id", "") or "",
                lesson_of((*rest, *path[place + 1 :]) or (part,)),
                has.get("when", "") or "",
                place,
                rest[0] if rest and place == len(path) - 1 else path[-1],
            )
    return None


def _plain(name: str) -> str:
    """A name as words with one `_` between them."""
    words = _BETWEEN.split(stem(name).casefold())
    return "_".join(word for word in words if word)


def _depth(paths: Iterable[Parts]) -> int:
    """How many folders stand around the whole class, such as submissions/hw3/."""
    paths = list(paths)
    depth = best = 0
    while paths:
        tops = {path[depth] for path in paths}
        flat = [len(path) == depth + 1 for path in paths]
        around = next(iter(paths))[depth - 1] if depth else "class.zip"
        of_class = around.casefold().endswith(".zip") or _is_lesson(around)
        if any(flat):
            if depth and all(flat) and of_class and not any(map(_is_lesson, tops)):
                best = depth  # a download of single files
            break
        if len(tops) > 1:
            if of_class and all(map(_is_lesson, tops)):
                best = depth + 1  # a folder for each lesson, with its students
            elif not any(_plain(t) in _OF_THE_COURSE or _is_lesson(t) for t in tops):
                best = depth
            break
        depth += 1
    return best


def _is_lesson(name: str) -> bool:
    """Whether a name says a lesson and nothing else; a bare number may be anyone's."""
    words = re.findall(r"[^\W\d_]+", _plain(name))
    rest = "_".join(word for word in words if word not in _WORDS)
    return bool(words) and (not rest or rest in LESSONS)


def _names(tops: Sequence[str]) -> list[str]:
    """The students' names in the names of folders, archives and single files."""
    words = [[w for w in re.split(r"([\s_.-]+)", stem(top)) if w] for top in tops]
    if len(words) > 1:
        for at in (0, -1):
            while all(len(w) > 1 for w in words) and _common(words, at):
                for one in words:
                    del one[at]
    joined = ("".join(one).strip(" _.-") for one in words)
    whole = [one or stem(top) for one, top in zip(joined, tops, strict=True)]
    # `team (1)` and `team (2)` are two teams, `alice (1)` beside `alice` is a copy.
    numbered = [without_copy(one) for one in whole]
    counts = Counter(name for name, _ in numbered)
    bare = {name for name, copy in numbered if not copy}
    several = {name for name, count in counts.items() if count > 1} - bare
    return [
        _name(one if name in several else name)
        for one, (name, _) in zip(whole, numbered, strict=True)
    ]


def _common(words: list[list[str]], at: int) -> bool:
    """Whether the word at this end is the same in all names, and of the lesson."""
    ends = {w[at].casefold() for w in words}
    if len(ends) > 1:
        return False
    (end,) = ends
    short = end.isdecimal() and len(end) < 3
    return short or end in _WORDS | _OF_LESSONS or not end.strip(" _.-")


def _name(text: str) -> str:
    """A name without the lesson's."""
    for number, lesson in enumerate(LESSONS):
        pattern = lesson.replace("_", r"[\s_.-]+")
        whole = rf"(?i)[\s_.-]*\b{number:02}[\s_.-]+{pattern}[\s_.-]*"
        rest = re.sub(whole, " ", text)
        rest = re.sub(rf"(?i)_{number:02}_{pattern}(?![a-z])", " ", rest)
        if rest != text and rest.strip(" _.-"):
            return rest.strip(" _.-")
    return text
