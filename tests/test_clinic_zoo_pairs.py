"""Pairs of module mistakes of the zoo that are named, both, and nothing else."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from attnlib.clinic import examine

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))

from zoo import switchboard_module

ZOO = {
    s.name.removeprefix("switched module, "): s for s in switchboard_module.SPECIMENS
}
PAIRS = (
    "plain: dropout always and causal one ahead",
    "plain: mask added and padding on the queries",
    "plain: mask multiplied and causal strict",
    "plain: mask turned round and empty not thought of",
    "plain: roles keys are said and mask turned round",
)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", PAIRS)
def test_both_are_named(name):
    specimen = ZOO[name]
    module = specimen.make(np.random.default_rng(0), "float64")
    report = examine(module, **specimen.intent)
    assert set(report.codes) == specimen.codes, str(report)
    assert report.unknown is None
