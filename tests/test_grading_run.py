"""Many files in a few processes: nothing that one does costs another its grades."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

import grading_fakes as fakes
import pytest
from grading_class import grade, graded

from attnlib.exercises import get, names
from attnlib.grading import plan, run, worker
from attnlib.grading.asked import Asked
from attnlib.grading.folder import Handed
from attnlib.grading.notebook import read
from attnlib.grading.plan import Task
from attnlib.grading.progress import Progress, roughly
from attnlib.grading.roster import Student
from attnlib.grading.run import Pool
from attnlib.grading.secret import SecretError
from attnlib.grading.secret import read as read_secret
from attnlib.grading.worker import Settings, Worker


def task(student, where="", **more):
    return Task(student, Handed(student, where or f"{student}.ipynb", **more))


def settings(asked=None, **more):
    return Settings("secret", asked or Asked(1), None, **more)


def graded_by(students, count=2, known="", **more):
    with Pool(count, settings(), start=fakes.START, **more) as pool:
        found = dict(pool.graded([(task(s), known) for s in students]))
        pids = [one._process.pid for one in pool._workers]
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    return {one.student: done for one, done in found.items()}


def statuses(done):
    return [one.status for one in done.graded.grades]


# --- the pool -----------------------------------------------------------------------
def test_each_file_comes_back_once_and_workers_are_used_again():
    students = [f"s{n}" for n in range(9)]
    found = graded_by(students)
    assert sorted(found) == students
    assert all(statuses(done) == ["passed"] for done in found.values())
    pids = {done.graded.grades[0].notes for done in found.values()}
    assert 1 <= len(pids) <= 2


def test_what_is_known_is_not_graded_again():
    assert graded_by(["ada"], known="same")["ada"].graded is None


def test_a_worker_that_ends_costs_nobody_else_anything(tmp_path):
    once = f"once {tmp_path / 'mark'}"
    found = graded_by(["a", "kill", once, "early", "raise", "b"])
    assert statuses(found["a"]) == statuses(found["b"]) == ["passed"]
    assert statuses(found[once]) == ["passed"]  # tried a second time
    assert statuses(found["kill"]) == ["ungraded"]
    text = found["kill"].graded.grades[0].text
    assert text.startswith("Not graded. That is a fault of the grader, and no zero")
    assert "2 times" in text
    assert found["early"].graded.status == "unreadable"
    assert "the grader is at fault" in found["raise"].graded.grades[0].text
    assert found["kill"].hash == ""  # so that it is graded when a run goes on


def test_a_worker_that_hangs_is_ended():
    found = graded_by(["a", "hang"], count=1, longest=8.0)  # also to start
    assert statuses(found["hang"]) == ["ungraded"]
    assert "took longer than" in found["hang"].graded.grades[0].text
    assert statuses(found["a"]) == ["passed"]


def test_workers_are_replaced_after_some_files(monkeypatch):
    monkeypatch.setattr(run, "FILES", 2)
    found = graded_by([f"s{n}" for n in range(6)], count=1)
    assert len({done.graded.grades[0].notes for done in found.values()}) == 3


def test_a_run_that_is_interrupted_ends_its_workers():
    with Pool(2, settings(), start=fakes.START) as pool:
        todo = pool.graded([(task(s), "") for s in ("a", "hang", "hang 2", "b")])
        next(todo)
        pids = [one._process.pid for one in pool._workers]
        with pytest.raises(KeyboardInterrupt):
            todo.throw(KeyboardInterrupt)
    assert len(pids) == 2
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


KILLED = """
import json, os, signal, sys
sys.path[:] = json.loads(sys.argv[1])
import grading_fakes as fakes
from test_grading_run import Pool, settings, task
with Pool(1, settings(), start=fakes.START) as pool:
    todo = pool.graded([(task("a"), "")])
    next(todo)
    pool._workers[0].give(task("hang"), "", 1)
    while pool._workers[0].begun is None:  # it is at work
        pool._workers[0].begun = pool._workers[0].line.recv()
    print(pool._workers[0]._process.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it ends after its file")
def test_workers_end_with_a_program_that_was_killed():
    """Even one that hangs and hears no other signal."""
    path = json.dumps([place for place in sys.path if place])
    done = subprocess.run(
        [sys.executable, "-c", KILLED, path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -9, done.stderr
    stat = Path(f"/proc/{int(done.stdout)}/stat")
    for _ in range(200):
        time.sleep(0.1)
        try:
            if stat.read_text().rpartition(")")[2].split()[0] == "Z":
                return
        except OSError:
            return
    pytest.fail("the worker is still there")


def test_nothing_secret_is_in_the_arguments_or_the_environment():
    with Pool(1, settings(), start=fakes.START) as pool:
        todo = pool.graded([(task("a"), ""), (task("b"), "")])
        next(todo)
        folder = Path("/proc") / str(pool._workers[0]._process.pid)
        assert b"secret" not in (folder / "cmdline").read_bytes()
        said = dict(os.environ)
        told = (folder / "environ").read_bytes()
        assert told.count(b"secret") <= sum(v.count("secret") for v in said.values())


def test_settings_and_tasks_go_over_the_wire():
    asked = Asked(1)
    assert asked.all  # worked out, and yet sent
    for one in (settings(asked), task("a"), fakes.Done("h", graded("a", grade()))):
        assert pickle.loads(pickle.dumps(one)) == one


# --- one file -----------------------------------------------------------------------
def notebook(*cells):
    found = [{"cell_type": "code", "source": cell} for cell in cells]
    return json.dumps({"cells": found}).encode()


def file(folder, name, *cells):
    path = folder / name
    path.write_bytes(notebook(*cells))
    return Handed("ada", name, path=path)


def test_a_file_is_graded_for_its_lesson(tmp_path):
    """By the lesson of the class, else by its name, else by what is in it."""
    stub = get("entropy").stub_source
    handed = file(tmp_path, "x.ipynb", stub)
    lesson = get("entropy").lesson
    other = 5
    for asked, told, expected in (
        (Asked(lesson), other, lesson),
        (Asked(), other, other),
        (Asked(), None, lesson),
        (Asked(), 99, lesson),
    ):
        one = Task("ada", dataclasses.replace(handed, lesson=told))
        found = Worker(settings(asked)).grade(one).graded
        assert tuple(g.exercise for g in found.grades) == names(expected)


@pytest.mark.parametrize("named", [None, 1, 3])
def test_who_sent_only_another_lesson_has_not_handed_in(tmp_path, named):
    """As who sent two others: told, and no zero."""
    handed = file(tmp_path, "x.ipynb", get("softmax").solution_source)
    one = Task("ada", dataclasses.replace(handed, lesson=named))
    found = Worker(settings(Asked(3))).grade(one).graded
    assert (found.status, found.grades) == ("missing", ())
    assert found.problem == "There is nothing of lesson 03 in it, only of 01."


@pytest.mark.parametrize(
    ("named", "cells"),
    [
        (None, ["x = 1"]),  # of no lesson at all
        (3, ["x = 1"]),
        (1, ["def softmax(x): ...", f"check({names(3)[0]!r}, None)"]),  # renamed
        (1, [get(names(3)[0]).stub_source]),
    ],
)
def test_who_sent_the_lesson_and_no_answer_has_grades(tmp_path, named, cells):
    handed = file(tmp_path, "x.ipynb", *cells)
    one = Task("ada", dataclasses.replace(handed, lesson=named))
    found = Worker(settings(Asked(3))).grade(one).graded
    assert [grade.exercise for grade in found.grades] == [*names(3)]


def test_the_lesson_of_which_most_is_there_wins():
    cells = [f"{name} = ..." for name in names(3)] + [get("softmax").stub_source]
    assert Asked().lesson_in(read(notebook(*cells))) == 3
    assert Asked().lesson_in(read(notebook("x = 1"))) is None


def test_a_file_without_an_exercise_is_no_zero(tmp_path):
    found = Worker(settings(Asked())).grade(Task("a", file(tmp_path, "x.ipynb", "x=1")))
    assert found.graded.status == "unreadable"
    assert found.graded.problem == worker.EMPTY


def test_a_file_that_is_known_by_its_hash_is_left(tmp_path):
    handed = file(tmp_path, "x.ipynb", get("softmax").stub_source)
    one = Worker(settings())
    first = one.grade(Task("ada", handed))
    assert one.grade(Task("ada", handed), first.hash).graded is None
    (tmp_path / "x.ipynb").write_bytes(notebook("x = 1"))
    assert one.grade(Task("ada", handed), first.hash).graded is not None


def test_a_file_that_is_gone_is_unreadable(tmp_path):
    handed = Handed("ada", "x.ipynb", path=tmp_path / "x.ipynb")
    found = Worker(settings()).grade(Task("ada", handed))
    assert found.graded.status == "unreadable"
    assert Worker(settings()).grade(Task("ada", handed), found.hash).graded is None


# --- which files --------------------------------------------------------------------
def made(*handed, students=None, lesson=1):
    return plan.make(list(handed), students, lesson)


def one_file(student="ada", where="f", lesson=None, **more):
    return Handed(student, where, lesson=lesson, **more)


def test_of_several_files_the_one_of_the_lesson_is_graded():
    right, plain = one_file(where="r", lesson=1), one_file(where="p")
    other = one_file(where="o", lesson=4)
    for files, expected in (
        ([right, plain, other], [right]),
        ([plain, other], [plain]),
        ([other], [other]),  # a wrong name costs nothing: answers are found by theirs
    ):
        found = made(*files)
        assert [t.handed for t in found.tasks] == expected
        noted = right in files and plain in files
        assert found.notes == (("ada: graded is r; not p.",) if noted else ())


def test_only_files_of_other_lessons_is_not_handed_in_and_says_why():
    found = made(one_file(lesson=4, where="a"), one_file(lesson=5, where="b"))
    assert found.tasks == ()
    (one,) = found.missing
    assert one.problem == "There is nothing of lesson 01, only of 04, 05."


def test_without_a_lesson_all_files_are_graded():
    found = made(*(one_file(where=str(n), lesson=n) for n in (1, 2)), lesson=None)
    assert [t.handed.lesson for t in found.tasks] == [1, 2]


def test_two_of_one_name_are_told_apart_by_their_numbers():
    found = made(one_file("Al", "a", system_id="7"), one_file("Al", "b", system_id="8"))
    assert [t.student for t in found.tasks] == ["Al (7)", "Al (8)"]
    assert found.people["Al (7)"].system_id == "7"


def test_a_name_with_a_number_and_without_may_be_one_student():
    """Sent by mail, and handed in by Moodle, which put a number beside the name."""
    both = one_file("Eva", "mail"), one_file("Eva", "moodle", system_id="4821028")
    found = made(*both)
    assert [t.student for t in found.tasks] == ["Eva", "Eva (4821028)"]
    (note,) = found.notes
    assert note.startswith("Eva and Eva (4821028) have one name, and are graded as 2")
    listed = made(*both, students=[Student("eva", "Eva", "4821028")])
    assert {t.student for t in listed.tasks} == {"eva"}
    assert not any("have one name" in note for note in listed.notes)
    two = [one_file("Al", n, system_id=n) for n in "78"]
    assert made(*two).notes == ()


def test_names_that_differ_in_case_alone_are_told():
    ann = [one_file("Ann", "A", 1), one_file("ann", "a", 1), one_file("bob", "b", 1)]
    for lesson in (1, None):
        found = made(*ann, lesson=lesson)
        assert [t.student for t in found.tasks] == ["Ann", "ann", "bob"]
        (note,) = found.notes
        assert note.startswith("Ann and ann differ in large and small letters alone")
        listed = made(*ann, lesson=lesson, students=[Student("ann"), Student("bob")])
        assert [t.student for t in listed.tasks] == ["ann", "bob"]
        assert listed.notes == ("ann: graded is a; not A.",)


def test_a_list_says_who_is_missing_and_who_is_a_stranger():
    students = [Student("ada", "Ada L", "1"), Student("zoe", "Zoë", "2")]
    found = made(one_file("Ada L"), one_file("bob", "g"), students=students)
    assert [t.student for t in found.tasks] == ["ada", "bob"]
    assert [one.student for one in found.missing] == ["zoe"]
    assert found.notes == ("Not on the list, but graded: bob.",)
    assert found.people["ada"] == plan.Person("ada", "Ada L", "1")


def test_of_two_files_of_one_student_on_the_list_the_newest_counts():
    students = [Student("ada", "Ada L", "1")]
    old, new = one_file("ada", "old", when=1.0), one_file("Ada L", "new", when=2.0)
    for files in ([old, new], [new, old]):
        found = made(*files, students=students)
        assert [t.handed.where for t in found.tasks] == ["new"]


def test_a_damaged_file_does_not_push_a_whole_one_aside():
    good = one_file(where="good", when=1.0)
    bad = one_file(where="bad", when=2.0, problem="It is empty.")
    found = made(good, bad)
    assert [t.handed.where for t in found.tasks] == ["good"]


# --- the secret ---------------------------------------------------------------------
def test_any_bytes_make_a_secret_and_the_same_ones_the_same(tmp_path):
    path = tmp_path / "secret"
    found = set()
    for raw in (bytes(range(16, 48)), b"x" * 16, "密码密码密码".encode(), b"\xff" * 99):
        path.write_bytes(raw)
        told = read_secret(path, [])
        path.write_bytes(raw + b"\r\n")
        assert read_secret(path, []) == told
        found.add(told)
    assert len(found) == 4


@pytest.mark.parametrize(
    ("raw", "said"),
    [(b"", "is empty"), (b" \n", "is empty"), (b"x" * 15, "15 bytes"), (None, "read")],
)
def test_a_weak_secret_is_refused(tmp_path, raw, said):
    path = tmp_path / "secret"
    if raw is not None:
        path.write_bytes(raw)
    with pytest.raises(SecretError, match=said):
        read_secret(path, [])


def test_a_secret_among_what_others_see_is_refused(tmp_path):
    inside, link = tmp_path / "class" / "deep" / "secret", tmp_path / "link"
    inside.parent.mkdir(parents=True)
    inside.write_bytes(b"x" * 32)
    link.symlink_to(inside)
    for path in (inside, link, tmp_path / "class" / ".." / "class" / "deep" / "secret"):
        with pytest.raises(SecretError, match="move it elsewhere"):
            read_secret(path, [tmp_path / "out", tmp_path / "class"])
    assert read_secret(inside, [tmp_path / "out"])


# --- progress -----------------------------------------------------------------------
class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_plain_lines_where_there_is_no_terminal():
    now, stream = [0.0], io.StringIO()
    progress = Progress(10, stream=stream, clock=lambda: now[0])
    for _ in range(10):
        now[0] += 6
        progress.step()
    progress.end()
    assert stream.getvalue().splitlines() == [
        "2 of 10 graded",
        "4 of 10 graded, about 35 seconds left",
        "6 of 10 graded, about 25 seconds left",
        "8 of 10 graded, about 10 seconds left",
        "10 of 10 graded",
    ]
    assert "\r" not in stream.getvalue()


def test_one_line_that_changes_on_a_terminal():
    stream = Terminal()
    progress = Progress(2, stream=stream)
    progress.step()
    progress.end()
    assert stream.getvalue() == "\r1 of 2 graded\n"


def test_what_was_kept_does_not_make_the_estimate_better():
    now = [0.0]
    progress = Progress(103, stream=io.StringIO(), clock=lambda: now[0])
    for _ in range(50):
        progress.step(fresh=False)
    assert progress.left() is None
    for _ in range(3):
        now[0] += 10
        progress.step()
    assert progress.left() == 500


def test_a_stream_that_is_closed_stops_nothing():
    class Broken(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    Progress(1, stream=Broken()).step()


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.2, "about 5 seconds"), (58, "about 1 minute"), (3600, "about 60 minutes")],
)
def test_times_are_said_as_one_says_them(seconds, said):
    assert roughly(seconds) == said
