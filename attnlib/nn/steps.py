"""One step of training in its right order, in pieces that can be shown.

    zero_grad -> forward under autocast -> scale -> backward -> unscale_ -> clip ->
    step -> update

The middle part belongs to mixed precision. float16 has no number between 0 and 6e-8,
and small gradients would be lost; so the loss is multiplied by a large number before
`backward`, and the gradients are divided by it before anyone reads them. If they
overflow, the step is skipped and the number is halved. Without a scaler and a dtype
the same function is an ordinary step, in float64, too.

`torch.amp.GradScaler("cpu")` does all this on a CPU: slowly, but with the same numbers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from attnlib.nn.shapes import short


@dataclass(frozen=True)
class Step:
    """What one step did."""

    loss: float  #       not scaled
    grad_norm: float  #  of all gradients together, as clipping saw them
    update: float  #     how far the parameters moved, as a norm
    scale: float  #      what the loss was multiplied by
    skipped: bool  #     whether the gradients had overflowed


@dataclass(frozen=True)
class Dtypes:
    """In which types the numbers of one step are kept: name -> dtype."""

    parameters: dict[str, str]
    activations: dict[str, str]  # what each Linear returned
    gradients: dict[str, str]
    loss: str


def training_step(
    model: nn.Module,
    loss: Callable[[], Tensor],
    optimiser: torch.optim.Optimizer,
    *,
    clip: float = 1.0,
    dtype: torch.dtype | None = None,
    scaler: torch.amp.GradScaler | None = None,
) -> Step:
    """Do one step of training, with everything in its right order.

    update = -lr g min(1, clip / |g|) for SGD, where g = gradient(scale loss) / scale

    Args:
        model: its parameters are changed in place. No shape.
        loss: runs the model and returns a scalar tensor.
        optimiser: holds the parameters of the model.
        clip: the largest norm of all gradients together.
        dtype: what autocast computes in, torch.float16 or torch.bfloat16; without one
            there is no autocast.
        scaler: multiplies the loss; without one it stays as it is.

    Returns:
        loss, grad_norm, update, scale and skipped.

    Raises:
        RuntimeError: the loss depends on no parameter.
        ValueError: the parameters themselves are float16, which no scaler unscales.

    Cost: a forward and a backward pass, and 4 passes over the parameters.
    Source: Micikevicius et al. 2018, section 3; the examples of torch.amp.
    Lesson: 09.

    >>> line, x = nn.Linear(2, 1, bias=False), torch.tensor([[3.0, 4.0]])
    >>> sgd = torch.optim.SGD(line.parameters(), lr=0.5)
    >>> scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    >>> done = training_step(line, lambda: line(x).sum(), sgd, scaler=scaler)
    >>> round(done.grad_norm, 3), round(done.update, 3), done.scale
    (5.0, 0.5, 1024.0)
    """
    optimiser.zero_grad()
    value = forward(model, loss, dtype)
    scaled(value, scaler).backward()  # type: ignore[no-untyped-call]
    if scaler is not None:
        scaler.unscale_(optimiser)
    norm = nn.utils.clip_grad_norm_(model.parameters(), clip).item()
    return _update(model, value, norm, optimiser, scaler)


def step_without_unscale(
    model: nn.Module,
    loss: Callable[[], Tensor],
    optimiser: torch.optim.Optimizer,
    *,
    clip: float = 1.0,
    dtype: torch.dtype | None = None,
    scaler: torch.amp.GradScaler | None = None,
) -> Step:
    """Do one step as the articles' pieces make it: clipped while still scaled.

    update = -lr g min(1, clip / (scale |g|)) for SGD

    The gradients are still multiplied by the scale when they are clipped, so that the
    norm is `scale` times too large, every step is clipped, and the optimiser gets
    gradients of a norm of clip / scale at most. Adam hides it: it divides by the size
    of the gradients, and only its epsilon and the clipping itself go wrong.

    Args:
        model: its parameters are changed in place. No shape.
        loss: runs the model and returns a scalar tensor.
        optimiser: holds the parameters of the model.
        clip: the largest norm of all gradients together, times the scale.
        dtype: what autocast computes in.
        scaler: multiplies the loss.

    Returns:
        loss, grad_norm, update, scale and skipped.

    Raises:
        RuntimeError: the loss depends on no parameter.
        ValueError: the parameters themselves are float16.

    Cost: as `training_step`.
    Source: what to avoid: the warning in the examples of torch.amp.
    Lesson: 09.

    >>> line, x = nn.Linear(2, 1, bias=False), torch.tensor([[3.0, 4.0]])
    >>> sgd = torch.optim.SGD(line.parameters(), lr=0.5)
    >>> scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    >>> done = step_without_unscale(line, lambda: line(x).sum(), sgd, scaler=scaler)
    >>> round(done.grad_norm, 3), f"{done.update:.1e}"
    (5120.0, '4.9e-04')
    """
    optimiser.zero_grad()
    value = forward(model, loss, dtype)
    scaled(value, scaler).backward()  # type: ignore[no-untyped-call]
    norm = nn.utils.clip_grad_norm_(model.parameters(), clip).item()
    return _update(model, value, norm, optimiser, scaler)


def forward(
    model: nn.Module, loss: Callable[[], Tensor], dtype: torch.dtype | None
) -> Tensor:
    """Run the forward pass in a smaller float type, where autocast finds it safe.

    y = cast(x) cast(W)^T + cast(b) in each Linear; the parameters stay as they are

    Args:
        model: says on which device autocast has to work. No shape.
        loss: runs the model and returns a scalar tensor.
        dtype: torch.float16 or torch.bfloat16; None computes as ever.

    Returns:
        The loss, a scalar tensor.

    Raises:
        Whatever the loss raises.

    Cost: a forward pass, and a copy of each weight in the smaller type.
    Source: the documentation of torch.autocast.
    Lesson: 09.

    >>> line = nn.Linear(2, 1)
    >>> forward(line, lambda: line(torch.ones(1, 2)).sum(), torch.bfloat16).dtype
    torch.bfloat16
    """
    if dtype is None:
        return loss()
    with torch.autocast(_device(model), dtype=dtype):
        return loss()


def scaled(loss: Tensor, scaler: torch.amp.GradScaler | None) -> Tensor:
    """Multiply the loss, so that no small gradient becomes 0 on the way back.

    scale loss, and so every gradient is multiplied by the scale as well

    Args:
        loss: a scalar tensor.
        scaler: knows the scale; without one the loss stays as it is.

    Returns:
        A scalar tensor.

    Raises:
        Nothing of its own.

    Cost: one product.
    Source: Micikevicius et al. 2018, section 3.2.
    Lesson: 09.

    >>> scaled(torch.tensor(0.5), torch.amp.GradScaler("cpu", init_scale=1024.0)).item()
    512.0
    """
    if scaler is None:
        return loss
    # The scale is float32, and so is the product: float16 has nothing above 65504.
    return scaler.scale(loss)


def dtypes(
    model: nn.Module, loss: Callable[[], Tensor], dtype: torch.dtype | None
) -> Dtypes:
    """Say in which types a step keeps its numbers: parameters, activations, gradients.

    y = cast(x) cast(W)^T + cast(b) in each Linear; the parameters stay as they are

    The gradients are left where `backward` puts them.

    Args:
        model: the model, with at least one nn.Linear. No shape.
        loss: runs the model and returns a scalar tensor.
        dtype: what autocast computes in, or None.

    Returns:
        The types by name of the parameter or of the Linear.

    Raises:
        RuntimeError: the loss depends on no parameter.

    Cost: a forward and a backward pass.
    Source: the documentation of torch.autocast.
    Lesson: 09.

    >>> line = nn.Linear(2, 1, bias=False)
    >>> found = dtypes(line, lambda: line(torch.ones(1, 2)).sum(), torch.bfloat16)
    >>> found.parameters, found.gradients
    ({'weight': 'float32'}, {'weight': 'float32'})
    >>> found.activations
    {'the model itself': 'bfloat16'}
    """
    activations: dict[str, str] = {}

    def note(name: str) -> Callable[[nn.Module, Any, Tensor], None]:
        def hook(module: nn.Module, inputs: Any, output: Tensor) -> None:
            activations[name] = short(output)

        return hook

    with contextlib.ExitStack() as hooks:
        for name, part in model.named_modules():
            if isinstance(part, nn.Linear):
                handle = part.register_forward_hook(note(name or "the model itself"))
                hooks.callback(handle.remove)
        value = forward(model, loss, dtype)
    value.backward()  # type: ignore[no-untyped-call]
    named = dict(model.named_parameters())
    return Dtypes(
        parameters={name: short(p) for name, p in named.items()},
        activations=activations,
        gradients={n: short(p.grad) for n, p in named.items() if p.grad is not None},
        loss=short(value),
    )


def _update(
    model: nn.Module,
    loss: Tensor,
    norm: float,
    optimiser: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler | None,
) -> Step:
    """Let the optimiser step, or the scaler skip it; measure what has moved."""
    before = [p.detach().clone() for p in model.parameters()]
    scale, skipped = 1.0, False
    if scaler is None:
        optimiser.step()
    else:
        scale = scaler.get_scale()
        scaler.step(optimiser)  # unscales first, if nobody has
        scaler.update()
        skipped = scaler.get_scale() < scale
    moved = [
        torch.linalg.vector_norm((p.detach() - old).double())
        for p, old in zip(model.parameters(), before, strict=True)
    ]
    update = torch.linalg.vector_norm(torch.stack(moved)).item()
    return Step(loss.item(), norm, update, scale, skipped)


def _device(model: nn.Module) -> str:
    return next(model.parameters()).device.type
