"""What lesson 09 reads and runs: stored numbers fit their scripts, live ones hold."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from experiments import init, stable
from torch_tools import in_float64, one_thread  # noqa: F401 - fixtures for every test

from attnlib import results
from attnlib.results import settings_hash

LESSON = (
    Path(__file__).parent.parent / "notebooks/source/09_starting_and_staying_stable.md"
)


@pytest.mark.parametrize("script", [init, stable])
def test_the_stored_numbers_were_made_with_these_settings(script) -> None:
    stored = results.stored(script.RESULT.stem)
    assert stored["settings"] == script.SETTINGS
    assert stored["settings_sha256"] == settings_hash(script.SETTINGS)


def test_every_run_of_the_first_weights_is_there() -> None:
    stored = results.stored("init")
    for by, task in (("adam", "recall"), ("sgd", "recall"), ("text", "text")):
        assert list(stored[by]) == list(init.SETTINGS["starts"])
        for runs in stored[by].values():
            assert len(runs) == len(init.SETTINGS[task]["seeds"])


def test_every_run_of_the_growing_scores_is_there_and_one_comes_out_again() -> None:
    stored = results.stored("stable")["runs"]
    assert list(stored) == stable.SETTINGS["remedies"]
    for by_rate in stored.values():
        assert [float(rate) for rate in by_rate] == stable.SETTINGS["rates"]
        assert {len(runs) for runs in by_rate.values()} == {10}
    again = stable.run("QK-norm", 0.003, 0)
    for name, value in stored["QK-norm"]["0.003"][0].items():
        assert again[name] == pytest.approx(value, abs=0.01)


def lesson() -> dict[str, object]:
    """The setup of the lesson, and its functions that train."""
    text = LESSON.read_text(encoding="utf-8")
    code = r"```\{code-cell\}\n(?::tags:[^\n]*\n)?(.*?)```"
    cells = re.findall(code, text, re.DOTALL)
    space: dict[str, object] = {}
    for cell in cells:
        if cell is cells[0] or cell.startswith(("def new_model", "def learn")):
            exec(cell, space)
    return space


@pytest.mark.parametrize(
    ("std", "options"),
    [(0.02 / 32**0.5, {}), (32**-0.5, {}), (5 / 32**0.5, {}), (1.0, {}),
     (5 / 32**0.5, {"rate": 0.009}), (5 / 32**0.5, {"qk_norm": 4.0}),
     (5 / 32**0.5, {"hold": True})],
)  # fmt: skip
def test_a_last_digit_of_the_first_weights_changes_no_printed_digit(
    std: float, options: dict[str, object]
) -> None:
    space = lesson()
    new_model, learn = space["new_model"], space["learn"]
    assert callable(new_model)
    assert callable(learn)

    def perturbed(std, seed, **options):
        model, gen = new_model(std, seed, **options)
        noise = torch.Generator().manual_seed(7)
        with torch.no_grad():
            for part in model.parameters():
                part.mul_(1 + 1e-9 * torch.randn(part.shape, generator=noise))
        return model, gen

    as_it_is = learn(std, 0, **options)
    space["new_model"] = perturbed
    assert np.round(learn(std, 0, **options), 3) == np.round(as_it_is, 3)
