"""MiniLM: transformers' numbers, and what its heads are known to do."""

import numpy as np
import pytest
import torch
from real_models import SENTENCES, agree, needs, reference
from torch_tools import one_thread

from attnlib.head_diagnostics import offset_mass, sink_mass
from attnlib.nn import MultiHeadAttention
from attnlib.nn.models import minilm
from attnlib.shapes import ShapeError

__all__ = ["one_thread"]
pytestmark = needs("minilm")


@pytest.fixture(scope="module")
def model() -> minilm.MiniLM:
    return minilm.load()


def test_it_computes_what_transformers_computes(model: minilm.MiniLM) -> None:
    theirs = reference("minilm")
    read = model.read(theirs["sentence"])
    assert list(read.tokens) == theirs["tokens"]
    agree(read.weights, theirs["weights"], atol=2e-6)
    agree(read.hidden, theirs["hidden"], atol=5e-6)


def test_the_stages_of_a_layer_are_those_of_our_attention(model: minilm.MiniLM) -> None:
    read = model.read(SENTENCES[0])
    attention = model.layers[3].attention
    assert isinstance(attention, MultiHeadAttention)
    stages = attention(read.hidden[3], return_stages=True)
    assert torch.equal(stages.out, read.layers[3].out)
    n = len(read.tokens)
    assert read.weights.shape == (6, 12, n, n)
    assert read.hidden.shape == (7, n, 384)
    assert not read.weights.requires_grad
    torch.testing.assert_close(read.weights.sum(-1), torch.ones(6, 12, n))


def test_the_spans_say_where_a_token_stands(model: minilm.MiniLM) -> None:
    sentence = "Unbelievable kittens, aren't they?"
    read = model.read(sentence)
    pieces = [
        (token.removeprefix("##"), sentence[start:end].lower())
        for token, (start, end) in zip(read.tokens, read.spans, strict=True)
    ]
    assert pieces[0] == ("[CLS]", "")
    assert pieces[-1] == ("[SEP]", "")
    assert all(token == there for token, there in pieces[1:-1])


def test_heads_that_are_known(model: minilm.MiniLM) -> None:
    """facts: 0.2 looks one token back; 2.9, 2.7 and 4.5 at [CLS]."""
    reads = [model.read(sentence) for sentence in SENTENCES]
    back = np.mean([offset_mass(read.weights, 1) for read in reads], axis=0)
    assert np.unravel_index(back.argmax(), back.shape) == (0, 2)
    assert back[0, 2] == pytest.approx(1.0, abs=0.01)
    sink = np.mean([sink_mass(r.weights[:, :, 1:]) for r in reads], axis=0)
    assert sink[2, 9] == pytest.approx(0.83, abs=0.06)
    assert sink[1:].mean() > 0.3


def test_what_a_sentence_means_is_near_to_what_its_like_means(
    model: minilm.MiniLM,
) -> None:
    cat, kitten, bank = (
        model.embed(sentence)
        for sentence in (
            "The cat chased the mouse.",
            "A kitten ran after a small rodent.",
            "The bank raised its interest rates.",
        )
    )
    assert float(cat.norm()) == pytest.approx(1, abs=1e-5)
    assert float(cat @ kitten) > 0.5 > 0.2 > float(cat @ bank)


def test_a_text_that_is_too_long(model: minilm.MiniLM) -> None:
    with pytest.raises(ShapeError, match="has 603 tokens, and MiniLM knows 512 posi"):
        model.read("cat " * 601)


def test_the_learners_random_numbers_stay() -> None:
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    minilm.load()
    assert torch.equal(torch.rand(3), expected)
