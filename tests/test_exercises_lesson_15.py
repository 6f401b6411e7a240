"""Lesson 15: answers as people write them, right and wrong, and what they are told."""

from __future__ import annotations

import statistics
import time

import numpy as np
import pytest

from attnlib.exercises import get, judge, names
from attnlib.exercises.lesson_15 import (
    _RIGHT,
    AGAINST,
    DESKS,
    WAYS,
    _not_against,
    _why_not,
)
from attnlib.exercises.played import Machine

LESSON = ("median_ms", "pick_way", "choices")


def test_the_lesson_has_these_exercises_and_their_minutes_fit_into_its_text():
    assert set(names(15)) == set(LESSON)
    assert sum(get(name).minutes for name in LESSON) == 23


# --- timing --------------------------------------------------------------------------
def timed_by(collect, centre, *, threads=1, warm=0, timed=0, factor=1000):
    """An answer put together from its parts."""

    def median_ms(answer, request, clock, set_threads, n_warm, n_timed):
        if threads:
            set_threads(threads)
        for _ in range(n_warm + warm):
            answer(request)
        return factor * centre(collect(answer, request, clock, n_timed + timed))

    return median_ms


def each(answer, request, clock, n):
    found = []
    for _ in range(n):
        start = clock()
        answer(request)
        found.append(clock() - start)
    return found


def chained(answer, request, clock, n):
    marks = [clock()]
    while len(marks) <= n:
        answer(request)
        marks.append(clock())
    return np.diff(marks)


def into_an_array(answer, request, clock, n):
    found = np.empty(n)
    for i in range(n):
        found[i] = -clock()
        answer(request)
        found[i] += clock()
    return found


def from_one_start(answer, request, clock, n):
    start, found = clock(), []
    for _ in range(n):
        answer(request)
        found.append(clock() - start)
    return found


def around_all(answer, request, clock, n):
    start = clock()
    for _ in range(n):
        answer(request)
    return [(clock() - start) / n]


def marks_alone(answer, request, clock, n):
    found = []
    for _ in range(n):
        answer(request)
        found.append(clock())
    return found


