"""The figures in a real JupyterLab: every control is moved, every picture follows.

For each lesson, and for one notebook with a figure of each kind: open it as a fresh
clone would (nothing trusted, no kernel), then run all, then move every control from
the keyboard, then look at the exported page. Pictures go to build/screens.
"""

from __future__ import annotations

import importlib.util
import re
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
    run_all,
    watched,
)

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


@pytest.mark.parametrize("name", NAMES)
def test_a_lesson_in_lab(name: str, running: Lab, browser: Any) -> None:
    with watched(browser) as watch:
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


# What a slider changes: the panels of an explorer, the charts of the patient shown.
PICTURE = ".attn-panels, .attn-ward:not([hidden])"


def slide(page: Any, slider: Any) -> None:
    """Arrow keys, Home and End change the picture, and nothing else on the page."""
    assert slider.is_enabled()
    figure = slider.locator("xpath=ancestor::*[contains(@class, 'attn ')][1]")
    others = page.locator(PICTURE).all_text_contents()
    seen, last = {}, int(slider.get_attribute("max"))
    slider.focus()
    places = {"Home": 0, "ArrowRight": 1, "End": last, "ArrowLeft": last - 1}
    for key, at in places.items():
        page.keyboard.press(key)
        assert int(slider.input_value()) == at, f"{key} did not reach the slider"
        shown = figure.locator(PICTURE).inner_html()
        assert seen.setdefault(at, shown) == shown  # the same place, the same picture
        assert figure.locator("output").text_content()
    assert len(set(seen.values())) > 1
    now = page.locator(PICTURE).all_text_contents()
    assert sum(a != b for a, b in zip(others, now, strict=True)) <= 1


def choose(page: Any, select: Any) -> None:
    """Each choice shows charts of its own, and says whose they are."""
    assert select.is_enabled()
    figure = select.locator("xpath=ancestor::*[contains(@class, 'attn ')][1]")
    seen = []
    for name in select.locator("option").all_text_contents():
        select.select_option(name)
        shown = figure.locator(PICTURE)
        assert shown.count() == 1
        assert (shown.get_attribute("aria-label") or "").endswith(f" {name}")
        seen.append(shown.inner_html())
    assert len(set(seen)) == len(seen) > 1


def walk(page: Any, figure: Any) -> None:
    """The arrows move from cell to cell, and the note names where the element is."""
    cell = figure.locator('td[tabindex="0"]').first
    cell.focus()
    before = figure.locator(".attn-note").text_content()
    page.keyboard.press("ArrowRight")
    after = figure.locator(".attn-note").text_content()
    assert before != after
    assert figure.locator("td.k").count() >= 2
    figure.locator("tbody td").last.click()
    assert figure.locator(".attn-note").text_content() != after


def replies(bench: Any) -> int:
    return int(bench.get_attribute("data-replies") or 0)


def answered(page: Any, bench: Any, before: int) -> None:
    eventually(
        page,
        "the kernel answers",
        "([bench, before]) => Number(bench.dataset.replies || 0) > before",
        [bench.element_handle(), before],
    )


