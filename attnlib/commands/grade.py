"""`attnlib grade`: grade what a class handed in."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from attnlib.commands.ended import Ended, told
from attnlib.commands.parser import size

if TYPE_CHECKING:
    from attnlib.grading.class_of import Class
    from attnlib.grading.journal import Journal
    from attnlib.grading.plan import Plan
    from attnlib.grading.worker import Settings

ALL_WELL, LOOK, REFUSED = 0, 1, 2
OFTEN = 1.0  # seconds between two tables of grades while it runs
TITLE = "Attention by Hand"

DESCRIPTION = """\
Grade the notebooks in a folder, each student in a sandbox of their own.

WHERE is a folder with a file, a folder or an archive for each student, or the archive
that Moodle, Canvas or another system gives out, or the notebook of one student. Answers
are found by their names.

In the folder of -o there will be grades.csv, feedback/ with a page for each student,
class.html for the teacher, canvas.csv, moodle.csv and gradescope/, and, if the files
came from Moodle, moodle_feedback.zip with all pages. What is graded is kept from the
first submission on: after an interruption, go on with --resume.

The hidden inputs are made of the seed file: the same file, the same grades. Keep it
where no student sees it. The exit status is 0 if all was graded, 1 if something could
not be read or graded, and 2 if nothing could be done.
"""
GO_ON = (
    "{done} of {total} are graded and kept. Go on with the same command and --resume."
)


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Tell argparse what the command takes."""
    parser = commands.add_parser(
        "grade",
        help="grade what a class handed in, safely",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("where", metavar="WHERE", type=Path, help="what was handed in")
    parser.add_argument(
        "--seed-file",
        type=Path,
        required=True,
        metavar="FILE",
        help="a secret of at least 16 bytes; head -c 32 /dev/urandom > FILE makes one",
    )
    parser.add_argument(
        "-o", "--out", type=Path, required=True, metavar="FOLDER", help="the results"
    )
    parser.add_argument(
        "--lesson",
        type=lesson,
        metavar="NN",
        help="grade all files for this lesson; else each for the one that it is of",
    )
    parser.add_argument(
        "--roster", type=Path, metavar="CSV", help="the class: student, name, id"
    )
    parser.add_argument(
        "-j", "--jobs", type=size, metavar="N", help="how many at once; 2"
    )
    parser.add_argument(
        "--resume", action="store_true", help="go on with a run that was interrupted"
    )
    parser.add_argument(
        "--exercises", type=Path, metavar="FOLDER", help="also exercises of your own"
    )
    parser.add_argument(
        "--equal", action="store_true", help="one point each, not one a minute"
    )
    parser.add_argument("--title", help="of the pages, and of the assignment in Canvas")
    parser.add_argument(
        "--allow-unsandboxed",
        action="store_true",
        help="where there is no sandbox, run answers with limits alone",
    )
    parser.set_defaults(run=run)


def lesson(text: str) -> int:
    """The number of a lesson that has exercises."""
    from attnlib import exercises

    there = sorted({exercises.get(name).lesson for name in exercises.names()})
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(
            f"{text!r} is no lesson; write one, such as 03"
        )
    number = int(text)
    if number not in there and number <= there[-1]:
        raise argparse.ArgumentTypeError(f"lesson {number:02d} has no exercises")
    return number  # a later one may be of a teacher's own exercises


def run(given: argparse.Namespace) -> int:
    """Grade, and write what was found. Returns the exit status."""
    if os.name != "posix":
        return _refused("Grading needs Linux; on Windows, WSL2 is one.")
    _forget(given.where)  # before anything else is imported
    from attnlib.exercises.private import PrivateError
    from attnlib.grading.journal import JournalError
    from attnlib.grading.roster import RosterError
    from attnlib.grading.sandbox.choose import NoSandbox
    from attnlib.grading.secret import SecretError

    sentences = (JournalError, PrivateError, RosterError, NoSandbox, SecretError)
    try:
        with told():
            return _run(given)
    except Ended as end:
        print("Ended before anything was graded.", file=sys.stderr)
        return 128 + end.number
    except (*sentences, NotADirectoryError) as error:
        return _refused(str(error))
    except OSError as error:
        what = f" ({error.filename})" if error.filename else ""
        return _refused(f"{error.strerror or error}{what}.")


def _refused(sentence: str) -> int:
    print(f"attnlib grade: {sentence}", file=sys.stderr)
    return REFUSED


def _run(given: argparse.Namespace) -> int:
    from attnlib.exercises import private
    from attnlib.grading import folder, plan, roster, secret
    from attnlib.grading.asked import Asked
    from attnlib.grading.journal import Journal, version
    from attnlib.grading.outputs import JOURNAL
    from attnlib.grading.sandbox.choose import choose
    from attnlib.grading.worker import Settings

    where, out = given.where, given.out
    if secret.lies_in(out, where):
        return _refused(
            f"{out} lies in {where}, among what was handed in: take another folder "
            f"with -o."
        )
    if out.exists() and not out.is_dir():
        return _refused(f"{out} is a file: take another folder with -o.")
    folders = [where, out]
    told = secret.read(given.seed_file, folders)
    own = given.exercises
    if own is not None and any(secret.lies_in(own, one) for one in folders):
        return _refused(
            f"Your own exercises, {own}, lie where students or reports are."
        )
    asked = Asked(given.lesson, own)
    if given.lesson is not None and not asked.fixed:
        return _refused(f"There are no exercises of lesson {given.lesson:02d}.")
    asked.all  # noqa: B018  (a file of exercises that does not run is told now)
    listed = given.roster.read_bytes() if given.roster else None
    students = None if listed is None else roster.read(listed)
    notes = [] if listed is None else [*filter(None, [roster.unknown(listed)])]
    todo = plan.make(folder.find(where), students, given.lesson, notes)
    if not todo.tasks and not todo.missing:
        return _refused(f"There is no notebook in {where}.")
    sandbox = choose(given.allow_unsandboxed)
    print(f"Sandbox: {sandbox.name}.", *notes, sep="\n")
    if sandbox.lacks():
        print(f"Mind that it does not hold back all: {sandbox.lacks()}.")
    out.mkdir(parents=True, exist_ok=True)
    of = f"lesson {given.lesson}, {'equal' if given.equal else 'minutes'}, {bool(own)}"
    more = private.fingerprint(own) if own else ""
    journal = Journal(out / JOURNAL, told, version(more), of, given.resume)
    try:
        settings = Settings(told, asked, sandbox, given.equal)
        return _Run(given, todo, settings, journal).grade()
    finally:
        journal.close()


class _Run:
    """One run, from the first submission to the last page."""

    def __init__(
        self,
        given: argparse.Namespace,
        todo: Plan,
        settings: Settings,
        journal: Journal,
    ) -> None:
        from attnlib.grading import points

        self._given, self._plan = given, todo
        self._settings, self._journal = settings, journal
        self._graded = list(todo.missing)
        self._fixed = tuple(
            (e.name, points.of(e, given.equal)) for e in settings.asked.fixed
        )
        self._done = 0

    def grade(self) -> int:
        """Grade all, write all."""
        from attnlib.grading import outputs

        total = len(self._plan.tasks)
        try:
            self._all()
            outputs.everything(self._class(), self._given.out)
        except Ended as end:
            self._save()
            name = "Interrupted" if end.number == signal.SIGINT else "Ended"
            go_on = GO_ON.format(done=self._done, total=total)
            print(f"{name}. {go_on}", file=sys.stderr)
            return 128 + end.number
        except OSError as error:
            self._save()
            go_on = GO_ON.format(done=self._done, total=total)
            why = f"{error.strerror or error}: {self._given.out} cannot be written."
            return _refused(f"{why} {go_on}")
        return self._report()

    def _all(self) -> None:
        from attnlib.grading import outputs
        from attnlib.grading.progress import Progress
        from attnlib.grading.run import Pool

        jobs = self._given.jobs or min(2, os.cpu_count() or 1)
        progress = Progress(len(self._plan.tasks))
        last = time.monotonic()
        todo = [(task, self._known(task.key)) for task in self._plan.tasks]
        try:
            with Pool(jobs, self._settings) as pool:
                for task, done in pool.graded(todo):
                    if done.graded is None:
                        graded = self._journal.kept[task.key][1]
                    else:
                        graded = done.graded
                        self._journal.add(task.key, done.hash, graded)
                    self._graded.append(graded)
                    self._done += 1
                    progress.step(fresh=done.graded is not None)
                    if time.monotonic() - last >= OFTEN:
                        outputs.partial(self._class(), self._given.out)
                        last = time.monotonic()
        finally:
            progress.end()

    def _known(self, key: str) -> str:
        """The hash that a file may have without being graded again."""
        told, graded = self._journal.kept.get(key, ("", None))
        return told if graded and all(g.counts for g in graded.grades) else ""

    def _class(self) -> Class:
        from attnlib.grading.class_of import Class

        title = self._given.title or TITLE
        if not self._given.title and self._given.lesson is not None:
            title = f"{TITLE}, lesson {self._given.lesson:02d}"
        return Class(
            tuple(self._graded),
            self._plan.people,
            self._fixed,
            self._plan.notes,
            title,
            self._done == len(self._plan.tasks),
        )

    def _save(self) -> None:
        """The table of what is graded, if the disk takes it."""
        from attnlib.grading import outputs

        with contextlib.suppress(OSError):
            outputs.partial(self._class(), self._given.out)

    def _report(self) -> int:
        from attnlib.grading.sentences import counted

        found = [one.status for one in self._graded]
        students = list(self._class().students())  # as class.html counts them
        graded = sum(one.is_graded for one in students)
        notebooks = found.count("graded")
        failed = [one for one in self._graded if any(not g.counts for g in one.grades)]
        said = f"{counted(len(students), 'student')}, {graded} graded"
        if notebooks != graded:
            said += f" ({notebooks} notebooks)"
        if found.count("unreadable"):
            said += f", {found.count('unreadable')} could not be read"
        if found.count("missing"):
            said += f", {found.count('missing')} not handed in"
        if failed:
            said += f", {len(failed)} with an answer that could not be graded"
        print(f"{said}. Look at {self._given.out / 'class.html'} first.")
        return LOOK if failed or "unreadable" in found else ALL_WELL


def _forget(where: Path) -> None:
    """Nothing is ever imported from among what was handed in."""
    from attnlib.grading.secret import lies_in

    if where.is_dir():
        sys.path[:] = [p for p in sys.path if not lies_in(Path(p or "."), where)]
