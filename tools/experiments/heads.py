"""What lesson 14 says about heads, with as many seeds as it names.

    python tools/experiments/heads.py               about five minutes on one core
    python tools/experiments/heads.py prune text    two of its parts, the others stay

prune   20 models of the lesson's task: which heads each way of choosing keeps, and how
        many questions are then answered, on texts that were not used to choose
distil  10 teachers, and for each of six losses a student with few texts of each
shape   10 models of the same task, with each of the article's additions, and without;
        and with heads that are half as loud, as the article's gate is at first
text    5 models of Shakespeare, character by character, with the same additions
course  the model that comes with the library: its loss as heads are turned off in
        several orders, on other windows than those that were used to choose

Everything is float64 on one thread. Writes attnlib/data/results/heads.json.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnlib.nn import course_model
from attnlib.nn.balance import head_loudness, imbalance, written_loudness
from attnlib.nn.distill import attention_divergence, score_distance
from attnlib.nn.gates import GatedAttention, HeadGate
from attnlib.nn.language import LanguageModel, LanguageSizes
from attnlib.nn.lookups import D_MODEL, LookupModel, Lookups, draw_lookups
from attnlib.nn.pruning import (
    head_ablation,
    head_gradients,
    heads_off,
    prune_to_budget,
)
from attnlib.nn.stable import article_noise
from attnlib.nn.text import characters, plays, windows
from attnlib.nn.train import train
from attnlib.results import settings_hash

RESULT = Path(__file__).resolve().parents[2] / "attnlib/data/results/heads.json"
GATES = ["gate a token", "gate a text", "one half"]
ADDED = ["nothing", "noise 0.01", "penalty 0.1", *GATES]
SETTINGS: dict[str, Any] = {
    "n_heads": 6,
    "rate": 0.01,
    "batch": 32,
    "steps": 150,
    "texts": 400,
    "prune": {"seeds": list(range(20)), "budgets": [2, 3]},
    "distil": {
        "seeds": list(range(10)),
        "losses": [
            "labels alone",
            "+ teacher's answers",
            "+ article, per row",
            "+ article, as printed",
            "+ divergence",
            "+ scores",
        ],
        "few": 100,
        "steps": 120,
        "d_k": 5,
        "d_v": 4,
    },
    "shape": {"seeds": list(range(10)), "added": ADDED, "early": 30},
    "text": {
        "seeds": list(range(5)),
        "added": ADDED,
        "sizes": {
            "n_layers": 2,
            "d_model": 32,
            "n_heads": 4,
            "n_kv_heads": 4,
            "d_k": 8,
            "d_mlp": 64,
            "n_context": 32,
        },
        "rate": 0.02,
        "batch": 12,
        "steps": 150,
        "windows": 500,
    },
    "course": {"windows": 16, "length": 64, "lots": 5},
}


class TextGate(nn.Module):
    """The article's gate, mended half-way: heads are kept, and tokens still pooled."""

    def __init__(self, n_heads: int) -> None:
        super().__init__()
        self.gate = nn.Sequential(
            nn.Linear(n_heads, n_heads * 4),
            nn.ReLU(),
            nn.Linear(n_heads * 4, n_heads),
        )

    def forward(self, x: Tensor, mixed: Tensor) -> Tensor:
        return mixed * torch.sigmoid(self.gate(mixed.mean((2, 3))))[..., None, None]


class OneHalf(nn.Module):
    """No gate, but as quiet as the article's is at first: the control."""

    def forward(self, x: Tensor, mixed: Tensor) -> Tensor:
        return 0.5 * mixed


def article_distil_loss(
    student_attn: Tensor, teacher_attn: Tensor, T: float = 2.0
) -> Tensor:
    """The second article's loss, as printed."""
    return F.kl_div(
        F.log_softmax(student_attn / T, dim=-1),
        F.softmax(teacher_attn / T, dim=-1),
        reduction="batchmean",
    ) * (T**2)


