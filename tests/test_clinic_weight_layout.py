"""A fused matrix is cut rightly also where the attention around it is wrong."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from attnlib.clinic import weight_layout
from attnlib.clinic.subject import ModuleSubject, make_subject

D, H = 24, 3
WRONG = {  # scores (batch, heads, n_q, n_k) -> weights; one key is not weighed by 1
    "over heads and keys": lambda s: s.transpose(1, 2).flatten(2).softmax(-1),
    "sigmoid": lambda s: s.sigmoid().transpose(1, 2).flatten(2),
    "not normalised": lambda s: s.exp().transpose(1, 2).flatten(2),
}


class PerHead(nn.Module):
    """Of each head its parts side by side, in some order, then the next head."""

    def __init__(self, order, weigh):
        super().__init__()
        self.n_heads, self.order, self.weigh = H, order, weigh
        self.query_key_value = nn.Linear(D, 3 * D)
        self.dense = nn.Linear(D, D)

    def forward(self, x):
        b, n, _ = x.shape
        parts = self.query_key_value(x).view(b, n, H, 3, D // H).permute(3, 0, 2, 1, 4)
        q, k, v = (parts[self.order.index(letter)] for letter in "qkv")
        weights = self.weigh(q @ k.transpose(-1, -2) * (D // H) ** -0.5)
        weights = weights.view(b, n, H, n).transpose(1, 2)
        return self.dense((weights @ v).transpose(1, 2).reshape(b, n, D))


def by_formula(w, x, weigh):
    def heads(W, b):
        return torch.from_numpy(x @ W + b).unflatten(-1, (H, -1)).transpose(1, 2)

    q, k, v = heads(w.W_q, w.b_q), heads(w.W_k, w.b_k), heads(w.W_v, w.b_v)
    b, n, _ = x.shape
    weights = weigh(q @ k.transpose(-1, -2) * (D // H) ** -0.5)
    mixed = weights.view(b, n, H, n).transpose(1, 2) @ v
    return mixed.transpose(1, 2).reshape(b, n, D).numpy() @ w.W_o + w.b_o


def subject_of(order, kind):
    torch.manual_seed(0)
    subject = make_subject(PerHead(order, WRONG[kind]))
    assert isinstance(subject, ModuleSubject), subject
    return subject


@pytest.mark.parametrize("order", ["qkv", "vqk", "kvq"])
@pytest.mark.parametrize("kind", WRONG)
def test_values_are_told_by_proportion(order, kind):
    subject = subject_of(order, kind)
    x = np.random.default_rng(1).normal(size=(2, 5, D))
    out = by_formula(subject.weights, x, WRONG[kind])
    np.testing.assert_allclose(subject.call(x).out, out, rtol=1e-9, atol=1e-9)


def test_without_proportion_they_are_misread(monkeypatch):
    monkeypatch.setattr(weight_layout, "_in_proportion", lambda *given: [])
    subject = subject_of("qkv", "over heads and keys")
    x = np.random.default_rng(1).normal(size=(2, 5, D))
    out = by_formula(subject.weights, x, WRONG["over heads and keys"])
    assert not np.allclose(subject.call(x).out, out)


def test_trials_leave_the_numbers_as_they_were():
    weight = torch.arange(6.0).reshape(2, 3)
    bench = weight_layout.Bench(lambda x: None, 2)
    with bench.together([weight[:, :1], weight[:, 2:]], 1.0):
        changed = weight.clone()
    assert torch.equal(weight, torch.arange(6.0).reshape(2, 3))
    assert (changed != weight).tolist() == [[True, False, True]] * 2
