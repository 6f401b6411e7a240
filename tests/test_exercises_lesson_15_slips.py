"""Lesson 15: slips of the pen in whole answers, and what each of them is told."""

from __future__ import annotations

import time
from statistics import fmean, median, pstdev

import numpy as np
import pytest
from test_exercises_lesson_15 import each

from attnlib.clinic.probes_desk import MANY_WAYS, pick_cases
from attnlib.exercises import get, judge
from attnlib.exercises.lesson_15 import _RIGHT

SEEDS = (0, 3)


# --- timing --------------------------------------------------------------------------
def taken_from_the_timed(answer, request, clock, set_threads, n_warm, n_timed):
    set_threads(1)
    return 1000 * np.median(each(answer, request, clock, n_timed)[n_warm:])


def range_from_warm_to_timed(answer, request, clock, set_threads, n_warm, n_timed):
    set_threads(1)
    for _ in range(n_warm):
        answer(request)
    times = []
    for _ in range(n_warm, n_timed):
        start = clock()
        answer(request)
        times.append(clock() - start)
    return 1000 * np.median(times)


def returned_inside_the_loop(answer, request, clock, set_threads, n_warm, n_timed):
    set_threads(1)
    for _ in range(n_warm):
        answer(request)
    for _ in range(n_timed):
        start = clock()
        answer(request)
        return 1000 * median([clock() - start])


def both_looks_after_the_call(answer, request, clock, set_threads, n_warm, n_timed):
    set_threads(1)
    times = []
    for _ in range(n_warm + n_timed):
        answer(request)
        start = clock()
        times.append(clock() - start)
    return 1000 * median(times[n_warm:])