def falling(steps: int, rate: float) -> Callable[[int], float]:
    """A rate that falls to nothing."""
    return lambda step: rate * (1 - step / steps)


@cache
def trained(seed: int) -> LookupModel:
    """The model of the lesson, with another seed for tables and texts."""
    generator = torch.Generator().manual_seed(seed)
    model = LookupModel(SETTINGS["n_heads"], generator=generator)
    train(
        model,
        lambda step: model.loss(draw_lookups(SETTINGS["batch"], generator)),
        SETTINGS["steps"],
        lr=falling(SETTINGS["steps"], SETTINGS["rate"]),
    )
    return model


def drawn(seed: int) -> Lookups:
    """Texts that no model is trained on."""
    return draw_lookups(SETTINGS["texts"], torch.Generator().manual_seed(seed))


def prune(seed: int) -> dict[str, Any]:
    """Choose heads in five ways, and measure them on other texts."""
    model, chosen_on, others = trained(seed), drawn(7000 + seed), drawn(8000 + seed)
    attentions, n_heads = [model.attention], SETTINGS["n_heads"]

    def measured(kept: tuple[int, ...], on: Lookups, accuracy: bool) -> float:
        gone = {(0, head) for head in range(n_heads) if head not in kept}
        with heads_off(attentions, gone), torch.no_grad():
            return model.accuracy(on) if accuracy else model.loss(on).item()

    mixed = model.stages(chosen_on).mixed
    ranked = {
        "loudest": written_loudness(model.attention, mixed, chosen_on.counted),
        "ablation, once": head_ablation(attentions, lambda: model.loss(chosen_on))[0],
        "gradient, once": head_gradients(attentions, lambda: model.losses(chosen_on))[
            0
        ],
    }
    found: dict[str, Any] = {"all": round(model.accuracy(others), 4)}
    for budget in SETTINGS["prune"]["budgets"]:
        kept = {
            name: tuple(sorted(worth.topk(budget).indices.tolist()))
            for name, worth in ranked.items()
        }
        rounds = prune_to_budget(attentions, budget, lambda: model.loss(chosen_on))
        kept["one by one"] = tuple(head for _, head in rounds.kept)
        sets = list(itertools.combinations(range(n_heads), budget))
        losses = [measured(some, chosen_on, False) for some in sets]
        kept["best of all"] = sets[losses.index(min(losses))]
        found[str(budget)] = {
            name: round(measured(some, others, True), 4) for name, some in kept.items()
        }
        by_luck = [measured(some, others, True) for some in sets]
        found[str(budget)]["by lot"] = round(sum(by_luck) / len(by_luck), 4)
    return found


def distil(name: str, seed: int) -> dict[str, float]:
    """Train one student, and measure how it answers and how it looks."""
    here, teacher = SETTINGS["distil"], trained(seed).requires_grad_(False)
    few = draw_lookups(here["few"], torch.Generator().manual_seed(9000 + seed))
    model = LookupModel(
        SETTINGS["n_heads"],
        d_k=here["d_k"],
        d_v=here["d_v"],
        generator=torch.Generator().manual_seed(100 + seed),
    )
    shown, answers = teacher.stages(few), teacher(few)
    rows = few.counted[:, None]

    def loss(step: int) -> Tensor:
        total = model.loss(few)
        if name == "+ teacher's answers":
            theirs, mine = answers.log_softmax(-1), model(few).log_softmax(-1)
            each = (theirs.exp() * (theirs - mine)).sum(-1)
            return total + each[few.counted].mean()
        if name == "labels alone":
            return total
        stages = model.stages(few)
        if name == "+ divergence":
            return total + attention_divergence(stages.scores, shown.weights, rows)
        if name == "+ scores":
            return total + score_distance(stages.scores, shown.scores, rows)
        more = article_distil_loss(stages.weights, shown.weights)
        if name == "+ article, per row":
            more = more / (stages.weights.shape[1] * stages.weights.shape[2])
        return total + more

    lr = falling(here["steps"], SETTINGS["rate"])
    train(model, loss, here["steps"], lr=lr)
    others = drawn(8000 + seed)
    with torch.no_grad():
        apart = attention_divergence(
            model.stages(others).scores,
            teacher.stages(others).weights,
            others.counted[:, None],
        )
    return {
        "few": round(model.accuracy(few), 4),
        "new": round(model.accuracy(others), 4),
        "divergence": round(apart.item(), 4),
    }


