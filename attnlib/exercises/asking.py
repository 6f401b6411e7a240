"""Ask an answer all cases of its exercise, and keep what came of each call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from attnlib.clinic.case import Outcome, error_name
from attnlib.clinic.limit import Clock
from attnlib.clinic.match import Table
from attnlib.clinic.run import Ran, run
from attnlib.clinic.tensors import as_tensors, draw
from attnlib.exercises import compare
from attnlib.exercises.afar import is_afar
from attnlib.exercises.exercise import Exercise
from attnlib.exercises.read import Read, read


@dataclass(frozen=True)
class Answer:
    """All calls of one answer, and what they gave."""

    function: Callable[..., object]
    runs: tuple[Ran, ...]
    outcomes: tuple[Outcome, ...]
    sentences: tuple[str, ...]  # why a value could not be read; "" where it could


def call(
    exercise: Exercise,
    answer: Callable[..., object],
    args: tuple[object, ...],
    clock: Clock,
    wanted: Sequence[str] = (),
    drawn: bool = False,
    room: int | None = None,
) -> Ran:
    """Call the answer and read what it returns, both under the same guard.

    `drawn`: some random numbers are taken first, so that those of the answer differ.
    `room`: bytes that an answer may take that runs elsewhere.
    """

    def read_answer(*given: object) -> Read:
        if drawn:
            draw()
        given = as_tensors(given) if exercise.tensors else given
        return read(exercise.called(answer)(*given), exercise.returns, wanted)

    if is_afar(answer):
        around = exercise.around
        if around is None or around.__name__ in answer.beside:
            ran = answer.ask(args, clock.next(), drawn, room)
        else:
            ran = answer.ask_within(around, args, clock.next(), drawn)
        if ran.error is None:
            ran = replace(ran, value=read(ran.value, exercise.returns, wanted))
    else:
        ran = run(read_answer, args, clock.next())
    clock.add(ran.waited)
    return ran


def ask(
    exercise: Exercise, answer: Callable[..., object], table: Table, clock: Clock
) -> Answer:
    """Ask it all cases, up to the first that takes too long."""
    runs: list[Ran] = []
    outcomes: list[Outcome] = []
    sentences: list[str] = []
    for case, right in zip(table.cases, table.right, strict=True):
        wanted = [compare.wanted(good) for good in right.arrays]
        ran = call(exercise, answer, case.args, clock, wanted)
        runs.append(ran)
        found = ran.value if isinstance(ran.value, Read) else Read()
        sentences.append(found.sentence)
        if ran.error is not None:
            outcomes.append(Outcome(error=error_name(ran.error)))
        elif found.sentence:
            outcomes.append(Outcome(error="unread"))
        else:
            outcomes.append(Outcome(found.arrays))
        if ran.timed_out:  # the next case would take as long
            break
    return Answer(answer, tuple(runs), tuple(outcomes), tuple(sentences))
