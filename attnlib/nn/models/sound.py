"""From a sound to what Whisper reads: a picture of 80 rows, 100 columns a second.

frames     25 ms of sound, one every 10 ms
power      how strong each frequency is in a frame
mel        80 sums over neighbouring frequencies, close together where we hear well
logarithm  as loudness is heard; 8 powers of ten below the loudest and no less
"""

from __future__ import annotations

import wave
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from attnlib.shapes import ShapeError

RATE = 16_000  # samples a second
SECONDS = 30  # Whisper reads exactly so much; silence is added
FRAME, STEP = 400, 160  # samples
N_MELS = 80


def listen(path: str | Path) -> Tensor:
    """Read a sound file as numbers between -1 and 1, 16 000 a second.

    Args:
        path: a wav file with 16-bit samples; of several channels the mean is taken.

    Returns:
        The samples, (n_samples,).

    Raises:
        ValueError: the samples are not of 16 bits.
        wave.Error: it is no wav file.

    Cost: one pass over the file.
    Source: the names of the course.
    Lesson: 07.

    >>> from importlib.resources import files
    >>> round(len(listen(files("attnlib") / "data" / "cat.wav")) / RATE, 1)
    3.7
    """
    with wave.open(str(path), "rb") as file:
        width, n_channels = file.getsampwidth(), file.getnchannels()
        rate, n = file.getframerate(), file.getnframes()
        if width != 2:
            raise ValueError(f"{path} has samples of {8 * width} bits, not of 16.")
        stored = np.frombuffer(file.readframes(n), "<i2").reshape(-1, n_channels)
    sound = stored.mean(axis=1) / 32768
    # Straight lines between the samples are good enough for speech.
    times = np.arange(int(len(sound) * RATE / rate)) / RATE
    sound = np.interp(times, np.arange(len(sound)) / rate, sound)
    return torch.from_numpy(sound).float()


def log_mel(sound: Tensor) -> Tensor:
    """Turn a sound into the picture that Whisper reads.

    mel = log10(max(bank power, 1e-10)), cut 8 below its largest, then (mel + 4) / 4

    Args:
        sound: samples, (n_samples,), 16 000 a second, at most 30 seconds.

    Returns:
        The picture, (80, 3000): one column every 10 ms, silence after the sound.

    Raises:
        ShapeError: the sound has more than one axis, or is longer than 30 seconds.

    Cost: 3000 Fourier transforms of 400 samples.
    Source: Radford et al. 2022 (Whisper), section 2.2; Slaney's mel scale.
    Lesson: 07.

    >>> log_mel(torch.zeros(RATE)).shape
    torch.Size([80, 3000])
    """
    if sound.ndim != 1 or len(sound) > RATE * SECONDS:
        raise ShapeError(
            f"sound must have one axis and at most {RATE * SECONDS} samples "
            f"({SECONDS} seconds), but its shape is {tuple(sound.shape)}."
        )
    padded = torch.zeros(RATE * SECONDS, dtype=torch.float32)
    padded[: len(sound)] = sound
    window = torch.hann_window(FRAME, dtype=torch.float32)
    waves = torch.stft(padded, FRAME, STEP, window=window, return_complex=True)
    power = waves[:, :-1].abs() ** 2  # (201, 3000)
    mel = (mel_bank() @ power).clamp(min=1e-10).log10()
    return (torch.maximum(mel, mel.max() - 8) + 4) / 4


def mel_bank() -> Tensor:
    """Make the triangles over which the power is summed, each of area 1.

    Args:
        None.

    Returns:
        One row a triangle, (80, 201): how much each frequency counts in it.

    Raises:
        Nothing.

    Cost: none worth counting.
    Source: Slaney 1998, Auditory Toolbox; as in librosa.
    Lesson: 07.

    >>> bank = mel_bank()
    >>> bank.shape, bool((bank >= 0).all())
    (torch.Size([80, 201]), True)
    """
    frequencies = np.linspace(0, RATE / 2, FRAME // 2 + 1)
    corners = _hertz(np.linspace(0, _mel(RATE / 2), N_MELS + 2))[:, None]
    left, middle, right = corners[:-2], corners[1:-1], corners[2:]
    rising = (frequencies - left) / (middle - left)
    falling = (right - frequencies) / (right - middle)
    triangles = np.maximum(0, np.minimum(rising, falling)) * 2 / (right - left)
    return torch.from_numpy(triangles).float()


# A mel is 200/3 hertz up to 1000 hertz; above, 27 mels make a factor of 6.4.


def _mel(hertz: float) -> float:
    return 15 + 27 * float(np.log(hertz / 1000) / np.log(6.4))


def _hertz(mel: np.ndarray) -> np.ndarray:
    return np.where(mel < 15, mel * 200 / 3, 1000 * 6.4 ** ((mel - 15) / 27))
