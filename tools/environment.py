""".venv: made, filled with the packages of pins.txt, mended when broken.

Standard library alone: course.py runs this on a fresh machine, before any install.
"""

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / "course-installed"  # holds the digest of the last finished install
TORCH_CPU = "https://download.pytorch.org/whl/cpu"  # the index of the CPU builds
# GB that a fresh .venv and its downloads take, and the real models on top of it
ROOM = {"notebooks": 2.8, "dev": 3.3, "models": 0.6}
CONDA = "use conda instead: `conda env create -f environment.yml` (see README.md)"
LEAKS = {"PYTHONPATH", "PYTHONHOME", "PIP_USER", "PIP_TARGET", "PIP_PREFIX"}
DOWNLOADING = re.compile(r"Downloading (?:\S*/)?([^-\s]+-[^-\s]+)-\S*whl (\(.*\))")
OFFLINE = (  # what pip says when an index does not answer
    "Failed to establish a new connection",
    "NewConnectionError",
    "NameResolutionError",
    "getaddrinfo failed",
    "Name or service not known",
    "Temporary failure in name resolution",
    "Network is unreachable",
    "Connection refused",
    "Connection broken",
    "ProxyError",
    "timed out",
    "CERTIFICATE_VERIFY_FAILED",
)


class CourseError(Exception):
    """What went wrong, as one sentence to print."""


class BrokenEnvironment(CourseError):
    """An install that went wrong in a way that a fresh .venv may mend."""


def say(text: str) -> None:
    print(f"course.py: {text}", flush=True)


def python() -> str:
    """The Python inside .venv."""
    return str(VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))


def variables(**changes: str) -> dict[str, str]:
    """Variables for a child, where nothing of the user's own Python reaches .venv."""
    ours = {name: value for name, value in os.environ.items() if name not in LEAKS}
    ours |= {"PYTHONNOUSERSITE": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    # So that `attnlib` is a command in JupyterLab's terminals, and after ! in a cell.
    folders = [str(Path(python()).parent), ours.get("PATH")]
    ours["PATH"] = os.pathsep.join(folder for folder in folders if folder)
    return ours | changes


def last_line(output: str) -> str:
    return (output.strip().splitlines() or ["it gave no message"])[-1]


def digest(extra: str) -> str:
    """Another one whenever a finished install would have to be done again."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    pins = (ROOT / "pins.txt").read_text(encoding="utf-8")
    wanted = project["project"], project["build-system"], pins
    text = repr((extra, sys.version_info[:2], str(ROOT), wanted))
    return hashlib.sha256(text.encode()).hexdigest()


def installed(extra: str) -> bool:
    """Whether .venv holds what the extra needs; dev holds the notebooks' too."""
    if not (STAMP.exists() and Path(python()).exists()):
        return False
    return STAMP.read_text(encoding="utf-8") in (digest(extra), digest("dev"))


def works() -> bool:
    """Whether .venv has a Python of our version that starts and has pip."""
    code = "import sys, pip; print(*sys.version_info[:2])"
    command = [python(), "-c", code]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=variables(), check=False
        )
    except OSError:
        return False
    return done.stdout.split() == [str(n) for n in sys.version_info[:2]]


def inside() -> bool:
    """Whether this very process runs from .venv, which it then cannot replace."""
    return Path(sys.prefix).resolve() == VENV.resolve()


def make() -> None:
    """A fresh .venv, in place of one that does not work."""
    if os.path.lexists(VENV):
        if inside():
            raise CourseError(
                ".venv is broken and runs this command: run course.py with a Python "
                "outside .venv, which then makes it again."
            )
        say("removing a .venv that does not work.")
        try:
            shutil.rmtree(VENV)
        except OSError as error:
            raise CourseError(
                f".venv cannot be removed ({error}): close what uses it and delete it."
            ) from error
    say(f"making .venv with Python {platform.python_version()}.")
    command = [sys.executable, "-m", "venv", str(VENV)]
    done = subprocess.run(
        command, capture_output=True, text=True, env=variables(), check=False
    )
    if done.returncode:
        shutil.rmtree(VENV, ignore_errors=True)
        raise CourseError(venv_sentence(done.stdout + done.stderr))


def venv_sentence(output: str) -> str:
    """What a failed `python -m venv` meant."""
    if "ensurepip" in output or "No module named venv" in output:
        return (
            "this Python has no venv module; on Debian and Ubuntu, install it with "
            "`sudo apt install python3-venv` and run the same command again."
        )
    if no_space(output):
        return disk_sentence()
    return f"Python could not make .venv: {last_line(output)}"


def no_space(output: str) -> bool:
    return "No space left on device" in output or "not enough space" in output


