"""What lesson 07 says about words that look at a picture, over many seeds.

    python tools/experiments/words_and_pictures.py     about three minutes on one core

Trains `attnlib.nn.canvases.WhereIs` with one, two and four heads on canvases of
scikit-learn's digits, and measures on canvases of digits it has not seen: how often
it is right, where each head looks, and what it says when quarter 0 is hidden from all
words. Writes attnlib/data/results/words_and_pictures.json.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from sklearn.datasets import load_digits

from attnlib.nn import canvases
from attnlib.nn.train import train
from attnlib.results import settings_hash

DATA = Path(__file__).resolve().parents[2] / "attnlib/data"
RESULT = DATA / "results/words_and_pictures.json"
SETTINGS = {
    "n_heads": [1, 2, 4],
    "seeds": list(range(10)),
    "data_seed": 0,
    "training_images": 1200,
    "training_canvases": 4000,
    "test_canvases": 600,
    "steps": 500,
    "batch": 64,
    "lr": 3e-3,
}


def data() -> tuple[canvases.Canvases, canvases.Canvases]:
    """Canvases to train on, and canvases of other images to test on."""
    digits = load_digits()
    images, labels = torch.tensor(digits.images / 16), torch.tensor(digits.target)
    generator = torch.Generator().manual_seed(SETTINGS["data_seed"])
    order = torch.randperm(len(images), generator=generator)
    images, labels, n = images[order], labels[order], SETTINGS["training_images"]
    known = canvases.draw(
        images[:n], labels[:n], SETTINGS["training_canvases"], generator
    )
    unseen = canvases.draw(images[n:], labels[n:], SETTINGS["test_canvases"], generator)
    return known, unseen


def trained(known: canvases.Canvases, n_heads: int, seed: int) -> canvases.WhereIs:
    """One model; the seed decides its first weights and its batches."""
    generator = torch.Generator().manual_seed(seed)
    model = canvases.WhereIs(n_heads, generator=generator)
    batch, lr = SETTINGS["batch"], SETTINGS["lr"]
    train(
        model,
        lambda step: model.loss(known.batch(batch, generator)),
        SETTINGS["steps"],
        lr=lr,
    )
    return model


@torch.no_grad()
def measured(model: canvases.WhereIs, test: canvases.Canvases) -> dict[str, object]:
    """How often it is right, where it looks, what it says with quarter 0 hidden."""
    weights = model.look(test.pictures, test.words).weights
    right = canvases.in_quarter(test.answers)[:, None]
    mass = (weights * right).sum(-1).mean((0, 2))
    hidden = ~canvases.in_quarter(torch.tensor(0))
    says_0 = model(test.pictures, test.words, hidden).argmax(-1) == 0
    there = test.answers == 0
    return {
        "accuracy": round(model.accuracy(test), 4),
        "mass": [round(m, 4) for m in mass.tolist()],
        "says_0_there": round(says_0[there].double().mean().item(), 4),
        "says_0_elsewhere": round(says_0[~there].double().mean().item(), 4),
    }


def main() -> None:
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    known, unseen = data()
    runs = []
    for n_heads in SETTINGS["n_heads"]:
        for seed in SETTINGS["seeds"]:
            found = measured(trained(known, n_heads, seed), unseen)
            runs.append({"n_heads": n_heads, "seed": seed} | found)
            print(runs[-1], flush=True)
    RESULT.parent.mkdir(exist_ok=True)
    rows = ",\n  ".join(json.dumps(run) for run in runs)
    made_with = settings_hash(SETTINGS)
    RESULT.write_text(
        f'{{"settings": {json.dumps(SETTINGS)},\n'
        f' "settings_sha256": "{made_with}",\n "runs": [\n  {rows}\n ]}}\n',
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
