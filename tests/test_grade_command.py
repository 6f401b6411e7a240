"""`attnlib grade` as a teacher types it: grades, refusals, all ways to be ended."""

from __future__ import annotations

import contextlib
import csv
import functools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from attnlib.__main__ import main
from attnlib.commands import grade as command
from attnlib.exercises import get
from attnlib.grading import outputs, run
from attnlib.grading.progress import Progress
from attnlib.grading.sandbox import choose as choosing

SETUP = "import numpy as np\nfrom attnlib import attention"
WRONG = "def softmax(x, axis=-1):\n    return np.exp(x) / np.exp(x).sum()"
SLOW = "def softmax(x, axis=-1):\n    while True:\n        pass"
RIGHT = {
    name: get(name).solution_source
    for name in ("softmax", "scaled_dot_product", "distance_to_possible")
}


@functools.cache
def sandboxed():
    """What to add to a command where there is no sandbox."""
    try:
        choosing.choose()
    except choosing.NoSandbox:
        return ("--allow-unsandboxed",)
    return ()


def notebook(path, *cells):
    found = [{"cell_type": "code", "source": cell} for cell in (SETUP, *cells)]
    path.write_text(json.dumps({"cells": found}), encoding="utf-8")


@pytest.fixture
def room(tmp_path):
    """A folder with a class in it, and a secret beside it."""
    (tmp_path / "class").mkdir()
    (tmp_path / "secret").write_bytes(bytes(range(100, 140)))
    notebook(tmp_path / "class" / "ada.ipynb", *RIGHT.values())
    notebook(tmp_path / "class" / "bob.ipynb", WRONG)
    (tmp_path / "class" / "eve.ipynb").write_text("{")
    return tmp_path


def line(room, *more, out="out"):
    seed = ("--seed-file", str(room / "secret"))
    where = (str(room / "class"), "-o", str(room / out))
    return ["grade", *where, *seed, "--lesson", "01", *sandboxed(), *more]


def table(room, out="out"):
    with (room / out / "grades.csv").open(encoding="utf-8-sig", newline="") as file:
        return [tuple(row.values()) for row in csv.DictReader(file)]


def test_a_class_is_graded(room, capsys):
    (room / "list.csv").write_text("student,name,id\nada,Ada L,1\nzoe,Zoë,2\n")
    assert main(line(room, "--roster", str(room / "list.csv"))) == command.LOOK
    said = capsys.readouterr()
    assert said.out.splitlines()[0].startswith("Sandbox: ")
    counted = "4 students, 2 graded, 1 could not be read, 1 not handed in."
    assert counted in said.out
    assert "3 of 3 graded" in said.err
    found = {row[:2]: row[2:] for row in table(room)}
    assert found["ada", "softmax"] == ("10", "10", "passed", "")
    assert found["bob", "softmax"][2:] == ("mistake", "axis_all; not_stable")
    assert found["bob", "scaled_dot_product"] == ("0", "10", "missing", "")
    assert found["eve", "softmax"] == ("", "10", "unreadable", "")
    assert found["zoe", "softmax"] == ("", "10", "not handed in", "")
    assert sorted(p.name for p in (room / "out").iterdir()) == [
        *("canvas.csv", "class.html", "feedback", "grades.csv", "gradescope"),
        *("journal.jsonl", "moodle.csv"),
    ]
    secret = (room / "secret").read_bytes()
    for path in (room / "out").rglob("*"):
        assert path.is_dir() or secret not in path.read_bytes()


def test_students_are_counted_as_on_the_page_of_the_class(tmp_path, capsys):
    (tmp_path / "class" / "ada").mkdir(parents=True)
    (tmp_path / "secret").write_bytes(bytes(range(100, 140)))
    notebook(tmp_path / "class" / "ada" / "01_three_tokens.ipynb", WRONG)
    notebook(tmp_path / "class" / "ada" / "03_masks.ipynb", "def causal(n): return n")
    given = [word for word in line(tmp_path) if word not in ("--lesson", "01")]
    assert main(given) == command.ALL_WELL
    assert "1 student, 1 graded (2 notebooks)." in capsys.readouterr().out
    assert "1 student, 1 graded." in (tmp_path / "out" / "class.html").read_text()


def test_the_file_of_one_student_is_graded(room, capsys):
    given = line(room)
    given[1] = str(room / "class" / "bob.ipynb")
    assert main(given) == command.ALL_WELL
    assert {row[0] for row in table(room)} == {"bob"}
    for name, said in (("x.csv", "is no folder, zip"), ("y.ipynb", "There is no")):
        (room / "x.csv").touch()
        given = line(room, out=name)
        given[1] = str(room / name)
        given[3] = str(room / "other")
        assert main(given) == command.REFUSED
        assert said in capsys.readouterr().err


