"""What can be seen in a module: settings, and the source of its forward."""

from __future__ import annotations

import functools
import inspect

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from attnlib.clinic import library_rules, module_rules
from attnlib.nn import MultiHeadAttention


def codes(module):
    return [caution.code for caution in library_rules(module)]


def test_batch_first_is_read_off_the_settings():
    assert codes(nn.MultiheadAttention(8, 2)) == ["M23", "M42"]
    assert codes(nn.MultiheadAttention(8, 2, batch_first=True)) == ["M42"]
    layer = nn.TransformerEncoderLayer(8, 2, 12)
    assert "M23" in codes(layer)
    assert "M23" not in codes(nn.TransformerEncoderLayer(8, 2, 12, batch_first=True))
    inside = nn.Sequential(nn.Linear(8, 8), nn.MultiheadAttention(8, 2))
    evidence = library_rules(inside)[0].evidence
    assert evidence.startswith("1 (MultiheadAttention) has batch_first=False")


def test_the_nested_tensor_of_evaluation_is_seen_where_it_is_used():
    def encoder(**more):
        layer = nn.TransformerEncoderLayer(8, 2, 12, batch_first=True)
        return nn.TransformerEncoder(layer, 2, **more)

    assert "M43" in codes(encoder())
    assert "M43" not in codes(encoder(enable_nested_tensor=False))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_what_the_caution_on_evaluation_says_is_so():
    layer = nn.TransformerEncoderLayer(8, 2, 12, batch_first=True, dropout=0.0)
    x, fillers = torch.randn(2, 3, 8), torch.tensor([[False, True, True]] * 2)
    fillers[1, 1] = False
    outs = []
    for nested in (True, False):
        encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=nested).eval()
        with torch.no_grad():
            outs.append(encoder(x, src_key_padding_mask=fillers))
    assert outs[0][0, 1:].abs().sum() == 0
    assert outs[1][0, 1].abs().sum() > 0


class Unsaid(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return checkpoint(self.layer, x)


class Reentrant(Unsaid):
    def forward(self, x):
        return torch.utils.checkpoint.checkpoint(self.layer, x, use_reentrant=True)


class Modern(Unsaid):
    def forward(self, x):
        return checkpoint(self.layer, x, use_reentrant=False)


def test_a_checkpoint_is_read_off_the_source():
    assert codes(Unsaid()) == ["M41"]
    assert codes(nn.Sequential(Reentrant())) == ["M41"]
    assert codes(Modern()) == []
    assert "by default" in library_rules(Unsaid())[0].evidence


@pytest.mark.filterwarnings("ignore:None of the inputs")
def test_what_the_caution_on_checkpoints_says_is_so():
    for kind, trained in ((Reentrant, False), (Modern, True)):
        module = kind()
        assert module(torch.ones(2, 4)).requires_grad is trained


def test_a_checkpoint_of_a_library_is_read_off_its_settings():
    module = Modern()
    module.gradient_checkpointing = True
    module._gradient_checkpointing_func = functools.partial(
        checkpoint, use_reentrant=True
    )
    assert codes(module) == ["M41"]
    module._gradient_checkpointing_func = functools.partial(
        checkpoint, use_reentrant=False
    )
    assert codes(module) == []


class Dropping(nn.Module):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, dropout_p=self.p)


class DroppingWeights(nn.Module):
    def forward(self, weights):
        return nn.functional.dropout(weights, 0.1)


class Asking(nn.Module):
    def forward(self, q, k, v):
        p = 0.1 if self.training else 0.0
        weights = F.dropout(q @ k.mT, 0.1, training=self.training)
        out = F.scaled_dot_product_attention(q, k, v, dropout_p=0.0)
        return weights @ v + out * p


class AskingInside(nn.Module):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(
            q, k, v, dropout_p=self.p if self.training else 0.0
        )


def test_dropout_that_does_not_ask_for_the_mode_is_seen():
    assert codes(Dropping()) == ["M34"]
    assert codes(DroppingWeights()) == ["M34"]
    assert codes(Asking()) == []
    assert codes(AskingInside()) == []


class Filling(nn.Module):
    def forward(self, scores, mask):
        return scores.masked_fill(mask == 0, -1e9)


class FillingInfinity(nn.Module):
    def forward(self, scores, mask):
        scores = torch.where(mask, scores, -10000.0)
        return scores.masked_fill(~mask, float("-inf"))


def test_a_fill_beyond_float16_is_seen():
    assert codes(Filling()) == ["M13"]
    assert codes(FillingInfinity()) == []
    assert "fills with -1000000000.0" in library_rules(Filling())[0].evidence


def test_our_own_module_is_given_no_caution():
    assert codes(MultiHeadAttention(8, 2)) == []


def test_a_class_without_a_source_is_passed_over():
    made = type("Made", (nn.Module,), {"forward": lambda self, x: x})
    assert codes(made()) == []
    with pytest.raises((OSError, TypeError)):
        inspect.getsource(made)


def test_nothing_is_called():
    class Loud(nn.Module):
        def forward(self, x):
            raise AssertionError("it was called")

    assert codes(Loud()) == []


def test_what_is_no_module_is_refused():
    with pytest.raises(TypeError, match="is wanted, and this is of type str"):
        library_rules("attention")


def test_each_rule_reads_a_call_only():
    assert len(module_rules.RULES) == 3