def work(page: Any, bench: Any) -> None:
    """Every cell can be edited from the keyboard, and the results follow."""
    results = bench.locator(".attn-out")
    first = results.text_content()
    for table in bench.locator(".attn-in table").all():
        pictures = {results.text_content()}
        for cell in table.locator("td > input, td > button").all():
            before = replies(bench)
            cell.focus()
            number = cell.get_attribute("type") == "number"
            page.keyboard.press("ArrowUp" if number else "Space")
            answered(page, bench, before)
            pictures.add(results.text_content())
        assert len(pictures) > 1, "no edit of this table changed a result"
    reset = bench.get_by_role("button", name="Reset")
    before = replies(bench)
    reset.press("Enter")
    answered(page, bench, before)
    assert results.text_content() == first
    for box in bench.locator("input[type=number]").all()[:1]:
        for entry in ("", "1e999"):
            box.fill(entry)
            assert box.get_attribute("aria-invalid") == "true"
            assert "no finite number" in bench.locator(".attn-bad").text_content()
            assert results.text_content() == first
        before = replies(bench)
        reset.press("Enter")
        answered(page, bench, before)
        assert bench.locator(".attn-bad").text_content() == ""
        before = replies(bench)
        box.fill("1e308")
        answered(page, bench, before)
        assert "infinite or NaN" in bench.locator(".attn-bad").text_content()
        assert max(map(len, bench.locator(".attn-out td").all_text_contents())) < 12
        before = replies(bench)
        reset.press("Enter")
        answered(page, bench, before)
        assert bench.locator(".attn-bad").text_content() == ""
        value = box.input_value()
        box.hover()
        box.focus()
        page.mouse.wheel(0, 100)
        page.wait_for_timeout(300)
        assert box.input_value() == value, "the wheel changed a number"
    for row in bench.locator("th > button").all():
        row.press("Enter")
        told = bench.locator(".attn-say").text_content()
        assert row.text_content() in told
        assert bench.locator("tr.attn-row").count() >= 2
    for preset in bench.locator(".attn-tools button").all()[:-1]:
        preset.press("Enter")
        assert preset.get_attribute("aria-pressed") == "true"


def test_a_learner_comes_back(running: Lab, browser: Any) -> None:
    """Saved and opened again: explorers move at once, benches say what to do."""
    name = "again.ipynb"
    shutil.copy(running.folder / "figures.ipynb", running.folder / name)
    with watched(browser) as watch:
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
    with watched(browser) as watch:
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


def faint_texts(figure: Any) -> list[str]:
    """Texts in cells whose colours are nearer than 4.5 : 1, as they are drawn."""
    found: list[str] = figure.evaluate(
        """figure => {
      const numbers = text => text.match(/[\\d.e+-]+/g).map(Number);
      const part = v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
      const light = rgb => .2126 * part(rgb[0]) + .7152 * part(rgb[1])
        + .0722 * part(rgb[2]);
      const read = text => text.startsWith('color(')
        ? numbers(text.replace('color(srgb', '')) : numbers(text).map(v => v / 255);
      const bad = [];
      for (const cell of figure.querySelectorAll('.attn-m tbody td:not(.o)')) {
        const style = getComputedStyle(cell);
        const back = read(style.backgroundColor);
        if (!cell.textContent || cell.firstElementChild || back[3] < 1) continue;
        const [a, b] = [light(read(style.color)), light(back)];
        const contrast = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
        if (contrast < 4.5) bad.push(`${cell.textContent} ${contrast.toFixed(2)}`);
      }
      return bad;
    }"""
    )
    return found


@pytest.mark.parametrize("name", NAMES)
def test_an_exported_page(
    name: str, running: Lab, browser: Any, tmp_path: Path
) -> None:
    """nbconvert's page moves without a server, a kernel or a network."""
    import nbformat
    from nbconvert import HTMLExporter

    stored = ROOT / "notebooks" / name if name in LESSONS else running.folder / name
    html, _ = HTMLExporter().from_notebook_node(nbformat.read(stored, 4))
    # nbconvert's own MathJax and require.js come from a network; ours needs none.
    html = re.sub(r'<script src="https?://[^"]*"></script>', "", html)
    page_file = tmp_path / "page.html"
    page_file.write_text(html, encoding="utf-8")
    with watched(browser, offline=True) as watch:
        watch.page.goto(page_file.as_uri())
        for slider in watch.page.locator(".attn input[type=range]").all():
            slide(watch.page, slider)
        for figure in watch.page.locator(".attn-live").all():
            walk(watch.page, figure)
        for figure in watch.page.locator(".attn").all():
            assert faint_texts(figure) == []
        assert [c for c in watch.complaints if "MathJax" not in c] == []
