"""The table of claims: each row names a lesson and a section that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CLAIMS = ROOT / "notebooks" / "CLAIMS.md"
SOURCES = {p.name[:2]: p for p in (ROOT / "notebooks" / "source").glob("*.md")}


def rows(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if not set(row[0]) <= {"-"}][1:]


def faults(text: str) -> list[str]:
    found = []
    for claim, article, verdict, where in rows(text):
        lesson, _, section = where.partition(" · ")
        source = (
            SOURCES[lesson].read_text(encoding="utf-8") if lesson in SOURCES else ""
        )
        if not re.search(rf"^##+ {re.escape(section)}$", source, re.MULTILINE):
            found.append(f"{claim!r} points to {where!r}, which is not there.")
        if not re.fullmatch(r"[123](, [123])*", article) or not verdict:
            found.append(f"{claim!r} has no article or no verdict.")
    return found


def test_each_claim_has_its_section() -> None:
    assert faults(CLAIMS.read_text(encoding="utf-8")) == []
    assert len(rows(CLAIMS.read_text(encoding="utf-8"))) > 35


def test_every_lesson_measures_claims() -> None:
    named = {row[3][:2] for row in rows(CLAIMS.read_text(encoding="utf-8"))}
    assert named == set(SOURCES) - {"00"}  # lesson 00 is about the course itself


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("01 · The whole recipe", "01 · The half recipe"),
        ("| 3 | true, if", "| 4 | true, if"),
        ("01 · The whole recipe", "77 · The whole recipe"),
    ],
)
def test_a_wrong_row_is_found_out(old: str, new: str) -> None:
    text = CLAIMS.read_text(encoding="utf-8")
    assert old in text
    assert len(faults(text.replace(old, new))) == 1
