"""Play the students of a classroom, all at once, and measure what they take.

`python course.py classroom --rehearse 03 06` starts it with what it needs to know on
the standard input. It needs packages of the course's .venv.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from tools.address import pull_link
from tools.classroom import memory
from tools.classroom.place import FOLDER
from tools.classroom.start import lesson_file
from tools.classroom.student import Student, text
from tools.environment import say

MACHINE, SYSTEM = 16e9, 1e9  # the example: its memory, and what the system itself takes


@dataclass
class Highest:
    """The moment at which a classroom took most, looked for twice a second."""

    hub: int
    taken: list[memory.Taken] = field(default_factory=list)

    def during(self, work: Callable[[], object]) -> list[memory.Taken]:
        """Do something and return what was taken at the highest moment of it."""
        self.taken, ended = [], threading.Event()

        def look() -> None:
            while not ended.wait(0.5):
                now = memory.measure(self.hub)
                if memory.total(now) > memory.total(self.taken):
                    self.taken = now

        watcher = threading.Thread(target=look)
        watcher.start()
        try:
            work()
        finally:
            ended.set()
            watcher.join()
        return self.taken


def all_at_once(students: Iterable[Student], work: Callable[[Student], Any]) -> None:
    """Let every student do the same, each in a thread."""
    students = list(students)
    with ThreadPoolExecutor(len(students)) as pool:
        list(pool.map(work, students))


def rehearse(told: dict[str, Any]) -> None:
    """The whole play."""
    hub, url = told["hub"], told["url"]
    students = [Student(url, name) for name in told["students"]]
    first = lesson_file(told["lessons"][0])
    link = pull_link(url, told["repo"], FOLDER, first.partition("/")[2])
    alone = memory.total(memory.measure(hub))
    say(f"the hub and its proxy: {memory.mb(alone)}.")

    def arrive(student: Student) -> None:
        if not student.log_in(told["password"]):
            raise SystemExit(f"course.py: {student.name} was not let in.")
        student.start()
        student.pull(link)

    all_at_once(students, arrive)
    if taken := memory.measure(hub):
        each = (memory.total(taken) - alone) / len(students)
        say(f"{len(students)} students are in, {memory.mb(each)} each for the server.")
    for number in told["lessons"]:
        lesson(number, students, hub, alone)


def lesson(number: str, students: list[Student], hub: int, base: float) -> None:
    """All open one lesson, run it, hand it in, and close it."""
    path = lesson_file(number)
    kernels = {}

    def work(student: Student) -> None:
        kernels[student.name], _ = student.run(path)

    taken = Highest(hub).during(lambda: all_at_once(students, work))
    print(f"\nlesson {number}, {len(students)} kernels, at the highest moment:")
    print(memory.table(taken))
    if taken:
        say(arithmetic(number, taken, memory.measure(hub), len(students), base))

    def leave(student: Student) -> None:
        kernel = kernels[student.name]
        print(text(kernel.do(f"!attnlib handin {number}")).strip())
        kernel.stop()

    all_at_once(students, leave)


def arithmetic(
    number: str,
    taken: list[memory.Taken],
    after: list[memory.Taken],
    n: int,
    base: float,
) -> str:
    """How many students a machine holds, by what some took."""
    kernel = memory.total(taken, "kernel") / n
    work = sum(one.seconds for one in after if one.kind == "kernel") / n
    each = (memory.total(taken) - base) / n
    fit = memory.students_that_fit(MACHINE - SYSTEM, base, each)
    return (
        f"lesson {number}: {memory.mb(kernel)} each for the kernel, {memory.mb(each)} "
        f"with the server, {work:.0f} s of a core; 16 GB hold {fit} students."
    )


if __name__ == "__main__":
    rehearse(json.load(sys.stdin))
