"""A cache: the last tokens give what they give in one go, told to be causal or not."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from attnlib.clinic import examine


class Flagged(nn.Module):
    """Takes a cache (keys, values) and a flag; where a query sits is chosen."""

    def __init__(self, first=lambda n_q, n_k: n_k - n_q):
        super().__init__()
        self.n_heads, self.first = 2, first
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (
            nn.Linear(12, 12) for _ in range(4)
        )

    def split(self, x):
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)

    def hides(self, causal):
        return causal

    def forward(self, x, past=None, causal=False):
        q, k, v = (self.split(p(x)) for p in (self.q_proj, self.k_proj, self.v_proj))
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        n_q, n_k = scores.shape[-2:]
        if self.hides(causal):
            past_of = torch.ones(n_q, n_k).tril(self.first(n_q, n_k)) > 0
            scores = scores.masked_fill(~past_of, -torch.inf)
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
        return self.out_proj(mixed), (k, v)


class Required(Flagged):
    def forward(self, x, causal, past=None):
        return super().forward(x, past, causal)


class Always(Flagged):
    def hides(self, causal):
        return True


class Forgetful(Flagged):
    """It hides the future only as long as nothing is in the cache."""

    def forward(self, x, past=None, causal=False):
        return super().forward(x, past, causal and past is None)


def top_left(n_q, n_k):
    return 0


RIGHT = {"a flag": Flagged, "a flag that must be given": Required, "always": Always}
WRONG = {
    "top left": (lambda: Flagged(top_left), ["aligned_top_left"]),
    "top left, must be given": (lambda: Required(top_left), ["aligned_top_left"]),
    "sees ahead behind a cache": (Forgetful, ["causal_missing"]),
}


def seeded(make):
    torch.manual_seed(0)
    return make()


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_one_is_healthy(name):
    meant = {"causal": True} if name == "always" else {}
    report = examine(seeded(RIGHT[name]), **meant)
    assert report.healthy, str(report)


@pytest.mark.parametrize("name", WRONG)
def test_the_flag_counts_behind_a_cache(name):
    make, keys = WRONG[name]
    report = examine(seeded(make))
    assert [one.key for one in report.mistakes] == keys, str(report)
