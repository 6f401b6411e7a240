"""The table of claims: each row names a section that exists, with a cell that ran.

A row gives its claims as article.number: 2.9 is claim 9 of article 2. Together the rows
give them all.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CLAIMS = ROOT / "notebooks" / "CLAIMS.md"
TEXT = CLAIMS.read_text(encoding="utf-8")
SOURCES = {p.name[:2]: p for p in (ROOT / "notebooks" / "source").glob("*.md")}
# How many claims, questions and pieces of code stand in each article.
COUNTED = {1: 27, 2: 48, 3: 35}
EVERY = {f"{a}.{n}" for a, last in COUNTED.items() for n in range(1, last + 1)}


def table(text: str, width: int) -> list[list[str]]:
    """The rows of the table with so many columns, without its head."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    wide = [row for row in cells if len(row) == width]
    return [row for row in wide if not set(row[0]) <= {"-"}][1:]


def rows(text: str) -> list[list[str]]:
    return table(text, 4)


def given(numbers: str) -> list[str]:
    return numbers.split(", ")


def cells_that_ran(lesson: str, section: str) -> int | None:
    """How many code cells of a section were run; None if it is not in the notebook."""
    path = SOURCES[lesson].parent.parent / f"{SOURCES[lesson].stem}.ipynb"
    level, ran = "", None
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            if ran is not None and cell["execution_count"] is not None:
                ran += 1
            continue
        for found, title in re.findall(r"^(##+) (.+)$", "".join(cell["source"]), re.M):
            if level and len(found) <= len(level):
                return ran
            if title == section:
                level, ran = found, 0
    return ran


def faults(text: str) -> list[str]:
    found = []
    for claim, numbers, verdict, where in rows(text):
        lesson, section, *only = where.split(" · ", 2)
        ran = cells_that_ran(lesson, section) if lesson in SOURCES else None
        if ran is None:
            found.append(f"{claim!r} points to {where!r}, which is not there.")
        elif only and not re.fullmatch(r"text only: \S.+", only[0]):
            found.append(f"{claim!r} does not say why it has no cell.")
        elif bool(only) == bool(ran):
            found.append(f"{claim!r}: {ran} cells run in {where!r}.")
        if not set(given(numbers)) <= EVERY or not verdict:
            found.append(f"{claim!r} has no claim's number or no verdict.")
    return found


def test_each_claim_has_its_section_and_a_cell_there() -> None:
    assert faults(TEXT) == []
    assert len(rows(TEXT)) > 100


def test_every_claim_of_the_articles_is_in_the_table() -> None:
    named = {n for row in rows(TEXT) for n in given(row[1])}
    elsewhere = [n for row in table(TEXT, 3) for n in given(row[1])]
    assert len(elsewhere) < 10
    assert not named & set(elsewhere)
    assert EVERY - named - set(elsewhere) == set()


def test_every_lesson_measures_claims() -> None:
    named = {row[3][:2] for row in rows(TEXT)}
    # Lesson 00 is about the course itself; the articles stay on one machine.
    assert named == set(SOURCES) - {"00", "16"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("01 · The whole recipe", "01 · The half recipe"),
        ("| 3.4 | true, if", "| 3.40 | true, if"),
        ("| 3.4 | true, if", "| 4 | true, if"),
        ("01 · The whole recipe", "77 · The whole recipe"),
        ("01 · The whole recipe", "01 · To think about"),
        ("01 · The whole recipe", "01 · The whole recipe · text only: no reason"),
        (" · text only: a question to think about", ""),
        (" · text only: a question to think about", " · text"),
    ],
)
def test_a_wrong_row_is_found_out(old: str, new: str) -> None:
    assert old in TEXT
    assert len(faults(TEXT.replace(old, new))) == 1


def test_a_cell_that_did_not_run_is_found_out() -> None:
    assert cells_that_ran("01", "The whole recipe") == 1
    assert cells_that_ran("01", "To think about") == 0
    assert cells_that_ran("01", "Nowhere") is None
