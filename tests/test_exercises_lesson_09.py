"""Lesson 09: answers as people write them, right and wrong, and what they are told."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest

from attnlib import attention, numerics
from attnlib.exercises import get, judge, names
from attnlib.exercises.lesson_09 import CALLS, ORDER

LESSON = ("init_for_entropy", "half_scores", "capped_scores", "amp_order", "first_bad")
INF = np.inf


def test_the_lesson_has_these_exercises_and_their_minutes_fit_into_its_text():
    assert set(names(9)) == set(LESSON)
    assert sum(get(name).minutes for name in LESSON) == 28


# --- right answers written another way --------------------------------------------
def init_by_math(d_model, d_k, share):
    return math.sqrt(math.sqrt(2 * math.log(1 / share)) / d_model)


def init_by_xavier(d_model, d_k, share):
    """Xavier, times a gain."""
    gain = (-2 * math.log(share)) ** 0.25
    return gain * numerics.init_std("xavier", d_model, d_model)


def half_by_roots(q, k, mask):
    """A fourth root for each, as some libraries have it."""
    root = q.shape[-1] ** 0.25
    return np.where(mask, (q / root) @ (k / root).T, -np.inf)


def half_in_float32(q, k, mask):
    scores = q.astype(np.float32) @ k.astype(np.float32).T / np.sqrt(q.shape[-1])
    return np.where(mask, scores, -np.inf).astype(np.float16)


def half_by_scaled_keys(q, k, mask):
    scores = q @ (k / k.shape[-1] ** 0.5).T
    scores[~mask] = -np.inf
    return scores


def half_with_stored_fill(q, k, mask):
    """-1e9, which NumPy stores in float16 as -inf: luck, and right."""
    scores = q / q.shape[-1] ** 0.5 @ k.T
    return np.where(mask, scores, np.float16(-1e9))


def half_by_bias(q, k, mask):
    bias = np.where(mask, 0, -np.inf).astype(np.float16)
    return (q * q.shape[-1] ** -0.5) @ k.T + bias


def half_by_library(q, k, mask):
    scores = numerics.scores_scaled_before(q, k, "float16")
    return np.where(mask, scores, -np.inf)


def half_by_loops(q, k, mask):
    out = np.full(mask.shape, -np.inf, np.float16)
    for i, j in zip(*np.nonzero(mask), strict=True):
        out[i, j] = sum(
            float(a) * float(b) for a, b in zip(q[i], k[j], strict=True)
        ) / (len(q[i]) ** 0.5)
    return out


def capped_in_place(scores, mask, cap):
    bent = numerics.softcap(scores, cap)
    bent[~mask] = -np.inf
    return bent


def capped_by_exp(scores, mask, cap):
    e = np.exp(-2 * scores / cap)
    return np.where(mask, cap * (1 - e) / (1 + e), -np.inf)


def capped_and_added(scores, mask, cap):
    return cap * np.tanh(scores / cap) + np.where(mask, 0, -np.inf)


def capped_where_seen(scores, mask, cap):
    """Masks first, bends only what is seen: the same."""
    out = np.full_like(scores, -np.inf)
    out[mask] = np.tanh(scores[mask] / cap) * cap
    return out


def bad_by_names(stages):
    for name in stages:
        x = stages[name]
        ok = np.isfinite(x) | (np.isneginf(x) if name == "scores" else False)
        if not ok.all():
            return list(stages).index(name)
    return -1


def bad_by_parts(stages):
    for i, name in enumerate(stages):
        x = stages[name]
        if np.isnan(x).any() or np.isposinf(x).any():
            return i
        if name != "scores" and np.isneginf(x).any():
            return i
    return -1


def bad_by_argmax(stages):
    clean = [
        np.where(x == -np.inf, 0, x) if n == "scores" else x for n, x in stages.items()
    ]
    bad = [not np.isfinite(x).all() for x in clean]
    return int(np.argmax(bad)) if any(bad) else -1


def init_by_trial(d_model, d_k, share):
    """Halves an interval until the rule gives the share."""
    low, high = 0.0, 10.0
    for _ in range(100):
        std = (low + high) / 2
        even = math.exp(-((d_model * std**2) ** 2) / 2) > share
        low, high = (std, high) if even else (low, std)
    return low


def half_by_torch(q, k, mask):
    torch = pytest.importorskip("torch")
    q, k = torch.tensor(q), torch.tensor(k)
    scores = q * q.shape[-1] ** -0.5 @ k.T
    return scores.masked_fill(~torch.tensor(mask), -torch.inf)


def half_in_float64(q, k, mask):
    scores = q.astype(float) @ k.T.astype(float) / np.sqrt(q.shape[-1])
    return np.where(mask, scores, -np.inf).astype(np.float16)


def half_filled(q, k, mask):
    scores = np.einsum("id,jd->ij", q / np.float16(q.shape[-1] ** 0.5), k)
    return np.ma.masked_array(scores, ~mask).filled(-np.inf)


def capped_by_torch(scores, mask, cap):
    torch = pytest.importorskip("torch")
    bent = cap * torch.tanh(torch.tensor(scores) / cap)
    return torch.where(torch.tensor(mask), bent, -torch.inf)


def capped_by_lists(scores, mask, cap):
    return [
        [
            cap * math.tanh(s / cap) if m else -math.inf
            for s, m in zip(*rows, strict=True)
        ]
        for rows in zip(scores.tolist(), mask.tolist(), strict=True)
    ]


def capped_by_sigmoid(scores, mask, cap):
    """tanh(x) = 2 sigmoid(2 x) - 1."""
    return np.where(mask, cap * (2 / (1 + np.exp(-2 * scores / cap)) - 1), -np.inf)


def bad_by_torch(stages):
    torch = pytest.importorskip("torch")
    for i, (name, x) in enumerate(stages.items()):
        bad = ~torch.isfinite(torch.tensor(x))
        if name == "scores":
            bad &= ~torch.isneginf(torch.tensor(x))
        if bad.any():
            return i
    return -1


def bad_by_floats(stages):
    for i, (name, x) in enumerate(stages.items()):
        for value in x.ravel().tolist():
            if not math.isfinite(value) and (name, value) != ("scores", -math.inf):
                return i
    return -1


def bad_by_bounds(stages):
    """A comparison with NaN is False."""
    for i, (name, x) in enumerate(stages.items()):
        low = x >= -INF if name == "scores" else x > -INF
        if not ((x < INF) & low).all():
            return i
    return -1


def bad_from_behind(stages):
    found = -1
    for i, (name, x) in reversed(list(enumerate(stages.items()))):
        if right_test(name, x):
            found = i
    return found


RIGHT = [
    ("init_for_entropy", init_by_trial),
    ("half_scores", half_by_torch),
    ("half_scores", half_in_float64),
    ("half_scores", half_filled),
    ("capped_scores", capped_by_torch),
    ("capped_scores", capped_by_lists),
    ("capped_scores", capped_by_sigmoid),
    ("first_bad", bad_by_torch),
    ("first_bad", bad_by_floats),
    ("first_bad", bad_by_bounds),
    ("first_bad", bad_from_behind),
    ("first_bad", lambda stages: np.int64(bad_by_floats(stages))),
    ("init_for_entropy", init_by_math),
    ("init_for_entropy", init_by_xavier),
    ("init_for_entropy", lambda m, k, s: ((np.log(s) * -2) ** 0.5 / m) ** 0.5),
    ("init_for_entropy", lambda m, k, s: np.float32(init_by_math(m, k, s))),
    ("half_scores", half_by_roots),
    ("half_scores", half_in_float32),
    ("half_scores", half_by_scaled_keys),
    ("half_scores", half_with_stored_fill),
    ("half_scores", half_by_bias),
    ("half_scores", half_by_library),
    ("half_scores", half_by_loops),
    ("capped_scores", capped_in_place),
    ("capped_scores", capped_by_exp),
    ("capped_scores", capped_and_added),
    ("capped_scores", capped_where_seen),
    ("capped_scores", lambda s, m, c: capped_in_place(s.astype(np.float32), m, c)),
    ("first_bad", bad_by_names),
    ("first_bad", bad_by_parts),
    ("first_bad", bad_by_argmax),
    ("first_bad", lambda stages: float(bad_by_names(stages))),
]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("name", "answer"), RIGHT)
def test_another_right_way_passes(name, answer, seed):
    verdict = judge(name, answer, seed)
    assert verdict.passed, verdict.text


# --- wrong answers, as people write them ------------------------------------------
def spread(share):
    return np.sqrt(-2 * np.log(share))


def fills(value):
    def answer(q, k, mask):
        return np.where(mask, q / q.shape[-1] ** 0.5 @ k.T, value)

    return answer


def scaled_after(q, k, mask):
    return np.where(mask, q @ k.T / q.shape[-1] ** 0.5, -np.inf)


def wide_billion(q, k, mask):
    return q / q.shape[-1] ** 0.5 @ k.T + np.where(mask, 0, -1e9)


def half_unscaled(q, k, mask):
    return np.where(mask, (q.astype(float) @ k.T).astype(np.float16), -np.inf)


def cap_clip(s, m, c):
    return np.where(m, np.clip(s, -c, c), -np.inf)


def cap_late(s, m, c):
    return c * np.tanh(np.where(m, s, -np.inf) / c)


def cap_then(function):
    def answer(scores, mask, cap):
        return np.where(mask, function(scores, cap), -np.inf)

    return answer


def bad_if(test, one_past=0, well=-1):
    def answer(stages):
        for i, (name, x) in enumerate(stages.items()):
            if test(name, x):
                return i + one_past
        return well

    return answer


def right_test(name, x):
    return bool((~np.isfinite(x) & ~((name == "scores") & (x == -INF))).any())


def last_one(stages):
    return max(
        [i for i, (n, x) in enumerate(stages.items()) if right_test(n, x)] + [-1]
    )


def counted(stages):
    return sum(right_test(n, x) for n, x in stages.items())


def softmaxed(q, k, mask):
    return attention.softmax(fills(-np.inf)(q, k, mask))


WRONG = [
    ("init_for_entropy", lambda m, k, s: spread(s) / m, "variance_for_std"),
    ("init_for_entropy", lambda m, k, s: spread(s), "spread_returned"),
    ("init_for_entropy", lambda m, k, s: (spread(s) / k) ** 0.5, "width_of_head"),
    (
        "init_for_entropy",
        lambda m, k, s: (-2 * np.log(s) / m) ** 0.5,
        "spread_without_root",
    ),
    (
        "init_for_entropy",
        lambda m, k, s: ((-np.log(s)) ** 0.5 / m) ** 0.5,
        "spread_without_two",
    ),
    (
        "init_for_entropy",
        lambda m, k, s: ((-2 * np.log2(s)) ** 0.5 / m) ** 0.5,
        "log_base_two",
    ),
    (
        "init_for_entropy",
        lambda m, k, s: ((-2 * np.log10(s)) ** 0.5 / m) ** 0.5,
        "log_base_ten",
    ),
    ("init_for_entropy", lambda m, k, s: (s / m) ** 0.5, "spread_is_share"),
    ("init_for_entropy", lambda m, k, s: m**-0.5, "spread_is_one"),
    ("init_for_entropy", lambda m, k, s: (-np.log(s) / m) ** 0.5, "spread_is_drop"),
    (
        "init_for_entropy",
        lambda m, k, s: (np.sqrt(2 * np.log(s)) / m) ** 0.5,
        "log_sign_lost",
    ),
    ("init_for_entropy", lambda m, k, s: spread(s) ** 0.5 / m, "width_outside_root"),
    (
        "init_for_entropy",
        lambda m, k, s: (spread(s) / (m * k**0.5)) ** 0.5,
        "root_of_d_k_kept",
    ),
    (
        "init_for_entropy",
        lambda m, k, s: (spread(s) * k**0.5 / m) ** 0.5,
        "root_of_d_k_twice",
    ),
    ("init_for_entropy", lambda m, k, s: (spread(s) / 512) ** 0.5, "width_of_512"),
    ("init_for_entropy", lambda m, k, s: (m / spread(s)) ** 0.5, "width_upside_down"),
    (
        "init_for_entropy",
        lambda m, k, s: (3 * spread(s) / m) ** 0.5,
        "bound_for_std",
    ),
    ("half_scores", scaled_after, "raw_overflow"),
    ("half_scores", fills(np.finfo(np.float16).min), "fill_lowest"),
    ("half_scores", fills(-1e4), "mask_fill_10000"),
    ("half_scores", fills(0), "mask_fill_zero"),
    ("half_scores", wide_billion, "fill_billion"),
    ("half_scores", lambda q, k, m: fills(-INF)(q, k, ~m), "mask_inverted"),
    ("half_scores", lambda q, k, m: q / q.shape[-1] ** 0.5 @ k.T, "mask_ignored"),
    (
        "half_scores",
        lambda q, k, m: q / q.shape[-1] ** 0.5 @ k.T + ~m * -INF,
        "mask_times_infinity",
    ),
    ("half_scores", lambda q, k, m: q / q.shape[-1] ** 0.5 @ k.T * m, "mask_fill_zero"),
    ("half_scores", lambda q, k, m: q / q.shape[-1] ** 0.5 @ k.T + m, "mask_added"),
    ("half_scores", lambda q, k, m: fills(-INF)(q / 1, k / 4, m), None),
    ("half_scores", half_unscaled, "scale_missing"),
    (
        "half_scores",
        lambda q, k, m: np.where(m, (q / q.shape[-1]) @ k.T, -INF),
        "scale_d_k",
    ),
    (
        "half_scores",
        lambda q, k, m: np.where(m.any(-1, keepdims=True), fills(-INF)(q, k, m), 0),
        "empty_row_zeroed",
    ),
    ("half_scores", softmaxed, "softmax_applied"),
    ("capped_scores", cap_clip, "cap_clips"),
    ("capped_scores", cap_late, "cap_after_mask"),
    ("capped_scores", lambda s, m, c: np.where(m, s, -INF), "cap_missing"),
    ("capped_scores", lambda s, m, c: c * np.tanh(s / c), "mask_ignored"),
    (
        "capped_scores",
        lambda s, m, c: np.where(~m, c * np.tanh(s / c), -INF),
        "mask_inverted",
    ),
    ("capped_scores", cap_then(lambda s, c: np.tanh(s / c)), "cap_not_restored"),
    ("capped_scores", cap_then(lambda s, c: c * np.tanh(s)), "cap_not_divided"),
    ("capped_scores", cap_then(lambda s, c: c * np.tanh(s * c)), "cap_multiplied"),
    ("capped_scores", cap_then(lambda s, c: np.tanh(s * c) / c), "cap_upside_down"),
    ("capped_scores", cap_then(lambda s, c: np.tanh(s)), "cap_of_ones"),
    ("capped_scores", cap_then(lambda s, c: s / c), "cap_scales"),
    ("capped_scores", cap_then(lambda s, c: np.minimum(s, c)), "cap_clips_above"),
    ("capped_scores", cap_then(lambda s, c: 50 * np.tanh(s / 50)), "cap_of_50"),
    (
        "capped_scores",
        lambda s, m, c: np.where(m, c * np.tanh(s / c), -1e9),
        "fill_billion",
    ),
    ("capped_scores", lambda s, m, c: c * np.tanh(s / c) * m, "mask_fill_zero"),
    (
        "capped_scores",
        lambda s, m, c: np.where(m, c * np.tanh(s / c), -c),
        "cap_after_mask",
    ),
    (
        "capped_scores",
        lambda s, m, c: attention.softmax(np.where(m, c * np.tanh(s / c), -INF)),
        "softmax_applied",
    ),
    ("first_bad", bad_if(lambda n, x: not np.isfinite(x).all()), "hidden_flagged"),
    ("first_bad", bad_if(lambda n, x: np.isnan(x).any()), "infinities_missed"),
    (
        "first_bad",
        bad_if(lambda n, x: np.isnan(x).any() or (x == INF).any()),
        "minus_missed",
    ),
    (
        "first_bad",
        bad_if(lambda n, x: n != "scores" and not np.isfinite(x).all()),
        "scores_skipped",
    ),
    (
        "first_bad",
        bad_if(lambda n, x: right_test("scores" if "scores" in n else n, x)),
        "raw_scores_excused",
    ),
    (
        "first_bad",
        bad_if(
            lambda n, x: (
                np.isinf(x).any()
                and right_test(n, np.nan_to_num(x, nan=0.0, posinf=INF, neginf=-INF))
            )
        ),
        "nan_missed",
    ),
    ("first_bad", bad_if(right_test, one_past=1), "counted_from_one"),
    ("first_bad", bad_if(right_test, one_past=1, well=0), "one_too_many"),
    ("first_bad", bad_if(right_test, well=0), "well_is_zero"),
    (
        "first_bad",
        lambda stages: (bad_by_names(stages) + 1 or len(stages) + 1) - 1,
        "well_is_length",
    ),
    ("first_bad", bad_if(lambda n, x: not right_test(n, x)), "finite_stage"),
    ("first_bad", last_one, "last_bad"),
    ("first_bad", counted, "bad_counted"),
    (
        "first_bad",
        bad_if(lambda n, x: n == "out" and right_test(n, x)),
        "out_only",
    ),
    (
        "first_bad",
        lambda stages: [right_test(n, x) for n, x in stages.items()],
        "each_answered",
    ),
]


def half_scaled(by):
    return lambda q, k, m: np.where(m, q / by(q, k) @ k.T, -INF)


def half_then(function):
    """Something is done to the right scores, while nothing is hidden yet."""

    def answer(q, k, mask):
        return np.where(mask, function(q / q.shape[-1] ** 0.5 @ k.T), np.float16(-INF))

    return answer


def half_infinity_written_over(q, k, mask):
    scores = np.nan_to_num(q @ k.T / q.shape[-1] ** 0.5)
    return np.where(mask, scores, -np.inf)


def half_lowered(q, k, mask):
    return q / q.shape[-1] ** 0.5 @ k.T + np.where(mask, 0, -10000).astype(np.float16)


def half_softmaxed_then_masked(q, k, mask):
    weights = attention.softmax(q / q.shape[-1] ** 0.5 @ k.T)
    return np.where(mask, weights, 0).astype(np.float16)


def half_minus_maximum(q, k, mask):
    scores = fills(-INF)(q, k, mask)
    return scores - scores.max(axis=-1, keepdims=True)


def capped_rows(s, c):
    return c * s / np.abs(s).max(axis=-1, keepdims=True)


def bad_in(look):
    """The right test, on what `look` leaves of a stage."""
    return bad_if(lambda n, x: right_test(n, look(n, x)))


def bad_by_a_list(stages):
    own = ["q", "k", "v", "raw_scores", "scores", "weights", "out"]
    bad = [own.index(n) for n, x in stages.items() if right_test(n, x)]
    return bad[0] if bad else -1


def bad_by_place(stages):
    for i, x in enumerate(stages.values()):
        if right_test("scores" if i == 4 else "", x):
            return i
    return -1


def bad_too_early(stages):
    for i, (name, x) in enumerate(stages.items()):
        return i if right_test(name, x) else -1


def bad_after_the_loop(stages):
    place = 0
    for place, (name, x) in enumerate(stages.items()):  # noqa: B007
        if right_test(name, x):
            break
    return place


def first_broken(stages, read):
    for name, x in stages.items():
        bad = ~np.isfinite(x) & ~((name == "scores") & (x == -INF))
        if bad.any():
            return int(read(bad))
    return -1


def bad_row(n, x):
    return n == "scores" and (x == -INF).all(axis=1).any()


WRONG += [
    (
        "init_for_entropy",
        lambda m, k, s: (np.exp(-(s**2) / 2) / m) ** 0.5,
        "rule_forwards",
    ),
    ("init_for_entropy", lambda m, k, s: spread(s) ** 0.5, "width_missing"),
    (
        "init_for_entropy",
        lambda m, k, s: (spread(s) / m / k) ** 0.5,
        "width_and_head",
    ),
    ("half_scores", half_scaled(lambda q, k: len(q) ** 0.5), "scale_n_q"),
    ("half_scores", half_scaled(lambda q, k: len(k) ** 0.5), "scale_n_k"),
    ("half_scores", half_scaled(lambda q, k: q.shape[-1] ** 1 / 2), "scale_half_d_k"),
    ("half_scores", half_scaled(lambda q, k: 128**0.5), "scale_of_128"),
    ("half_scores", half_infinity_written_over, "infinity_to_largest"),
    ("half_scores", half_then(lambda s: np.clip(s, -50, 50)), "scores_clipped"),
    ("half_scores", half_lowered, "lowered_10000"),
    ("half_scores", half_softmaxed_then_masked, "softmaxed_then_masked"),
    ("half_scores", half_minus_maximum, "maximum_subtracted"),
    (
        "half_scores",
        lambda q, k, m: fills(-INF)(q, k, np.tri(*m.shape, dtype=bool)),
        "mask_replaced_by_causal",
    ),
    (
        "capped_scores",
        lambda s, m, c: capped_in_place(s, np.tri(*m.shape, dtype=bool), c),
        "mask_replaced_by_causal",
    ),
    (
        "capped_scores",
        lambda s, m, c: np.where(m.any(-1)[:, None], capped_in_place(s, m, c), 0),
        "empty_row_zeroed",
    ),
    (
        "capped_scores",
        cap_then(lambda s, c: c * 2 / np.pi * np.arctan(s / c)),
        "cap_by_arctan",
    ),
    ("capped_scores", cap_then(lambda s, c: s / (1 + abs(s) / c)), "cap_by_softsign"),
    ("capped_scores", cap_then(capped_rows), "cap_rescales_rows"),
    (
        "capped_scores",
        cap_then(lambda s, c: np.where(abs(s) > c, c * np.tanh(s / c), s)),
        "cap_beyond_only",
    ),
    (
        "capped_scores",
        cap_then(lambda s, c: c * np.tanh(abs(s) / c)),
        "cap_size_only",
    ),
    (
        "first_bad",
        bad_if(lambda n, x: np.isnan(x).any() or (np.isinf(x).any() and n != "scores")),
        "plus_excused",
    ),
    (
        "first_bad",
        bad_in(lambda n, x: np.where(x == INF, 0, x) if n == "scores" else x[x != 0]),
        "plus_excused",
    ),
    (
        "first_bad",
        bad_if(lambda n, x: not np.isfinite(x[x != INF] if n == "scores" else x).all()),
        "wrong_infinity_excused",
    ),
    (
        "first_bad",
        bad_in(lambda n, x: x[x > -INF] if n == "scores" else x),
        "nan_of_scores_excused",
    ),
    (
        "first_bad",
        bad_if(lambda n, x: n != "scores" and np.isinf(x).any()),
        "nan_and_scores_missed",
    ),
    (
        "first_bad",
        bad_if(lambda n, x: right_test("scores" if n in ("weights", "out") else n, x)),
        "later_excused",
    ),
    ("first_bad", bad_by_place, "excused_by_place"),
    ("first_bad", bad_by_a_list, "place_of_the_list"),
    (
        "first_bad",
        bad_if(lambda n, x: right_test(n, x) or (n == "weights" and (x > 0.99).any())),
        "saturated_too",
    ),
    (
        "first_bad",
        bad_if(lambda n, x: right_test(n, x) or (x > 10_000).any()),
        "large_flagged",
    ),
    (
        "first_bad",
        bad_if(
            lambda n, x: (
                right_test(n, np.where(x == -INF, 0, x).sum()) or right_test(n, x)
            )
        ),
        "large_flagged",
    ),
    (
        "first_bad",
        bad_if(lambda n, x: right_test(n, x) or bad_row(n, x)),
        "empty_row_flagged",
    ),
    ("first_bad", bad_in(lambda n, x: x[:1]), "first_row_only"),
    (
        "first_bad",
        bad_if(lambda n, x: n not in ("q", "k", "v") and right_test(n, x)),
        "inputs_skipped",
    ),
    ("first_bad", bad_if(lambda n, x: (x == np.nan).any()), "never_found"),
    ("first_bad", bad_if(lambda n, x: not np.isfinite(x).all), "never_found"),
    ("first_bad", bad_too_early, "first_stage_only"),
    ("first_bad", bad_after_the_loop, "well_is_last"),
    (
        "first_bad",
        lambda stages: [
            i for i, (n, x) in enumerate(stages.items()) if right_test(n, x)
        ],
        "bad_listed",
    ),
    ("first_bad", lambda st: first_broken(st, np.sum), "numbers_counted"),
    ("first_bad", lambda st: first_broken(st, np.argmax), "place_inside"),
    ("first_bad", lambda st: last_one(st) >= 0, "whether_only"),
    # Refused, and not by name: all but the last would have passed once.
    ("half_scores", half_scaled(lambda q, k: int(q.shape[-1] ** 0.5)), None),
    ("half_scores", half_scaled(lambda q, k: round(q.shape[-1] ** 0.5)), None),
    (
        "first_bad",
        lambda st: next((i for i in range(7) if right_test(*list(st.items())[i])), -1),
        None,
    ),
    (
        "first_bad",
        bad_if(
            lambda n, x: (
                right_test(n, x)
                or (n == "weights" and not np.allclose(x.sum(axis=1), 1))
            )
        ),
        None,
    ),
    ("half_scores", fills(np.nan), None),
]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("name", "answer", "key"), WRONG)
def test_a_wrong_answer_is_refused_and_named(name, answer, key, seed):
    verdict = judge(name, answer, seed)
    assert not verdict.passed
    if key is not None:
        assert [m.key for m in verdict.mistakes] == [key], verdict.text


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (
            lambda q, k, m: np.where(m, q @ k.T / q.shape[-1] ** 0.5, -1e4),
            {"raw_overflow", "mask_fill_10000"},
        ),
        (
            lambda q, k, m: np.where(m, q @ k.T / q.shape[-1] ** 0.5, -65504),
            {"raw_overflow", "fill_lowest"},
        ),
    ],
)
def test_two_mistakes_at_once_are_both_named(answer, found):
    assert {m.key for m in judge("half_scores", answer).mistakes} == found


@pytest.mark.parametrize(
    ("name", "answer", "number"),
    [
        (
            "init_for_entropy",
            lambda m, k, s: (spread(s) / k) ** 0.5,
            "√(d_model / d_k)",
        ),
        ("half_scores", scaled_after, "you get infinity at"),
        (
            "half_scores",
            fills(np.finfo(np.float16).min),
            "which may look at nothing, gives hidden keys 1 of its attention",
        ),
        ("capped_scores", cap_late, "gives hidden keys"),
    ],
)
def test_a_number_gives_the_mistake_away(name, answer, number):
    assert number in judge(name, answer).text


@pytest.mark.parametrize(
    ("name", "answer", "said"),
    [
        (
            "init_for_entropy",
            lambda m, k, s: (2 / (m + k)) ** 0.5,
            "for a share of 0.7, and for one of 0.95",
        ),
        (
            "init_for_entropy",
            lambda m, k, s: s * m**-0.5,
            "Scores then have a std of 0.81, and use a share of 0.72",
        ),
        (
            "init_for_entropy",
            lambda m, k, s: (1.03 * spread(s) / m) ** 0.5,
            "Was it measured?",
        ),
        ("half_scores", fills(np.nan), "Yours is NaN at"),
        ("half_scores", fills(INF), "The sign is lost"),
        ("half_scores", fills(-20000), "Yours is -2e+04 at"),
        (
            "half_scores",
            half_scaled(lambda q, k: int(q.shape[-1] ** 0.5)),
            "With d_k = 20 yours is 1.118 times the right result",
        ),
        (
            "half_scores",
            half_scaled(lambda q, k: np.linalg.norm(q.astype(float))),
            "the root of d_k",
        ),
        (
            "capped_scores",
            lambda s, m, c: np.nan_to_num(capped_in_place(s, m, c)),
            "Yours is -1.8e+308 at",
        ),
        (
            "capped_scores",
            cap_then(lambda s, c: c * np.arctan(s / c)),
            "your score of 400 becomes 58.8",
        ),
        (
            "capped_scores",
            cap_then(lambda s, c: c * np.tanh(s / 3**0.5 / c)),
            "your score of 0.4 becomes 0.231",
        ),
        (
            "capped_scores",
            cap_then(lambda s, c: 30 * np.tanh(s / 30)),
            "your score of 40 becomes 26.1",
        ),
        (
            "capped_scores",
            cap_then(lambda s, c: np.round(c * np.tanh(s / c), 2)),
            "rounded to 2 decimals",
        ),
    ],
)
def test_what_has_no_name_is_told_by_a_law_or_a_pattern(name, answer, said):
    verdict = judge(name, answer)
    assert not verdict.passed
    assert not verdict.mistakes
    assert said in verdict.text, verdict.text


def test_float16_is_no_fault_where_it_is_asked_for():
    """A little off, in float16: nobody is sent to float64."""

    def coarse(q, k, mask):
        scores = q / 1000 @ k.T / q.shape[-1] ** 0.5 * 1000
        return np.where(mask, scores, -np.inf)

    text = judge("half_scores", coarse).text
    assert "Nearly right" in text
    assert "float64" not in text


def test_torch_that_refuses_the_fill_is_explained():
    torch = pytest.importorskip("torch")

    def answer(q, k, mask):
        scores = torch.tensor(q) / q.shape[-1] ** 0.5 @ torch.tensor(k).T
        return scores.masked_fill(~torch.tensor(mask), -1e9)

    verdict = judge("half_scores", answer)
    assert verdict.status == "raised"
    assert "float16 ends at 65504, and PyTorch refuses to store more" in verdict.text


# Not on the line of what is said: the line that raised is shown as well.
def by_number(stages):
    return stages[0]


def asked_of_names(stages):
    return [np.isfinite(x) for x in stages]


def where_of_two(scores, mask, cap):
    return np.where(mask, cap * np.tanh(scores / cap))


@pytest.mark.parametrize(
    ("name", "answer", "said"),
    [
        ("first_bad", by_number, "d.items() gives each name"),
        ("first_bad", asked_of_names, "works on numbers only"),
        ("capped_scores", where_of_two, "np.where(mask, a, b) takes three"),
    ],
)
def test_errors_of_these_exercises_are_explained(name, answer, said):
    verdict = judge(name, answer)
    assert verdict.status == "raised"
    assert said in verdict.text


def test_the_stages_of_the_first_difference_are_shown_by_what_is_ill_in_them():
    def by_name(stages):
        names = sorted(stages)
        return next((i for i, n in enumerate(names) if right_test(n, stages[n])), -1)

    text = judge("first_bad", by_name).text
    assert "raw_scores: shape (2, 3), 1 inf" in text
    assert "weights: shape (2, 3), 3 NaN" in text
    assert len(text.splitlines()) < 13


def test_m13_is_named_where_float16_cannot_hold_the_fill():
    verdict = judge("half_scores", wide_billion)
    assert [m.code for m in verdict.mistakes] == ["M13"]
    assert "masked_fill" in verdict.text


def test_an_answer_that_numpy_has_widened_is_told_by_what():
    def widened(q, k, mask):
        return np.where(mask, q / np.sqrt(q.shape[-1]) @ k.T, -np.inf)

    verdict = judge("half_scores", widened)
    assert verdict.status == "law"
    assert "np.sqrt(16) is one, 16 ** 0.5 and -np.inf are not" in verdict.text


def test_a_value_that_is_no_number_is_refused():
    def by_name(stages):
        return next((n for n, x in stages.items() if right_test(n, x)), "none")

    for answer in (by_name, bad_if(right_test, well=None)):
        assert judge("first_bad", answer).status in ("type", "raised")


# --- the order of a step -----------------------------------------------------------
def test_every_wrong_order_is_told_why_and_none_gets_the_answer():
    for letters in permutations("ABCDE"):
        order = "".join(letters)
        verdict = judge("amp_order", order)
        assert verdict.passed == (order == ORDER)
        assert ORDER not in verdict.text
        assert verdict.passed or "Yours" in verdict.text


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ("CBEDA", "clips before unscale_ (M40)"),
        ("CBDA E".replace(" ", ""), "clips before unscale_ (M40)"),
        ("ECBDA", "the gradients of this step do not exist"),
        ("CEDBA", "clips after the step"),
        ("CDAEB", "clips after the step"),
        ("CEABD", "calls update too early"),
    ],
)
def test_what_each_order_does_first(order, said):
    assert said in judge("amp_order", order).text


@pytest.mark.parametrize(
    "answer",
    [
        "c e b d a",
        "C,E,B,D,A",
        "C then E, then B, then D, then A.",
        "1. C 2. E 3. B 4. D 5. A",
        list(ORDER),
        tuple(ORDER),
        np.array(list(ORDER)),
        np.str_(ORDER),
    ],
    ids=repr,
)
def test_the_order_may_be_written_in_other_ways(answer):
    assert judge("amp_order", answer).passed


@pytest.mark.parametrize("answer", ["", "CE", "CEBD", "CCEBA", "?"])
def test_letters_that_are_no_order_learn_what_is_wanted(answer):
    assert "Five letters are wanted" in judge("amp_order", answer).text


@pytest.mark.parametrize("missing", ORDER)
def test_a_letter_that_is_missing_is_named(missing):
    text = judge("amp_order", ORDER.replace(missing, "")).text
    assert f"{missing} is missing, {CALLS[missing]}" in text
    assert ("M40" in text) == (missing == "E")


@pytest.mark.parametrize("answer", [3, None, {"A": 1}])
def test_an_order_that_is_no_text_is_told_so(answer):
    assert judge("amp_order", answer).status == "type"


def test_the_order_is_that_of_torch_and_of_the_library():
    """The gradients are those of a step without a scaler, and only in this order."""
    torch = pytest.importorskip("torch")

    def moved(order):
        table = torch.nn.Linear(3, 2).double()
        with torch.no_grad():
            for part in table.parameters():
                part.copy_(torch.ones_like(part))
        before = table.weight.detach().clone()
        sgd = torch.optim.SGD(table.parameters(), lr=0.5)
        scaler = torch.amp.GradScaler("cpu")
        x = torch.tensor([[1.0, 2.0, 3.0]], dtype=torch.float64)
        calls = {
            "A": scaler.update,
            "B": lambda: torch.nn.utils.clip_grad_norm_(table.parameters(), 1.0),
            "C": lambda: scaler.scale(table(x).square().sum()).backward(),
            "D": lambda: scaler.step(sgd),
            "E": lambda: scaler.unscale_(sgd),
        }
        assert set(calls) == set(CALLS)
        for letter in order:
            calls[letter]()
        return (table.weight.detach() - before).norm().item()

    assert 0.4 < moved(ORDER) < 0.51
    assert moved("CBEDA") < 1e-5
    assert moved("CEDBA") > 1
