"""Train the small language model that comes with the library, and write it.

    python tools/train_course_model.py                 10 minutes of one core
    python tools/train_course_model.py --steps 200 --repeats 0 --to try

The text are nine of the ten plays of `attnlib.nn.text`; the tenth is for validation.
Part of what the model sees is no text: windows in which a stretch of random tokens
comes again and again. Text this small does not teach a model this small to look up what
came after a token the last time; the repeats do. They are learned in a fixed order:

1. Lesson one, `first` steps of repeats alone: short windows, short stretches, 32
   different tokens at first, then twice as many every 100 steps.
2. Lesson two, `second` steps of repeats alone: long windows, stretches ever longer.
3. `steps` steps of text, and repeats in the part `repeats` of the windows.

Without the first two a model had not found the repeats after 400 steps of text and
repeats: tools/experiments/course_model_parts.py, which leaves out one part or another.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import math
import re
import time
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from attnlib.nn import train as loop
from attnlib.nn.language import LanguageModel, LanguageSizes
from attnlib.nn.text import plays
from attnlib.nn.tokens import START, WORDS, Tokenizer
from attnlib.nn.train import Trained

DATA = Path(__file__).resolve().parent.parent / "attnlib" / "data"
SIZES = LanguageSizes(
    n_tokens=256,
    n_layers=3,
    d_model=120,
    n_heads=6,
    n_kv_heads=2,
    d_k=24,
    d_mlp=320,
    n_context=128,
)
IGNORED = -100  # what cross_entropy leaves out: the first copy cannot be guessed


@dataclass(frozen=True)
class Recipe:
    """All that decides what comes out, besides the text and the sizes."""

    first: int = 700
    second: int = 300
    steps: int = 2000
    batch: int = 16
    repeats: float = 0.25  # the part of the windows of text in which a stretch repeats
    start: bool = True  #    whether every window begins with <start>
    lr: float = 3e-3
    warmup: int = 50
    clip: float = 1.0
    seed: int = 0

    @property
    def total(self) -> int:
        return self.first + self.second + self.steps


def learn_tokens(text: str, n_tokens: int) -> Tokenizer:
    """Learn the merges with the library `tokenizers`; ours applies them later."""
    from tokenizers import Regex, models, pre_tokenizers, trainers
    from tokenizers import Tokenizer as Library

    library = Library(models.BPE())
    library.pre_tokenizer = pre_tokenizers.Split(Regex(WORDS), "isolated")
    trainer = trainers.BpeTrainer(
        vocab_size=n_tokens, special_tokens=[START], show_progress=False
    )
    library.train_from_iterator([text], trainer)
    learnt = json.loads(library.to_str())["model"]
    tokens = sorted(learnt["vocab"], key=learnt["vocab"].get)
    return Tokenizer(tuple(tokens), tuple((a, b) for a, b in learnt["merges"]))


def text_windows(
    ids: Tensor, n: int, batch: int, start: bool, generator: torch.Generator
) -> Tensor:
    """Cut windows of n + 1 ids out of the text; the first is <start>, id 0."""
    places = torch.randint(len(ids) - n, (batch, 1), generator=generator)
    cut = ids[places + torch.arange(n + 1)]
    if start:
        cut = torch.cat([torch.zeros(batch, 1, dtype=torch.long), cut[:, :-1]], 1)
    return cut


def repeat_windows(
    n_tokens: int, n: int, periods: Tensor, start: bool, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Fill windows of n + 1 ids with a random stretch, again and again.

    Returns the ids, and which of them can be known from what came before.
    """
    batch, first = len(periods), int(start)
    drawn = torch.randint(1, n_tokens, (batch, n + 1 - first), generator=generator)
    place = torch.arange(n + 1 - first)
    ids = drawn.gather(1, place % periods[:, None])
    known = place >= periods[:, None]
    if start:
        ids = torch.cat([torch.zeros(batch, 1, dtype=torch.long), ids], 1)
        known = torch.cat([torch.zeros(batch, 1, dtype=torch.bool), known], 1)
    return ids, known


