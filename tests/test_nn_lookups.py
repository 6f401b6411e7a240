"""Two lookups at once: what a question asks, what is hidden, and how many heads."""

import pytest
import torch
from torch import nn
from torch_tools import close, in_float64, one_thread  # noqa: F401

from attnlib.nn.lookups import LookupModel, Lookups, draw_lookups
from attnlib.nn.train import train
from attnlib.shapes import ShapeError


def drawn(n=40, seed=0):
    return draw_lookups(n, torch.Generator().manual_seed(seed))


def test_the_answers_stand_beside_two_different_real_keys():
    texts = drawn()
    for i in range(40):
        assert len(set(texts.keys[i].tolist())) == 7
        for j in range(3):
            first, second = texts.places[i, j].tolist()
            assert first != second
            assert texts.real[i, [first, second]].all()
            assert texts.asked[i, j].tolist() == texts.keys[i, [first, second]].tolist()
            found = texts.values[i, [first, second]].tolist()
            assert texts.answers[i, j].tolist() == found


def test_texts_differ_in_their_pairs_and_questions():
    texts = drawn()
    assert set(texts.real.sum(1).tolist()) == {4, 5, 6, 7}
    assert set(texts.counted.sum(1).tolist()) == {1, 2, 3}
    assert texts.counted[:, 0].all()


def test_fillers_change_nothing():
    texts = drawn()
    model = LookupModel(3, generator=torch.Generator().manual_seed(0))
    other = Lookups(
        texts.keys.where(texts.real, (texts.keys + 1) % 12),
        texts.values.where(texts.real, (texts.values + 1) % 12),
        texts.real,
        texts.asked.where(texts.counted[..., None], (texts.asked + 1) % 12),
        texts.counted,
        texts.answers.where(texts.counted[..., None], (texts.answers + 1) % 12),
        texts.places,
    )
    close(model.losses(other), model.losses(texts))
    assert model.accuracy(other) == model.accuracy(texts)


def test_the_loss_is_the_mean_over_texts_of_the_mean_over_their_questions():
    texts, model = drawn(5), LookupModel(3)
    logs = torch.log_softmax(model(texts), -1)
    for i in range(5):
        n = int(texts.counted[i].sum())
        each = [
            -logs[i, j, c, texts.answers[i, j, c]].item()
            for j in range(n)
            for c in range(2)
        ]
        assert model.losses(texts)[i].item() == pytest.approx(sum(each) / len(each))
    close(model.loss(texts), model.losses(texts).mean())


def test_a_part_is_a_batch_of_its_own():
    texts, model = drawn(5), LookupModel(3)
    close(model.losses(texts.part(1, 3)), model.losses(texts)[1:3])


def trained(n_heads, seed=0):
    generator = torch.Generator().manual_seed(seed)
    model = LookupModel(n_heads, generator=generator)
    train(model, lambda step: model.loss(draw_lookups(32, generator)), 150, lr=0.01)
    return model


def test_one_head_cannot_do_what_two_heads_can():
    texts = drawn(300, seed=9)
    assert trained(1).accuracy(texts) < 0.3
    assert trained(2).accuracy(texts) > 0.9


def test_an_attention_that_gives_something_else_is_named():
    model = LookupModel(2)
    model.attention = nn.Identity()
    model.attention.forward = lambda x, memory, mask: x[..., :8]
    with pytest.raises(ShapeError, match=r"d_model=40\), but it gave"):
        model(drawn(5))
