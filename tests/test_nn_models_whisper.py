"""Whisper: ctranslate2's frames, text and word times; and the sound it reads."""

import wave
from pathlib import Path

import numpy as np
import pytest
import torch
from real_models import agree, needs, reference
from torch_tools import one_thread

from attnlib.nn.models import whisper
from attnlib.nn.models.sound import RATE, listen, log_mel, mel_bank
from attnlib.nn.models.whisper import Transcript, word_times
from attnlib.shapes import ShapeError

__all__ = ["one_thread"]
SAID = "The black cat chased the little mouse across the kitchen."
ALIGNED = [(1, 0), (2, 0), (2, 5), (3, 0), (3, 1), (3, 2), (3, 3), (3, 4)]


# --- the sound, which needs no model -------------------------------------------------


def test_the_sound_of_the_course() -> None:
    sound = whisper.spoken_cat()
    assert sound.dtype == torch.float32
    assert len(sound) / RATE == pytest.approx(3.7, abs=0.05)
    assert 0.5 < float(sound.abs().max()) <= 1


def write(path: Path, samples: np.ndarray, rate: int, width: int = 2) -> Path:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(samples.shape[1])
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(samples.tobytes())
    return path


def test_another_rate_and_two_channels(tmp_path: Path) -> None:
    times = np.arange(4410) / 44100
    wave_440 = 9000 * np.sin(2 * np.pi * 440 * times)
    both = np.stack([wave_440, wave_440 / 2], axis=1).astype("<i2")
    sound = listen(write(tmp_path / "a.wav", both, 44100))
    assert len(sound) == 1600
    expected = 0.75 * 9000 / 32768 * np.sin(2 * np.pi * 440 * np.arange(1600) / RATE)
    assert np.abs(sound.numpy() - expected).max() < 2e-3


def test_samples_of_another_width(tmp_path: Path) -> None:
    path = write(tmp_path / "b.wav", np.zeros((8, 1), "u1"), 8000, width=1)
    with pytest.raises(ValueError, match=r"b\.wav has samples of 8 bits, not of 16"):
        listen(path)


def test_a_tone_is_a_bright_row() -> None:
    tone = torch.sin(2 * torch.pi * 1000 * torch.arange(RATE) / RATE)
    picture = log_mel(tone)
    assert picture.shape == (80, 3000)
    bank = mel_bank()
    loudest = int(bank[:, 25].argmax())  # the column of 25 * 40 = 1000 hertz
    assert set(picture[:, 10:90].argmax(dim=0).tolist()) == {loudest}
    assert float(picture.max() - picture.min()) == pytest.approx(2.0)  # 8 tens / 4
    areas = bank.sum(dim=1) * 40  # 40 hertz between the columns
    assert float(areas[30:].min()) > 0.9
    assert float(areas[30:].max()) < 1.1


@pytest.mark.parametrize("shape", [(480001,), (2, 100)])
def test_a_sound_that_does_not_fit(shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match=r"at most 480000 samples \(30 seconds\), but"):
        log_mel(torch.zeros(shape))


def test_words_are_put_together_from_their_tokens() -> None:
    tokens = (" kit", "ten", ",", " it", "'s", ".", "<|endoftext|>")
    weights = torch.zeros(1, 2, 7, 12)
    for row, frame in enumerate([1, 3, 4, 6, 8, 9, 2]):
        weights[0, 1, row, frame] = 0.6
    weights[0, 1, :, 11] = 0.9  # after the sound
    heard = Transcript("kitten, it's.", tokens, weights, n_heard=10)
    assert word_times(heard, [(0, 1)]) == [("kitten", 0.06), ("it's", 0.16)]
    with pytest.raises(ValueError, match=r"at least one \(layer, head\) pair"):
        word_times(heard, [])


# --- the model -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def model() -> whisper.Whisper:
    return whisper.load()


@pytest.fixture(scope="module")
def heard(model: whisper.Whisper) -> Transcript:
    return model.transcribe(whisper.spoken_cat())


@needs("whisper")
def test_the_frames_are_those_of_ctranslate2(model: whisper.Whisper) -> None:
    frames = model.encode(log_mel(whisper.spoken_cat()))
    agree(frames, reference("whisper")["frames"], atol=1e-4)


@needs("whisper")
def test_it_hears_the_sentence(heard: Transcript) -> None:
    assert heard.text == SAID == reference("whisper")["text"]
    assert "".join(heard.tokens) == f" {SAID}<|endoftext|>"
    assert heard.weights.shape == (4, 6, len(heard.tokens), 1500)
    torch.testing.assert_close(heard.weights.sum(-1), torch.ones(4, 6, 12))
    assert heard.n_heard == 186  # 3.72 seconds


@needs("whisper")
def test_it_hears_in_float32_where_new_tensors_are_float64(heard: Transcript) -> None:
    torch.set_default_dtype(torch.float64)  # as in lesson 07
    try:
        again = whisper.load().transcribe(whisper.spoken_cat())
    finally:
        torch.set_default_dtype(torch.float32)
    assert again.tokens == heard.tokens
    assert torch.equal(again.weights, heard.weights)


@needs("whisper")
def test_each_word_is_found_while_it_is_said(heard: Transcript) -> None:
    """Between its start and the next one's, by another program; give or take 60 ms."""
    theirs = reference("whisper")
    starts = [start for _, start in theirs["starts"]]
    times = word_times(heard, ALIGNED)
    assert [word for word, _ in times] == SAID.rstrip(".").split()
    for (_, time), start, end in zip(times, starts, starts[1:], strict=False):
        assert start - 0.06 <= time <= end + 0.06
    assert dict(times)["cat"] == pytest.approx(0.84)


@needs("whisper")
def test_the_heads_that_follow_the_sound(heard: Transcript) -> None:
    said = heard.weights[..., :-2, : heard.n_heard]  # without "." and the end
    on_speech = said.sum(-1).mean(-1)
    order = said.argmax(-1)
    forward = (order.diff(dim=-1) >= 0).all(-1)
    assert bool(forward[3].all())  # all heads of the last layer
    assert int(forward.sum()) >= 14
    assert float(on_speech[2, 4]) > 0.9
    silent = said[0, 2, 1:].sum(-1)  # after the first word, into the silence
    assert float(silent.max()) < 0.01


@needs("whisper")
def test_the_cache_changes_nothing(model: whisper.Whisper, heard: Transcript) -> None:
    text = model.tokenizer.encode(" " + heard.text, add_special_tokens=False).ids
    ids = torch.tensor([*model.numbers(*whisper.START), *text])
    frames = model.encode(log_mel(whisper.spoken_cat()))
    logits, weights = model.decode(ids, frames)
    torch.testing.assert_close(weights[:, :, 1:], heard.weights, rtol=0, atol=1e-5)
    assert logits[1:-1].argmax(-1).tolist() == text


@needs("whisper")
def test_it_stops_where_it_is_told_to(model: whisper.Whisper) -> None:
    short = model.transcribe(whisper.spoken_cat(), n_most=3)
    assert short.text == "The black cat"
    assert short.weights.shape[2] == 3
