"""End a process that was asked to end, whether it does so or not."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess


def wait_or_kill(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Wait for a process; where that takes too long, or is interrupted, kill it.

    Args:
        process: it leads a group of its own, which is killed with it.
        seconds: that it has.
    """
    try:
        process.wait(seconds)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
