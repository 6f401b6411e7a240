"""No lesson stores an output that is not compared, and its solved end is run as well.

Asked without a kernel: one plays back what a lesson stores, and a digit of what is
stored is changed. That kernels print what is stored, the lessons' own run asks.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import notebook_source as ns
import pytest
import strict_nbval
from nbval.plugin import NbCellError
from test_nbval_gate import LESSONS, change_digit, with_digits
from tiny_lesson import code_cells

from attnlib.grading.solutions import solve


class Playback:
    """A kernel that runs nothing: it answers one cell with the outputs it was given."""

    def __init__(self, outputs: list[Any]) -> None:
        said = [(output.output_type, output) for output in outputs]
        self.posted = [
            {"msg_type": kind, "content": said, "parent_header": {"msg_id": "this"}}
            for kind, said in [*said, ("status", {"execution_state": "idle"})]
        ]

    def is_alive(self) -> bool:
        return True

    def execute_cell_input(self, source: str, allow_stdin: bool) -> str:
        return "this"

    def await_reply(self, msg_id: str, timeout: float) -> None:
        return

    def get_message(self, stream: str, timeout: float) -> Any:
        return self.posted.pop(0)


def collected(
    lesson: Path, request: pytest.FixtureRequest
) -> list[strict_nbval.LessonCell]:
    """The cells of a lesson as pytest has them; no kernel is started for them."""
    file = strict_nbval.LessonFile.from_parent(request.session, path=lesson)
    file.refused = lambda: ""
    return list(file.collect())


def play(item: strict_nbval.LessonCell, outputs: list[Any]) -> None:
    """Run one cell in a kernel that answers with these outputs."""
    item.parent.kernel = Playback(outputs)
    item.runtest()


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.stem)
def test_every_stored_output_is_compared(
    lesson: Path, request: pytest.FixtureRequest
) -> None:
    changed = 0
    for item in collected(lesson, request):
        ignored = "nbval-ignore-output" in item.cell.metadata.get("tags", [])
        if type(item) is not strict_nbval.LessonCell or ns.lacks_model(item.cell):
            continue
        printed = copy.deepcopy(item.cell.outputs)
        play(item, printed)  # the same passes
        for part, key in [] if ignored else with_digits(item.cell):
            right, part[key] = part[key], change_digit(part[key])
            with pytest.raises(NbCellError, match="outputs differ"):
                play(item, printed)
            part[key] = right
            changed += 1
    assert changed > 1, "hardly an output was compared"


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.stem)
def test_from_the_first_stub_on_all_is_run_again_solved(
    lesson: Path, request: pytest.FixtureRequest
) -> None:
    items = collected(lesson, request)
    stored = code_cells(ns.from_bytes(lesson.read_bytes()))
    tags = [cell.metadata.get("tags", []) for cell in stored]
    first = next(i for i, tag in enumerate(tags) if "exercise" in tag)
    names = [f"Cell {i}" for i in range(len(stored))]
    names += [f"Cell {i}, solved" for i in range(first, len(stored))]
    assert [item.name for item in items] == names


def test_a_solved_cell_must_print_what_its_solution_gets(
    request: pytest.FixtureRequest,
) -> None:
    solved = code_cells(ns.from_bytes(solve(LESSONS[0].read_bytes())))
    again = collected(LESSONS[0], request)[len(solved) :]
    again[0].parent._solved = solved
    for item in again:
        play(item, solved[item.cell_num].outputs)
        assert item.cell.source == solved[item.cell_num].source
    check = again[1]
    blank = code_cells(ns.from_bytes(LESSONS[0].read_bytes()))[check.cell_num]
    with pytest.raises(NbCellError, match="outputs differ"):
        play(check, blank.outputs)


def test_a_lesson_that_cannot_be_solved_is_named(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fails = tmp_path / "fails.py"
    fails.write_text("import sys\nprint('FAILED ', sys.argv[1:])\nsys.exit(1)\n")
    monkeypatch.setattr(strict_nbval, "SOLVE", fails)
    last = collected(LESSONS[0], request)[-1]
    with pytest.raises(RuntimeError, match="00_start_here cannot be solved:\nFAILED"):
        last.runtest()
