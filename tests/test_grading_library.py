"""What of attnlib an answer is given: what it imports where everybody can read it."""

from __future__ import annotations

import json
import subprocess
from types import SimpleNamespace

import grading_lines as lines
import pytest
from grading_places import room

from attnlib import exercises
from attnlib.grading.library import given
from attnlib.grading.sandbox import place as places
from attnlib.grading.sandbox import room as rooms
from attnlib.grading.student import grade


def modules(*sources):
    return set(given(sources))


ATTENTION = {"attnlib/attention.py", "attnlib/shapes.py"}


@pytest.mark.parametrize(
    "source",
    [
        "from attnlib.attention import softmax",
        "from attnlib import attention as a",
        "import attnlib.attention as a",
        "def f(x):\n    from attnlib.attention import softmax\n    return softmax(x)",
        "try:\n    from attnlib import attention\nexcept ImportError:\n    pass",
    ],
)
def test_a_module_comes_with_what_it_imports_and_no_other(source):
    assert modules("import numpy as np", source) == ATTENTION


def test_a_package_comes_with_a_module_of_it():
    found = modules("from attnlib.nn import gates")
    assert {"attnlib/nn/__init__.py", "attnlib/nn/gates.py"} <= found
    assert "attnlib/nn/models/whisper.py" not in found


@pytest.mark.parametrize(
    "source",
    [
        "import attnlib",
        "import attnlib.masks",  # it binds attnlib, and other cells import the rest
        "from attnlib import *",
        "f = __import__('attnlib.masks').masks.causal",
        "import importlib\nm = importlib.import_module('attnlib' + '.masks')",
    ],
)
def test_where_any_part_may_be_meant_all_parts_come(source):
    found = modules(source)
    assert {"attnlib/heads.py", "attnlib/nn/train.py", "attnlib/masks.py"} <= found


@pytest.mark.parametrize(
    "source",
    [
        "x = 1",
        "def f(x):\n    '''As in attnlib.attention.'''  # attnlib\n    return x",
        "from attnlibrary import attention",
        "m = __import__('att' + 'nlib.masks')",
        "(",
    ],
)
def test_what_does_not_import_attnlib_is_given_nothing(source):
    assert modules(source) == set()


def test_what_knows_the_answers_is_never_given():
    for source in ("import attnlib", "from attnlib.exercises.lesson_01 import softmax"):
        parts = {path.split("/")[1] for path in modules(source)}
        assert not parts & {*rooms.LEFT_OUT}


GIVE = """
import json, sys
sys.path[:0] = [{room!r}, *{packages!r}]
from attnlib.grading.inside import library, student
library.give(json.loads(sys.stdin.read()))
"""


def run(source, code):
    """Code in the room, after an answer with this source was given its modules."""
    start = GIVE.format(room=str(room()), packages=rooms.packages())
    return subprocess.run(
        [places.python(), "-S", "-B", "-c", start + code],
        input=json.dumps(given([source])),
        capture_output=True,
        text=True,
        check=False,
        env=places.ENVIRONMENT,
        cwd="/",
    )


def test_a_module_that_was_given_is_as_if_it_lay_in_the_room():
    code = """
import inspect
from attnlib import attention
from attnlib.attention import softmax
print(softmax([0.0, 0.0]).tolist(), attention.__file__)
print(inspect.getsource(softmax).splitlines()[0][:12])
try:
    softmax("x")
except Exception as error:
    import traceback
    print("attention.py" in traceback.format_exc())
try:
    import attnlib.masks
except ImportError as error:
    print(error)
"""
    done = run("from attnlib import attention", code)
    first, *more = done.stdout.splitlines()
    assert first == f"[0.5, 0.5] {room()}/attnlib/attention.py", done.stderr
    assert more[:2] == ["def softmax(", "True"]
    assert more[2] == "No module named 'attnlib.masks'"


def test_the_name_attnlib_has_all_parts():
    code = """
import attnlib
from attnlib.exercises.on_chip import Chip
print(attnlib.masks.causal(2).tolist(), attnlib.tiles.Chip is Chip)
print(len(list(attnlib.tiles.ranges(5, 2))), hasattr(attnlib, "no_such_part"))
from attnlib.results import stored
print(len(stored("help_desk")) > 0)
"""
    done = run("import attnlib", code)
    assert done.stdout.split("\n")[:3] == [
        "[[True, False], [True, True]] True",
        "3 False",
        "True",
    ], done.stderr


def test_without_an_import_there_is_no_attention():
    code = """
for name in ("attention", "masks", "nn", "tiles.forward", "heads", "lowrank"):
    try:
        __import__("attnlib." + name)
        print(name)
    except ImportError:
        pass
print([n for n, m in sys.modules.items() if "scaled_dot_product" in vars(m)])
"""
    done = run("", code)
    assert done.stdout == "[]\n", done.stderr


def test_ways_to_hide_a_name_are_noted_and_cost_nothing():
    text = exercises.get("softmax").solution_source
    hidden = text.replace("np.exp", "getattr(np, 'e' + 'xp')")
    for answer, noted in ((text, False), (hidden, True)):
        sources = ("import numpy as np", answer)
        cells = [{"cell_type": "code", "source": source} for source in sources]
        handed = SimpleNamespace(
            data=json.dumps({"cells": cells}).encode(),
            student="ada",
            where="ada.ipynb",
            problem="",
        )
        one = grade(handed, [exercises.get("softmax")], "s", lines.ForkedSession)
        assert one.grades[0].status == "passed"
        assert any("getattr" in n for n in one.grades[0].notes) == noted
