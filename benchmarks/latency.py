"""From a key to the new picture, in JupyterLab: `python benchmarks/latency.py`.

Two times are taken in the page for every key: until the numbers in the page are the
new ones (changed), and until the browser has drawn the frame that shows them (drawn).
The frame comes at the earliest at the next tick of the screen, every 16.7 ms.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tools")]

import figure_notebook  # noqa: E402
from browser import chromium, lab, open_notebook, run_all, watched  # noqa: E402

REPEAT = 25
# figure, the control that gets the key, its keys by turns, ms allowed
CASES = (
    ("explorer", ".attn-control input", ("ArrowRight", "ArrowLeft"), 30),
    ("follow", '.attn-live td[tabindex="0"]', ("ArrowRight", "ArrowLeft"), 30),
    ("number in a workbench", "input[type=number]", ("ArrowUp", "ArrowDown"), 150),
    ("toggle of a mask", "td > button", ("Space", "Space"), 150),
)
WATCH = """control => {
  const figure = control.closest('.attn');
  const panels = figure.querySelector('.attn-out') || figure;
  window.__times = [];
  let pressed = null;
  figure.addEventListener('keydown', e => { pressed = e.timeStamp; }, true);
  figure.addEventListener('keyup', e => {
    if (e.key === ' ' && pressed === null) pressed = e.timeStamp; }, true);
  new MutationObserver(() => {
    if (pressed === null) return;
    const start = pressed, changed = performance.now() - start;
    pressed = null;
    requestAnimationFrame(() => setTimeout(() =>
      window.__times.push([changed, performance.now() - start])));
  }).observe(panels, {subtree: true, childList: true, characterData: true,
                      attributes: true, attributeFilter: ['style', 'class']});
}"""


def measure(page: Any, selector: str, keys: tuple[str, str]) -> Any:
    control = page.locator(selector).first
    control.scroll_into_view_if_needed()
    control.focus()
    page.evaluate(WATCH, control.element_handle())
    for turn in range(REPEAT):
        page.keyboard.press(keys[turn % 2])
        page.wait_for_timeout(180)
    changed, drawn = zip(*page.evaluate("window.__times"), strict=True)
    return changed, drawn


def main() -> int:
    late = 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "notebooks")
        folder.mkdir()
        figure_notebook.write(folder / "figures.ipynb")
        with (
            lab(folder, Path(scratch)) as served,
            chromium() as browser,
            watched(browser) as watch,
        ):
            open_notebook(watch, served, "figures.ipynb")
            run_all(watch, served, "figures.ipynb")
            watch.page.wait_for_timeout(1000)
            print(f"{'median of':24} {'n':>3} {'changed':>9} {'drawn':>9}  allowed")
            for name, selector, keys, allowed in CASES:
                changed, drawn = measure(watch.page, selector, keys)
                middle = statistics.median(drawn)
                late += middle > allowed
                print(
                    f"{name:24} {len(drawn):3} {statistics.median(changed):6.1f} ms"
                    f" {middle:6.1f} ms  {allowed} ms"
                )
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
