"""Mistakes as people write them, by hand and not by the family: each gets its name."""

from __future__ import annotations

import math

import numpy as np
import pytest

from attnlib.exercises import judge

SEEDS = (0, 1, 2)


def turned(a):
    return np.swapaxes(a, -1, -2)


def plain_softmax(x, axis=-1):
    """Right but for empty rows: enough inside attention without a mask."""
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def guard(function):
    """A softmax that is right for empty rows, whatever else it does."""

    def softmax(x, axis=-1):
        return np.nan_to_num(function(np.asarray(x, float), axis), posinf=np.inf)

    return softmax


def exps(x, axis):
    return np.exp(x - np.max(x, axis=axis, keepdims=True))


def keepdims_sum(x, axis):
    e = exps(x, axis)
    return e / np.add.reduce(e, axis=axis)


def keepdims_max(x, axis):
    e = np.exp(x - np.max(x, axis=axis))
    return e / e.sum(axis=axis, keepdims=True)


def not_stable(x, axis=-1):
    e = np.power(np.e, x)
    total = e.sum(axis=axis, keepdims=True)
    return np.divide(e, total, out=np.zeros_like(e), where=total != 0)


def shift_global(x, axis=-1):
    e = np.exp(x - x.max())
    total = e.sum(axis=axis, keepdims=True)
    return np.divide(e, total, out=np.zeros_like(e), where=total != 0)


def empty_row_uniform(x, axis=-1):
    return plain_softmax(np.maximum(x, -1e9), axis)


def twice(x, axis=-1):
    once = guard(plain_softmax)(x, axis)
    return plain_softmax(once, axis)


def exp_missing(x, axis=-1):
    shape = x.sum(axis=axis, keepdims=True)
    return np.true_divide(x, shape)


SOFTMAX_WRONG = (
    (lambda x, axis=-1: guard(plain_softmax)(x, -1), {"axis_ignored"}),
    (lambda x, axis=-1: guard(plain_softmax)(x, 0), {"axis_zero"}),
    (lambda x, axis=-1: np.exp(x - x.max()) / np.exp(x - x.max()).sum(), {"axis_all"}),
    (not_stable, {"not_stable"}),
    (shift_global, {"shift_global"}),
    (guard(keepdims_sum), {"keepdims_sum"}),
    (lambda x, axis=-1: guard(exps)(x, axis), {"not_normalised"}),
    (
        guard(lambda x, axis: exps(x, axis) / exps(x, axis).mean(axis, keepdims=True)),
        {"divides_by_mean"},
    ),
    (
        guard(
            lambda x, axis: (
                exps(x, axis) / np.linalg.norm(exps(x, axis), axis=axis, keepdims=True)
            )
        ),
        {"divides_by_norm"},
    ),
    (guard(lambda x, axis: 2**x / (2**x).sum(axis, keepdims=True)), None),
    (lambda x, axis=-1: 0.5 * (1 + np.tanh(x / 2)), {"sigmoid"}),
    (plain_softmax, {"empty_row_nan"}),
    (empty_row_uniform, {"empty_row_uniform"}),
    (
        lambda x, axis=-1: np.exp(x) / np.exp(x).sum(axis, keepdims=True),
        {"not_stable", "empty_row_nan"},
    ),
)


@pytest.mark.parametrize(("answer", "keys"), SOFTMAX_WRONG)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_wrong_softmax_is_named(answer, keys, seed):
    verdict = judge("softmax", answer, seed)
    found = {mistake.key for mistake in verdict.mistakes}
    if keys is None:
        assert verdict.status == "mistake", verdict.text
    else:
        assert found == keys, verdict.text


def attend(scores=None, weigh=plain_softmax, mixed=None, returned=None):
    """Attention with one step replaced."""

    def scaled_dot_product(q, k, v):
        s = q @ turned(k) / np.sqrt(q.shape[-1]) if scores is None else scores(q, k, v)
        w = weigh(s)
        out = w @ v if mixed is None else mixed(w, q, k, v)
        return (w, out) if returned is None else returned(s, w, out)

    return scaled_dot_product


def dots(q, k):
    return np.einsum("...ia,...ja->...ij", q, k)


