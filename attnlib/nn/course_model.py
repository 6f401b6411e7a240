"""The small language model that comes with the library, trained on Shakespeare.

`tools/train_course_model.py` trained it, in ten minutes on one core. It is
small enough to look at each of its heads, and large enough that some of them do what
heads of large models do.
"""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from attnlib.nn.language import LanguageModel, LanguageSizes
from attnlib.nn.tokens import Tokenizer

DATA = Path(__file__).resolve().parent.parent / "data"
WEIGHTS = DATA / "course_model.npz"  # float16
CARD = DATA / "course_model.json"  #   sizes, tokens, what happened, the sha256
MEND = "install attnlib anew, or run python tools/train_course_model.py"


@dataclass(frozen=True)
class About:
    """Where the model comes from, and how well it does; losses in nats a token."""

    text: str
    steps: int  #                    all of them; of these, on text:
    text_steps: int
    repeats: float  #                the part of the windows that were no text
    cpu_seconds: float
    n_weights: int
    characters_per_token: float
    train_loss: float
    validation_loss: float  #        on a play that it never saw
    even: float  #                   the loss of guessing evenly
    unigram_loss: float  #           of guessing by how frequent a token is
    bigram_loss: float  #            of guessing by the token before
    first_copy_loss: float  #        on 48 random tokens,
    second_copy_loss: float  #       and on the same again
    curve: tuple[float, ...]  #      loss in training, the mean of every 50 steps


def load(dtype: torch.dtype = torch.float32) -> LanguageModel:
    """Load the model, ready to be used.

    Args:
        dtype: of its weights, which are stored in float16: float64 for comparisons to
            the last digit.

    Returns:
        A new model in eval mode; no shape.

    Raises:
        FileNotFoundError: a file of the model is missing.
        ValueError: the file of the weights is not the one that was written.

    Cost: 20 ms.
    Source: `tools/train_course_model.py`.
    Lesson: 06.

    >>> model = load()
    >>> model.sizes.n_layers, model.sizes.n_heads, model.sizes.n_kv_heads
    (3, 6, 2)
    """
    card, packed = _card(), _read(WEIGHTS)
    found = hashlib.sha256(packed).hexdigest()
    if found != card["sha256"]:
        raise ValueError(
            f"{WEIGHTS} is damaged: its sha256 should be {card['sha256']}, but it is "
            f"{found}; {MEND}."
        )
    model = LanguageModel(LanguageSizes(**card["sizes"]))
    with np.load(io.BytesIO(packed)) as arrays:
        weights = {name: torch.from_numpy(arrays[name]) for name in arrays.files}
    model.load_state_dict(weights)
    return model.to(dtype).eval()


def tokenizer() -> Tokenizer:
    """Give the tokens of the model.

    Args:
        None.

    Returns:
        Its tokenizer, with `encode`, `decode` and `pieces`.

    Raises:
        FileNotFoundError: a file of the model is missing.

    Cost: 2 ms.
    Source: Sennrich, Haddow and Birch 2016, algorithm 1.
    Lesson: 06.

    >>> tokens = tokenizer()
    >>> tokens.decode(tokens.encode("Not a mouse stirring."))
    'Not a mouse stirring.'
    """
    card = _card()
    merges = tuple((first, second) for first, second in card["merges"])
    return Tokenizer(tuple(card["tokens"]), merges)


def about() -> About:
    """Say where the model comes from, and how well it does.

    Args:
        None.

    Returns:
        The text, the steps, and the losses beside those of simple guesses.

    Raises:
        FileNotFoundError: a file of the model is missing.

    Cost: 2 ms.
    Source: `tools/train_course_model.py`.
    Lesson: 06.

    >>> known = about()
    >>> known.validation_loss < known.bigram_loss < known.unigram_loss < known.even
    True
    """
    training = _card()["about"]
    return About(**{**training, "curve": tuple(training["curve"])})


def _card() -> dict[str, Any]:
    card: dict[str, Any] = json.loads(_read(CARD))
    return card


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} is missing; {MEND}.") from None
