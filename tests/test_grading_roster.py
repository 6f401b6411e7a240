"""The list of a class against what was handed in."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib.grading.folder import Handed
from attnlib.grading.roster import Matched, RosterError, Student, match, read, unknown

ALICE = Student("asmith", "Alice Smith", "4711")
LEI = Student("lilei", "李雷", "4712")
ZOE = Student("zberg", "Zoë van den Berg", "4713")
CLASS = (ALICE, LEI, ZOE)
ROWS = "asmith,Alice Smith,4711\nlilei,李雷,4712\nzberg,Zoë van den Berg,4713\n"


@pytest.mark.parametrize(
    "data",
    [
        ROWS.encode(),
        ("student,name,id\n" + ROWS).encode("utf-8-sig"),
        ("Student;Name;ID\n" + ROWS.replace(",", ";")).encode(),
        ("sep=;\nstudent;name;id\n" + ROWS.replace(",", ";")).encode(),
        ("student\tname\tid\r\n" + ROWS.replace(",", "\t")).encode("utf-16"),
        ("\n\nstudent,name,id\n" + ROWS.replace("\n", "\n,,\n")).encode(),
        ("student,name,id\n" + ROWS + ROWS.split("\n")[0]).encode(),  # twice the same
        (
            b"ID,Login,First name,Last name\n4711,asmith,Alice,Smith\n"
            + "4712,lilei,,李雷\n4713,zberg,Zoë,van den Berg\n".encode()
        ),
        ("id,name,student\n" + "".join(
            f'{s.system_id},"{s.name}",{s.student}\n' for s in CLASS)).encode(),
    ],
)  # fmt: skip
def test_every_way_to_write_a_list(data: bytes) -> None:
    assert read(data) == CLASS


def test_a_list_of_names_alone() -> None:
    assert read(b"Alice\nBob\n") == (Student("Alice"), Student("Bob"))
    assert read("name\n李雷\n".encode("gbk")) == (Student("李雷", "李雷"),)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "The list of students is empty."),
        ("student,name\n,\n", "The list of students is empty."),
        ("a,Ann,1\na,Anna,1\n", "Rows 1 and 2 of the list are both a, and say"),
        ("a,Ann,1\nA,Ann,1\n", "Rows 1 and 2 of the list are both A, and say"),
        ("a,Ann,1\nb,Bea,1\n", "Rows 1 and 2 of the list have the same id, 1."),
        ("student,name\nx,y\n,Ann\n\n", ""),
    ],
)
def test_what_is_wrong_with_a_list_is_said(text: str, sentence: str) -> None:
    if not sentence:
        assert read(text.encode())[-1] == Student("Ann", "Ann")
        return
    with pytest.raises(RosterError, match=sentence):
        read(text.encode())


@pytest.mark.parametrize(
    ("head", "column"),
    [("student,name,kennung", "`kennung`"), ("name,Section,Tutor", "`Section`, `T")],
)
def test_a_column_that_is_not_known_is_told_where_there_are_no_ids(head, column):
    said = unknown(f"{head}\nada,Ada,1\n".encode())
    assert said.startswith(f"The list of the class has no column of ids, and {column}")
    assert "Known are: student, username, " in said
    assert "matrikelnummer" in said


@pytest.mark.parametrize("head", ["student,name,id,group", "student,email", "a,b,c"])
def test_a_column_is_no_worry_beside_the_ids_or_without_a_head(head):
    assert unknown(f"{head}\nada,Ada,1\n".encode()) == ""


def handed(*names: str | tuple[str, str]) -> list[Handed]:
    pairs = [(name, "") if isinstance(name, str) else name for name in names]
    return [Handed(name, f"{name}/a.ipynb", system_id=number) for name, number in pairs]


def whose(found: Matched) -> list[str]:
    return [student for student, _ in found.handed]


@pytest.mark.parametrize(
    "name",
    [
        "asmith",
        "ASmith",
        "asmith@school.example",
        "Alice Smith",
        "Smith, Alice",
        "alice_smith",
        "smithalice",  # Canvas
        "AliceSmith",
        "alice-smith",
        ("nobody", "4711"),
    ],
)
def test_every_way_to_name_a_student(name: str | tuple[str, str]) -> None:
    assert whose(match(CLASS, handed(name))) == ["asmith"]


@pytest.mark.parametrize(
    "name",
    ["Zoe van den Berg", "Berg, Zoe\u0308 van den", "zoevandenberg", "vandenbergzoe"],
)
def test_accents_and_names_of_several_parts(name: str) -> None:
    assert whose(match(CLASS, handed(name))) == ["zberg"]


def test_missing_students_and_strangers_are_listed() -> None:
    found = match(CLASS, handed("李雷", "Mallory", "Mallory"))
    assert whose(found) == ["lilei", "Mallory", "Mallory"]
    assert found.missing == (ALICE, ZOE)
    assert found.strangers == ("Mallory",)


def test_a_name_that_fits_two_is_a_strangers() -> None:
    two = (Student("a1", "Alice Smith", "1"), Student("a2", "Alice Smith", "2"))
    assert match(two, handed("Alice Smith")).strangers == ("Alice Smith",)
    assert whose(match(two, handed(("Alice Smith", "2")))) == ["a2"]


def test_a_name_says_more_than_the_number_of_another_system() -> None:
    assert whose(match(CLASS, handed(("lilei", "4711")))) == ["lilei"]


def test_several_files_of_one_student() -> None:
    found = match(CLASS, handed("asmith", "Alice Smith"))
    assert whose(found) == ["asmith", "asmith"]
    assert found.missing == (LEI, ZOE)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.one_of(st.binary(max_size=200), st.text("ab,;\t\n\"' é", max_size=80)))
def test_any_bytes_give_a_list_or_an_error(data: bytes | str) -> None:
    raw = data.encode() if isinstance(data, str) else data
    try:
        found: Sequence[Student] = read(raw)
    except RosterError:
        return
    assert found
    match(found, handed("a", ("b", "1")))
