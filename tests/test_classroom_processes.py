"""The classroom's processes: that all end, and how much memory each takes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tools.classroom import family, memory, rehearse, running

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tools" / "classroom"
linux = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's alone")
SLEEPERS = """
import subprocess, sys, time
alone = "start_new_session=True"
sleep = "[sys.executable, '-c', 'import time; time.sleep(60)']"
line = f"import subprocess, sys; subprocess.Popen({sleep}, {alone})"
subprocess.run([sys.executable, "-c", line], start_new_session=True)
print("ready", flush=True)
time.sleep(60)
"""


@linux
def test_all_that_was_started_ends_also_orphans_in_sessions_of_their_own() -> None:
    code = (
        "import os, subprocess, sys\n"
        "from tools.classroom import family\n"
        "family.adopt()\n"
        f"child = subprocess.Popen([sys.executable, '-c', {SLEEPERS!r}], "
        "stdout=subprocess.PIPE)\n"
        "child.stdout.readline()\n"
        "print(*family.descendants(os.getpid()))\n"
        "print(family.end(os.getpid()))\n"
        "print(family.descendants(os.getpid()))\n"
    )
    told = subprocess.check_output(
        [sys.executable, "-c", code], cwd=ROOT, text=True, timeout=60
    ).splitlines()
    assert len(told[0].split()) == 2  # the sleeper, and the orphan of its child
    assert told[1:] == ["2", "[]"]


@linux
def test_what_follows_ends_with_the_one_that_is_killed() -> None:
    follow = str(FOLDER / "follow.py")
    line = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
    code = (
        "import subprocess, sys\n"
        f"subprocess.run([sys.executable, {follow!r}, sys.executable, '-c', {line!r}])"
    )
    leader = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    )
    assert leader.stdout
    follower = int(leader.stdout.readline())
    leader.kill()
    leader.wait()
    deadline = time.monotonic() + 20
    while "time.sleep" in family.command(follower) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert "time.sleep" not in family.command(follower)
    leader.stdout.close()


@linux
def test_being_asked_to_end_runs_what_cleans_up_and_once() -> None:
    seen = []
    with running.stoppable():
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)
            seen.append("went on")
        finally:
            os.kill(os.getpid(), signal.SIGINT)  # a second one does not get in between
            seen.append("cleaned up")
    assert seen == ["cleaned up"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


# --- memory --------------------------------------------------------------------------


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A /proc in which a hub, a proxy, a server and two kernels live."""

    def process(pid: int, parent: int, line: str, user: str, pss: int) -> None:
        folder = tmp_path / str(pid)
        folder.mkdir()
        (folder / "stat").write_text(
            f"{pid} (a) name)) S {parent} 1 1 0 0 0 0 0 0 0 300 200 0"
        )
        (folder / "cmdline").write_text(line.replace(" ", "\0") + "\0")
        (folder / "environ").write_text(f"A=1\0{user}\0")
        (folder / "smaps_rollup").write_text(
            f"7f-ff ---p\nRss: {2 * pss} kB\nPss: {pss} kB\n"
        )
        (folder / "status").write_text(
            f"Name:\ta\nVmHWM:\t {3 * pss} kB\nThreads:\t1\n"
        )

    process(10, 1, "python -m jupyterhub -f trial_config.py", "", 100_000)
    process(11, 10, "node /x/configurable-http-proxy --port 1", "", 50_000)
    process(12, 10, "python -m jupyterhub.singleuser", "JUPYTERHUB_USER=mei", 80_000)
    for pid, pss in ((13, 200_000), (14, 300_000)):
        line = "python -m ipykernel_launcher -f /x.json"
        process(pid, 12, line, "JUPYTERHUB_USER=mei", pss)
    process(20, 1, "python -m jupyterhub", "", 999)  # somebody else's
    return tmp_path


def test_memory_is_told_by_process_and_student(proc: Path) -> None:
    taken = memory.measure(10, proc)
    assert [(one.kind, one.student) for one in taken] == [
        ("hub", ""),
        ("proxy", ""),
        ("server", "mei"),
        ("kernel", "mei"),
        ("kernel", "mei"),
    ]
    assert memory.total(taken) == 730_000 * 1024
    assert memory.total(taken, "kernel") == 500_000 * 1024
    hub = taken[0]
    assert (hub.rss, hub.peak) == (200_000 * 1024, 300_000 * 1024)
    assert hub.seconds == 500 / os.sysconf("SC_CLK_TCK")
    lines = memory.table(taken).splitlines()
    assert lines[1].split() == ["hub", "205", "MB", "102", "MB", "307", "MB"]
    assert lines[-1].split() == ["together", "748", "MB"]


def test_a_process_that_ended_meanwhile_is_left_out(proc: Path) -> None:
    (proc / "13" / "smaps_rollup").unlink()
    assert [one.pid for one in memory.measure(10, proc)] == [10, 11, 12, 14]


@linux
def test_the_memory_of_this_very_process_is_measured() -> None:
    (own,) = [one for one in memory.measure(os.getpid()) if one.pid == os.getpid()]
    assert 5e6 < own.pss <= own.rss <= own.peak


def test_how_many_fit_is_told_by_what_some_took(proc: Path) -> None:
    taken = memory.measure(10, proc)
    told = rehearse.arithmetic("03", taken, taken, 2, 150_000 * 1024)
    assert told == (
        "lesson 03: 256 MB each for the kernel, 297 MB with the server, 5 s of a "
        "core; 16 GB hold 49 students."
    )


def test_where_there_is_no_proc_it_is_said(tmp_path: Path) -> None:
    assert memory.measure(10, tmp_path) == []
    assert "/proc, which this system does not have" in memory.table([])


def test_the_arithmetic_of_the_guide() -> None:
    assert memory.students_that_fit(16e9, 2e9, 400e6) == 35
    assert memory.students_that_fit(1e9, 2e9, 400e6) == 0
    text = (ROOT / "TEACHING.md").read_text(encoding="utf-8")
    (base,) = re.findall(r"The hub and its proxy took (\d+) MB", text)
    rows = re.findall(r"^\| \d\d, .* \| (\d+) \| (\d+) \| (\d+) \| \d+ \|$", text, re.M)
    assert len(rows) == 3
    for server, kernel, students in rows:
        each = 1e6 * (int(server) + int(kernel))
        assert memory.students_that_fit(15e9, 1e6 * int(base), each) == int(students)