def test_a_column_of_the_list_that_is_not_known_is_told(room, capsys):
    (room / "list.csv").write_text("student,kennung\nada,1\nbob,2\n")
    main(line(room, "--roster", str(room / "list.csv")))
    said = "is not known here. Known are: student"
    assert said in capsys.readouterr().out
    assert said in (room / "out" / "class.html").read_text()


def test_the_help_names_what_comes_out(capsys):
    with pytest.raises(SystemExit):
        main(["grade", "--help"])
    said = capsys.readouterr().out
    for name in ("grades.csv", "class.html", "moodle_feedback.zip"):
        assert name in said


def test_the_same_seed_gives_the_same_bytes_whatever_j_and_another_may_not(room):
    contents = []
    for jobs in ("1", "3"):
        main(line(room, "-j", jobs, out=jobs))
        files = sorted(p for p in (room / jobs).rglob("*") if p.is_file())
        contents.append(
            {
                p.relative_to(room / jobs): p.read_bytes()
                for p in files
                if p.name != outputs.JOURNAL
            }
        )
    assert contents[0] == contents[1]
    assert len(contents[0]) > 5


def test_resume_grades_only_what_is_new_or_changed(room, monkeypatch):
    main(line(room))
    before = table(room)
    journal = room / "out" / outputs.JOURNAL
    n = len(journal.read_text().splitlines())
    main(line(room, "--resume"))
    assert len(journal.read_text().splitlines()) == n  # nothing was graded again
    assert table(room) == before
    notebook(room / "class" / "bob.ipynb", *RIGHT.values())
    notebook(room / "class" / "cid.ipynb", WRONG)
    main(line(room, "--resume"))
    assert len(journal.read_text().splitlines()) == n + 2
    found = {row[:2]: row[4] for row in table(room)}
    assert found["bob", "softmax"] == "passed"
    assert found["cid", "softmax"] == "mistake"


def refused(room, capsys, *more, **kind):
    assert main(line(room, *more, **kind)) == command.REFUSED
    said = capsys.readouterr().err
    assert said.startswith("attnlib grade: ")
    assert "Traceback" not in said
    return said


def test_grades_of_another_run_are_neither_lost_nor_mixed(room, capsys):
    main(line(room))
    capsys.readouterr()
    assert "--resume" in refused(room, capsys)
    assert "another choice" in refused(room, capsys, "--resume", "--equal")
    (room / "secret").write_bytes(b"y" * 40)
    assert "another seed" in refused(room, capsys, "--resume")


def test_what_cannot_be_graded_is_said_in_a_sentence(room, capsys):
    assert "lies in" in refused(room, capsys, out="class/out")
    assert "is a file" in refused(room, capsys, out="secret")
    for folder in ("class", "out"):
        (room / folder).mkdir(exist_ok=True)
        (room / folder / "s").write_bytes(b"x" * 40)
        seed = ("--seed-file", str(room / folder / "s"))
        assert "move it elsewhere" in refused(room, capsys, *seed)
        (room / folder / "s").unlink()
    assert "no exercises" in refused(room, capsys, "--lesson", "99")
    assert "no folder" in refused(room, capsys, "--exercises", str(room / "none"))
    (room / "list.csv").write_text("")
    roster = ("--roster", str(room / "list.csv"))
    assert "list of students is empty" in refused(room, capsys, *roster)
    (room / "secret").write_bytes(b"")
    assert "is empty" in refused(room, capsys)


def test_without_a_sandbox_it_refuses(room, capsys, monkeypatch):
    monkeypatch.setattr(choosing, "candidates", lambda room, plain: [])
    assert "No sandbox works here" in refused(room, capsys)
    assert not (room / "out" / "grades.csv").exists()


def test_wrong_usage_is_said(room, capsys):
    for more in (("--lesson", "three"), ("-j", "0")):
        with pytest.raises(SystemExit) as end:
            main(line(room, *more))
        assert end.value.code == 2
    with pytest.raises(SystemExit):
        main(["grade", str(room / "class"), "-o", str(room / "out")])
    assert "--seed-file" in capsys.readouterr().err


def test_exercises_of_ones_own(room, capsys):
    own = room / "own"
    own.mkdir()
    (own / "mine.py").write_text(
        "from attnlib.exercises.exercise import ValueExercise\n"
        "EXERCISES = (ValueExercise('mine', 1, 3, 7, ('a', 'b', 'c'), 'So.',"
        " 'mine = 7'),)\n"
    )
    notebook(room / "class" / "ada.ipynb", *RIGHT.values(), "mine = 7")
    main(line(room, "--exercises", str(own)))
    found = {row[:2]: row[2:] for row in table(room)}
    assert found["ada", "mine"] == ("3", "3", "passed", "")
    assert found["bob", "mine"] == ("0", "3", "missing", "")


