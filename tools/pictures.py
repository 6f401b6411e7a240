"""Draw the figures of a notebook as pictures, for readers without scripts or kernel.

GitHub runs no script and knows neither plotly nor widgets; an exported page has no
plotly. So the build puts an `image/png` into the bundle of every figure, drawn by a
headless browser, with the figure's sentence as its alt text. Browsers and fonts draw
the same figure slightly differently, so a stored picture is kept for as long as the
rest of its bundle is unchanged.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import io
import json
import re
from pathlib import Path
from types import TracebackType
from typing import Any

from browsers import find_browser
from notebook_source import LessonError, from_bytes, where

PLOTLY = "application/vnd.plotly.v1+json"
FIGURE_HTML = re.compile(r"class=[\"'][^\"']*\battnlib-(explorer|workbench)\b")
SELECTOR = ".attnlib-explorer, .attnlib-workbench, #plotly"
WIDTH = 760  # CSS pixels: about the width of an output in Lab on a small laptop
MARGIN = 8
MAX_BYTES = 60_000
PAGE = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: {margin}px; background: #fff; color: #000; width: {width}px;
  font: 14px/1.4 system-ui, "DejaVu Sans", sans-serif; }}
</style><body>{body}</body>"""
# What is to be seen of a figure, which is narrower than the page.
CONTENT = """figure => {
  const whole = figure.getBoundingClientRect();
  let [right, bottom] = [whole.x, whole.y];
  const reach = r => {
    if (!r.width) return;
    right = Math.max(right, r.right);
    bottom = Math.max(bottom, r.bottom);
  };
  const range = document.createRange();
  for (const each of [figure, ...figure.querySelectorAll("*")]) {
    if (each.matches("script, style")) continue;
    if (each.matches("table, figure, input, button, svg, canvas")) {
      reach(each.getBoundingClientRect());
    }
    for (const node of each.childNodes) {
      if (node.nodeType !== Node.TEXT_NODE || !node.data.trim()) continue;
      range.selectNodeContents(node);
      [...range.getClientRects()].forEach(reach);
    }
  }
  const [width, height] = [right - whole.x, bottom - whole.y];
  return { x: whole.x + scrollX, y: whole.y + scrollY, width, height };
}"""
BROWSER_ARGS = ["--no-sandbox", "--disable-gpu", "--hide-scrollbars"]


def is_figure(output: Any) -> bool:
    """Whether an output is a figure of ours: an explorer, a workbench or plotly."""
    data = output.get("data", {})
    return PLOTLY in data or bool(FIGURE_HTML.search(data.get("text/html", "")))


def bundle_key(output: Any) -> str:
    """A hash of everything in the bundle but its picture."""
    rest = {mime: v for mime, v in output["data"].items() if mime != "image/png"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def known_pictures(stored: bytes) -> dict[str, tuple[str, Any]]:
    """The pictures of a stored notebook: key of the bundle -> (PNG, metadata)."""
    return {
        bundle_key(output): (output.data["image/png"], output.metadata["image/png"])
        for cell in from_bytes(stored).cells
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {}) and "image/png" in output.metadata
    }


def add_pictures(
    lesson: str, notebook: Any, known: dict[str, tuple[str, Any]], drawer: Drawer
) -> None:
    """Give each figure its picture: the known one, else one drawn now."""
    for cell in notebook.cells:
        for output in filter(is_figure, cell.get("outputs", [])):
            sentence = output.data.get("text/plain", "")
            if not sentence:
                raise LessonError(f"{where(lesson, cell)}: a figure has no sentence.")
            picture = known.get(bundle_key(output))
            if picture is None:
                try:
                    png, width, height = drawer.draw(output.data)
                except LessonError as error:
                    raise LessonError(f"{where(lesson, cell)}: {error}") from None
                picture = (
                    base64.b64encode(png).decode("ascii"),
                    {"alt": sentence, "height": height, "width": width},
                )
            output.data["image/png"] = picture[0]
            output.metadata["image/png"] = picture[1]


class Drawer:
    """A headless browser, started with the first picture and closed at the end."""

    def __init__(self) -> None:
        self._playwright: Any = None
        self._browser: Any = None

    def __enter__(self) -> Drawer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._browser is not None:
            self._browser.close()
        if self._playwright is not None:
            self._playwright.stop()

    def draw(self, data: Any) -> tuple[bytes, int, int]:
        """Draw one bundle; return the PNG and its size on the page."""
        self._start()
        for scale in (2, 1):  # twice as fine as the page, if that is small enough
            png, width, height = self._shoot(data, scale)
            png = _fewer_colours(png)
            if len(png) <= MAX_BYTES:
                return png, width, height
        raise LessonError(
            f"the picture of this figure has {len(png) // 1000} kB; more than "
            f"{MAX_BYTES // 1000} kB is too much. Show fewer numbers."
        )

    def _start(self) -> None:
        if self._browser is not None:
            return
        path = find_browser()
        if path is None or importlib.util.find_spec("playwright") is None:
            raise LessonError(
                "its picture must be drawn anew, and that needs Chromium (or Chrome) "
                "and the package playwright; neither may be missing. On Debian: "
                "apt install chromium. Else set ATTNLIB_BROWSER to a browser."
            )
        from playwright.sync_api import sync_playwright

        self._playwright = sync_playwright().start()
        self._browser = self._playwright.chromium.launch(
            executable_path=path, args=BROWSER_ARGS
        )

    def _shoot(self, data: Any, scale: int) -> tuple[bytes, int, int]:
        context = self._browser.new_context(
            viewport={"width": WIDTH + 2 * MARGIN, "height": 600},
            device_scale_factor=scale,
            offline=True,
            reduced_motion="reduce",
        )
        try:
            page = context.new_page()
            if PLOTLY in data:
                _load_plotly(page, data[PLOTLY])
            else:
                page.set_content(_page(data["text/html"]))
                # One frame, so that the scripts of an explorer have drawn.
                page.evaluate("() => new Promise(requestAnimationFrame)")
            box = page.locator(SELECTOR).first.evaluate(CONTENT)
            clip = {
                "x": box["x"] - MARGIN,
                "y": box["y"] - MARGIN,
                "width": box["width"] + 2 * MARGIN,
                "height": box["height"] + 2 * MARGIN,
            }
            png: bytes = page.screenshot(clip=clip, full_page=True)
            return png, round(clip["width"]), round(clip["height"])
        finally:
            context.close()


def _page(body: str) -> str:
    return PAGE.format(width=WIDTH, margin=MARGIN, body=body)


def _load_plotly(page: Any, figure: Any) -> None:
    spec = importlib.util.find_spec("plotly")
    if spec is None or spec.origin is None:
        raise LessonError("a plotly figure cannot be drawn without plotly.")
    bundle = Path(spec.origin).parent / "package_data" / "plotly.min.js"
    page.set_content(_page('<div id="plotly"></div>'))
    page.add_script_tag(path=str(bundle))
    page.evaluate(
        "figure => Plotly.newPlot('plotly', figure.data, figure.layout, "
        "{displayModeBar: false})",
        {"data": figure["data"], "layout": figure.get("layout", {})},
    )


def _fewer_colours(png: bytes) -> bytes:
    from PIL import Image

    with Image.open(io.BytesIO(png)) as image:
        small = image.convert("RGB").quantize(colors=64, dither=Image.Dither.NONE)
        out = io.BytesIO()
        small.save(out, "PNG", optimize=True)
    return out.getvalue()
