"""`run_ranks`: one function on several processes of this machine, and never a rest.

Whatever happens, all processes have ended when `run_ranks` has: it kills them on its
way out. Should it not come so far, because this process is killed, they end themselves;
`rank` says how. Nothing waits longer than it was told to.
"""

from __future__ import annotations

import contextlib
import pickle
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from attnlib.shapes import size

START = 90.0  # seconds until all ranks have imported torch and found each other
GRACE = 1.0  #   seconds to learn which rank was the first to fail
REPLY = 3.0  #   seconds for ranks to say where they are
ENDING = 5.0  #  seconds for a rank to end that has closed its pipe
PROGRAM = Path(__file__).with_name("rank.py")


class RankError(RuntimeError):
    """A rank failed, and all were ended.

    Attributes:
        rank: which one, or None if it cannot be said.
        details: its traceback and what it had printed, or what it wrote to its standard
            error at the end, for those who look for the cause.
    """

    def __init__(self, said: str, rank: int | None = None, details: str = "") -> None:
        super().__init__(said)
        self.rank, self.details = rank, details


def run_ranks(
    worker: Callable[..., Any],
    n_ranks: int,
    *args: object,
    seconds: float = 60.0,
    port: int | None = None,
    backend: str | None = None,
    threads: int = 1,
) -> list[Any]:
    """Run `worker(rank, n_ranks, *args)` on n_ranks new processes of this machine.

    They form a process group of torch.distributed: NCCL where each can have a GPU of
    its own, gloo on CPUs elsewhere. (The course's tests have run gloo alone.) They talk
    over the loopback device, need no network, and end with this call: on success, on an
    error, on an interrupt, and when this process is killed.

    Args:
        worker: a function of a module that new processes can import, not of a notebook.
        n_ranks: how many processes.
        args: what is handed to each of them; pickled.
        seconds: how long the worker may take, without starting up.
        port: where rank 0 listens; a free one is found if left out.
        backend: "gloo" or "nccl"; chosen as said above if left out.
        threads: how many threads of torch each rank has.

    Returns:
        What each rank returned, in the order of the ranks. Tensors come back on the
        CPU if the worker puts them there.

    Raises:
        RankError: a rank raised or died, the time was over, or the port is taken.
        TypeError: the worker is no function that can be imported.
        ShapeError: n_ranks is less than 1, or the port less than 0.
        ValueError: the port is above 65535, or seconds not in (0, a million].

    Cost: each process imports torch: 1 to 3 s of a core, 150 to 200 MB of its own.
    Source: the store and the groups of torch.distributed.
    Lesson: 16.

    >>> run_ranks(lambda rank, n_ranks: rank, 2)
    Traceback (most recent call last):
        ...
    TypeError: new processes cannot import the worker <lambda>; it must be a function \
of a module, not of a notebook or of another function.
    """
    n_ranks = size("n_ranks", n_ranks, least=1)
    if port is not None and size("port", port) > 65535:
        raise ValueError(f"port must be at most 65535, but it is {port}.")
    if not 0 < seconds <= 1e6:
        raise ValueError(
            f"seconds must be above 0 and at most a million, but it is {seconds}."
        )
    payload = pickle.dumps((_importable(worker), args))
    life = START + seconds + 10  # nobody should need it
    task = {
        "n_ranks": n_ranks,
        "port": port,
        "path": sys.path,
        "life": life,
        "threads": size("threads", threads, least=1),
        "backend": backend or _backend(n_ranks),
    }
    team = Team()
    try:
        for rank in range(n_ranks):
            team.start(task | {"rank": rank}, payload)
        return team.results(n_ranks, seconds, port)
    finally:
        team.end()


