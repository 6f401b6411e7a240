"""The archive of pages that Moodle hands out: each to the student of its number."""

from __future__ import annotations

import io
import zipfile

from grading_class import a_class, grade, graded

from attnlib.grading import moodle_zip, outputs, pages


def moodles_reading(name):
    """What importziplib.php reads off a name: the number, the plugin, the file."""
    info = name.split("_", 4)
    assert len(info) == 5
    return info[1], info[2:4], info[4]


def of(*students):
    """A class whose files came in Moodle's archive, with the numbers 11, 12, ..."""
    return a_class(
        *(
            graded(
                name,
                grade(),
                where=f"c.zip/{name}_{n}_assignsubmission_file/x.ipynb",
            )
            for n, name in enumerate(students, start=11)
        )
    )


def test_each_page_goes_to_its_student_whatever_the_name(tmp_path):
    names = ["Ada Lovelace", "李_雷", "_", "../../up", "O'Neil_7_x", "Ada_Lovelace"]
    all_ = of(*names)
    expected = {
        str(names.index(one.student) + 11): pages.content(one, all_)
        for one in all_.students()
    }
    with zipfile.ZipFile(io.BytesIO(moodle_zip.content(all_))) as archive:
        assert len(archive.namelist()) == len(names)
        for name in archive.namelist():
            number, plugin, file = moodles_reading(name)
            assert plugin == ["assignfeedback", "file"]
            assert file == "feedback.html"
            assert "/" not in name
            assert archive.read(name) == expected.pop(number)
    assert not expected


def test_the_same_grades_make_the_same_bytes():
    assert moodle_zip.content(of("a", "b")) == moodle_zip.content(of("a", "b"))


def test_a_class_of_another_system_has_none(tmp_path):
    canvas = graded("lovelaceada", grade(), where="lovelaceada_4711_99_03.ipynb")
    assert moodle_zip.content(a_class(canvas)) == b""
    outputs.everything(a_class(canvas), tmp_path)
    assert not (tmp_path / "moodle_feedback.zip").exists()
    outputs.everything(of("ada"), tmp_path)
    assert (tmp_path / "moodle_feedback.zip").is_file()
