"""Stored results: found by name, and refused when they were changed by hand."""

from __future__ import annotations

import hashlib
import json

import pytest

from attnlib import results
from attnlib.results import settings_hash, stored

NAMES = sorted(path.stem for path in results.RESULTS.glob("*.json"))


@pytest.mark.parametrize("name", NAMES)
def test_every_stored_result_was_made_with_its_settings(name):
    assert stored(name)["settings"]


def test_the_hash_is_that_of_the_sorted_json():
    packed = b'{"a": [1, 0.5], "b": "x"}'
    expected = hashlib.sha256(packed).hexdigest()
    assert settings_hash({"b": "x", "a": (1, 0.5)}) == expected


def test_what_is_not_there_is_named_beside_what_is():
    with pytest.raises(ValueError, match="no stored result 'lenght'; there are: "):
        stored("lenght")


def test_settings_changed_by_hand_are_refused(tmp_path, monkeypatch):
    changed = stored("length")
    changed["settings"]["steps"] += 1
    (tmp_path / "length.json").write_text(json.dumps(changed), encoding="utf-8")
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    with pytest.raises(
        ValueError, match=r"in length\.json are not those .*/length\.py"
    ):
        stored("length")
