"""PyTorch tensors, without importing torch before a function wants one.

Cases, families and matching are NumPy, also here: the arguments become tensors just
before the learner's function is called, and `read` turns its results back.
"""

from __future__ import annotations

import contextlib
import importlib
import random
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np


class _Late:
    """Stands for a module that is imported when something of it is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self._name), attribute)


# For the solutions in `lesson_NN.py`: they read as they would in a notebook.
torch = _Late("torch")
F = _Late("torch.nn.functional")


def as_tensors(args: tuple[object, ...]) -> tuple[object, ...]:
    """The same arguments, each array as a tensor that shares its memory.

    Shared, so that a change in place is seen in the array afterwards.
    """
    return tuple(
        torch.from_numpy(np.ascontiguousarray(a)) if isinstance(a, np.ndarray) else a
        for a in args
    )


def draw() -> None:
    """Take random numbers, so that the next ones are others."""
    random.random()
    np.random.random()  # noqa: NPY002 - a learner may use either
    if loaded():
        torch.rand(1)


def loaded() -> tuple[ModuleType, ...]:
    """The modules of torch that an answer may have patched; none if it is not there."""
    names = ("torch", "torch.nn.functional", "torch.nn", "torch.linalg")
    found = (sys.modules.get(name) for name in names)
    return tuple(module for module in found if module is not None)


@contextlib.contextmanager
def settings_put_back() -> Iterator[None]:
    """Undo what an answer set for all of torch: dtype, threads, gradients, the dice."""
    if not loaded():
        yield
        return
    dice = torch.random.get_rng_state()
    dtype, threads = torch.get_default_dtype(), torch.get_num_threads()
    device, gradients = torch.get_default_device(), torch.is_grad_enabled()
    on_gpu = torch.cuda.is_initialized()
    gpu_dice = torch.cuda.get_rng_state_all() if on_gpu else []
    strict, fast = torch.are_deterministic_algorithms_enabled(), torch.backends.mha
    fast_path, precision = fast.get_fastpath_enabled(), _precision()
    printing = vars(importlib.import_module("torch._tensor_str").PRINT_OPTS)
    printed = dict(printing)
    try:
        yield
    finally:
        torch.random.set_rng_state(dice)
        if gpu_dice:
            torch.cuda.set_rng_state_all(gpu_dice)
        if torch.are_deterministic_algorithms_enabled() != strict:
            torch.use_deterministic_algorithms(strict)
        fast.set_fastpath_enabled(fast_path)
        if _precision() != precision:
            torch.set_float32_matmul_precision(precision)
        torch.set_default_dtype(dtype)
        torch.set_grad_enabled(gradients)
        printing.update(printed)
        if torch.get_default_device() != device:
            torch.set_default_device(None if device.type == "cpu" else device)
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)


def _precision() -> str:
    return str(torch.get_float32_matmul_precision())
