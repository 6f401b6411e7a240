"""Processes for ranks: they run, they fail with one sentence, and none is left."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
from ring_workers import greets, killed, mute, prints, returns_a_lock, spins, stops

from attnlib.nn.ring import RankError, faults, launch, run_ranks
from attnlib.shapes import ShapeError

POSIX = pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")
TESTS = Path(__file__).parent


@pytest.fixture(autouse=True)
def started(monkeypatch):
    """Every process that a test starts; none may be left when it ends."""
    processes = []
    start = launch.Team.start

    def noted(team, *given):
        start(team, *given)
        processes.append(team.processes[-1])

    monkeypatch.setattr(launch.Team, "start", noted)
    yield processes
    assert all(process.poll() is not None for process in processes)


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not yet buried does not."""
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat")
        return (
            not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"
        )
    except (ProcessLookupError, FileNotFoundError):
        return False


def soon(condition, seconds=30.0) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.1)
    return False


def pids(folder: Path, n: int) -> list[int]:
    def there():
        found = [folder / str(rank) for rank in range(n)]
        return all(path.exists() and path.read_text() for path in found)

    assert soon(there, 90)
    return [int((folder / str(rank)).read_text()) for rank in range(n)]


def test_results_and_prints_come_in_the_order_of_the_ranks(capsys):
    found = run_ranks(greets, 3, "a", [1, 2], threads=2)
    assert found == [(rank, "a", [1, 2], 2, "gloo") for rank in range(3)]
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        x for r in range(3) for x in (f"rank {r}: I am {r}", f"rank {r}: of 3")
    ]


def test_a_rank_that_raises(started):
    with pytest.raises(RankError) as caught:
        run_ranks(faults.raises, 3, 1)
    said = (
        "rank 1 of 3 raised ValueError: this text has no end; all processes were ended."
    )
    assert str(caught.value) == said
    assert caught.value.rank == 1
    assert "in raises" in caught.value.details
    assert len(started) == 3


@POSIX
def test_a_rank_that_is_killed():
    with pytest.raises(RankError) as caught:
        run_ranks(killed, 3, 2)
    said = "rank 2 of 3 died (killed by signal 9); all processes were ended."
    assert str(caught.value) == said
    assert caught.value.rank == 2


@pytest.mark.parametrize("bad", [0, 1])
def test_a_rank_that_leaves_is_named_and_not_the_one_that_misses_it(bad):
    with pytest.raises(RankError, match=rf"rank {bad} of 2 died \(exit code 9\); all"):
        run_ranks(faults.dies, 2, bad)


def test_a_cause_that_is_told_later_is_named_before_a_consequence(monkeypatch):
    monkeypatch.setattr(launch.Team, "_end_of", lambda team, rank: "died")
    monkeypatch.setattr(launch.Team, "_log", lambda team, rank: "")
    team = launch.Team()
    team.news.put((1, "ready"))  # which is no end
    threading.Timer(0.1, team.news.put, [(1, "gone")]).start()
    lost = 0, "raised", "RuntimeError", "Connection closed", "", ""
    assert str(team._failed(lost, 2, 0)) == (
        "rank 1 of 2 died; all processes were ended."
    )


def test_a_rank_that_hangs_and_where_it_was(tmp_path):
    with pytest.raises(RankError) as caught:
        run_ranks(faults.hangs, 2, 1, str(tmp_path), seconds=2)
    assert str(caught.value) == (
        "after 2 s 2 of 2 ranks had not finished: rank 0 was in "
        "attnlib.nn.ring.travel.agree, rank 1 was in attnlib.nn.ring.faults.sleeps; "
        "all processes were ended."
    )
    assert not any(alive(pid) for pid in pids(tmp_path, 2))


@POSIX
def test_ranks_that_are_stopped_and_cannot_answer(tmp_path, monkeypatch):
    monkeypatch.setattr(launch, "REPLY", 0.5)  # they never will
    with pytest.raises(RankError) as caught:
        run_ranks(stops, 2, str(tmp_path), seconds=1)
    assert "rank 1 was in no place that it could tell" in str(caught.value)
    assert not any(alive(pid) for pid in pids(tmp_path, 2))


def test_ranks_that_have_not_started_in_time(monkeypatch):
    monkeypatch.setattr(launch, "START", 0.3)  # to import torch takes longer
    with pytest.raises(RankError, match=r"^after 0\.3 s 2 of 2 ranks had not started"):
        run_ranks(greets, 2, seconds=5)


@POSIX
def test_a_rank_that_lives_and_can_say_nothing(monkeypatch):
    monkeypatch.setattr(launch, "ENDING", 0.5)  # it does not
    with pytest.raises(RankError) as caught:
        run_ranks(mute, 2, 1)
    assert str(caught.value) == (
        "rank 1 of 2 closed the pipe by which it answers; all processes were ended."
    )


