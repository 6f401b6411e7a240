"""Every sentence the exercises say, in one place, so that a translation can reach it.

What a learner's own errors mean stands in `meanings` and `habits`, how all numbers are
off in `pattern`, how check, hint and solution are
called in `usage`, the texts of the mistakes in `attnlib.clinic.mistakes`, the measured
sentences in `attnlib.clinic.evidence`, and hints and reasons with each exercise.
"""

from __future__ import annotations

from collections.abc import Sequence

from attnlib.clinic import words
from attnlib.clinic.words import TWO_MISTAKES as TWO_MISTAKES
from attnlib.clinic.words import a as a
from attnlib.clinic.words import capital as capital
from attnlib.clinic.words import gave_away as gave_away
from attnlib.clinic.words import listed as listed

Shape = tuple[int, ...]

# --- what a value is, in the middle of a sentence ---------------------------------
RAGGED = "a list whose rows differ in length"
COMPLEX = "an array of complex numbers"
MASKED = "a masked array (np.ma); a plain array is wanted, e.g. from `.filled(0)`"
TOO_LARGE = "an array of shape {shape}, far too large"
OBJECTS = "an array of dtype {dtype}"
LIST_OF_OTHERS = "a list of something else"

KINDS = {"str": "text in quotes", "NoneType": "None", "ellipsis": "`...`"}

# --- special returned values ------------------------------------------------------
RETURNS_NONE = "it returns None. Is the `return` line missing?"
RETURNS_NONE_OF_STUB = (
    "it returns None. `{name}`, which it calls, is still the stub: write that first"
)
RETURNS_NONE_FOR = (
    "it returns None where `{name}` is None. The description says what is wanted then"
)
RETURNS_NONE_ONCE = (
    "it returns None here. Its `return` is not reached, or what stands there is None"
)
RETURNS_ELLIPSIS = "it returns `...`. Put your result there."
GENERATOR = "it returns a generator. Write `return` where you wrote `yield`."
LAZY = (
    "it returns {kind}, in which nothing is computed yet. Make it an array: "
    "np.array(list(...))"
)
LAZY_MANY = (
    "it returns something in which nothing is computed yet. Make it a tuple: tuple(...)"
)
COROUTINE = "it is an `async def`. A plain `def` is wanted."
RETURNS_CALLABLE = "it returns a function. Did you forget to call it, with ()?"


def called(name: str) -> str:
    """A result in a sentence: words as they are, names of code in backticks."""
    return name if name.startswith("the ") else f"`{name}`"


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
    own = f"{kind}: {message}" if message else kind
    lines = [f"It raised {a(kind)}{where}.", meaning, f"{own} (case: {case})."]
    return "\n".join(line for line in lines if line)


def at_line(number: int, function: str, source: str) -> str:
    place = f" at line {number} of {function}"
    return f"{place}: `{source}`" if source else place


def exits(kind: str) -> str:
    return f"It ends the program ({kind}). A function only returns."


KEYBOARD = "It asks for keyboard input. Work from the arguments alone."


def returned(sentence: str, case: str) -> str:
    return capital(f"{sentence.rstrip('.')} (case: {case}).")


def tuple_for_one(n: int, name: str) -> str:
    if n == 1:
        return "it returns a tuple of one. Is there a comma after the result?"
    return f"it returns a tuple of {n}, and should return one result, {name}."


def one_for_many(kind: str, names: Sequence[str]) -> str:
    return (
        f"it returns {kind}, and should return {listed(names)}: "
        f"`return {', '.join(names)}`."
    )


def wrong_count(n: int, names: Sequence[str]) -> str:
    return f"it returns {n} results, and should return {len(names)}: {listed(names)}."


def not_an_array(name: str, wanted: str, what: str) -> str:
    return capital(f"{called(name)} should be {wanted}, but you returned {what}.")


def take_its(name: str) -> str:
    return f" It has what is wanted: return its `.{name}`."


def wrong_shape(
    name: str, yours: Shape, right: Shape, axes: Sequence[str], case: str
) -> str:
    named = f": ({', '.join(axes)})" if axes else ""
    return (
        f"The shape of {called(name)} is {yours}; it should be {right}{named} "
        f"(case: {case})."
    )


