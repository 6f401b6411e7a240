"""Which tests need which real model, and one reason where it is missing."""

import json
from pathlib import Path
from typing import Any

import pytest

from attnlib import checkpoints

SENTENCES = (
    "The cat chased the mouse across the kitchen floor.",
    "My sister bought a red bicycle from an old friend last summer.",
    "Nobody knows why the small village lost its only teacher.",
    "When the rain stopped, we walked home along the river.",
    "She has never been to Paris, but he goes there every year.",
    "A good cook can make soup out of almost anything.",
    "The letter that arrived yesterday was written by my grandfather.",
    "They will open a new library near the station in October.",
)


def needs(name: str) -> pytest.MarkDecorator:
    """Skip where this model is not installed, and say how to get it."""
    reason = f"{checkpoints.checkpoint(name).title} is missing: {checkpoints.GET}"
    return pytest.mark.skipif(not checkpoints.here(name), reason=reason)


def reference(name: str) -> dict[str, Any]:
    """What other programs computed with this model; data/real_models.py says how."""
    path = Path(__file__).parent / "data" / "real_models.json"
    return json.loads(path.read_text(encoding="utf-8"))[name]


def agree(ours: Any, theirs: dict[str, Any], atol: float) -> None:
    """Compare a tensor with the places of it that were kept."""
    assert list(ours.shape) == theirs["shape"]
    found = [float(ours[tuple(place)]) for place in theirs["places"]]
    assert found == pytest.approx(theirs["values"], abs=atol)
    assert float(ours.double().abs().mean()) == pytest.approx(theirs["mean"], abs=atol)
