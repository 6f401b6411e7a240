"""What a machine needs for the course, what it has, and what to do about the rest.

`attnlib doctor` prints it, lesson 00 shows it as traffic lights. Packages are looked
up, never imported: the doctor takes no time and cannot crash on a broken install.
"""

from __future__ import annotations

import importlib.util
import platform
import shutil
import sys
from importlib import metadata
from typing import Literal, NamedTuple

from attnlib import checkpoints

State = Literal["ok", "old", "missing"]

PYTHON = (3, 11)
# name of the package, oldest version that works, what it is for
PACKAGES = (
    ("numpy", (2, 2), "every lesson computes with it"),
    ("jupyterlab", (4, 4), "it shows the lessons"),
    ("ipykernel", (6, 29), "it runs the cells of a lesson"),
    ("ipywidgets", (8, 1), "the workbenches need it"),
    ("anywidget", (0, 9), "the workbenches need it"),
    ("plotly", (6, 1), "it draws the charts"),
    ("torch", (2, 9), "lessons 05 and later use it; 00 to 04 do not"),
    ("scikit-learn", (1, 5), "lessons 07 and 08 take its handwritten digits"),
    ("safetensors", (0, 5), "it reads the file of a real model in lesson 06"),
    ("tokenizers", (0, 21), "it cuts texts for the real models of lessons 06 and 07"),
    ("home-assistant-intents", (2026, 11), "lesson 15 takes its sentences"),
)
MODULES = {"scikit-learn": "sklearn"}  # where the module has another name
TEST_PACKAGES = (("nbval", (0, 11), "only the tests of the course use it"),)
MEND = "run `python course.py lab` in the folder of the course; it installs the rest"


class Finding(NamedTuple):
    """One thing that was looked at: its name, its state, and what to do."""

    name: str
    state: State
    advice: str


def examine(*, tests: bool = False) -> tuple[Finding, ...]:
    """Look at everything the course needs.

    The findings name no version, so that a stored notebook says the same on every
    machine where all is well.

    Args:
        tests: also look for what only the tests need.

    Returns:
        One `Finding` a thing; the advice of an "ok" one is empty, or a remark.

    >>> [finding.name for finding in examine()][:2]
    ['Python', 'numpy']
    """
    packages = PACKAGES + (TEST_PACKAGES if tests else ())
    return (_python(), *(_package(*package) for package in packages), _kernel(), _git())


def models() -> tuple[Finding, ...]:
    """Look for the real models, which are optional: nothing is left to do without.

    Returns:
        One `Finding` a model, "ok" or "missing"; its advice says what it is for.

    >>> [finding.name for finding in models()]
    ['MiniLM-L6', 'SmolLM2-135M-Instruct', 'Whisper tiny.en']
    """
    return tuple(
        Finding(
            model.title,
            "ok" if checkpoints.here(model.name) else "missing",
            model.purpose,
        )
        for model in checkpoints.MODELS
    )


def healthy(findings: tuple[Finding, ...]) -> bool:
    """Whether nothing is left to do.

    >>> healthy((Finding("git", "ok", ""),))
    True
    """
    return all(finding.state == "ok" for finding in findings)


def versions() -> dict[str, str]:
    """What is installed, by name; for a bug report, never for a stored output."""
    found = {"Python": platform.python_version(), "system": platform.platform()}
    others = [model.package for model in checkpoints.MODELS]
    for name in [*(p[0] for p in (*PACKAGES, *TEST_PACKAGES)), *others]:
        found[name] = _version(name) or "not installed"
    return found


def _python(version: tuple[int, int] | None = None) -> Finding:
    version = version or sys.version_info[:2]
    if version >= PYTHON:
        return Finding("Python", "ok", "")
    return Finding("Python", "old", f"install Python 3.11 or newer: {_how('python')}")


def _package(name: str, oldest: tuple[int, ...], purpose: str) -> Finding:
    version = _version(name)
    if version is None:
        return Finding(name, "missing", f"{purpose}; {MEND}")
    if _numbers(version) < oldest:
        wanted = ".".join(map(str, oldest))
        return Finding(name, "old", f"{wanted} or newer is needed; {MEND}")
    return Finding(name, "ok", "")


def torch_build() -> str:
    """Which build of torch is installed: "CPU", "CUDA" or "none".

    Both work. The CUDA build takes several GB that the course does not need.
    """
    version = _version("torch")
    if version is None:
        return "none"
    # CPU wheels are called +cpu on Linux and Windows, and there is no other on a Mac.
    cuda = "+cu" in version or _installed("nvidia-cublas-cu12", "nvidia-cublas")
    return "CUDA" if cuda else "CPU"


def _kernel() -> Finding:
    """In a notebook this Python runs the cells already; elsewhere: could it?"""
    if "ipykernel.kernelapp" in sys.modules or _version("ipykernel") is not None:
        return Finding("kernel", "ok", "")
    return Finding("kernel", "missing", f"no cell can run without it; {MEND}")


def _git() -> Finding:
    if shutil.which("git"):
        return Finding("git", "ok", "")
    advice = f"it fetches the course and its updates; install it: {_how('git')}"
    return Finding("git", "missing", advice)


def _how(program: str, system: str | None = None) -> str:
    """How a program is installed on this platform, as a command to type."""
    system = system or platform.system()
    name = {"python": "python@3.12", "git": "git"}[program]
    if system == "Darwin":
        return f"`brew install {name}`"
    if system == "Windows":
        name = {"python": "Python.Python.3.12", "git": "Git.Git"}[program]
        return f"`winget install {name}`"
    package = "git" if program == "git" else "python3.12 python3.12-venv"
    return f"`sudo apt install {package}`, or your distribution's like"


def _version(name: str) -> str | None:
    """The version of a package, None where it is not installed."""
    if importlib.util.find_spec(MODULES.get(name, name.replace("-", "_"))) is None:
        return None
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _installed(*names: str) -> bool:
    for name in names:
        try:
            metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
        return True
    return False


def _numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version.

    >>> _numbers("2.13.0+cpu")
    (2, 13, 0)
    """
    numbers = []
    for part in version.split("+")[0].split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)