def one_for_array(name: str, wanted: Shape, axes: Sequence[str], case: str) -> str:
    named = f": ({', '.join(axes)})" if axes else ""
    return (
        f"You returned a single value for {called(name)}; wanted is an array of shape "
        f"{wanted}{named} (case: {case})."
    )


def array_for_one(name: str, wanted: str, yours: Shape, hint: str, case: str) -> str:
    return capital(
        f"{called(name)} should be {wanted}, but it is an array of shape {yours} "
        f"(case: {case}).{hint}"
    )


SUM_MISSING = " Is a sum or a mean missing?"
ALONE = " Return the number alone, without brackets."
ALL_MISSING = " .all() makes one True or False of many."


def wrong_kind(name: str, dtype: str) -> str:
    return capital(
        f"{called(name)} should hold True and False, but its dtype is {dtype}. "
        "A comparison such as `a <= b` gives truth values."
    )


def truth_for_numbers(name: str, wanted: str, one: bool) -> str:
    found = "True or False" if one else "an array of True and False"
    return capital(f"{called(name)} should be {wanted}, but it is {found}.")


def not_finite(name: str, what: str, place: str, case: str) -> str:
    return (
        f"There is {what} in {called(name)} at {place}, where a number should be "
        f"(case: {case})."
    )


OVERFLOW = (
    "\nexp is infinity beyond 709 and 0 below -745; infinity / infinity and 0 / 0 are "
    "NaN (M06). Before exp, subtract the largest number of each row, along its axis."
)
ZERO_TIMES_INFINITY = (
    "\n0 times infinity is NaN. Write -inf where a mask forbids, with where or "
    "masked_fill, and multiply nothing with it."
)
EMPTY_ROW = (
    "\nA row of -inf throughout has nothing to divide: -inf minus -inf, and 0 over 0, "
    "are NaN (M14). Choose zeros for it with np.where."
)


def mutates(names: Sequence[str], case: str) -> str:
    return (
        f"It changes its input {listed(names)} (case: {case}). The caller still needs "
        "it: make a new array instead of writing into the old one (`x = x - 1`, not "
        "`x -= 1`)."
    )


def printed(characters: int) -> str:
    return f"(Your function printed {characters} characters; check kept them hidden.)"


def one_of_two(position: int, name: str) -> str:
    return f"{('First', 'Second')[position]}: {name}."


def not_the_first(codes: Sequence[str], reports: Sequence[str]) -> str:
    """Where else a mistake was seen, and its number in the course's list."""
    lines = []
    if reports:
        lines.append(words.not_the_first(reports))
    if codes:
        lines.append(f"({listed(codes)} in the course's list of mistakes.)")
    return " ".join(lines)


def raises_too(kind: str, case: str) -> str:
    return f"This also makes it raise {a(kind)} in another case ({case})."


def other_reading(names: Sequence[str]) -> str:
    return f"It could also be: {listed(names)}. Both look the same from outside."


def law(name: str, sentence: str, opening: str) -> str:
    return f"{opening}: {name}.\n{sentence}"


UNSEEN = "Asked that, your function gives no numbers, or others than before."
UNKNOWN = "I know no such mistake."


def differs(case: str, given: str, yours: str, right: str) -> str:
    return f"{UNKNOWN} The first difference is in: {case}.\n{given}\n{yours}\n{right}"


def outside(names: Sequence[str]) -> str:
    quoted = listed([f"`{name}`" for name in names])
    return f"({quoted}: from the notebook, the same in every case. Use the arguments.)"


def block(label: str, value: str) -> str:
    """`label = value`, or the value on lines of its own."""
    return f"{label} =\n{value}" if "\n" in value else f"{label} = {value}"


def row_of(label: str, row: Sequence[int]) -> str:
    return f"{label}[{', '.join(map(str, row))}]" if row else label


def only_shape(shape: Shape) -> str:
    return f"(an array of shape {shape})"


# --- answers that are values --------------------------------------------------------
def value_wanted(what: str, yours: str) -> str:
    return f"The answer should be {what}, but it is {yours}."


def value_wrong() -> str:
    return "That is not it."


def value_no_name(which: Sequence[str]) -> str:
    return f"What you wrote at {listed(which)} is none of the names."


def value_part_wrong(which: Sequence[str]) -> str:
    return f"Not all of it is right. Look again at: {listed(which)}."
