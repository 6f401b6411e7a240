"""When does each head of Whisper look at which word? What lesson 07 says about it.

    python tools/experiments/whisper_words.py     needs `python course.py models`

Whisper hears the sentence that the course brings, and hears it again with a second of
silence in its middle. For each of the 24 heads of the decoder's
cross-attention: the frame with the most weight for each word, the share of weight that
falls on the sound, and the weights themselves, summed over tenths of a second.
Writes attnlib/data/results/whisper_words.json.

The true times are those of the speaker, a program: attnlib/data/cat.wav is, byte for
byte, what `espeak-ng -v en-us -s 140` of version 1.51 says, and the program reports
at which millisecond each word begins.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch

from attnlib.nn.models import whisper
from attnlib.nn.models.sound import RATE, log_mel
from attnlib.results import settings_hash

DATA = Path(__file__).resolve().parents[2] / "attnlib/data"
RESULT = DATA / "results/whisper_words.json"
SETTINGS = {
    "sentence": "The black cat chased the little mouse across the kitchen.",
    "begins_ms": [0, 135, 504, 882, 1347, 1483, 1812, 2150, 2577, 2707],
    "ends_ms": 3294,
    "pause_before": 4,  # the silence goes in before this word, "the"
    "pause_ms": 1000,
    "frames_a_bin": 5,  # of 20 ms: tenths of a second
}


def paused(sound: torch.Tensor) -> torch.Tensor:
    """The same sound with a silence before one word."""
    at = SETTINGS["begins_ms"][SETTINGS["pause_before"]] * RATE // 1000
    silence = torch.zeros(SETTINGS["pause_ms"] * RATE // 1000)
    return torch.cat([sound[:at], silence, sound[at:]])


def summary(model: whisper.Whisper, sound: torch.Tensor) -> dict[str, object]:
    """The numbers of one sound, while the model is told the sentence word by word.

    Told, so that both sounds have the same words: with a silence in its middle, the
    model would write "cased The" of its own. Row i wrote, or would have, word i.
    """
    words = len(SETTINGS["begins_ms"])
    start = ["<|startoftranscript|>", "<|notimestamps|>"]
    text = model.tokenizer.encode(" " + SETTINGS["sentence"], add_special_tokens=False)
    ids = [*(model.tokenizer.token_to_id(token) for token in start), *text.ids]
    _, looks = model.decode(torch.tensor(ids), model.encode(log_mel(sound)))
    weights = looks[:, :, 1 : 1 + words]
    n_heard = round(len(sound) / RATE * whisper.FRAMES)
    n = SETTINGS["frames_a_bin"]
    n_bins = -(-SETTINGS["ends_ms"] // (20 * n))
    bins = weights[..., : n_bins * n].unflatten(-1, (n_bins, n)).sum(-1)
    return {
        "words": [model.tokenizer.decode([i]).strip() for i in text.ids[:words]],
        "best_frame": weights[..., :n_heard].argmax(-1).tolist(),
        "on_sound": _rounded(weights[..., :n_heard].sum(-1).mean(-1)),
        "bins": _rounded(bins),
    }


def _rounded(values: torch.Tensor) -> object:
    """Numbers of three decimals; whole ones without their point, to save room."""

    def short(value: object) -> object:
        if isinstance(value, list):
            return [short(v) for v in value]
        value = round(value, 3)
        return int(value) if value == int(value) else value

    return short(values.tolist())


def main() -> None:
    torch.set_num_threads(1)
    model, sound = whisper.load(), whisper.spoken_cat()
    if (wrote := model.transcribe(sound).text) != SETTINGS["sentence"]:
        raise ValueError(f"Whisper wrote {wrote!r}.")
    plain, with_pause = summary(model, sound), summary(model, paused(sound))
    stored = {
        "settings": SETTINGS,
        "settings_sha256": settings_hash(SETTINGS),
        **plain,
        "best_frame_paused": with_pause["best_frame"],
    }
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    lines = ",\n ".join(
        f"{json.dumps(name)}: {json.dumps(value, separators=(',', ':'))}"
        for name, value in stored.items()
    )
    RESULT.write_text(f"{{{lines}}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
