"""The gate has teeth: each way in which a notebook can be wrong makes pytest fail.

All bad notebooks run in one pytest, each in a kernel of its own: copies of the tiny
lesson, spoilt, and of the first lesson of the course with one digit of a stored output
changed; test_nbval_playback.py asks it of every output of every lesson. A second pytest
runs lessons on a copy of attnlib that forgets to divide by the root of d_k.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import notebook_source as ns
import numpy as np
import pytest
import strict_nbval
import tiny_lesson
from build_notebooks import ONE_THREAD
from tiny_lesson import code_cells, stream

from attnlib.attention import scaled_dot_product

GATE = ns.ROOT / "build" / "gate"
LESSONS = sorted(ns.NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))


def run_pytest(
    folder: Path, workers: int = 0, **environment: str
) -> tuple[dict[str, str], str]:
    """Run all notebooks in a folder; return file -> failure, and all it said.

    With two workers, the cells of one notebook must stay together all the same.
    """
    report = folder / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "--color=no", f"-n{workers}"]
    done = subprocess.run(
        [*command, f"--junitxml={report}", "-p", "no:cacheprovider", str(folder)],
        cwd=ns.ROOT,
        env={**os.environ, **ONE_THREAD, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    failures: dict[str, str] = {}
    for case in ET.parse(report).iter("testcase"):
        place = f"{case.get('classname') or ''}{case.get('name') or ''}"
        if "01_dead" in place:  # noticed at once, not after the cell's 120 seconds
            assert float(case.get("time", "0")) < 30, done.stdout
        for kind in ("failure", "error"):
            for found in case.iter(kind):
                name = re.search(r"(\d\d_\w+?)(?=\.ipynb|$|Cell)", place)
                file = name[1] if name else place
                failures[file] = failures.get(file, "") + (found.text or "")
    return failures, done.stdout + done.stderr


@pytest.fixture
def folder(request: pytest.FixtureRequest) -> Iterator[Path]:
    # Below the root, so that the root conftest.py rules here as it does there.
    path = GATE / re.sub(r"\W+", "-", request.node.name)
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    yield path
    shutil.rmtree(path, ignore_errors=True)


def replace_cell(source: str, output: str = "") -> Any:
    """The tiny lesson with another second code cell, which the gate must refuse."""
    notebook = tiny_lesson.tiny()
    cell = code_cells(notebook)[1]
    cell.source = source
    cell.outputs = [stream(output)] if output else []
    return notebook


def change_digit(text: str) -> str | None:
    """The text with its last digit changed; None if it has none."""
    found = list(re.finditer(r"\d", text))
    if not found:
        return None
    place = found[-1].start()
    return text[:place] + str((int(text[place]) + 1) % 10) + text[place + 1 :]


def with_digits(cell: Any) -> list[tuple[Any, str]]:
    """Where the texts of a cell's outputs are that have a digit: (holder, key)."""
    return [
        (part, key)
        for output in cell.get("outputs", [])
        for part, key in ((output, "text"), (output.get("data"), "text/plain"))
        if part and change_digit(part.get(key, ""))
    ]


def change_stored_digit(notebook: Any) -> Any:
    """Change one digit of the first output that has one."""
    (part, key), *_ = [place for c in code_cells(notebook) for place in with_digits(c)]
    part[key] = change_digit(part[key])
    return notebook


def change_figure(mime: str) -> Any:
    notebook = tiny_lesson.tiny()
    data = code_cells(notebook)[2].outputs[1].data
    data[mime] = change_digit(data[mime])
    return notebook


def attention_lesson() -> Any:
    """The tiny lesson, printing the weights that attnlib computes here."""
    cell = """from attnlib.attention import scaled_dot_product
q = np.arange(6.0).reshape(3, 2) / 7
print(scaled_dot_product(q, q, q).weights)"""
    q = np.arange(6.0).reshape(3, 2) / 7
    with np.printoptions(precision=3, suppress=True):
        return replace_cell(cell, f"{scaled_dot_product(q, q, q).weights}\n")


NO_ROOT = """

_right = scaled_dot_product


def scaled_dot_product(q, k, v, mask=None, *, scale=None):
    return _right(q, k, v, mask, scale=1.0 if scale is None else scale)
"""
DIE = "import os; os._exit(1)"
CONNECT = """import socket
try:
    socket.socket().connect(("192.0.2.1", 80))
except Exception:
    pass"""
