"""The build: what it stores, what it keeps, and what it says when a cell fails."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import build_notebooks
import notebook_source as ns
import pictures
import pytest

DATA = Path(__file__).parent / "data"
SAMPLE = DATA / "00_sample.md"
FAILING = """# What fails?

```{code-cell}
:tags: [setup]
good = 1
```

```{code-cell}
# a comment

bad
```
"""
needs_browser = pytest.mark.skipif(
    pictures.find_browser() is None,
    reason="no Chromium or Chrome is here to draw pictures with",
)


class Built:
    """One build of two lessons at once, one of which fails; then a second build."""

    def __init__(self, folder: Path) -> None:
        self.out = folder
        self.good = folder / "00_sample.md"
        self.bad = folder / "07_failing.md"
        shutil.copy(SAMPLE, self.good)
        self.bad.write_text(FAILING, encoding="utf-8")
        (folder / "07_failing.ipynb").write_bytes(b"the old notebook")
        self.said: list[str] = []
        self.failures = self.run([self.good, self.bad])
        self.stored = folder / "00_sample.ipynb"
        self.first = self.stored.read_bytes()

    def run(self, sources: list[Path], **options: Any) -> list[Any]:
        return build_notebooks.build(sources, self.out, say=self.said.append, **options)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Built]:
    return Built(tmp_path_factory.mktemp("notebooks"))


@needs_browser
def test_a_failing_cell_is_named_and_the_old_notebook_kept(built: Built) -> None:
    (failure,) = built.failures
    assert str(failure) == (
        "lesson 07_failing, cell 07-002 (# a comment): "
        "NameError: name 'bad' is not defined"
    )
    assert (built.out / "07_failing.ipynb").read_bytes() == b"the old notebook"
    assert any("The old notebook is kept." in line for line in built.said)
    assert not list(built.out.glob(".*"))  # no half-written file


@needs_browser
def test_what_is_stored_is_the_same_on_every_machine(built: Built) -> None:
    assert ns.differences(built.good, built.stored) == []
    text = built.first.decode("utf-8")
    for volatile in ("widget-view", "model_id", '"widgets"', "iopub", '"version": "3.'):
        assert volatile not in text
    notebook = ns.from_bytes(built.first)
    _, _, words, error, *_, slider = (
        c for c in notebook.cells if c.cell_type == "code"
    )
    assert [o.output_type for o in words.outputs] == ["stream", "execute_result"]
    assert words.outputs[0].text == "one\ntwo\nthree\n"
    (trace,) = error.outputs[0].traceback  # no file names
    assert trace.startswith("ValueError: matmul")
    assert list(slider.outputs[0].data) == ["text/plain"]


@needs_browser
def test_a_second_build_touches_nothing(built: Built) -> None:
    before = built.stored.stat()
    assert built.run([built.good]) == []
    after = built.stored.stat()
    assert built.stored.read_bytes() == built.first
    assert (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)
    assert built.said[-1].startswith("same ")


@needs_browser
def test_figures_have_pictures_with_their_sentence(built: Built) -> None:
    figures = [
        output
        for cell in ns.from_bytes(built.first).cells
        for output in cell.get("outputs", [])
        if pictures.is_figure(output)
    ]
    sentences = [output.metadata["image/png"]["alt"] for output in figures]
    assert sentences == [output.data["text/plain"] for output in figures]
    assert sentences == [
        "An explorer of two numbers, 0.25 and 0.75.",
        "A curve through 1, 2 and 4.",
    ]
    for output in figures:
        assert 500 < len(output.data["image/png"]) * 3 / 4 < pictures.MAX_BYTES
    # A chart is as wide as the page; a small table is cut to what is to be seen.
    table, chart = (output.metadata["image/png"]["width"] for output in figures)
    assert table < 200
    assert chart == pictures.WIDTH + 2 * pictures.MARGIN


def figure(number: float) -> Any:
    html = f'<p class="wide attnlib-explorer">{number}</p>'
    data = {"text/plain": f"It is {number}.", "text/html": html}
    output = ns.nbformat.v4.new_output("display_data", data=data)
    cell = ns.nbformat.v4.new_code_cell(id="03-000", outputs=[output])
    return ns.nbformat.v4.new_notebook(cells=[cell])


class CountingDrawer(pictures.Drawer):
    drawn = 0

    def draw(self, data: Any) -> tuple[bytes, int, int]:
        self.drawn += 1
        return f"picture {self.drawn}".encode(), 760, 20


def test_a_picture_is_kept_while_its_figure_is_unchanged() -> None:
    drawer = CountingDrawer()
    old = figure(0.25)
    pictures.add_pictures("03_x", old, {}, drawer)
    known = pictures.known_pictures(ns.to_bytes(old))
    same, changed = figure(0.25), figure(0.26)
    pictures.add_pictures("03_x", same, known, drawer)
    assert drawer.drawn == 1
    assert ns.to_bytes(same) == ns.to_bytes(old)
    pictures.add_pictures("03_x", changed, known, drawer)
    assert drawer.drawn == 2


def test_without_a_browser_a_new_picture_is_a_clear_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ATTNLIB_BROWSER", "/nowhere/chromium")
    with (
        pictures.Drawer() as drawer,
        pytest.raises(ns.LessonError, match=r"cell 03-000 .*needs Chromium"),
    ):
        pictures.add_pictures("03_x", figure(0.5), {}, drawer)


def test_without_a_browser_a_known_picture_is_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old = figure(0.25)
    pictures.add_pictures("03_x", old, {}, CountingDrawer())
    monkeypatch.setenv("ATTNLIB_BROWSER", "/nowhere/chromium")
    with pictures.Drawer() as drawer:
        known = pictures.known_pictures(ns.to_bytes(old))
        pictures.add_pictures("03_x", figure(0.25), known, drawer)


def test_what_cannot_be_stored_is_refused() -> None:
    notebook = figure(0.25)
    notebook.cells[0].outputs = [
        ns.nbformat.v4.new_output("stream", name="stderr", text="Warning: x\n")
    ]
    with pytest.raises(ns.LessonError, match="writes to stderr"):
        ns.canonical("03_x", notebook)


def test_the_command_names_what_it_cannot_find(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert build_notebooks.main(["zz", "--check"]) == 1
    assert "no lesson begins with 'zz'" in capsys.readouterr().out


def test_a_lesson_is_not_built_without_its_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "08_heard.md"
    text = FAILING.replace(":tags: [setup]", ":tags: [setup, whisper]")
    source.write_text(text, encoding="utf-8")
    monkeypatch.setattr(ns.checkpoints, "here", lambda name: False)
    error = build_notebooks.run_lesson(source, tmp_path)
    assert isinstance(error, ns.LessonError)
    assert "cell 08-001 (good = 1): This part needs Whisper tiny.en" in str(error)
