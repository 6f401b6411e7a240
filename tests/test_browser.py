"""The figures in a real JupyterLab: every control is moved, every picture follows.

For each lesson, and for one notebook with a figure of each kind: open it as a fresh
clone would (nothing trusted, no kernel), then run all, then move every control from
the keyboard. Pictures go to build/screens. test_browser_exported.py has exported pages.
"""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import figure_notebook
import pytest
from browser import (
    Lab,
    chromium,
    eventually,
    find_browser,
    lab,
    open_notebook,
    profile,
    run_all,
    watched,
)
from figure_hands import choose, faint_texts, slide, walk, work

pytestmark = [
    pytest.mark.skipif(
        find_browser() is None, reason="no Chromium, Chrome or Edge on this machine"
    ),
    pytest.mark.skipif(
        importlib.util.find_spec("playwright") is None,
        reason="playwright is not installed (pip install -e .[dev])",
    ),
]
ROOT = Path(__file__).resolve().parent.parent
SCREENS = ROOT / "build" / "screens"
LESSONS = sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb"))
NAMES = ["figures.ipynb", *LESSONS]
UNNAMED = """() => [...document.querySelectorAll(
  '.attn input, .attn button, .attn [role=img], .attn [role=group]')].filter(e =>
    !(e.getAttribute('aria-label') || e.closest('label') || e.textContent.trim()))
  .map(e => e.outerHTML.slice(0, 200))"""

NAMED_ALIKE = """() => [...document.querySelectorAll('.attn-bench')].flatMap(bench => {
  const names = [...bench.querySelectorAll('[aria-label]')].map(e => e.ariaLabel);
  return names.filter((name, at) => names.indexOf(name) < at);
})"""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    scratch = tmp_path_factory.mktemp("lab")
    folder = scratch / "notebooks"
    folder.mkdir()
    for name in LESSONS:
        shutil.copy(ROOT / "notebooks" / name, folder)
    figure_notebook.write(folder / "figures.ipynb")
    with lab(folder, scratch) as served:
        yield served


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    SCREENS.mkdir(parents=True, exist_ok=True)
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def learner(browser: Any) -> Iterator[Any]:
    with profile(browser) as kept:  # Lab's files are fetched once for all lessons
        yield kept


@pytest.mark.parametrize("name", NAMES)
def test_a_lesson_in_lab(name: str, running: Lab, learner: Any) -> None:
    with watched(learner) as watch:
        page = watch.page
        open_notebook(watch, running, name)
        as_cloned(page)
        shots(page, f"{Path(name).stem}-untrusted")
        run_all(watch, running, name)
        # Lab draws an exception like stderr. As many as are stored, and no warning.
        raised = page.locator('.jp-OutputArea [data-mime-type$="jupyter.stderr"]')
        stored = (running.folder / name).read_text(encoding="utf-8")
        assert raised.count() == stored.count('"output_type": "error"'), (
            raised.all_text_contents()
        )
        assert page.evaluate(UNNAMED) == []
        assert page.evaluate(NAMED_ALIKE) == []
        cells = page.locator(".jp-Notebook .jp-Cell").count()
        for slider in page.locator(".attn input[type=range]").all():
            slide(page, slider)
        for select in page.locator(".attn select").all():
            choose(page, select)
        for figure in page.locator(".attn-live").all():
            walk(page, figure)
        for bench in page.locator(".attn-bench").all():
            work(page, bench)
        assert page.locator(".jp-Notebook .jp-Cell").count() == cells
        shots(page, Path(name).stem)
        assert watch.outside == []
        assert watch.complaints == []


def test_what_leaves_this_machine_is_noted_and_stopped(browser: Any) -> None:
    with watched(browser) as watch:
        failed: list[tuple[str, str]] = []
        watch.page.on("requestfailed", lambda r: failed.append((r.url, r.failure)))
        away = ["http://example.com/a", "http://127.0.0.2:8/b"]
        for url in away:
            watch.page.evaluate("url => fetch(url).catch(() => 0)", url)
        watch.page.evaluate("new WebSocket('ws://127.0.0.2:8/c')")
        eventually(watch.page, "a turn of the page", "() => true")
        assert failed == [(url, "net::ERR_NAME_NOT_RESOLVED") for url in away]
        assert watch.outside == [*away, "ws://127.0.0.2:8/c"]
        assert watch.complaints == []


def shots(page: Any, name: str) -> None:
    for index, figure in enumerate(page.locator(".jp-OutputArea .attn").all()):
        figure.screenshot(path=SCREENS / f"{name}-{index}.png")


