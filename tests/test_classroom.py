"""A classroom that really runs: two students log in, pull, work, hand in, get grades.

The hub is started as a teacher starts it, by `python course.py classroom`, in a folder
of its own. Where there is no npm all of this is skipped; its parts are tested without
a hub in test_classroom_parts.
"""

from __future__ import annotations

import contextlib
import csv
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from browser import chromium, eventually, watched

from attnlib.__main__ import main
from attnlib.exercises import get, names
from tools.browsers import find_browser
from tools.classroom import family, needs
from tools.classroom.student import Kernel, Student, text

MISSING = needs.missing()
pytestmark = [
    pytest.mark.skipif(
        sys.platform != "linux", reason="the processes are looked up in /proc"
    ),
    pytest.mark.skipif(MISSING is not None, reason=MISSING or ""),
]
ROOT = Path(__file__).resolve().parent.parent
NO_NETWORK = "could not be downloaded"
LESSON = "attention-by-hand/notebooks/03_masks.ipynb"


@dataclass
class Classroom:
    """A running one, and what it said."""

    process: subprocess.Popen[str]
    folder: Path
    said: str

    @property
    def url(self) -> str:
        return re.search(r"http://127\.0\.0\.1:\d+$", self.said, re.M)[0]  # type: ignore[index]

    @property
    def password(self) -> str:
        return re.search(r"password (\S+)", self.said)[1]  # type: ignore[index]

    @property
    def link(self) -> str:
        return re.search(r"the link +(\S+)", self.said)[1]  # type: ignore[index]

    def end(self, number: signal.Signals) -> str:
        """Ask it to end, or make it; the rest that it said."""
        self.process.send_signal(number)
        assert self.process.stdout
        return self.process.stdout.read()


@contextlib.contextmanager
def classroom(folder: Path, students: int) -> Iterator[Classroom]:
    command = [sys.executable, "course.py", "classroom", "--port", "0"]
    command += ["--students", str(students), "--folder", str(folder)]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    said = ""
    try:
        assert process.stdout
        for line in process.stdout:
            said += line
            if "Ctrl-C ends" in line:
                break
        else:
            if NO_NETWORK in said:
                pytest.skip(said.strip().splitlines()[-1])
            raise AssertionError(said)
        yield Classroom(process, folder, said)
    finally:
        process.terminate()
        process.communicate()


def below(pid: int) -> dict[int, str]:
    """What a process started, all of it, by what it is."""
    return {one: family.command(one) for one in family.descendants(pid)}


def left(were: dict[int, str], patience: float = 60) -> dict[int, str]:
    """Which of them are still there after a while."""
    deadline = time.monotonic() + patience
    while True:
        now = {pid: line for pid, line in were.items() if family.command(pid) == line}
        now = {pid: line for pid, line in now.items() if line}
        if not now or time.monotonic() > deadline:
            return now
        time.sleep(0.1)


def answer(student: Student, *solved: str) -> Kernel:
    """Fill exercises in, save, and run their cells and checks in a kernel."""
    notebook, kernel = student.notebook(LESSON), student.open(LESSON)
    for cell in notebook["cells"]:
        source, tags = "".join(cell["source"]), cell["metadata"].get("tags", [])
        for name in solved:
            if source.strip() == get(name).stub_source.strip():
                cell["source"] = source = get(name).solution_source
        if {"setup", "exercise", "check"} & set(tags):
            cell["outputs"] = kernel.do(source)
            assert "Traceback" not in text(cell["outputs"])
    student.save(LESSON, notebook)
    return kernel


def test_two_students_work_hand_in_and_get_grades(tmp_path: Path) -> None:
    first, *others = names(3)
    with (
        classroom(tmp_path / "class", 2) as room,
        Student(room.url, "student1") as one,
        Student(room.url, "student2") as two,
        Student(room.url, "student3") as stranger,
    ):
        assert not one.log_in("not the password")
        assert not stranger.log_in(room.password)
        for student, solved in ((one, [first, *others]), (two, [first])):
            assert student.log_in(room.password)
            student.start()
            opens = student.pull(room.link.replace("00_start_here", "03_masks"))
            assert urlsplit(opens).path == f"/user/{student.name}/lab/tree/{LESSON}"
            assert student.web.get(opens).status_code == 200
            kernel = answer(student, *solved)
            checked = text(kernel.do(f"check({first!r}, {first})"))
            assert checked.startswith(f"{first}: passed")
            where = text(kernel.do("import os; print(os.getcwd())")).strip()
            home = tmp_path.resolve() / "class" / "homes" / student.name
            assert Path(where) == (home / LESSON).parent
            said = text(kernel.do("!attnlib handin 03"))
            assert f"{len(solved)} of {1 + len(others)} exercises begun" in said
        # Nobody gets into the server of another one: through the hub they are apart.
        assert one.web.get(f"{two.base}/api/contents").status_code in (403, 404)
        look(room, two)
        started = below(room.process.pid)
        kinds = "jupyterhub -f", "singleuser", "ipykernel", "configurable-http-proxy"
        for words, count in zip(kinds, (1, 2, 2, 1), strict=True):
            assert sum(words in line for line in started.values()) >= count, words
        assert "everything that the classroom started has ended" in room.end(
            signal.SIGINT
        )
        assert room.process.wait() == 0
        assert left(started, 0) == {}
    grade(tmp_path, len(others))


def look(room: Classroom, student: Student) -> None:
    """The same in a browser: the form, the link, the lesson in JupyterLab."""
    if find_browser() is None:
        return
    with chromium() as browser, watched(browser) as watch:
        page = watch.page
        page.goto(f"{room.url}/hub/login")
        page.fill("#username_input", student.name)
        page.fill("#password_input", room.password)
        page.click("#login_submit")
        page.wait_for_url(f"{student.base}/lab**", timeout=120_000)
        page.goto(room.link.replace("00_start_here", "03_masks"))
        page.wait_for_url(f"{student.base}/lab/tree/{LESSON}", timeout=120_000)
        shown = "() => document.querySelector('.jp-Notebook .jp-Cell .jp-RenderedHTML')"
        eventually(page, "the lesson in JupyterLab", shown)
        assert "Who may look at whom?" in page.inner_text(".jp-Notebook")
        screens = ROOT / "build" / "screens"
        screens.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=screens / "classroom.png")
        assert watch.outside == []


def grade(folder: Path, others: int) -> None:
    """What was handed in gets the points that it should."""
    (folder / "secret").write_bytes(b"no student sees this")
    told = ["grade", str(folder / "class" / "handed_in"), "--lesson", "03"]
    told += ["--seed-file", str(folder / "secret"), "-o", str(folder / "out")]
    assert main([*told, "--allow-unsandboxed"]) == 0
    with (folder / "out" / "grades.csv").open(encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    states = [(row["student"], row["status"]) for row in rows]
    assert states.count(("student1", "passed")) == 1 + others
    assert states.count(("student2", "passed")) == 1
    assert states.count(("student2", "not started")) == others
    for row in rows:
        assert (row["points"] == row["of"]) == (row["status"] == "passed")


def test_nothing_stays_when_the_command_is_killed(tmp_path: Path) -> None:
    with (
        classroom(tmp_path / "class", 1) as room,
        Student(room.url, "student1") as student,
    ):
        assert student.log_in(room.password)
        student.start()
        started = below(room.process.pid)
        assert any("singleuser" in line for line in started.values())
        room.process.kill()
        room.process.wait()
        stayed = left(started)
        for pid in stayed:  # a failure of this test is no reason to leave them
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        assert stayed == {}
