"""Parts of attention, examined by name: right ones pass, wrong ones are named."""

from __future__ import annotations

import collections
import inspect
import time
import warnings

import numpy as np
import parts_right as right
import pytest
import torch
from parts_right import RIGHT
from parts_wrong import WRONG

from attnlib.clinic.case import call
from attnlib.clinic.catalogue import catalogue
from attnlib.clinic.examine_part import examine_part
from attnlib.clinic.part import Takes
from attnlib.clinic.part_tables import tables
from attnlib.clinic.parts import PARTS

SEEDS = range(5)
DTYPES = (None, "float64", "float32")


def named(rows):
    return [pytest.param(*row, id=f"{row[0]}-{i}") for i, row in enumerate(rows)]


@pytest.mark.parametrize(("part", "function", "options"), named(RIGHT))
def test_right_parts_are_not_accused(part, function, options):
    for seed in SEEDS:
        for dtype in DTYPES[:3:2]:  # its own choice, and float32
            report = examine_part(function, part, seed=seed, dtype=dtype, **options)
            assert report.healthy, (seed, dtype, str(report))
            assert not report.cautions


@pytest.mark.filterwarnings("ignore")  # kl_div warns of reduction="mean" itself
@pytest.mark.parametrize(("code", "part", "function", "options"), named(WRONG))
def test_wrong_parts_are_named(code, part, function, options):
    for seed in SEEDS:
        for dtype in DTYPES[1:]:
            report = examine_part(function, part, seed=seed, dtype=dtype, **options)
            assert report.codes == (code,), (seed, dtype, str(report))
            assert report.evidence[code].endswith("."), report.evidence


def test_there_are_enough_of_both():
    assert len(RIGHT) >= 60
    assert {part for part, *_ in RIGHT} == set(PARTS)
    wrong = collections.Counter((code, part) for code, part, *_ in WRONG)
    assert {part for _, part in wrong} == set(PARTS)
    once = {("M30", "rope"), ("M22", "merge_heads")}
    assert all(n >= 2 for pair, n in wrong.items() if pair not in once), wrong


def test_every_mistake_of_a_part_is_in_the_catalogue():
    known = catalogue()
    for part in PARTS.values():
        for places in (1, 2, 3):
            signature = Takes(("x", "axis", "cap")[:places], places)
            for form in part.forms({"cap": 3.0}, signature):
                for meant in form.meant:
                    assert set(meant.family.faults) <= set(known)


# What one of the parts cannot show, and what looks like something else there.
FULL = {
    "softmax": ("x", "axis"),
    "softcap": ("scores", "mask", "cap"),
    "causal": ("n_q", "n_k"),
    "window": ("n_q", "n_k", "width"),
    "padding": ("lengths", "n_k"),
    "alibi_bias": ("n_heads", "n_q", "n_k"),
    "learned_positions": ("table", "n", "past"),
    "online_softmax": ("scores", "v", "block"),
    "distillation_loss": ("student", "teacher", "temperature"),
}
HIDDEN = {
    "nan_replaced",  # only what else is wrong makes the NaN
    "empty_row_zeroed",  # no row is empty there
    "base_10000",  # that is the right one here
    "learned_offset_missing",  # there is no offset
}
# One layout alone is meant, and the others are not asked for.
HIDDEN_IN = {
    "rope": {
        "layout_always_interleaved",
        "pairs_mirrored",
        "half_untouched",
        "joined_as_pairs",
        "angles_always_repeated",
    }
}
SAME_AS = {
    ("rope", "layouts_exchanged"): "layout_always_half",
    ("rope", "angles_exchanged"): "angles_always_tiled",
    # A window that is causal ends at the query's own key.
    ("window", "window_right_one_less"): "window_self_hidden",
}


@pytest.mark.parametrize("part", sorted(PARTS))
def test_each_mistake_is_named_as_itself(part):
    names = FULL.get(part)
    if names is None:
        names = ("x", "n")[: 1 if len(PARTS[part].call.split(",")) == 1 else 2]
    signature = Takes(tuple(names), len(names))
    for seed in SEEDS:
        table = tables(part, (), signature, 0, seed)[0]
        for key in table.family.faults:
            answer = [call(table.family, c, frozenset([key])) for c in table.cases]
            found = table.match(answer)
            if key in HIDDEN | HIDDEN_IN.get(part, set()):
                assert found.right, (seed, key)
            elif any(outcome.arrays for outcome in answer):
                got = [set(reading) for reading in found.readings]
                assert got == [{SAME_AS.get((part, key), key)}], (seed, key, got)


