"""What lesson 08 says about positions in pictures.

    python tools/experiments/digits_positions.py     about ten minutes on one core

Trains a small transformer on scikit-learn's digits, 8 x 8 pixels cut into 16 patches,
with nine ways to tell a patch where it stands, with many training pictures and with
few. "joined" puts half a vector for the row beside half a one for the column, as ViT
has it; "added" adds two whole ones. The number is the standard deviation of the first
positions: it matters more than the shape of the table. Writes
attnlib/data/results/digits_positions.json.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy

from attnlib import positions
from attnlib.nn.placed import Block, draw_linear
from attnlib.nn.train import train
from attnlib.results import settings_hash

DATA = Path(__file__).resolve().parents[2] / "attnlib/data"
RESULT = DATA / "results/digits_positions.json"
SETTINGS = {
    "schemes": [
        "none",
        "sinusoid 1-D",
        "sinusoid 2-D",
        "1-D 0.2",
        "2-D joined 0.2",
        "2-D added 0.2",
        "1-D 0.5",
        "2-D joined 0.5",
        "2-D added 0.5",
    ],
    "seeds": [0, 1, 2, 3],
    "training_pictures": [1200, 200],
    "test_pictures": 597,
    "patch": 2,
    "d_model": 48,
    "n_heads": 4,
    "n_layers": 2,
    "steps": 250,
    "batch": 64,
    "lr": 3e-3,
}


def patches(pictures: torch.Tensor) -> torch.Tensor:
    """(batch, 8, 8) -> (batch, 16, 4): the patches row by row."""
    size = SETTINGS["patch"]
    cut = pictures.unflatten(1, (-1, size)).unflatten(3, (-1, size))
    return cut.transpose(2, 3).flatten(3).flatten(1, 2)


class Pictures(nn.Module):
    """A transformer over patches, and the mean of its tokens to ten digits."""

    def __init__(self, scheme: str, generator: torch.Generator) -> None:
        super().__init__()
        d_model, side = SETTINGS["d_model"], 8 // SETTINGS["patch"]
        self.kind, _, spread = scheme.rpartition(" ")
        self.scheme, self.side = scheme, side

        def drawn(*shape: int) -> nn.Parameter:
            first = torch.randn(*shape, generator=generator)
            return nn.Parameter(float(spread) * first)

        if self.kind == "1-D":
            self.places = drawn(side * side, d_model)
        elif self.kind == "2-D joined":  # as positions.grid, but with a gradient
            self.rows, self.columns = (drawn(side, d_model // 2) for _ in range(2))
        elif self.kind == "2-D added":
            self.rows, self.columns = (drawn(side, d_model) for _ in range(2))
        elif scheme == "sinusoid 1-D":
            table = positions.sinusoidal(side * side, d_model)
            self.register_buffer("places", torch.from_numpy(table))
        elif scheme == "sinusoid 2-D":
            one = positions.sinusoidal(side, d_model // 2)
            table = positions.grid(one, one)
            self.register_buffer("places", torch.from_numpy(table))
        self.embed = nn.Linear(SETTINGS["patch"] ** 2, d_model)
        self.blocks = nn.ModuleList(
            Block(d_model, SETTINGS["n_heads"], generator=generator)
            for _ in range(SETTINGS["n_layers"])
        )
        self.last_norm = nn.LayerNorm(d_model)
        self.to_digits = nn.Linear(d_model, 10)
        draw_linear(self.embed, generator)
        draw_linear(self.to_digits, generator)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        """(batch, 8, 8) -> (batch, 10)."""
        x = self.embed(patches(pictures))
        if self.kind in ("2-D joined", "2-D added"):
            rows = self.rows.repeat_interleave(self.side, 0)
            columns = self.columns.repeat(self.side, 1)
            joined = self.kind == "2-D joined"
            x = x + (torch.cat([rows, columns], 1) if joined else rows + columns)
        elif self.scheme != "none":
            x = x + self.places
        for block in self.blocks:
            x = block(x)
        return self.to_digits(self.last_norm(x).mean(1))


def accuracy(scheme: str, n_training: int, seed: int) -> float:
    """Train one model, and measure it on pictures it never saw."""
    digits = load_digits()
    order = torch.randperm(
        len(digits.target), generator=torch.Generator().manual_seed(0)
    )
    x = torch.from_numpy(digits.images)[order] / 16
    y = torch.from_numpy(digits.target)[order]
    generator = torch.Generator().manual_seed(seed)
    model = Pictures(scheme, generator)

    def loss(step):
        chosen = torch.randint(n_training, (SETTINGS["batch"],), generator=generator)
        return cross_entropy(model(x[chosen]), y[chosen])

    train(model, loss, SETTINGS["steps"], lr=SETTINGS["lr"])
    start = len(y) - SETTINGS["test_pictures"]
    with torch.no_grad():
        right = model(x[start:]).argmax(-1) == y[start:]
    return round(right.double().mean().item(), 4)


def main() -> None:
    """Run everything, and write the numbers."""
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    found: dict[str, dict[str, list[float]]] = {}
    for n in SETTINGS["training_pictures"]:
        for scheme in SETTINGS["schemes"]:
            row = [accuracy(scheme, n, seed) for seed in SETTINGS["seeds"]]
            found.setdefault(str(n), {})[scheme] = row
            print(n, scheme, row, flush=True)
    stored = {
        "settings": SETTINGS,
        "settings_sha256": settings_hash(SETTINGS),
        "accuracy": found,
    }
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
