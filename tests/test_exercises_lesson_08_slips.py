"""Lesson 08: more answers as learners write them, each with what it has to be told."""

from __future__ import annotations

import math

import numpy as np
import pytest

from attnlib import positions
from attnlib.exercises import get, judge

right_table = positions.sinusoidal


def right_rope(x, places, layout):
    return positions.rope(x, places, layout=layout)


def formula(n):
    return 2.0 ** (-8 * np.arange(1, n + 1) / n)


def below(n):
    return 2 ** int(np.log2(n))


def factor(scale, d):
    return max(1, scale) ** (d / (d - 2))


# --- the sinusoid -------------------------------------------------------------------
def sinusoid(exponent, base=10000.0, sign=1):
    def sinusoidal(n, d_model):
        turns = base ** exponent(np.arange(d_model // 2), d_model)
        angles = sign * np.arange(n)[:, None] * turns
        table = np.empty((n, d_model))
        table[:, 0::2], table[:, 1::2] = np.sin(angles), np.cos(angles)
        return table

    return sinusoidal


def pairs(i, d):
    return -2 * i / d


def without_brackets(n, d_model):
    turns = 10000.0**-2 * np.arange(d_model // 2) / d_model
    angles = np.arange(n)[:, None] * turns
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(n, d_model)


def return_in_the_loop(n, d_model):
    table = np.zeros((n, d_model))
    for place in range(n):
        for i in range(d_model // 2):
            angle = place * 10000 ** (-2 * i / d_model)
            table[place, 2 * i], table[place, 2 * i + 1] = np.sin(angle), np.cos(angle)
        return table


def sines_only_written(n, d_model):
    table = np.zeros((n, d_model))
    table[:, 0::2] = right_table(n, d_model)[:, 0::2]
    return table


def sines_in_every_second_row(n, d_model):
    turns = 10000.0 ** (-2 * (np.arange(d_model) // 2) / d_model)
    angles = np.arange(n)[:, None] * turns
    angles[0::2], angles[1::2] = np.sin(angles[0::2]), np.cos(angles[1::2])
    return angles


# --- RoPE ---------------------------------------------------------------------------
def rotary(new, d_of=lambda d: d, base=10000.0):
    def rope(x, positions, layout):
        d = x.shape[-1]
        angles = positions[:, None] * base ** (-2 * np.arange(d // 2) / d_of(d))
        features = np.arange(d).reshape(2, -1)
        if layout == "interleaved":
            features = np.arange(d).reshape(-1, 2).T
        first, second = features
        out = np.empty_like(x)
        a, b, c, s = x[..., first], x[..., second], np.cos(angles), np.sin(angles)
        out[..., first], out[..., second] = new(a, b, c, s)
        return out

    return rope


def turn(a, b, c, s):
    return a * c - b * s, a * s + b * c


# --- slopes -------------------------------------------------------------------------
def joined(others, first=lambda n: formula(below(n)), cut=True):
    def alibi_slopes(n_heads):
        more = n_heads - below(n_heads)
        rest = np.asarray(others(n_heads))
        return np.concatenate([first(n_heads), rest[:more] if cut else rest])

    return alibi_slopes


def twice(n):
    return formula(2 * below(n))


NAMED = [
    ("sinusoidal", without_brackets, "angles_zero"),
    ("sinusoidal", return_in_the_loop, "table_whole"),
    ("sinusoidal", lambda n, d: np.zeros((n, d)), "table_empty"),
    ("sinusoidal", sines_only_written, "cosines_missing"),
    ("sinusoidal", sines_in_every_second_row, "sines_by_row"),
    ("sinusoidal", sinusoid(lambda i, d: -2 * i / 16), "frequency_of_16"),
    ("sinusoidal", sinusoid(pairs, base=100000.0), "base_100000"),
    ("sinusoidal", sinusoid(pairs, sign=-1), "sines_negative"),
    ("sinusoidal", lambda n, d: right_table(n, d) / np.sqrt(d), "table_scaled"),
    ("rope", lambda x, p, layout: x, "angles_zero"),
    (
        "rope",
        lambda x, p, o: positions.rope(x, p) if o == "interleaved" else x,
        "half_untouched",
    ),
    ("rope", rotary(turn, base=500000.0), "base_500000"),
    ("rope", rotary(turn, d_of=lambda d: 16), "frequency_of_16"),
    ("rope", rotary(lambda a, b, c, s: (a + s, b + c)), "sinusoid_added"),
    ("rope", rotary(lambda a, b, c, s: (a * s, b * c)), "sinusoid_multiplied"),
    ("rope", rotary(lambda a, b, c, s: (a * c - b * s, a * s - b * c)), "cosine_sign"),
    (
        "rope",
        rotary(lambda a, b, c, s: (a * c - b * s, 0 * b)),
        "second_features_zero",
    ),
    ("alibi_slopes", lambda n: 2.0 ** -np.arange(1.0, n + 1), "slopes_eight_heads"),
    ("alibi_slopes", joined(lambda n: twice(n)[0::2], cut=False), "between_not_cut"),
    ("alibi_slopes", lambda n: formula(below(n)), "between_missing"),
    (
        "alibi_slopes",
        joined(lambda n: twice(n)[: n - below(n)][0::2]),
        "between_cut_too_early",
    ),
    (
        "alibi_slopes",
        joined(lambda n: 2.0 ** (-8 * np.arange(1, 2 * n, 2) / below(n))),
        "between_of_below",
    ),
    (
        "alibi_slopes",
        joined(lambda n: formula(max(n - below(n), 1))),
        "between_of_rest",
    ),
    ("alibi_slopes", joined(np.zeros), "between_zero"),
    (
        "alibi_slopes",
        lambda n: 2.0 ** (-8 * np.arange(1, n + 1) / below(n)),
        "between_continued",
    ),
    (
        "alibi_slopes",
        joined(lambda n: 2.0 ** (-4 * np.arange(0, 2 * n, 2) / below(n))),
        "between_from_one",
    ),
    (
        "alibi_slopes",
        joined(
            lambda n: twice(n)[0::2],
            lambda n: 2.0 ** (-8 * np.arange(1, below(n) + 1) / n),
        ),
        "first_by_count",
    ),
    ("alibi_slopes", lambda n: np.sort(positions.alibi_slopes(n)), "slopes_ascending"),
    ("alibi_slopes", lambda n: np.log2(positions.alibi_slopes(n)), "slopes_exponents"),
    ("ntk_base", lambda b, s, d: b, "ntk_base_unchanged"),
    ("ntk_base", lambda b, s, d: b * min(1, s) ** (d / (d - 2)), "ntk_min"),
    ("ntk_base", lambda b, s, d: b * (s / 1024) ** (d / (d - 2)), "ntk_over_1024"),
    ("ntk_base", lambda b, s, d: b * factor(int(s), d), "ntk_scale_whole"),
    ("ntk_base", lambda b, s, d: b * factor(math.ceil(s), d), "ntk_scale_up"),
    ("ntk_base", lambda b, s, d: 1 if s < 1 else b * factor(s, d), "ntk_one_below"),
    ("ntk_base", lambda b, s, d: b * factor(max(s, 1 / s), d), "ntk_mirrored"),
    ("ntk_base", lambda b, s, d: b * max(1, s) ** (d / d - 2), "ntk_unbracketed"),
    ("ntk_base", lambda b, s, d: b * max(1, s) ** (d // (d - 2)), "ntk_whole_division"),
    ("ntk_base", lambda b, s, d: b * factor(s, 128), "ntk_d_fixed"),
    ("ntk_base", lambda b, s, d: b ** (-(d - 2) / d) / max(1, s), "ntk_frequency"),
    ("ntk_base", lambda b, s, d: b ** ((d - 2) / d) * max(1, s), "ntk_root_missing"),
    (
        "ntk_base",
        lambda b, s, d: (b * factor(s, d)) ** (-2 * np.arange(d // 2) / d),
        "ntk_frequencies",
    ),
    (
        "ntk_base",
        lambda b, s, d: b ** (-2 * np.arange(d // 2) / d) / max(1, s),
        "ntk_interpolation",
    ),
    ("ntk_base", lambda b, s, d: b ** max(1, s), "ntk_base_powered"),
]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("name", "answer", "key"), NAMED)
def test_a_slip_is_named_alone_and_with_a_number(name, answer, key, seed):
    verdict = judge(name, answer, seed)
    assert [m.key for m in verdict.mistakes] == [key], verdict.text
    assert "What gave it away" in verdict.text


# --- wrong answers that once passed -------------------------------------------------
def rounded_here(b, s, d):
    return round(b * factor(s, d), 2)


def cut_off_here(b, s, d):
    return int(b * factor(s, d))


def four_features_are_special(b, s, d):
    return b * max(1, s) if d == 4 else b * factor(s, d)


@pytest.mark.parametrize(
    ("name", "answer", "status"),
    [
        ("sinusoidal", lambda n, d: right_table(n, d).squeeze(), "shape"),
        ("ntk_base", rounded_here, "differs"),
        ("ntk_base", cut_off_here, "differs"),
        ("ntk_base", lambda b, s, d: b * factor(s, d) + 0.01, "differs"),
        ("ntk_base", four_features_are_special, "differs"),
        ("rope", lambda x, p, o: right_rope(x, np.sort(p), o), "differs"),
    ],
)
def test_a_wrong_answer_does_not_pass(name, answer, status):
    assert judge(name, answer).status == status


# --- errors and forms ---------------------------------------------------------------
def rope_of_the_module(x, positions, layout):
    return positions.rope(x, positions, layout=layout)


def swapped(scale, base, d):
    return base * factor(scale, d)


def pieces_without_brackets(n_heads):
    first, others = formula(8), formula(16)
    return np.concatenate(first, others[0::2])


def whole_base(n_heads):
    return 2 ** -np.arange(1, n_heads + 1)


def one_position_too_few(n, d_model):
    table = np.empty((n, d_model))
    table[:] = right_table(n - 1, d_model)
    return table


def largest_of_two(base, scale, d):
    return base * np.max(1, scale) ** (d / (d - 2))


@pytest.mark.parametrize(
    ("name", "answer", "said"),
    [
        ("rope", rope_of_the_module, "`positions` is the argument: it hides"),
        ("ntk_base", swapped, "should be called as ntk_base(base, scale, d)"),
        ("alibi_slopes", pieces_without_brackets, "np.concatenate([a, b])"),
        ("alibi_slopes", whole_base, "no negative powers"),
        ("sinusoidal", one_position_too_few, "has the shape (2,4), and the place"),
        ("ntk_base", largest_of_two, "numbers: max(a, b)"),
        ("ntk_base", lambda b, s, d: (b, s), "It returns a tuple of 2"),
        ("ntk_base", rounded_here, "rounded to 2 decimals"),
        ("sinusoidal", return_in_the_loop, "a `return` inside the loop"),
    ],
)
def test_an_error_is_told_what_it_means(name, answer, said):
    assert said in judge(name, answer).text


def test_a_tuple_of_numbers_is_a_list_of_slopes():
    assert judge("alibi_slopes", lambda n: tuple(positions.alibi_slopes(n))).passed


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("ntk_base", lambda b, s, d: b * max(1, s ** (d / (d - 2)))),
        ("ntk_base", lambda b, s, d: max(b, b * s ** (d / (d - 2)))),
        ("ntk_base", lambda b, s, d: np.float32(b * factor(s, d))),
        ("rope", lambda x, p, o: right_rope(x, p, o).tolist()),
        ("sinusoidal", lambda n, d: list(right_table(n, d))),
    ],
)
def test_a_right_answer_in_another_form_passes(name, answer):
    verdict = judge(name, answer)
    assert verdict.passed, verdict.text


def test_the_solution_of_rope_needs_nothing_that_no_lesson_shows():
    assert "slice(" not in get("rope").solution_source
