"""Sentences whose grammar is known because it made them: what belongs to what, exactly.

A parser would guess, and the head that agrees with its guesses would look good. Here
each sentence is drawn from a small grammar, with words that may stand between or not,
so that two words that belong together do not always stand equally far apart.

Every word is one token of MiniLM: word i of a sentence is token i + 1, after [CLS].
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from attnlib.shapes import size

RELATIONS = {
    "det -> noun": "the -> dog",
    "adjective -> noun": "old -> dog",
    "preposition -> noun": "in -> garden",
    "auxiliary -> verb": "has -> seen",
    "object -> verb": "cat -> seen",
    "verb -> object": "seen -> cat",
    "subject -> verb": "dog -> seen",
    "verb -> subject": "seen -> dog",
    "time -> verb": "yesterday -> seen",
    "pronoun -> person": "she -> queen, told by the king or telling him",
}
DETS = ("the", "my", "this", "every", "our")
ADJECTIVES = ("old", "small", "red", "young", "big", "quiet", "strange", "new")
ANIMATE = ("dog", "cat", "farmer", "teacher", "bird", "doctor", "horse", "lawyer")
THINGS = ("book", "house", "car", "letter", "table", "door", "picture", "stone")
PLACES = ("garden", "kitchen", "street", "forest", "river", "station", "school")
NEAR = ("in", "near", "behind", "from")
VERBS = ("seen", "found", "bought", "moved", "lost", "painted", "followed", "wanted")
AUXILIARIES = ("has", "had")
ADVERBS = ("never", "often", "quickly", "already")
TIMES = {"had": ("yesterday", "then"), "has": ("today", "now")}
MEN = ("king", "father", "boy", "uncle", "husband")
WOMEN = ("queen", "mother", "girl", "aunt", "wife")
SAID = ("told", "warned", "reminded")
STATES = ("late", "wrong", "ill", "free", "safe")


@dataclass(frozen=True)
class Sentence:
    """One sentence, and which of its words belong together."""

    words: tuple[str, ...]  # without the full stop
    pairs: dict[str, tuple[tuple[int, int], ...]]  # relation -> (from, to), as words

    @property
    def text(self) -> str:
        """The sentence as one text, with its full stop."""
        return " ".join(self.words) + "."


@dataclass
class _Draft:
    """A sentence that is being written."""

    rng: np.random.Generator
    words: list[str] = field(default_factory=list)
    pairs: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    def say(self, words: tuple[str, ...]) -> int:
        """Add one of these words, and say which number it has."""
        self.words.append(str(self.rng.choice(words)))
        return len(self.words) - 1

    def maybe(self, chance: float) -> bool:
        return bool(self.rng.random() < chance)

    def link(self, relation: str, start: int, end: int) -> None:
        self.pairs.setdefault(relation, []).append((start, end))

    def noun(self, nouns: tuple[str, ...]) -> int:
        """A determiner, up to two adjectives, a noun."""
        before = [("det -> noun", self.say(DETS))]
        for chance in (0.5, 0.3):
            if self.maybe(chance):
                before.append(("adjective -> noun", self.say(ADJECTIVES)))
        noun = self.say(nouns)
        for relation, word in before:
            self.link(relation, word, noun)
        return noun

    def place(self) -> None:
        """A preposition and where."""
        preposition = self.say(NEAR)
        self.link("preposition -> noun", preposition, self.noun(PLACES))

    def done(self) -> Sentence:
        pairs = {relation: tuple(found) for relation, found in self.pairs.items()}
        return Sentence(tuple(self.words), pairs)


def sentences(n: int, rng: np.random.Generator) -> tuple[Sentence, ...]:
    """Draw sentences such as "the old dog near our river has never seen my cat today."

    Args:
        n: how many.
        rng: where words and their number are drawn from.

    Returns:
        The sentences; of each, all pairs of each relation, as numbers of words.

    Raises:
        ShapeError, TypeError: n is no whole number from 0.

    Cost: 0.1 ms a sentence.
    Source: the grammar of this file.
    Lesson: 06.

    >>> (one,) = sentences(1, np.random.default_rng(1))
    >>> one.text
    'this strange lawyer near our quiet big school has followed our door today.'
    >>> [(one.words[i], one.words[j]) for i, j in one.pairs["subject -> verb"]]
    [('lawyer', 'followed')]
    """
    return tuple(_scene(rng) for _ in range(size("n", n)))


def people(n: int, rng: np.random.Generator) -> tuple[Sentence, ...]:
    """Draw sentences such as "the king told his queen that she was late."

    One person is a man and one a woman, in any order, so that the pronoun says which
    of the two it means, and its place does not.

    Args:
        n: how many.
        rng: where words are drawn from.

    Returns:
        The sentences, with the one relation "pronoun -> person".

    Raises:
        ShapeError, TypeError: n is no whole number from 0.

    Cost: 0.1 ms a sentence.
    Source: the grammar of this file.
    Lesson: 06.

    >>> (one,) = people(1, np.random.default_rng(3))
    >>> one.text
    'the mother reminded my old boy that she was ill.'
    >>> one.pairs
    {'pronoun -> person': ((7, 1),)}
    """
    return tuple(_told(rng) for _ in range(size("n", n)))


def _scene(rng: np.random.Generator) -> Sentence:
    draft = _Draft(rng)
    auxiliary_word = str(rng.choice(AUXILIARIES))
    times, first = TIMES[auxiliary_word], draft.maybe(0.3)
    time = draft.say(times) if first else None
    subject = draft.noun(ANIMATE)
    if draft.maybe(0.5):
        draft.place()
    auxiliary = draft.say((auxiliary_word,))
    if draft.maybe(0.5):
        draft.say(ADVERBS)
    verb = draft.say(VERBS)
    thing = draft.noun(THINGS + ANIMATE)
    if draft.maybe(0.4):
        draft.place()
    if not first and draft.maybe(0.6):
        time = draft.say(times)
    draft.link("auxiliary -> verb", auxiliary, verb)
    draft.link("object -> verb", thing, verb)
    draft.link("verb -> object", verb, thing)
    draft.link("subject -> verb", subject, verb)
    draft.link("verb -> subject", verb, subject)
    if time is not None:
        draft.link("time -> verb", time, verb)
    return draft.done()


def _told(rng: np.random.Generator) -> Sentence:
    draft = _Draft(rng)
    order = [("he", MEN), ("she", WOMEN)]
    if draft.maybe(0.5):
        order.reverse()
    persons = {}
    for place, (said, names) in enumerate(order):
        draft.say(("the", "my", "our"))
        if draft.maybe(0.4):
            draft.say(ADJECTIVES[:2])
        persons[said] = draft.say(names)
        if place == 0:
            draft.say(SAID)
    draft.say(("that",))
    pronoun = draft.say(("he", "she"))
    draft.say(("was",))
    draft.say(STATES)
    draft.link("pronoun -> person", pronoun, persons[draft.words[pronoun]])
    return draft.done()