def shape(name: str, seed: int) -> dict[str, float]:
    """Train the lesson's model with an addition."""
    generator = torch.Generator().manual_seed(seed)
    model, others = LookupModel(SETTINGS["n_heads"], generator=generator), drawn(8000)
    attention = model.attention
    luck = torch.Generator().manual_seed(500 + seed)
    if name == "noise 0.01":
        attention.on_scores = lambda z: article_noise(z, generator=luck)
    elif name in GATES:
        model.attention = GatedAttention(attention, _gate(name, D_MODEL, 6, seed))

    def loss(step: int) -> Tensor:
        texts = draw_lookups(SETTINGS["batch"], generator)
        total = model.loss(texts)
        if name == "penalty 0.1":
            mixed = model.stages(texts).mixed
            total = total + 0.1 * imbalance(head_loudness(mixed, texts.counted))
        return total

    found = {}
    early = SETTINGS["shape"]["early"]
    for what, steps in (("early", early), ("late", SETTINGS["steps"] - early)):
        train(model, loss, steps, lr=SETTINGS["rate"])
        kept, attention.on_scores = attention.on_scores, None
        with torch.no_grad():
            found[what] = round(model.loss(others).item(), 4)
        attention.on_scores = kept
    if name not in GATES:
        with torch.no_grad():
            mixed = model.stages(others).mixed
        found["imbalance"] = round(
            imbalance(head_loudness(mixed, others.counted)).item(), 4
        )
    return found


def text(name: str, seed: int) -> dict[str, float]:
    """Train a small model of Shakespeare with an addition in each layer."""
    here, text_ = SETTINGS["text"], characters()
    generator = torch.Generator().manual_seed(seed)
    sizes = LanguageSizes(n_tokens=len(text_.vocabulary), **here["sizes"])
    model = LanguageModel(sizes, generator)
    attentions = [layer.attention for layer in model.layers]
    luck = torch.Generator().manual_seed(500 + seed)
    for layer in model.layers:
        if name == "noise 0.01":
            layer.attention.on_scores = lambda z: article_noise(z, generator=luck)
        elif name in GATES:
            gate = _gate(name, sizes.d_model, sizes.n_heads, seed)
            layer.attention = GatedAttention(layer.attention, gate)

    def loss(step: int) -> Tensor:
        ids, targets = windows(text_.train, sizes.n_context, here["batch"], generator)
        if name != "penalty 0.1":
            return F.cross_entropy(model(ids).mT, targets)
        stages = model(ids, return_stages=True)
        more = [imbalance(head_loudness(layer.mixed)) for layer in stages.layers]
        return F.cross_entropy(stages.logits.mT, targets) + 0.1 * sum(more)

    train(model, loss, here["steps"], lr=falling(here["steps"], here["rate"]))
    for attention in attentions:
        attention.on_scores = None
    probe = torch.Generator().manual_seed(6000)
    ids, targets = windows(text_.validation, sizes.n_context, here["windows"], probe)
    with torch.no_grad():
        each = F.cross_entropy(model(ids).mT, targets, reduction="none")
        found = {
            "all": round(each.mean().item(), 4),
            "cut": round(_cut_off(model, ids, targets), 4),
        }
        if name not in GATES:
            stages = model(ids, return_stages=True)
            uneven = [imbalance(head_loudness(s.mixed)).item() for s in stages.layers]
            found["imbalance"] = round(sum(uneven) / len(uneven), 4)
    return found


