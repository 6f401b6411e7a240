"""How far a student looks from where its teacher looks, with every mistake built in."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Family, Faults

Float = npt.NDArray[np.floating]
Truth = npt.NDArray[np.bool_]


_ARTICLE = {"looks_article", "looks_article_scores", "looks_article_rows"}


def distil_attention(
    scores: Float,
    teacher_weights: Float,
    counted: Truth,
    *,
    faults: Faults = RIGHT,
) -> float:
    """The mean over heads and real questions of KL(teacher || student)."""
    p, n_k = np.asarray(teacher_weights), scores.shape[-1]
    if faults & _ARTICLE:  # as printed, on weights, on scores, and averaged over rows
        s = scores if "looks_article_scores" in faults else np.exp(_log_softmax(scores))
        soft = np.exp(_log_softmax(p / 2))
        terms = 4 * soft * (np.log(soft) - _log_softmax(s / 2))
        if "looks_article_rows" in faults:
            return _averaged(terms.sum(-1), counted, n_k, faults)
        return float(terms.sum()) / len(p)
    if "looks_score_distance" in faults:
        seen = ~np.isneginf(scores)
        apart = np.where(seen & (p > 0), scores - np.log(np.where(p > 0, p, 1)), 0)
        return _averaged((apart**2).sum(-1) / seen.sum(-1), counted, n_k, faults)
    log_s = _student(scores, faults)
    p = _teacher(p, faults)
    if "looks_heads_first" in faults:
        p = p.mean(1, keepdims=True)
        log_s = np.log(np.exp(log_s).mean(1, keepdims=True))
    rows = _terms(p, log_s, faults).sum(-1)
    if "looks_nan_rows_zero" in faults:  # NaN is replaced when rows are summed up
        rows = np.where((p == 0).any(-1), 0, rows)
    if "looks_hidden_rows_zero" in faults:
        rows = np.where(np.isneginf(scores).any(-1), 0, rows)
    loss = _averaged(rows, counted, n_k, faults)
    return 4 * loss if "looks_times_four" in faults else loss


def _student(scores: Float, faults: Faults) -> Float:
    """The student's logarithms, or what is taken for them."""
    if "looks_hidden_seen" in faults:
        return _log_softmax(np.where(np.isneginf(scores), 0, scores))
    if "looks_halved" in faults or "looks_softened" in faults:
        return _log_softmax(scores / 2)
    log_s = _log_softmax(scores)
    if "looks_softmax_twice" in faults:
        return _log_softmax(np.exp(log_s))
    if "looks_log_of_zero" in faults:
        return np.log(np.exp(log_s))
    if "looks_zero_costs_nothing" in faults:
        return np.where(np.exp(log_s) > 0, log_s, 0)
    if "looks_no_log" in faults:
        return np.asarray(np.exp(log_s))
    if "looks_scores" in faults:
        return scores
    if "looks_over_queries" in faults:
        return _log_softmax(scores, -2)
    if "looks_over_heads" in faults:
        return _log_softmax(scores, 1)
    return log_s


def _teacher(p: Float, faults: Faults) -> Float:
    """The teacher's weights, or what is made of them."""
    if "looks_softened" in faults:
        return np.asarray(np.exp(_log_softmax(np.log(p) / 2)))
    if "looks_teacher_softmax" in faults:
        return np.asarray(np.exp(_log_softmax(p)))
    if "looks_hard" in faults:
        return np.asarray(np.eye(p.shape[-1], dtype=p.dtype)[p.argmax(-1)])
    return p


def _log_softmax(x: Float, axis: int = -1) -> Float:
    x = x - x.max(axis=axis, keepdims=True)
    return np.asarray(x - np.log(np.exp(x).sum(axis=axis, keepdims=True)))


