"""Lesson 08: answers as people write them, right and wrong, and what they are told."""

from __future__ import annotations

import math

import numpy as np
import pytest

from attnlib import positions
from attnlib.exercises import get, judge, names

LESSON = ("sinusoidal", "rope", "alibi_slopes", "ntk_base")


def test_the_lesson_has_these_exercises_and_their_minutes_fit_into_its_text():
    assert set(names(8)) == set(LESSON)
    assert sum(get(name).minutes for name in LESSON) == 30


# --- right answers written another way --------------------------------------------
def sinusoid_by_loops(n, d_model):
    table = np.zeros((n, d_model))
    for pos in range(n):
        for i in range(0, d_model, 2):
            angle = pos / 10000 ** (i / d_model)
            table[pos, i], table[pos, i + 1] = math.sin(angle), math.cos(angle)
    return table


def sinusoid_by_exp(n, d_model):
    turns = np.exp(np.arange(0, d_model, 2) * -(np.log(10000.0) / d_model))
    angles = np.outer(np.arange(n), turns)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(n, d_model)


def sinusoid_by_where(n, d_model):
    column = np.arange(d_model)
    angles = np.arange(n)[:, None] / 10000 ** (2 * (column // 2) / d_model)
    return np.where(column % 2, np.cos(angles), np.sin(angles))


def sinusoid_in_float32(n, d_model):
    return positions.sinusoidal(n, d_model).astype(np.float32)


def rotated_half(x):
    a, b = np.split(x, 2, axis=-1)
    return np.concatenate([-b, a], axis=-1)


def rope_by_rotate_half(x, places, layout):
    """As transformers and GPT-J have it: x cos + rotated x sin."""
    d = x.shape[-1]
    angles = places[:, None] / 10000 ** (np.arange(0, d, 2) / d)
    if layout == "half":
        angles, other = np.tile(angles, 2), rotated_half(x)
    else:
        other = np.stack([-x[..., 1::2], x[..., 0::2]], axis=-1).reshape(x.shape)
        angles = np.repeat(angles, 2, axis=-1)
    return x * np.cos(angles) + other * np.sin(angles)


def rope_by_complex(x, places, layout):
    d = x.shape[-1]
    if layout == "half":
        pairs = x[..., : d // 2] + 1j * x[..., d // 2 :]
    else:
        pairs = x[..., 0::2] + 1j * x[..., 1::2]
    turns = 10000.0 ** (-np.arange(0, d, 2) / d)
    pairs = pairs * np.exp(1j * places[:, None] * turns)
    if layout == "half":
        return np.concatenate([pairs.real, pairs.imag], axis=-1)
    return np.stack([pairs.real, pairs.imag], axis=-1).reshape(x.shape)


def rope_by_order(x, places, layout):
    order = positions.half_order(x.shape[-1])
    if layout == "interleaved":
        out = np.empty_like(x)
        out[..., order] = positions.rope(x[..., order], places, layout="half")
        return out
    return positions.rope(x, places, layout="half")


def rope_in_float32(x, places, layout):
    x = x.astype(np.float32)
    d = x.shape[-1]
    turns = (10000.0 ** (-np.arange(0, d, 2) / d)).astype(np.float32)
    angles = places.astype(np.float32)[:, None] * turns
    cos, sin = np.cos(angles), np.sin(angles)
    cut = (
        (slice(0, d, 2), slice(1, d, 2))
        if layout == "interleaved"
        else (slice(0, d // 2), slice(d // 2, d))
    )
    a, b = (x[..., part] for part in cut)
    out = x.copy()
    out[..., cut[0]], out[..., cut[1]] = a * cos - b * sin, b * cos + a * sin
    return out


def slopes_as_the_authors(n):
    """The recursion of the authors' code."""

    def power(n):
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [start * start**i for i in range(n)]

    if math.log2(n).is_integer():
        return power(n)
    closest = 2 ** math.floor(math.log2(n))
    return power(closest) + slopes_as_the_authors(2 * closest)[0::2][: n - closest]


def ntk_by_where(base, scale, d):
    return base if scale <= 1 else base * np.power(scale, d / (d - 2))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("sinusoidal", positions.sinusoidal),
        ("sinusoidal", sinusoid_by_loops),
        ("sinusoidal", sinusoid_by_exp),
        ("sinusoidal", sinusoid_by_where),
        ("sinusoidal", sinusoid_in_float32),
        ("rope", lambda x, p, layout: positions.rope(x, p, layout=layout)),
        ("rope", rope_by_rotate_half),
        ("rope", rope_by_complex),
        ("rope", rope_by_order),
        ("rope", rope_in_float32),
        ("alibi_slopes", positions.alibi_slopes),
        ("alibi_slopes", slopes_as_the_authors),
        ("alibi_slopes", lambda n: positions.alibi_slopes(n).astype(np.float32)),
        ("ntk_base", lambda b, s, d: positions.ntk_base(b, max(1, s), d)),
        ("ntk_base", ntk_by_where),
        ("ntk_base", lambda b, s, d: b * max(s, 1) ** (1 / (1 - 2 / d))),
    ],
)
def test_another_right_way_passes(name, answer, seed):
    verdict = judge(name, answer, seed)
    assert verdict.passed, verdict.text


# --- wrong answers, as people write them ------------------------------------------
def sinusoid(exponent=None, sin=np.sin, cos=np.cos, places=np.arange):
    """The table from an exponent for every column."""

    def sinusoidal(n, d_model):
        column = np.arange(d_model)
        power = 2 * (column // 2) / d_model if exponent is None else None
        power = exponent(column, d_model) if power is None else power
        angles = places(n)[:, None] / 10000.0**power
        return np.where(column % 2 == 0, sin(angles), cos(angles))

    return sinusoidal


def sinusoid_by_steps_of_two(n, d_model):
    """A public one: i runs in steps of two, and is doubled once more."""
    table = np.zeros((n, d_model))
    for pos in range(n):
        for i in range(0, d_model, 2):
            table[pos, i] = math.sin(pos / 10000 ** (2 * i / d_model))
            table[pos, i + 1] = math.cos(pos / 10000 ** (2 * (i + 1) / d_model))
    return table


def sinusoid_doubled_for_both(n, d_model):
    table = np.zeros((n, d_model))
    for pos in range(n):
        for i in range(0, d_model, 2):
            angle = pos / 10000 ** (2 * i / d_model)
            table[pos, i], table[pos, i + 1] = math.sin(angle), math.cos(angle)
    return table


def sinusoid_in_halves(n, d_model):
    right = positions.sinusoidal(n, d_model)
    return np.concatenate([right[:, 0::2], right[:, 1::2]], axis=-1)


def sinusoid_of_integers(n, d_model):
    table = np.zeros((n, d_model), dtype=int)
    table[:] = positions.sinusoidal(n, d_model)
    return table


def sinusoid_on_its_side(n, d_model):
    return positions.sinusoidal(n, d_model).T


def tables(x, places, turns=None):
    """Angles and the slices of the pairs, interleaved and half."""
    d = x.shape[-1]
    turns = 10000.0 ** (-2 * np.arange(d // 2) / d) if turns is None else turns(d)
    angles = places[:, None] * turns
    cut = {
        "interleaved": (slice(0, d, 2), slice(1, d, 2)),
        "half": (slice(0, d // 2), slice(d // 2, d)),
    }
    return angles, cut


def rotary(turns=None, new=None, layouts=None, places=lambda p: p):
    """RoPE with one step replaced."""

    def rope(x, positions, layout):
        angles, cut = tables(x, places(positions), turns)
        first, second = cut[layout if layouts is None else layouts(layout)]
        a, b = x[..., first], x[..., second]
        out = np.empty_like(x)
        c, s = np.cos(angles), np.sin(angles)
        two = (a * c - b * s, a * s + b * c) if new is None else new(a, b, c, s)
        out[..., first], out[..., second] = two
        return out

    return rope


def rope_into_views(x, places, layout):
    angles, cut = tables(x, places)
    out = x.copy()
    a, b = (out[..., part] for part in cut[layout])
    c, s = np.cos(angles), np.sin(angles)
    a[:] = a * c - b * s
    b[:] = a * s + b * c
    return out


def rope_concatenated(x, places, layout):
    """Reads each layout right, and puts all first ones in front."""
    angles, cut = tables(x, places)
    a, b = (x[..., part] for part in cut[layout])
    c, s = np.cos(angles), np.sin(angles)
    return np.concatenate([a * c - b * s, a * s + b * c], axis=-1)


def rope_tiled(x, places, layout):
    """The sines and cosines of "half", in both layouts."""
    angles, _ = tables(x, places)
    angles = np.tile(angles, 2)
    if layout == "half":
        other = rotated_half(x)
    else:
        other = np.stack([-x[..., 1::2], x[..., 0::2]], axis=-1).reshape(x.shape)
    return x * np.cos(angles) + other * np.sin(angles)


def formula(n):
    return 2.0 ** (-8 * np.arange(1, n + 1) / n)


def slopes(first=None, others=None, join=None):
    def alibi_slopes(n):
        p = 2 ** int(np.log2(n))
        a = (formula if first is None else first)(p)
        b = formula(2 * p)[0::2] if others is None else others(p)
        if join is not None:
            return join(a, b[: n - p])
        return np.concatenate([a, b[: n - p]])

    return alibi_slopes


def nearest(n):
    p = 2 ** round(np.log2(n))
    return np.concatenate([formula(p), formula(2 * p)[0::2]])[:n]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("name", "answer", "key"),
    [
        ("sinusoidal", sinusoid(lambda c, d: c / d), "frequency_by_column"),
        ("sinusoidal", sinusoid_by_steps_of_two, "frequency_by_column_doubled"),
        ("sinusoidal", sinusoid_doubled_for_both, "frequency_doubled_twice"),
        ("sinusoidal", sinusoid(lambda c, d: c // 2 / d), "frequency_not_doubled"),
        (
            "sinusoidal",
            sinusoid(lambda c, d: 2 * (c // 2 + 1) / d),
            "frequency_from_one",
        ),
        ("sinusoidal", sinusoid(lambda c, d: -2 * (c // 2) / d), "frequency_sign"),
        ("sinusoidal", sinusoid(lambda c, d: 0 * c), "frequency_one"),
        (
            "sinusoidal",
            sinusoid(lambda c, d: 0.75 * 2 * (c // 2) / d),
            "base_1000",
        ),
        ("sinusoidal", sinusoid(sin=np.cos, cos=np.sin), "sin_cos_exchanged"),
        ("sinusoidal", sinusoid(cos=np.sin), "sin_only"),
        (
            "sinusoidal",
            sinusoid(places=lambda n: np.arange(1, n + 1)),
            "positions_from_one",
        ),
        ("sinusoidal", sinusoid(places=lambda n: np.arange(n) / n), "positions_over_n"),
        ("sinusoidal", sinusoid_in_halves, "sin_then_cos"),
        ("sinusoidal", sinusoid_of_integers, "table_whole"),
        ("sinusoidal", sinusoid_on_its_side, "table_transposed"),
        (
            "rope",
            rotary(layouts=lambda layout: "interleaved"),
            "layout_always_interleaved",
        ),
        ("rope", rotary(layouts=lambda layout: "half"), "layout_always_half"),
        (
            "rope",
            rotary(layouts=lambda x: {"half": "interleaved"}.get(x, "half")),
            "layouts_exchanged",
        ),
        (
            "rope",
            rotary(turns=lambda d: 10000.0 ** (-np.arange(d // 2) / d)),
            "frequency_not_doubled",
        ),
        (
            "rope",
            rotary(turns=lambda d: 10000.0 ** (-2 * np.arange(d // 2) / (d // 2))),
            "frequency_doubled_twice",
        ),
        (
            "rope",
            rotary(turns=lambda d: 10000.0 ** (-2 * np.arange(1, d // 2 + 1) / d)),
            "frequency_from_one",
        ),
        (
            "rope",
            rotary(turns=lambda d: 10000.0 ** (2 * np.arange(d // 2) / d)),
            "frequency_sign",
        ),
        ("rope", rotary(turns=lambda d: np.ones(d // 2)), "frequency_one"),
        ("rope", rotary(places=lambda p: np.arange(len(p))), "positions_ignored"),
        ("rope", rotary(places=lambda p: p + 1), "positions_from_one"),
        ("rope", rotary(places=lambda p: p - p[0]), "positions_from_first"),
        (
            "rope",
            rotary(new=lambda a, b, c, s: (a * c + b * s, b * c - a * s)),
            "turned_backwards",
        ),
        (
            "rope",
            rotary(new=lambda a, b, c, s: (a * c + b * s, a * s + b * c)),
            "first_sign",
        ),
        (
            "rope",
            rotary(new=lambda a, b, c, s: (a * c - b * s, b * c - a * s)),
            "second_sign",
        ),
        (
            "rope",
            rotary(new=lambda a, b, c, s: (a * s - b * c, a * c + b * s)),
            "sin_cos_exchanged",
        ),
        (
            "rope",
            rotary(new=lambda a, b, c, s: (a * c + a * s, b * c + b * s)),
            "partner_missing",
        ),
        (
            "rope",
            rotary(new=lambda a, b, c, s: (a * c - b * s, b)),
            "first_of_pairs_only",
        ),
        ("rope", rope_into_views, "first_overwritten"),
        ("rope", rope_concatenated, "joined_as_half"),
        ("rope", rope_tiled, "angles_always_tiled"),
        ("rope", lambda x, p, o: x + rotary()(x, p, o), "turned_added"),
        ("alibi_slopes", formula, "slopes_by_formula"),
        (
            "alibi_slopes",
            lambda n: formula(2 ** math.ceil(math.log2(n)))[:n],
            "slopes_power_above",
        ),
        ("alibi_slopes", nearest, "slopes_power_nearest"),
        (
            "alibi_slopes",
            slopes(others=lambda p: formula(2 * p)),
            "between_from_the_start",
        ),
        ("alibi_slopes", slopes(others=lambda p: formula(2 * p)[1::2]), "between_odd"),
        ("alibi_slopes", slopes(others=formula), "between_odd"),
        (
            "alibi_slopes",
            slopes(join=lambda a, b: np.concatenate([b, a])),
            "between_first",
        ),
        (
            "alibi_slopes",
            slopes(join=lambda a, b: sorted([*a, *b], reverse=True)),
            "slopes_sorted",
        ),
        (
            "alibi_slopes",
            slopes(
                lambda p: 2.0 ** (-8 * np.arange(p) / p),
                lambda p: 2.0 ** (-8 * np.arange(2 * p) / (2 * p))[0::2],
            ),
            "slopes_from_one",
        ),
        ("alibi_slopes", lambda n: -slopes()(n), "slopes_negative"),
        ("alibi_slopes", lambda n: slopes()(n)[:, None, None], "slopes_with_axes"),
        ("ntk_base", lambda b, s, d: b * max(1, s), "ntk_no_exponent"),
        (
            "ntk_base",
            lambda b, s, d: b * max(1, s) ** ((d - 2) / d),
            "ntk_exponent_inverted",
        ),
        ("ntk_base", lambda b, s, d: b * max(1, s) ** (d / (d - 1)), "ntk_minus_one"),
        ("ntk_base", lambda b, s, d: b * s ** (d / (d - 2)), "ntk_shrinks"),
        (
            "ntk_base",
            lambda b, s, d: (b * max(1, s)) ** (d / (d - 2)),
            "ntk_all_raised",
        ),
        (
            "ntk_base",
            lambda b, s, d: b / max(1, s) ** (d / (d - 2)),
            "ntk_scale_inverted",
        ),
        (
            "ntk_base",
            lambda b, s, d: 10000 * max(1, s) ** (d / (d - 2)),
            "ntk_base_fixed",
        ),
        (
            "ntk_base",
            lambda b, s, d: b * max(1, s) ** (d / 2 / (d / 2 - 2)),
            "ntk_pairs_for_d",
        ),
    ],
)
def test_a_wrong_answer_is_named(name, answer, key, seed):
    verdict = judge(name, answer, seed)
    assert verdict.status == "mistake", verdict.text
    assert [m.key for m in verdict.mistakes] == [key], verdict.text


@pytest.mark.parametrize(
    ("name", "answer", "found"),
    [
        (
            "rope",
            rotary(
                turns=lambda d: 10000.0 ** (-np.arange(d // 2) / d),
                places=lambda p: p + 1,
            ),
            {"frequency_not_doubled", "positions_from_one"},
        ),
        (
            "rope",
            rotary(
                layouts=lambda layout: "half",
                new=lambda a, b, c, s: (a * c + b * s, b * c - a * s),
            ),
            {"layout_always_half", "turned_backwards"},
        ),
        (
            "alibi_slopes",
            lambda n: 2.0 ** (-8 * np.arange(n) / n),
            {"slopes_by_formula", "slopes_from_one"},
        ),
        ("ntk_base", lambda b, s, d: b * s, {"ntk_no_exponent", "ntk_shrinks"}),
    ],
)
def test_two_mistakes_at_once_are_both_named(name, answer, found):
    assert {m.key for m in judge(name, answer).mistakes} == found


@pytest.mark.parametrize(
    ("name", "answer", "number"),
    [
        (
            "sinusoidal",
            sinusoid(lambda c, d: c / d),
            "positions 0 and 1 have the dot product",
        ),
        (
            "rope",
            rotary(turns=lambda d: 10000.0 ** (-np.arange(d // 2) / d)),
            "pair 1 of token 1, at position 1, is turned by 0.1 radians, where 0.01",
        ),
        (
            "rope",
            rotary(layouts=lambda layout: "half"),
            "the token at position 0 is right",
        ),
        ("alibi_slopes", formula, "with 12 heads, the slope at [0] is 0.63 in yours"),
        (
            "ntk_base",
            lambda b, s, d: b * max(1, s),
            "the base times scale to the power of 1; 1.016 is right",
        ),
        (
            "ntk_base",
            lambda b, s, d: b * s ** (d / (d - 2)),
            "turns the base 10000 into 4889",
        ),
    ],
)
def test_a_number_gives_the_mistake_away(name, answer, number):
    assert number in judge(name, answer).text


def test_an_unknown_mistake_is_not_given_a_name():
    verdict = judge("rope", lambda x, p, layout: x * 1.5)
    assert verdict.status in ("differs", "law")
    assert not verdict.mistakes


def test_an_answer_that_writes_into_its_argument_is_told_so():
    def rope(x, places, layout):
        x[:] = rotary()(x, places, layout)
        return x

    assert judge("rope", rope).status == "mutates"
