"""The folder of the classroom: what is in it, and how it comes there.

Standard library alone. Everything stands in build/classroom, which can be deleted:

    venv/        JupyterHub and nbgitpuller, on top of the course's .venv
    proxy/       configurable-http-proxy, from npm
    course.git   the course as it is committed here: what students pull
    homes/       a home for each student
    handed_in/   a box for each student: what `attnlib grade` reads
    hub/         what the running hub needs, and its log

The last four stand in another folder if one is named.
"""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tools import environment
from tools.environment import ROOT, CourseError, last_line, say

HERE = Path(__file__).resolve().parent
TOOLS = ROOT / "build" / "classroom"
PACKAGES = HERE / "requirements.txt"
PROXY_FILES = ("package.json", "package-lock.json")
FOLDER = "attention-by-hand"  # what the course is called in a student's home
# A .pth file runs lines that begin with import. Unlike a plain path in it, addsitedir
# reads the .pth files there, too, and so finds attnlib, which is installed editable.
ON_TOP = "import site; site.addsitedir({!r})\n"
NO_ANSWER = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT")


@dataclass(frozen=True)
class Place:
    """Where things are."""

    root: Path = TOOLS
    tools: Path = TOOLS

    @property
    def python(self) -> Path:
        return self.tools / "venv" / "bin" / "python"

    @property
    def proxy(self) -> Path:
        modules = self.tools / "proxy" / "node_modules"
        return modules / "configurable-http-proxy" / "bin" / "configurable-http-proxy"

    @property
    def course(self) -> Path:
        return self.root / "course.git"

    @property
    def hub(self) -> Path:
        return self.root / "hub"

    def home(self, student: str) -> Path:
        return self.root / "homes" / student

    def box(self, student: str) -> Path:
        return self.root / "handed_in" / student


def run(what: str, command: list[str], cwd: Path = ROOT) -> str:
    """Run a program that installs or copies; its failure becomes one sentence."""
    done = subprocess.run(
        command,
        cwd=cwd,
        capture_output=True,
        text=True,
        errors="replace",
        env=environment.variables(),
        check=False,
    )
    if done.returncode == 0:
        return done.stdout
    output = done.stdout + done.stderr
    if environment.no_space(output):
        raise CourseError(environment.disk_sentence())
    if any(sign in output for sign in (*environment.OFFLINE, *NO_ANSWER)):
        raise CourseError(
            f"{what} could not be downloaded, because the package index did not "
            "answer: check the network (or the proxy) and run the same command again."
        )
    errors = [line for line in output.splitlines() if "err" in line.lower()[:10]]
    raise CourseError(f"{what} failed: {last_line(chr(10).join(errors) or output)}")


def prepare(place: Place) -> None:
    """Install what is not there yet, and bring the students' repository up to date."""
    import fcntl  # not on Windows, where this is not reached

    place.tools.mkdir(parents=True, exist_ok=True)
    with (place.tools / "installing").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another classroom may install at this time
        _once(place.tools / "venv", [PACKAGES, ROOT / "pins.txt"], _venv)
        _once(place.tools / "proxy", [HERE / name for name in PROXY_FILES], _proxy)
    _course(place)


def _once(folder: Path, made_of: list[Path], make: Callable[[Path], None]) -> None:
    """Make a folder unless it was made, whole, of the same files."""
    text = b"".join(path.read_bytes() for path in made_of) + str(folder).encode()
    seal, digest = folder / "made-of", hashlib.sha256(text).hexdigest()
    if seal.exists() and seal.read_text() == digest:
        return
    if folder.exists():
        shutil.rmtree(folder)
    make(folder)
    seal.write_text(digest)


def _venv(folder: Path) -> None:
    """JupyterHub and nbgitpuller in an environment that sees the course's packages."""
    say("installing JupyterHub and nbgitpuller (a minute; 145 MB).")
    course = environment.python()
    run("the environment", [course, "-m", "venv", "--without-pip", str(folder)])
    (own,) = folder.glob("lib/python*/site-packages")
    (theirs,) = environment.VENV.glob("lib/python*/site-packages")
    (own / "course.pth").write_text(ON_TOP.format(str(theirs)))
    into = ["--python", str(folder / "bin" / "python"), "install"]
    pinned = ["-c", "pins.txt", "-r", str(PACKAGES)]
    run("JupyterHub", [course, "-m", "pip", *into, "--progress-bar=off", *pinned])
    _lab(folder / "share" / "jupyter" / "lab")


def _lab(folder: Path) -> None:
    """JupyterLab's files where that environment looks for them, and our settings."""
    (folder / "settings").mkdir(parents=True)
    for part in (environment.VENV / "share" / "jupyter" / "lab").iterdir():
        if part.name != "settings":
            (folder / part.name).symlink_to(part)
    overrides = ROOT / "tools" / "lab_overrides.json"
    shutil.copy(overrides, folder / "settings" / "overrides.json")


def _proxy(folder: Path) -> None:
    """The proxy that stands before the hub: exactly what the lock file says."""
    say("installing configurable-http-proxy from npm (10 MB).")
    folder.mkdir()
    for name in PROXY_FILES:
        shutil.copy(HERE / name, folder)
    quiet = ["--no-audit", "--no-fund", "--no-update-notifier", "--ignore-scripts"]
    cache = ["--cache", str(folder / "cache")]  # not the one in the user's home
    run("configurable-http-proxy", ["npm", "ci", *quiet, *cache], folder)
    shutil.rmtree(folder / "cache", ignore_errors=True)


def _course(place: Place) -> None:
    """A bare copy of this checkout: its branch main is what is checked out here."""
    if not (ROOT / ".git").exists():
        raise CourseError(
            "this folder of the course is no git repository, and students pull from "
            "one: get it with `git clone` instead of as an archive."
        )
    what, there = "the students' repository", str(place.course)
    run(what, ["git", "init", "--quiet", "--bare", "-b", "main", there])
    # A checkout without its history (`git clone --depth 1`) will do, too.
    run(what, ["git", "-C", there, "config", "receive.shallowUpdate", "true"])
    push = ["git", "push", "--quiet", "--no-verify", "--force", there, "HEAD:main"]
    run(what, push)


def settle(place: Place, students: list[str]) -> None:
    """A home and a box for each student, and an empty folder for the hub."""
    for student in students:
        place.home(student).mkdir(parents=True, exist_ok=True)
        place.box(student).mkdir(parents=True, exist_ok=True)
    shutil.rmtree(place.hub, ignore_errors=True)
    place.hub.mkdir(mode=0o700)
    os.chmod(place.hub, 0o700)