def test_what_was_printed_before_the_end_is_among_the_details():
    with pytest.raises(RankError, match="rank 0 of 1 raised ValueError") as caught:
        run_ranks(prints, 1)
    assert caught.value.details.endswith("It had printed:\nso far\n")


def test_a_result_that_cannot_be_sent():
    with pytest.raises(RankError, match="rank 0 of 1 raised TypeError: cannot pickle"):
        run_ranks(returns_a_lock, 1)


def test_a_port_that_is_taken_and_one_that_is_free():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(RankError) as caught:
            run_ranks(greets, 2, port=port)
    assert str(caught.value) == (
        f"rank 0 could not listen on port {port}: another program has it. Choose "
        f"another port, or leave it out, and a free one is found."
    )
    assert len(run_ranks(greets, 2, port=port)) == 2


def test_the_store_listens_on_this_machine_alone(tmp_path):
    if not Path("/proc/net/tcp").exists():
        pytest.skip("open ports are read from /proc")
    with parent_of(tmp_path, 2) as (_, ranks):
        seen = [address for pid in ranks for address in listening(pid)]
    assert seen
    assert set(seen) == {"0100007F"}


def listening(pid: int) -> list[str]:
    """The addresses at which a process waits for connections, as /proc has them."""
    own = set()
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            own.add(os.readlink(path))
    rows = []
    for table in ("tcp", "tcp6"):
        path = Path("/proc/net") / table
        lines = path.read_text().splitlines()[1:] if path.exists() else []
        rows += [line.split() for line in lines]
    waits = [row for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in own]
    return [row[1].split(":")[0] for row in waits]


PARENT = """
import sys
sys.path[:0] = [{tests!r}]
from attnlib.nn.ring import run_ranks
from ring_workers import spins
try:
    run_ranks(spins, {n}, {folder!r}, 1, seconds=100)
except KeyboardInterrupt:
    print("interrupted")
"""


def start_parent(folder: Path, n: int) -> subprocess.Popen[str]:
    code = textwrap.dedent(PARENT).format(tests=str(TESTS), n=n, folder=str(folder))
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@contextlib.contextmanager
def parent_of(folder: Path, n: int):
    """A process that has started ranks, one of which computes for ever."""
    parent = start_parent(folder, n)
    try:
        yield parent, pids(folder, n)
    finally:
        parent.kill()
        parent.communicate()


@POSIX
@pytest.mark.parametrize("whole_group", [False, True])
def test_an_interrupt_ends_all_ranks(tmp_path, whole_group):
    with parent_of(tmp_path, 2) as (parent, ranks):
        assert all(map(alive, ranks))
        if whole_group:  # as Jupyter does it, and Ctrl-C in a terminal
            os.killpg(parent.pid, signal.SIGINT)
        else:
            os.kill(parent.pid, signal.SIGINT)
        said, errors = parent.communicate(timeout=60)
        assert said == "interrupted\n"
        assert errors == ""
        assert not any(map(alive, ranks))


@POSIX
def test_ranks_end_when_the_process_that_started_them_is_killed(tmp_path):
    with parent_of(tmp_path, 2) as (parent, ranks):
        assert all(map(alive, ranks))
        os.kill(parent.pid, signal.SIGKILL)
        assert soon(lambda: not any(map(alive, ranks)))


@pytest.mark.parametrize("seconds", [0, -1.0, float("nan"), float("inf"), 2e6])
def test_times_that_are_none(seconds, started):
    with pytest.raises(ValueError, match=r"seconds must be above 0.*it is "):
        run_ranks(greets, 2, seconds=seconds)
    assert started == []


def test_ports_that_are_none(started):
    with pytest.raises(ValueError, match="port must be at most 65535, but it is 70000"):
        run_ranks(greets, 2, port=70000)
    with pytest.raises(ShapeError, match="port must be at least 0"):
        run_ranks(greets, 2, port=-1)
    assert started == []


@pytest.mark.parametrize("worker", [lambda rank, n_ranks: 1, print])
def test_a_worker_that_cannot_be_imported(worker, started):
    if worker is print:  # a function of a module, of which it is true
        worker = type("Local", (), {"__call__": lambda *_: None})()
    with pytest.raises(TypeError, match="new processes cannot import the worker"):
        run_ranks(worker, 2)
    assert started == []


def test_the_ranks_of_a_notebook_are_refused(monkeypatch):
    monkeypatch.setattr(spins, "__module__", "__main__")
    monkeypatch.setattr(sys.modules["__main__"], "spins", spins, raising=False)
    with pytest.raises(TypeError, match="not of a notebook"):
        run_ranks(spins, 2)
