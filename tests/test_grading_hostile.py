"""Code that attacks: what the grader is told, and that nobody else notices.

Every case runs in every sandbox that is there. After each one the next exercise of the
same student is answered, and of all that was started nothing is left. The attacks are
those of tests/grading_corpus; what grades they get, test_grading_corpus asks.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from grading_places import KINDS, SMALL, call, marked, outcome, place, session, works
from hostile_class import source

from attnlib.grading.sandbox.limits import Limits

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the sandboxes are those of Linux"
)
MB = 1 << 20


@dataclass(frozen=True)
class Case:
    """The beginnings of what may be told of an attack, and its limits."""

    told: tuple[str, ...]
    seconds: float = 5.0
    limits: Limits = SMALL


REFUSED = Case(("raised PermissionError",))
TIMEOUT = Case(("lost timeout",), 0.4)
CASES = {
    "infinite_loop": TIMEOUT,
    "swallows_every_exception": TIMEOUT,
    "loop_in_c": Case(("lost timeout", "raised MemoryError"), 0.4),
    "sleeps": Case(("lost timeout",), 0.3),
    "stops_itself": Case(("lost timeout",), 0.3),
    "many_busy_processes": TIMEOUT,
    "busy_threads": TIMEOUT,
    "sys_exit": Case(("lost ended",)),
    "os_exit": Case(("lost ended exit status 0",)),
    "kills_itself": Case(("lost killed SIGKILL",)),
    "aborts": Case(("lost killed SIGABRT",)),
    "segfault": Case(("lost killed SIGSEGV",)),
    "kills_everybody": REFUSED,
    "kills_its_group": REFUSED,
    "kills_the_supervisor": REFUSED,
    "kills_a_thread_by_number": REFUSED,
    "limits_the_supervisor": REFUSED,
    "traces_the_supervisor": REFUSED,
    "reads_the_supervisors_memory": Case((*REFUSED.told, "raised FileNotFoundError")),
    "new_namespaces": REFUSED,
    "memory_hog": Case(("raised MemoryError", "lost memory")),
    "memory_of_many_processes": Case(("lost memory",), 20),
    "fork_bomb": Case(
        ("raised BlockingIOError", "lost killed", "lost timeout", "lost broke")
    ),
    "thread_bomb": Case(("raised RuntimeError: can't start new thread",)),
    "deep_recursion": Case(("raised RecursionError",)),
    "deeper_recursion": Case(
        ("lost killed SIGSEGV", "raised MemoryError", "raised RecursionError")
    ),
    "much_output": Case(("7",), 20),
    "output_without_end": Case(("lost output",), 20, Limits(printed=8 * MB)),
    "asks_for_input": Case(("raised EOFError",)),
    "junk_on_every_descriptor": Case(("lost broke",)),
    "a_frame_without_end": Case(("lost broke",)),
    "a_forged_size": Case(("lost output",)),
    "closes_all_descriptors": Case(("lost broke it closed its line",)),
    "a_large_answer": Case(("lost output",)),
    "a_large_file": Case(
        ("raised OSError", "raised PermissionError", "raised FileNotFoundError")
    ),
    "memory_without_a_name": Case(("raised OSError: [Errno 38]",)),
}


def code_of(name):
    """An attack of the corpus, as the stand-in calls it: what is right is 7."""
    return f"{source(name)}\n\nright = lambda *_: 7\nf = answer"


@pytest.fixture(params=KINDS)
def sandbox(request):
    return place(request.param)


@pytest.fixture(scope="module", params=KINDS)
def one_session(request):
    """One for all attacks, one after another: each begins where the others ended."""
    with session(place(request.param)) as opened:
        yield opened
    assert not marked()


@pytest.mark.parametrize("name", CASES)
def test_it_is_told_what_happened_and_nobody_else_notices(one_session, name):
    case = CASES[name]
    with contextlib.ExitStack() as stack:
        opened = one_session
        if case.limits is not SMALL:
            opened = stack.enter_context(session(opened._sandbox, case.limits))
        works(opened)
        before = set(marked())
        with opened.exercise() as line:
            told = str(outcome(line, code_of(name), seconds=case.seconds))
        left = set(marked()) - before
        works(opened)
    assert told.startswith(case.told), told
    assert not left


def test_printed_characters_are_counted_and_not_kept(sandbox):
    with session(sandbox) as opened, opened.exercise() as line:
        call(line, code_of("much_output"), seconds=20)
        call(line, "import sys\ndef f():\n    sys.stdout.flush()\n    return 0")
    assert 200_000_000 <= line.printed <= 200_000_200


# Reading and writing. A sandbox that does not promise it says so, and is not asked.

READ = """
import os
def f():
    read = []
    for path in given:
        try:
            if os.path.isdir(path):
                os.listdir(path)
            else:
                open(path, "rb").read(1)
        except OSError:
            continue
        read.append(path)
    return {"read": read}
