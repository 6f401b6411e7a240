"""Two mistakes that look the same at one size are told apart by another one."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from attnlib.clinic import examine
from attnlib.clinic.module_sibling import siblings
from attnlib.clinic.settle import DOUBT
from attnlib.clinic.subject import make_subject


class Heads(nn.Module):
    """Multi-head attention; how the scores are scaled is chosen by the class."""

    made = 0

    def __init__(self, d_model, n_heads, causal=False, bias=True):
        super().__init__()
        type(self).made += 1
        self.n_heads, self.causal, self.d_model = n_heads, causal, d_model
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (
            nn.Linear(d_model, d_model, bias=bias) for _ in range(4)
        )

    def factor(self, d_k):
        return d_k**-0.5

    def forward(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
            for layer in (self.q_proj, self.k_proj, self.v_proj)
        )
        scores = q @ k.transpose(-1, -2) * self.factor(q.shape[-1])
        if self.causal:
            future = torch.ones(scores.shape[-2:]).triu(1) > 0
            scores = scores.masked_fill(future, -torch.inf)
        return self.out_proj((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class ByWidth(Heads):
    def factor(self, d_k):
        return self.d_model**-0.5


class Twice(Heads):
    def factor(self, d_k):
        return 1 / d_k


class Fixed(Heads):
    def factor(self, d_k):
        return 1 / 8


class OfConfig(Twice):
    def __init__(self, config):
        super().__init__(config["width"], config["heads"])


class OfOneSize(Twice):
    def __init__(self, d_model, n_heads):
        if d_model != 64:
            raise SystemExit("only 64")
        super().__init__(d_model, n_heads)


def doubts(report):
    return [note for note in report.untested if note.startswith(DOUBT)]


def settled(report):
    return [note for note in report.untested if "tells them apart" in note]


@pytest.mark.parametrize(("cls", "code"), [(ByWidth, "M02"), (Twice, "M03")])
@pytest.mark.parametrize("how", ["module", "causal", "class"])
def test_a_sibling_tells_them_apart(cls, code, how):
    torch.manual_seed(0)
    if how == "class":
        report = examine(cls, n_heads=8)
    else:
        report = examine(cls(64, 8, causal=how == "causal"))
    assert report.codes == (code,), str(report)
    assert (len(doubts(report)), len(settled(report))) == (0, 1)
    assert report.subject == cls.__name__
    assert ("causal by itself" in report.features) == (how == "causal")


@pytest.mark.parametrize(
    "make",
    [
        lambda: OfConfig({"width": 64, "heads": 8}),
        lambda: OfOneSize(64, 8),
        lambda: Fixed(64, 8),
    ],
)
def test_without_one_that_fits_the_doubt_stays(make):
    torch.manual_seed(0)
    report = examine(make())
    assert not report.healthy
    assert (len(doubts(report)), len(settled(report))) == (1, 0), str(report)


def test_without_a_doubt_none_is_made():
    torch.manual_seed(0)
    for module in (Heads(64, 8), ByWidth(96, 4)):
        before = type(module).made
        examine(module)
        assert type(module).made == before


def test_the_dice_stay_as_they_were():
    torch.manual_seed(0)
    module = Twice(64, 8)
    state = torch.random.get_rng_state()
    examine(module)
    assert torch.equal(torch.random.get_rng_state(), state)


def test_what_a_module_was_made_with_is_kept():
    torch.manual_seed(0)
    module = Twice(64, 8, causal=True)
    for other, d_model, n_heads in siblings(module, make_subject(module).weights):
        assert (other.causal, other.n_heads, n_heads) == (True, 8, 8)
        assert other.d_model == d_model != 64
        assert d_model / n_heads not in (8, d_model**0.5)
