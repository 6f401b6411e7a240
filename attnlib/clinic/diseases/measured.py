"""Numbers that the runs of several mistakes read off attention weights."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from attnlib.clinic import probes
from attnlib.clinic.case import RIGHT, Case, Faults, call
from attnlib.clinic.families.heads import MULTI_HEAD

Float = npt.NDArray[np.floating]
SEED = 7  # of the numbers that the runs draw; any other shows the same


def drawn(*shapes: tuple[int, ...]) -> list[Float]:
    """One table of normal numbers for each shape, the same in every run."""
    rng = np.random.default_rng(SEED)
    return [rng.normal(size=shape) for shape in shapes]


@contextmanager
def unseeded() -> Iterator[None]:
    """For runs with PyTorch: its own random numbers go on afterwards as before."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        yield


def slope(weights: Float, raw_scores: Float, d_k: int) -> float:
    """How steeply the log of the weights rises with q·k / √d_k; 1 is right.

    Differences inside a row are compared, so the sum of a row does not matter.
    """
    logs = np.log(weights)
    y = logs - logs.mean(axis=-1, keepdims=True)
    x = (raw_scores - raw_scores.mean(axis=-1, keepdims=True)) / math.sqrt(d_k)
    return float((x * y).sum() / (x * x).sum())


def entropy(weights: Float) -> Float:
    """In nats, row by row."""
    logs = np.log(np.where(weights > 0, weights, 1))
    return np.asarray(-(weights * logs).sum(axis=-1))


def xray(faults: Faults = RIGHT) -> tuple[Float, Float]:
    """The weights (3, 4, 4) of a multi-head attention, and its raw scores q·k.

    They are read off the output: each value is the number of its token, and W_o
    changes nothing. d_model = 12, d_k = 2.
    """
    case = _xray_case()
    outcome = call(MULTI_HEAD, case, faults)
    view = MULTI_HEAD.see(case, outcome.arrays)
    return np.asarray(view.weights, float), np.asarray(view.raw_scores, float)


def xray_masked(lengths: list[int], faults: Faults = RIGHT) -> Float:
    """The weights (2, 3, 4, 4) of two sentences with padding, read off the output."""
    x, *others = _xray_case().args
    tokens = np.stack([np.asarray(x)] * 2)
    real = np.arange(4) < np.asarray(lengths)[:, None, None]
    mask = np.broadcast_to(real, (2, 4, 4))
    case = Case("two sentences with padding", (tokens, *others, mask))
    out = call(MULTI_HEAD, case, faults).arrays[0].astype(float)
    return np.asarray(np.moveaxis(out.reshape(2, 4, 3, 4), -2, -3))


def _xray_case() -> Case:
    return probes.xray(np.random.default_rng(SEED))
