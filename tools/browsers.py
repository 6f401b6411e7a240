"""Find a browser of the Chromium family, for the pictures and the browser tests.

The standard library alone: `course.py` asks before anything is installed.
"""

import os
import re
import shutil
from pathlib import Path

# By name on the PATH: Debian, Fedora, Arch, macOS through Homebrew, Windows.
NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "msedge",
)
# Where installers put it, for machines that do not have it on the PATH.
PLACES = (
    "/usr/bin/chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    "C:/Program Files/Google/Chrome/Application/chrome.exe",
    "C:/Program Files (x86)/Google/Chrome/Application/chrome.exe",
    "C:/Program Files (x86)/Microsoft/Edge/Application/msedge.exe",
)
# What `playwright install chromium` fetches: folder of the cache, program in it.
CACHES = (
    (".cache/ms-playwright", "chrome-linux*/chrome"),
    ("Library/Caches/ms-playwright", "chrome-mac*/*.app/Contents/MacOS/*"),
    ("AppData/Local/ms-playwright", "chrome-win*/chrome.exe"),
)


def find_browser() -> str | None:
    """The path of a browser; $ATTNLIB_BROWSER, if set, is the only one looked at."""
    named = os.environ.get("ATTNLIB_BROWSER")
    if named is not None:
        return named if Path(named).is_file() else None
    for name in NAMES:
        if found := shutil.which(name):
            return found
    for place in PLACES:
        if Path(place).is_file():
            return place
    return _fetched()


def _fetched() -> str | None:
    """The newest Chromium that Playwright has fetched."""
    caches = [(Path.home() / folder, program) for folder, program in CACHES]
    if named := os.environ.get("PLAYWRIGHT_BROWSERS_PATH"):
        caches = [(Path(named), program) for _, program in CACHES]
    found = [
        path
        for cache, program in caches
        for path in cache.glob(f"chromium-*/{program}")
        if path.is_file()
    ]
    return str(max(found, key=_build)) if found else None


def _build(path: Path) -> int:
    return max(map(int, re.findall(r"chromium-(\d+)", str(path))), default=0)
