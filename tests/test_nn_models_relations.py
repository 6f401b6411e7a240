"""Sentences of a small grammar: what belongs to what is exact, and varies in place."""

from collections import Counter

import numpy as np
import pytest
from real_models import needs
from torch_tools import one_thread

from attnlib.nn.models import minilm, relations
from attnlib.shapes import ShapeError

__all__ = ["one_thread"]
NOUNS = {*relations.ANIMATE, *relations.THINGS, *relations.PLACES}
KINDS = {  # what may stand at each end of a relation
    "det -> noun": (set(relations.DETS), NOUNS),
    "adjective -> noun": (set(relations.ADJECTIVES), NOUNS),
    "preposition -> noun": (set(relations.NEAR), set(relations.PLACES)),
    "auxiliary -> verb": (set(relations.AUXILIARIES), set(relations.VERBS)),
    "object -> verb": (NOUNS, set(relations.VERBS)),
    "verb -> object": (set(relations.VERBS), NOUNS),
    "subject -> verb": (set(relations.ANIMATE), set(relations.VERBS)),
    "verb -> subject": (set(relations.VERBS), set(relations.ANIMATE)),
    "time -> verb": ({"yesterday", "then", "today", "now"}, set(relations.VERBS)),
}


def drawn(seed: int, n: int = 200) -> tuple[relations.Sentence, ...]:
    return relations.sentences(n, np.random.default_rng(seed))


def test_the_ends_of_each_pair_are_of_the_right_kind() -> None:
    seen = set()
    for sentence in drawn(0):
        for relation, pairs in sentence.pairs.items():
            starts, ends = KINDS[relation]
            for start, end in pairs:
                assert sentence.words[start] in starts
                assert sentence.words[end] in ends
            seen.add(relation)
        assert len(sentence.pairs["auxiliary -> verb"]) == 1
    assert seen == set(KINDS)
    assert set(relations.RELATIONS) == {*KINDS, "pronoun -> person"}


def test_subject_and_object_are_the_right_ones_where_there_are_more_nouns() -> None:
    for sentence in drawn(1):
        ((subject, verb),) = sentence.pairs["subject -> verb"]
        ((thing, _),) = sentence.pairs["object -> verb"]
        nouns = [i for i, word in enumerate(sentence.words) if word in NOUNS]
        assert subject == min(nouns)
        assert thing == min(i for i in nouns if i > verb)


def test_no_relation_has_one_distance() -> None:
    steps: dict[str, Counter[int]] = {}
    for sentence in drawn(2):
        for relation, pairs in sentence.pairs.items():
            found = steps.setdefault(relation, Counter())
            found.update(end - start for start, end in pairs)
    for relation, found in steps.items():
        most = found.most_common(1)[0][1] / found.total()
        assert most < 0.9, relation
        assert len(found) > 1


def test_the_pronoun_says_who_is_meant_and_its_place_does_not() -> None:
    people = relations.people(200, np.random.default_rng(3))
    places: Counter[int] = Counter()
    for sentence in people:
        (((pronoun, person),)) = sentence.pairs["pronoun -> person"]
        of = relations.MEN if sentence.words[pronoun] == "he" else relations.WOMEN
        assert sentence.words[person] in of
        named = [w for w in sentence.words if w in (*relations.MEN, *relations.WOMEN)]
        assert len(named) == 2
        assert sum(w in of for w in named) == 1
        places[named.index(sentence.words[person])] += 1
    assert min(places.values()) > 70


def test_the_same_seed_gives_the_same_sentences() -> None:
    assert drawn(4, 9) == drawn(4, 9) != drawn(5, 9)
    with pytest.raises(ShapeError, match="n must be at least 0"):
        relations.sentences(-1, np.random.default_rng(0))


@needs("minilm")
def test_every_word_is_one_token_of_minilm() -> None:
    reader = minilm.load()
    people = relations.people(40, np.random.default_rng(6))
    for sentence in (*drawn(6, 80), *people):
        tokens = reader.read(sentence.text).tokens
        assert tokens == ("[CLS]", *sentence.words, ".", "[SEP]")


@needs("minilm")
def test_what_lesson_06_says_of_three_relations() -> None:
    """A head for auxiliary -> verb; none for object -> verb that beats a step."""
    reader = minilm.load()
    hit: dict[str, list[np.ndarray]] = {}
    steps: dict[str, Counter[int]] = {}
    for sentence in drawn(7, 80):
        w = reader.read(sentence.text).weights[:, :, 1:-2, 1:-2].numpy().copy()
        w[..., range(w.shape[-1]), range(w.shape[-1])] = -1
        most = w.argmax(-1)
        for relation in ("auxiliary -> verb", "object -> verb", "det -> noun"):
            for start, end in sentence.pairs[relation]:
                hit.setdefault(relation, []).append(most[..., start] == end)
                steps.setdefault(relation, Counter())[end - start] += 1
    share = {name: np.mean(found, axis=0) for name, found in hit.items()}
    step = {n: c.most_common(1)[0][1] / c.total() for n, c in steps.items()}
    assert share["auxiliary -> verb"][1, 4] > 0.95 > 0.7 > step["auxiliary -> verb"]
    assert share["det -> noun"][2, 8] > 0.85 > 0.7 > step["det -> noun"]
    assert share["object -> verb"].max() < step["object -> verb"] + 0.2