def disk_sentence(extra: str = "notebooks") -> str:
    free = shutil.disk_usage(ROOT).free / 1e9
    what = "the real models need" if extra == "models" else "the course needs"
    return (
        f"there is not enough disk space: {what} about {ROOM[extra]:.1f} GB "
        f"and {free:.1f} GB are free at {ROOT}; make room and run the same command "
        "again."
    )


def pip(what: str, extra: str, *arguments: str) -> None:
    """Run pip install, show what it downloads; raise one sentence where it fails."""
    command = [python(), "-m", "pip", "install", "--progress-bar=off", *arguments]
    lines = []
    with subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=variables(),
    ) as child:
        assert child.stdout
        for line in child.stdout:
            lines.append(line)
            if found := DOWNLOADING.search(line):
                name, size = found.groups()
                print("   ", name.replace("%2B", "+"), size, flush=True)
            elif line.startswith("Installing collected packages"):
                names = line.partition(":")[2].split(",")
                many = f"{len(names)} packages" if names[1:] else names[0].strip()
                print("    unpacking", many, flush=True)
    if child.returncode:
        raise pip_error(what, extra, "".join(lines))


def pip_error(what: str, extra: str, output: str) -> CourseError:
    """What a failed `pip install` meant."""
    if no_space(output):
        return CourseError(disk_sentence(extra))
    if any(sign in output for sign in OFFLINE):
        return CourseError(
            f"{what} could not be downloaded, because the package index did not "
            "answer: check the network (or the proxy) and run the same command again, "
            "which goes on where this one stopped."
        )
    if "No matching distribution" in output and what == "PyTorch":
        return CourseError(
            f"PyTorch has no CPU build for Python {platform.python_version()} on this "
            f"machine ({sys.platform}, {platform.machine()}): {CONDA}."
        )
    log = VENV / "install.log"
    log.write_text(output, encoding="utf-8")
    errors = [line for line in output.splitlines() if line.startswith("ERROR")]
    found = last_line("\n".join(errors))
    return BrokenEnvironment(f"pip could not install {what} ({found}); see {log}.")


def torch() -> str:
    """The CPU build by its full name, so that no CUDA build can take its place."""
    pins = (ROOT / "pins.txt").read_text(encoding="utf-8").splitlines()
    pin = next(line for line in pins if line.startswith("torch=="))
    # macOS has CPU builds only, under the plain name, in the default index.
    return pin if sys.platform == "darwin" else f"{pin}+cpu"


def verify() -> None:
    """Raise unless what was installed starts and holds no CUDA package."""
    for pattern in ("lib/python*/site-packages", "Lib/site-packages"):
        for cuda in VENV.glob(f"{pattern}/nvidia*"):
            raise CourseError(
                f"a CUDA build of torch came into .venv ({cuda.name}), and the course "
                "wants the CPU build: delete .venv and run the same command again."
            )
    command = [python(), "-c", "import numpy, jupyterlab, attnlib"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env=variables(), check=False
    )
    if done.returncode:
        found = last_line(done.stderr)
        raise BrokenEnvironment(f"what was installed does not start: {found}.")


def install(extra: str) -> None:
    """Fill .venv; what an earlier try installed is kept."""
    if sys.platform == "darwin" and platform.machine() == "x86_64":
        raise CourseError(f"PyTorch has no pip package for Intel Macs: {CONDA}.")
    STAMP.unlink(missing_ok=True)  # from here on .venv counts as unfinished
    say("installing PyTorch, the CPU build (about 200 MB to download).")
    index = [] if sys.platform == "darwin" else ["--index-url", TORCH_CPU]
    quick = ["--no-deps", "--retries=1", "--timeout=20"]
    pip("PyTorch", extra, *quick, *index, torch())
    say("installing the packages of pins.txt (a few minutes).")
    what = "the packages of pins.txt"
    pip(what, extra, "--timeout=60", "-c", "pins.txt", "-e", f".[{extra}]")
    verify()
    STAMP.write_text(digest(extra), encoding="utf-8")
    say("installed; torch is the CPU build, and no CUDA package came with it.")


def ensure(extra: str) -> None:
    """Make .venv hold all that the extra needs; at once where it already does."""
    if installed(extra):
        return
    reused = works()
    if not reused:
        if shutil.disk_usage(ROOT).free < ROOM[extra] * 1e9:
            raise CourseError(disk_sentence(extra))
        make()
    elif not STAMP.exists():
        say("an earlier install did not finish; going on with it.")
    try:
        install(extra)
    except BrokenEnvironment as error:
        if not reused or inside():
            raise
        say(f"{error} Starting afresh.")
        make()
        install(extra)
