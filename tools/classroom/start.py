"""`python course.py classroom`: a JupyterHub for trial, on this machine alone.

Standard library alone. This process is the parent of all: when it ends, all end.
"""

import argparse
import json
import secrets
import select
import subprocess
import sys
from pathlib import Path
from typing import TextIO

from tools import environment
from tools.address import START, pull_link
from tools.classroom import memory, needs
from tools.classroom.place import FOLDER, TOOLS, Place, prepare, settle
from tools.classroom.running import (
    free_port,
    hub,
    only_one,
    settings,
    stoppable,
    wait_until_up,
)
from tools.environment import CourseError, say

PORT = 8000
MOST = 100
SHORTEST = 8  # characters of a password; JupyterHub wants as many


def options(arguments: list[str]) -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="python course.py classroom",
        description="Starts a JupyterHub on this machine, for trial: students log in, "
        "pull the course, work, and hand in. All of them run under your account: this "
        "is no hub for a school (TEACHING.md says how to run one).",
    )
    parser.add_argument(
        "--students", type=int, default=3, metavar="N", help="how many (default: 3)"
    )
    parser.add_argument(
        "--port", type=int, default=PORT, help=f"of the hub (default: {PORT})"
    )
    parser.add_argument(
        "--password", help="of all students (default: a new one at each start)"
    )
    parser.add_argument(
        "--folder",
        type=Path,
        default=TOOLS,
        help="for homes and boxes (default: build/classroom)",
    )
    parser.add_argument(
        "--rehearse",
        metavar="LESSON",
        nargs="+",
        default=[],
        help="play the students: each opens these lessons, runs them and hands them "
        "in; then the memory is printed, and all ends",
    )
    given = parser.parse_args(arguments)
    if not 1 <= given.students <= MOST:
        raise CourseError(
            f"--students wants a number from 1 to {MOST}, and got {given.students}."
        )
    if not 0 <= given.port < 65536:
        raise CourseError(f"--port wants a number up to 65535, and got {given.port}.")
    if given.password is not None and len(given.password) < SHORTEST:
        raise CourseError(f"--password wants {SHORTEST} characters or more.")
    for number in given.rehearse:
        lesson_file(number)
    return given


def lesson_file(number: str) -> str:
    """The way to a lesson from a student's home."""
    found = sorted((environment.ROOT / "notebooks").glob(f"{number}_*.ipynb"))
    if len(found) != 1:
        raise CourseError(f"there is no lesson {number}; write two digits, such as 03.")
    return f"{FOLDER}/notebooks/{found[0].name}"


def names(n: int) -> list[str]:
    """The students' names."""
    return [f"student{i}" for i in range(1, n + 1)]


def link(place: Place, url: str, lesson: str = START) -> str:
    """What a student clicks: it pulls the course and opens a lesson."""
    return pull_link(url, place.course.as_uri(), FOLDER, lesson)


def greeting(place: Place, url: str, students: list[str], password: str) -> str:
    """What stands on the screen while a classroom runs."""
    last = f" to {students[-1]}" if students[1:] else ""
    boxes = place.root / "handed_in"
    return f"""
    {url}
    log in as   {students[0]}{last}, password {password}
    the link    {link(place, url)}
    hand in     in a cell of the lesson, after saving it: !attnlib handin 00
    grade       .venv/bin/attnlib grade {boxes} --seed-file SECRET -o OUT

For trial only: all students run under your account, and could read each other's files
and yours. The hub listens on this machine alone. Enter shows the memory; Ctrl-C ends.
"""


def watch(process: subprocess.Popen[bytes], stream: TextIO) -> None:
    """Stay until the hub ends; a line from the terminal shows the memory."""
    asked = [stream] if stream.isatty() else []
    while process.poll() is None:
        if select.select(asked, [], [], 2)[0]:
            if not stream.readline():
                asked = []
            else:
                print(memory.table(memory.measure(process.pid)), flush=True)
    say("the hub has ended by itself.")


def main(arguments: list[str]) -> int:
    """The command."""
    given = options(arguments)
    if sentence := needs.missing():
        raise CourseError(sentence)
    environment.ensure("notebooks")
    place, students = Place(given.folder.resolve()), names(given.students)
    password = given.password or secrets.token_hex(4)
    with only_one(place), stoppable():
        prepare(place)
        settle(place, students)
        port = free_port(given.port)
        if given.port not in (0, port):
            say(f"port {given.port} is taken, so the hub takes {port}.")
        url = f"http://127.0.0.1:{port}"
        with hub(place, settings(place, students, port, password)) as process:
            say("starting the hub.")
            wait_until_up(process, url, place.hub / "hub.log")
            print(greeting(place, url, students, password), flush=True)
            if given.rehearse:
                return rehearse(process, place, url, students, password, given.rehearse)
            watch(process, sys.stdin)
    say("everything that the classroom started has ended.")
    return 0


def rehearse(
    process: subprocess.Popen[bytes],
    place: Place,
    url: str,
    students: list[str],
    password: str,
    lessons: list[str],
) -> int:
    """Let a program play the students."""
    told = {
        "url": url,
        "repo": place.course.as_uri(),
        "students": students,
        "password": password,
        "hub": process.pid,
        "lessons": lessons,
    }
    command = [environment.python(), "-m", "tools.classroom.rehearse"]
    done = subprocess.run(
        command,
        input=json.dumps(told),
        text=True,
        cwd=environment.ROOT,
        env=environment.variables(),
        check=False,
    )
    return done.returncode
