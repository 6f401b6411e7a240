"""Every notebook is its source, built; and keeps the rules of a lesson. No kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lesson_rules
import nbformat
import notebook_source as ns
import pytest
import tiny_lesson
from tiny_lesson import code_cells, stream

LESSONS = ns.find_sources([])
ids = [source.stem for source in LESSONS]


@pytest.mark.parametrize("source", LESSONS, ids=ids)
def test_notebook_is_its_source(source: Any) -> None:
    assert ns.differences(source, ns.NOTEBOOKS / f"{source.stem}.ipynb") == []


@pytest.mark.parametrize("source", LESSONS, ids=ids)
def test_rules_of_a_lesson(source: Any) -> None:
    stored = (ns.NOTEBOOKS / f"{source.stem}.ipynb").read_bytes()
    assert lesson_rules.broken_rules(source.stem, stored) == []


def test_every_notebook_has_a_source() -> None:
    assert sorted(p.stem for p in ns.NOTEBOOKS.glob("*.ipynb")) == ids
    assert [p.name for p in ns.NOTEBOOKS.rglob("*.py")] == []  # would shadow modules


def test_unchecked_cells_belong_to_lessons() -> None:
    for entry in lesson_rules.read_unchecked():
        assert set(entry) == {"lesson", "first_line", "reason"}
        assert entry["lesson"] in ids


# Each guard is seen to bite: the tiny lesson, spoilt in one place.


def rules(notebook: Any, unchecked: list[dict[str, str]] | None = None) -> list[str]:
    return lesson_rules.broken_rules(
        "01_tiny", ns.to_bytes(notebook), [] if unchecked is None else unchecked
    )


def test_the_tiny_lesson_breaks_no_rule(tmp_path: Any) -> None:
    assert rules(tiny_lesson.tiny()) == []
    stored = tmp_path / "01_tiny.ipynb"
    stored.write_bytes(ns.to_bytes(tiny_lesson.tiny()))
    assert ns.differences(tiny_lesson.SOURCE, stored) == []


def text(old: str, new: str) -> Callable[[Any], None]:
    """Replace `old` by `new` wherever it stands in the cells."""

    def spoil(notebook: Any) -> None:
        assert any(old in cell.source for cell in notebook.cells)
        for cell in notebook.cells:
            cell.source = cell.source.replace(old, new)

    return spoil


def printed(words: str, name: str = "stdout") -> Callable[[Any], None]:
    def spoil(notebook: Any) -> None:
        code_cells(notebook)[1].outputs = [stream(words + "\n", name)]

    return spoil


def figure(change: Callable[[Any], Any]) -> Callable[[Any], None]:
    def spoil(notebook: Any) -> None:
        change(code_cells(notebook)[2].outputs[1])

    return spoil


def tags(cell: int, *tags: str) -> Callable[[Any], None]:
    def spoil(notebook: Any) -> None:
        code_cells(notebook)[cell].metadata["tags"] = list(tags)

    return spoil


SPOILT = {
    "title": (text("need?", "need."), "a title that is a question"),
    "missing part": (text("**You need**", "You want"), "no part 'You need'"),
    "late part": (text("## Exercises", "## Sources"), "'Sources' stands too early"),
    "items": (text("- Two.\n", ""), "'What to keep' has 2 items"),
    "words": (text("Nothing.", "word " * 121), "words; at most 120"),
    "two setups": (tags(1, "setup"), "2 cells tagged setup"),
    "setup's end": (text("precision=3", "precision=4"), "must end with"),
    "import": (text("answer = ...", "import os\nanswer = ..."), "only the setup"),
    "torch": (text("import numpy as np", "import torch as np"), "imports torch"),
    "lines": (text("print(np", "x = 1\n" * 12 + "print(np"), "has 13 lines"),
    "width": (text("print(np", "x = 1" + "0" * 80 + "\nprint(np"), "has 85 characters"),
    "two names": (text("answer = ...", "answer = other = ..."), "a stub must be"),
    "no check": (tags(4), "must be tagged check"),
    "wrong check": (text('check("answer"', 'check("reply"'), "must be tagged check"),
    "no figure tag": (tags(2), "the tag figure"),
    "figure tag": (tags(1, "figure"), "has 0 figures"),
    "comment": (text("print(np", "# NBVAL_SKIP\nprint(np"), "steers nbval"),
    "not listed": (tags(1, "nbval-ignore-output"), "must say why"),
    "stderr": (printed("oh", "stderr"), "written to stderr"),
    "path": (printed("in /home/me/x.py"), "a path of this machine"),
    "windows path": (printed("in C:\\Users\\x"), "a path of this machine"),
    "address": (printed("<object at 0x7f1fcdcfb2a0>"), "the address of an object"),
    "uuid": (printed("3f2504e0-4f89-11d3-9a0c-0305e82c3301"), "a uuid"),
    "version": (printed("numpy 2.4.6"), "a version"),
    "sentence": (figure(lambda o: o.data.pop("text/plain")), "one sentence"),
    "other sentence": (
        figure(lambda o: o.data.update({"text/plain": "Other."})),
        "its sentence printed just before it",
    ),
    "picture": (figure(lambda o: o.data.pop("image/png")), "has no picture"),
    "alt": (figure(lambda o: o.metadata.clear()), "alt text"),
    "big picture": (
        figure(lambda o: o.data.update({"image/png": "iVBORw0KGgoA" * 9000})),
        "has a picture of",
    ),
    "model id": (
        figure(lambda o: o.data.update({ns.WIDGET_VIEW: {"model_id": "x"}})),
        "a widget that is gone",
    ),
    "size": (printed("x" * 600_000), "at most 600000"),
    "unshown number": (
        text("**You need**", "**You need** 0.615"),
        "says 0.615, which stands",
    ),
    "left for later": (
        text("**You need**", "**You need** TODO"),
        "says TODO: it was left for later",
    ),
    "hidden import": (
        text("import numpy as np", "import numpy as np\nfrom attnlib import answer"),
        "would hide the import",
    ),
}


@pytest.mark.parametrize("what", SPOILT)
def test_a_spoilt_lesson_is_found_out(what: str) -> None:
    notebook = tiny_lesson.tiny()
    spoil, sentence = SPOILT[what]
    spoil(notebook)
    found = rules(notebook)
    assert any(sentence in fault for fault in found), found


def test_long_cells_raise_the_median() -> None:
    notebook = tiny_lesson.tiny()
    for cell in code_cells(notebook)[1:3]:
        cell.source += "\nx = 1" * 5
    assert any("the median code cell" in fault for fault in rules(notebook))


def test_a_check_that_answers_an_untouched_stub_is_found_out() -> None:
    notebook = tiny_lesson.tiny()
    code_cells(notebook)[4].outputs = [stream("answer: wrong.\n")]
    assert any("must print one sentence" in fault for fault in rules(notebook))


def test_an_unchecked_cell_needs_a_reason_that_is_in_use() -> None:
    notebook = tiny_lesson.tiny()
    cell = code_cells(notebook)[1]
    entry = {
        "lesson": "01_tiny",
        "first_line": cell.source.splitlines()[0],
        "reason": "The numbers come from a clock.",
    }
    assert any("lists a cell" in fault for fault in rules(notebook, [entry]))
    cell.metadata["tags"] = ["nbval-ignore-output"]
    assert rules(notebook, [entry]) == []


DRIFT = {
    "source": (text("np.arange(3.0)", "np.arange(4.0)"), "source differs"),
    "words": (text("Nothing.", "Something."), "source differs"),
    "id": (lambda n: n.cells[1].update(id="x"), "id differs"),
    "tags": (tags(1, "figure"), "metadata differs"),
    "cells": (lambda n: n.cells.pop(), "cells in its source but"),
    "count": (lambda n: n.cells[1].update(execution_count=None), "not every cell"),
    "widgets": (lambda n: n.metadata.update(widgets={}), "metadata is not"),
    "error": (
        lambda n: n.cells[1].outputs.append(
            nbformat.v4.new_output("error", ename="E", evalue="", traceback=[])
        ),
        "stores an error",
    ),
    "pieces": (
        lambda n: code_cells(n)[1].outputs.append(stream("more\n")),
        "not in its stored form",
    ),
}


@pytest.mark.parametrize("what", DRIFT)
def test_a_notebook_that_left_its_source_is_found_out(what: str, tmp_path: Any) -> None:
    notebook = tiny_lesson.tiny()
    change, sentence = DRIFT[what]
    change(notebook)
    stored = tmp_path / "01_tiny.ipynb"
    stored.write_bytes(ns.to_bytes(notebook))
    found = ns.differences(tiny_lesson.SOURCE, stored)
    assert any(sentence in fault for fault in found), found


def test_a_lesson_never_built_is_found_out(tmp_path: Any) -> None:
    (found,) = ns.differences(tiny_lesson.SOURCE, tmp_path / "01_tiny.ipynb")
    assert found == "lesson 01_tiny was never built."


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("---\na: b\n---\n# T?", "begins with front matter"),
        ("# T?\n", "has no code cell"),
        ("```{code-cell}\n:tags: [nbval-skip]\n1\n```\n", "nbval-skip is not in use"),
    ],
)
def test_a_source_that_cannot_be_read(words: str, sentence: str, tmp_path: Any) -> None:
    source = tmp_path / "03_bad.md"
    source.write_text(words, encoding="utf-8")
    with pytest.raises(ns.LessonError, match=sentence):
        ns.read_source(source)


def test_names_of_lessons() -> None:
    with pytest.raises(ns.LessonError, match="no lesson begins with 'zz'"):
        ns.find_sources(["zz"])
