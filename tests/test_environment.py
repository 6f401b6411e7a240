"""What gets installed: pins, conda, Binder and CI agree, and no CUDA is among them."""

import ast
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

import course
from tools import environment, pin

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]
CONDA = (ROOT / "environment.yml").read_text(encoding="utf-8")
PINS = pin.read((ROOT / "pins.txt").read_text(encoding="utf-8"))
CONDA_NAMES = {"pytorch-cpu": "torch"}  # conda name -> pip name, where they differ
FROM_PIP = {"home-assistant-intents"}  # no package of conda; it needs none besides
UNPINNED = {"triton"}  # 1 GB, for those who ask for it, and in no environment


def declared() -> dict[str, SpecifierSet]:
    """Every package that pyproject.toml names -> its bounds."""
    lines = [*PROJECT["dependencies"]]
    for extra in PROJECT["optional-dependencies"].values():
        lines += extra
    requirements = map(Requirement, lines)
    return {canonicalize_name(r.name): r.specifier for r in requirements}


# --- pins.txt ------------------------------------------------------------------------


def test_every_package_of_dev_is_pinned_and_no_other() -> None:
    assert PINS.keys() == pin.closure().keys(), "run tools/pin.py"


def test_the_pins_are_the_versions_under_test() -> None:
    if Path(sys.prefix).resolve() != (ROOT / ".venv").resolve():
        pytest.skip("this is not the .venv that course.py fills from pins.txt")
    text = (ROOT / "pins.txt").read_text(encoding="utf-8")
    assert pin.differences(text) == []


def test_a_wrong_pin_is_seen() -> None:
    fresh = pin.pins()
    pytest_line = f"pytest=={importlib.metadata.version('pytest')}\n"
    assert pin.differences(fresh.replace(pytest_line, "pytest==1.0\n"))
    assert pin.differences(fresh.replace(pytest_line, ""))
    assert pin.differences(fresh + "left-over==1.0\n")


def test_pins_are_exact_and_name_no_host_and_no_build() -> None:
    text = (ROOT / "pins.txt").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert len(lines) == len(PINS)
    assert not any("/" in line or "+" in line or "@" in line for line in lines)
    assert not any("nvidia" in name or "cuda" in name for name in PINS)


def test_the_bounds_of_pyproject_admit_the_pins() -> None:
    for name, bounds in declared().items():
        if name not in {"attnlib", *UNPINNED}:
            assert bounds.contains(PINS[name]), f"{name}{bounds} forbids {PINS[name]}"


def test_what_is_too_large_is_in_no_environment() -> None:
    extras = PROJECT["optional-dependencies"].items()
    asked = {Requirement(x).name: key for key, xs in extras for x in xs}
    for name in UNPINNED:
        assert asked[name] == name  # an extra of its own
        assert name not in PINS
        assert name not in CONDA


def test_the_pinned_packages_admit_the_oldest_python() -> None:
    oldest = "{}.{}.0".format(*course.OLDEST)
    for name in PINS:
        if name in pin.ELSEWHERE:
            continue
        wanted = importlib.metadata.metadata(name)["Requires-Python"]
        assert SpecifierSet(wanted or "").contains(oldest), f"{name} needs {wanted}"


def test_the_door_and_pyproject_agree_on_python() -> None:
    allowed = SpecifierSet(PROJECT["requires-python"])
    older = f"{course.OLDEST[0]}.{course.OLDEST[1] - 1}.9"
    assert allowed.contains("{}.{}.0".format(*course.OLDEST))
    assert allowed.contains("{}.{}.0".format(*course.NEWEST))
    assert not allowed.contains(older)
    assert pin.PYTHONS[0] == "{}.{}".format(*course.OLDEST)
    assert pin.PYTHONS[-1] == "{}.{}".format(*course.NEWEST)


@cache
def owners_of_modules() -> Mapping[str, list[str]]:
    return importlib.metadata.packages_distributions()


def undeclared(text: str) -> set[str]:
    """The packages that a Python text imports and pyproject.toml does not name."""
    known, found = owners_of_modules(), set()
    for node in ast.walk(ast.parse(text)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        for name in names:
            top = name.partition(".")[0]
            owners = {canonicalize_name(owner) for owner in known.get(top, ())}
            if owners and not owners & {*declared(), "attnlib"}:
                found.add(top)
    return found


def test_what_is_imported_is_declared() -> None:
    places = ("attnlib", "tools", "tests", "benchmarks")
    paths = [path for place in places for path in (ROOT / place).rglob("*.py")]
    for path in [*paths, ROOT / "conftest.py"]:
        missing = undeclared(path.read_text(encoding="utf-8"))
        assert not missing, f"{path.relative_to(ROOT)}: add {missing} to pyproject.toml"


def test_an_undeclared_import_is_seen() -> None:
    assert undeclared("import pygments, numpy, json") == {"pygments"}


# --- conda and Binder ----------------------------------------------------------------


def conda_faults(text: str) -> list[str]:
    """What is wrong with an environment.yml."""
    content = yaml.safe_load(text)
    faults = []
    if content["channels"] != ["conda-forge", "nodefaults"]:
        faults.append("channels")
    seen = {}
    lines = []
    for line in content["dependencies"]:
        from_pip = line.get("pip", []) if isinstance(line, dict) else []
        if not isinstance(line, str) and {Requirement(x).name for x in from_pip} != (
            FROM_PIP
        ):
            faults.append(f"a nested list: {line}")
        lines += from_pip or [line]
    for line in lines:
        if not isinstance(line, str):
            continue
        if line == "pytorch" or any(word in line for word in ("cuda", "gpu", "nvidia")):
            faults.append(f"{line} may bring CUDA")
        if line.startswith("python="):
            seen["python"] = line.partition("=")[2]
            continue
        requirement = Requirement(line)
        name = CONDA_NAMES.get(requirement.name, requirement.name)
        seen[name] = line
        if name in PINS and not requirement.specifier.contains(PINS[name]):
            faults.append(f"{line} does not admit {PINS[name]}")
        if name != "pip" and not requirement.specifier:
            faults.append(f"{line} has no bound")
        if name in declared():
            lowest = {s for s in declared()[name] if s.operator in (">=", "==")}
            if not lowest <= set(requirement.specifier):
                faults.append(f"{line} has another lower bound than pyproject.toml")
        elif name != "pip":
            faults.append(f"{line} is not in pyproject.toml")
    lines = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["notebooks"]]
    for needed in ["python", *(Requirement(line).name for line in lines)]:
        if needed not in seen:
            faults.append(f"{needed} is missing")
    return faults


