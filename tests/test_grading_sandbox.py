"""What each sandbox shows, which one is taken, and what is said where none is there."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from grading_places import KINDS, call, place, room, session, works

from attnlib.grading.inside import landlock as rules
from attnlib.grading.inside import seccomp
from attnlib.grading.sandbox import bubblewrap, choose, left
from attnlib.grading.sandbox import place as places
from attnlib.grading.sandbox import room as rooms
from attnlib.grading.sandbox.bubblewrap import Bubblewrap
from attnlib.grading.sandbox.landlock import Landlock
from attnlib.grading.sandbox.plain import Plain

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the sandboxes are those of Linux"
)


@pytest.fixture(params=KINDS)
def sandbox(request):
    return place(request.param)


# The room.


def test_the_room_holds_what_runs_inside_and_nothing_that_computes_attention():
    files = (room() / "attnlib").rglob("*.py")
    names = {path.relative_to(room() / "attnlib").as_posix() for path in files}
    inside = {name for name in names if name.startswith("grading/inside/")}
    assert "grading/inside/supervisor.py" in inside
    packages = {f"{name}/__init__.py" for name in rooms.PACKAGES}
    assert names - inside == {*rooms.SHARED, *packages}
    for name, text in rooms.PACKAGES.items():
        path = room() / "attnlib" / name / "__init__.py"
        assert path.read_text(encoding="utf-8") == text
    assert (room() / "attnlib/data/help_desk.npz").exists()
    assert not list(room().rglob("equivalent_mutants*"))
    compiled = {path.name.split(".")[0] for path in room().rglob("*.pyc")}
    assert compiled == {path.stem for path in room().rglob("*.py")}


def test_what_runs_inside_needs_nothing_that_is_not_there():
    """Everything in `inside`, imported in the room by a Python that knows no other."""
    inside = room() / "attnlib/grading/inside"
    modules = [f"attnlib.grading.inside.{path.stem}" for path in inside.glob("*.py")]
    code = (
        f"import importlib, sys\nsys.path.insert(0, {str(room())!r})\n"
        f"sys.path += {rooms.packages()!r}\n"
        f"for name in {sorted(modules)!r}: importlib.import_module(name)\n"
        "print(*(m.__file__ for m in list(sys.modules.values()) "
        "if m.__name__.startswith('attnlib')))"
    )
    done = subprocess.run(
        [places.python(), "-S", "-B", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env=places.ENVIRONMENT,
        cwd="/",
    )
    assert done.returncode == 0, done.stderr
    assert all(file.startswith(str(room())) for file in done.stdout.split())


def test_nobody_may_write_into_the_room():
    modes = {path.stat().st_mode & 0o222 for path in [room(), *room().rglob("*")]}
    assert modes == {0}


def test_the_room_goes_with_the_program():
    code = "from attnlib.grading.sandbox import room; print(room.make())"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    made = Path(done.stdout.strip())
    assert made.name.startswith("attnlib-room-")
    assert not made.exists()


LEFT = """
import os, signal
from attnlib.grading.sandbox import room
print(room.make(), flush=True)
"""


def made(folder, end):
    """A room made by another program, with its temporary files in this folder."""
    done = subprocess.run(
        [sys.executable, "-c", LEFT + end],
        env=os.environ | {"TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    return Path(done.stdout.strip())


KILLED = "os.kill(os.getpid(), signal.SIGKILL)"


def test_rooms_of_killed_programs_go_at_the_next_start(tmp_path, monkeypatch):
    """And no others: not young ones, those in use, those of others, and links."""
    rooms_left = [made(tmp_path, KILLED) for _ in range(5)]
    assert all(path.exists() for path in rooms_left)
    gone, young, used, foreign, linked = rooms_left
    hour_ago = time.time() - 3600
    for path in (gone, used, foreign, linked):
        os.utime(path, (hour_ago, hour_ago))
    left.hold(used)
    linked.rename(tmp_path / "elsewhere")
    linked.symlink_to(tmp_path / "elsewhere")
    real = os.fstat

    def of(number):
        found = real(number)
        if found.st_ino == foreign.stat().st_ino:
            return os.stat_result((*found[:4], os.getuid() + 1, *found[5:]))
        return found

    with monkeypatch.context() as patched:
        patched.setattr(left.os, "fstat", of)
        patched.setattr(left.tempfile, "gettempdir", lambda: str(tmp_path))
        left.sweep(rooms.PREFIX)
    assert not gone.exists()
    assert all(path.exists() for path in (young, used, foreign, linked))
    modes = {
        path.stat().st_mode & 0o222 for path in (tmp_path / "elsewhere").rglob("*")
    }
    assert modes == {0}  # it is whole, and nobody opened it
    os.utime(foreign, (hour_ago, hour_ago))
    assert not made(tmp_path, "").exists()
    assert not foreign.exists()  # making a room sweeps first


def test_an_installed_attnlib_is_hidden(tmp_path, monkeypatch):
    packages = tmp_path / "site-packages"
    (packages / "attnlib").mkdir(parents=True)
    (packages / "attnlib" / "answers.py").write_text("ANSWER = 1", encoding="utf-8")
    (packages / "other").mkdir()
    (packages / "other" / "__init__.py").write_text("X = 1", encoding="utf-8")
    for part in (packages, *list(packages.parents)[:3]):
        if part.name.startswith(("site", "test_", "pytest-")):
            part.chmod(0o755)
    there = [*rooms.packages(), str(packages)]
    monkeypatch.setattr(rooms, "packages", lambda: there)
    code = f"""
