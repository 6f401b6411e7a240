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
PAIRS = {  # the seed draws the size
    "plain: dropout always and causal one ahead": 0,
    "plain: mask added and padding on the queries": 0,
    "plain: mask multiplied and causal strict": 0,
    "plain: mask turned round and empty not thought of": 0,
    "plain: roles keys are said and mask turned round": 0,
    "plain: combine padding dropped and causal strict": 1,
}


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", PAIRS)
def test_both_are_named(name):
    specimen = ZOO[name]
    module = specimen.make(np.random.default_rng(PAIRS[name]), "float64")
    report = examine(module, **specimen.intent)
    assert set(report.codes) == specimen.codes, str(report)
    assert report.unknown is None
