"""What lesson 08 says about texts longer than those of the training.

    python tools/experiments/length.py        about ten minutes on one core

Trains small character models on windows of 32 characters, one for each scheme and
seed, and measures their loss with 32, 64, 128 and 256 characters of context. What is
predicted is the same at every length: the last 16 characters of the same windows. So a
model that makes good use of context gets better with length, and none meets harder
text. Writes attnlib/data/results/length.json.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from torch.nn.functional import cross_entropy

from attnlib import positions
from attnlib.nn.placed import SCHEMES, PlacedModel
from attnlib.nn.rotary import Rotary
from attnlib.nn.text import characters, windows
from attnlib.nn.train import train
from attnlib.results import settings_hash

RESULT = Path(__file__).resolve().parents[2] / "attnlib/data/results/length.json"
SETTINGS = {
    "schemes": list(SCHEMES),
    "stretched": ["interpolation", "from 1", "from 2", "from 3", "ntk", "yarn"],
    "seeds": [0, 1, 2],
    "d_model": 64,
    "n_heads": 4,
    "n_layers": 2,
    "trained_length": 32,
    "batch": 32,
    "steps": 400,
    "lr": 3e-3,
    "lengths": [32, 64, 128, 256],
    "measured_windows": 256,
    "measured_last": 16,
    "text": "attnlib/data/shakespeare.txt.gz",
}


def trained(scheme: str, seed: int) -> PlacedModel:
    """One model, trained on short windows."""
    generator = torch.Generator().manual_seed(seed)
    text = characters()
    model = PlacedModel(
        len(text.vocabulary),
        scheme,
        d_model=SETTINGS["d_model"],
        n_heads=SETTINGS["n_heads"],
        n_layers=SETTINGS["n_layers"],
        n_rows=max(SETTINGS["lengths"]),
        generator=generator,
    )

    def loss(step):
        x, targets = windows(
            text.train, SETTINGS["trained_length"], SETTINGS["batch"], generator
        )
        return cross_entropy(model(x).flatten(0, 1), targets.flatten())

    train(model, loss, SETTINGS["steps"], lr=SETTINGS["lr"])
    return model


@torch.no_grad()
def measure(model: PlacedModel, n: int) -> float:
    """The loss on the last characters of long windows, of which it sees the last n."""
    longest, last = max(SETTINGS["lengths"]), SETTINGS["measured_last"]
    generator = torch.Generator().manual_seed(1000)
    x, targets = windows(
        characters().validation, longest, SETTINGS["measured_windows"], generator
    )
    # A few windows at a time: the weights of 256 windows of 256 would fill 1 GB.
    scores = torch.cat([model(part[:, -n:])[:, -last:] for part in x.split(16)])
    return cross_entropy(scores.flatten(0, 1), targets[:, -last:].flatten()).item()


def stretch(model: PlacedModel, how: str, scale: float) -> None:
    """Slow the rotation of a model that was trained with plain RoPE."""
    d = SETTINGS["d_model"] // SETTINGS["n_heads"]
    factor = 1.0
    if how == "interpolation":  # positions divided, or frequencies: the same angles
        frequencies = positions.rope_frequencies(d) / scale
    elif how.startswith("from "):  # only the pairs from this one on
        frequencies = positions.rope_frequencies(d)
        frequencies[int(how.removeprefix("from ")) :] /= scale
    elif how == "ntk":
        base = positions.ntk_base(10000.0, scale, d)
        frequencies = positions.rope_frequencies(d, base)
    else:
        frequencies = positions.yarn_frequencies(
            d, scale, trained_length=SETTINGS["trained_length"]
        )
        factor = positions.yarn_attention_factor(scale)
    for block in model.blocks:
        block.attention.rotate = Rotary(frequencies=frequencies, factor=factor)


def main() -> None:
    """Run everything, and write the numbers."""
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    lengths, seeds = SETTINGS["lengths"], SETTINGS["seeds"]
    losses: dict[str, dict[str, list[float]]] = {
        name: {str(n): [] for n in lengths}
        for name in (*SCHEMES, *SETTINGS["stretched"])
    }
    for scheme in SCHEMES:
        for seed in seeds:
            model = trained(scheme, seed)
            for n in lengths:
                losses[scheme][str(n)].append(round(measure(model, n), 4))
            print(
                scheme,
                seed,
                {n: losses[scheme][n][-1] for n in losses[scheme]},
                flush=True,
            )
            if scheme != "rope":
                continue
            for how in SETTINGS["stretched"]:
                for n in lengths:
                    stretch(model, how, n / SETTINGS["trained_length"])
                    losses[how][str(n)].append(round(measure(model, n), 4))
                print(how, seed, {n: losses[how][n][-1] for n in losses[how]})
    stored = {
        "settings": SETTINGS,
        "settings_sha256": settings_hash(SETTINGS),
        "losses": losses,
    }
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
