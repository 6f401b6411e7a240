"""The chart of a patient: what is measured of an attention while it is trained.

The numbers come from `attnlib.diagnostics`. Rows of fillers are left out everywhere:
nobody reads what they look at.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt
import torch

from attnlib import diagnostics
from attnlib.nn.patients import BATCH, RATE, Patient
from attnlib.nn.periods import N_HEADS, PeriodModel, Texts, draw_texts
from attnlib.nn.train import Report, train
from attnlib.shapes import Array, size

Rows = npt.NDArray[np.bool_]  # (batch, n)
EVERY = 6  # steps between two entries of a chart
STEPS = 90
PROBES = 50  # texts that are measured


@dataclass(frozen=True)
class Signs:
    """The vital signs of one attention at one moment; most are one number a head."""

    loss: float
    keys: Array  #       (n_heads,) how many keys a query uses, e^(mean entropy)
    saturated: Array  #  (n_heads,) share of rows with a weight above 0.99
    sink: Array  #       (n_heads,) weight on the first real token, from the second on
    loudness: Array  #   (n_heads,) root mean square of what a head mixes
    gradient: Array  #   (n_heads,) norm of the gradients of its W_q and W_k
    nan_weights: float  #   share of the weights, fillers' rows too, that are NaN
    nan_gradient: float  #  share of all gradients' numbers that are NaN


@dataclass(frozen=True)
class Chart:
    """The signs of one patient over a training."""

    name: str
    steps: tuple[int, ...]
    signs: tuple[Signs, ...]  # one for each of the steps

    def curve(self, name: str) -> Array:
        """One sign over the steps, (n_entries,) or (n_entries, n_heads)."""
        if name not in SIGNS:
            raise ValueError(f"a chart has {', '.join(SIGNS)}, but no {name!r}.")
        return np.array([getattr(sign, name) for sign in self.signs])


SIGNS = tuple(field.name for field in fields(Signs))


def measure(model: PeriodModel, texts: Texts) -> Signs:
    """Take the vital signs of a model's attention on a batch of texts.

    keys_h = e^(mean over real rows of H(w_hi)), and so on; see `Signs`

    Args:
        model: it is not changed. No shape.
        texts: ids and real, (batch, n) each.

    Returns:
        The loss, five numbers for each head, (n_heads,), and two shares of NaN.

    Raises:
        Nothing of its own.

    Cost: a forward and a backward pass, and one pass over the weights.
    Source: the names of the course.
    Lesson: 10.

    >>> from attnlib.nn.patients import admit
    >>> patient = admit("healthy")
    >>> texts = patient.texts(3, torch.Generator().manual_seed(0))
    >>> measure(patient.model, texts).keys.shape
    (4,)
    """
    stages = model.stages(texts)
    loss = model.loss(texts)
    parameters = tuple(model.parameters())
    gradients = torch.autograd.grad(loss, parameters)
    numbers = torch.cat([gradient.flatten() for gradient in gradients])
    slopes = [
        g
        for p, g in zip(parameters, gradients, strict=True)
        if p is model.W_q or p is model.W_k
    ]
    by_head = torch.stack(slopes).reshape(2, -1, N_HEADS, model.d_k)
    weights, mixed = (
        stage.detach().numpy() for stage in (stages.weights, stages.mixed)
    )
    real = texts.real.numpy()
    at_first = _on_first(weights, real)
    return Signs(
        loss=loss.item(),
        keys=np.exp(_mean(diagnostics.entropy(weights), real)),
        saturated=_mean(_saturated(weights), real),
        sink=_mean(at_first, real & ~_first(real)),
        loudness=np.sqrt(_mean((mixed**2).mean(-1), real)),
        gradient=torch.linalg.vector_norm(by_head, dim=(0, 1, 3)).numpy(),
        nan_weights=float(np.isnan(weights).mean()),
        nan_gradient=torch.isnan(numbers).double().mean().item(),
    )


def even(texts: Texts) -> tuple[float, float]:
    """Give the signs of weights that are even over all keys a query may look at.

    keys = e^(mean ln i), sink = mean 1/i, where row i may look at i keys

    Args:
        texts: ids and real, (batch, n) each.

    Returns:
        What `measure` would give for `keys` and for `sink`: no head is above the
        first unless it looks where it must not.

    Raises:
        Nothing of its own.

    Cost: one pass over the tokens.
    Source: the entropy of even weights is ln n.
    Lesson: 10.

    >>> ids = torch.tensor([[3, 5]])
    >>> keys, sink = even(Texts(ids, ids > 0))
    >>> round(keys, 4), sink
    (1.4142, 0.5)
    """
    allowed = texts.real.cumsum(1)[texts.real].double()
    later = allowed[allowed > 1]
    return allowed.log().mean().exp().item(), (1 / later).mean().item()


def watch(
    patient: Patient,
    steps: int = STEPS,
    *,
    seed: int = 1,
    report: Report | None = None,
) -> Chart:
    """Train a patient, and keep its chart.

    Adam at a rate of 0.01, gradients clipped to 1, 28 new texts a step

    Args:
        patient: its model is trained in place. No shape.
        steps: how many.
        seed: of the texts it is trained on.
        report: called after every step with the number of steps and the loss, as
            `train` does; if it has a method `see`, that is given the chart so far.

    Returns:
        The signs before the first step, after every sixth, and after the last. All are
        measured on the same 50 texts.

    Raises:
        TypeError, ShapeError: steps is not a whole number of at least 0.

    Cost: steps times a forward and a backward pass, and some more for the chart.
    Source: the names of the course.
    Lesson: 10.

    >>> from attnlib.nn.patients import admit
    >>> chart = watch(admit("healthy"), 8)
    >>> chart.steps, chart.curve("keys").shape
    ((0, 6, 8), (3, 4))
    """
    steps = size("steps", steps)
    probes = probe_texts(patient)
    drawn = torch.Generator().manual_seed(1000 + seed)
    chart = Chart(patient.name, (), ())
    see: Callable[[Chart], object] = getattr(report, "see", lambda chart: None)

    def enter(step: int) -> None:
        nonlocal chart
        signs = measure(patient.model, probes)
        chart = Chart(patient.name, (*chart.steps, step), (*chart.signs, signs))
        see(chart)

    def loss(step: int) -> torch.Tensor:
        if step % EVERY == 0:
            enter(step)
        return patient.model.loss(patient.texts(BATCH, drawn, step))

    done = train(
        patient.model, loss, steps, lr=RATE, report=report, allow_nonfinite=True
    )
    if not done.interrupted:
        enter(steps)
    return chart


def probe_texts(patient: Patient | None = None) -> Texts:
    """Draw the texts on which a chart is measured, the same for all patients.

    50 texts of the kind that the patient reads first, from a generator of their own

    Args:
        patient: whose texts they are; left out, those of most. No shape.

    Returns:
        ids and real, (50, 24) each.

    Raises:
        Nothing.

    Cost: 50 texts are drawn.
    Source: the names of the course.
    Lesson: 10.

    >>> probe_texts().ids.shape
    torch.Size([50, 24])
    """
    generator = torch.Generator().manual_seed(7)
    if patient is None:
        return draw_texts(PROBES, generator)
    return patient.texts(PROBES, generator)


def _mean(values: npt.ArrayLike, rows: Rows) -> Array:
    """The mean over batch and rows where `rows` (batch, n) is True, for each head."""
    return np.asarray(np.moveaxis(np.asarray(values), 1, 0)[:, rows].mean(-1))


def _saturated(weights: Array) -> Array:
    """1 for a row with a weight above 0.99, 0 for others, NaN where it is NaN."""
    most = weights.max(-1)
    return np.asarray(np.where(np.isnan(most), np.nan, most > 0.99))


def _first(real: Rows) -> Rows:
    """True at the first real token of each text, (batch, n)."""
    return np.asarray(real & (real.cumsum(-1) == 1))


def _on_first(weights: Array, real: Rows) -> Array:
    """The weight on the first real token, (batch, n_heads, n_q)."""
    place = real.argmax(-1)[:, None, None, None]
    return np.asarray(np.take_along_axis(weights, place, axis=-1)[..., 0])
