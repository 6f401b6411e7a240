"""One search for a browser, on the three systems; nothing here starts one."""

from pathlib import Path

import browsers
import pictures
import pytest

from tools import commands


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine with nothing on it."""
    monkeypatch.delenv("ATTNLIB_BROWSER", raising=False)
    monkeypatch.delenv("PLAYWRIGHT_BROWSERS_PATH", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(browsers, "PLACES", ())
    monkeypatch.setattr(browsers.Path, "home", lambda: tmp_path)
    return tmp_path


def program(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    path.chmod(0o755)
    return str(path)


def test_nothing_is_found_on_an_empty_machine(home: Path) -> None:
    assert browsers.find_browser() is None
    (home / ".cache/ms-playwright/chromium-1200/chrome-linux").mkdir(parents=True)
    assert browsers.find_browser() is None  # a download that was cut off


def test_the_variable_is_the_only_one_looked_at(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(home / "bin/chromium")
    monkeypatch.setenv("ATTNLIB_BROWSER", str(home / "mine"))
    assert browsers.find_browser() is None
    mine = program(home / "mine")
    assert browsers.find_browser() == mine


def test_the_path_goes_before_known_places_and_caches(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched = program(home / ".cache/ms-playwright/chromium-1/chrome-linux/chrome")
    assert browsers.find_browser() == fetched
    installed = program(home / "Program Files/chrome.exe")
    monkeypatch.setattr(browsers, "PLACES", (installed,))
    assert browsers.find_browser() == installed
    named = program(home / "bin/google-chrome")
    assert browsers.find_browser() == named


@pytest.mark.parametrize(
    "inside",
    [
        ".cache/ms-playwright/chromium-{}/chrome-linux64/chrome",
        "Library/Caches/ms-playwright/chromium-{}/chrome-mac/Chromium.app/"
        "Contents/MacOS/Chromium",
        "AppData/Local/ms-playwright/chromium-{}/chrome-win/chrome.exe",
    ],
)
def test_of_fetched_ones_the_newest(home: Path, inside: str) -> None:
    program(home / inside.format(999))
    newest = program(home / inside.format(1200))
    program(home / inside.format(1100))
    assert browsers.find_browser() == newest


def test_playwrights_own_variable_moves_its_folder(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(home / ".cache/ms-playwright/chromium-1/chrome-linux/chrome")
    other = program(home / "elsewhere/chromium-1/chrome-linux/chrome")
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(home / "elsewhere"))
    assert browsers.find_browser() == other


def test_everyone_asks_the_same_search() -> None:
    where = {f.__code__.co_filename for f in (commands.find_browser,
             pictures.find_browser, browsers.find_browser)}  # fmt: skip
    assert where == {browsers.__file__}
