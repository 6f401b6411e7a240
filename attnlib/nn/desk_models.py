"""The trained models of the help desk: seven small ones, for long calls in English.

`tools/experiments/help_desk.py` trains them anew.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from attnlib.nn import desk
from attnlib.nn.intents import help_desk
from attnlib.results import stored

PATH = Path(__file__).resolve().parent.parent / "data" / "help_desk.npz"
Arrays = dict[str, npt.NDArray[np.float16]]


def trained(name: str) -> desk.DeskModel:
    """Load the model of one way, as the first seed of the experiment left it.

    Args:
        name: one of `desk.NAMES`; no shape.

    Returns:
        The model, in torch's default dtype.

    Raises:
        ValueError: there is no such way, or the file is not the one that the stored
            results were measured with.

    Cost: a file of 400 kB is read.
    Source: `tools/experiments/help_desk.py`.
    Lesson: 15.
    """
    arrays = read()
    if fingerprint(arrays) != stored("help_desk")["models_sha256"]:
        raise ValueError(
            f"{PATH.name} does not hold the models of the stored results; take the "
            "file anew, or run python tools/experiments/help_desk.py."
        )
    calls = stored("help_desk")["settings"]["calls"]
    attend = desk.way(name, max(calls["lengths"]))
    model = desk.DeskModel(help_desk(calls["language"]), attend)
    own = {key: arrays[f"{name}/{key}"] for key in model.state_dict()}
    model.load_state_dict({key: torch.from_numpy(a) for key, a in own.items()})
    return model.requires_grad_(False)


def fingerprint(arrays: Arrays) -> str:
    """Give the SHA-256 of arrays: of their names, shapes and numbers.

    Args:
        arrays: name -> array, float16, of any shape.

    Returns:
        64 hexadecimal digits.

    Raises:
        Nothing.

    Cost: one pass over the numbers.
    Source: FIPS 180-4.
    Lesson: 15.

    >>> fingerprint({"a": np.zeros(2, np.float16)})[:8]
    'a98d63f4'
    """
    found = sha256()
    for name in sorted(arrays):
        array = arrays[name].astype("<f2")
        found.update(f"{name} {array.shape} ".encode() + array.tobytes())
    return found.hexdigest()


def read() -> Arrays:
    """Read the numbers of all models.

    Args:
        None.

    Returns:
        "way/parameter" -> its numbers, of the parameter's shape.

    Raises:
        FileNotFoundError: the library was installed without its data.

    Cost: a file of 400 kB is read.
    Source: `tools/experiments/help_desk.py`.
    Lesson: 15.
    """
    with np.load(PATH) as file:
        return {key: file[key] for key in file.files}
