"""Judge a check by the bugs it catches, and an input by the bug it shows."""

from __future__ import annotations

import numpy as np

from attnlib.attention import scaled_dot_product
from attnlib.clinic import arena
from attnlib.clinic.arena_text import got_away
from attnlib.clinic.bugs.bug import Bug
from attnlib.exercises import explain, hunt_text, stubs, text
from attnlib.exercises.exercise import HuntExercise, WitnessExercise
from attnlib.exercises.judging import Status, Verdict
from attnlib.exercises.shares import ALL, NOTHING, Shares

APART = 0.01  # a bug shows where its output differs by more
ROUNDED = "float32"  # in the name of right attentions that round more than others


def judge_hunt(exercise: HuntExercise, answer: object, seed: int = 0) -> Verdict:
    """Judge a check. The same answer and seed always give the same.

    It counts what share of the bugs it caught, where it blamed no right attention.
    """
    name = exercise.name
    if stubs.is_stub(answer):
        return Verdict("not started", text.not_started(name))
    if not callable(answer) or isinstance(answer, type):
        kind = text.a(type(answer).__name__)
        said = text.ANSWER_NONE if answer is None else text.answer_is(kind)
        return Verdict("type", text.not_yet(name, said))
    arguments = stubs.wrong_arguments(exercise.solution, answer, (arena.attention,))
    if arguments:
        return Verdict("type", text.not_yet(name, arguments))
    bugs, limit = exercise.bugs(seed), arena.LIMIT
    score = arena.score(answer, bugs, exercise.right, seed=seed, limit=limit)
    if explain.says_unfinished(score.error):
        return Verdict("not started", text.not_started(name))

    def no(status: Status, sentence: str, share: Shares = NOTHING) -> Verdict:
        return Verdict(status, text.not_yet(name, sentence), (), share)

    if score.faults:
        slow = "stopped" in score.faults[0]
        return no("timeout" if slow else "type", score.faults[0])
    if score.error is not None:
        blamed = hunt_text.raised_on(score.false_alarms[0].name)
        case = f"the right attention '{score.false_alarms[0].name}'"
        said = explain.raised(score.error, answer, case)
        return no("raised", f"{said}\n{blamed}")
    if score.false_alarms:
        return no("wrong", _blamed(score))
    if score.caught and not any(score.calls):
        return no("wrong", hunt_text.NEVER_CALLED)
    n, of = len(score.caught), len(score.bugs)
    if score.mutation_score < exercise.wanted:
        few = hunt_text.too_few(n, of, exercise.wanted)
        none = "" if score.caught else hunt_text.NONE
        said = f"{few}{none}\n{hunt_text.AWAY}\n{got_away(score.missed)}"
        return no("wrong", said, Shares(n, of))
    said = f"{hunt_text.caught(n, of)} {exercise.why}"
    if score.missed:
        said += f"\n{hunt_text.rest(score.missed)}"
    return Verdict("passed", text.passed(name, said), (), ALL)


def _blamed(score: arena.Score) -> str:
    names = [right.name for right in score.false_alarms]
    sentence = hunt_text.blamed(names, len(score.right))
    if len(names) == len(score.right):
        turned = len(score.caught) < len(score.bugs)
        return sentence + (hunt_text.TURNED if turned else hunt_text.ALL_BLAMED)
    if all(ROUNDED in name for name in names):
        return sentence + hunt_text.ROUNDING
    return sentence + hunt_text.BLAMED


def judge_witness(exercise: WitnessExercise, answer: object) -> Verdict:
    """Judge an input by whether the bug shows on it, and by how small it is."""
    name = exercise.name
    if answer is Ellipsis:
        return Verdict("not started", text.not_started(name))
    if not isinstance(answer, tuple | list) or len(answer) not in (3, 4):
        return Verdict("type", text.not_yet(name, hunt_text.FORM))
    try:
        given = [None if a is None else np.asarray(a) for a in answer]
        arrays, mask = arena.legal(*given)
    except Exception as error:
        return Verdict("type", text.not_yet(name, hunt_text.not_legal(str(error))))
    q, k, v = arrays
    right = scaled_dot_product(q, k, v, mask).out
    apart = _apart(exercise.bug, arrays, mask, right)
    if apart <= APART:
        return Verdict("wrong", text.not_yet(name, hunt_text.hidden(apart)))
    size = sum(np.size(a) for a in given if a is not None)
    if size > exercise.fewest:
        return Verdict("wrong", text.not_yet(name, hunt_text.too_large(size)))
    return Verdict("passed", text.passed(name, exercise.why), (), ALL)


def _apart(
    bug: Bug, arrays: list[arena.Array], mask: arena.Mask | None, right: arena.Array
) -> float:
    """How far the bug is from the right output; infinity for NaN and for an error."""
    with np.errstate(all="ignore"):
        try:
            out = bug.attention(*(a.copy() for a in arrays), mask)
            return float(np.nan_to_num(np.abs(out - right), nan=np.inf).max())
        except Exception:
            return np.inf
