"""Lesson 10: answers as people write them, right and wrong, and what they are told."""

from __future__ import annotations

import numpy as np
import pytest

from attnlib import diagnostics, head_diagnostics, masks
from attnlib.clinic.probes_monitors import Attend
from attnlib.exercises import get, judge, names
from attnlib.exercises.lesson_10 import NAMES, RIGHT

LESSON = ("diagnoses", "head_loudness", "keys_used", "moves_earlier")
FUNCTIONS = LESSON[1:]
SEEDS = (0, 1, 2)


def test_the_lesson_has_these_exercises_and_their_minutes_fit_into_its_text():
    assert set(names(10)) == set(LESSON)
    assert sum(get(name).minutes for name in LESSON) == 30


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_slip_is_named_as_itself_on_every_seed(name):
    exercise = get(name)
    family = exercise.family
    for seed in range(8):
        table = exercise.table(seed)
        for key in family.faults:
            outcomes = table._run(frozenset([key]))
            assert table.match(outcomes).readings == (frozenset([key]),), (seed, key)


# --- how loud a head is -------------------------------------------------------------
def loud_by_loop(mixed):
    return np.array([np.sqrt(np.mean(mixed[:, h] ** 2)) for h in range(mixed.shape[1])])


def loud_by_norm(mixed):
    batch, n_heads, n_q, d_v = mixed.shape
    rows = np.moveaxis(mixed, 1, 0).reshape(n_heads, -1)
    return np.linalg.norm(rows, axis=1) / np.sqrt(batch * n_q * d_v)


def loud_by_library(mixed):
    whole = np.moveaxis(mixed, 1, 0).reshape(mixed.shape[1], -1, mixed.shape[3])
    return head_diagnostics.head_norms(whole) / np.sqrt(whole[0].size)


def loud_by_einsum(mixed):
    return np.sqrt(np.einsum("bhqd,bhqd->h", mixed, mixed) / mixed[:, 0].size)


def loud_in_single(mixed):
    return np.sqrt((mixed.astype(np.float32) ** 2).mean(axis=(0, 2, 3)))


LOUD = (loud_by_loop, loud_by_norm, loud_by_library, loud_by_einsum, loud_in_single)


@pytest.mark.parametrize("answer", LOUD)
@pytest.mark.parametrize("seed", SEEDS)
def test_other_right_ways_to_measure_loudness_pass(answer, seed):
    verdict = judge("head_loudness", answer, seed)
    assert verdict.passed, verdict.text


def article(mixed):
    """The article's monitor, on the merged output, with its norms."""
    batch, n_heads, n_q, d_v = mixed.shape
    output = mixed.transpose(0, 2, 1, 3).reshape(batch, n_q, n_heads * d_v)
    return np.array([np.linalg.norm(output[:, i, :]) for i in range(n_heads)])


LOUD_WRONG = (
    (article, {"token_for_head", "norm_for_mean"}),
    (lambda m: np.sqrt((m**2).sum((0, 2, 3))), {"norm_for_mean"}),
    (lambda m: (m**2).mean((0, 2, 3)), {"root_missing"}),
    (lambda m: np.abs(m).mean((0, 2, 3)), {"absolute_for_square"}),
    (lambda m: m.mean((0, 2, 3)), {"signs_kept"}),
    (lambda m: m.std((0, 2, 3)), {"mean_taken_off"}),
    (lambda m: np.sqrt((m**2).mean((2, 3))), {"texts_separate"}),
    (lambda m: np.sqrt((m**2).mean((1, 2, 3))), {"text_for_head"}),
    (lambda m: np.sqrt((m**2).mean((0, 1, 2))), {"feature_for_head"}),
    (lambda m: np.sqrt((m**2).mean()), {"one_for_all_heads"}),
    (lambda m: np.sqrt((m**2).sum(-1)).mean((0, 2)), {"mean_of_token_norms"}),
    (lambda m: np.sqrt((m**2).mean((2, 3))).mean(0), {"mean_of_texts"}),
    (lambda m: np.sqrt((m**2).mean(3)).mean((0, 2)), {"mean_of_tokens"}),
    (lambda m: np.sqrt((m**2).sum(-1).mean((0, 2))), {"features_summed"}),
    (lambda m: np.abs(m).max((0, 2, 3)), {"loudest_number"}),
)