def test_a_disk_that_is_full_keeps_what_was_graded(room, capsys, monkeypatch):
    from attnlib.grading import journal as journals

    real, count = os.fsync, [0]

    def full(file):
        count[0] += 1
        if count[0] > 3:  # the head of the journal, and two students
            raise OSError(28, "No space left on device")
        real(file)

    monkeypatch.setattr(journals.os, "fsync", full)
    monkeypatch.setattr(command, "OFTEN", 1e9)
    assert main(line(room, "-j", "1")) == command.REFUSED
    said = capsys.readouterr().err
    assert "No space left on device" in said
    assert (
        "2 of 3 are graded and kept. Go on with the same command and --resume" in said
    )
    monkeypatch.undo()
    main(line(room, "--resume"))
    assert len({row[0] for row in table(room)}) == 3


def test_what_is_graded_when_somebody_ends_it_is_in_the_table(
    room, capsys, monkeypatch
):
    real, count = Progress.step, [0]

    def step(self, fresh=True):
        real(self, fresh)
        count[0] += 1
        if count[0] == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(Progress, "step", step)
    monkeypatch.setattr(command, "OFTEN", 1e9)  # no table until the end
    before = signal.getsignal(signal.SIGTERM)
    assert main(line(room)) == 128 + signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) is before
    assert "Ended. 2 of 3 are graded and kept." in capsys.readouterr().err
    assert len({row[0] for row in table(room)}) == 2
    assert not (room / "out" / "class.html").exists()


# --- ended from outside -------------------------------------------------------------
def started(room, *more):
    for number in range(4):
        notebook(room / "class" / f"s{number}.ipynb", SLOW)
    (room / "tmp").mkdir()  # a run that is killed leaves its files there
    environment = os.environ | {"ATTNLIB_MARK": str(room), "TMPDIR": str(room / "tmp")}
    process = subprocess.Popen(
        [sys.executable, "-m", "attnlib", *line(room, "-j", "2", *more)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )
    journal = room / "out" / outputs.JOURNAL
    until = time.monotonic() + 120
    while time.monotonic() < until:  # until the first students are graded
        if journal.exists() and len(journal.read_bytes().splitlines()) >= 3:
            break
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)
    return process


def left(room):
    """What still runs of a command: workers have its mark, sandboxes its room."""
    found = []
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if folder.name.isdecimal() and (
                str(room).encode() in (folder / "environ").read_bytes()
            ):
                found.append(folder.name)
    return found


def nothing_left(room):
    """Whether all of it ends: what was started last is not among `below`."""
    until = time.monotonic() + 40
    while left(room) and time.monotonic() < until:
        time.sleep(0.2)
    return left(room) == []


def children(pid):
    """All processes below one."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            found += [int(child), *children(child)]
    return found


def gone(pids):
    until = time.monotonic() + 40
    while time.monotonic() < until:
        alive = []
        for pid in pids:
            with contextlib.suppress(OSError):
                state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                if state[0] != "Z":
                    alive.append(pid)
        if not alive:
            return True
        time.sleep(0.2)
    return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_run_that_is_ended_says_how_to_go_on_and_leaves_nothing_running(room, number):
    process = started(room)
    below = children(process.pid)
    assert below
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "graded and kept. Go on with the same command and --resume." in said
    assert "Traceback" not in said
    assert gone(below)
    assert nothing_left(room)
    assert 0 < len({row[0] for row in table(room)}) < 7


def test_a_run_that_is_killed_has_whole_tables_and_leaves_nothing_running(room):
    process = started(room)
    below = children(process.pid)
    assert below
    process.kill()
    process.communicate()
    assert gone(below)
    assert nothing_left(room)
    path = room / "out" / outputs.GRADES
    if path.exists():  # one a second
        assert path.read_bytes().endswith(b"\r\n")
        assert {row[3] for row in table(room)} == {"10"}
    assert main(line(room, "--resume")) == command.LOOK
    assert len({row[0] for row in table(room)}) == 7


def test_nothing_is_imported_from_among_the_submissions(room):
    """Not even when it is started there: these names are imported late."""
    mark = room / "mark"
    for name in ("symtable", "subprocess", "multiprocessing", "torch", "plotly"):
        (room / "class" / f"{name}.py").write_text(f"open({str(mark)!r}, 'w')\n")
    subprocess.run(
        [sys.executable, "-m", "attnlib", *line(room)],
        cwd=room / "class",
        capture_output=True,
        check=False,
    )
    assert (room / "out" / "grades.csv").exists()
    assert not mark.exists()


def test_workers_do_not_search_the_folder_they_start_in():
    assert "sys.path[:]" in run.START
