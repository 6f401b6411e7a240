"""What lesson 09 says about scores that grow, and what holds them.

    python tools/experiments/stable.py        about three minutes on one core

The recall task of `attnlib.nn.recall`, with Xavier's start, trained by Adam at three
rates: the share of new questions that is answered rightly after the last step, and the
largest score by then. At the highest rate a difference in the last digit of a first
weight changes the second decimal, so this is stored and not run in the lesson. Writes
attnlib/data/results/stable.json.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch

from attnlib.nn import MultiHeadAttention
from attnlib.nn.recall import RecallModel, draw_pairs
from attnlib.nn.stable import Softcap, article_clip, hold_norms
from attnlib.nn.train import train
from attnlib.results import settings_hash

RESULT = Path(__file__).resolve().parents[2] / "attnlib/data/results/stable.json"
SETTINGS = {
    "remedies": [
        "nothing",
        "warm-up",
        "clip to 50",
        "softcap 50",
        "QK-norm",
        "sigmaReparam",
    ],
    "rates": [0.003, 0.03, 0.1],
    "seeds": list(range(10)),
    "d_model": 32,
    "n_heads": 4,
    "batch": 64,
    "steps": 100,
    "warm_steps": 50,
    "first_scale": 4.0,
    "questions": 2000,
}


def run(remedy: str, rate: float, seed: int) -> dict[str, float]:
    """Train once."""
    generator = torch.Generator().manual_seed(seed)
    options = {
        "clip to 50": {"on_scores": article_clip},
        "softcap 50": {"on_scores": Softcap(50.0)},
        "QK-norm": {"qk_norm": SETTINGS["first_scale"]},
    }.get(remedy, {})
    d_model = SETTINGS["d_model"]
    attention = MultiHeadAttention(
        d_model, SETTINGS["n_heads"], generator=generator, **options
    )
    if remedy == "sigmaReparam":
        hold_norms(attention)
    model = RecallModel(attention, d_model, generator=generator)

    def lr(step: int) -> float:
        if remedy != "warm-up":
            return rate
        return rate * min(1.0, (step + 1) / SETTINGS["warm_steps"])

    train(
        model,
        lambda step: model.loss(SETTINGS["batch"], generator),
        SETTINGS["steps"],
        lr=lr,
    )
    with torch.no_grad():
        scores = model.stages(draw_pairs(SETTINGS["questions"], generator)).scores
    share = model.accuracy(SETTINGS["questions"], generator)
    return {"share": round(share, 4), "largest": round(scores.abs().max().item(), 2)}


def main() -> None:
    """Run everything, and write the numbers."""
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    runs: dict[str, dict[str, list[dict[str, float]]]] = {}
    for remedy in SETTINGS["remedies"]:
        runs[remedy] = {}
        for rate in SETTINGS["rates"]:
            found = [run(remedy, rate, seed) for seed in SETTINGS["seeds"]]
            runs[remedy][str(rate)] = found
            print(remedy, rate, found, flush=True)
    stored = {
        "settings": SETTINGS,
        "settings_sha256": settings_hash(SETTINGS),
        "runs": runs,
    }
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
