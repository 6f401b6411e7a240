"""Dropouts of PyTorch can be switched off; what they hid is named besides."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attnlib.clinic import dropout_off as off
from attnlib.clinic import examine
from attnlib.clinic.black_box import chance

X = torch.ones(4, 6)
DROPS = {
    "F.dropout": lambda x: F.dropout(x, 0.5),
    "by name": lambda x: F.dropout(input=x, p=0.5, training=True),
    "torch.dropout": lambda x: torch.dropout(x, 0.5, True),
    "nn.Dropout": nn.Dropout(0.5),
    "F.alpha_dropout": lambda x: F.alpha_dropout(x, 0.5, True),
    "native_dropout": lambda x: torch.native_dropout(x, 0.5, True)[0],
}


@pytest.mark.parametrize("name", DROPS)
def test_a_dropout_gives_back_what_it_is_given(name):
    torch.manual_seed(0)
    drop = DROPS[name]
    assert not torch.equal(drop(X), X)
    with off.dropout_off():
        assert torch.equal(drop(X), X)
    assert not torch.equal(drop(X), X)


@pytest.mark.parametrize("how", ["by place", "by name"])
def test_the_dropout_inside_of_attention_is_off(how):
    q = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(1))
    if how == "by place":
        attend = lambda p: F.scaled_dot_product_attention(q, q, q, None, p)  # noqa: E731
    else:
        attend = lambda p: F.scaled_dot_product_attention(q, q, q, dropout_p=p)  # noqa: E731
    right = attend(0.0)
    with off.dropout_off():
        assert torch.allclose(attend(0.5), right)


def test_the_dropout_of_multihead_attention_is_off():
    torch.manual_seed(0)
    module, x = nn.MultiheadAttention(12, 3, dropout=0.5, batch_first=True), None
    x = torch.randn(2, 5, 12)
    right = module.eval()(x, x, x)[0]
    with off.dropout_off():
        assert torch.allclose(module.train()(x, x, x)[0], right, atol=1e-6)


class Dropping(nn.Module):
    """Heads of one fused matrix; which part asks, and what is dropped, is chosen."""

    def __init__(self, order="qkv", drop=lambda w: F.dropout(w, 0.1)):
        super().__init__()
        self.n_heads, self.order, self.drop = 4, order, drop
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (
            nn.Linear(24, 24) for _ in range(4)
        )

    def forward(self, x):
        q, k, v = (
            getattr(self, f"{letter}_proj")(x).unflatten(-1, (4, 6)).transpose(1, 2)
            for letter in self.order
        )
        weights = self.drop((q @ k.transpose(-1, -2) / 6**0.5).softmax(-1))
        return self.out_proj((weights @ v).transpose(1, 2).flatten(2))


def by_hand(weights):
    return weights * (torch.rand_like(weights) > 0.1) / 0.9


def test_what_a_dropout_hides_is_named_besides():
    torch.manual_seed(0)
    report = examine(Dropping("qvk"))
    assert set(report.codes) == {"M34", "M46"}, str(report)
    assert chance.OFF in report.untested
    assert examine(Dropping()).codes == ("M34",)


def test_one_that_is_written_by_hand_shows_its_weights_alone():
    torch.manual_seed(0)
    report = examine(Dropping(drop=by_hand))
    assert report.codes == ("M34",)
    assert chance.SHOWN in report.untested


def test_without_the_switch_the_other_mistake_stays_hidden(monkeypatch):
    monkeypatch.setattr(off, "NAMES", set())
    torch.manual_seed(0)
    report = examine(Dropping("qvk"))
    assert report.codes == ("M34",)
