# mypy: allow-untyped-defs, allow-untyped-calls
"""The exercises of lesson 08: where am I?"""

import numpy as np

from attnlib.clinic import probes
from attnlib.clinic.case import Case
from attnlib.clinic.families.positions import ROPE, SINUSOIDAL
from attnlib.clinic.families.slopes import ALIBI_SLOPES
from attnlib.clinic.families.stretches import NTK_BASE
from attnlib.exercises.exercise import Exercise, Law, Part
from attnlib.exercises.laws import CLOSE, batch_independent


def sinusoidal(n, d_model):
    """Give each position its vector of sines and cosines.

    n: how many positions, from 0
    d_model: how many numbers a token has, even
    returns: (n, d_model); columns 2 i and 2 i + 1 are pair i, the sine first;
        pair i turns by 10000 ** (-2 i / d_model) radians a token
    """
    turns = 10000.0 ** (-2 * np.arange(d_model // 2) / d_model)
    angles = np.arange(n)[:, None] * turns
    table = np.empty((n, d_model))
    table[:, 0::2] = np.sin(angles)
    table[:, 1::2] = np.cos(angles)
    return table


def rope(x, positions, layout):
    """Turn each pair of features by its frequency times the position.

    x: queries or keys, (..., n, d), d even
    positions: where each token stands, (n), whole numbers
    layout: "interleaved": features 2 i and 2 i + 1 are pair i;
        "half": features i and i + d/2 are
    returns: the turned x, in its shape; pair i turns by 10000 ** (-2 i / d)
        radians a token
    """
    d = x.shape[-1]
    turns = 10000.0 ** (-2 * np.arange(d // 2) / d)
    angles = positions[:, None] * turns
    cos, sin = np.cos(angles), np.sin(angles)
    features = np.arange(d)
    if layout == "half":
        first, second = features[: d // 2], features[d // 2 :]
    else:
        first, second = features[0::2], features[1::2]
    a, b = x[..., first], x[..., second]
    turned = np.empty_like(x)
    turned[..., first] = a * cos - b * sin
    turned[..., second] = a * sin + b * cos
    return turned


def alibi_slopes(n_heads):
    """Give each head its slope, as the authors' code does for any count.

    n_heads: how many heads, 1 or more
    returns: (n_heads), positive; at powers of two, head h = 0, 1, ... has
        2 ** (-8 (h + 1) / n_heads)
    """
    below = 2 ** int(np.log2(n_heads))
    first = 2.0 ** (-8 * np.arange(1, below + 1) / below)
    twice = 2.0 ** (-8 * np.arange(1, 2 * below + 1) / (2 * below))
    return np.concatenate([first, twice[0::2][: n_heads - below]])


def ntk_base(base, scale, d):
    """Raise the base of RoPE: the slowest pair slows down by the scale.

    base: the base that the model was trained with
    scale: wanted length over trained length; below 1 it counts as 1
    d: features of one head, even, at least 4
    returns: the new base, one number; the fastest pair stays as it is
    """
    return base * max(1, scale) ** (d / (d - 2))


def sinusoidal_cases(rng):
    """For `sinusoidal(n, d_model)`."""
    sizes = ((3, 4), (5, 6), (4, 2), (9, 10), (40, 16), (1, 8))
    return tuple(Case(f"n={n}, d_model={d}", (n, d)) for n, d in sizes)


def rope_cases(rng):
    """For `rope(x, positions, layout)`: counted from 0, and behind a cache."""

    def case(shape, places, layout):
        *batch, n, d = shape
        told = ", ".join(map(str, places))
        of = f"a batch of {'x'.join(map(str, batch))}, " if batch else ""
        x = probes.table(rng, *shape)
        x = np.where(x == 0, 0.5, x)  # a 0 could hide what it is multiplied by
        where = f"position {told}" if n == 1 else f"positions {told}"
        name = f"{layout}, {of}n={n}, d={d}, {where}"
        return Case(name, (x, np.array(places), layout))

    return (
        case((3, 4), (0, 1, 2), "interleaved"),
        case((3, 4), (0, 1, 2), "half"),
        case((4, 6), (5, 6, 9, 30), "half"),
        case((2, 3, 5, 8), (0, 1, 2, 3, 4), "half"),
        case((2, 4, 10), (101, 0, 401, 250), "interleaved"),
        case((1, 2), (7,), "interleaved"),
    )


def slopes_cases(rng):
    """For `alibi_slopes(n_heads)`."""
    counts = (4, 8, 12, 6, 1, 16, 3, 20, 15)
    return tuple(Case(f"{n} head{'s' * (n > 1)}", (n,)) for n in counts)


def ntk_cases(rng):
    """For `ntk_base(base, scale, d)`."""
    calls = (
        (10000.0, 4.0, 128),
        (10000.0, 2.0, 64),
        (500000.0, 8.0, 96),
        (2000.0, 3.0, 6),
        (10000.0, 1.0, 32),
        (10000.0, 0.5, 64),
        (10.0, 1.7, 6),  # small: a result rounded to whole numbers shows here
        (500000.0, 2.5, 4),
    )
    return tuple(
        Case(f"base={b:g}, scale={s:g}, d={d}", (b, s, d)) for b, s, d in calls
    )


_rng = np.random.default_rng(80)
_x = probes.table(_rng, 2, 5, 6)
_places = np.array([0, 2, 3, 7, 11])


def keeps_lengths(call):
    """A law: a turn changes no length."""
    found = call(_x, _places, "interleaved")
    if found is None or found[0].shape != _x.shape:
        return None
    before, after = (np.linalg.norm(a.astype(float), axis=-1) for a in (_x, found[0]))
    apart = float(np.abs(before - after).max())
    return f"Lengths change by up to {apart:.3g}." if apart > CLOSE else None


def sees_distances_only(call):
    """A law: all positions shifted by one number leave the scores as they are."""
    near, far = (call(_x, _places + shift, "half") for shift in (0, 40))
    if near is None or far is None or near[0].shape != _x.shape != far[0].shape:
        return None
    scores = [a @ np.swapaxes(a, -1, -2) for a in (near[0], far[0])]
    apart = float(np.abs(scores[0] - scores[1]).max())
    if apart <= 10 * CLOSE:
        return None
    return f"All positions 40 higher, and scores change by up to {apart:.3g}."


EXERCISES = (
    Exercise(
        "sinusoidal",
        8,
        6,
        sinusoidal,
        sinusoidal_cases,
        (Part("table", "n d_model"),),
        SINUSOIDAL,
        (
            "How many pairs are there, and what is the angle of pair i at a position? "
            "Make a table of angles first, (n, d_model/2).",
            "np.arange(n)[:, None] * turns has a row for each position and a column "
            "for each pair. Then the sines of it go into every second column.",
            "Make an empty table with np.empty((n, d_model)). table[:, 0::2] are the "
            "columns of the sines; those of the cosines begin at 1.",
        ),
        "Sine and cosine of a pair are a point on a circle, and a step of one token is "
        "a turn. RoPE takes the turn and leaves the point out.",
    ),
    Exercise(
        "rope",
        8,
        12,
        rope,
        rope_cases,
        (Part("turned", "... n d"),),
        ROPE,
        (
            "Which features are the first ones of the pairs, and which the second? "
            "That is all in which the layouts differ.",
            "Angles are (n, d/2): a position times the frequency of a pair. With a the "
            "first features and b the second, each (..., n, d/2), the new ones are "
            "a cos - b sin and a sin + b cos.",
            "x[..., 0::2] and x[..., 1::2] are a and b of neighbours, x[..., : d // 2] "
            "and x[..., d // 2 :] those of halves. Make turned = np.empty_like(x), and "
            "write the new features to the places where the old ones stood.",
        ),
        "Now you have both conventions of public models. Which one a checkpoint needs "
        "stands in its code only; position 0 will not tell you.",
        (
            batch_independent((_x, _places, "half"), (0,)),
            Law("a turn keeps lengths", keeps_lengths),
            Law("scores see distances only", sees_distances_only),
        ),
        "Angles are (n, d/2), and the two halves of x are (..., n, d/2): they fit.",
    ),
    Exercise(
        "alibi_slopes",
        8,
        8,
        alibi_slopes,
        slopes_cases,
        (Part("slopes", "n_heads"),),
        ALIBI_SLOPES,
        (
            "First find the power of two at or below n_heads. What are its slopes?",
            "The others come from twice that power: every second of its slopes, from "
            "the first on, as many as are missing.",
            "With p = 2 ** int(np.log2(n_heads)), a list of p heads and one of 2 * p "
            "are needed. [0::2] takes every second, [:missing] the first of them, "
            "np.concatenate([first, others]) joins two lists.",
        ),
        "The rule is odd, but checkpoints with 12 or 40 heads were trained with it: a "
        "formula that looks better gives other weights.",
    ),
    Exercise(
        "ntk_base",
        8,
        4,
        ntk_base,
        ntk_cases,
        (Part("base"),),
        NTK_BASE,
        (
            "The slowest pair turns by base ** (-(d - 2) / d) a token. By what must "
            "the base be multiplied, so that this is divided by scale?",
            "A factor f in the base divides it by f ** ((d - 2) / d). Set that equal "
            "to scale, and solve for f.",
            "Both sides to the power that undoes (d - 2) / d: d and d - 2 change "
            "places. And where scale is below 1, max makes it 1.",
        ),
        "The article's function has the same formula. What it lacks is the trained "
        "length, as an argument, and the 1 below which nothing is to be stretched.",
    ),
)
