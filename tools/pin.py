"""Write pins.txt: the exact version of every package that `.[dev]` needs.

    .venv/bin/python tools/pin.py           write pins.txt from this environment
    .venv/bin/python tools/pin.py --check   say what is missing or differs

The list is the closure of `attnlib[dev]` over Linux, macOS and Windows and every
Python the course supports, with the versions installed here. Packages that only
another platform needs cannot be installed here, so ELSEWHERE names their versions.
pip reads the file as constraints (`pip install -c pins.txt`): a line costs nothing
where its package is not wanted.
"""

import re
import sys
import tomllib
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PINS = ROOT / "pins.txt"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PLATFORMS = (
    ("linux", "Linux", "posix"),
    ("darwin", "Darwin", "posix"),
    ("win32", "Windows", "nt"),
)
ELSEWHERE = {"appnope": "0.1.4", "colorama": "0.4.6", "pywinpty": "3.0.3"}
HEAD = """\
# Exact versions of everything the course installs, on every platform: pip
# constraints, read by course.py. Written by tools/pin.py; do not edit by hand.
# torch comes without its +cpu here; course.py asks for the CPU build by name.
"""


def environments():
    """The marker environment of every platform and Python that we support."""
    for sys_platform, platform_system, os_name in PLATFORMS:
        for python in PYTHONS:
            yield {
                "sys_platform": sys_platform,
                "platform_system": platform_system,
                "os_name": os_name,
                "python_version": python,
                "python_full_version": python + ".1",
                "implementation_name": "cpython",
                "implementation_version": python + ".1",
                "platform_python_implementation": "CPython",
                "platform_machine": "x86_64",
            }


def declared(extra: str) -> list[str]:
    """What pyproject.toml asks for, with the extra's name or with ""."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    if not extra:
        return project["dependencies"]
    return project["optional-dependencies"][extra]


@cache
def requirements(package: str, extra: str) -> list[Requirement]:
    """What a package asks for; nothing, if it belongs to another platform."""
    if package == "attnlib":
        return list(map(Requirement, declared(extra)))
    try:
        return list(map(Requirement, distribution(package).requires or []))
    except PackageNotFoundError:
        return []  # ELSEWHERE has its version


def closure() -> dict[str, str]:
    """Every package that `.[dev]` needs anywhere -> the marker that brings it."""
    found: dict[str, str] = {}
    for environment in environments():
        seen: set[tuple[str, str]] = set()
        queue = [("attnlib", ""), ("attnlib", "dev")]
        while queue:
            here = queue.pop()
            if here in seen:
                continue
            seen.add(here)
            for needed in requirements(*here):
                marker = needed.marker
                if marker and not marker.evaluate({**environment, "extra": here[1]}):
                    continue
                package = canonicalize_name(needed.name)
                found.setdefault(package, str(marker or ""))
                queue += [(package, extra) for extra in ("", *needed.extras)]
    del found["attnlib"]  # dev asks for attnlib[notebooks]
    return found


def pins() -> str:
    """The text of pins.txt."""
    lines = []
    for package, marker in sorted(closure().items()):
        try:
            version = distribution(package).version.partition("+")[0]
            lines.append(f"{package}=={version}")
        except PackageNotFoundError:
            if package not in ELSEWHERE:
                sys.exit(f"{package} is not installed here: give it in ELSEWHERE.")
            lines.append(f"{package}=={ELSEWHERE[package]} ; {marker}")
    return HEAD + "\n".join(lines) + "\n"


def read(text: str) -> dict[str, str]:
    """Package -> version, from the text of a pins file."""
    return dict(re.findall(r"^([a-z0-9.-]+)==([^\s;]+)", text, re.MULTILINE))


def differences(text: str) -> list[str]:
    """One sentence for each pin that is missing, too many, or another version."""
    stored, fresh = read(text), read(pins())
    return [
        f"{package}: pins.txt has {stored.get(package)}, here is {fresh.get(package)}."
        for package in sorted(stored.keys() | fresh.keys())
        if stored.get(package) != fresh.get(package)
    ]


def main(arguments: list[str]) -> int:
    """Write the file, or compare it with this environment."""
    if arguments == ["--check"]:
        wrong = differences(PINS.read_text(encoding="utf-8"))
        print("\n".join(wrong) or "pins.txt fits this environment.")
        return bool(wrong)
    PINS.write_text(pins(), encoding="utf-8", newline="\n")
    print(f"pins.txt: {len(read(pins()))} packages.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
