"""What lesson 10 says about its patients, for ten seeds each.

    python tools/experiments/clinic.py        about three minutes on one core

Each patient is trained as in the lesson, with another seed for tables and texts, and
then probed. The last one is healthy and pays, beside its loss, 0.1 times the imbalance
of its heads: the article's regulariser, mended. Writes
attnlib/data/results/clinic.json.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch

from attnlib import head_diagnostics
from attnlib.nn import charts, patients
from attnlib.nn.periods import Texts, draw_texts
from attnlib.nn.train import train
from attnlib.results import settings_hash

RESULT = Path(__file__).resolve().parents[2] / "attnlib/data/results/clinic.json"
SETTINGS = {
    "patients": {
        "A": "fillers seen",
        "B": "empty rows",
        "C": "healthy",
        "D": "one too far",
        "E": "no scale",
        "F": "silent head",
        "C, balanced": "healthy",
    },
    "seeds": list(range(10)),
    "steps": charts.STEPS,
    "rate": patients.RATE,
    "batch": patients.BATCH,
    "balance": 0.1,
    "texts": 200,
}


def run(letter: str, seed: int) -> dict[str, float | None]:
    """Train and probe one patient once. NaN is stored as null."""
    patient = patients.admit(SETTINGS["patients"][letter], seed)
    if letter == "C, balanced":
        probes = charts.probe_texts(patient)
        first = charts.measure(patient.model, probes)
        _train_balanced(patient, seed)
        last = charts.measure(patient.model, probes)
    else:
        chart = charts.watch(patient, SETTINGS["steps"], seed=seed)
        first, last = chart.signs[0], chart.signs[-1]
    generator = torch.Generator().manual_seed(5000 + seed)
    texts = draw_texts(SETTINGS["texts"], generator, shortest=24)
    changed = texts.ids.clone()
    changed[:, 12] = (changed[:, 12] + 1) % 12
    with torch.no_grad():
        model = patient.model
        move = model(texts) - model(Texts(changed, texts.real))
        written = model.write(texts.ids[:, :10], 12)[:, 10:]
        mixed = model.stages(texts).mixed.numpy()
        found = {
            "loss": last.loss,
            "keys_first": float(first.keys.mean()),
            "keys_last": float(last.keys.mean()),
            "quietest": float(last.loudness.min()),
            "nan_first": first.nan_weights,
            "alone": model.loss(texts).item(),
            "in_company": model.loss(texts.padded(10)).item(),
            "earlier": move[:, :12].abs().max().item(),
            "writes": (written == texts.ids[:, 10:22]).double().mean().item(),
            "imbalance": float(head_diagnostics.head_imbalance(mixed).mean()),
        }
    return {
        name: round(value, 4) if np.isfinite(value) else None
        for name, value in found.items()
    }


def _train_balanced(patient: patients.Patient, seed: int) -> None:
    drawn = torch.Generator().manual_seed(1000 + seed)

    def loss(step: int) -> torch.Tensor:
        texts = patient.texts(SETTINGS["batch"], drawn, step)
        loud = patient.model.stages(texts).mixed.square().mean((0, 2, 3)).sqrt()
        imbalance = (loud.std(correction=0) / loud.mean()) ** 2
        return patient.model.loss(texts) + SETTINGS["balance"] * imbalance

    train(patient.model, loss, SETTINGS["steps"], lr=SETTINGS["rate"])


def main() -> None:
    """Run everything, and write the numbers."""
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    runs = {}
    for letter in SETTINGS["patients"]:
        runs[letter] = [run(letter, seed) for seed in SETTINGS["seeds"]]
        print(letter, runs[letter], flush=True)
    stored = {
        "settings": SETTINGS,
        "settings_sha256": settings_hash(SETTINGS),
        "runs": runs,
    }
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
