"""What lesson 14 reads and runs: stored numbers fit their script, live ones hold."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from experiments import heads
from torch_tools import in_float64, one_thread  # noqa: F401 - fixtures for every test

from attnlib import results
from attnlib.nn import lookups

LESSON = Path(__file__).parent.parent / "notebooks/source/14_shaping_heads.md"


@pytest.fixture(scope="module")
def stored() -> dict[str, Any]:
    return results.stored("heads")


def test_the_stored_numbers_were_made_with_these_settings(stored) -> None:
    assert stored["settings"] == heads.SETTINGS


def test_every_run_is_there(stored) -> None:
    assert len(stored["prune"]) == len(heads.SETTINGS["prune"]["seeds"])
    for part, (choices, _) in heads.PARTS.items():
        assert list(stored[part]) == heads.SETTINGS[part][choices]
        for runs in stored[part].values():
            assert len(runs) == len(heads.SETTINGS[part]["seeds"])
    assert {len(losses) for losses in stored["course"]["losses"].values()} == {19}


def test_only_the_gate_of_a_text_sees_what_comes_after(stored) -> None:
    for name, runs in stored["text"].items():
        for run in runs:
            leaks = abs(run["all"] - run["cut"]) > 2e-4
            assert leaks == (name == "gate a text")


def test_one_run_of_each_comes_out_again(stored) -> None:
    again, before = heads.prune(1), stored["prune"][1]
    assert again["all"] == pytest.approx(before["all"], abs=0.01)
    for budget in ("2", "3"):
        assert again[budget] == pytest.approx(before[budget], abs=0.01)
    for part, name in (("distil", "+ scores"), ("shape", "gate a token")):
        again = heads.PARTS[part][1](name, 1)
        assert again == pytest.approx(stored[part][name][1], abs=0.02)


def test_the_articles_loss_in_the_script_is_that_of_the_lesson() -> None:
    space = lesson()
    draw = torch.Generator().manual_seed(0)
    a, b = (torch.rand(2, 3, 4, 5, generator=draw).softmax(-1) for _ in range(2))
    assert space["distill_loss"](a, b) == heads.article_distil_loss(a, b)


def lesson(*more: str) -> dict[str, Any]:
    """The setup of the lesson, its functions that train, and cells that begin so."""
    text = LESSON.read_text(encoding="utf-8")
    code = r"```\{code-cell\}\n(?::tags:[^\n]*\n)?(.*?)```"
    cells = re.findall(code, text, re.DOTALL)
    space: dict[str, Any] = {}
    wanted = ("def trained", "def teach", "def distill_loss", *more)
    for cell in cells:
        if cell is cells[0] or cell.startswith(wanted):
            exec(cell, space)
            if cell.startswith("def trained"):
                space["model"] = space["trained"](6)
    return space


class Nudged(lookups.LookupModel):
    """The same tables but for their last digits."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        noise = torch.Generator().manual_seed(7)
        with torch.no_grad():
            for part in self.parameters():
                part.mul_(1 + 1e-9 * torch.randn(part.shape, generator=noise))


@pytest.mark.parametrize("n_heads", [1, 2, 6])
def test_a_last_digit_of_the_first_tables_changes_no_printed_digit(
    n_heads, monkeypatch
) -> None:
    space = lesson()
    texts = lookups.draw_lookups(400, torch.Generator().manual_seed(7004))
    model = space["trained"](n_heads)
    monkeypatch.setattr(lookups, "LookupModel", Nudged)
    other = space["trained"](n_heads)
    with torch.no_grad():
        assert round(model.accuracy(texts), 3) == round(other.accuracy(texts), 3)
        for a, b in zip(
            (model.loss(texts), model.stages(texts).weights),
            (other.loss(texts), other.stages(texts).weights),
            strict=True,
        ):
            assert np.abs(a.numpy() - b.numpy()).max() < 1e-5


def test_nor_does_it_change_what_the_students_answer(monkeypatch) -> None:
    space = lesson("few = ", "ways = ")
    texts = lookups.draw_lookups(400, torch.Generator().manual_seed(7004))
    with monkeypatch.context() as nudged:
        as_it_is = {name: space["teach"](way) for name, way in space["ways"].items()}
        nudged.setattr(lookups, "LookupModel", Nudged)
        for name, way in space["ways"].items():
            one, other = as_it_is[name], space["teach"](way)
            assert round(one.accuracy(texts), 2) == round(other.accuracy(texts), 2)