@pytest.mark.parametrize("part", sorted(PARTS))
def test_garbage_is_given_no_name(part):
    function = next(f for p, f, options in RIGHT if p == part and not options)

    def garbage(*args, **more):
        out = np.asarray(function(*args, **more))
        if out.dtype.kind == "b":
            return np.indices(out.shape).sum(0) % 3 == 1
        size = max(out.size, 1)
        return np.cos(np.arange(size) * 2.5).reshape(out.shape) + 0.1

    garbage.__signature__ = inspect.signature(function)
    report = examine_part(garbage, part)
    assert not report.healthy
    assert report.mistakes == ()
    assert report.unknown is not None
    assert report.unknown.example


# Laws: what is wrong in a way that has no name.


def test_a_law_speaks_where_no_mistake_is_known():
    def longer(x, positions):
        return right.rope_neighbours(x, positions) * 1.25

    def drifting(x, positions):
        return right.rope_neighbours(x, positions**2)

    def uneven(n, d):
        return right.sinusoid_loops(n, d) * np.linspace(1, 2, n)[:, None]

    def short(x, axis=-1):
        return right.softmax_stats(x, axis) * 0.9

    def slopes(n):
        return 3.0 ** -np.arange(1, n + 1)

    def capped(scores, cap):
        return 1.5 * np.tanh(scores / cap) * cap

    def sized(q):
        return q / (np.linalg.norm(q, axis=-1, keepdims=True) + 1)

    def shifted(student, teacher):
        return right.distil_numpy(student, teacher, 1.0) + 0.25

    cases = {
        "a turn keeps the length of each token": (longer, "rope"),
        "scores depend on the distance of two tokens": (drifting, "rope"),
        "the dot product of two positions depends on their distance": (
            uneven,
            "sinusoidal",
        ),
        "each row of weights sums to 1": (short, "softmax"),
        "the slopes of a power of two fall by one factor": (slopes, "alibi_slopes"),
        "no score is larger than the cap": (capped, "softcap"),
        "the size of a query does not matter": (sized, "qk_norm"),
        "equal logits have no divergence": (shifted, "distillation_loss"),
    }
    for law, (function, part) in cases.items():
        report = examine_part(function, part)
        assert report.unknown is not None, (law, str(report))
        assert report.unknown.law == law
        assert report.unknown.example
        assert report.codes == ()


def test_what_breaks_no_law_is_shown_by_the_smallest_case():
    def shifted(table, n, past=0):
        return table[past : past + n] + 0.5

    unknown = examine_part(shifted, "learned_positions").unknown
    assert unknown is not None
    assert "it gives 0.5 at [0, 0], where 0 is right" in unknown.sentence
    assert "yours: " in unknown.example
    assert "right: " in unknown.example


# What it is handed, and how.


def test_conventions_are_found_out_and_not_blamed():
    def features(function, part):
        return examine_part(function, part).features

    assert features(right.rope_offset, "rope") == (
        "feature i is paired with i + d/2, the base is 500000",
    )
    assert features(right.sinusoid_halves, "sinusoidal") == (
        "all sines stand before all cosines",
    )
    assert features(right.distil_log_target, "distillation_loss") == (
        "the temperature is 4",
    )
    assert features(right.causal_added, "causal") == ("an additive mask, 0 and -inf",)


def test_what_it_does_not_take_is_said_to_be_untested():
    report = examine_part(right.causal_four_axes, "causal")
    assert report.untested == ("more keys than queries (M19): it takes one size only.",)
    report = examine_part(right.sinusoid_halves, "sinusoidal")
    assert report.untested == ("odd widths: it has none, or a way of its own.",)
    assert examine_part(right.split_view, "split_heads").untested


def test_a_module_is_examined_like_a_function():
    class Rope(torch.nn.Module):
        def __init__(self, d_model=8):
            super().__init__()
            self.register_buffer("unused", torch.zeros(d_model))

        def forward(self, x, positions):
            return right.rope_rotate_half(x, positions)

    assert examine_part(Rope(), "rope").healthy


def test_an_argument_changed_in_place_is_a_caution():
    def softmax(x, axis=-1):
        out = right.softmax_stats(x, axis)
        x -= 1
        return out

    report = examine_part(softmax, "softmax")
    assert report.healthy
    assert [c.name for c in report.cautions] == ["It changes what it is given: x"]