"""
WRITE = """
import os
def f():
    written = []
    for path in given:
        for flags in (os.O_WRONLY | os.O_CREAT, os.O_WRONLY):
            try:
                os.close(os.open(path, flags))
            except OSError:
                continue
            written.append(path)
    return {"written": written}
"""
WALK = """
import os
def f():
    found, seen = [], 0
    for folder, folders, files in os.walk("/"):
        if folder.startswith(("/proc", "/sys")):
            folders.clear()
        for name in files:
            seen += 1
            if given in name or name in ("secret.txt", "lesson_01.py", "roster.csv"):
                found.append(os.path.join(folder, name))
    return {"found": found, "seen": seen}
"""
OTHERS = """
import os
def f():
    said = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        names = [str(number) for number in range(1, 40_000)]
    for pid in filter(str.isdigit, names):
        if int(pid) != os.getpid():
            for name in ("environ", "fd", "mem", "maps", "cwd", "root"):
                path = f"/proc/{pid}/{name}"
                try:
                    if name == "fd":
                        os.listdir(path)
                    elif name in ("cwd", "root"):
                        os.listdir(path + "/")
                    else:
                        open(path, "rb").read(1)
                except OSError:
                    continue
                said[path] = 1
    return {"read": said}
"""


def guards(sandbox, promise):
    if promise not in sandbox.promises:
        pytest.skip(f"{sandbox.name} does not promise it: {sandbox.lacks()}.")


@pytest.fixture
def secret(tmp_path):
    """A file that all the world may read and write."""
    path = tmp_path / "secret.txt"
    path.write_text("seed", encoding="utf-8")
    for part in (path, *list(path.parents)[:3]):
        if part.name.startswith(("secret", "test_", "pytest-")):
            part.chmod(0o777)
    return path


def test_nothing_outside_can_be_read(sandbox, secret):
    guards(sandbox, "files")
    package = Path(__file__).resolve().parent.parent
    paths = [secret, secret.parent, package, package / "attnlib/exercises"]
    paths += [package / "attnlib/exercises/lesson_01.py", package / "tests"]
    paths += [Path.home(), "/root", "/home", "/etc/passwd", "/etc/shadow", "/var", "/"]
    paths += ["/tmp", "/dev/shm", "/run", "/proc/self/environ", "/proc/1/environ"]
    paths += [f"/proc/{os.getpid()}/{name}" for name in ("environ", "fd", "cmdline")]
    with session(sandbox) as opened, opened.exercise() as line:
        read = call(line, READ, given=[str(path) for path in paths])["read"]
    # In a bubblewrap the root is its own, and so are these; nothing of ours is in them.
    own = {"/", "/proc/self/environ", "/root", str(Path.home()), "/tmp", "/home"}
    own = own if sandbox.name == "bubblewrap" else set()
    assert set(read) <= own | {str(package)} - {str(secret)}
    assert str(package) not in read or sandbox.name == "bubblewrap"


def test_a_walk_over_the_disk_finds_nothing(sandbox, secret):
    guards(sandbox, "files")
    with session(sandbox) as opened, opened.exercise() as line:
        said = call(line, WALK, seconds=60, given=secret.parent.name)
    assert said["found"] == []


def test_other_processes_cannot_be_looked_into(sandbox):
    guards(sandbox, "files")
    with session(sandbox) as opened, opened.exercise() as line:
        assert call(line, OTHERS, seconds=20)["read"] == {}


def test_nothing_can_be_written(sandbox, secret):
    guards(sandbox, "files")
    places = [Path(__file__).parent, Path.home(), secret.parent, sandbox.room, "/"]
    places += ["/tmp", "/dev/shm", "/var/tmp", "/run", "/proc/self", "/dev", "/etc"]
    paths = [str(Path(folder) / "written") for folder in places]
    paths += [str(secret), "/proc/sys/kernel/core_pattern", "/proc/1/oom_score_adj"]
    paths += ["/proc/sysrq-trigger", str(sandbox.room / "echo.py")]
    with session(sandbox) as opened, opened.exercise() as line:
        assert call(line, WRITE, given=paths)["written"] == []
    assert not any(
        Path(path).name == "written" and Path(path).exists() for path in paths
    )


def test_the_room_cannot_be_changed_even_without_a_sandbox(sandbox):
    guards(sandbox, "others")
    paths = [str(sandbox.room / name) for name in ("echo.py", "new.py", "attnlib/x.py")]
    change = f"import os\ndef f(): os.chmod({str(sandbox.room)!r}, 0o777)"
    if os.getuid() == 0:
        paths = []  # root owns the room; its children are another user
    with session(sandbox) as opened, opened.exercise() as line:
        assert str(outcome(line, change)).startswith(
            ("raised PermissionError", "raised OSError")
        )
        assert call(line, WRITE, given=paths)["written"] == []


NETWORK = """
import ctypes, os, socket
def f():
    reached = []
    tries = {
        "tcp": (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", given["tcp"])),
        "udp": (socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", given["udp"])),
        "unix": (socket.AF_UNIX, socket.SOCK_STREAM, given["unix"]),
        "abstract": (socket.AF_UNIX, socket.SOCK_STREAM, "\\0" + given["abstract"]),
    }
    for name, (family, kind, address) in tries.items():
        try:
            with socket.socket(family, kind) as line:
                line.settimeout(1)
                line.connect(address)
                line.send(b"hello")
        except OSError:
            continue
        reached.append(name)
    try:
        socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).close()
        reached.append("netlink")
    except OSError:
        pass
    if ctypes.CDLL(None).syscall(425, 8, ctypes.create_string_buffer(120)) >= 0:
        reached.append("io_uring")
    socket.socketpair()  # stays possible: asyncio needs it
    return {"reached": reached}
"""


def test_no_network_of_any_kind(sandbox, tmp_path):
    guards(sandbox, "network")
    tcp = socket.create_server(("127.0.0.1", 0))
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("127.0.0.1", 0))
    unix = socket.socket(socket.AF_UNIX)
    unix.bind(str(tmp_path / "line"))
    (tmp_path / "line").chmod(0o777)
    unix.listen()
    abstract = socket.socket(socket.AF_UNIX)
    name = f"attnlib-{os.getpid()}"
    abstract.bind("\0" + name)
    abstract.listen()
    where = {
        "tcp": tcp.getsockname()[1],
        "udp": udp.getsockname()[1],
        "unix": str(tmp_path / "line"),
        "abstract": name,
    }
    with tcp, udp, unix, abstract:
        with session(sandbox) as opened, opened.exercise() as line:
            assert call(line, NETWORK, seconds=20, given=where)["reached"] == []
        for server in (tcp, unix, abstract):
            server.settimeout(0)
            with pytest.raises(BlockingIOError):
                server.accept()
        udp.settimeout(0)
        with pytest.raises(BlockingIOError):
            udp.recv(10)


LEFTOVER = """
import os, sys, time
def f():
    for new in (False, True):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.setsid()
                if new:
                    mark = os.environ["ATTNLIB_ROOM"]
                    code = "import time; time.sleep(1000)"
                    try:
                        os.execve(sys.executable, ["python", "-c", code, mark], {})
                    except OSError:
                        pass
                while True:
                    time.sleep(1)
            os._exit(0)
        os.wait()
    return 1
"""


def test_whoever_was_left_behind_is_ended(sandbox):
    guards(sandbox, "leftovers")
    others = set(marked())
    with session(sandbox) as opened:
        works(opened)
        before = set(marked())
        with opened.exercise() as line:
            assert call(line, LEFTOVER) == 1
            during = set(marked()) - before
        assert len(during) >= 2  # the child, and whom it left
        assert set(marked()) == before
        works(opened)
    assert set(marked()) == others


ENVIRONMENT = """
import os, sys
def f(): return {"env": dict(os.environ), "argv": sys.argv, "cwd": os.getcwd()}
"""


def test_the_environment_holds_no_secret(sandbox, monkeypatch):
    monkeypatch.setenv("ATTNLIB_SEED", "do not tell")
    with session(sandbox) as opened, opened.exercise() as line:
        said = call(line, ENVIRONMENT)
    assert "do not tell" not in str(said)
    assert set(said["env"]) <= {
        *("PATH", "LANG", "HOME", "ATTNLIB_ROOM", "PWD", "LC_CTYPE"),
        *("PYTHONHASHSEED", "PYTHONDONTWRITEBYTECODE", "PYTHONNOUSERSITE"),
        *("PYTHONSAFEPATH", "OMP_NUM_THREADS", "MKL_NUM_THREADS"),
        "OPENBLAS_NUM_THREADS",
    }
    assert len(said["argv"]) <= 3
    assert said["cwd"] == "/"


def test_a_child_has_four_descriptors_and_no_more(sandbox):
    code = """
import os
def f():
    found = []
    for number in range(1000):
        try:
            os.fstat(number)
        except OSError:
            continue
        found.append(number)
    return {"open": found}
"""
    with session(sandbox) as opened, opened.exercise() as line:
        assert call(line, code)["open"] == [0, 1, 2, 3]


def test_an_answer_finds_no_answers(sandbox):
    code = """
import importlib
def f():
    found = []
    for name in ("exercises.lesson_01", "clinic.examine", "clinic.families",
                 "exercises.judging", "attention", "masks", "tiles.forward",
                 "commands", "grading.session", "grading.closure", "doctor"):
        try:
            importlib.import_module("attnlib." + name)
        except ImportError:
            continue
        found.append(name)
    import attnlib
    from attnlib.exercises import check, hint, solution
    check("softmax", f), hint("softmax"), solution("softmax", now=True)
    return {"found": found, "from": attnlib.__file__}
"""
    with session(sandbox) as opened, opened.exercise() as line:
        said = call(line, code)
    assert said["found"] == []
    assert said["from"].startswith(str(sandbox.room))


def test_an_exercise_cannot_reach_the_next_one(sandbox):
    """Neither by what it changes in memory, nor by who it leaves behind."""
    poison = """
import builtins, numpy as np
def f(x):
    np.add = np.sum = builtins.sum = lambda *a, **k: 0
    np.float64 = str
    return x
"""
    with session(sandbox) as opened:
        with opened.exercise() as line:
            outcome(line, poison, [1.0])
        with opened.exercise() as line:
            code = "import numpy as np\ndef f(x): return np.add(x, sum([1, 2]))"
            assert call(line, code, [1.0]).tolist() == [4]