@pytest.mark.parametrize(("answer", "keys"), LOUD_WRONG)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_wrong_loudness_is_named(answer, keys, seed):
    verdict = judge("head_loudness", answer, seed)
    assert {m.key for m in verdict.mistakes} == keys, verdict.text


def test_the_article_is_told_that_it_reads_tokens():
    text = judge("head_loudness", article).text
    assert "Token i is taken for head i" in text


# --- how many keys a head uses ------------------------------------------------------
def keys_by_loop(weights):
    used = []
    for head in np.moveaxis(weights, 1, 0):
        rows = [row for row in head.reshape(-1, head.shape[-1]) if row.sum() > 0]
        h = [-sum(w * np.log(w) for w in row if w > 0) for row in rows]
        used.append(np.exp(np.mean(h)))
    return np.array(used)


def keys_by_nan(weights):
    h = np.where(weights.sum(-1) > 0, diagnostics.entropy(weights), np.nan)
    return np.exp(np.nanmean(h, axis=(0, 2)))


def keys_by_geometry(weights):
    """The geometric mean of the keys of single rows."""
    keys = np.moveaxis(diagnostics.effective_keys(weights), 1, 0)
    return np.array([np.prod(k[k > 0]) ** (1 / (k > 0).sum()) for k in keys])


def keys_with_epsilon(weights):
    h = -(weights * np.log(weights + 1e-12)).sum(-1)
    full = weights.sum(-1) > 0.5
    return np.exp((h * full).sum((0, 2)) / full.sum((0, 2)))


def keys_in_bits(weights):
    h = diagnostics.entropy(weights) / np.log(2)
    return 2 ** (h.sum((0, 2)) / weights.any(-1).sum((0, 2)))


def keys_listed(weights):
    return [float(k) for k in keys_by_loop(weights)]


KEYS = (
    keys_by_loop,
    keys_by_nan,
    keys_by_geometry,
    keys_with_epsilon,
    keys_in_bits,
    keys_listed,
)


@pytest.mark.parametrize("answer", KEYS)
@pytest.mark.parametrize("seed", SEEDS)
def test_other_right_ways_to_count_keys_pass(answer, seed):
    verdict = judge("keys_used", answer, seed)
    assert verdict.passed, verdict.text


def entropies(w):
    return diagnostics.entropy(w)


def filled(w):
    return w.any(-1).sum((0, 2))


def bare(w):
    with np.errstate(all="ignore"):
        h = -(w * np.log(w)).sum(-1)
    return np.exp(h.sum((0, 2)) / filled(w))


KEYS_WRONG = (
    (lambda w: np.exp(entropies(w).mean((0, 2))), {"empty_rows_counted"}),
    (lambda w: entropies(w).sum((0, 2)) / filled(w), {"entropy_left"}),
    (lambda w: entropies(w).mean((0, 2)), {"empty_rows_counted", "entropy_left"}),
    (
        lambda w: diagnostics.effective_keys(w).sum((0, 2)) / filled(w),
        {"exp_before_mean"},
    ),
    (lambda w: np.exp(entropies(w).sum() / w.any(-1).sum()), {"heads_in_one"}),
    (
        lambda w: np.exp(entropies(w.mean(1)).sum() / w.mean(1).any(-1).sum()),
        {"heads_averaged_first"},
    ),
    (bare, {"log_of_empty_rows"}),
    (
        lambda w: np.exp(entropies(w).sum((0, 2)) / (entropies(w) > 0).sum((0, 2))),
        {"rows_of_one_key_left_out"},
    ),
    (lambda w: 2 ** (entropies(w).sum((0, 2)) / filled(w)), {"base_two_of_nats"}),
    (
        lambda w: np.exp(entropies(w).sum((0, 2)) / filled(w)) / w.shape[-1],
        {"share_of_keys"},
    ),
    (lambda w: np.exp(-entropies(w).sum((0, 2)) / filled(w)), {"spread_negative"}),
    (lambda w: np.exp(entropies(w).sum((0, 2))), {"rows_summed"}),
    (
        lambda w: np.exp(
            entropies(w).sum((0, 1)) / np.maximum(w.any(-1).sum((0, 1)), 1)
        ),
        {"queries_alone"},
    ),
)