def batch_of(
    ids: Tensor, step: int, recipe: Recipe, generator: torch.Generator
) -> Tensor:
    """Draw one batch: ids (batch, n + 1), and the targets with IGNORED in them."""
    n, n_tokens, periods, n_text = SIZES.n_context, SIZES.n_tokens, (8, 64), 0
    if step < recipe.first:
        n, periods, n_repeats = 28, (6, 13), 2 * recipe.batch
        doublings = max(step - 250, 0) / 100
        n_tokens = min(n_tokens, int(32 * 2**doublings))
    elif step < recipe.first + recipe.second:
        n_repeats = recipe.batch // 2
        done = (step - recipe.first) / recipe.second
        periods = (8, int(13 + (periods[1] - 13) * done) + 1)
    else:
        n_repeats = round(recipe.repeats * recipe.batch)
        n_text = recipe.batch - n_repeats
    text = text_windows(ids, n, n_text, recipe.start, generator)
    drawn = torch.randint(*periods, (n_repeats,), generator=generator)
    repeated, known = repeat_windows(n_tokens, n, drawn, recipe.start, generator)
    targets = torch.cat([text, repeated.masked_fill(~known, IGNORED)])
    return torch.stack([torch.cat([text, repeated]), targets])


def rate(step: int, recipe: Recipe) -> float:
    """Up in a line, on a level, then down along half a cosine to a tenth."""
    if step < recipe.warmup:
        return recipe.lr * (step + 1) / recipe.warmup
    done = max(step - recipe.first - recipe.second, 0) / max(recipe.steps, 1)
    return recipe.lr * (0.1 + 0.9 * (1 + math.cos(math.pi * done)) / 2)


def loss_on(model: LanguageModel, batch: Tensor) -> Tensor:
    logits = model(batch[0, :, :-1])
    return cross_entropy(
        logits.flatten(0, 1), batch[1, :, 1:].flatten(), ignore_index=IGNORED
    )


