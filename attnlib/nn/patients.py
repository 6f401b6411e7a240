"""Small attentions for the clinic: one is healthy, each other is ill in one way.

Every patient is a `PeriodModel` with an `attend` of its own, or with tables that are
not as they should be. The faults are those that people make. Whoever wants to diagnose
them first should not read on.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from attnlib.nn.attention import Attention, scaled_dot_product
from attnlib.nn.periods import D_V, Attend, PeriodModel, Texts, draw_texts
from attnlib.nn.train import train

RATE, BATCH = 0.01, 28


# Each takes queries, keys and values (batch, n_heads, n, ...) and a mask that is True
# where a key is no filler, and has to be causal by itself.
def healthy(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Attention:
    return scaled_dot_product(q, k, v, mask, causal=True)


def unscaled(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Attention:
    return scaled_dot_product(q, k, v, mask, causal=True, scale=1.0)


def one_too_far(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Attention:
    return scaled_dot_product(q, k, v, _past(q, k, mask, ahead=1))


def past_forgotten(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Attention:
    return scaled_dot_product(q, k, v, mask)


def mask_forgotten(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Attention:
    return scaled_dot_product(q, k, v, causal=True)


def bare_softmax(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Attention:
    raw, scores = _scores(q, k, mask)
    weights = torch.softmax(scores, -1)
    return Attention(raw, scores, weights, weights @ v)


def article_clip(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Attention:
    raw, scores = _scores(q, k, mask)
    scores = scores.clamp(-50, 50)
    weights = torch.softmax(scores, -1)
    return Attention(raw, scores, weights, weights @ v)


def article_mask(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Attention:
    if mask is None:
        mask = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool)
    return scaled_dot_product(q, k, v, torch.tril(mask))


def _past(q: Tensor, k: Tensor, mask: Tensor | None, ahead: int = 0) -> Tensor:
    n_q, n_k = q.shape[-2], k.shape[-2]
    past = torch.ones(n_q, n_k, dtype=torch.bool).tril(n_k - n_q + ahead)
    return past if mask is None else mask & past


def _scores(q: Tensor, k: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    raw = q @ k.transpose(-1, -2)
    scores = raw / q.shape[-1] ** 0.5
    return raw, scores.masked_fill(~_past(q, k, mask), -torch.inf)


def _silence(model: PeriodModel, head: int) -> None:
    """Leave one head out of W_v and W_o, as a file that ended too early would."""
    columns = slice(head * D_V, (head + 1) * D_V)
    with torch.no_grad():
        model.W_v[:, columns] = 0
        model.W_o[columns] = 0


@dataclass(frozen=True)
class Illness:
    """How a patient differs from a healthy one."""

    attend: Attend = healthy
    gain: float = 1.0  # on the first W_q and W_k
    silent: tuple[int, ...] = ()  # heads whose values are left out
    fillers_from: int = 0  # the first step whose texts differ in length
    resumed: int = 0  # steps that were trained before the chart begins


NEVER = 1_000_000
ILLNESSES = {
    "healthy": Illness(),
    "resumed": Illness(resumed=180),
    "no scale": Illness(unscaled),
    "large tables": Illness(gain=5.0),
    "one too far": Illness(one_too_far),
    "no causal mask": Illness(past_forgotten),
    "fillers seen": Illness(mask_forgotten),
    "empty rows": Illness(bare_softmax),
    "empty rows, later": Illness(bare_softmax, fillers_from=39),
    "silent head": Illness(silent=(1,)),
    "silent heads": Illness(silent=(0, 3)),
    "huge tables": Illness(gain=8.0),
    "huge tables, clip": Illness(article_clip, gain=8.0),
    "create_mask": Illness(article_mask, fillers_from=NEVER),
}
LETTERS = {
    "A": "fillers seen",
    "B": "empty rows",
    "C": "healthy",
    "D": "one too far",
    "E": "no scale",
    "F": "silent head",
    "P": "resumed",
    "Q": "no causal mask",
    "R": "large tables",
    "S": "silent heads",
    "T": "fillers seen",
    "U": "empty rows, later",
}


@dataclass(frozen=True, repr=False)
class Patient:
    """A model, and the texts that it is trained on."""

    name: str
    model: PeriodModel
    fillers_from: int

    def __repr__(self) -> str:
        return f"patient {self.name}"

    def texts(self, n: int, generator: torch.Generator, step: int = 0) -> Texts:
        """Draw n texts of the kind that this patient reads in one step."""
        shortest = 11 if step >= self.fillers_from else 24
        return draw_texts(n, generator, shortest=shortest)


def admit(name: str, seed: int = 0) -> Patient:
    """Take in a patient, before its first step.

    Args:
        name: a letter, A to F and P to U, or the name of an illness.
        seed: of its first tables. No shape.

    Returns:
        The patient, with a `PeriodModel`.

    Raises:
        ValueError: nobody has this name.

    Cost: the tables are drawn; P has been trained for 180 steps before.
    Source: the names of the course.
    Lesson: 10.

    >>> admit("C"), admit("C").model.W_q.shape
    (patient C, torch.Size([32, 192]))
    """
    illness = LETTERS.get(name, name)
    if illness not in ILLNESSES:
        known = ", ".join([*LETTERS, *ILLNESSES])
        raise ValueError(f"there is no patient {name!r}; there are {known}.")
    ill = ILLNESSES[illness]
    seed += 1 if name in "PQRSTU" else 0  # other patients, not the same once more
    generator = torch.Generator().manual_seed(seed)
    model = PeriodModel(ill.attend, gain=ill.gain, generator=generator)
    for head in ill.silent:
        _silence(model, head)
    patient = Patient(name, model, ill.fillers_from)
    if ill.resumed:
        drawn = torch.Generator().manual_seed(2000 + seed)
        train(
            model,
            lambda step: model.loss(patient.texts(BATCH, drawn)),
            ill.resumed,
            lr=RATE,
        )
    return patient
