"""The loss of a student on its teacher, with every mistake built in."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Family, Faults

Float = npt.NDArray[np.floating]


def distillation_loss(
    student: Float,
    teacher: Float,
    temperature: float = 1.0,
    kind: str = "divergence",
    *,
    faults: Faults = RIGHT,
) -> float:
    """T² times the mean over the batch of KL(teacher || student), both at T."""
    student, teacher = np.asarray(student, float), np.asarray(teacher, float)
    if "distil_exchanged" in faults:
        student, teacher = teacher, student
    t = temperature
    t_student = 1.0 if "distil_temperature_of_teacher" in faults else t
    t_teacher = 1.0 if "distil_temperature_of_student" in faults else t
    if "distil_temperature_multiplied" in faults:
        t_student, t_teacher = 1 / t, 1 / t
    elif "distil_temperature_ignored" in faults:
        t_student = t_teacher = 1.0
    axis = 0 if "distil_over_batch" in faults else -1
    log_q = _log_softmax(student / t_student, axis)
    log_p = _log_softmax(teacher / t_teacher, axis)
    p = np.exp(log_p)
    if "distil_no_log" in faults:
        log_q = np.exp(log_q)
    elif "distil_logits" in faults:
        log_q = student / t_student
    elif "distil_softmax_twice" in faults:
        log_q = _log_softmax(np.exp(log_q), axis)
    if "distil_log_target" in faults:  # the log of a log: NaN
        terms = np.full_like(p, np.nan)
    elif "distil_log_target_dropped" in faults:  # what older versions made of it
        terms = np.zeros_like(p)
    elif "distil_log_for_target" in faults:  # without the log of the target's log
        terms = log_p * (log_p - log_q)
    elif "distil_entropy_missing" in faults or kind == "cross entropy":
        terms = -p * log_q
    elif "distil_hard" in faults:
        chosen = np.eye(p.shape[-1])[p.argmax(axis=-1)]
        terms = -chosen * log_q
    else:
        terms = p * (log_p - log_q)
    loss = float(terms.sum()) / len(terms)
    if "distil_mean" in faults:
        loss = float(terms.mean())
    elif "distil_sum" in faults:
        loss = float(terms.sum())
    elif "distil_mean_of_classes" in faults:
        loss = float(terms.sum()) / terms.shape[-1]
    if "distil_sign" in faults:
        loss = -loss
    if "distil_temperature_not_squared" in faults:
        return loss
    if "distil_temperature_once" in faults:
        return loss * t
    if "distil_temperature_divides" in faults:
        return loss / t**2
    return loss * t**2


def _log_softmax(x: Float, axis: int) -> Float:
    x = x - x.max(axis=axis, keepdims=True)
    return np.asarray(x - np.log(np.exp(x).sum(axis=axis, keepdims=True)))


DISTILLATION_LOSS = Family(
    "distillation_loss",
    distillation_loss,
    {
        "target": (
            "distil_no_log",
            "distil_logits",
            "distil_log_target",
            "distil_log_target_dropped",
            "distil_log_for_target",
            "distil_entropy_missing",
            "distil_hard",
            "distil_softmax_twice",
        ),
        "direction": ("distil_exchanged",),
        "axis": ("distil_over_batch",),
        "reduction": ("distil_mean", "distil_sum", "distil_mean_of_classes"),
        "sign": ("distil_sign",),
        "temperature": (
            "distil_temperature_not_squared",
            "distil_temperature_once",
            "distil_temperature_divides",
            "distil_temperature_of_teacher",
            "distil_temperature_of_student",
            "distil_temperature_multiplied",
            "distil_temperature_ignored",
        ),
    },
)
