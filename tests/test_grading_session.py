"""Sessions: one sandbox a student, one child an exercise, and an end to all of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from grading_places import (
    DOUBLE,
    KINDS,
    SERVE,
    call,
    marked,
    outcome,
    place,
    room,
    session,
    works,
)

from attnlib.grading.channel import Channel, Lost
from attnlib.grading.sandbox.limits import Limits
from attnlib.grading.session import Session

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the sandboxes are those of Linux"
)


@pytest.fixture(params=KINDS)
def sandbox(request):
    return place(request.param)


@pytest.fixture
def best():
    """One sandbox is enough for what is the same in all."""
    for name in KINDS:
        try:
            return place(name)
        except pytest.skip.Exception:
            continue
    pytest.skip("no sandbox works here")


def test_several_calls_of_one_exercise_share_its_memory(sandbox):
    code = "count = globals().get('count', 0)\ndef f(x): return x + 1"
    with session(sandbox) as opened, opened.exercise() as line:
        assert call(line, code, 1.0) == 2
        assert call(line, code, [[1, 2]]).tolist() == [[2, 3]]


def test_exercises_share_nothing(sandbox):
    with session(sandbox) as opened:
        with opened.exercise() as line:
            call(line, "import sys\nsys.mine = 1\ndef f(): return 1")
        with opened.exercise() as line:
            said = call(line, "import sys\ndef f(): return hasattr(sys, 'mine')")
            assert not said


def test_large_arrays_go_both_ways(best):
    large = np.arange(4_000_000.0)
    with session(best, Limits()) as opened, opened.exercise() as line:
        assert np.array_equal(call(line, DOUBLE, large, seconds=20), 2 * large)


def test_an_error_is_an_answer_and_the_line_stays_open(best):
    with session(best) as opened, opened.exercise() as line:
        assert call(line, "def f(): return 1 / 0").startswith("raised ZeroDivision")
        assert call(line, DOUBLE, 2) == 4


ASKS = """
def f(x):
    channel.send({"what": "callback", "n": 1}, [x])
    header, (back,) = channel.receive()
    channel.send({"what": "callback", "n": 2}, [back])
    header, (back,) = channel.receive()
    return back + header["plus"]
"""


def test_a_child_may_ask_back(sandbox):
    asked = []

    def answer(header, arrays):
        asked.append(header["n"])
        return {"plus": 100}, [arrays[0] * 10]

    with session(sandbox) as opened, opened.exercise() as line:
        line.answered(answer)
        assert call(line, ASKS, 3) == 400
    assert asked == [1, 2]


def test_the_time_of_an_answer_to_the_child_is_not_its_own(best):
    def slow(header, arrays):
        time.sleep(1.2)
        return {"plus": 0}, arrays

    with session(best) as opened, opened.exercise() as line:
        line.answered(slow)
        assert call(line, ASKS, 3, seconds=0.4) == 3


def test_who_only_asks_gets_no_more_time(best):
    code = """
def f():
    while True:
        channel.send({"what": "callback"}, [])
        channel.receive()
"""
    with session(best) as opened, opened.exercise() as line:
        line.answered(lambda header, arrays: ({}, []))
        assert outcome(line, code, seconds=0.5) == "lost timeout"


def test_each_call_has_its_own_seconds_of_the_processor(best):
    burn = """
import time
def f():
    end = time.process_time() + 0.5
    while time.process_time() < end:
        pass
    return 1
"""
    with session(best) as opened, opened.exercise() as line:
        for _ in range(3):
            assert call(line, burn, seconds=1) == 1
        assert outcome(line, burn, seconds=0.2) == "lost timeout"
        assert line._report["why"] == "timeout"  # not "stopped", by the clock


def test_all_calls_together_have_a_limit(best):
    burn = "def f():\n    while True: pass"
    with session(best, Limits(cpu=1)) as opened, opened.exercise() as line:
        told = outcome(line, burn, seconds=30)
    assert told in ("lost timeout", "lost killed SIGKILL")


def test_after_the_end_every_question_has_the_same_answer(best):
    with session(best) as opened, opened.exercise() as line:
        for _ in range(3):
            told = outcome(line, "import os\ndef f(): os._exit(3)")
            assert told == "lost ended exit status 3"


def test_what_was_answered_before_the_end_counts(best):
    code = """
import os, threading, time
def f():
    threading.Thread(target=lambda: (time.sleep(0.2), os._exit(0))).start()
    return 5
"""
    with session(best) as opened, opened.exercise() as line:
        assert call(line, code) == 5
        time.sleep(0.6)
        assert outcome(line, DOUBLE, 1) == "lost ended exit status 0"


def test_an_answer_and_the_end_at_once_is_an_answer(best, monkeypatch):
    send = Channel.send

    def slowly(*args):
        send(*args)
        time.sleep(0.7)  # until both are there: the answer, and the news of the end

    monkeypatch.setattr(Channel, "send", slowly)
    code = """
