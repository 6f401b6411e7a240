"""Latent attention (MLA): examined with one matrix where tokens pass two."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from attnlib.clinic import examine
from attnlib.clinic.module_latent import IN_PART, JOINED, _without_up

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))

from zoo.latent_modules import SPECIMENS, Latent, Named


@pytest.mark.parametrize("specimen", SPECIMENS, ids=lambda s: s.name)
@pytest.mark.parametrize("seed", range(4))
def test_what_it_is_is_said(specimen, seed):
    made = specimen.make(np.random.default_rng(seed), "float64")
    said = examine(made, seed=seed, **specimen.intent)
    assert set(said.codes) == specimen.codes, said
    assert said.healthy == (not specimen.codes)
    assert JOINED in said.untested


def test_a_scale_by_the_latent_is_read_off():
    torch.manual_seed(0)
    said = examine(Latent(24, 4, "by the latent"))
    assert "scores are multiplied by 0.302; 0.408 = 1/√6 is right" in str(said.unknown)


def test_the_module_is_as_it_was():
    torch.manual_seed(0)
    module = Named(12, 3)
    before = {name: p.clone() for name, p in module.state_dict().items()}
    examine(module)
    assert module.W_dkv.out_features == 4
    assert all(torch.equal(p, before[name]) for name, p in module.state_dict().items())


class Apart(nn.Module):
    """Keys have a part of their own for positions, beside what comes of the latent."""

    def __init__(self):
        super().__init__()
        self.q_proj = nn.Linear(24, 40)
        self.kv_a_proj_with_mqa = nn.Linear(24, 14)
        self.kv_a_layernorm = nn.LayerNorm(10)
        self.kv_b_proj = nn.Linear(10, 48)
        self.o_proj = nn.Linear(24, 24)

    def forward(self, x):
        batch, n, _ = x.shape
        q = self.q_proj(x).view(batch, n, 4, 10).transpose(1, 2)
        latent, placed = self.kv_a_proj_with_mqa(x).split([10, 4], dim=-1)
        both = self.kv_b_proj(self.kv_a_layernorm(latent)).view(batch, n, 4, 12)
        k, v = both.transpose(1, 2).chunk(2, dim=-1)
        k = torch.cat([k, placed[:, None].expand(batch, 4, n, 4)], dim=-1)
        weights = (q @ k.mT / 10**0.5).softmax(dim=-1)
        return self.o_proj((weights @ v).transpose(1, 2).flatten(2))


def test_positions_of_their_own_are_refused_with_what_to_do():
    assert examine(Apart()).refused == f"Apart holds {IN_PART}."


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("attn.W_UK", "w_k"),
        ("q_b_proj", "q_proj"),
        ("kv_up", "kv"),
        ("up_v", "v"),
        ("up", "up"),
    ],
)
def test_the_second_matrix_is_named_by_what_it_makes(path, name):
    assert _without_up(path) == name
