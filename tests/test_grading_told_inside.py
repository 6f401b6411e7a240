"""Files whose names say no lesson: none is lost, none counts twice."""

from __future__ import annotations

import io
import json
import zipfile

import pytest

from attnlib import exercises
from attnlib.grading import folder, plan, told_inside
from attnlib.grading.folder import Handed


def notebook(lesson, moved=False):
    """The stubs and checks of a lesson, as a notebook holds them."""
    cells = []
    for name in exercises.names(lesson):
        stub = exercises.get(name).stub_source.rstrip()
        cells += [stub, f'check("{name}", {name})']
    cells = cells[::-1] if moved else cells
    return json.dumps(
        {
            "cells": [
                {"cell_type": "code", "metadata": {}, "outputs": [], "source": text}
                for text in cells
            ],
            "metadata": {},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
    ).encode()


def class_in(tmp_path, files):
    for name, data in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder.find(tmp_path)


def graded(handed, lesson=None):
    return [one.handed.where for one in plan.make(handed, None, lesson).tasks]


@pytest.mark.parametrize("lesson", range(18))
def test_a_lesson_is_known_by_what_stands_in_it(tmp_path, lesson):
    (one,) = class_in(tmp_path, {"ada/homework.ipynb": notebook(lesson, moved=True)})
    assert one.lesson is None
    assert told_inside.lesson_of(one) == lesson


def test_two_renamed_lessons_are_two(tmp_path):
    files = {"ada/final (2).ipynb": notebook(1), "ada/masques.ipynb": notebook(3)}
    handed = class_in(tmp_path, files)
    assert graded(handed) == sorted(files)
    assert plan.make(handed, None, None).notes == ()
    assert graded(handed, 1) == ["ada/final (2).ipynb"]
    assert graded(handed, 3) == ["ada/masques.ipynb"]


def test_a_renamed_copy_is_no_second_one(tmp_path):
    files = {"ada/03_masks.ipynb": notebook(3), "ada/my masks v2.ipynb": notebook(3)}
    handed = class_in(tmp_path, files)
    for lesson in (None, 3):
        assert graded(handed, lesson) == ["ada/03_masks.ipynb"]
    (note,) = plan.make(handed, None, None).notes
    assert note == "ada: graded is ada/03_masks.ipynb; not ada/my masks v2.ipynb."


def test_what_can_be_read_comes_before_what_cannot(tmp_path):
    files = {"ada/03_masks.ipynb": b"", "ada/again.ipynb": notebook(3)}
    (good,) = (h for h in class_in(tmp_path, files) if h.where == "ada/again.ipynb")
    cut = Handed("ada", "ada/03_masks.ipynb", "It is empty.", lesson=3)
    assert graded([cut, good]) == graded([cut, good], 3) == ["ada/again.ipynb"]


def test_a_file_that_tells_nothing_has_no_lesson(tmp_path):
    (one,) = class_in(tmp_path, {"ada/x.ipynb": b'{"cells": []}'})
    assert told_inside.lesson_of(one) is None
    assert told_inside.lesson_of(Handed("ada", "x", "It is empty.")) is None


def test_who_sent_a_mail_is_a_student_beside_the_archive_of_the_class(tmp_path):
    away = "Ann Day_4711_assignsubmission_file/03_masks.ipynb"
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr(away, notebook(3))
        archive.writestr("bob/03_masks.ipynb", notebook(3))
    mails = ("Kim Lee/01_three_tokens.ipynb", "Kim Lee/notes.pdf")
    handed = class_in(
        tmp_path,
        {"class.zip": data.getvalue(), mails[0]: notebook(1), mails[1]: b"%PDF"},
    )
    assert [one.student for one in handed] == ["Ann Day", "bob", "Kim Lee"]
    handed = class_in(tmp_path, {"Lou/03_masks.ipynb": notebook(3)})
    assert [one.student for one in handed] == ["Ann Day", "bob", "Kim Lee", "Lou"]
