"""The file format of CTranslate2: names and arrays, one after the other.

    version, kind of model, revision            whole number, text, whole number
    how many arrays, then for each:
        name, n axes, sizes, type, n bytes, the bytes
    how many second names, then for each:
        second name, first name

Whole numbers are little-endian; a text is its length in 2 bytes, then the characters
and a zero byte.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt

NUMBERS = {0: np.float32, 1: np.int8, 2: np.int16, 3: np.int32, 4: np.float16}
VERSION = 6


def read(path: Path) -> dict[str, npt.NDArray[np.generic]]:
    """Read all arrays of a file, by name.

    Args:
        path: the file, called model.bin.

    Returns:
        Name -> array, in the type in which it is stored; read only.

    Raises:
        ValueError: the file is of another version of the format.

    Cost: the file is read once.
    Source: CTranslate2, specs/model_spec.py.
    Lesson: 07.

    >>> read("model.bin")["decoder/layer_0/attention/linear_0/weight"].shape
    ... # doctest: +SKIP
    (384, 384)
    """
    data = path.read_bytes()
    place = 0

    def number(kind: str) -> int:
        nonlocal place
        (found,) = struct.unpack_from(f"<{kind}", data, place)
        place += struct.calcsize(kind)
        return int(found)

    def text() -> str:
        nonlocal place
        length = number("H")
        place += length
        return data[place - length : place - 1].decode()

    version = number("I")
    if version != VERSION:
        raise ValueError(
            f"{path} is of version {version} of the CTranslate2 format, and version "
            f"{VERSION} was asked for."
        )
    text(), number("I")  # what kind of model, and the revision of that
    arrays: dict[str, npt.NDArray[np.generic]] = {}
    for _ in range(number("I")):
        name = text()
        shape = [number("I") for _ in range(number("B"))]
        kind, n_bytes = NUMBERS[number("B")], number("I")
        count = n_bytes // np.dtype(kind).itemsize
        arrays[name] = np.frombuffer(data, kind, count, place).reshape(shape)
        place += n_bytes
    for _ in range(number("I")):
        second, first = text(), text()
        arrays[second] = arrays[first]
    return arrays
