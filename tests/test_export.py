"""A lesson exported as a page, without a kernel and without the network.

Each figure must be there: its sentence in words, and its table or its picture.
"""

from __future__ import annotations

import html

import notebook_source as ns
import pictures
import pytest
import tiny_lesson
from bs4 import BeautifulSoup

LESSONS = ns.find_sources([])


def export(content: bytes) -> str:
    from nbconvert import HTMLExporter

    page, _ = HTMLExporter().from_notebook_node(ns.from_bytes(content))
    return str(page)


def tables(page: str) -> set[str]:
    """The words of each table, whatever became of its quotes and line ends."""
    soup = BeautifulSoup(page, "html.parser")
    return {" ".join(table.get_text(" ").split()) for table in soup("table")}


def missing_figures(content: bytes, page: str) -> list[str]:
    """What a reader of the page would miss, in sentences."""
    faults = []
    plain, shown = html.unescape(page), tables(page)
    for cell in ns.from_bytes(content).cells:
        for output in filter(pictures.is_figure, cell.get("outputs", [])):
            sentence = output.data["text/plain"]
            if sentence not in plain:
                faults.append(f"no sentence: {sentence}")
            own = tables(output.data.get("text/html", ""))
            picture = "base64," + output.data["image/png"].strip()[:200] in page
            charts = "attn-ward" in output.data.get("text/html", "")
            drawn = charts and "<svg" in output.data["text/html"] and "<svg" in page
            if not (picture or drawn or (own and own <= shown)):
                faults.append(f"neither table nor picture: {sentence}")
    return faults


@pytest.mark.parametrize("source", LESSONS, ids=lambda source: source.stem)
def test_an_exported_lesson_shows_its_figures(source: ns.Path) -> None:
    content = (ns.NOTEBOOKS / f"{source.stem}.ipynb").read_bytes()
    assert missing_figures(content, export(content)) == []


def test_a_missing_figure_is_found_out() -> None:
    content = ns.to_bytes(tiny_lesson.tiny())
    page = export(content)
    assert missing_figures(content, page) == []
    bare = page.replace("<table", "<p").replace("0.25 and", "0.2 and")
    assert len(missing_figures(content, bare)) == 2
