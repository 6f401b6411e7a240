"""The figures in an exported page, which has no server, no kernel and no network."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import figure_notebook
import pytest
from browser import watched
from figure_hands import faint_texts, slide, walk
from test_browser import LESSONS, NAMES, ROOT, browser, pytestmark

__all__ = ["browser", "pytestmark"]


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    written = tmp_path_factory.mktemp("figures") / "figures.ipynb"
    figure_notebook.write(written)
    return written


@pytest.mark.parametrize("name", NAMES)
def test_an_exported_page(
    name: str, figures: Path, browser: Any, tmp_path: Path
) -> None:
    """nbconvert's page moves without a server, a kernel or a network."""
    import nbformat
    from nbconvert import HTMLExporter

    stored = ROOT / "notebooks" / name if name in LESSONS else figures
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
