"""Attention in a causal window, with every mistake built in; computed the long way."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Case, Family, Faults, Result, View
from attnlib.clinic.families.attention import scale
from attnlib.clinic.families.softmax import softmax
from attnlib.clinic.families.windows import window

Float = npt.NDArray[np.floating]

_SEEN = (
    "window_two_sided",
    "window_not_causal",
    "window_missing",
    "window_ahead",
    "window_self_hidden",
    "window_blocks",
    "window_outside",
    "window_one_more",
    "window_one_less",
    "window_two_more",
    "window_halved",
)


def window_attention(
    q: Float, k: Float, v: Float, width: int, *, faults: Faults = RIGHT
) -> Float:
    """Each query sees the `width` keys that end with its own."""
    n = len(q)
    times = _times(n, width, faults)
    scores = scale(q @ k.T, q, k, v, faults)
    if "scale_width" in faults:
        scores = q @ k.T / math.sqrt(width)
    with np.errstate(divide="ignore"):
        scores = scores + np.log(times)  # a key seen twice counts twice
    if "mask_fill_zero" in faults:  # hidden scores become 0, and e^0 is 1
        scores = np.where(times == 0, 0, scores)
    if "softmax_missing" in faults:
        weights = np.where(times > 0, scale(q @ k.T, q, k, v, faults), 0)
    elif "band_softmax_over_queries" in faults:
        weights = _over_queries(scores, width)
    elif "band_zeros_counted" in faults:
        weights = _with_zeros(scores, times, width)
    elif "band_hidden_after" in faults:
        near = (np.arange(n)[:, None] - np.arange(width)) % n
        raw = scale(q @ k.T, q, k, v, faults)
        weights = _flat(softmax(raw[np.arange(n)[:, None], near]))
    elif "band_zero_scores_wrapped" in faults:
        weights = _zero_scores_wrapped(scores, width)
    else:
        weights = softmax(scores, faults=faults)
    if "values_are_keys" in faults:
        v = k
    elif "values_are_queries" in faults:
        v = q
    if "band_values_reversed" in faults:
        weights = _reversed(weights, width)
    out = np.asarray(weights @ v)
    if "band_first_rows_missing" in faults:
        out = out[width - 1 :]
    elif "band_first_rows_empty" in faults:
        out[: width - 1] = 0
    return out


def _times(n: int, width: int, faults: Faults) -> Float:
    """How many times each query sees each key."""
    near = np.arange(n)[:, None] - np.arange(width)
    times = np.zeros((n, n))
    if "band_wraps" in faults:
        np.add.at(times, (np.arange(n)[:, None], near % n), 1)
        return times
    if "band_clipped" in faults:
        np.add.at(times, (np.arange(n)[:, None], np.maximum(near, 0)), 1)
        return times
    if (
        "band_shifted_at_start" in faults
    ):  # slices from max(0, i - width + 1), same size
        first = np.maximum(near[:, -1:], 0) + np.arange(width)
        np.add.at(times, (np.arange(n)[:, None], first), 1)
        return times
    away = np.arange(n) - np.arange(n)[:, None]
    if "band_centred" in faults:
        return np.asarray(np.abs(away) <= (width - 1) // 2, np.float64)
    if "band_centred_wide" in faults:
        return np.asarray(np.abs(away) <= width // 2, np.float64)
    kinds = faults & set(_SEEN)
    return np.array(window(n, n, width - 1, faults=kinds), np.float64)


def _band(table: Float, width: int, fill: float) -> Float:
    """The band upright: column c is the key c places before the query."""
    n = len(table)
    near = np.arange(n)[:, None] - np.arange(width)
    return np.where(near >= 0, table[np.arange(n)[:, None], near], fill)


def _flat(band: Float) -> Float:
    """The table of an upright band."""
    n, width = band.shape
    near = np.arange(n)[:, None] - np.arange(width)
    table = np.zeros((n, n), band.dtype)
    rows, columns = np.nonzero(near >= 0)
    table[rows, near[rows, columns]] = band[rows, columns]
    return table


def _over_queries(scores: Float, width: int) -> Float:
    return _flat(softmax(_band(scores, width, -np.inf), axis=0))


def _with_zeros(scores: Float, times: Float, width: int) -> Float:
    """Places before the text hold keys of zeros: each takes the weight of e^0."""
    missing = width - times.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):
        extra = np.log(missing)
    both = softmax(np.concatenate([scores, extra], axis=-1))
    return np.asarray(both[:, :-1])


def _zero_scores_wrapped(scores: Float, width: int) -> Float:
    """Scores before the text are set to 0, and their values come from the end."""
    n = len(scores)
    near = np.arange(n)[:, None] - np.arange(width)
    band = np.where(near >= 0, _band(scores, width, 0), 0)
    table = np.zeros_like(scores)
    np.add.at(table, (np.arange(n)[:, None], near % n), softmax(band))
    return table


def _reversed(weights: Float, width: int) -> Float:
    """The weight of the nearest goes to the farthest value, and so on."""
    n = len(weights)
    near = np.arange(n)[:, None] - np.arange(width)
    table = np.zeros_like(weights)
    places = (np.arange(n)[:, None], near[:, ::-1] % n)
    np.add.at(table, places, _band(weights, width, 0))
    return table


def see_banded(case: Case, arrays: tuple[Result, ...]) -> View:
    """Where the values are the unit matrix, the output is the weights."""
    q, k, v = (np.asarray(a) for a in case.args[:3])
    n = len(q)
    named = v.shape == (n, n) and bool((v == np.eye(n)).all())
    shown = named and bool(arrays) and arrays[0].shape == (n, n)
    raw = q @ k.T
    return View(
        weights=arrays[0] if shown else None,
        raw_scores=raw,
        q=q,
        k=k,
        allowed=np.asarray(window_mask(n, case.args[3])),
        sizes={"n_q": n, "n_k": n, "d_k": q.shape[-1], "d_v": v.shape[-1]},
    )


def window_mask(n: int, width: object) -> Result:
    """Which keys each query may see."""
    return np.asarray(window(n, n, int(str(width)) - 1), np.bool_)


WINDOW_ATTENTION = Family(
    "window_attention",
    window_attention,
    {
        "seen": (
            *_SEEN,
            "band_wraps",
            "band_clipped",
            "band_shifted_at_start",
            "band_centred",
            "band_centred_wide",
        ),
        "start": (
            "band_zeros_counted",
            "band_zero_scores_wrapped",
            "band_hidden_after",
            "mask_fill_zero",
            "band_first_rows_missing",
            "band_first_rows_empty",
        ),
        "scale": (
            "scale_missing",
            "scale_d_k",
            "scale_multiplied",
            "scale_d_v",
            "scale_n_k",
            "scale_width",
        ),
        "softmax": (
            "softmax_missing",
            "band_softmax_over_queries",
            "not_normalised",
            "sign_flipped",
        ),
        "shift": ("not_stable",),
        "mix": ("values_are_keys", "values_are_queries", "band_values_reversed"),
    },
    see_banded,
)
