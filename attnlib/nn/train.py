"""A training loop for small models: it can be watched, and it can be stopped.

Ctrl-C, or Interrupt Kernel in a notebook, ends it after the step that is running. All
parameters are then from the same step, and the next cell finds a model that works.
"""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Literal

import torch
from torch import Tensor, nn

from attnlib.shapes import ShapeError, size

Report = Callable[[int, float], object]  # (how many steps are done, the loss)
_OPTIMISERS = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}


@dataclass(frozen=True, repr=False)
class Trained:
    """What happened in a training; printed, it is one sentence."""

    steps: int  #                     how many were done
    losses: tuple[float, ...]  #      of every step, before its update
    grad_norms: tuple[float, ...]  #  of all gradients together, before clipping
    interrupted: bool  #              whether someone stopped it
    planned: int  #                   how many were asked for

    def __repr__(self) -> str:
        if self.interrupted:
            return (
                f"Interrupted after {self.steps} of {self.planned} steps; the model "
                "keeps what it has learned."
            )
        if not self.losses:
            return "No steps; the model is as it was."
        first, last = self.losses[0], self.losses[-1]
        return f"{self.steps} steps; the loss went from {first:.2f} to {last:.2f}."


def train(
    model: nn.Module,
    loss: Callable[[int], Tensor],
    steps: int,
    *,
    lr: float | Callable[[int], float],
    optimiser: Literal["adam", "sgd"] = "adam",
    clip: float | None = 1.0,
    report: Report | None = None,
    allow_nonfinite: bool = False,
) -> Trained:
    """Train a model for a number of steps, each on the loss of a batch of its own.

    each step: loss, gradients, clip them to a norm of `clip`, update

    An interrupt ends it after the step that is running, and a second one at once, yet
    never in the middle of an update; then one sentence is printed. While it runs, the
    model is in training mode, and afterwards in the mode that it was in before.

    Args:
        model: its parameters are changed in place. No shape.
        loss: gets the number of the step, from 0, draws its batch itself and returns a
            scalar tensor.
        steps: how many.
        lr: the learning rate, or a function from the number of the step to it.
        optimiser: "adam" or "sgd", with PyTorch's usual settings.
        clip: the largest norm of all gradients together; None leaves them as they are.
        report: called after every step with the number of steps done and the loss;
            `attnlib.widgets.progress` makes one. If it has a method `close`, that is
            called at the end, however the training ends; and a method `stop`, after an
            interrupt.
        allow_nonfinite: whether to go on, NaN and all, instead of raising.

    Returns:
        The steps done, the loss and the norm of the gradients of each, and whether it
        was interrupted.

    Raises:
        FloatingPointError: a loss or a gradient is not finite; the model is as it was
            before that step.
        TypeError: the loss is no floating tensor, or steps not a whole number.
        ShapeError: the loss is no scalar, or steps is negative.
        ValueError: the loss depends on no parameter, clip is not above 0, or there is
            no such optimiser.

    Cost: steps times a forward and a backward pass.
    Source: Kingma and Ba 2015 (Adam); Pascanu et al. 2013 (clipping).
    Lesson: 05, 09.

    >>> line, x = nn.Linear(1, 1, bias=False), torch.ones(4, 1)
    >>> trained = train(line, lambda step: ((line(x) - 2) ** 2).mean(), 200, lr=0.1)
    >>> trained.steps, round(line.weight.item(), 2)
    (200, 2.0)
    """
    steps = size("steps", steps)
    if optimiser not in _OPTIMISERS:
        raise ValueError(
            f"optimiser must be one of {', '.join(_OPTIMISERS)}, but it is "
            f"{optimiser!r}."
        )
    if clip is not None and not clip > 0:
        raise ValueError(f"clip must be larger than 0, or None, but it is {clip}.")
    parameters = [p for p in model.parameters() if p.requires_grad]
    if not parameters:
        raise ValueError("the model has no parameters to train.")
    largest = math.inf if clip is None else clip
    losses: list[float] = []
    norms: list[float] = []
    interrupted, was_training = False, model.training
    model.train()
    try:
        with _stoppable() as stop:
            # The first optimiser of a program takes a second or two to load.
            first_lr = lr(0) if callable(lr) else lr
            chosen = _OPTIMISERS[optimiser](parameters, lr=first_lr)
            for step in range(steps):
                if stop.asked:
                    break
                if callable(lr):
                    for group in chosen.param_groups:
                        group["lr"] = lr(step)
                chosen.zero_grad()
                value = _checked(loss(step), step)
                value.backward()  # type: ignore[no-untyped-call]
                norm = nn.utils.clip_grad_norm_(parameters, largest).item()
                if not allow_nonfinite:
                    _check_finite(step, value.item(), norm, losses)
                with stop.later():
                    chosen.step()
                    losses.append(value.item())
                    norms.append(norm)
                if report is not None:
                    report(step + 1, losses[-1])
            interrupted = stop.asked
    except KeyboardInterrupt:
        interrupted = True
    finally:
        model.zero_grad()
        model.train(was_training)
        close = getattr(report, "close", None)
        if close is not None:
            close()
    trained = Trained(len(losses), tuple(losses), tuple(norms), interrupted, steps)
    if interrupted:
        print(trained)
        stop_more = getattr(report, "stop", None)
        if stop_more is not None:
            stop_more()
    return trained


class _Stop:
    """Whether someone has asked to stop, and whether that has to wait."""

    def __init__(self) -> None:
        self.asked = False
        self._updating = False

    def ask(self, number: int, frame: FrameType | None) -> None:
        """Handle SIGINT: the first is noted, the next one raises, but in an update."""
        if self.asked and not self._updating:
            raise KeyboardInterrupt
        self.asked = True

    @contextmanager
    def later(self) -> Iterator[None]:
        """Let no interrupt raise in this block: half an update is no model."""
        self._updating = True
        try:
            yield
        finally:
            self._updating = False


@contextmanager
def _stoppable() -> Iterator[_Stop]:
    """Take over SIGINT, which Interrupt Kernel sends, too, for this block."""
    stop = _Stop()
    before = signal.getsignal(signal.SIGINT)
    # Other threads may set no handler, and no interrupt reaches them.
    if before is None or threading.current_thread() is not threading.main_thread():
        yield stop
        return
    signal.signal(signal.SIGINT, stop.ask)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)


def _checked(value: object, step: int) -> Tensor:
    if not isinstance(value, Tensor) or not value.dtype.is_floating_point:
        kind = getattr(value, "dtype", type(value).__name__)
        raise TypeError(
            f"the loss of step {step} must be a floating torch.Tensor, but it is a "
            f"{kind}."
        )
    if value.ndim:
        raise ShapeError(
            f"the loss of step {step} must be one number, but its shape is "
            f"{tuple(value.shape)}; take its mean."
        )
    if not value.requires_grad:
        raise ValueError(
            f"the loss of step {step} depends on no parameter of the model."
        )
    return value


def _check_finite(step: int, loss: float, norm: float, losses: list[float]) -> None:
    """Raise before the update: afterwards every parameter would be NaN."""
    if math.isfinite(loss) and math.isfinite(norm):
        return
    what = f"the loss of step {step} is {loss}"
    if math.isfinite(loss):
        what = f"a gradient of step {step} is not finite, though its loss is {loss:.3g}"
    if not losses:
        raise FloatingPointError(f"{what}; the model was not changed.")
    raise FloatingPointError(
        f"{what}; the last finite loss was {losses[-1]:.3g}, and the model is as step "
        f"{step - 1} left it."
    )
