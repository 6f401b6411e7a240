"""Which real models are there: looked up without running a line of their packages."""

import hashlib
import sys
from pathlib import Path

import pytest
from real_models import needs

from attnlib import checkpoints
from attnlib.checkpoints import Checkpoint, File, ModelMissing, find, here

CONTENT = b"some weights"
FROG = Checkpoint(
    name="frog",
    title="Frog 1",
    package="frog-weights",
    version="1.2.0",
    n_bytes=3_000_000,
    sha256="0" * 64,
    licence="MIT",
    purpose="croaking",
    files={
        "weights": File(
            "frog_weights/frog.bin",
            len(CONTENT),
            hashlib.sha256(CONTENT).hexdigest(),
        )
    },
)


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages with the frog in it, which must never be imported."""
    monkeypatch.setattr(checkpoints, "MODELS", (FROG,))
    (tmp_path / "frog_weights").mkdir()
    (tmp_path / "frog_weights/__init__.py").write_text("raise SystemExit('it ran')")
    (tmp_path / "frog_weights/frog.bin").write_bytes(CONTENT)
    about = tmp_path / "frog_weights-1.2.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Name: frog-weights\nVersion: 1.2.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_the_files_are_found_and_the_package_is_not_run(packages: Path) -> None:
    assert here("frog")
    assert find("frog") == {"weights": packages / "frog_weights/frog.bin"}
    assert "frog_weights" not in sys.modules


def sentence(name: str = "frog") -> str:
    with pytest.raises(ModelMissing) as caught:
        find(name)
    return str(caught.value)


def test_a_model_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "MODELS", (FROG,))
    assert not here("frog")
    assert sentence() == (
        "Frog 1 is not installed (3 MB to download): run `python course.py models` in "
        "the folder of the course."
    )


def test_another_version(packages: Path) -> None:
    about = packages / "frog_weights-1.2.0.dist-info/METADATA"
    about.write_text("Name: frog-weights\nVersion: 9.0\n")
    assert not here("frog")
    assert "from frog-weights 9.0, and the course needs 1.2.0: run" in sentence()


def test_a_file_that_is_gone(packages: Path) -> None:
    (packages / "frog_weights/frog.bin").unlink()
    assert not here("frog")
    assert "installed without its file frog_weights/frog.bin: run" in sentence()


def test_a_file_that_was_cut_off(packages: Path) -> None:
    (packages / "frog_weights/frog.bin").write_bytes(CONTENT[:5])
    assert not here("frog")
    assert "frog.bin of 5 bytes instead of 12: run" in sentence()


def test_a_file_of_the_right_size_with_another_content(packages: Path) -> None:
    find("frog")  # a file that changes afterwards must be looked at again
    (packages / "frog_weights/frog.bin").write_bytes(CONTENT.upper())
    assert here("frog")  # as far as one sees without reading it
    assert "frog.bin is not the file of Frog 1 that the course knows" in sentence()
    assert "`python course.py models --remove`" in sentence()


@pytest.mark.parametrize("function", [here, find, checkpoints.how_to_get])
def test_an_unknown_name(function) -> None:
    with pytest.raises(ValueError, match=r"no model 'cat'; there are 'minilm', "):
        function("cat")


def test_the_sentence_is_the_same_with_and_without_the_model(packages: Path) -> None:
    said = checkpoints.how_to_get("frog")
    (packages / "frog_weights/frog.bin").unlink()
    assert checkpoints.how_to_get("frog") == said
    assert said.startswith("This part needs Frog 1 (3 MB to download), which is opt")


def test_every_model_is_described_and_pinned() -> None:
    for model in checkpoints.MODELS:
        hashes = [model.sha256, *(file.sha256 for file in model.files.values())]
        assert all(len(h) == 64 and set(h) <= set("0123456789abcdef") for h in hashes)
        assert len(set(hashes)) == len(hashes)
        assert "weights" in model.files
        assert model.licence in ("MIT", "Apache-2.0")
        assert model.n_bytes < 100e6


@pytest.mark.parametrize(
    "name",
    [pytest.param(m.name, marks=needs(m.name)) for m in checkpoints.MODELS],
)
def test_the_installed_files_are_genuine(name: str) -> None:
    assert all(path.is_file() for path in find(name).values())