class Team:
    """The processes of one run, and what they tell."""

    def __init__(self) -> None:
        self.processes: list[subprocess.Popen[bytes]] = []
        self.logs: list[IO[bytes]] = []
        self.post: list[queue.SimpleQueue[object]] = []  # to each rank
        self.news: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()  # from all

    def start(self, task: dict[str, Any], payload: bytes) -> None:
        """Start one more rank. Pipes are served by threads, so that nothing blocks."""
        log = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `end`
        self.logs.append(log)
        process = subprocess.Popen(
            [sys.executable, "-P", str(PROGRAM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
        )
        self.processes.append(process)
        box: queue.SimpleQueue[object] = queue.SimpleQueue()
        self.post.append(box)
        for message in (task, payload):
            box.put(message)
        for serve in (self._write, self._read):
            given = process, task["rank"]
            threading.Thread(target=serve, args=given, daemon=True).start()

    def results(self, n_ranks: int, seconds: float, port: int | None) -> list[Any]:
        """Wait for all ranks; raise as soon as it is clear that one has failed."""
        deadline, ready = time.monotonic() + START, set[int]()
        found: dict[int, list[Any]] = {}
        while len(found) < n_ranks:
            news = self._next(deadline)
            if news is None and len(ready) < n_ranks:
                raise self._late(START, "started", set(range(n_ranks)) - ready)
            if news is None:
                raise self._late(seconds, "finished", set(range(n_ranks)) - set(found))
            rank, *message = news
            if message[0] == "port":
                if message[1] is None:
                    raise RankError(_taken(port, message[2]), 0)
                for box in self.post:
                    box.put(message[1])
            elif message[0] == "ready":
                ready.add(rank)
                if len(ready) == n_ranks:
                    deadline = time.monotonic() + seconds
            elif message[0] == "done":
                found[rank] = message[1:]
            elif message[0] in ("raised", "gone"):
                raise self._failed((rank, *message), n_ranks, len(found))
        for rank in range(n_ranks):
            for line in found[rank][1].splitlines():
                print(f"rank {rank}: {line}")
        return [pickle.loads(found[rank][0]) for rank in range(n_ranks)]

    def end(self) -> None:
        """Kill what is left; in a thread, which no second interrupt can stop."""
        ending = threading.Thread(target=self._kill)
        ending.start()
        ending.join()

    def _kill(self) -> None:
        for process in self.processes:
            process.kill()
        for process in self.processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=5)
        for box in self.post:
            box.put(None)
        for log in self.logs:
            log.close()

    def _next(self, deadline: float) -> tuple[Any, ...] | None:
        """The next message, or None when there is no more time for one."""
        while (left := deadline - time.monotonic()) > 0:
            with contextlib.suppress(queue.Empty):
                # In short waits, or Windows would not see an interrupt.
                return self.news.get(timeout=min(left, 0.2))
        return None

    def _failed(self, first: tuple[Any, ...], n_ranks: int, n_done: int) -> RankError:
        """What to say of the first failure.

        A rank that died is seen by its neighbours, too, and they may be faster to
        complain. So wait a moment, or until all have told their end, and prefer what is
        a cause to what is a consequence.
        """
        told, ends = [first], {first[0]}
        until = time.monotonic() + GRACE
        while len(ends) < n_ranks - n_done and (left := until - time.monotonic()) > 0:
            with contextlib.suppress(queue.Empty):
                told.append(self.news.get(timeout=left))
                if told[-1][1] in ("done", "raised", "gone"):
                    ends.add(told[-1][0])
        gone = [m for m in told if m[1] == "gone"]
        raised = [m for m in told if m[1] == "raised"]
        rank, kind, *rest = (gone or raised)[0]
        ended = "all processes were ended."
        if kind == "gone":
            said = f"rank {rank} of {n_ranks} {self._end_of(rank)}; {ended}"
            return RankError(said, rank, self._log(rank))
        name, text, trace, printed = rest
        trace += f"\nIt had printed:\n{printed}" if printed else ""
        text = text.strip().splitlines()[0].rstrip(".") if text.strip() else ""
        what = f"{name}: {text}" if text else name
        return RankError(
            f"rank {rank} of {n_ranks} raised {what}; {ended}", rank, trace
        )

    def _end_of(self, rank: int) -> str:
        """How a rank ended that tells no more."""
        try:
            code = self.processes[rank].wait(timeout=ENDING)
        except subprocess.TimeoutExpired:
            return "closed the pipe by which it answers"
        how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
        return f"died ({how})"

    def _late(self, seconds: float, what: str, waiting: set[int]) -> RankError:
        """What to say when the time is over: where each rank stands."""
        for rank in waiting:
            self.post[rank].put("where")
        places: dict[int, str] = {}
        until = time.monotonic() + REPLY
        while len(places) < len(waiting) and (left := until - time.monotonic()) > 0:
            with contextlib.suppress(queue.Empty):
                rank, kind, *rest = self.news.get(timeout=left)
                if kind == "where":
                    places[rank] = rest[0]
        where = ", ".join(
            f"rank {rank} was in {places.get(rank) or 'no place that it could tell'}"
            for rank in sorted(waiting)
        )
        number = f"{len(waiting)} of {len(self.processes)}"
        said = f"after {seconds:g} s {number} ranks had not {what}"
        return RankError(f"{said}: {where}; all processes were ended.")

    def _write(self, process: subprocess.Popen[bytes], rank: int) -> None:
        """Carry messages to a rank, until None or until it is gone."""
        assert process.stdin is not None
        with contextlib.suppress(OSError), process.stdin as pipe:
            while (message := self.post[rank].get()) is not None:
                pickle.dump(message, pipe)
                pipe.flush()

    def _read(self, process: subprocess.Popen[bytes], rank: int) -> None:
        """Collect the messages of a rank, and say when there will be no more."""
        assert process.stdout is not None
        # Where a rank dies in the middle of a message, pickle may raise anything.
        with process.stdout as pipe, contextlib.suppress(Exception):
            while True:
                self.news.put((rank, *pickle.load(pipe)))
        self.news.put((rank, "gone"))

    def _log(self, rank: int) -> str:
        """The end of what a rank wrote to its standard error."""
        log = self.logs[rank]
        log.seek(max(0, log.seek(0, 2) - 2000))
        return log.read().decode(errors="replace")


def _importable(worker: Callable[..., Any]) -> Callable[..., Any]:
    name = getattr(worker, "__qualname__", repr(worker))
    found: object = sys.modules.get(getattr(worker, "__module__", ""))
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not worker or worker.__module__ == "__main__":
        raise TypeError(
            f"new processes cannot import the worker {name.split('.')[-1]}; it must be "
            f"a function of a module, not of a notebook or of another function."
        )
    return worker


def _backend(n_ranks: int) -> str:
    import torch

    return "nccl" if torch.cuda.device_count() >= n_ranks else "gloo"


def _taken(port: int | None, why: str) -> str:
    if port is None:
        return f"rank 0 could not listen on this machine: {why}."
    return (
        f"rank 0 could not listen on port {port}: {why}. Choose another port, or leave "
        f"it out, and a free one is found."
    )
