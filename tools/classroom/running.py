"""The hub as a process: started, waited for, and ended with all that it started.

Standard library alone. The process that starts it is the parent of all.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from tools import environment
from tools.classroom import family
from tools.classroom.place import Place
from tools.environment import CourseError

HERE = Path(__file__).resolve().parent
PATIENCE = 180  # seconds until the hub answers, on a slow and busy machine


def free_port(wanted: int = 0) -> int:
    """The wanted port of this machine if it is free, else another one."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError:
            probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def settings(
    place: Place, students: list[str], port: int, password: str
) -> dict[str, object]:
    """What trial_config.py reads."""
    follow = [str(place.python), str(HERE / "follow.py")]
    return {
        "root": str(place.root),
        "students": students,
        "password": password,
        "port": port,
        "hub_port": free_port(),
        "proxy_port": free_port(),
        "proxy": [*follow, "node", str(place.proxy)],
        "server": [*follow, str(place.python), "-m", "jupyterhub.singleuser"],
        "share": str(environment.VENV / "share" / "jupyter"),
        "etc": str(environment.VENV / "etc" / "jupyter"),
    }


@contextlib.contextmanager
def only_one(place: Place) -> Iterator[None]:
    """A folder serves one classroom at a time."""
    import fcntl  # not on Windows, where this is not reached

    place.root.mkdir(parents=True, exist_ok=True)
    with (place.root / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise CourseError(
                "a classroom of this folder is running: end that one first (Ctrl-C "
                "where it was started)."
            ) from error
        yield


@contextlib.contextmanager
def hub(place: Place, told: dict[str, object]) -> Iterator[subprocess.Popen[bytes]]:
    """A running hub; whatever it started has ended afterwards."""
    wish = place.hub / "settings.json"
    wish.touch(mode=0o600)
    wish.write_text(json.dumps(told), encoding="utf-8")
    paths = [place.python.parent, environment.VENV / "bin", os.environ.get("PATH", "")]
    variables = environment.variables(
        ATTNLIB_CLASSROOM=str(wish), PATH=os.pathsep.join(map(str, paths))
    )
    command = [str(place.python), str(HERE / "follow.py"), str(place.python)]
    command += ["-m", "jupyterhub", "-f", str(HERE / "trial_config.py")]
    family.adopt()
    with (place.hub / "hub.log").open("wb") as log:
        # In a group of its own, so that a Ctrl-C comes to us alone.
        process = subprocess.Popen(
            command,
            cwd=place.hub,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            try:
                process.terminate()  # the hub then ends its servers and the proxy
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(60)
            finally:
                family.end(os.getpid())


def wait_until_up(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    """Wait until the hub answers through its proxy."""
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError, urllib.error.URLError):
            urllib.request.urlopen(f"{url}/hub/api/", timeout=5).close()
            return
        time.sleep(0.2)
    end = log.read_text(errors="replace").strip().splitlines()[-3:]
    raise CourseError(f"the hub did not start; {log} ends with: {' / '.join(end)}")


class Stopped(Exception):
    """Someone asked us to end."""


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """SIGTERM and a closed terminal end a block as Ctrl-C does, and only once.

    What cleans up is not interrupted by a second one.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        for one in kinds:
            signal.signal(one, signal.SIG_IGN)
        raise Stopped

    kinds = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {kind: signal.signal(kind, stop) for kind in kinds}
    try:
        yield
    except Stopped:
        pass
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)
