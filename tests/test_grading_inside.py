"""One whole submission in every sandbox: real answers, real grades, one by one."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass

import pytest
from grading_places import KINDS, place

from attnlib.exercises import get
from attnlib.grading.sandbox.limits import Limits
from attnlib.grading.session import Session
from attnlib.grading.student import grade

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the sandboxes are those of Linux"
)


@dataclass(frozen=True)
class Handed:
    """A file as a student hands it in."""

    data: bytes
    student: str = "ada"
    where: str = "ada.ipynb"
    problem: str = ""


def notebook(*sources: str) -> Handed:
    cells = [{"cell_type": "code", "source": source} for source in sources]
    return Handed(json.dumps({"cells": cells}).encode())


@pytest.fixture(params=KINDS)
def sandbox(request):
    return place(request.param)


def graded(sandbox, handed, *names):
    exercises = [get(name) for name in names]

    def new(torch):
        return Session(sandbox, Limits(), torch=torch)

    said = grade(handed, exercises, "secret", new)
    return {one.exercise: one for one in said.grades}


def test_tensors_come_back_from_every_sandbox(sandbox):
    handed = notebook(
        "import torch\nfrom torch.nn import functional as F",
        get("match_sdpa").solution_source,
    )
    grades = graded(sandbox, handed, "match_sdpa")
    assert grades["match_sdpa"].status == "passed"


def test_a_kernel_runs_on_a_chip_in_every_sandbox(sandbox):
    """Its chip is that of the judge, also where the answer imports the package."""
    handed = notebook(
        "import numpy as np\nfrom attnlib import nn, tiles",
        get("tiled_attention").solution_source,
    )
    assert graded(sandbox, handed, "tiled_attention")["tiled_attention"].status == (
        "passed"
    )


def test_the_grades_do_not_depend_on_the_sandbox():
    handed = notebook(
        "import numpy as np",
        "def softmax(x, axis=-1):\n    return np.exp(x) / np.exp(x).sum()",
        "def weighted_mean(weights, values):\n    return values.mean()",
    )
    said = [graded(place(name), handed, "softmax", "weighted_mean") for name in KINDS]
    assert all(one == said[0] for one in said)
    assert said[0]["softmax"].status == "mistake"