import os
def f():
    import other
    try:
        text = open({str(packages / "attnlib" / "answers.py")!r}).read()
    except OSError:
        text = ""
    return {{"text": text, "other": other.X}}
"""
    for kind in (Bubblewrap, Landlock):
        place(kind.name)
        with session(kind(room())) as opened, opened.exercise() as line:
            assert call(line, code) == {"text": "", "other": 1}


# Settings.


def test_the_command_and_the_settings_hold_no_secret(sandbox, monkeypatch):
    monkeypatch.setenv("ATTNLIB_SEED", "do not tell")
    from attnlib.grading.sandbox.limits import Limits

    settings = sandbox.settings(Limits(), True, "a:b", 1)
    said = json.dumps([sandbox.command(3), settings, sandbox.environment()])
    assert "do not tell" not in said
    assert settings["torch"] is True


def test_torch_is_there_before_the_first_answer(sandbox):
    pytest.importorskip("torch")
    code = """
import sys
loaded = "torch" in sys.modules
def f(x):
    import torch
    assert loaded and torch.get_num_threads() == 1
    return torch.softmax(torch.tensor(x), -1).numpy()
"""
    with session(sandbox, torch=True) as opened, opened.exercise() as line:
        assert call(line, code, [[0.0, 0.0]], seconds=30).tolist() == [[0.5, 0.5]]


def test_the_order_of_a_set_is_the_same_in_every_sandbox(sandbox):
    code = "def f(): return {'order': ' '.join({'a', 'b', 'c', 'd', 'e', 'f'})}"
    said = set()
    for _ in range(2):
        with session(sandbox) as opened, opened.exercise() as line:
            said.add(call(line, code)["order"])
    assert len(said) == 1


def test_bubblewrap_holds_without_a_filter_of_system_calls(monkeypatch):
    """Its own walls: number 1 cannot be killed, and there is no network to reach."""
    sandbox = place("bubblewrap")
    monkeypatch.setattr(seccomp, "there", lambda: False)
    kill = "import os\ndef f():\n    os.kill(-1, 9)\n    return 1"
    reach = """
