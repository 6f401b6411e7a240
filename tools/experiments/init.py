"""What lesson 09 says about first weights, noise and a larger V.

    python tools/experiments/init.py        about fifteen minutes on one core

Two tasks. Recall: `attnlib.nn.recall`, trained by Adam and by plain SGD; how many steps
until 9 of 10 new questions are answered, and the share after the last step. Text: a
character model of two layers; its loss on a play that it never saw. Each start differs
from "xavier" in one thing only. Writes attnlib/data/results/init.json.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from attnlib.nn import MultiHeadAttention
from attnlib.nn.placed import PlacedModel
from attnlib.nn.recall import RecallModel
from attnlib.nn.text import characters, windows
from attnlib.nn.train import train
from attnlib.results import settings_hash

RESULT = Path(__file__).resolve().parents[2] / "attnlib/data/results/init.json"
XAVIER = {"gain": 1.0, "std": None, "gain_v": 1.0, "noise": 0.0}
SETTINGS = {
    "starts": {
        "xavier": XAVIER,
        "std 0.02": XAVIER | {"std": 0.02},
        "gain 0.02": XAVIER | {"gain": 0.02},
        "gain 5": XAVIER | {"gain": 5.0},
        "larger V": XAVIER | {"gain_v": 2.0},
        "gain 0.02, larger V": XAVIER | {"gain": 0.02, "gain_v": 2.0},
        "noise 0.01": XAVIER | {"noise": 0.01},
    },
    "recall": {
        "seeds": list(range(6)),
        "d_model": 32,
        "n_heads": 4,
        "batch": 64,
        "steps": {"adam": 200, "sgd": 100},
        "lr": {"adam": 3e-3, "sgd": 1.0},
        "every": 5,
        "questions": 1000,
    },
    "text": {
        "seeds": [0, 1, 2],
        "dtype": "float32",
        "d_model": 64,
        "n_heads": 4,
        "n_layers": 2,
        "n": 32,
        "batch": 32,
        "steps": 300,
        "lr": 3e-3,
        "measured_windows": 512,
        "text": "attnlib/data/shakespeare.txt.gz",
    },
}


@torch.no_grad()
def start(attention: MultiHeadAttention, how, generator) -> None:
    """Draw W_q, W_k and W_v anew. All have variances of Xavier, times a gain."""
    for table in (attention.W_q, attention.W_k):
        std = how["std"] or how["gain"] * table.in_features**-0.5
        nn.init.normal_(table.weight, 0.0, std, generator)
    std = how["gain_v"] * attention.W_v.in_features**-0.5
    nn.init.normal_(attention.W_v.weight, 0.0, std, generator)


def add_noise(attention: MultiHeadAttention, size: float, generator) -> None:
    """As the article has it, after the scale; in training only, which it has not."""

    def hook(module, args, kwargs):
        x, memory = args[0], args[1] if len(args) > 1 else args[0]
        if not module.training:
            return None
        shape = (len(x), module.n_heads, x.shape[-2], memory.shape[-2])
        noise = torch.randn(shape, generator=generator, dtype=x.dtype)
        return args, kwargs | {"score_bias": size * noise}

    if size:
        attention.register_forward_pre_hook(hook, with_kwargs=True)


def recall(how, seed: int, optimiser: str) -> dict[str, float | int | None]:
    """Train on the recall task; when does it know 9 of 10?"""
    at = SETTINGS["recall"]
    generator = torch.Generator().manual_seed(seed)
    attention = MultiHeadAttention(at["d_model"], at["n_heads"], generator=generator)
    start(attention, how, generator)
    add_noise(attention, how["noise"], torch.Generator().manual_seed(1000 + seed))
    model = RecallModel(attention, at["d_model"], generator=generator)
    first: list[int] = []

    def report(step: int, loss: float) -> None:
        if first or step % at["every"]:
            return
        model.eval()
        test = torch.Generator().manual_seed(5000 + step)
        if model.accuracy(at["questions"], test) >= 0.9:
            first.append(step)
        model.train()

    train(
        model,
        lambda step: model.loss(at["batch"], generator),
        at["steps"][optimiser],
        lr=at["lr"][optimiser],
        optimiser=optimiser,
        report=report,
    )
    share = model.accuracy(2 * at["questions"], torch.Generator().manual_seed(1))
    return {"steps_to_90": first[0] if first else None, "share": round(share, 4)}


def text(how, seed: int) -> float:
    """Train a character model; its loss on a play that it never saw."""
    at = SETTINGS["text"]
    generator = torch.Generator().manual_seed(seed)
    plays = characters()
    dtype = getattr(torch, at["dtype"])  # float32: half the time, and enough
    torch.set_default_dtype(dtype)
    model = PlacedModel(
        len(plays.vocabulary),
        "learned",
        d_model=at["d_model"],
        n_heads=at["n_heads"],
        n_layers=at["n_layers"],
        generator=generator,
    )
    noise = torch.Generator().manual_seed(1000 + seed)
    for block in model.blocks:
        start(block.attention, how, generator)
        add_noise(block.attention, how["noise"], noise)

    def loss(step: int) -> torch.Tensor:
        x, targets = windows(plays.train, at["n"], at["batch"], generator)
        return cross_entropy(model(x).flatten(0, 1), targets.flatten())

    train(model, loss, at["steps"], lr=at["lr"])
    model.eval()
    test = torch.Generator().manual_seed(1)
    x, targets = windows(plays.validation, at["n"], at["measured_windows"], test)
    with torch.no_grad():
        value = cross_entropy(model(x).flatten(0, 1), targets.flatten()).item()
    return round(value, 4)


def main() -> None:
    """Run everything, and write the numbers."""
    torch.set_num_threads(1)
    found: dict[str, dict[str, object]] = {"adam": {}, "sgd": {}, "text": {}}
    for name, how in SETTINGS["starts"].items():
        torch.set_default_dtype(torch.float64)
        for optimiser in ("adam", "sgd"):
            seeds = SETTINGS["recall"]["seeds"]
            found[optimiser][name] = [recall(how, seed, optimiser) for seed in seeds]
            print(optimiser, name, found[optimiser][name], flush=True)
        found["text"][name] = [text(how, seed) for seed in SETTINGS["text"]["seeds"]]
        print("text", name, found["text"][name], flush=True)
    stored = {"settings": SETTINGS, "settings_sha256": settings_hash(SETTINGS), **found}
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
