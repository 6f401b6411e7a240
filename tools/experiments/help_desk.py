"""What lesson 15 says about seven ways to attend, over several seeds.

    python tools/experiments/help_desk.py                a quarter of an hour, one core
    python tools/experiments/help_desk.py calls times    some of its parts alone

requests  single requests, in English and in Chinese: how many intents are found
calls     long calls: how many tokens' intents are found, and how many rooms
longer    the models of calls' first seed, asked at 4096 tokens
chances   calls once more, with other numbers of steps: had each way enough of them?
times     ms of one call, batch 1, one thread, float32, on the machine that runs it

Each run that is done is kept; started again with the same settings, the script goes on.
Writes attnlib/data/results/help_desk.json, and the models of the first seed, halved to
float16, to attnlib/data/help_desk.npz.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.utils import benchmark

from attnlib.nn import desk, desk_models
from attnlib.nn.calls import draw_calls
from attnlib.nn.intents import HelpDesk, help_desk
from attnlib.nn.train import train
from attnlib.results import RESULTS, settings_hash

RESULT = RESULTS / "help_desk.json"
SETTINGS: dict[str, Any] = {
    "dtype": "float32",
    "package": "home-assistant-intents 2026.11.25",
    "ways": list(desk.NAMES),
    "requests": {
        "seeds": [0, 1, 2, 3],  # each sets other templates aside
        "languages": ["en", "zh-CN"],
        "steps": 300,
        "batch": 32,
        "lr": 0.01,
        "lr_of_bag": 0.03,
        "side": 2,
        "n_global": 1,
    },
    "calls": {
        "seeds": [0, 1, 2],  # here, too
        "language": "en",
        "steps": {  # who looks near alone, or at few, learns it sooner
            "bag": 600,
            "full": 1200,
            "window": 600,
            "global": 600,
            "low rank": 1200,
            "pooled": 1200,
            "linear": 1200,
        },
        "tokens": 1024,
        # Many, so that no distance tells where the room was said.
        "lengths": [32, 48, 64, 96, 128, 192, 256, 512, 1024],
        "lr": 0.01,
        "lr_of_bag": 0.03,
        "asked_lengths": [256, 1024],
        "asked": 64,
    },
    "longer": {
        "tokens": 4096,
        "asked": 24,
        "ways": [n for n in desk.NAMES if n != "low rank"],
    },
    "chances": [  # a way, its seed, and steps
        ["full", 0, 600],
        ["full", 2, 2400],
        ["window", 0, 1200],
        ["bag", 0, 1200],
        ["global", 0, 1200],
        ["low rank", 0, 2400],
        ["pooled", 0, 2400],
        ["linear", 0, 2400],
    ],
    "times": {"lengths": [16, 64, 256, 1024, 4096], "rounds": 15, "seconds": 0.1},
}


def falling(name: str, here: dict[str, Any], steps: int) -> Callable[[int], float]:
    """A rate that falls to nothing; a bag of words wants a larger one."""
    rate = here["lr_of_bag"] if name == "bag" else here["lr"]
    return lambda step: rate * (1 - step / steps)


def requests(name: str, language: str, seed: int) -> dict[str, float]:
    """Train on single requests."""
    here, found = SETTINGS["requests"], help_desk(language, seed=seed)
    luck = torch.Generator().manual_seed(seed)
    n = found.known.ids.shape[1]
    near = {"side": here["side"], "n_global": here["n_global"]}
    attend = desk.way(name, n, **near, generator=luck)
    model = desk.DeskModel(found, attend, generator=luck)

    def loss(step: int) -> Tensor:
        ids, answers = found.known.batch(here["batch"], luck)
        return cross_entropy(model.request(ids), answers)

    train(model, loss, here["steps"], lr=falling(name, here, here["steps"]))
    return {
        "known": round(model.right_in_requests(found.known), 4),
        "unseen": round(model.right_in_requests(found.unseen), 4),
    }


def calls(
    name: str, seed: int, steps: int | None = None
) -> tuple[dict[str, Any], desk.DeskModel]:
    """Train on calls, halve the numbers to float16, and ask at each length."""
    here = SETTINGS["calls"]
    steps = steps or here["steps"][name]
    found = help_desk(here["language"], seed=seed)
    luck = torch.Generator().manual_seed(seed)
    attend = desk.way(name, max(here["lengths"]), generator=luck)
    model = desk.DeskModel(found, attend, generator=luck)

    def loss(step: int) -> Tensor:
        at = int(torch.randint(len(here["lengths"]), (), generator=luck))
        n = here["lengths"][at]
        batch = here["tokens"] // n
        return model.loss(draw_calls(found, batch, n, luck, test=False))

    train(model, loss, steps, lr=falling(name, here, steps))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.half())
    lengths = here["asked_lengths"]
    return {str(n): asked(model, found, n, here["asked"], seed) for n in lengths}, model


def asked(
    model: desk.DeskModel, found: HelpDesk, n: int, n_calls: int, seed: int
) -> dict[str, float]:
    """What a model finds in calls of n tokens, four at a time."""
    luck = torch.Generator().manual_seed(1000 + seed)
    each = [
        model.right_in_calls(draw_calls(found, 4, n, luck, test=True))
        for _ in range(n_calls // 4)
    ]
    intents, rooms = np.mean(each, axis=0)
    return {"intents": round(float(intents), 4), "rooms": round(float(rooms), 4)}


def times() -> dict[str, dict[str, float]]:
    """The least of several medians, for each way and length, in ms."""
    here, found = SETTINGS["times"], help_desk(SETTINGS["calls"]["language"])
    luck = torch.Generator().manual_seed(0)
    best: dict[str, dict[str, float]] = {}
    for n in here["lengths"]:
        ids = draw_calls(found, 1, n, luck, test=True).ids
        timers = {}
        for name in SETTINGS["ways"]:
            model = desk.DeskModel(found, desk.way(name, n)).float()
            stmt = "with torch.inference_mode(): model.call(ids)"
            space = {"torch": torch, "model": model, "ids": ids}
            timers[name] = benchmark.Timer(stmt, globals=space)
        for _ in range(here["rounds"]):  # by turns: a busy second hits all of them
            for name, timer in timers.items():
                run = timer.blocked_autorange(min_run_time=here["seconds"])
                ms = round(1000 * run.median, 4)
                row = best.setdefault(name, {})
                row[str(n)] = min(row.get(str(n), ms), ms)
    return best


def keep_model(name: str, model: desk.DeskModel) -> str:
    """Put one model's numbers beside those of the others; give the hash of all."""
    arrays = desk_models.read() if desk_models.PATH.exists() else {}
    arrays = {k: a for k, a in arrays.items() if not k.startswith(f"{name}/")}
    for key, tensor in model.state_dict().items():
        arrays[f"{name}/{key}"] = tensor.half().numpy()
    np.savez_compressed(
        desk_models.PATH, **{key: arrays[key] for key in sorted(arrays)}
    )
    return desk_models.fingerprint(arrays)