@pytest.mark.parametrize(("answer", "keys"), KEYS_WRONG)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_wrong_count_of_keys_is_named(answer, keys, seed):
    verdict = judge("keys_used", answer, seed)
    assert {m.key for m in verdict.mistakes} == keys, verdict.text


# --- does it see the future? --------------------------------------------------------
def moves_backwards(attend, x):
    moves = [0.0]
    for j in reversed(range(len(x))):
        sign = np.ones((len(x), 1))
        sign[j] = -1
        moves.extend(np.abs(attend(sign * x)[:j] - attend(x)[:j]).ravel())
    return max(moves)


def moves_each_output(attend, x):
    before, most = attend(x), 0
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            other = np.concatenate([x[:j], -x[j : j + 1], x[j + 1 :]])
            most = max(most, *np.abs(attend(other)[i] - before[i]))
    return float(most)


def moves_from_zero_on(attend, x):
    before, most = attend(x), 0.0
    for j in range(len(x)):
        other = np.array(x)
        other[j] *= -1
        change = np.abs(attend(other) - before)
        most = np.maximum(most, change[:j].max(initial=0))
    return most


def moves_put_back(attend, x):
    x = x.copy()
    before, most = attend(x), 0.0
    for j in range(1, len(x)):
        x[j] = -x[j]
        most = max(most, abs(attend(x) - before)[:j].max())
        x[j] = -x[j]
    return most


@pytest.mark.parametrize(
    "answer",
    [moves_backwards, moves_each_output, moves_from_zero_on, moves_put_back],
)
@pytest.mark.parametrize("seed", SEEDS)
def test_other_right_leak_tests_pass(answer, seed):
    verdict = judge("moves_earlier", answer, seed)
    assert verdict.passed, verdict.text


def leak(*, turn=lambda row: -row, at=None, look=None, size=np.max, absolute=np.abs):
    """The test with one of its steps replaced."""

    def answer(attend, x):
        before, most = attend(x), 0.0
        for j in at(len(x)) if at else range(1, len(x)):
            other = x.copy()
            other[j] = turn(x[j])
            moved = absolute(attend(other) - before)
            part = look(moved, j) if look else moved[:j]
            if part.size:
                most = max(most, size(part))
        return most

    return answer


def piled_up(attend, x):
    before, other, most = attend(x), x.copy(), 0.0
    for j in range(1, len(x)):
        other[j] = -x[j]
        most = max(most, np.abs(attend(other) - before)[:j].max())
    return most


def later_turned(attend, x):
    before, most = attend(x), 0.0
    for j in range(1, len(x)):
        other = np.concatenate([x[:j], -x[j:]])
        most = max(most, np.abs(attend(other) - before)[:j].max())
    return most


def last_round(attend, x):
    before = attend(x)
    for j in range(1, len(x)):
        other = x.copy()
        other[j] = -x[j]
        most = np.abs(attend(other) - before)[:j].max()
    return most


LEAK_WRONG = (
    (leak(look=lambda m, j: m[: j + 1]), {"own_output_from_second"}),
    (leak(look=lambda m, j: m[: j + 1], at=range), {"own_output_counted"}),
    (leak(look=lambda m, j: m[j + 1 :], at=range), {"later_outputs"}),
    (leak(look=lambda m, j: m, at=range), {"all_outputs"}),
    (leak(look=lambda m, j: m[j - 1]), {"neighbour_alone"}),
    (leak(look=lambda m, j: m[0]), {"first_output_alone"}),
    (leak(look=lambda m, j: m[:j, 0]), {"first_feature_alone"}),
    (leak(at=lambda n: [n - 1]), {"last_token_alone"}),
    (last_round, {"last_token_alone"}),
    (leak(at=lambda n: [1]), {"first_tokens_alone"}),
    (leak(at=lambda n: range(1, n - 1)), {"last_token_left"}),
    (leak(look=lambda m, j: m[: j - 1]), {"neighbour_left_out"}),
    (later_turned, {"later_ones_turned"}),
    (leak(turn=np.zeros_like), {"token_zeroed"}),
    (leak(turn=lambda row: row + 1), {"one_added"}),
    (piled_up, {"changes_pile_up_from_second"}),
    (leak(absolute=lambda m: m), {"signs_not_dropped"}),
    (leak(size=np.mean), {"changes_averaged"}),
    (leak(size=np.sum), {"changes_summed"}),
    (leak(size=np.linalg.norm), {"length_of_change"}),
    (lambda a, x: bool(leak()(a, x) > 1e-9), {"whether_it_leaks"}),
    (lambda a, x: bool(leak()(a, x) < 1e-9), {"causal_is_true"}),
)


