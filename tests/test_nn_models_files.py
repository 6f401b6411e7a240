"""The two file formats, on files written here, byte by byte."""

import struct
from pathlib import Path

import numpy as np
import pytest
import torch

from attnlib.nn.models import ctranslate2
from attnlib.nn.models.gguf import GGUF


def text(characters: str, length: str = "Q", end: bytes = b"") -> bytes:
    coded = characters.encode() + end
    return struct.pack(f"<{length}", len(coded)) + coded


# --- GGUF ----------------------------------------------------------------------------

RNG = np.random.default_rng(0)
PLAIN = RNG.normal(size=(3, 32)).astype(np.float32)
SCALE8 = RNG.uniform(0.1, 1, size=(5, 2)).astype(np.float16)
WHOLE8 = RNG.integers(-127, 128, size=(5, 2, 32)).astype(np.int8)
SCALE4 = RNG.uniform(0.1, 1, size=(4, 3)).astype(np.float16)
LEAST4 = RNG.uniform(-2, 0, size=(4, 3)).astype(np.float16)
WHOLE4 = RNG.integers(0, 16, size=(4, 3, 32)).astype(np.uint8)


def blocks(*columns: np.ndarray) -> bytes:
    raw = [np.ascontiguousarray(c).view(np.uint8).reshape(-1, n) for c, n in columns]
    return np.concatenate(raw, axis=1).tobytes()


def gguf_bytes(version: int = 3, kind: int = 3) -> bytes:
    pairs = WHOLE4[..., :16] | WHOLE4[..., 16:] << 4
    tensors = {
        "plain": (PLAIN.shape, 0, PLAIN.tobytes()),
        "gain": ((32,), 0, PLAIN[0].tobytes()),
        "eight": ((5, 64), 8, blocks((SCALE8, 2), (WHOLE8, 32))),
        "four": ((4, 96), kind, blocks((SCALE4, 2), (LEAST4, 2), (pairs, 16))),
    }
    facts = [
        text("frog.legs") + struct.pack("<Ii", 5, -4),
        text("frog.name") + struct.pack("<I", 8) + text("猫"),
        text("frog.words") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("bc"),
        text("frog.green") + struct.pack("<I?", 7, True),
    ]
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(facts))
    head += b"".join(facts)
    numbers = b""
    for name, (shape, what, data) in tensors.items():
        sizes = struct.pack(f"<I{len(shape)}Q", len(shape), *reversed(shape))
        head += text(name) + sizes + struct.pack("<IQ", what, len(numbers))
        numbers += data + b"\0" * (-len(data) % 32)
    return head + b"\0" * (-len(head) % 32) + numbers


@pytest.fixture
def frog(tmp_path: Path) -> GGUF:
    path = tmp_path / "frog.gguf"
    path.write_bytes(gguf_bytes())
    return GGUF(path)


def test_gguf_facts(frog: GGUF) -> None:
    assert frog.facts == {
        "frog.legs": -4,
        "frog.name": "猫",
        "frog.words": ["a", "bc"],
        "frog.green": True,
    }


def test_gguf_tensors(frog: GGUF) -> None:
    eight = SCALE8.astype(np.float32)[..., None] * WHOLE8
    scale, least = (a.astype(np.float32)[..., None] for a in (SCALE4, LEAST4))
    four = scale * WHOLE4 + least
    expected = {
        "plain": PLAIN,
        "gain": PLAIN[0],
        "eight": eight.reshape(5, 64),
        "four": four.reshape(4, 96),
    }
    for name, array in expected.items():
        found = frog.tensor(name)
        assert found.dtype == torch.float32
        assert frog.shape(name) == array.shape
        torch.testing.assert_close(found, torch.from_numpy(array), rtol=0, atol=0)


@pytest.mark.parametrize("name", ["plain", "eight", "four"])
def test_gguf_rows(frog: GGUF, name: str) -> None:
    whole = frog.tensor(name)
    assert torch.equal(frog.tensor(name, slice(1, 3)), whole[1:3])
    ids = torch.tensor([[2, 0, 2], [1, 1, 0]])
    assert torch.equal(frog.tensor(name, ids), whole[ids])
    assert torch.equal(frog.tensor(name, torch.tensor([2])), whole[[2]])


def test_gguf_of_another_version_or_kind(tmp_path: Path) -> None:
    path = tmp_path / "other.gguf"
    path.write_bytes(gguf_bytes(version=2))
    with pytest.raises(ValueError, match=r"other\.gguf is not a GGUF file of version"):
        GGUF(path)
    path.write_bytes(gguf_bytes(kind=14))
    with pytest.raises(ValueError, match="four is of type 14, which is not read here"):
        GGUF(path).tensor("four")


# --- CTranslate2 ---------------------------------------------------------------------


def model_bin(version: int = 6) -> bytes:
    half = np.array([[1.5, -2.0, 0.25]], dtype=np.float16)
    arrays = [("a/weight", half, 4), ("heads", np.array(6, dtype=np.int16), 2)]
    data = struct.pack("<I", version) + text("Spec", "H", b"\0")
    data += struct.pack("<II", 3, len(arrays))
    for name, array, kind in arrays:
        data += text(name, "H", b"\0")
        data += struct.pack(f"<B{array.ndim}I", array.ndim, *array.shape)
        data += struct.pack("<BI", kind, array.nbytes) + array.tobytes()
    return (
        data
        + struct.pack("<I", 1)
        + text("b", "H", b"\0")
        + text("a/weight", "H", b"\0")
    )


def test_ctranslate2_arrays_and_second_names(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(model_bin())
    found = ctranslate2.read(path)
    assert found.keys() == {"a/weight", "heads", "b"}
    assert found["a/weight"].dtype == np.float16
    assert found["a/weight"].tolist() == [[1.5, -2.0, 0.25]] == found["b"].tolist()
    assert int(found["heads"]) == 6


def test_ctranslate2_of_another_version(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(model_bin(version=5))
    with pytest.raises(ValueError, match=r"of version 5 of .*, and version 6 was"):
        ctranslate2.read(path)
