"""What GitHub leaves of a figure: no script, no style, no picture drawn by either.

Every number of the state that is shown first has to stand there as text. (What
JupyterLab leaves of a notebook it does not trust is looked at in test_browser.py.)
"""

import json

import notebook_source as ns
import numpy as np
import pictures
import pytest
from bs4 import BeautifulSoup, Tag

from attnlib.explorers import Explorer, bars, explore, histogram, matrix, note
from attnlib.explorers.cells import text

LESSONS = ns.find_sources([])


def as_github(html: str) -> BeautifulSoup:
    """The page without all that a strict reader of notebooks drops."""
    page = BeautifulSoup(html, "html.parser")
    for tag in page(["script", "style", "svg", "input", "button"]):
        tag.decompose()
    for tag in page(True):
        tag.attrs = {}
    return page


def words(tag: Tag) -> str:
    return " ".join(tag.get_text(" ").split())


def shown_first(html: str) -> list[tuple[str, str]]:
    """For each panel its title and its numbers, from the data of the script."""
    page = BeautifulSoup(html, "html.parser")
    slider = page.find("input", type="range")
    if slider is None:  # follow, lights and benches: the table is the data
        found = page("table")
        assert found
        return [
            (words(table.caption), words(row)) for table in found for row in table("tr")
        ]
    data = json.loads(page.find("script", type="application/json").string)
    if "states" not in data:
        return vitals_first(page, data, int(slider["value"]))
    state = data["states"][int(slider["value"])]
    expected = []
    for panel, drawn in zip(state, page(attrs={"data-kind": True}), strict=True):
        kind, digits = drawn["data-kind"], int(drawn.get("data-digits", 0))
        numbers: list[str] = []
        if kind == "histogram":
            numbers = [" ".join(map(str, panel["v"])), *panel["x"]]
        elif drawn.get("data-colour") == "mask":
            numbers = ["✓" if value else "×" for value in panel["v"]]
        elif kind != "note":
            numbers = [text(value, digits) for value in panel["v"]]
        expected += [(panel["t"], number) for number in numbers or [""]]
    return expected


def vitals_first(
    page: BeautifulSoup, data: dict[str, list[object]], at: int
) -> list[tuple[str, str]]:
    """The numbers of all patients: where no script runs, none of them is hidden."""
    patients = zip(page.select("option"), data["values"], strict=True)
    titles = [words(t) for t in page.select(".attn-ward")[0].select("figcaption")]
    found = [(f"patient {words(option)}", "") for option, _ in patients]
    for signs in data["values"]:
        for title, digits, curve in zip(titles, data["digits"], signs, strict=True):
            found += [(title, text(value, digits)) for value in curve[at]]
    return found


def lost(html: str) -> list[str]:
    """The titles and numbers that are not to be read without script and style."""
    plain = f" {words(as_github(html))} "
    return [
        f"{title}: {number}"
        for title, number in shown_first(html)
        if title not in plain or f" {number} ".replace("  ", " ") not in plain
    ]


def figure() -> Explorer:
    rng = np.random.default_rng(0)
    return explore(
        [
            [
                histogram(*np.histogram(rng.normal(size=50), 7), "spread"),
                bars(rng.random(2), ["a", "b"], "lengths"),
                matrix(rng.normal(size=(2, 3)), title="w", colour="signed"),
                matrix(np.eye(2) > 0, title="m", colour="mask"),
                note("It is so."),
            ]
            for _ in range(3)
        ],
        control="t",
        labels="abc",
        title="T",
        sentence="S.",
        start=1,
    )


def test_every_number_is_text() -> None:
    assert len(shown_first(figure().html)) == 3 + 2 + 6 + 4 + 1
    assert lost(figure().html) == []


def test_numbers_in_style_alone_are_missed() -> None:
    page = BeautifulSoup(figure().html, "html.parser")
    for bar in page.select(".attn-bins span, .attn-num"):
        bar.string = ""
    assert [fault.partition(":")[0] for fault in lost(str(page))] == [
        "spread",
        "lengths",
        "lengths",
    ]


@pytest.mark.parametrize("source", LESSONS, ids=lambda source: source.stem)
def test_a_stored_lesson_keeps_its_numbers(source: ns.Path) -> None:
    stored = (ns.NOTEBOOKS / f"{source.stem}.ipynb").read_bytes()
    for cell in ns.from_bytes(stored).cells:
        for output in filter(pictures.is_figure, cell.get("outputs", [])):
            if html := output.data.get("text/html"):
                assert lost(html) == [], ns.where(source.stem, cell)