def _terms(p: Float, log_s: Float, faults: Faults) -> Float:
    log_p = np.log(np.where(p > 0, p, 1))
    if "looks_nan_hidden" in faults:
        return np.asarray(p * (log_p - log_s))
    if "looks_nan_zero_weight" in faults:
        return np.asarray(p * (np.log(p) - log_s))
    if "looks_exchanged_infinite" in faults:
        return np.asarray(np.exp(log_s) * (log_s - np.log(p)))
    if "looks_student_in_front" in faults:
        return np.asarray(np.exp(log_s) * (np.log(p) - log_s))
    if "looks_epsilon" in faults:  # one that is not small
        return np.asarray(p * (np.log(p + 0.01) - np.log(np.exp(log_s) + 0.01)))
    s = np.exp(log_s)
    log_s = np.where((p == 0) & np.isneginf(log_s), 0, log_s)
    if "looks_exchanged" in faults:
        return np.asarray(s * (log_s - log_p))
    if "looks_halfway" in faults:  # Jensen and Shannon's
        both = np.log(np.where(p + s > 0, (p + s) / 2, 1))
        return np.asarray((p * (log_p - both) + s * (log_s - both)) / 2)
    if "looks_entropy_missing" in faults:
        return np.asarray(-p * log_s)
    if "looks_weights_apart" in faults:
        return np.asarray((p - s) ** 2)
    if "looks_p_once" in faults:
        return np.asarray(p * log_p - log_s)
    if "looks_p_missing" in faults:
        return np.asarray(np.where(p > 0, log_p - log_s, 0))
    terms = p * (log_p - log_s)
    if "looks_sign" in faults:
        return np.asarray(-terms)
    return np.asarray(terms / np.log(2) if "looks_bits" in faults else terms)


_EVERY_ROW = {
    "looks_fillers_counted",
    "looks_kl_div_batchmean",
    "looks_kl_div_mean",
    "looks_kl_div_sum",
}


def _averaged(rows: Float, counted: Truth, n_k: int, faults: Faults) -> float:
    """The mean of rows (batch, n_heads, n_q) where counted (batch, n_q) is True."""
    n_heads = int(rows.shape[1])
    if "looks_rows_reshaped" in faults:
        by_query = rows.reshape(len(rows), rows.shape[2], n_heads)
        return float(by_query[counted].mean())
    if faults & _EVERY_ROW:
        counted = np.ones_like(counted)
    elif "looks_first_texts_rows" in faults:
        counted = np.broadcast_to(counted[:1], counted.shape)
    elif "looks_fillers_alone" in faults:
        counted = ~counted
    kept = np.where(counted[:, None], rows, 0)
    total, n_rows = float(kept.sum()), int(counted.sum())
    if "looks_fillers_as_zeros" in faults:
        n_rows = counted.size
    if "looks_batchmean" in faults or "looks_kl_div_batchmean" in faults:
        return float(total / counted.shape[0])
    if "looks_mean_of_keys" in faults or "looks_kl_div_mean" in faults:
        return total / (n_rows * n_heads * n_k)
    if "looks_summed" in faults or "looks_kl_div_sum" in faults:
        return total
    if "looks_heads_summed" in faults:
        return total / n_rows
    if "looks_rows_summed" in faults:
        return total / n_heads
    if "looks_mean_of_texts" in faults:
        return float((kept.sum((1, 2)) / counted.sum(1)).mean() / n_heads)
    return total / (n_rows * n_heads)


LOOKS_COPIED = Family(
    "distil_attention",
    distil_attention,
    {
        "whole": (
            "looks_article",
            "looks_article_scores",
            "looks_article_rows",
            "looks_score_distance",
        ),
        "student": (
            "looks_softmax_twice",
            "looks_no_log",
            "looks_log_of_zero",
            "looks_zero_costs_nothing",
            "looks_scores",
            "looks_hidden_seen",
            "looks_halved",
            "looks_softened",
            "looks_over_queries",
            "looks_over_heads",
        ),
        # Rows are lost where the teacher's weights are 0: with looks_hard, all of them.
        "teacher": (
            "looks_teacher_softmax",
            "looks_hard",
            "looks_nan_rows_zero",
            "looks_hidden_rows_zero",
        ),
        "heads": ("looks_heads_first",),
        "terms": (
            "looks_nan_hidden",
            "looks_nan_zero_weight",
            "looks_epsilon",
            "looks_exchanged",
            "looks_exchanged_infinite",
            "looks_student_in_front",
            "looks_p_once",
            "looks_p_missing",
            "looks_halfway",
            "looks_entropy_missing",
            "looks_weights_apart",
            "looks_sign",
            "looks_bits",
        ),
        "rows": (
            "looks_fillers_counted",
            "looks_first_texts_rows",
            "looks_fillers_alone",
            "looks_rows_reshaped",
        ),
        "mean": (
            "looks_kl_div_batchmean",
            "looks_kl_div_mean",
            "looks_kl_div_sum",
            "looks_fillers_as_zeros",
            "looks_batchmean",
            "looks_mean_of_keys",
            "looks_summed",
            "looks_heads_summed",
            "looks_rows_summed",
            "looks_mean_of_texts",
        ),
        "factor": ("looks_times_four",),
    },
)
