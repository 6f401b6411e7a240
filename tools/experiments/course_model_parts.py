"""What of the recipe of the course's model brings which heads: leave parts out.

    python tools/experiments/course_model_parts.py    a quarter of an hour on one core

Trains the model of tools/train_course_model.py with fewer steps on text, four times:
with all parts, and with one or more of them left out. Measures the losses, and the
strongest previous-token head, induction head and sink of each. One seed each: take
large differences only. Writes attnlib/data/results/course_model_parts.json.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import train_course_model as script  # noqa: E402

from attnlib.head_diagnostics import (  # noqa: E402
    induction_score,
    offset_mass,
    sink_mass,
)
from attnlib.nn.language import LanguageModel  # noqa: E402
from attnlib.nn.text import plays  # noqa: E402
from attnlib.results import settings_hash  # noqa: E402

RESULT = ROOT / "attnlib/data/results/course_model_parts.json"
SETTINGS = {
    "seed": 0,
    "steps": 400,
    "arms": {
        "everything": {},
        "no repeats at all": {"first": 0, "second": 0, "repeats": 0.0},
        "repeats, but only beside the text": {"first": 0, "second": 0},
        "no <start>": {"start": False},
    },
    "periods": [20, 33, 47],
    "measured_windows": 64,
}


def table(per_head: np.ndarray) -> list[list[float]]:
    return [[round(float(x), 3) for x in row] for row in per_head]


@torch.no_grad()
def heads(model: LanguageModel, ids: torch.Tensor, start: bool) -> dict[str, object]:
    """Each head's scores, (n_layers, n_heads): on unseen text, and on repeats."""
    generator = torch.Generator().manual_seed(99)
    n, rows = script.SIZES.n_context - 1, SETTINGS["measured_windows"]
    text = script.text_windows(ids, n, rows, start, generator)
    layers = model(text, return_stages=True).layers
    weights = np.stack([layer.weights.numpy() for layer in layers], axis=1)
    found = []
    for period in SETTINGS["periods"]:
        periods = torch.full((16,), period)
        again, _ = script.repeat_windows(
            script.SIZES.n_tokens, n, periods, start, generator
        )
        layers = model(again, return_stages=True).layers
        maps = np.stack([layer.weights.numpy() for layer in layers], axis=1)
        found.append(induction_score(maps, period, int(start)).mean(axis=0))
    return {
        "previous": table(offset_mass(weights, 1).mean(axis=0)),
        "induction": table(np.min(found, axis=0)),  # of the periods, the worst
        "sink": table(sink_mass(weights[..., 1:, :]).mean(axis=0)),
    }


def even_sink() -> float:
    """What even weights have on the first key, rows 1 to n - 1."""
    n = script.SIZES.n_context
    return round(float(np.mean([1 / (i + 1) for i in range(1, n)])), 3)


def measured(changes: dict[str, object]) -> dict[str, object]:
    """Train one arm, and measure it."""
    known, unseen = plays()
    tokens = script.learn_tokens(known, script.SIZES.n_tokens)
    ids = torch.tensor(tokens.encode(known, start=False))
    validation = torch.tensor(tokens.encode(unseen, start=False))
    recipe = script.Recipe(
        **{"steps": SETTINGS["steps"], "seed": SETTINGS["seed"]} | changes
    )
    model, _ = script.train(ids, recipe)
    first, again = script.repeat_loss(model, recipe.start)
    loss = script.text_loss(model, validation, recipe.start)
    return {
        "validation_loss": round(loss, 3),
        "first_copy_loss": round(first, 3),
        "second_copy_loss": round(again, 3),
        **heads(model, validation, recipe.start),
    }


def written(arms: dict[str, dict[str, object]]) -> str:
    """All arms as JSON, with the settings that they were made with."""
    result = {
        "settings": SETTINGS,
        "settings_sha256": settings_hash(SETTINGS),
        "even_sink": even_sink(),
        "arms": arms,
    }
    return json.dumps(result, indent=1) + "\n"


def main() -> None:
    torch.set_num_threads(1)
    arms = {name: measured(changes) for name, changes in SETTINGS["arms"].items()}
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(written(arms), encoding="utf-8")


if __name__ == "__main__":
    main()