def as_cloned(page: Any) -> None:
    """Not trusted: no script, no style sheet, and still a picture with its colours."""
    figures = page.locator(".jp-OutputArea .attn")
    assert figures.locator("script, style").count() == 0
    for figure in figures.all():
        assert figure.locator("table, figure").first.is_visible()
        for slider in figure.locator("input[type=range]").all():
            assert slider.is_disabled()
        if "17_bug_bash" not in page.url:  # its cells are numbers of bugs, no sizes
            pale = [said.split(":")[0] for said in figure.evaluate(COLOURLESS)]
            assert set(pale) <= NAMES_ONLY, figure.evaluate(COLOURLESS)
    for plot in page.locator(".jp-RenderedPlotly").all():
        assert plot.is_visible()


NAMES_ONLY = {"who holds what"}  # a table whose numbers are names: it has no colours
# What is drawn against the number that stands there: the strength of a cell's colour
# and the length of a bar go with the number, and a cell of a group has a colour.
COLOURLESS = """figure => {
  const bad = [];
  const opacity = cell => {
    const found = getComputedStyle(cell).backgroundColor.match(/[\\d.]+/g).map(Number);
    return found.length > 3 ? found[3] : 1;
  };
  const compare = (what, pairs, slack) => {
    const [number, size] = pairs.reduce((a, b) => b[0] > a[0] ? b : a, [0, 0]);
    if (number > 0 && size <= slack) bad.push(`${what}: nothing is drawn`);
    for (const [n, s] of pairs)
      if (number > 0 && Math.abs(s - size * n / number) > slack)
        bad.push(`${what}: ${n} is drawn as ${s}, ${number} as ${size}`);
  };
  for (const table of figure.querySelectorAll('.attn-m')) {
    const cells = [...table.tBodies[0].querySelectorAll('td')];
    const numbers = cells.filter(c => /^-?[\\d.]+$/.test(c.textContent));
    const name = table.caption.textContent;
    if (cells.some(c => /g\\d/.test(c.className))) {
      if (!cells.every(c => opacity(c) > .3)) bad.push(`${name}: cells without colour`);
    } else if (numbers.length)
      compare(name, numbers.map(c => [Math.abs(c.textContent), opacity(c)]), .03);
    else if (!cells.every(c => (opacity(c) > .2) === (c.textContent === '✓')))
      bad.push(`${name}: a mask without colours`);
  }
  for (const table of figure.querySelectorAll('.attn-b'))
    compare(table.caption.textContent, [...table.tBodies[0].rows].map(row =>
      [Number(row.cells[2].textContent),
       row.cells[1].firstElementChild.getBoundingClientRect().width]), 3);
  for (const each of figure.querySelectorAll('.attn-h'))
    compare(each.querySelector('figcaption').textContent,
      [...each.querySelectorAll('.attn-bins span')].map(bar =>
        [Number(bar.textContent), bar.getBoundingClientRect().height]), 1);
  return bad;
}"""


def test_a_learner_comes_back(running: Lab, learner: Any) -> None:
    """Saved and opened again: explorers move at once, benches say what to do."""
    name = "again.ipynb"
    shutil.copy(running.folder / "figures.ipynb", running.folder / name)
    with watched(learner) as watch:
        page = watch.page
        open_notebook(watch, running, name)
        run_all(watch, running, name)
        page.keyboard.press("Escape")
        page.keyboard.press("Control+s")
        saved = running.folder / name
        for _ in range(300):
            if "attnlibBenches" in saved.read_text(encoding="utf-8"):
                break
            page.wait_for_timeout(100)
        assert "attnlibBenches" in saved.read_text(encoding="utf-8")
        assert "widget-view" not in saved.read_text(encoding="utf-8")
        running.stop_kernel(name)
        page.locator(".attn-bench input[type=number]").first.fill("3")
        eventually(
            page,
            "the bench says that the kernel is silent",
            "() => document.querySelector('.attn-bench .attn-bad').textContent"
            ".startsWith('The kernel does not answer.')",
        )
    with watched(learner) as watch:
        open_notebook(watch, running, name)
        for slider in watch.page.locator(".attn input[type=range]").all():
            slide(watch.page, slider)
        off = watch.page.locator(".attnlib-workbench .attn-off")
        assert off.count() == 2
        assert off.first.text_content() == "A picture. Run this cell to edit it."
        assert watch.page.get_by_text("model not found").count() == 0
        assert watch.complaints == []


def test_the_same_figures_on_a_dark_page(
    running: Lab, browser: Any, tmp_path: Path
) -> None:
    with (
        lab(running.folder, tmp_path, "JupyterLab Dark") as dark,
        watched(browser) as w,
    ):
        open_notebook(w, dark, "figures.ipynb")
        run_all(w, dark, "figures.ipynb")
        for index, figure in enumerate(w.page.locator(".attn").all()):
            figure.screenshot(path=SCREENS / f"dark-{index}.png")
            assert faint_texts(figure) == []
