"""M39 to M41, M44: what goes wrong while a model with attention is trained.

PyTorch is imported by the runs, when one is asked for.
"""

from __future__ import annotations

import warnings

import numpy as np

from attnlib.clinic.diseases.disease import Disease, Shown
from attnlib.clinic.diseases.measured import unseeded
from attnlib.clinic.families.distillation import distillation_loss


def _initial() -> Shown:
    import torch

    d = 256
    with unseeded():
        fused, own = torch.empty(3 * d, d), torch.empty(d, d)
        torch.nn.init.xavier_uniform_(fused)
        torch.nn.init.xavier_uniform_(own)
    return Shown(
        "xavier_uniform_ with d_model = 256: on W_q alone, and on W_q, W_k and W_v "
        "as one table.",
        (
            ("std of W_q", float(own.std()), float(fused[:d].std())),
            ("by its formula", (2 / (2 * d)) ** 0.5, (2 / (4 * d)) ** 0.5),
        ),
    )


def _clipped() -> Shown:
    import torch

    scale, limit = 2.0**16, 1.0

    def after(unscale_first: bool) -> tuple[float, float]:
        weight = torch.nn.Parameter(torch.zeros(2))
        weight.grad = torch.tensor([0.3, 0.4]) * scale
        if unscale_first:
            weight.grad /= scale
        reported = torch.nn.utils.clip_grad_norm_([weight], limit)
        if not unscale_first:
            weight.grad /= scale
        return float(reported), float(weight.grad.norm())

    right, wrong = after(True), after(False)
    return Shown(
        "A gradient of norm 0.5, a limit of 1, and a loss scaled by 65536.",
        (
            ("norm that the clipping reports", right[0], wrong[0]),
            ("norm that reaches the weights", right[1], wrong[1]),
        ),
    )


def _checkpointed() -> Shown:
    import torch
    from torch.utils.checkpoint import checkpoint

    def run(reentrant: bool) -> tuple[bool, bool]:
        layer = torch.nn.Linear(3, 2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it says so, once
            out = checkpoint(layer, torch.ones(4, 3), use_reentrant=reentrant)
        if out.requires_grad:
            out.sum().backward()
        return bool(out.requires_grad), layer.weight.grad is not None

    with unseeded():
        right, wrong = run(False), run(True)
    return Shown(
        "A layer with weights, checkpointed, on an input that needs no gradient: "
        "use_reentrant=False, and True.",
        (
            ("the output has a gradient", str(right[0]), str(wrong[0])),
            ("the weights get one", str(right[1]), str(wrong[1])),
        ),
    )


def _distilled() -> Shown:
    teacher = np.array([[2.0, 1.0, 0.0], [0.0, 0.5, 1.0]])
    no_log = frozenset(["distil_no_log"])

    def both(student: np.ndarray) -> tuple[float, float]:
        right = distillation_loss(student, teacher)
        return right, distillation_loss(student, teacher, faults=no_log)

    return Shown(
        "Two items, three classes. Wrong: probabilities, where log-probabilities are "
        "expected.",
        (
            ("loss, student = teacher", *both(teacher)),
            ("loss, student = teacher upside down", *both(-teacher)),
        ),
    )


DISEASES = (
    Disease(
        "M39",
        "The tables begin with another spread than intended",
        "training",
        "The first scores are too small, so the first weights are nearer to uniform.",
        "The standard deviation of W_q right after it was made, beside that of the "
        "formula.",
        "Xavier's rule takes fan-in and fan-out from the shape. Where W_q, W_k and W_v "
        "lie in one table, its fan-out is three times too large, so the numbers come "
        "out too small by the root of 2.",
        (
            "Which shape does the rule see, and which is meant?",
            "What is the std of a uniform distribution from -b to b?",
            "Initialise the three parts on their own, or name the std yourself.",
        ),
        _initial,
    ),
    Disease(
        "M40",
        "Gradients are clipped before they are unscaled",
        "training",
        "With mixed precision the reported norm is huge, and every step is clipped.",
        "The norm that the clipping reports, beside that of the gradient.",
        "The scaler multiplies the loss, so all gradients are too large by its factor. "
        "Clipping them to 1 and dividing afterwards leaves almost nothing.",
        (
            "Which factor do the gradients carry when they are clipped?",
            "Divide the reported norm by the factor of the scaler. What comes out?",
            "scaler.unscale_(optimizer) first, then clip, then scaler.step.",
        ),
        _clipped,
    ),
    Disease(
        "M41",
        "A checkpoint cuts the gradient off",
        "training",
        "The loss does not move, and some weights have no gradient.",
        "Whether the output of a checkpointed layer has a gradient.",
        "The older, reentrant kind asks whether an input needs a gradient. In the "
        "first layer none does, so the weights get none either.",
        (
            "Is weight.grad None after backward?",
            "Does an input of the checkpointed part need a gradient?",
            "Pass use_reentrant=False.",
        ),
        _checkpointed,
    ),
    Disease(
        "M44",
        "The loss of distillation gets the wrong one of logits, log and probabilities",
        "part",
        "The loss is negative, or smallest where the student is not the teacher.",
        "The loss for a student that equals its teacher. It should be 0.",
        "PyTorch's kl_div expects the logarithm of the student's probabilities first, "
        "and then the teacher's probabilities, unless log_target=True.",
        (
            "What is the divergence of a distribution from itself?",
            "Which of the two arguments is a logarithm?",
            "kl_div(log_softmax(student), softmax(teacher), reduction='batchmean').",
        ),
        _distilled,
    ),
)
