"""How far a student's attention is from its teacher's: two losses, both with masks.

`attention_divergence` compares weights, as distributions: what a query looks at.
`score_distance` compares scores before the softmax, as TinyBERT does: it also asks for
what the softmax throws away, a number added to all scores of a row.

Both need as many heads in the student as in the teacher, or a choice of the teacher's.
"""

from __future__ import annotations

import torch
from torch import Tensor

from attnlib.nn.shapes import check_tensor, check_tensors, counted_rows, fits, wide
from attnlib.shapes import ShapeError


def attention_divergence(
    student_scores: Tensor, teacher_weights: Tensor, rows: Tensor | None = None
) -> Tensor:
    """Measure how far a student looks from where its teacher looks.

    mean over rows of KL(p || s) = sum_j p_j (ln p_j - ln s_j), ln s = log_softmax

    The student's logarithms are taken from its scores, never from weights that may have
    become 0. A key that is hidden adds nothing, and a row in which the student or the
    teacher may look at nothing is no row. It is 0 where both agree, and ln n for a
    one-hot teacher and an even student of n keys, whatever the batch and the length.

    Args:
        student_scores: scaled and masked, -inf where hidden, (..., n_q, n_k): `scores`
            of the stages.
        teacher_weights: `weights` of the teacher, the same shape, or one that
            broadcasts to it. No gradient goes into them.
        rows: boolean, broadcastable to (..., n_q), with the axis of heads: which
            queries count, such as all that are no fillers. All, if left out.

    Returns:
        One number, at least 0 but for rounding; 0 where no row is left.

    Raises:
        ShapeError: shapes that do not fit.
        TypeError: tensors that are not floating, or rows that are not boolean.
        ValueError: the teacher looks at a key that is hidden from the student, so that
            the divergence would be infinite; or a weight is negative, as a score is.

    Cost: n_q n_k logarithms and exponentials a head.
    Source: Hinton et al. 2015, on attention; Wang et al. 2020 (MiniLM), equation 1.
    Lesson: 14.

    >>> teacher = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    >>> scores = torch.tensor([[0.0, 0.0, -torch.inf], [-torch.inf] * 3])
    >>> round(attention_divergence(scores, teacher).item(), 4)
    0.6931
    """
    p = _fitting("teacher_weights", teacher_weights, student_scores).detach()
    if bool((p < 0).any()):
        raise ValueError(
            "teacher_weights must be weights, from 0 to 1, but there are negative "
            "numbers; the teacher's scores go to score_distance."
        )
    s = wide(student_scores)
    hidden = s == -torch.inf
    empty = hidden.all(-1)
    counted = counted_rows(rows, empty, "n_heads, n_q") & ~empty & (p != 0).any(-1)
    if bool((hidden & (p > 0) & counted[..., None]).any()):
        raise ValueError(
            "the teacher looks at a key that is hidden from the student; both need the "
            "same mask."
        )
    # Filled before the logarithm: a NaN that is cut off later spoils the gradients.
    log_s = torch.log_softmax(s.masked_fill(empty[..., None], 0.0), -1)
    log_s = log_s.masked_fill(hidden, 0.0)
    terms = torch.xlogy(p, p) - p * log_s
    return _mean(terms.sum(-1), counted)


def score_distance(
    student_scores: Tensor, teacher_scores: Tensor, rows: Tensor | None = None
) -> Tensor:
    """Measure how far a student's scores are from its teacher's, as TinyBERT does.

    mean over rows and keys that may be seen of (student - teacher)^2

    It compares numbers before the softmax. A student whose scores are all 3 higher than
    the teacher's has the same weights, and a distance of 9.

    Args:
        student_scores: scaled and masked, -inf where hidden, (..., n_q, n_k).
        teacher_scores: the same of the teacher, of a shape that broadcasts to it. No
            gradient goes into them.
        rows: boolean, broadcastable to (..., n_q): which queries count.

    Returns:
        One number, at least 0; 0 where nothing may be seen.

    Raises:
        ShapeError: shapes that do not fit.
        TypeError: tensors that are not floating, or rows that are not boolean.
        ValueError: a key is hidden from one of the two and not from the other.

    Cost: 3 FLOPs a score.
    Source: Jiao et al. 2020 (TinyBERT), equation 7.
    Lesson: 14.

    >>> scores = torch.tensor([[1.0, 2.0, -torch.inf]])
    >>> score_distance(scores + 3, scores).item()
    9.0
    """
    t = _fitting("teacher_scores", teacher_scores, student_scores).detach()
    s = wide(student_scores)
    hidden = s == -torch.inf
    counted = counted_rows(rows, hidden[..., 0], "n_heads, n_q")[..., None]
    if bool(((hidden != (t == -torch.inf)) & counted).any()):
        raise ValueError(
            "a key is hidden from the student or from the teacher, and not from the "
            "other; both need the same mask."
        )
    apart = s.masked_fill(hidden, 0.0) - t.masked_fill(t == -torch.inf, 0.0)
    return _mean(apart**2, counted & ~hidden)


def _fitting(name: str, teacher: Tensor, student: Tensor) -> Tensor:
    check_tensors({"student_scores": (student, "n_q n_k")})
    check_tensor(name, teacher)
    if fits(teacher.shape, student.shape):
        return wide(teacher).expand(student.shape)
    text = (
        f"{name} with shape {tuple(teacher.shape)} does not broadcast to the shape of "
        f"student_scores, {tuple(student.shape)}"
    )
    if teacher.ndim == student.ndim > 2 and teacher.shape[-2:] == student.shape[-2:]:
        text += (
            f"; n_heads={student.shape[-3]} of the student need as many of the "
            "teacher: choose which"
        )
    raise ShapeError(text + ".")


def _mean(values: Tensor, counted: Tensor) -> Tensor:
    total = values.masked_fill(~counted, 0.0).sum()
    return total / counted.sum().clamp(min=1)
