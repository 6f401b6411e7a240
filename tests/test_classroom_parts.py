"""The classroom without a hub: what is asked, said, written and counted."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from traitlets.config import Config

from tools import address
from tools.classroom import needs, place, running, start
from tools.classroom.place import Place
from tools.environment import CourseError

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tools" / "classroom"
VERSIONS = {"node": "v20.20.2", "npm": "10.8.2", "git": "git version 2.39.5"}


# --- what is missing -----------------------------------------------------------------


def test_a_machine_with_all_of_it_lacks_nothing() -> None:
    assert needs.missing(VERSIONS.get, "linux") is None
    assert needs.missing({**VERSIONS, "node": "v24.1.0"}.get, "darwin") is None


@pytest.mark.parametrize(
    ("changed", "said", "ways"),
    [
        ({"npm": None}, "needs npm: ", 1),
        ({"git": None}, "needs git: ", 1),
        ({"node": None, "npm": None}, "needs Node.js 20 or newer and npm: ", 1),
        ({"node": "v18.19.0"}, "needs Node.js 20 or newer (this one is v18.19.0): ", 1),
        ({"node": "what?"}, "needs Node.js 20 or newer: ", 1),
        ({"npm": None, "git": None}, "needs npm and git: ", 2),
    ],
)
def test_what_is_missing_is_one_sentence_with_a_way_to_get_it(
    changed: dict[str, str | None], said: str, ways: int
) -> None:
    sentence = needs.missing({**VERSIONS, **changed}.get, "linux")
    assert sentence is not None
    assert f"the classroom {said}" in sentence
    assert sentence.count("sudo apt install") == ways
    assert sentence.endswith(".")
    assert "\n" not in sentence


def test_windows_gets_a_sentence() -> None:
    assert "WSL 2" in (needs.missing(VERSIONS.get, "win32") or "")


def test_a_program_is_asked_for_its_version(tmp_path: Path) -> None:
    assert "Python" in (needs.version(sys.executable) or "")
    assert needs.version("no-such-program-here") is None
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    assert needs.version(str(broken)) is None


def test_nothing_is_installed_where_something_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(needs, "missing", lambda: "the classroom needs npm: get it.")
    monkeypatch.setattr(start, "prepare", lambda where: pytest.fail("installed"))
    with pytest.raises(CourseError, match="needs npm"):
        start.main([])


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        (["--students", "0"], "--students wants a number from 1 to 100, and got 0"),
        (["--students", "101"], "from 1 to 100, and got 101"),
        (["--port", "70000"], "--port wants a number up to 65535, and got 70000"),
        (["--password", "short"], "--password wants 8 characters or more"),
        (["--rehearse", "42"], "there is no lesson 42"),
    ],
)
def test_a_wish_that_cannot_be_is_one_sentence(wish: list[str], said: str) -> None:
    with pytest.raises(CourseError, match=re.escape(said)):
        start.options(wish)


# --- pins ----------------------------------------------------------------------------


def test_every_package_of_the_hub_is_pinned() -> None:
    lines = (FOLDER / "requirements.txt").read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert {"jupyterhub==6.1.1", "nbgitpuller==1.3.0"} <= set(pins)
    assert all(re.fullmatch(r"[a-z0-9-]+==[\w.]+", pin) for pin in pins)
    ours = set(re.findall(r"^(\S+)==", (ROOT / "pins.txt").read_text(), re.M))
    assert not ours & {pin.partition("==")[0] for pin in pins}  # one place for each


def test_the_proxy_is_locked_and_names_no_host() -> None:
    wish = json.loads((FOLDER / "package.json").read_text())["dependencies"]
    text = (FOLDER / "package-lock.json").read_text()
    locked = json.loads(text)["packages"]
    assert wish == {"configurable-http-proxy": "5.3.0"}
    assert locked["node_modules/configurable-http-proxy"]["version"] == "5.3.0"
    assert all("integrity" in one for name, one in locked.items() if name)
    assert "resolved" not in text


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("npm error code ENOTFOUND", "a thing could not be downloaded, because"),
        (
            "ERROR: ... NewConnectionError(...)\nERROR: No matching distribution",
            "a thing could not be downloaded, because",
        ),
        ("OSError: [Errno 28] No space left on device", "there is not enough disk"),
        ("one\nERROR: two\nthree", "a thing failed: ERROR: two"),
        ("one\nthree", "a thing failed: three"),
        ("", "a thing failed: it gave no message"),
    ],
)
def test_an_install_that_fails_is_one_sentence(output: str, said: str) -> None:
    code = f"print({output!r}); raise SystemExit(1)"
    with pytest.raises(CourseError, match=re.escape(said)) as caught:
        place.run("a thing", [sys.executable, "-c", code])
    assert "\n" not in str(caught.value)


def test_what_was_installed_of_the_same_pins_is_kept(tmp_path: Path) -> None:
    made, pins = [], tmp_path / "pins.txt"

    def make(folder: Path) -> None:
        folder.mkdir()
        made.append(folder)
        if len(made) == 2:
            raise CourseError("cut off")

    def once() -> int:
        place._once(tmp_path / "venv", [pins], make)
        return len(made)

    pins.write_text("a==1")
    assert [once(), once()] == [1, 1]
    pins.write_text("a==2")
    with pytest.raises(CourseError, match="cut off"):
        once()
    assert [once(), once()] == [3, 3]  # what was cut off is made again, whole


# --- the link, the settings ----------------------------------------------------------


def test_the_link_pulls_the_repository_into_its_folder_and_opens_a_lesson() -> None:
    where = Place(Path("/some where"))
    link = start.link(where, "http://127.0.0.1:8000", "notebooks/03_masks.ipynb")
    parts = urlsplit(link)
    assert parts.path == "/hub/user-redirect/git-pull"
    assert parse_qs(parts.query) == {
        "repo": ["file:///some%20where/course.git"],
        "branch": ["main"],
        "urlpath": ["lab/tree/attention-by-hand/notebooks/03_masks.ipynb"],
        "targetpath": ["attention-by-hand"],
    }


def test_the_link_is_built_as_the_one_of_the_pages() -> None:
    shown = address.classroom("https://example.org/a/course.git").splitlines()[1]
    assert shown == address.pull_link(
        "https://YOUR-HUB", "https://example.org/a/course.git"
    )
    assert parse_qs(urlsplit(shown).query)["urlpath"] == [
        f"lab/tree/course/{address.START}"
    ]


class Spawner:
    class user:
        name = "alice"


def told_to_jupyterhub(name: str) -> Config:
    """What one of our files for JupyterHub says."""
    text = (FOLDER / name).read_text(encoding="utf-8")
    config = Config()
    exec(compile(text, name, "exec"), {"get_config": lambda: config})
    return config


def test_a_trial_stays_on_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wish = running.settings(Place(tmp_path), ["student1"], 8123, "secret words")
    (tmp_path / "told.json").write_text(json.dumps(wish))
    monkeypatch.setenv("ATTNLIB_CLASSROOM", str(tmp_path / "told.json"))
    c = told_to_jupyterhub("trial_config.py")
    urls = (c.JupyterHub.bind_url, c.JupyterHub.hub_bind_url)
    urls += (c.ConfigurableHTTPProxy.api_url,)
    assert {urlsplit(url).hostname for url in urls} == {"127.0.0.1"}
    ports = [urlsplit(url).port for url in urls]
    assert ports[0] == 8123
    assert len(set(ports)) == 3
    assert c.Authenticator.allowed_users == {"student1"}
    assert c.SharedPasswordAuthenticator.user_password == "secret words"
    box = c.Spawner.environment["ATTNLIB_BOX"](Spawner)
    assert box == str(Place(tmp_path).box("alice"))
    for command in (c.ConfigurableHTTPProxy.command, c.Spawner.cmd):
        assert command[1].endswith("follow.py")


def test_the_schools_file_lets_in_a_group_and_gives_each_a_box() -> None:
    c = told_to_jupyterhub("school_config.py")
    assert c.PAMAuthenticator.allowed_groups == {"students"}
    assert urlsplit(c.JupyterHub.bind_url).hostname == "127.0.0.1"
    # Over TCP one account hears what the kernels of the others print.
    assert "--KernelManager.transport=ipc" in c.Spawner.args
    box = c.Spawner.environment["ATTNLIB_BOX"](Spawner)
    assert box == "/srv/class/handed_in/alice"
    guide = (ROOT / "TEACHING.md").read_text(encoding="utf-8")
    assert "tools/classroom/school_config.py" in guide
    assert "/srv/class/handed_in" in guide


def test_what_the_hub_is_told_is_for_us_alone(tmp_path: Path) -> None:
    where = Place(tmp_path)
    place.settle(where, ["student1", "student2"])
    (where.hub / "old").touch()
    place.settle(where, ["student1"])
    assert list(where.hub.iterdir()) == []
    assert where.hub.stat().st_mode & 0o777 == 0o700
    assert where.home("student2").is_dir()
    assert where.box("student2").is_dir()


def test_one_folder_one_classroom(tmp_path: Path) -> None:
    where, said = Place(tmp_path), "a classroom of this folder is running"
    with (
        running.only_one(where),
        pytest.raises(CourseError, match=said),
        running.only_one(where),
    ):
        pass
    with running.only_one(where):
        pass


def test_students_pull_what_is_committed(tmp_path: Path) -> None:
    where = Place(tmp_path)
    for _ in range(2):
        place._course(where)
    head = ["git", "rev-parse", "HEAD"]
    ours = subprocess.check_output(head, cwd=ROOT, text=True)
    main = ["git", "rev-parse", "main"]
    assert subprocess.check_output(main, cwd=where.course, text=True) == ours


def test_the_student_of_the_rehearsal_can_be_imported_without_a_hub() -> None:
    for name in ("student", "rehearse"):
        importlib.import_module(f"tools.classroom.{name}")
