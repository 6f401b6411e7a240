"""Small words that the sentences of the clinic and of the exercises share."""

from __future__ import annotations

from collections.abc import Sequence

TWO_MISTAKES = "Two mistakes at once."


def a(noun: str) -> str:
    """The noun with its article.

    >>> a("array"), a("float")
    ('an array', 'a float')
    """
    u = noun.startswith(("Un", "un")) and not noun.startswith(("Uni", "uni"))
    vowel = noun[:1].lower() in "aeio" or u or noun.startswith("nd")  # an ndarray
    return f"{'an' if vowel else 'a'} {noun}"


def capital(sentence: str) -> str:
    """The sentence with a capital, unless it begins with a name of Python's.

    >>> capital("it is so."), capital("a key is left."), capital("q is written over.")
    ('It is so.', 'A key is left.', 'q is written over.')
    >>> capital("n_heads=3 was given."), capital("float16 ends there.")
    ('n_heads=3 was given.', 'float16 ends there.')
    """
    first = sentence.partition(" ")[0].rstrip(".,:;")
    word = first.replace("-", "").replace("'", "").isalpha() and (
        len(first) > 1 or first == "a"
    )
    return sentence[:1].upper() + sentence[1:] if word else sentence


def listed(words: Sequence[str]) -> str:
    """Words as a list in a sentence.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


def gave_away(number: str) -> str:
    """The number that gave a mistake away, in its sentence.

    >>> gave_away("the rows sum to 2.")
    'What gave it away: the rows sum to 2.'
    """
    return f"What gave it away: {number}"


def not_the_first(reports: Sequence[str]) -> str:
    """Where else a mistake was seen.

    >>> not_the_first(["pbloem/former#10"])
    'You are not the first: pbloem/former#10.'
    """
    return f"You are not the first: {listed(reports)}."


def one_line(name: str) -> str:
    """A name that a stranger chose, as plain printable text on one line.

    >>> one_line("My\\nAttention")
    'My Attention'
    """
    return "".join(c for c in " ".join(name.split()) if c.isprintable())