def _cut_off(model: nn.Module, ids: Tensor, targets: Tensor) -> float:
    """The same loss, but each letter is guessed from a text that ends before it.

    Without a leak nothing changes by that: what is cut off could not be seen.
    """
    each = [
        F.cross_entropy(model(ids[:, :n])[:, -1], targets[:, n - 1])
        for n in range(1, ids.shape[1] + 1)
    ]
    return torch.stack(each).mean().item()


def course() -> dict[str, Any]:
    """Turn off the heads of the course's own model, in several orders."""
    model, here = course_model.load(torch.float64), SETTINGS["course"]
    ids = torch.tensor(course_model.tokenizer().encode(plays()[1], start=False))
    attentions = [layer.attention for layer in model.layers]

    def losses(seed: int) -> Tensor:
        luck = torch.Generator().manual_seed(seed)
        x, targets = windows(ids, here["length"] - 1, here["windows"], luck)
        read = torch.cat([torch.zeros_like(x[:, :1]), x], 1)  # 0 is <start>
        come = torch.cat([x[:, :1], targets], 1)
        return F.cross_entropy(model(read).mT, come, reduction="none").mean(1)

    def curve(order: Sequence[tuple[int, int]]) -> list[float]:
        found = []
        for n_off in range(len(order) + 1):
            with heads_off(attentions, set(order[:n_off])), torch.no_grad():
                found.append(round(losses(1).mean().item(), 4))
        return found

    def rising(worths: Sequence[Tensor]) -> list[tuple[int, int]]:
        named = [
            (worth.item(), (layer, head))
            for layer, own in enumerate(worths)
            for head, worth in enumerate(own)
        ]
        return [head for _, head in sorted(named)]

    ablation = head_ablation(attentions, lambda: losses(0).mean())
    gradient = head_gradients(attentions, lambda: losses(0))
    rounds = prune_to_budget(attentions, 0, lambda: losses(0).mean())
    luck, lots = torch.Generator().manual_seed(2), []
    for _ in range(here["lots"]):
        shuffled = torch.randperm(len(rounds.removed), generator=luck).tolist()
        lots.append(curve([rounds.removed[i] for i in shuffled]))
    return {
        "ablation": [[round(w, 4) for w in own.tolist()] for own in ablation],
        "gradient": [[round(w, 4) for w in own.tolist()] for own in gradient],
        "removed": rounds.removed,
        "losses": {
            "one by one": curve(rounds.removed),
            "ablation, once": curve(rising(ablation)),
            "gradient, once": curve(rising(gradient)),
            "by lot": [round(sum(at) / len(at), 4) for at in zip(*lots, strict=True)],
        },
    }


def _gate(name: str, d_model: int, n_heads: int, seed: int) -> nn.Module:
    if name == "gate a token":
        return HeadGate(d_model, n_heads)
    if name == "one half":
        return OneHalf()
    with torch.random.fork_rng():
        torch.manual_seed(500 + seed)
        return TextGate(n_heads)


PARTS: dict[str, tuple[str, Callable[..., Any]]] = {
    "distil": ("losses", distil),
    "shape": ("added", shape),
    "text": ("added", text),
}


def main(asked: list[str]) -> None:
    """Run the parts that are asked for, or all, and write the numbers."""
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    found: dict[str, Any] = {
        "settings": SETTINGS,
        "settings_sha256": settings_hash(SETTINGS),
    }
    if asked:
        before = json.loads(RESULT.read_text()) if RESULT.exists() else {}
        if before.get("settings_sha256", found["settings_sha256"]) != settings_hash(
            SETTINGS
        ):
            raise SystemExit("the settings have changed: run all parts anew.")
        found = before | found
    for part in asked or ["prune", "course", *PARTS]:
        if part == "prune":
            found[part] = [prune(seed) for seed in SETTINGS["prune"]["seeds"]]
        elif part == "course":
            found[part] = course()
        else:
            choices, run = PARTS[part]
            found[part] = {
                name: [run(name, seed) for seed in SETTINGS[part]["seeds"]]
                for name in SETTINGS[part][choices]
            }
        print(part, json.dumps(found[part]), flush=True)
        RESULT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