def test_the_conda_environment_is_sound() -> None:
    assert conda_faults(CONDA) == []
    assert yaml.safe_load(CONDA)["name"] == "attention-by-hand"


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("pytorch-cpu>=2.9,<3", "pytorch", "may bring CUDA"),
        ("pytorch-cpu>=2.9,<3", "pytorch-gpu>=2.9", "may bring CUDA"),
        ("numpy>=2.2", "numpy>=9", "does not admit"),
        ("numpy>=2.2", "numpy", "no bound"),
        ("plotly>=6.1", "plotly>=5.0", "another lower bound"),
        ("  - anywidget>=0.9.18\n", "", "anywidget is missing"),
        ("  - nodefaults\n", "", "channels"),
        ("intents==2026.11.25", "intents>=2026", "another lower bound"),
        ("    - home-assistant", "    - torch\n    - home-assistant", "a nested list"),
    ],
)
def test_a_fault_in_the_conda_environment_is_seen(
    old: str, new: str, fault: str
) -> None:
    assert old in CONDA
    assert any(fault in found for found in conda_faults(CONDA.replace(old, new)))


def test_what_comes_from_pip_brings_nothing_along() -> None:
    for name in FROM_PIP:
        needed = map(Requirement, importlib.metadata.requires(name) or [])
        assert all(r.marker and not r.marker.evaluate({"extra": ""}) for r in needed)


def test_condas_python_is_one_of_the_course() -> None:
    lines = yaml.safe_load(CONDA)["dependencies"]
    (python,) = [line for line in lines if str(line).startswith("python=")]
    version = tuple(map(int, python.partition("=")[2].split(".")))
    assert course.python_error(version) is None


def test_binder_has_the_same_environment() -> None:
    copy = (ROOT / "binder" / "environment.yml").read_bytes()
    assert copy == (ROOT / "environment.yml").read_bytes()
    assert not (ROOT / "binder" / "environment.yml").is_symlink()


def test_binder_installs_attnlib_alone_and_the_overrides_of_lab() -> None:
    text = (ROOT / "binder" / "postBuild").read_text(encoding="utf-8")
    assert "pip install --no-deps -e ." in text
    assert "tools/lab_overrides.json" in text
    assert "jupyter trust notebooks/*.ipynb" in text


@pytest.mark.skipif(os.name == "nt", reason="repo2docker does not run on Windows")
def test_repo2docker_takes_binders_environment_and_python(tmp_path: Path) -> None:
    copy = tmp_path / "course"
    left_out = shutil.ignore_patterns(".*", "build", "__pycache__", "*.egg-info")
    shutil.copytree(ROOT, copy, ignore=left_out)
    command = [sys.executable, "-m", "repo2docker", "--no-build", "--debug", str(copy)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    assert "Building conda environment for python=3.11" in output
    assert '--file "binder/environment.yml"' in output
    assert "RUN ./binder/postBuild" in output
    assert "cuda" not in output.lower()


# --- CI ------------------------------------------------------------------------------


def test_ci_runs_check_and_test_and_nothing_after_them() -> None:
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert "set -euo pipefail" in lines
    assert lines[-2:] == ["python course.py check", "python course.py test"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no executable bit")
@pytest.mark.parametrize("name", [".ci/run", "binder/postBuild"])
def test_scripts_are_sound_and_executable(name: str) -> None:
    assert os.access(ROOT / name, os.X_OK)
    subprocess.run(["bash", "-n", str(ROOT / name)], check=True)


def test_the_settings_of_lab_are_known_to_lab() -> None:
    """A misspelt setting would be ignored without a word."""
    schemas = Path(sys.prefix) / "share/jupyter/lab/schemas"
    overrides = json.loads((ROOT / "tools/lab_overrides.json").read_text())
    for plugin, settings in overrides.items():
        package, _, name = plugin.rpartition(":")
        schema = json.loads((schemas / package / f"{name}.json").read_text())
        assert set(settings) <= set(schema["properties"])


def test_the_command_attnlib_is_found_by_what_the_course_starts():
    found = shutil.which("python", path=environment.variables()["PATH"])
    assert found is not None
    assert Path(found).parent == Path(environment.python()).parent