def by_hand(times):
    times = sorted(times)
    n = len(times)
    return (times[(n - 1) // 2] + times[n // 2]) / 2


@pytest.mark.parametrize("collect", [each, chained, into_an_array])
@pytest.mark.parametrize(
    "centre", [np.median, statistics.median, by_hand, lambda t: np.quantile(t, 0.5)]
)
def test_a_right_way_to_time_passes(collect, centre):
    verdict = judge("median_ms", timed_by(collect, centre))
    assert verdict.passed, verdict.text


def test_seconds_turned_to_ms_on_the_way_and_float32_pass():
    def median_ms(answer, request, clock, set_threads, n_warm, n_timed):
        set_threads(1)
        times = []
        for _ in range(n_warm + n_timed):
            before = clock() * 1e3
            answer(request)
            times.append(clock() * 1e3 - before)
        return np.float64(np.median(times[n_warm:]))

    verdict = judge("median_ms", median_ms)
    assert verdict.passed, verdict.text


WRONG_TIMES = [
    (timed_by(each, np.mean), "latency_mean"),
    (timed_by(around_all, np.mean), "latency_mean"),
    (timed_by(each, min), "latency_least"),
    (timed_by(each, max), "latency_most"),
    (timed_by(each, sum), "latency_total"),
    (timed_by(each, lambda t: t[-1]), "latency_last"),
    (timed_by(each, lambda t: sorted(t)[len(t) // 2]), "latency_upper"),
    (timed_by(each, statistics.median_high), "latency_upper"),
    (timed_by(each, statistics.median_low), "latency_lower"),
    (timed_by(each, lambda t: t[len(t) // 2]), "latency_unsorted"),
    (timed_by(each, lambda t: t[0]), "latency_first"),
    (timed_by(each, lambda t: np.quantile(t, 0.95)), "latency_tail"),
    (timed_by(each, lambda t: np.quantile(t, 0.9)), None),
    (timed_by(each, statistics.geometric_mean), None),
    (timed_by(each, np.median, factor=1), "latency_seconds"),
    (timed_by(each, np.median, factor=1e6), "latency_micro"),
    (timed_by(each, np.median, factor=1e-3), "latency_divided"),
    (timed_by(each, np.median, threads=0), "latency_threads"),
    (timed_by(each, np.median, threads=4), "latency_threads"),
    (timed_by(each, np.median, threads=2), "latency_threads"),
    (timed_by(each, np.median, warm=-1), "latency_warm_less"),
    (timed_by(each, np.median, warm=1), "latency_warm_more"),
    (timed_by(each, np.median, timed=1), "latency_timed_more"),
    (timed_by(from_one_start, np.median), "latency_one_start"),
    (timed_by(marks_alone, np.median), "latency_clock"),
    (timed_by(marks_alone, lambda t: np.median(np.diff(t))), None),
]


@pytest.mark.parametrize(("answer", "key"), WRONG_TIMES)
def test_a_wrong_way_to_time_is_refused_and_named(answer, key):
    verdict = judge("median_ms", answer)
    assert not verdict.passed
    if key is not None:
        assert [m.key for m in verdict.mistakes] == [key], verdict.text


def no_warm_up(answer, request, clock, set_threads, n_warm, n_timed):
    set_threads(1)
    return 1000 * np.median(each(answer, request, clock, n_timed))


def warm_up_counted(answer, request, clock, set_threads, n_warm, n_timed):
    set_threads(1)
    return 1000 * np.median(each(answer, request, clock, n_warm + n_timed))


def warmed_up_once(answer, request, clock, set_threads, n_warm, n_timed):
    set_threads(1)
    answer(request)
    return 1000 * np.median(each(answer, request, clock, n_timed))


def from_before_the_warm_up(answer, request, clock, set_threads, n_warm, n_timed):
    set_threads(1)
    start = clock()
    for _ in range(n_warm):
        answer(request)
    times = []
    for _ in range(n_timed):
        answer(request)
        times.append(clock() - start)
    return 1000 * np.median(times)


def threads_when_warm(answer, request, clock, set_threads, n_warm, n_timed):
    for _ in range(n_warm):
        answer(request)
    set_threads(1)
    return 1000 * np.median(each(answer, request, clock, n_timed))


@pytest.mark.parametrize(
    ("answer", "key"),
    [
        (no_warm_up, "latency_cold"),
        (warm_up_counted, "latency_warm_counted"),
        (warmed_up_once, "latency_one_warm"),
        (from_before_the_warm_up, "latency_from_warm"),
    ],
)
def test_calls_counted_wrongly_are_named(answer, key):
    verdict = judge("median_ms", answer)
    assert [m.key for m in verdict.mistakes] == [key], verdict.text


def test_one_thread_from_the_first_timed_call_on_is_right_too():
    assert judge("median_ms", threads_when_warm).passed


def test_a_clock_of_ones_own_is_refused():
    def median_ms(answer, request, clock, set_threads, n_warm, n_timed):
        set_threads(1)
        return 1000 * np.median(each(answer, request, time.perf_counter, n_timed))

    assert not judge("median_ms", median_ms).passed


def test_another_request_is_refused_with_words():
    def median_ms(answer, request, clock, set_threads, n_warm, n_timed):
        set_threads(1)
        return 1000 * np.median(each(answer, "", clock, n_timed))

    verdict = judge("median_ms", median_ms)
    assert not verdict.passed
    assert "was not called with the request" in verdict.text


def test_the_played_machine_refuses_threads_that_are_none():
    with pytest.raises(ValueError, match=r"whole number from 1 on, not 0\.5"):
        Machine([0.1]).set_threads(0.5)


# --- picking -------------------------------------------------------------------------
def in_a_loop(ms, right, budget):
    inside = [i for i in range(len(ms)) if ms[i] <= budget]
    if not inside:
        return -1
    best = max(inside, key=lambda i: np.mean(right[i]))
    least = np.mean(right[best]) - np.std(right[best])
    good = [i for i in inside if np.mean(right[i]) >= least]
    return min(good, key=lambda i: ms[i])


def sorted_by_time(ms, right, budget):
    means = right.mean(1)
    means[ms > budget] = -1
    best = np.argmax(means)
    for i in np.argsort(ms):
        if ms[i] <= budget and means[i] >= means[best] - right[best].std():
            return int(i)
    return -1


@pytest.mark.parametrize("answer", [in_a_loop, sorted_by_time])
def test_a_right_way_to_pick_passes(answer):
    verdict = judge("pick_way", answer)
    assert verdict.passed, verdict.text


def changed(old, new):
    source = get("pick_way").solution_source
    assert old in source
    space = {"np": np}
    exec(source.replace(old, new), space)
    return space["pick_way"]


SPREAD = "right[best].std()"
WRONG_PICKS = [
    ("fits = ms <= budget", "fits = ms < budget", "pick_strict"),
    ("fits = ms <= budget", "fits = ms >= budget", "pick_budget_turned"),
    ("fits = ms <= budget", "fits = ms > 0", "pick_no_budget"),
    ("return -1", "return 0", "pick_none_is_0"),
    ("return -1", "return None", None),
    ("return -1", "return ms.argmin()", "pick_none_is_fastest"),
    ("right.mean(axis=1)", "right.max(axis=1)", "pick_luckiest"),
    ("right.mean(axis=1)", "right.min(axis=1)", "pick_unluckiest"),
    ("right.mean(axis=1)", "right[:, 0]", "pick_first_seed"),
    ("right.mean(axis=1)", "right[:, -1]", "pick_last_seed"),
    ("right.mean(axis=1)", "np.median(right, axis=1)", "pick_median"),
    ("right.mean(axis=1)", "right.sum(axis=1)", "pick_sum"),
    (SPREAD, "right.std(axis=1)", "pick_own_spread"),
    (SPREAD, "right[best].std(ddof=1)", "pick_sample_spread"),
    (SPREAD, "right[best].var()", "pick_variance"),
    (SPREAD, "2 * right[best].std()", "pick_two_spreads"),
    (SPREAD, "np.ptp(right[best])", "pick_range"),
    (SPREAD, "right.mean(axis=1).std()", "pick_spread_of_ways"),
    (SPREAD, "right.std()", "pick_spread_of_all"),
    (SPREAD, "0.01", None),
    (SPREAD, "0", None),
    (f"- {SPREAD}", f"+ {SPREAD}", None),
    ("near = means >=", "near = means >", "pick_near_strict"),
    ("np.where(near, ms, np.inf).argmin()", "best", "pick_highest"),
    ("np.where(near, ms, np.inf).argmin()", "near.argmax()", "pick_first"),
    ("near, ms, np.inf", "fits, ms, np.inf", "pick_fastest"),
    ("near, ms, np.inf).argmin", "near, ms, -np.inf).argmax", "pick_slowest"),
    ("near, ms, np.inf", "near, budget - ms, np.inf", "pick_slowest"),
    ("np.where(near, ms, np.inf).argmin()", "np.where(near, ms, np.inf).min()", None),
    ("np.where(near, ms, np.inf).argmin()", "ms[near].argmin()", "pick_place_in_near"),
    ("np.where(near, ms, np.inf).argmin()", "ms.argmin()", None),
    ("best = means.argmax()", "best = right.mean(axis=1).argmax()", None),
    ("best = means.argmax()", "best = ms.argmin()", None),
]


@pytest.mark.parametrize(("old", "new", "key"), WRONG_PICKS)
def test_a_wrong_pick_is_refused_and_named(old, new, key):
    verdict = judge("pick_way", changed(old, new))
    assert not verdict.passed
    if key is not None:
        assert [m.key for m in verdict.mistakes] == [key], verdict.text


# --- choosing ------------------------------------------------------------------------
def test_the_right_choices_pass_as_lists_and_in_capitals():
    assert judge("choices", dict(_RIGHT)).passed
    assert judge("choices", {n: [w.upper(), r] for n, (w, r) in _RIGHT.items()}).passed


@pytest.mark.parametrize("name", DESKS)
@pytest.mark.parametrize("way", WAYS)
def test_a_wrong_way_is_told_why(name, way):
    if way != _RIGHT[name][0]:
        verdict = judge("choices", _RIGHT | {name: (way, _RIGHT[name][1])})
        assert _why_not(name, way) in " ".join(verdict.text.split())


@pytest.mark.parametrize("name", DESKS)
@pytest.mark.parametrize("reason", AGAINST)
def test_a_wrong_reason_is_told(name, reason):
    if reason != _RIGHT[name][1]:
        verdict = judge("choices", _RIGHT | {name: (_RIGHT[name][0], reason)})
        assert _not_against(name, reason) in " ".join(verdict.text.split())


def test_what_is_no_choice_is_refused():
    first, second, *_ = DESKS
    for answer in ({}, "window", _RIGHT | {first: "window"}, list(_RIGHT.values())):
        assert not judge("choices", answer).passed
    wrong = ("low rank", "nothing")
    verdict = judge("choices", _RIGHT | {first: wrong, second: wrong})
    assert first in verdict.text
    assert second in verdict.text