FETCH = "from urllib.request import urlopen\nurlopen('http://localhost:1/x')"
BAD = {
    "01_printed": (lambda: change_stored_digit(tiny_lesson.tiny()), "outputs differ"),
    "01_figure": (lambda: change_figure("text/html"), "mismatch 'text/html'"),
    "01_missing": (lambda: replace_cell("1"), "Unexpected output fields"),
    "01_raised": (lambda: replace_cell("1 / 0"), "ZeroDivisionError"),
    "01_dead": (lambda: replace_cell(DIE), "the kernel died while this cell ran"),
    "01_socket": (lambda: replace_cell(CONNECT), "socket.connect"),
    "01_fetch": (lambda: replace_cell(FETCH), "urllib.Request"),
    "01_torch": (lambda: replace_cell("import torch"), "import torch, in a lesson"),
}


def test_a_wrong_notebook_fails(folder: Path) -> None:
    good = attention_lesson()
    find = "import importlib.util as u\nprint(u.find_spec('torch') is ...)"
    code_cells(good)[3].source += f"\n{find}"  # looking is not importing
    code_cells(good)[3].outputs = [stream("False\n")]
    (folder / "01_good.ipynb").write_bytes(ns.to_bytes(good))
    for name, (make, _) in BAD.items():
        (folder / f"{name}.ipynb").write_bytes(ns.to_bytes(make()))
    lesson = LESSONS[0]
    spoilt = change_stored_digit(ns.from_bytes(lesson.read_bytes()))
    (folder / lesson.name).write_bytes(ns.to_bytes(spoilt))
    failures, said = run_pytest(folder, workers=2)
    assert set(failures) == {*BAD, lesson.stem}, said
    for name, (_, sentence) in BAD.items():
        assert sentence in failures[name], f"{name}: {failures[name]}"
    assert failures[lesson.stem].count("outputs differ") == 1, failures[lesson.stem]


def test_an_unexecuted_cell_stops_the_tests(folder: Path) -> None:
    unexecuted, skipped = tiny_lesson.tiny(), tiny_lesson.tiny()
    code_cells(unexecuted)[1].update(execution_count=None, outputs=[])
    code_cells(skipped)[1].metadata["tags"] = ["nbval-skip"]
    (folder / "01_null.ipynb").write_bytes(ns.to_bytes(unexecuted))
    (folder / "01_skip.ipynb").write_bytes(ns.to_bytes(skipped))
    failures, said = run_pytest(folder)
    assert set(failures) == {"01_null", "01_skip"}, said
    assert "01-002 (print(np.arange(3.0) / 7))" in failures["01_null"]
    assert "2 errors during collection" in said
    assert "passed" not in said


def test_a_broken_library_fails(folder: Path) -> None:
    library = folder / "library"
    shutil.copytree(ns.ROOT / "attnlib", library / "attnlib")
    with (library / "attnlib" / "attention.py").open("a", encoding="utf-8") as file:
        file.write(NO_ROOT)
    (folder / "01_tiny.ipynb").write_bytes(ns.to_bytes(attention_lesson()))
    lessons = [lesson for lesson in LESSONS if lesson.name.startswith("01")]
    for lesson in lessons:
        shutil.copy(lesson, folder)
    failures, said = run_pytest(folder, PYTHONPATH=str(library))
    assert set(failures) == {"01_tiny"} | {lesson.stem for lesson in lessons}, said
    for text in failures.values():
        assert "outputs differ" in text


@pytest.mark.parametrize("missing", [True, False])
def test_a_cell_that_needs_a_missing_model_runs_and_is_skipped(
    missing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = []

    def runtest(self: Any) -> None:
        compared.append(self.options["check"])

    monkeypatch.setattr(strict_nbval.IPyNbCell, "runtest", runtest)
    monkeypatch.setattr(ns.checkpoints, "here", lambda name: not missing)
    notebook = tiny_lesson.tiny()
    code_cells(notebook)[1].metadata["tags"] = ["whisper"]
    said = []
    for cell in code_cells(notebook):
        item = object.__new__(strict_nbval.LessonCell)
        item.cell, item.options = cell, {"check": True}
        item.parent = SimpleNamespace(refused=lambda: "")
        try:
            item.runtest()
        except pytest.skip.Exception as reason:
            said.append(str(reason))
    assert compared == [True, not missing, True, True, True]
    assert said == ([ns.checkpoints.how_to_get("whisper")] if missing else [])
