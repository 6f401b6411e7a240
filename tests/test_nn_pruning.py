"""Heads turned off, what they are worth, which to keep, and a smaller module."""

import itertools

import pytest
import torch
from torch import nn
from torch_tools import close, normal, one_thread  # noqa: F401

from attnlib.nn import KVCache, MultiHeadAttention
from attnlib.nn.pruning import (
    head_ablation,
    head_gradients,
    heads_off,
    prune_heads,
    prune_to_budget,
    scaled_heads,
)
from attnlib.nn.rotary import Rotary
from attnlib.nn.stable import Softcap, hold_norms
from attnlib.shapes import ShapeError

X = normal(2, 5, 6)


def made(n_heads=4, seed=0, **more):
    generator = torch.Generator().manual_seed(seed)
    more = {"d_k": 3, "d_v": 2, "dtype": torch.float64, "init": "linear"} | more
    attention = MultiHeadAttention(6, n_heads, generator=generator, **more)
    with torch.no_grad():  # biases of 0 would hide where they go
        for number, parameter in enumerate(attention.parameters()):
            if parameter.ndim == 1:
                parameter.copy_(normal(len(parameter), seed=number))
    return attention


def off(attention, heads, x=X, **more):
    with heads_off([attention], {(0, head) for head in heads}):
        return attention(x, **more)


