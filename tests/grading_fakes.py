"""A worker that does what the name of its student says: for tests of the pool."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from grading_class import grade, graded

from attnlib.grading import worker
from attnlib.grading.worker import Begun, Done, Worker

START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[2]); "
    "from grading_fakes import main; main(int(sys.argv[1]))"
)


class Fake(Worker):
    def grade(self, task, known=""):
        what, _, more = task.student.partition(" ")
        if what == "early":
            os.kill(os.getpid(), signal.SIGKILL)
        self._line.send(Begun((("softmax", 1000),)))
        if what == "kill" or (what == "once" and not Path(more).exists()):
            if what == "once":
                Path(more).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if what == "hang":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(1000)
        if what == "slow":
            time.sleep(float(more))
        if what == "raise":
            raise ValueError("the grader is at fault")
        if known == "same":
            return Done(known, None)
        note = f"pid {os.getpid()}"
        return Done("hash", graded(task.student, grade(notes=(note,))))


def main(socket):
    worker.Worker = Fake
    worker.main(socket)
