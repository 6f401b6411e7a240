"""When each word of attnlib/data/cat.wav begins, by the program that speaks it.

    python tools/experiments/spoken_words.py     needs libespeak-ng 1.51 (on Debian,
                                                 the package espeak-ng)

Speaks the sentence again, sees that the samples are those of the file, and prints at
which millisecond each word begins: the numbers in whisper_words.py.
"""

from __future__ import annotations

import ctypes
import wave
from pathlib import Path

WAV = Path(__file__).resolve().parents[2] / "attnlib/data/cat.wav"
SENTENCE = b"The black cat chased the little mouse across the kitchen."
RETRIEVE, RATE_PARAMETER, WORDS_A_MINUTE, CHARACTERS, UTF8 = 1, 1, 140, 1, 1
WORD, END = 1, 5  # kinds of events


class Event(ctypes.Structure):
    """espeak_EVENT of speak_lib.h; the last field is a union of 8 bytes."""

    _fields_ = [
        ("type", ctypes.c_int),
        ("unique_identifier", ctypes.c_uint),
        ("text_position", ctypes.c_int),
        ("length", ctypes.c_int),
        ("audio_position", ctypes.c_int),
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("id", ctypes.c_char * 8),
    ]


Callback = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.POINTER(ctypes.c_short),
    ctypes.c_int,
    ctypes.POINTER(Event),
)


def main() -> None:
    speaker = ctypes.CDLL("libespeak-ng.so.1")
    speaker.espeak_Initialize(RETRIEVE, 0, None, 0)
    samples: list[int] = []
    times: list[tuple[str, int]] = []

    def receive(sound, n, events):
        samples.extend(sound[:n])
        i = 0
        while events[i].type:
            event = events[i]
            if event.type in (WORD, END):
                at = event.text_position - 1
                word = SENTENCE[at : at + event.length].decode()
                times.append((word or "(end)", event.audio_position))
            i += 1
        return 0

    callback = Callback(receive)
    speaker.espeak_SetSynthCallback(callback)
    speaker.espeak_SetVoiceByName(b"en-us")
    speaker.espeak_SetParameter(RATE_PARAMETER, WORDS_A_MINUTE, 0)
    size = len(SENTENCE) + 1
    speaker.espeak_Synth(SENTENCE, size, 0, CHARACTERS, 0, UTF8, None, None)
    speaker.espeak_Synchronize()
    with wave.open(str(WAV)) as file:
        stored = memoryview(file.readframes(file.getnframes())).cast("h").tolist()
    print("the samples are those of the file:", stored[: len(samples)] == samples)
    for word, milliseconds in times:
        print(f"{milliseconds:5} {word}")


if __name__ == "__main__":
    main()
