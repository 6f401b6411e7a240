"""The program that one rank runs: `python -P rank.py`, with its task on standard input.

It is started by `run_ranks`, as a file, so that nothing heavy is imported before it is
known whether the port is free. Standard input carries the task, and is held open by
whoever started it: when it closes, that process is gone, and this one ends at once.
Three more things make sure that it ends:

- it looks every half second whether its parent is still the same,
- Python's fault handler ends it after its time, even if nothing else moves any more,
- whoever started it kills it, when all is done, and when anything went wrong.
"""

from __future__ import annotations

import contextlib
import errno
import faulthandler
import importlib
import io
import os
import pickle
import signal
import socket
import sys
import threading
import time
import traceback
from datetime import timedelta
from typing import IO, Any

HERE = "127.0.0.1"  # nobody outside this machine can connect
GONE = 3  # how it ends when its parent is gone


class Parent:
    """The process that started this one: two pipes to it."""

    def __init__(self) -> None:
        self.tasks: IO[bytes] = sys.stdin.buffer
        # What the worker prints must not get between the messages.
        self.answers: IO[bytes] = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)
        self.lock = threading.Lock()

    def tell(self, *message: object) -> None:
        """Send one message."""
        with self.lock, contextlib.suppress(OSError):  # it may be gone already
            self.answers.write(pickle.dumps(message))
            self.answers.flush()

    def task(self) -> Any:
        """The next message; the end of this process, if there will be none."""
        try:
            return pickle.load(self.tasks)
        except (EOFError, OSError, pickle.UnpicklingError):
            os._exit(GONE)

    def watch(self, me: threading.Thread) -> None:
        """Say where `me` stands, when asked; end when the parent does."""
        while self.task() == "where":
            self.tell("where", _place(me))


def main() -> None:
    """Run one rank from beginning to end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the parent's affair
    parent = Parent()
    task: dict[str, Any] = parent.task()
    faulthandler.dump_traceback_later(task["life"], exit=True)
    threading.Thread(target=_orphaned, args=(os.getppid(),), daemon=True).start()
    listening = None
    if task["rank"] == 0:
        try:
            listening = socket.create_server((HERE, task["port"] or 0), backlog=128)
        except OSError as error:
            taken = error.errno in (errno.EADDRINUSE, 10048)  # the second on Windows
            why = "another program has it" if taken else error.strerror
            parent.tell("port", None, why)
            while True:  # until it is ended
                parent.task()
        parent.tell("port", listening.getsockname()[1], "")
    payload, port = parent.task(), parent.task()
    me = threading.current_thread()
    threading.Thread(target=parent.watch, args=(me,), daemon=True).start()
    printed = io.StringIO()
    try:
        sys.path[:] = task["path"]
        _join(task, port, listening)
        worker, args = pickle.loads(payload)
        parent.tell("ready")
        with contextlib.redirect_stdout(printed):
            result = worker(task["rank"], task["n_ranks"], *args)
        answer = pickle.dumps(result)
    except BaseException as error:
        told = type(error).__name__, str(error), traceback.format_exc()
        parent.tell("raised", *told, printed.getvalue())
    else:
        parent.tell("done", answer, printed.getvalue())
    # The others may still need this rank's connections. Whoever started it ends it.
    time.sleep(task["life"])


def _join(task: dict[str, Any], port: int, listening: socket.socket | None) -> None:
    """Become a rank of the process group."""
    _loopback()
    torch = importlib.import_module("torch")
    dist = importlib.import_module("torch.distributed")
    torch.set_num_threads(task["threads"])
    first: dict[str, Any] = {}
    if listening is not None:
        first = {"is_master": True}
        if os.name == "nt":  # there a socket cannot be handed over
            listening.close()
        else:
            first["master_listen_fd"] = listening.detach()
    rank, n_ranks, life = task["rank"], task["n_ranks"], task["life"]
    store = dist.TCPStore(
        HERE,
        port,
        n_ranks,
        timeout=timedelta(seconds=life),
        wait_for_workers=False,
        use_libuv=os.name != "nt",
        **first,
    )
    if task["backend"] == "nccl":
        torch.cuda.set_device(rank)
    dist.init_process_group(
        task["backend"],
        store=store,
        rank=rank,
        world_size=n_ranks,
        timeout=timedelta(seconds=life),
    )
    dist.barrier()


def _loopback() -> None:
    """Let gloo talk over the loopback device: no name of this machine is looked up."""
    names = {name for _, name in socket.if_nameindex()} & {"lo", "lo0"}
    if names and os.name != "nt":
        os.environ.setdefault("GLOO_SOCKET_IFNAME", min(names))


def _orphaned(parent: int) -> None:
    """End this process when another one has become its parent."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(GONE)


def _place(thread: threading.Thread) -> str:
    """The function that a thread is in, leaving out those of torch and of Python."""
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module.split(".")[0] not in {"torch", *sys.stdlib_module_names}:
            return f"{module}.{frame.f_code.co_name}"
        frame = frame.f_back
    return ""


if __name__ == "__main__":
    main()