class Stack(nn.Module):
    """Two attentions, one after the other."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([made(3), made(2, seed=1)])

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x, causal=True)
        return x

    def losses(self):
        return (self(X) ** 2).mean((1, 2))

    def loss(self):
        return self.losses().mean()


# Off.


def test_a_head_that_is_off_writes_nothing():
    attention = made()
    stages = attention(X, return_stages=True)
    mixed = stages.mixed.clone()
    mixed[:, [1, 3]] = 0
    wanted = attention.W_o(mixed.transpose(1, 2).flatten(2))
    close(off(attention, [1, 3]), wanted)


def test_afterwards_it_is_as_it_was_also_after_an_error():
    attention, before = made(), made()(X)
    with pytest.raises(RuntimeError), heads_off([attention], {(0, 1)}):
        raise RuntimeError
    assert torch.equal(attention(X), before)
    assert not attention.W_o._forward_pre_hooks


def test_factors_may_differ_from_text_to_text():
    attention = made()
    factors = torch.tensor([[1.0, 0, 1, 1], [0, 1, 1, 0]], dtype=torch.float64)
    with scaled_heads(attention, factors):
        found = attention(X)
    close(found[0], off(attention, [1])[0])
    close(found[1], off(attention, [0, 3])[1])


def test_a_head_is_named_by_its_attention_too():
    model = Stack()
    with heads_off(model.layers, {(1, 0)}):
        found = model(X)
    middle = X + model.layers[0](X, causal=True)
    close(found, middle + off(model.layers[1], [0], middle, causal=True))


# What heads are worth.


def test_ablation_is_the_loss_without_minus_the_loss_with():
    model = Stack()
    found = head_ablation(model.layers, model.loss)
    assert [len(worth) for worth in found] == [3, 2]
    for number, worth in enumerate(found):
        for head in range(len(worth)):
            with heads_off(model.layers, {(number, head)}):
                wanted = model.loss().item() - Stack().loss().item()
            assert worth[head].item() == pytest.approx(wanted)


def test_a_head_of_zeros_is_worth_nothing_by_both_measures():
    model = Stack()
    with torch.no_grad():
        model.layers[0].W_o.weight[:, 2:4] = 0
    assert head_ablation(model.layers, model.loss)[0][1].item() == 0
    assert head_gradients(model.layers, model.losses)[0][1].item() == 0


def test_gradients_are_sizes_text_by_text():
    model, step = Stack(), 1e-6
    found = head_gradients(model.layers, model.losses)
    for number, layer in enumerate(model.layers):
        for head in range(layer.n_heads):
            ends = []
            for sign in (1, -1):
                factors = torch.ones(layer.n_heads, dtype=torch.float64)
                factors[head] += sign * step
                with scaled_heads(layer, factors), torch.no_grad():
                    ends.append(model.losses())
            slope = (ends[0] - ends[1]) / (2 * step)
            assert found[number][head].item() == pytest.approx(
                slope.abs().mean().item(), rel=1e-5
            )


def test_a_head_that_helps_one_text_and_harms_another_matters():
    model = Stack()
    signs = torch.tensor([1.0, -1.0], dtype=torch.float64)
    x = X[:1].expand(2, -1, -1)  # the same text twice: the slopes cancel
    found = head_gradients(model.layers, lambda: signs * model(x).mean((1, 2)))
    assert min(worth.min().item() for worth in found) > 1e-4


def test_measuring_leaves_no_gradients_and_works_without_them():
    model = Stack()
    with torch.no_grad():
        head_gradients(model.layers, model.losses)
    head_ablation(model.layers, model.loss)
    assert all(p.grad is None for p in model.parameters())


# To a budget.


def table_of(losses, n_heads):
    """An attention whose loss is looked up by which heads are on."""
    attention = MultiHeadAttention(
        n_heads, n_heads, d_v=1, bias=False, dtype=torch.float64
    )
    with torch.no_grad():
        attention.W_v.weight.fill_(1.0)
        attention.W_o.weight.copy_(torch.eye(n_heads))
    x = torch.ones(1, n_heads, dtype=torch.float64)
    return attention, lambda: losses[
        frozenset(i for i, on in enumerate(attention(x)[0].tolist()) if on)
    ]


def test_each_round_removes_the_head_that_is_missed_least_now():
    n = 4
    luck = torch.Generator().manual_seed(5)
    sets = [
        frozenset(s) for k in range(n + 1) for s in itertools.combinations(range(n), k)
    ]
    losses = {s: torch.rand(1, generator=luck).item() for s in sets}
    attention, loss = table_of(losses, n)
    left, order = set(range(n)), []
    while len(left) > 1:
        gone = min(sorted(left), key=lambda h: losses[frozenset(left - {h})])
        left.remove(gone)
        order.append((0, gone))
    found = prune_to_budget([attention], 1, loss)
    assert found.removed == tuple(order)
    assert found.kept == tuple((0, h) for h in sorted(left))
    assert found.losses[0] == losses[frozenset(range(n))]
    assert found.losses[-1] == losses[frozenset(left)]


def test_of_two_heads_that_do_the_same_one_is_kept():
    """0 and 1 are twins. One at a time each is worth nothing, and 2 a little."""

    def loss(on):
        return (0.0 if on & {0, 1} else 5.0) + (0.0 if 2 in on else 1.0)

    sets = itertools.chain.from_iterable(
        itertools.combinations(range(3), k) for k in range(4)
    )
    attention, current = table_of({frozenset(s): loss({*s}) for s in sets}, 3)
    assert head_ablation([attention], current)[0].tolist() == [0, 0, 1]
    assert prune_to_budget([attention], 1, current).kept == ((0, 1),)


def test_a_budget_of_all_removes_none_and_reports_say_where_it_is():
    model, seen = Stack(), []
    assert prune_to_budget(model.layers, 5, model.loss).removed == ()
    found = prune_to_budget(
        model.layers, 3, model.loss, report=lambda done, loss: seen.append((done, loss))
    )
    assert seen == [(1, found.losses[1]), (2, found.losses[2])]
    assert len(found.kept) == 3
    assert not set(found.kept) & set(found.removed)


# Cut out.

KINDS = {
    "plain": {},
    "no biases": {"bias": False},
    "grouped": {"n_kv_heads": 2},
    "multi-query": {"n_kv_heads": 1},
    "rotary": {"rotate": Rotary(100.0), "d_k": 4},
    "QK-norm and softcap": {"qk_norm": 3.0, "on_scores": Softcap(2.0)},
}


@pytest.mark.parametrize("keep", [[0], [1, 2], [3, 0], [0, 1, 3], [2, 3], [0, 1, 2, 3]])
@pytest.mark.parametrize("kind", KINDS)
def test_the_smaller_module_gives_what_the_large_one_gives_without_the_rest(kind, keep):
    attention = made(**KINDS[kind])
    small = prune_heads(attention, keep)
    gone = set(range(4)) - set(keep)
    close(small(X, causal=True), off(attention, gone, causal=True), atol=1e-12)
    assert small.n_heads == len(keep)
    assert small.W_o.in_features == 2 * len(keep)


@pytest.mark.parametrize(
    ("keep", "n_kv_heads"),
    [([0, 1], 1), ([0, 2], 2), ([0, 1, 2], 3), ([2, 3], 1), ([0, 1, 2, 3], 2)],
)
def test_heads_go_on_sharing_keys_where_they_can(keep, n_kv_heads):
    assert prune_heads(made(n_kv_heads=2), keep).n_kv_heads == n_kv_heads


def test_cross_attention_and_a_cache_work_after_the_cut():
    attention = made(d_memory=7, d_values=8)
    memory, values = normal(2, 3, 7), normal(2, 3, 8, seed=2)
    small = prune_heads(attention, [2, 0])
    more = {"memory": memory, "values": values}
    close(small(X, **more), off(attention, [1, 3], **more), atol=1e-12)
    small, cache = prune_heads(made(), [1, 3]), KVCache()
    parts = [small(X[:, i : i + 1], causal=True, cache=cache) for i in range(5)]
    close(torch.cat(parts, 1), small(X, causal=True), atol=1e-12)


def test_the_old_module_stays_and_the_new_one_is_its_own():
    attention = made(dropout=0.1).eval()
    before = attention(X)
    small = prune_heads(attention, [1])
    assert not small.training
    assert small.dropout == 0.1
    with torch.no_grad():
        for parameter in small.parameters():
            parameter.zero_()
    assert torch.equal(attention(X), before)


def test_the_dice_of_torch_are_left_alone():
    attention, before = made(), torch.random.get_rng_state()
    prune_heads(attention, [1])
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: prune_heads(made(), []), ShapeError, "at least one head"),
        (lambda: prune_heads(made(), [0, 0]), ValueError, "different heads"),
        (lambda: prune_heads(made(), [4]), ValueError, "from 0 to 3"),
        (lambda: prune_heads(made(), [-1]), ShapeError, "a head to keep"),
        (
            lambda: prune_heads(hold_norms(made()), [0]),
            TypeError,
            "W_q is a SigmaLinear",
        ),
        (
            lambda: prune_to_budget([made()], 5, lambda: 0.0),
            ShapeError,
            "budget=5 is larger than n_heads=4",
        ),
        (lambda: prune_to_budget([made()], -1, lambda: 0.0), ShapeError, "budget"),
        (
            lambda: head_gradients([made()], lambda: torch.tensor(1.0)),
            ShapeError,
            "one number a text",
        ),
        (
            lambda: heads_off([made()], {(0, 4)}).__enter__(),
            ValueError,
            r"no head \(0, 4\); the last one is \(0, 3\)",
        ),
        (
            lambda: scaled_heads(made(), torch.ones(3)).__enter__(),
            ShapeError,
            "must end in n_heads=4",
        ),
        (
            lambda: scaled_heads(made(), torch.ones(4) > 0).__enter__(),
            TypeError,
            "floating",
        ),
    ],
)
def test_what_does_not_fit_is_said(call, error, words):
    with pytest.raises(error, match=words):
        call()
