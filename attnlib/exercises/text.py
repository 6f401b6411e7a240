"""Every sentence the exercises say, in one place, so that a translation can reach it.

The texts of the mistakes stand in `attnlib.clinic.mistakes`, the measured sentences in
`attnlib.clinic.evidence`, and hints and reasons with each exercise.
"""

from __future__ import annotations

from collections.abc import Sequence

# --- what a value is, in the middle of a sentence ---------------------------------
RAGGED = "a list whose rows differ in length"
COMPLEX = "an array of complex numbers"
MASKED = "a masked array (np.ma); a plain array is wanted, e.g. from `.filled(0)`"
OBJECTS = "an array, but not of numbers"
LIST_OF_OTHERS = "a list, but not of numbers"

# --- special returned values ------------------------------------------------------
RETURNS_NONE = "it returns None. Is the `return` line missing?"
RETURNS_ELLIPSIS = "it returns `...`. Put your result there."
GENERATOR = "it returns a generator. Write `return` where you wrote `yield`."
COROUTINE = "it is an `async def`. A plain `def` is wanted."
RETURNS_CALLABLE = "it returns a function. Did you forget to call it, with ()?"

CHECK_USAGE = 'write check("name", name), such as check("softmax", softmax).'


def a(noun: str) -> str:
    """The noun with its article."""
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def listed(words: Sequence[str]) -> str:
    """a, b and c."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


# --- calling check, hint and solution ---------------------------------------------
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


# --- check, in the order it looks ---------------------------------------------------
def not_started(name: str) -> str:
    return f"{name}: not started yet. Replace the `...`, run the cell, then this one."


def not_yet(name: str, sentence: str) -> str:
    return f"{name}: not yet. {sentence}"


def passed(name: str, why: str) -> str:
    return f"{name}: passed. {why}"


def answer_is(what: str) -> str:
    return f"The answer is {what}, and should be a function."


ANSWER_NONE = (
    "The answer is None. Give the function itself, without calling it: "
    "no () after its name."
)
ANSWER_CLASS = "The answer is a class, and should be a function: `def`, not `class`."
ANSWER_CALLED = (
    "The answer is {what}, not a function. Did you call it? Give the function itself, "
    "without () after its name."
)


def other_function(name: str, given: str) -> str:
    return f'You gave the function {given}: write check("{name}", {name}).'


def wrong_arguments(wanted: str, yours: str) -> str:
    return f"It should be called as {wanted}, but yours is {yours}."


def timed_out(seconds: float, case: str) -> str:
    return (
        f"It was stopped after {seconds:g} seconds (case: {case}). "
        "Is there a loop that never ends?"
    )


def raised(kind: str, message: str, where: str, meaning: str, case: str) -> str:
    line = f"It raised {kind}{': ' if message else ''}{message}{where} (case: {case})."
    return f"{line}\n{meaning}" if meaning else line


def at_line(number: int, function: str, source: str) -> str:
    place = f", at line {number} of {function}"
    return f"{place}: `{source}`" if source else place


def exits(kind: str) -> str:
    return f"It ends the program ({kind}). A function only returns."


KEYBOARD = "It asks for keyboard input. Work from the arguments alone."


def returned(sentence: str, case: str) -> str:
    return f"Called, {sentence} (case: {case})."


def tuple_for_one(n: int, name: str) -> str:
    if n == 1:
        return "it returns a tuple of one. Is there a comma after the result?"
    return f"it returns a tuple of {n}, and should return one array, {name}."


def one_for_many(kind: str, names: Sequence[str]) -> str:
    return (
        f"it returns {kind}, and should return {listed(names)}: "
        f"`return {', '.join(names)}`."
    )


def wrong_count(n: int, names: Sequence[str]) -> str:
    return f"it returns {n} results, and should return {len(names)}: {listed(names)}."


def not_an_array(name: str, what: str) -> str:
    return f"{name} should be an array of numbers, but it is {what}."


def wrong_shape(
    name: str, yours: tuple[int, ...], right: tuple[int, ...], axes: str, case: str
) -> str:
    named = f" ({', '.join(axes.split())})" if axes else ""
    return f"{name} has the shape {yours}; it should be {right}{named} (case: {case})."


def wrong_kind(name: str, dtype: str) -> str:
    return (
        f"{name} should hold True and False, but its dtype is {dtype}. "
        "A comparison such as `a <= b` gives truth values."
    )


def truth_for_numbers(name: str) -> str:
    return f"{name} should hold numbers, but it holds True and False."


def not_finite(name: str, what: str, place: str, case: str) -> str:
    return f"{name} holds {what} at {place}, where a number should be (case: {case})."


def mutates(names: Sequence[str], case: str) -> str:
    return (
        f"It changes its input {listed(names)} (case: {case}). The caller still needs "
        "it: make a new array instead of writing into the old one (`x = x - 1`, not "
        "`x -= 1`)."
    )


def printed(characters: int) -> str:
    return f"(Your function printed {characters} characters; check kept them hidden.)"


def named(name: str, code: str) -> str:
    return f"{name} ({code})" if code else name


def mistake(title: str, number: str, sentence: str, mend: str, report: str) -> str:
    lines = [title, f"What gave it away: {number}" if number else "", sentence, mend]
    if report:
        lines.append(f"You are not the first: {report}.")
    return "\n".join(line for line in lines if line)


def two_mistakes(titles: Sequence[str]) -> str:
    return f"Two mistakes at once: {listed(titles)}."


def other_reading(titles: Sequence[str]) -> str:
    return f"It could also be: {listed(titles)}. Both look the same from outside."


def law(name: str, sentence: str) -> str:
    return f"I know no such mistake, but a law is broken: {name}.\n{sentence}"


def differs(case: str, given: str, yours: str, right: str) -> str:
    return (
        f"I know no such mistake. The first difference is in: {case}.\n"
        f"given\n{given}\nyours\n{yours}\nexpected\n{right}"
    )


# --- answers that are values --------------------------------------------------------
def value_wanted(what: str, yours: str) -> str:
    return f"The answer should be {what}, but it is {yours}."


def value_wrong() -> str:
    return "That is not it."


def value_part_wrong(which: Sequence[str]) -> str:
    return f"Not all of it is right. Look again at: {listed(which)}."