def test_a_random_part_is_said_to_be_random():
    report = examine_part(lambda q: q * np.random.default_rng().random(), "qk_norm")
    assert report.unknown is not None
    assert report.unknown.law == "the same arguments give the same result"


def test_a_slow_part_is_stopped():
    def never(n_heads):
        while n_heads > 4:
            time.sleep(0.01)
        return [2.0 ** (-8 * (h + 1) / n_heads) for h in range(n_heads)]

    begun = time.monotonic()
    report = examine_part(never, "alibi_slopes", seconds=0.5)
    assert time.monotonic() - begun < 5
    assert report.unknown is not None
    assert report.unknown.law == "it ends"


def refusal(thing, part, **options):
    return examine_part(thing, part, **options).refused


def test_bad_input_is_refused_in_a_sentence():
    with pytest.raises(ValueError, match="part must be one of 'alibi_bias', ") as said:
        examine_part(right.causal_tril, "casual")
    assert str(said.value).endswith("'window', but it is 'casual'.")
    assert refusal(7, "causal") == (
        "A function causal(n_q, n_k) is wanted, and this is of type int."
    )
    assert "is a class" in refusal(torch.nn.Linear, "qk_norm")
    assert refusal(lambda a, b, c, d: a, "alibi_slopes") == (
        "It cannot be called as alibi_slopes(n_heads): it takes a, b, c and d. "
        "Wrap it in a lambda that has these arguments."
    )
    assert refusal(right.causal_tril, "causal", layout="half") == (
        "The part causal has no option 'layout'; it has causal and mask."
    )
    assert refusal(right.causal_tril, "causal", mask="inverted") == (
        "The option mask of causal is 'may look' | 'blocked' | 'added', not 'inverted'."
    )
    assert "float32 and float64" in refusal(
        right.norm_numpy, "qk_norm", dtype="float16"
    )


def test_what_gives_no_numbers_is_refused_with_its_error():
    def broken(x, axis=-1):
        raise KeyError("no such axis")

    assert refusal(broken, "softmax") == (
        "Called as softmax(x, axis) with NumPy arrays (a table of 2 rows and 3 "
        "scores), it raises KeyError: 'no such axis'."
    )
    assert refusal(lambda n: None, "alibi_slopes") == (
        "It should return a slope for each head, (n_heads,), and returns None. Is "
        "there a `return`?"
    )
    assert "a str" in refusal(lambda n: "slopes", "alibi_slopes")
    assert "a dict" in refusal(lambda n: {"slopes": n}, "alibi_slopes")


def test_hostile_objects_do_no_harm():
    class Liar:
        @property
        def __signature__(self):
            raise RuntimeError

        def __call__(self, x):
            raise SystemExit

    assert "SystemExit" in refusal(Liar(), "qk_norm")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = examine_part(lambda q: print("hello") or q / 0.0, "qk_norm")
    assert not report.healthy


def test_both_float_types_can_be_asked_for():
    kinds = set()

    def norm(q):
        kinds.add(q.dtype.name)
        return right.norm_numpy(q)

    for dtype in ("float32", "float64"):
        kinds.clear()
        assert examine_part(norm, "qk_norm", dtype=dtype).healthy
        assert kinds == {dtype}


ODD = {
    "zero": lambda *args: 0,
    "nan": lambda *args: np.float64("nan"),
    "empty": lambda *args: np.zeros((0, 3)),
    "list": lambda *args: [[1.0], [2.0, 3.0]],
    "complex": lambda *args: np.ones(3) * 1j,
    "first": lambda *args: args[0],
    "shape": lambda *args: np.ones((2, 3, 4, 5)),
    "true": lambda *args: True,
    "tensor": lambda *args: torch.ones(2, 1, 3, dtype=torch.bfloat16),
    "half": lambda *args: np.ones(4, np.float16),
    "strings": lambda *args: np.array(["a", "b"]),
    "itself": lambda *args: examine_part,
    "pair": lambda *args: (None, None),
    "large": lambda *args: np.zeros(3_000_000),
    "keyword": lambda *, x: x,
    "nothing": lambda: np.ones(3),
    "exit": lambda *args: (_ for _ in ()).throw(SystemExit),
}


@pytest.mark.parametrize("odd", sorted(ODD))
def test_nothing_that_comes_back_is_an_error_of_ours(odd):
    for part in PARTS:
        report = examine_part(ODD[odd], part, seconds=5.0)
        assert not report.healthy, part
        assert str(report)
        assert report._repr_html_()
