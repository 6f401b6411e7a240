"""The plays, their numbers, and the windows that are cut out of them."""

from __future__ import annotations

import gzip
import hashlib
import math
import re

import make_text
import pytest
import torch

from attnlib.nn import text
from attnlib.shapes import ShapeError

RAW_SHA256 = "f955bad2434b40c86168e854dbd938acf6f336a18055860a304a4f8d1da68914"


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_the_shipped_text_is_the_one_that_was_made():
    raw = gzip.decompress(text.TEXT.read_bytes())
    assert hashlib.sha256(raw).hexdigest() == RAW_SHA256


def test_the_packed_text_holds_no_name_and_no_time():
    packed = text.TEXT.read_bytes()
    assert packed[:8] == b"\x1f\x8b\x08\x00\x00\x00\x00\x00"  # no flags, time 0
    assert gzip.decompress(make_text.packed("cat\n")) == b"cat\n"
    assert make_text.packed("cat\n") == make_text.packed("cat\n")


def test_cleaning_keeps_the_speeches_and_nothing_else():
    play = (
        "# Hamlet\n\n### SCENE I. Elsinore.\n\n_FRANCISCO at his post.\nEnter BERNARDO_"
        "\n\n**BERNARDO**  \nWho's   there?  \n_\\[Aside]_  \nNobody—\n\n_Exit_\n\n"
        "**VARRO: & CLAUDIUS:**  \n__\\[Awaking]_  \n&c.\n\n**GHOST**  \n_Sighs_\n"
    )
    assert make_text.clean(play) == (
        "BERNARDO:\nWho's there?\nNobody--\n\nVARRO & CLAUDIUS:\n&c.\n"
    )


def test_another_wheel_is_refused():
    with pytest.raises(SystemExit, match=r"has the sha256 856c99dd.*, but this file"):
        make_text.text_of(b"not a wheel")


def test_the_last_play_is_for_validation():
    train, validation = text.plays()
    assert "PROSPERO:" not in train
    assert "HAMLET:" not in validation
    assert (train + validation).count(text.FOR_VALIDATION) == 1
    assert "_" not in train + validation
    for name in ("ROMEO", "PUCK", "BRUTUS", "ROSALIND", "HAMLET", "VIOLA", "OTHELLO"):
        assert f"\n{name}:\n" in train
    assert not re.search(r"Exeunt|Re-enter|\[", train + validation)


def test_ids_and_characters_go_both_ways():
    data = text.characters()
    train, validation = text.plays()
    assert data.decode(data.train[:1000]) == train[:1000]
    assert data.decode(data.validation) == validation
    assert torch.equal(data.encode(train[500:900]), data.train[500:900])
    assert data.vocabulary == "".join(sorted(data.vocabulary))
    assert data.train.dtype == data.validation.dtype == torch.int64
    assert data.encode("").shape == (0,)
    assert text.characters() is data


def test_a_character_that_no_play_has_is_named():
    with pytest.raises(ValueError, match="the plays have no '猫'; their 63 characters"):
        text.characters().encode("a 猫")


def test_windows_are_pieces_of_the_text_with_what_comes_next():
    ids = torch.arange(50) * 3
    x, targets = text.windows(ids, 7, 400, generator())
    assert x.shape == targets.shape == (400, 7)
    assert torch.equal(targets, x + 3)
    assert x.min() == 0
    assert targets.max() == 147  # the first and the last place are drawn, too


def test_windows_come_from_their_generator_alone():
    ids = text.characters().train
    first, again = (text.windows(ids, 9, 5, generator(3)) for _ in range(2))
    other = text.windows(ids, 9, 5, generator(4))
    assert torch.equal(first[0], again[0])
    assert not torch.equal(first[0], other[0])


@pytest.mark.parametrize("shape", [(8,), (0,), (3, 20)])
def test_a_text_that_is_too_short_for_a_window_is_refused(shape):
    words = (
        "windows of n=8 ids and the one after need ids of shape (n_ids,) with "
        f"n_ids > 8, but the shape is {shape}."
    )
    with pytest.raises(ShapeError, match=re.escape(words)):
        text.windows(torch.zeros(shape, dtype=torch.long), 8, 2, generator())


def test_sizes_must_be_whole_and_positive():
    ids = torch.arange(20)
    with pytest.raises(ShapeError, match="n"):
        text.windows(ids, 0, 2, generator())
    with pytest.raises(TypeError, match="batch"):
        text.windows(ids, 2, 1.5, generator())


def test_counting_by_hand():
    """a b a b | a a: with 1 more for each pair, ab comes 3, ba 2, aa and bb once."""
    tiny = text.Characters("ab", torch.tensor([0, 1, 0, 1]), torch.tensor([0, 0]))
    single, after = text.counting(tiny)
    assert single == pytest.approx(-math.log(4 / 7))
    assert after == pytest.approx(-math.log(1 / 4))
