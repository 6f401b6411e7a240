"""`moodle_feedback.zip`: all pages in one file, which Moodle hands to the students.

In the assignment: "Upload multiple feedback files in a zip" (its setting "Feedback
files" is on). Moodle finds a student by the number in the name of a file, the one that
it put into the names of what it gave out.

Source: Moodle, mod/assign/feedback/file/importziplib.php: a name is split at its first
four `_` into the student's name, the number, `assignfeedback`, `file`, and the rest.
"""

from __future__ import annotations

import io
import re
import zipfile

from attnlib.grading import pages
from attnlib.grading.class_of import Class

PAGE = "feedback.html"  # what it is called beside the student's grade
_GIVEN = re.compile(r"_([0-9]+)_assignsubmission_")
_WHEN = (1980, 1, 1, 0, 0, 0)  # the same grades, the same bytes


def content(all_: Class) -> bytes:
    """The archive; empty if no student came from Moodle's own download."""
    found = {}
    for one in all_.students():
        number = next(filter(None, (_number(file.where) for file in one.files)), "")
        if number:
            name = re.sub(r"[\W_]+", " ", one.student).strip()[:80] or "student"
            found[f"{name}_{number}_assignfeedback_file_{PAGE}"] = pages.content(
                one, all_
            )
    if not found:
        return b""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for way, page in found.items():
            info = zipfile.ZipInfo(way, _WHEN)
            archive.writestr(info, page, zipfile.ZIP_DEFLATED)
    return data.getvalue()


def _number(where: str) -> str:
    """The number that Moodle put into a name on the way to a file."""
    found = _GIVEN.search(where)
    return found.group(1) if found else ""
