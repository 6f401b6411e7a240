"""What a machine needs before it can hold a classroom, and how to get it.

Standard library alone, and nothing is changed: programs are looked for and asked for
their version.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable

OLDEST_NODE = 20  # what configurable-http-proxy 5 asks for
GET_NODE = (
    "Debian 13 and Ubuntu 26.04: `sudo apt install nodejs npm`; macOS: `brew install "
    "node`; conda: `conda install -c conda-forge nodejs`"
)
GET_GIT = "Debian and Ubuntu: `sudo apt install git`; macOS: `xcode-select --install`"

Ask = Callable[[str], str | None]


def version(program: str) -> str | None:
    """What a program says when it is asked for its version; None if it is not there."""
    found = shutil.which(program)
    if found is None:
        return None
    command = [found, "--version"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def missing(ask: Ask = version, system: str = sys.platform) -> str | None:
    """One sentence: what is missing, and how to get it. None if nothing is.

    Args:
        ask: a program's name -> what it says of its version, or None.
        system: the machine's, as `sys.platform` names it.
    """
    if system.startswith("win"):
        return (
            "JupyterHub does not run on Windows: start the classroom on Linux, on "
            "macOS, or in WSL 2."
        )
    faults: dict[str, str] = {}
    number = re.match(r"v?(\d+)[.\d]*", ask("node") or "")
    if number is None or int(number[1]) < OLDEST_NODE:
        here = f" (this one is {number[0]})" if number else ""
        faults[f"Node.js {OLDEST_NODE} or newer{here}"] = GET_NODE
    if ask("npm") is None:
        faults["npm"] = GET_NODE
    if ask("git") is None:
        faults["git"] = GET_GIT
    if not faults:
        return None
    ways = dict.fromkeys(faults.values())  # each once
    return f"the classroom needs {' and '.join(faults)}: {'; '.join(ways)}."
