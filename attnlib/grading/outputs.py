"""Everything that a run leaves in its folder."""

from __future__ import annotations

from pathlib import Path

from attnlib.grading import class_page, filenames, grades_csv, lms, moodle_zip, pages
from attnlib.grading.class_of import Class
from attnlib.grading.written import whole

GRADES = "grades.csv"
JOURNAL = "journal.jsonl"
FEEDBACK, GRADESCOPE = class_page.FEEDBACK, "gradescope"


def partial(all_: Class, out: Path) -> None:
    """Write `grades.csv` with what is graded so far.

    Raises:
        OSError: the disk is full. The table that was there before is there.
    """
    whole(out / GRADES, grades_csv.content(all_))


def everything(all_: Class, out: Path) -> None:
    """Write the table, the pages, and the files for schools' systems.

    Raises:
        OSError: the disk is full.
    """
    partial(all_, out)
    students = list(all_.students())
    names = filenames.of(one.student for one in students)
    for folder in (FEEDBACK, GRADESCOPE):
        (out / folder).mkdir(exist_ok=True)
    for one in students:
        name = names[one.student]
        whole(out / FEEDBACK / f"{name}.html", pages.content(one, all_))
        if one.settled:
            whole(out / GRADESCOPE / f"{name}.json", lms.gradescope(one))
    whole(out / "class.html", class_page.content(all_))
    whole(out / "canvas.csv", lms.canvas(all_))
    whole(out / "moodle.csv", lms.moodle(all_))
    archive = moodle_zip.content(all_)
    if archive:  # the class came from Moodle
        whole(out / "moodle_feedback.zip", archive)