ATTENTION_WRONG = (
    (attend(lambda q, k, v: dots(q, k)), "scale_missing"),
    (attend(lambda q, k, v: dots(q, k) * q.shape[-1] ** 0.5), "scale_multiplied"),
    (attend(lambda q, k, v: dots(q, k) / q.shape[-1]), "scale_d_k"),
    (attend(lambda q, k, v: dots(q, k) / math.sqrt(v.shape[-1])), "scale_d_v"),
    (attend(lambda q, k, v: dots(q, k) / math.sqrt(k.shape[-2])), "scale_n_k"),
    (attend(lambda q, k, v: dots(q, k) / math.sqrt(q.shape[-2])), "scale_n_q"),
    (
        attend(
            lambda q, k, v: dots(q, k) * q.shape[-1] ** 0.0,
            returned=lambda s, w, out: (w, out),
        ),
        "scale_missing",
    ),
    (attend(lambda q, k, v: dots(k, q) / math.sqrt(k.shape[-1])), "roles_swapped"),
    (attend(lambda q, k, v: dots(q, q) / math.sqrt(k.shape[-1])), "score_q_q"),
    (attend(lambda q, k, v: dots(k, k) / math.sqrt(k.shape[-1])), "score_k_k"),
    (attend(lambda q, k, v: dots(q, k) / math.sqrt(len(k))), "scale_first_of_k"),
    (attend(lambda q, k, v: dots(q, k) / math.sqrt(len(q))), "scale_first_of_q"),
    (
        attend(lambda q, k, v: dots(q, k) / math.sqrt(k.shape[1])),
        "scale_second_of_q",
    ),
    (attend(weigh=lambda s: plain_softmax(s, 0)), "axis_zero"),
    (attend(weigh=lambda s: plain_softmax(s, 1)), "axis_one"),
    (attend(weigh=lambda s: plain_softmax(s, -2)), "axis_second_last"),
    (
        attend(weigh=lambda s: np.exp(s - s.max()) / np.exp(s - s.max()).sum()),
        "axis_all",
    ),
    (attend(weigh=lambda s: plain_softmax(plain_softmax(s))), "softmax_twice"),
    (attend(weigh=lambda s: plain_softmax(-s)), "sign_flipped"),
    (
        attend(weigh=lambda s: np.exp(s) / np.exp(s).sum(-1, keepdims=True)),
        "not_stable",
    ),
    (attend(weigh=lambda s: exps(s, -1)), "not_normalised"),
    (attend(weigh=lambda s: s), "softmax_missing"),
    (attend(mixed=lambda w, q, k, v: w @ k), "values_are_keys"),
    (attend(mixed=lambda w, q, k, v: turned(w) @ v), "weights_transposed"),
    (attend(returned=lambda s, w, out: (out, w)), "returned_swapped"),
    (attend(returned=lambda s, w, out: (s, out)), "returned_scores"),
)


@pytest.mark.parametrize(("answer", "key"), ATTENTION_WRONG)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_wrong_attention_is_named(answer, key, seed):
    verdict = judge("scaled_dot_product", answer, seed)
    assert [mistake.key for mistake in verdict.mistakes] == [key], verdict.text


@pytest.mark.parametrize("seed", SEEDS)
def test_two_mistakes_at_once_are_both_named(seed):
    def answer(q, k, v):
        weights = plain_softmax(dots(q, k), axis=-2)
        return weights, weights @ v

    verdict = judge("scaled_dot_product", answer, seed)
    assert [m.key for m in verdict.mistakes] == ["scale_missing", "axis_second_last"]
    assert "Two mistakes at once" in verdict.text


def solved(scores, X):
    """The nearest table to X, column by column."""
    return X @ np.linalg.lstsq(X, scores, rcond=None)[0]


def off(scores, X):
    return scores - solved(solved(scores, X).T, X).T


DISTANCE_WRONG = (
    (lambda s, X: np.linalg.norm(s - solved(s, X)), "only_columns_moved"),
    (lambda s, X: np.linalg.norm(s - solved(s.T, X).T), "only_rows_moved"),
    (lambda s, X: np.linalg.norm(s - X @ X.T @ s @ X @ X.T), "transposed_for_pinv"),
    (lambda s, X: (off(s, X) ** 2).sum(), "no_root_taken"),
    (lambda s, X: off(s, X).std(), None),  # the mean is near 0, and not quite
    (lambda s, X: np.sqrt((off(s, X) ** 2).mean()), "squares_averaged"),
    (lambda s, X: abs(off(s, X)).max(), "largest_difference"),
    (lambda s, X: sum(map(abs, off(s, X).ravel())), "differences_added"),
    (lambda s, X: np.linalg.norm(off(s, X), ord=2), "spectral_norm"),
    (lambda s, X: np.linalg.norm(s - off(s, X)), "nearest_measured"),
    (lambda s, X: abs(off(s, X)), None),
    (off, "table_returned"),
    (
        lambda s, X: np.linalg.matrix_rank(s) - np.linalg.matrix_rank(X),
        "ranks_subtracted",
    ),
)