def keep(**parts: Any) -> None:
    """Write some parts; what another run of this script wrote meanwhile stays."""
    found = {"settings": SETTINGS, "settings_sha256": settings_hash(SETTINGS)}
    RESULT.write_text(json.dumps(known() | found | parts, indent=1) + "\n", "utf-8")


def known() -> dict[str, Any]:
    """What there is already with these settings."""
    found = json.loads(RESULT.read_text("utf-8")) if RESULT.exists() else {}
    return found if found.get("settings_sha256") == settings_hash(SETTINGS) else {}


def main(asked: list[str]) -> None:
    """Run the parts that are asked for, or all; runs that are there already stay."""
    torch.set_num_threads(1)
    torch.set_default_dtype(getattr(torch, SETTINGS["dtype"]))
    parts = {
        "requests": all_requests,
        "calls": all_calls,
        "longer": all_longer,
        "chances": all_chances,
    }
    for part in asked or [*parts, "times"]:
        if part == "times":
            keep(times=times())
        else:
            parts[part]()


def all_requests() -> None:
    """Each language, way and seed."""
    here, found = SETTINGS["requests"], known().get("requests", {})
    for language, name in product(here["languages"], SETTINGS["ways"]):
        runs = found.setdefault(language, {}).setdefault(name, [])
        for seed in here["seeds"][len(runs) :]:
            runs.append(requests(name, language, seed))
            print(language, name, seed, runs[-1], flush=True)
            keep(requests=found)


def all_calls() -> None:
    """Each way and seed; the models of the first seed are kept."""
    found = known().get("calls", {})
    for name in SETTINGS["ways"]:
        runs = found.setdefault(name, [])
        for seed in SETTINGS["calls"]["seeds"][len(runs) :]:
            right, model = calls(name, seed)
            runs.append(right)
            print(name, seed, right, flush=True)
            kept = {} if len(runs) > 1 else {"models_sha256": keep_model(name, model)}
            keep(calls=found, **kept)


def all_longer() -> None:
    """The models that were kept, on longer calls. Low rank has no columns for them."""
    here, found = SETTINGS["longer"], {}
    for name in here["ways"]:
        texts, n = help_desk(SETTINGS["calls"]["language"]), here["tokens"]
        model = desk_models.trained(name)
        found[name] = asked(
            model, texts, n, here["asked"], SETTINGS["calls"]["seeds"][0]
        )
        print(name, n, found[name], flush=True)
    keep(longer=found)


def all_chances() -> None:
    """Some ways with other numbers of steps."""
    found = known().get("chances", [])
    for name, seed, steps in SETTINGS["chances"][len(found) :]:
        found.append(calls(name, seed, steps)[0])
        print(name, seed, steps, found[-1], flush=True)
        keep(chances=found)


if __name__ == "__main__":
    main(sys.argv[1:])