@pytest.mark.parametrize(("answer", "keys"), LEAK_WRONG)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_wrong_leak_test_is_named(answer, keys, seed):
    verdict = judge("moves_earlier", answer, seed)
    assert {m.key for m in verdict.mistakes} == keys, verdict.text


def test_an_answer_that_changes_x_is_told_so():
    def in_place(attend, x):
        before, most = attend(x), 0.0
        for j in range(1, len(x)):
            x[j] = -x[j]
            most = max(most, np.abs(attend(x) - before)[:j].max())
        return most

    assert not judge("moves_earlier", in_place).passed


def test_the_attentions_that_are_asked_are_what_their_names_say():
    rng = np.random.default_rng(0)
    tables = rng.normal(size=(3, 2, 2))
    x = rng.normal(size=(4, 2))
    causal = Attend(*tables, masks.causal(4))
    assert get("moves_earlier").solution(causal, x) == 0
    assert get("moves_earlier").solution(Attend(*tables, np.ones((4, 4), bool)), x) > 0


# --- the six charts -----------------------------------------------------------------
def test_there_is_one_patient_for_each_name():
    assert sorted(RIGHT.values()) == sorted(NAMES)


@pytest.mark.parametrize(
    "answer",
    [
        {letter: name.upper() for letter, name in RIGHT.items()},
        {letter.lower(): name for letter, name in RIGHT.items()},
        RIGHT | {"R": "one hot", "S": "dead", "U": "nan"},
        RIGHT | {"R": "onehot", "S": "silent head", "T": "dilution"},
        RIGHT | {"U": float("nan"), "S": "a dead head", "Q": "a leak"},
        {letter: np.str_(name) for letter, name in RIGHT.items()},
        {f"patient {letter}": name for letter, name in RIGHT.items()},
    ],
)
def test_names_may_be_written_in_other_ways(answer):
    assert judge("diagnoses", answer).passed


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"P": "one-hot"}, "A head that has learned where to look is no patient"),
        ({"P": "one-hot", "R": "healthy"}, "low loss"),
        ({"Q": "diluted", "T": "leak"}, "ends below the least honest loss"),
        ({"T": "healthy"}, "more keys than even weights"),
        ({"S": "healthy"}, "loudness of its heads"),
        ({"S": "NaN", "U": "dead head"}, "Two of the six are exchanged, S and U"),
    ],
)
def test_what_is_often_mistaken_is_explained(change, said):
    verdict = judge("diagnoses", RIGHT | change)
    assert not verdict.passed
    assert said in verdict.text


@pytest.mark.parametrize("slip", ["dilluted", "M16", None, ["diluted"], 3.0])
def test_what_is_no_name_is_not_called_a_wrong_diagnosis(slip):
    verdict = judge("diagnoses", RIGHT | {"T": slip})
    assert verdict.status == "type"
    assert "What you wrote at T is none of the names" in verdict.text


def test_other_wrong_ones_hear_which_letters_are_wrong():
    text = judge("diagnoses", RIGHT | {"P": "leak", "S": "one-hot", "U": "leak"}).text
    assert all(letter in text for letter in "PSU")


@pytest.mark.parametrize("answer", [None, "leak", {"P": "leak"}, 3, list(RIGHT)])
def test_what_is_no_dict_of_six_is_told_so(answer):
    verdict = judge("diagnoses", answer)
    assert verdict.status == "type"
    assert "Six letters with six names are wanted" in verdict.text


def test_no_text_gives_the_answer_away():
    for wrong in get("diagnoses").wrong:
        named = sum(
            f"{letter} is {name}" in wrong.sentence for letter, name in RIGHT.items()
        )
        assert not named