@pytest.mark.parametrize(("answer", "key"), DISTANCE_WRONG)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_wrong_distance_is_named(answer, key, seed):
    verdict = judge("distance_to_possible", answer, seed)
    assert not verdict.passed
    assert [mistake.key for mistake in verdict.mistakes] == ([key] if key else [])


@pytest.mark.parametrize(
    ("answer", "key"),
    [
        (lambda w, v: v.mean(), "weights_forgotten"),
        (lambda w, v: np.mean(w * v), "divided_by_n"),
        (lambda w, v: v * w, "products_not_added"),
        (lambda w, v: sum(v), "values_only_added"),
        (lambda w, v: np.sum(w + v), "weights_added"),
        (lambda w, v: np.sum(w * w * v), "weights_squared"),
        (lambda w, v: w[::-1] @ v, "weights_reversed"),
        (lambda w, v: v[w.argmax()], "largest_weight_taken"),
    ],
)
def test_a_wrong_weighted_mean_is_named(answer, key):
    assert [m.key for m in judge("weighted_mean", answer).mistakes] == [key]


# --- the number that gave it away ---------------------------------------------------
@pytest.mark.parametrize(
    ("name", "answer", "sentence"),
    [
        (
            "scaled_dot_product",
            attend(lambda q, k, v: dots(q, k)),
            "your scores are 1.414 times the right ones, and √d_k is 1.414.",
        ),
        (
            "scaled_dot_product",
            attend(lambda q, k, v: dots(q, k) / q.shape[-1]),
            "your scores are 0.707 times the right ones, and 1/√d_k is 0.707.",
        ),
        (
            "scaled_dot_product",
            attend(weigh=lambda s: plain_softmax(s, -2)),
            "your columns sum to 1 throughout, your rows to ",
        ),
        (
            "softmax",
            plain_softmax,
            "row 1 may look at nothing, and your weights there are NaN throughout.",
        ),
        ("softmax", not_stable, "given scores around 900 and around -900, you get "),
    ],
)
def test_the_number_is_measured_on_the_answer(name, answer, sentence):
    assert sentence in judge(name, answer).text


def test_the_diagnosis_of_lesson_00_holds_the_two_numbers_asked_for():
    def sick_softmax(x, axis=-1):
        e = np.exp(x - x.max())
        return e / e.sum()

    verdict = judge("softmax", sick_softmax)
    assert "all your weights together sum to 1," in verdict.text
    assert "your rows to 0.46 and 0.54; each row should sum to 1" in verdict.text
    misread = judge("read_the_diagnosis", (0.46, 0.54)).text
    assert "what its two rows sum to" in misread
    assert judge("read_the_diagnosis", (1.0, 1.0)).passed


# --- laws, and honesty --------------------------------------------------------------
def test_an_unknown_mistake_is_located_by_a_law():
    def answer(x, axis=-1):
        return guard(plain_softmax)(x, axis) * 0.97

    verdict = judge("softmax", answer)
    assert verdict.status == "law"
    assert "every row of weights sums to 1" in verdict.text


def test_a_mistake_that_breaks_no_law_is_shown_beside_the_expected():
    def answer(q, k, v):
        weights = plain_softmax(dots(q, k) * 0.9 - 0.1 * dots(q, k) ** 2)
        return weights, weights @ v

    verdict = judge("scaled_dot_product", answer)
    assert verdict.status == "differs"
    assert "I know no such mistake" in verdict.text
    assert "yours" in verdict.text
    assert "expected" in verdict.text


def test_cases_learnt_by_heart_break_a_law():
    from attnlib.exercises import get

    exercise = get("softmax")
    table = exercise.table()
    known = {
        (c.args[0].tobytes(), c.args[1:]): right.arrays[0]
        for c, right in zip(table.cases, table.right, strict=True)
    }

    def answer(x, axis=-1):
        for args in ((), (axis,)):
            if (x.tobytes(), args) in known:
                return known[x.tobytes(), args]
        return np.zeros_like(x)

    assert judge("softmax", answer).status == "law"


@pytest.mark.parametrize(
    "name", ["softmax", "scaled_dot_product", "distance_to_possible"]
)
def test_judge_is_deterministic(name):
    for answer in (lambda *a: a[0], lambda *a: (a[0], a[0]), len):
        assert judge(name, answer) == judge(name, answer)