import socket
def f(): socket.create_connection(("127.0.0.1", given), timeout=1)
"""
    for code in (kill, "import os\ndef f():\n    os.kill(1, 9)\n    return 1"):
        with session(sandbox) as opened:
            with opened.exercise() as line:
                said = call(line, code)
            # Refused, or there was nobody else, or number 1 did not feel it.
            assert str(said) == "1" or said.startswith(
                ("raised PermissionError", "raised ProcessLookupError")
            )
            works(opened)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with session(sandbox) as opened, opened.exercise() as line:
            # It has a loopback of its own, on which nobody listens.
            said = call(line, reach, given=port)
            assert said.startswith(("raised OSError", "raised ConnectionRefused"))


def test_what_is_not_promised_is_said():
    assert Bubblewrap(Path("/")).lacks() == ""
    assert "can read and change all that whoever grades can" in Plain(Path("/")).lacks()


def test_plain_says_more_where_no_system_call_can_be_refused(monkeypatch):
    monkeypatch.setattr(seccomp, "there", lambda: False)
    assert Plain(Path("/")).promises == frozenset()
    assert Plain(Path("/")).lacks().count(";") == 3


# The choice.


@dataclass(frozen=True)
class Liar(Plain):
    """Says that it guards what it does not."""

    name: ClassVar[str] = "liar"

    @property
    def promises(self):
        return frozenset({"files", "network", "others", "leftovers"})


@dataclass(frozen=True)
class Failing(Plain):
    """Does not start."""

    name: ClassVar[str] = "failing"

    def command(self, control):
        return ["/bin/sh", "-c", "echo first >&2; echo no room left. >&2; exit 3"]


@dataclass(frozen=True)
class Absent(Plain):
    """Its program is not there."""

    name: ClassVar[str] = "absent"

    def command(self, control):
        return ["/nowhere/bwrap"]


def test_each_sandbox_that_is_there_passes_its_probe(sandbox):
    assert choose.problem_of(sandbox) == ""


def test_a_sandbox_that_does_not_hold_is_found_out():
    said = choose.problem_of(Liar(room()))
    assert said.startswith("liar does not hold back files")


def test_a_sandbox_without_a_filter_is_found_out(monkeypatch):
    monkeypatch.setattr(seccomp, "there", lambda: False)
    said = choose.problem_of(Liar(room()))
    assert said.startswith("liar does not hold back files, network")


def test_a_sandbox_that_does_not_start_says_its_last_words():
    assert choose.problem_of(Failing(room())) == (
        "failing does not start: no room left."
    )
    assert choose.problem_of(Absent(room())).startswith("absent does not start: ")


def test_a_python_without_numpy_is_said(monkeypatch):
    monkeypatch.setattr(rooms, "packages", lambda: [])
    said = choose.problem_of(Plain(room()))
    assert said == (
        "plain does not start: ModuleNotFoundError: No module named 'numpy'."
    )


def test_the_best_one_is_taken(monkeypatch):
    best = next(
        kind for kind in (Bubblewrap, Landlock) if not choose.problem_of(kind(room()))
    )
    assert type(choose.choose(room=room())) is best


def test_landlock_is_taken_where_bubblewrap_is_missing(monkeypatch):
    place("landlock")
    monkeypatch.setattr(bubblewrap, "program", lambda: None)
    assert type(choose.choose(room=room())) is Landlock


def test_landlock_is_taken_where_bubblewrap_does_not_work(monkeypatch):
    place("landlock")
    monkeypatch.setattr(bubblewrap, "program", lambda: "/bin/false")
    assert type(choose.choose(room=room())) is Landlock


def test_without_a_sandbox_nothing_is_run(monkeypatch):
    monkeypatch.setattr(bubblewrap, "program", lambda: None)
    monkeypatch.setattr(Landlock, "command", Failing.command)
    with pytest.raises(choose.NoSandbox) as caught:
        choose.choose(room=room())
    said = str(caught.value)
    assert said.startswith("No sandbox works here, so no answer was run. ")
    assert "sudo apt install bubblewrap" in said
    assert "--allow-unsandboxed" in said
    assert "Tried: landlock does not start: no room left." in said


def test_half_a_sandbox_is_none_unless_it_is_allowed(monkeypatch):
    """Landlock where no system calls can be filtered: the network is open."""
    place("landlock")
    monkeypatch.setattr(bubblewrap, "program", lambda: None)
    monkeypatch.setattr(seccomp, "there", lambda: False)
    with pytest.raises(choose.NoSandbox, match="landlock: an answer can reach the net"):
        choose.choose(room=room())
    chosen = choose.choose(allow_unsandboxed=True, room=room())
    assert type(chosen) is Landlock
    assert "network" in chosen.lacks()


def test_a_kernel_without_landlock_is_not_asked_for_it(monkeypatch):
    monkeypatch.setattr(rules, "version", lambda: 0)
    assert Landlock not in map(type, choose.candidates(room()))


def test_without_a_sandbox_plain_is_taken_only_when_allowed(monkeypatch):
    monkeypatch.setattr(bubblewrap, "program", lambda: None)
    monkeypatch.setattr(Landlock, "command", Failing.command)
    assert type(choose.choose(allow_unsandboxed=True, room=room())) is Plain


# The rules for the kernel.


def test_a_kernel_without_landlock_refuses(monkeypatch):
    monkeypatch.setattr(rules, "version", lambda: 0)
    with pytest.raises(OSError, match="this kernel has no Landlock"):
        rules.restrict([])


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_refuses_and_allows_as_written(machine):
    """The filter, run by hand: no jump leaves it, every call has the right answer."""
    column, code = seccomp.MACHINES[machine]
    steps = seccomp.program(column, code, me=77)
    allowed, refused, unknown = seccomp.ALLOW, 0x50000 | 1, 0x50000 | 38

    def run(number, first=0, machine=code):
        at, held = 0, 0
        while True:
            op, yes, no, k = steps[at]
            at += 1
            if op == seccomp.RETURN:
                return k
            if op == seccomp.LOAD:
                held = {0: number, 4: machine, 16: first & 0xFFFFFFFF}[k]
                continue
            true = {
                seccomp.EQUAL: held == k,
                seccomp.ANY_BIT: bool(held & k),
                seccomp.AT_LEAST: held >= k,
            }[op]
            at += yes if true else no

    assert len(steps) < 4096
    for numbers in seccomp.REFUSED.values():
        if numbers[column] is not None:
            assert run(numbers[column]) == refused
    for pair in seccomp.UNKNOWN.values():
        assert run(pair[column]) == unknown
    kill, tgkill = seccomp.KILL[column], seccomp.TGKILL[column]
    prlimit, clone = seccomp.PRLIMIT[column], seccomp.CLONE[column]
    assert [run(kill, pid) for pid in (77, 1, -1, 0)] == [allowed] + [refused] * 3
    assert [run(tgkill, pid) for pid in (77, 1)] == [allowed, refused]
    assert [run(prlimit, pid) for pid in (0, 77, 1)] == [allowed, allowed, refused]
    assert [run(clone, flags) for flags in (0x11, 0x10000000)] == [allowed, refused]
    assert run(0) == allowed  # read on x86-64, io_setup on ARM
    assert run(0, machine=0x40000003) == unknown
    if column == 0:
        assert run(0x40000000 + 41) == unknown


def test_the_numbers_of_the_calls_are_those_of_this_machine():
    """Where the C library names them, they are compared."""
    header = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
    if platform.machine() != "x86_64" or not header.exists():
        pytest.skip("no table of system calls for x86-64 here")
    table = {}
    for line in header.read_text(encoding="utf-8").splitlines():
        if line.startswith("#define __NR_"):
            name, number = line.removeprefix("#define __NR_").split()[:2]
            table[name] = int(number)
    ours = {**seccomp.REFUSED, **seccomp.UNKNOWN, "clone": seccomp.CLONE}
    ours |= {"kill": seccomp.KILL, "tgkill": seccomp.TGKILL}
    ours |= {"prlimit64": seccomp.PRLIMIT}
    wrong = {
        name: (numbers[0], table[name])
        for name, numbers in ours.items()
        if name in table and numbers[0] != table[name]
    }
    assert wrong == {}
    assert len(set(ours) & set(table)) > 50


def test_a_filter_is_felt_by_the_process_that_set_it():
    if not seccomp.there():
        pytest.skip(f"no filter is written for {platform.machine()}")
    code = (
        "from attnlib.grading.inside import seccomp\nimport os, socket\n"
        "seccomp.restrict()\n"
        "os.kill(os.getpid(), 0)\n"
        "for action in (socket.socket, lambda: os.kill(os.getppid(), 0)):\n"
        "    try: action()\n"
        "    except PermissionError: print('refused')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["refused", "refused"]


def test_root_has_no_rights_left_in_a_child(sandbox):
    code = """
def f():
    lines = open("/proc/self/status").read().splitlines()
    words = [line.split() for line in lines]
    return {word[0].rstrip(":"): word[1] for word in words if len(word) > 1}
"""
    if sandbox.name == "landlock":
        pytest.skip("a Landlock child cannot read its own status")
    with session(sandbox) as opened, opened.exercise() as line:
        said = call(line, code)
    reads = "0" * 13 + "004"  # files may be read; what is seen, the sandbox says
    allowed = {"0" * 16, reads} if sandbox.name == "plain" else {"0" * 16}
    assert {said["CapEff"], said["CapPrm"]} <= allowed
    assert said["CapInh"] == said["CapAmb"] == "0" * 16
    if sandbox.name == "plain" and os.getuid() == 0:
        assert said["CapBnd"] == "0" * 16
    assert said["NoNewPrivs"] == "1"
    assert os.getuid() != 0 or int(said["Uid"]) >= places.NOBODY


def test_the_forms_that_the_kernel_reads_have_the_right_size():
    assert ctypes.sizeof(rules._Beneath) == 12
    assert ctypes.sizeof(rules._Ruleset) == 24