import numpy as np, os
def f():
    channel.send({"what": "result"}, [np.arange(3)])
    os._exit(0)
"""
    with session(best) as opened, opened.exercise() as line:
        assert outcome(line, code).tolist() == [0, 1, 2]


def test_an_error_of_ours_ends_the_child(sandbox):
    with session(sandbox) as opened:
        works(opened)
        before = set(marked())
        with pytest.raises(ZeroDivisionError), opened.exercise() as line:
            divmod(int(call(line, DOUBLE, 1)), 0)
        assert set(marked()) == before
        works(opened)
    assert not marked()


def test_when_a_sandbox_dies_the_others_have_one_of_their_own(sandbox):
    with session(sandbox) as opened:
        works(opened)
        first = set(marked())
        with opened.exercise() as line:
            call(line, DOUBLE, 1)
            for pid in first:
                os.kill(pid, signal.SIGKILL)
            with pytest.raises(Lost) as caught:
                call(line, "import time\ndef f(): time.sleep(100)", seconds=20)
        assert caught.value.reason == "killed"
        assert caught.value.sandbox
        works(opened)
        assert not marked()  # its own is already gone
        works(opened)
    assert not marked()


def test_a_sandbox_that_died_between_exercises_is_started_again(sandbox):
    with session(sandbox) as opened:
        works(opened)
        for pid in marked():
            os.kill(pid, signal.SIGKILL)
        # One that is about to end has no name any more, and does not answer yet.
        opened._box._process.wait(30)
        works(opened)


def test_two_sessions_side_by_side(sandbox):
    with session(sandbox) as one, session(sandbox) as other:
        with one.exercise() as left, other.exercise() as right:
            assert outcome(left, "import os\ndef f(): os._exit(1)").startswith("lost")
            assert call(right, DOUBLE, 4) == 8
        works(one)


def test_sessions_in_several_threads_do_not_meet(sandbox):
    codes = [
        DOUBLE,
        "import os\ndef f(x): os._exit(0)",
        DOUBLE,
        "def f(x): return 1 / 0",
    ]

    def one(code):
        with session(sandbox) as opened:
            with opened.exercise() as line:
                said = str(outcome(line, code, 2))
            works(opened)
        return said

    with ThreadPoolExecutor(len(codes)) as pool:
        said = list(pool.map(one, codes))
    assert said[0] == said[2] == "4"
    assert said[1].startswith("lost ended")
    assert said[3].startswith("raised ZeroDivisionError")
    assert not marked()


def test_nothing_is_left_open_here(best):
    def count():
        return len(os.listdir("/proc/self/fd"))

    with session(best) as opened:
        works(opened)
        before = count()
        for _ in range(10):
            works(opened)
            with opened.exercise() as line:
                outcome(line, "import os\ndef f(): os._exit(0)")
        assert count() == before


PARENT = """
import sys, time
sys.path.insert(0, {tests!r})
from pathlib import Path
from attnlib.grading.session import Session
from grading_places import KINDS, SERVE, call
sandbox = KINDS[{kind!r}](Path({room!r}))
with Session(sandbox, serve=SERVE) as opened, opened.exercise() as line:
    call(line, "def f(): return 1")
    print("ready", flush=True)
    call(line, {code!r}, seconds=100)
"""
STAYS = """
import os, time
def f():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True:
                time.sleep(1)
        os._exit(0)
    while True:
        time.sleep(1)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_outlives_the_grader(sandbox, number):
    """Ctrl-C, an end, and a violent end."""
    code = PARENT.format(
        tests=str(Path(__file__).parent),
        kind=sandbox.name,
        room=str(room()),
        code=STAYS,
    )
    grader = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with grader:
        assert grader.stdout is not None
        assert grader.stdout.readline() == "ready\n"
        time.sleep(0.5)
        assert len(marked()) >= 4  # the grader, the supervisor, a child, its own
        grader.send_signal(number)
        grader.wait(30)
    deadline = time.monotonic() + 30
    while marked() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not marked()


def test_a_session_that_is_not_used_starts_nothing(best):
    with Session(best, serve=SERVE):
        assert not marked()


def test_a_stranger_cannot_make_us_read_for_ever(best):
    """A drop at a time: the time of the call is the time of its whole answer."""
    code = """
import os, time
def f():
    os.write(3, b"AbH1" + b"\\0\\0\\1\\0" + b"\\0" * 8)
    while True:
        os.write(3, b"[")
        time.sleep(0.02)
"""
    with session(best) as opened, opened.exercise() as line:
        assert outcome(line, code, seconds=0.3) == "lost timeout"