@torch.no_grad()
def text_loss(model: LanguageModel, ids: Tensor, start: bool) -> float:
    """Loss in nats a token on windows side by side; all of the text but its end."""
    n = SIZES.n_context - int(start)
    rows = ids[: len(ids) // n * n].reshape(-1, n)
    if start:
        rows = torch.cat([torch.zeros(len(rows), 1, dtype=torch.long), rows], 1)
    losses = [
        cross_entropy(
            model(part[:, :-1]).flatten(0, 1), part[:, 1:].flatten(), reduction="sum"
        )
        for part in rows.split(32)
    ]
    return float(sum(losses)) / (len(rows) * (rows.shape[1] - 1))


@torch.no_grad()
def repeat_loss(model: LanguageModel, start: bool, n: int = 48) -> tuple[float, float]:
    """Loss on a random stretch of n tokens, and on the same stretch again."""
    generator = torch.Generator().manual_seed(1234)
    periods = torch.full((32,), n)
    ids, _ = repeat_windows(SIZES.n_tokens, 2 * n, periods, start, generator)
    ids = ids[:, : 2 * n + int(start)]
    losses = cross_entropy(
        model(ids[:, :-1]).transpose(1, 2), ids[:, 1:], reduction="none"
    )
    return float(losses[:, :-n].mean()), float(losses[:, -n:].mean())


def train(ids: Tensor, recipe: Recipe, every: int = 0) -> tuple[LanguageModel, Trained]:
    """Train a model from nothing; the same recipe gives the same model."""
    generator = torch.Generator().manual_seed(recipe.seed)
    model = LanguageModel(SIZES, generator)

    def loss(step: int) -> Tensor:
        return loss_on(model, batch_of(ids, step, recipe, generator))

    def report(done: int, value: float) -> None:
        if every and done % every == 0:
            first, again = repeat_loss(model, recipe.start)
            print(
                f"step {done}: loss {value:.3f}, repeats {first:.2f} -> {again:.2f}, "
                f"{time.process_time():.0f} CPU seconds",
                flush=True,
            )

    trained = loop.train(
        model,
        loss,
        recipe.total,
        lr=lambda step: rate(step, recipe),
        clip=recipe.clip,
        report=report,
    )
    return model.eval(), trained


def simple_losses(train: Tensor, validation: Tensor) -> dict[str, float]:
    """What guessing costs on the validation text: evenly, by frequency, by pairs."""
    n = SIZES.n_tokens
    counts = torch.bincount(train, minlength=n).double() + 1
    single = counts / counts.sum()
    pairs = torch.bincount(train[:-1] * n + train[1:], minlength=n * n).double()
    # A pair seen seldom is worth little: ten sightings of the frequencies come on top.
    pairs = pairs.reshape(n, n) + 10 * single
    pairs /= pairs.sum(1, keepdim=True)
    return {
        "even": math.log(n),
        "unigram_loss": -float(single[validation].log().mean()),
        "bigram_loss": -float(pairs[validation[:-1], validation[1:]].log().mean()),
    }


def packed(model: LanguageModel) -> bytes:
    """Write the weights as .npz in float16, without a time: the same bytes again."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as pack:
        for name, weight in model.state_dict().items():
            array = io.BytesIO()
            np.save(array, weight.numpy().astype(np.float16))
            pack.writestr(zipfile.ZipInfo(f"{name}.npy"), array.getvalue())
    return file.getvalue()


def rounded(model: LanguageModel) -> LanguageModel:
    """The model that will be read back: every loss is measured on it."""
    return model.half().float()


def write(recipe: Recipe, to: Path, every: int) -> None:
    """Train, measure and write."""
    known, unseen = plays()
    tokens = learn_tokens(known, SIZES.n_tokens)
    ids = torch.tensor(tokens.encode(known, start=False))
    validation = torch.tensor(tokens.encode(unseen, start=False))
    model, trained = train(ids, recipe, every)
    seconds = time.process_time()
    weights = packed(model)
    model = rounded(model)
    first, again = repeat_loss(model, recipe.start)
    numbers = {
        "cpu_seconds": round(seconds),
        "characters_per_token": len(known) / len(ids),
        "train_loss": text_loss(model, ids[: len(validation)], recipe.start),
        "validation_loss": text_loss(model, validation, recipe.start),
        "first_copy_loss": first,
        "second_copy_loss": again,
        **simple_losses(ids, validation),
    }
    fifties = [trained.losses[i : i + 50] for i in range(0, recipe.total, 50)]
    about = {
        "text": "nine plays of Shakespeare; The Tempest for validation",
        "steps": recipe.total,
        "text_steps": recipe.steps,
        "repeats": recipe.repeats,
        "n_weights": sum(weight.numel() for weight in model.parameters()),
        "curve": [round(float(np.mean(losses)), 3) for losses in fifties],
        **{name: round(number, 4) for name, number in numbers.items()},
    }
    card = {
        "sha256": hashlib.sha256(weights).hexdigest(),
        "sizes": asdict(SIZES),
        "recipe": asdict(recipe),
        "about": about,
        "tokens": tokens.tokens,
        "merges": tokens.merges,
    }
    to.mkdir(parents=True, exist_ok=True)
    (to / "course_model.npz").write_bytes(weights)
    text = json.dumps(card, indent=1, ensure_ascii=False)
    # Short lists on one line each: a thousand lines of merges help nobody.
    text = re.sub(r"\[\s+([^\[\]{}]*?)\s+\]", one_line, text)
    (to / "course_model.json").write_text(text + "\n", encoding="utf-8")
    print(json.dumps({name: value for name, value in about.items() if name != "curve"}))


def one_line(found: re.Match[str]) -> str:
    return "[" + re.sub(r",\n\s+", ", ", found[1]) + "]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in asdict(Recipe()).items():
        if name != "start":
            parser.add_argument(f"--{name}", type=type(value), default=value)
    parser.add_argument("--without-start", action="store_true")
    parser.add_argument("--to", type=Path, default=DATA)
    parser.add_argument(
        "--every", type=int, default=100, help="steps from line to line"
    )
    options = vars(parser.parse_args())
    to, every = options.pop("to"), options.pop("every")
    start = not options.pop("without_start")
    torch.set_num_threads(1)  # sums in one order, so that a run can be repeated
    write(Recipe(**options, start=start), to, every)


if __name__ == "__main__":
    main()
