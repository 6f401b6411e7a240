"""The minutes of lessons and exercises are said in several places, and agree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from attnlib.exercises import get, names

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "notebooks" / "source").glob("*.md"))
HEADLINE = re.compile(r"^### Exercise \d+ · `(\w+)` · (\d+) minutes · \S+", re.M)


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def minutes_of(path: Path) -> int:
    """What the lesson itself says, behind You need."""
    found = re.search(r"About (\d+)\s+minutes", text(path))
    assert found, path
    return int(found[1])


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.stem)
def test_headlines_are_the_exercises(path: Path) -> None:
    found = {name: int(minutes) for name, minutes in HEADLINE.findall(text(path))}
    assert found == {name: get(name).minutes for name in names(int(path.name[:2]))}


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.stem)
def test_the_share_of_the_exercises(path: Path) -> None:
    said = re.search(
        r"minutes, (\d+|half)\s+of\s+them\s+for\s+the\s+exercises", text(path)
    )
    total = sum(int(minutes) for _, minutes in HEADLINE.findall(text(path)))
    if said:
        wanted = minutes_of(path) // 2 if said[1] == "half" else int(said[1])
        assert total == wanted


@pytest.mark.parametrize("path", SOURCES[1:], ids=lambda p: p.stem)
def test_the_map_and_the_readme(path: Path) -> None:
    link = f"{path.stem}.ipynb)"
    for page in (SOURCES[0], ROOT / "README.md"):
        row = next(
            line for line in text(page).splitlines() if link in line and "|" in line
        )
        numbers = [int(cell) for cell in row.split("|") if cell.strip().isdecimal()]
        assert minutes_of(path) in numbers, row
