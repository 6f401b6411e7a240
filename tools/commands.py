"""What `python course.py COMMAND` does; the standard library alone, like course.py."""

import difflib
import errno
import hashlib
import os
import shutil
import socket
import subprocess
import sys
from itertools import zip_longest

from tools import models
from tools.browsers import find_browser
from tools.environment import (
    ROOT,
    VENV,
    CourseError,
    disk_sentence,
    ensure,
    python,
    say,
    variables,
)

START = "notebooks/00_start_here.ipynb"
LAB_HELP = """python course.py lab [options]

Opens the lessons in JupyterLab, which gets the options. The useful ones:
    --no-browser     print the address only
    --port 8890      another port than 8888
    --ip 0.0.0.0     for other machines to reach it
All of them: `.venv/bin/jupyter lab --help`, once .venv is there."""
THREADS = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB_MAXIMUM")


def call(*command: str, **changes: str) -> int:
    """Run the Python of .venv in the root of the course; its exit code."""
    return subprocess.call([python(), *command], cwd=ROOT, env=variables(**changes))


def become(*command: str) -> int:
    """Turn into the Python of .venv, so that a signal to us reaches JupyterLab."""
    if os.name == "nt":  # there exec would give the prompt back at once
        return call(*command)
    os.chdir(ROOT)
    sys.stdout.flush()
    os.execve(python(), [python(), *command], variables())


def trust() -> None:
    """Sign the notebooks, so that their stored figures answer at once."""
    notebooks = sorted((ROOT / "notebooks").glob("*.ipynb"))
    fresh = hashlib.sha256(b"".join(n.read_bytes() for n in notebooks)).hexdigest()
    mark = VENV / "course-trusted"
    if not notebooks or (mark.exists() and mark.read_text() == fresh):
        return
    if not call("-m", "jupyter", "trust", *map(str, notebooks)):
        mark.write_text(fresh)


def look_at_port(arguments: list[str]) -> None:
    """Say beforehand that a port is taken, or raise if it cannot be had."""
    port = "8888"
    for option, following in zip_longest(arguments, arguments[1:], fillvalue=""):
        name, equals, value = option.partition("=")
        if name in ("--port", "--ServerApp.port"):
            port = value if equals else following
    if not port.isdecimal() or int(port) > 65535:
        raise CourseError(f"--port wants a number up to 65535, and got {port!r}.")
    with socket.socket() as probe:
        if os.name != "nt":  # a port that a server just left is free to the next one
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", int(port)))
        except OSError as error:
            if error.errno == errno.EACCES:
                raise CourseError(
                    f"this account may not open port {port}: choose another one, for "
                    "example `python course.py lab --port 8890`."
                ) from error
            say(f"port {port} is taken, so JupyterLab will use the next free one.")


def lab(arguments: list[str]) -> int:
    if {"-h", "--help"} & set(arguments):  # says it without an install of minutes
        print(LAB_HELP)
        return 0
    look_at_port(arguments)
    ensure("notebooks")
    settings = VENV / "share/jupyter/lab/settings"
    settings.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "tools/lab_overrides.json", settings / "overrides.json")
    trust()
    say("starting JupyterLab; Ctrl-C, twice, stops it.")
    # The root is the course, not notebooks/, so that links to the glossary work.
    where = [f"--ServerApp.root_dir={ROOT}", f"--LabApp.default_url=/lab/tree/{START}"]
    if os.name != "nt" and os.geteuid() == 0:  # in a container; else JupyterLab stops
        say("you are root, so JupyterLab is started with --allow-root.")
        where.append("--allow-root")
    return become("-m", "jupyterlab", *where, *arguments)


def test(arguments: list[str]) -> int:
    ensure("dev")
    try:
        models.fetch()
    except CourseError as error:
        say(f"WITHOUT REAL MODELS, so what needs them is skipped: {error}")
    if not find_browser():
        say(
            "NO BROWSER FOUND, so the browser tests will be skipped; this brings one: "
            f"{python()} -m playwright install chromium"
        )
    # More workers than two cores, as some wait for a browser or a kernel; more threads
    # inside each would only get in the way.
    threads = {f"{name}_NUM_THREADS": "1" for name in THREADS}
    # Nothing is printed after this: the last lines are pytest's.
    return call("-m", "pytest", "-n", "3", "--dist", "loadfile", *arguments, **threads)


def notebooks(arguments: list[str]) -> int:
    ensure("dev")
    return call("tools/build_notebooks.py", *arguments)


def check(arguments: list[str]) -> int:
    ensure("dev")
    failed = []
    for line in ("ruff check .", "ruff format --check .", "mypy"):
        say(line)
        if call("-m", *line.split(), *arguments):
            failed.append(line)
    if failed:
        say(f"failed: {', '.join(failed)}.")
    return bool(failed)


def bench(arguments: list[str]) -> int:
    files = sorted((ROOT / "benchmarks").glob("*.py"))  # some help the others measure
    known = {path.stem: path for path in files if "\ndef main(" in path.read_text()}
    dashes = [i for i, word in enumerate(arguments) if word.startswith("-")]
    first = min(dashes, default=len(arguments))  # what follows may be its value
    names, options = arguments[:first], arguments[first:]
    if {"-h", "--help"} & set(options) and not names:
        print("python course.py bench [NAME ...] [options of that benchmark]")
        print(f"Benchmarks: {', '.join(known)}; all of them if none is named.")
        return 0
    for name in names:
        if name not in known:
            raise CourseError(
                f"there is no benchmark {name!r}; there are: {', '.join(known)}."
            )
    ensure("dev")
    # Some machines set these for old OpenBLAS builds; they slow down the one we time.
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        os.environ.pop(name, None)
    failed = 0
    for name in names or known:
        say(f"benchmarks/{name}.py")
        failed += bool(call(str(known[name]), *options))
    return bool(failed)


def classroom(arguments: list[str]) -> int:
    from tools.classroom import start  # what it imports is not all on Windows

    return start.main(arguments)


COMMANDS = {
    "lab": lab,
    "models": models.models,
    "test": test,
    "notebooks": notebooks,
    "check": check,
    "bench": bench,
    "classroom": classroom,
}


def run(arguments: list[str], usage: str) -> int:
    """Run one command; what stops it is raised."""
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(usage.strip())
        return 0 if arguments else 2
    name, *rest = arguments
    if name not in COMMANDS:
        close = difflib.get_close_matches(name, COMMANDS, n=1)
        meant = f" (did you mean {close[0]}?)" if close else ""
        raise CourseError(
            f"there is no command {name!r}{meant}; the commands are "
            f"{', '.join(COMMANDS)}."
        )
    return COMMANDS[name](rest)


def main(arguments: list[str], usage: str) -> int:
    """Run one command; what stops it becomes one sentence and an exit code."""
    try:
        return run(arguments, usage)
    except CourseError as error:
        sentence, code = str(error), 2
    except KeyboardInterrupt:
        sentence, code = "stopped; the same command goes on from here.", 130
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        sentence, code = disk_sentence(), 2
    print(f"course.py: {sentence}", file=sys.stderr, flush=True)
    return code
