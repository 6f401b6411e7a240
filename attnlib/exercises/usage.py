"""Every sentence on how check, hint and solution are called."""

from __future__ import annotations

from collections.abc import Sequence

CHECK_USAGE = 'write check("name", name), such as check("softmax", softmax).'


def unknown_exercise(name: str, close: Sequence[str], known: Sequence[str]) -> str:
    if close:
        return f'There is no exercise "{name}". Did you mean "{close[0]}"?'
    return f'There is no exercise "{name}". There are: {", ".join(known)}.'


def not_a_name(command: str, kind: str) -> str:
    return (
        f'{command} wants the name of an exercise in quotes first, such as "softmax"; '
        f"here it got {kind}."
    )


def swapped(name: str) -> str:
    return f'The two are swapped: write check("{name}", {name}).'


def answer_missing(name: str) -> str:
    return f'The answer is missing: write check("{name}", {name}).'


def no_arguments() -> str:
    return f"check wants a name and an answer: {CHECK_USAGE}"


def check_failed(kind: str) -> str:
    return f"check itself failed on this answer ({kind}). That is not your mistake."


def hint(number: int, of: int, sentence: str) -> str:
    return f"Hint {number} of {of}: {sentence}"


def no_more_hints(name: str) -> str:
    return f'There are no more hints. solution("{name}") shows one way to do it.'


def hints_left(name: str, left: int) -> str:
    hints = "1 hint is" if left == 1 else f"{left} hints are"
    return (
        f'{hints} left: hint("{name}"). '
        f'To see the solution all the same: solution("{name}", now=True).'
    )