def two_in_the_middle(answer, request, clock, set_threads, n_warm, n_timed):
    set_threads(1)
    times = each(answer, request, clock, n_warm + n_timed)[n_warm:]
    middle = len(times) // 2
    return 1000 * (times[middle] + times[(len(times) - 1) // 2]) / 2


def two_for_odd(answer, request, clock, set_threads, n_warm, n_timed):
    set_threads(1)
    times = sorted(each(answer, request, clock, n_warm + n_timed)[n_warm:])
    return 500 * (times[n_timed // 2 - 1] + times[n_timed // 2])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("answer", "key"),
    [
        (taken_from_the_timed, "latency_warm_of_timed"),
        (range_from_warm_to_timed, "latency_warm_of_timed"),
        (returned_inside_the_loop, "latency_first"),
        (both_looks_after_the_call, "latency_nothing"),
        (two_in_the_middle, "latency_unsorted_two"),
        (two_for_odd, "latency_two_middles"),
    ],
)
def test_a_slip_in_timing_is_named(answer, key, seed):
    verdict = judge("median_ms", answer, seed=seed)
    assert [m.key for m in verdict.mistakes] == [key], verdict.text


@pytest.mark.parametrize("seed", SEEDS)
def test_who_leaves_out_the_slowest_calls_is_refused(seed):
    def median_ms(answer, request, clock, set_threads, n_warm, n_timed):
        set_threads(1)
        times = sorted(each(answer, request, clock, n_warm + n_timed))
        return 1000 * median(times[:n_timed])

    assert not judge("median_ms", median_ms, seed=seed).passed


def test_a_number_that_was_not_measured_here_is_told_why():
    def of_another_clock(answer, request, clock, set_threads, n_warm, n_timed):
        set_threads(1)
        return 1000 * median(each(answer, request, time.perf_counter, n_timed))

    def written_down(answer, request, clock, set_threads, n_warm, n_timed):
        return 11.2

    def not_called(answer, request, clock, set_threads, n_warm, n_timed):
        start = clock
        answer(request)
        return 1000 * (clock - start)

    assert "Call it, with ()" in judge("median_ms", not_called).text
    assert "clock() was never called" in judge("median_ms", of_another_clock).text
    assert "answer(request) was never called" in judge("median_ms", written_down).text


def test_the_times_that_count_stand_beside_what_is_said_of_them():
    def median_ms(answer, request, clock, set_threads, n_warm, n_timed):
        set_threads(1)
        for _ in range(n_warm):
            answer(request)
        return median(each(answer, request, clock, n_timed))

    case = get("median_ms").table(0).cases[0]
    durations, n_warm, n_timed = case.args
    text = " ".join(judge("median_ms", median_ms).text.split())
    for seconds in durations[n_warm : n_warm + n_timed]:
        assert f"{1000 * seconds:.3f}".rstrip("0") in text
    assert "yours gives 0.0018" in text  # seconds: three decimals would be 0.002


# --- picking -------------------------------------------------------------------------
def by_statistics(ms, right, budget):
    rows = [list(map(float, row)) for row in right]
    inside = [i for i, t in enumerate(ms) if t <= budget]
    if not inside:
        return -1
    best = max(inside, key=lambda i: fmean(rows[i]))
    least = fmean(rows[best]) - pstdev(rows[best])
    return min((i for i in inside if fmean(rows[i]) >= least), key=lambda i: ms[i])


def filtered_and_back(ms, right, budget):
    places = np.flatnonzero(ms <= budget)
    if places.size == 0:
        return -1
    means = right[places].mean(axis=1)
    best = means.argmax()
    near = places[means >= means[best] - right[places[best]].std()]
    return near[ms[near].argmin()]


def masked(ms, right, budget):
    out = ms > budget
    if out.all():
        return np.array(-1)
    means = np.ma.array(right.mean(1), mask=out)
    near = (means >= means.max() - right[means.argmax()].std()).filled(False)
    return np.ma.array(ms, mask=~near).argmin()


def near_in_the_budget_or_not(ms, right, budget):
    """Who is over the budget is never the fastest."""
    if ms.min() > budget:
        return -1
    means = right.mean(axis=1)
    best = max(np.flatnonzero(ms <= budget), key=lambda i: means[i])
    near = means[best] - means <= right[best].std()
    return np.where(near, ms, np.inf).argmin()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "answer", [by_statistics, filtered_and_back, masked, near_in_the_budget_or_not]
)
def test_another_way_to_pick_passes(answer, seed):
    verdict = judge("pick_way", answer, seed=seed)
    assert verdict.passed, verdict.text


def changed(*swaps):
    source = get("pick_way").solution_source
    for old, new in swaps:
        assert old in source
        source = source.replace(old, new)
    space = {"np": np}
    exec(source, space)
    return space["pick_way"]


SPREAD = "right[best].std()"
TAKEN = "return np.where(near, ms, np.inf).argmin()"
ALL = ("means = np.where(fits, right.mean(axis=1), -np.inf)", "means = right.mean(1)")
IN_ALL = ("near = means", "near = fits & (means")
MIXED = [
    ALL,
    ("best = means.argmax()", "best = means[fits].argmax()"),
    IN_ALL,
    (f"means[best] - {SPREAD}", f"means[fits][best] - {SPREAD})"),
]
ROUNDED = [
    ("right.mean(axis=1)", "right.mean(axis=1).round(2)"),
    (f"means[best] - {SPREAD}", f"round(means[best] - {SPREAD}, 2)"),
]
SLIPS = [
    ([ALL], "pick_budget_for_none"),
    (
        [
            ALL,
            IN_ALL,
            (SPREAD, f"{SPREAD})"),
            ("    return np", "    if not near.any(): return -1\n    return np"),
        ],
        "pick_best_of_all_none",
    ),
    ([(SPREAD, "(right[best].std() + right.std(1))")], "pick_overlap"),
    ([(SPREAD, f"{SPREAD} / right.shape[1] ** 0.5")], "pick_standard_error"),
    ([(SPREAD, "right.std(1).mean()")], "pick_mean_spread"),
    ([(SPREAD, "right.std(1).max()")], "pick_largest_spread"),
    ([(TAKEN, "return (means - right.std(1)).argmax()")], "pick_cautious"),
    ([(TAKEN, "return np.where(near, ms, 0).argmin()")], "pick_zeros"),
    ([(TAKEN, "return (ms * near).argmin()")], "pick_zeros"),
    ([(TAKEN, f"{TAKEN} + 1")], "pick_from_1"),
    ([(TAKEN, TAKEN.replace("near, ms", "near, ms")[:-9] + "[fits].argmin()")],
     "pick_place_in_budget"),
    (MIXED, None),
    (ROUNDED, None),
    ([(SPREAD, f"{SPREAD} / 2")], None),
    ([(SPREAD, "0.05")], None),
    ([(SPREAD, f"means[best] * {SPREAD}")], None),
    ([(TAKEN, "return (means / ms).argmax()")], None),
]  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("swaps", "key"), SLIPS)
def test_a_slip_in_picking_has_its_own_name_or_none(swaps, key, seed):
    verdict = judge("pick_way", changed(*swaps), seed=seed)
    assert not verdict.passed
    assert [m.key for m in verdict.mistakes] == [key] * (key is not None), verdict.text


@pytest.mark.parametrize("seed", range(20))
def test_ways_drawn_by_lot_leave_nothing_to_rounding(seed):
    cases = pick_cases(np.random.default_rng(seed))[-len(MANY_WAYS) :]
    for case in cases:
        ms, right, budget = case.args
        means = right.mean(axis=1)
        best = np.where(ms <= budget, means, -1).argmax()
        edge = np.abs(means - (means[best] - right[best].std()))
        assert edge[ms <= budget].min() > 4e-4
        assert np.abs(ms - budget).min() == 0.5


def test_the_picked_way_and_the_right_one_stand_beside_each_other():
    verdict = judge("pick_way", changed((TAKEN, "return best")))
    assert "yours says way 3 (8 ms, mean 0.805)" in verdict.text
    assert "the fastest near it is way 2 (2 ms, mean 0.79)" in verdict.text
    verdict = judge("pick_way", changed(("return -1", "return 0")))
    assert "yours says way 0 (4 ms, mean 0.8). None is in the budget" in verdict.text


# --- choosing ------------------------------------------------------------------------
@pytest.mark.parametrize(
    "answer",
    [
        {name: np.array(pair) for name, pair in _RIGHT.items()},
        {np.str_(n): (np.str_(w), r) for n, (w, r) in _RIGHT.items()},
        {name.upper(): (f" {w}", r) for name, (w, r) in _RIGHT.items()},
    ],
)
def test_choices_put_together_by_a_program_pass(answer):
    verdict = judge("choices", answer)
    assert verdict.passed, verdict.text


def test_of_several_wrong_choices_the_first_is_told_why():
    verdict = judge("choices", dict.fromkeys(_RIGHT, ("full", "budget")))
    text = " ".join(verdict.text.split())
    assert "kiosk: full takes 1.27 ms for 256 tokens, and 0.5 are allowed" in text
    verdict = judge("choices", dict.fromkeys(_RIGHT, ("window", "rooms")))
    assert "kiosk: window takes 2.42 ms" in " ".join(verdict.text.split())


def test_who_says_what_the_own_choice_breaks_is_told_whose_is_asked_for():
    mine = {name: (way, "nothing") for name, (way, _) in _RIGHT.items()}
    assert "is about full attention" in judge("choices", mine).text


@pytest.mark.parametrize(
    "pair",
    ["bag", ("bag", "time"), ("budget", "bag"), (0, "budget"), ("bag", None), ...],
)
def test_what_is_no_pair_of_names_is_told_which_there_are(pair):
    verdict = judge("choices", _RIGHT | {"kiosk": pair})
    text = " ".join(verdict.text.split())
    assert "What you wrote at kiosk is none of the names" in text
    assert '"intents", "rooms", "budget" or "nothing"' in text


def test_an_empty_dict_is_told_the_keys():
    text = " ".join(judge("choices", {}).text.split())
    assert "it is a dict without such keys" in text
