"""Solved notebooks: every stub replaced, its check passed, all else untouched."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import lesson_rules
import notebook_source as ns
import pytest
import solve
import tiny_lesson

from attnlib import exercises
from attnlib.grading.solutions import NotSolved, stub_name


def stand_in(source: str, status: str = "passed") -> Any:
    """Exercises with one solution, whatever the name."""
    return SimpleNamespace(
        get=lambda name: SimpleNamespace(solution_source=source),
        judge=lambda name, answer: SimpleNamespace(status=status),
    )


def test_only_the_stub_and_its_check_change() -> None:
    blank = ns.to_bytes(tiny_lesson.tiny())
    solved = json.loads(solve.solve(blank, stand_in("answer = 42\n")))
    changed = [
        (old, new)
        for old, new in zip(json.loads(blank)["cells"], solved["cells"], strict=True)
        if old != new
    ]
    (_, stub), (_, check) = changed
    assert stub["source"] == ["answer = 42"]
    assert check["outputs"][0]["text"] == ["answer: passed.\n"]
    for old, new in changed:
        assert {key for key in old if old[key] != new[key]} <= {"source", "outputs"}


def test_a_solution_that_does_not_pass_is_an_error() -> None:
    blank = ns.to_bytes(tiny_lesson.tiny())
    with pytest.raises(NotSolved, match="does not pass its own check"):
        solve.solve(blank, stand_in("answer = 41", status="wrong"))


def test_a_stub_without_its_check_is_an_error() -> None:
    notebook = tiny_lesson.tiny()
    tiny_lesson.code_cells(notebook)[4].source = "check('reply', answer)"
    with pytest.raises(NotSolved, match="is not followed by its check"):
        solve.solve(ns.to_bytes(notebook), stand_in("answer = 42"))


@pytest.mark.parametrize(
    ("stub", "name"), [("def f(x):\n    '''Do.'''\n    ...", "f"), ("x = ...", "x")]
)
def test_names_of_stubs(stub: str, name: str) -> None:
    assert stub_name(stub) == name


@pytest.mark.parametrize("stub", ["x = 1", "x = y = ...", "x = ...\ny = ...", "f()"])
def test_what_is_no_stub(stub: str) -> None:
    with pytest.raises(NotSolved, match="a stub must be exactly"):
        stub_name(stub)


def stubs() -> list[Any]:
    return [
        pytest.param(cell, id=stub_name(cell.source))
        for source in ns.find_sources([])
        for cell in ns.read_source(source).cells
        if "exercise" in cell.metadata.get("tags", [])
    ]


@pytest.mark.parametrize("cell", stubs())
def test_a_stub_is_the_one_of_its_exercise(cell: Any) -> None:
    name = stub_name(cell.source)
    assert cell.source == exercises.get(name).stub_source.strip("\n")


def test_every_exercise_stands_in_its_lesson() -> None:
    for source in ns.find_sources([]):
        found = [
            stub_name(cell.source)
            for cell in ns.read_source(source).cells
            if "exercise" in cell.metadata.get("tags", [])
        ]
        assert sorted(found) == sorted(exercises.names(int(source.stem[:2])))
        assert source.stem[:2] not in lesson_rules.NUMPY_LESSONS or found


def test_what_cannot_be_solved_is_named(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(solve, "NOTEBOOKS", tmp_path)
    monkeypatch.setattr(solve, "SOLVED", tmp_path / "solved")
    (tmp_path / "01_tiny.ipynb").write_bytes(ns.to_bytes(tiny_lesson.tiny()))
    assert solve.main(["01"]) == 1
    said = capsys.readouterr().out
    assert said.startswith("FAILED  lesson 01_tiny, KeyError: ")
    assert "answer" in said
    assert not (tmp_path / "solved" / "01_tiny.ipynb").exists()


def test_solved_notebooks_are_made_once(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solve, "SOLVED", tmp_path / "solved")
    made: list[bytes] = []
    monkeypatch.setattr(solve, "solve", lambda content: made.append(content) or content)
    stored = tmp_path / "01_tiny.ipynb"
    stored.write_bytes(b"one")
    assert [solve.write_solved(stored), solve.write_solved(stored)] == [True, False]
    stored.write_bytes(b"two")
    assert solve.write_solved(stored)
    assert made == [b"one", b"two"]
