"""Right attentions of other kinds: the numbers that are read off, and what is not."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from attnlib.clinic import examine
from attnlib.clinic.black_box import module_reading, others
from attnlib.clinic.black_box.bench import FunctionBench
from attnlib.clinic.black_box.module_bench import ModuleBench
from attnlib.clinic.subject import make_subject

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))

from zoo import other_kinds as kinds
from zoo.draw import built


def bench_of(attention, **options):
    subject = make_subject(attention, **options)
    bench = FunctionBench if not isinstance(attention, nn.Module) else ModuleBench
    return bench(subject, 0)


def rng(seed=3):
    return np.random.default_rng(seed)


def module(make, d_model=24, n_heads=4):
    return built(rng(), "float64", lambda: make(d_model, n_heads))


def centred(numbers):
    return numbers - numbers.mean(axis=-1, keepdims=True)


def test_bias_by_distance_is_read():
    table = rng().normal(size=(3, 16))
    read = others.bias_of(others.largest(bench_of(kinds.by_distance(rng()))))
    assert not read.by_place
    assert read.ends
    at = np.arange(-191, 192)
    assert np.allclose(
        centred(read.numbers), centred(table[:, kinds.buckets(at)]), atol=1e-8
    )


def test_bias_by_place_is_read():
    table = rng().normal(size=(200, 200))[:192, :192]
    read = others.bias_of(others.largest(bench_of(kinds.by_place(rng()))))
    assert read.by_place
    assert np.allclose(centred(read.numbers[0]), centred(table), atol=1e-8)


def test_bias_of_a_module_is_read():
    t5 = module(kinds.T5)
    read = others.bias_of(others.largest(bench_of(t5, n_heads=4)))
    largest = read.numbers.shape[-1] // 2  # 191, unless the machine is slow
    at = torch.from_numpy(kinds.buckets(np.arange(-largest, largest + 1)))
    right = t5.relative_attention_bias(at).detach().numpy().T
    assert np.allclose(centred(read.numbers), centred(right), atol=1e-8)


def test_sinks_are_read():
    sinks = module(kinds.Sinks)
    report = examine(sinks, n_heads=4)
    assert report.healthy
    shown = ", ".join(f"{x:.3g}" for x in sinks.sinks.tolist())
    assert report.features == (
        f"a sink of each head that joins the softmax (logit {shown})",
    )


def test_learned_key_and_value_are_read():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        mha = nn.MultiheadAttention(24, 4, batch_first=True, add_bias_kv=True).double()
    extra = module_reading.extra(bench_of(mha, n_heads=4))
    keys = mha.bias_k.detach().numpy().reshape(4, 6) / np.sqrt(6)
    assert np.allclose(extra.keys, keys, atol=1e-6)
    assert np.allclose(
        extra.values, mha.bias_v.detach().numpy().reshape(4, 6), atol=1e-9
    )


def test_bias_of_a_sigmoid_is_read():
    report = examine(kinds.sigmoid(bias=-1.75))
    assert report.healthy
    assert "bias of -1.75" in report.features[0]


PLACES = np.arange(12)
APART = PLACES - PLACES[:, None]


def weights_of(*tables):
    """One item, a head for each table of scores."""
    return kinds.softmax(np.stack([np.broadcast_to(t, (12, 12)) for t in tables]))[None]


@pytest.mark.parametrize(
    "tables",
    [
        [-0.3 * np.abs(APART), -1.2 * np.abs(APART)],  # ALiBi with other slopes
        [0.5 * APART, 0.1 * APART],  # ALiBi with a sign
        [np.where(APART > 0, -10.0, 0.0)],  # a weak fill
        [1.0 * (APART <= 0)],  # a mask added
        [np.where(APART > 0, -40.0, np.sin(APART))],  # numbers as large as masks
    ],
)
def test_no_learned_bias(tables):
    assert others.bias_of(weights_of(*tables)) is None
    learned = others.bias_of(weights_of(np.sin(APART)))
    assert np.allclose(
        centred(learned.numbers[0]), centred(np.sin(np.arange(-11, 12))), atol=1e-9
    )


def test_bias_that_differs_between_items_is_no_bias():
    one, other = weights_of(np.sin(APART)), weights_of(np.cos(APART))
    assert others.bias_of(np.concatenate([one, other])) is None


def scored(added):
    """Attention with something added to its scores: added(scores, q, k)."""

    def attention(q, k, v, mask=None):
        s = kinds.half_scores(q, k)
        return kinds.softmax(kinds.hide(s + added(s, q, k), mask)) @ v

    return attention


def places(s):
    return np.arange(s.shape[-1]) - np.arange(s.shape[-2])[:, None]


def max_and_one(q, k, v):
    s = kinds.half_scores(q, k)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / (1 + e.sum(axis=-1, keepdims=True)) @ v


def not_divided(q, k, v):
    q, k = kinds.elu_plus_one(q), kinds.elu_plus_one(k)
    return q @ (np.swapaxes(k, -1, -2) @ v)


WRONG = {
    "aligned to the first key": scored(lambda s, q, k: np.sin(places(s))),
    "by relative length": scored(lambda s, q, k: np.sin(places(s) / s.shape[-1])),
    "by item": scored(
        lambda s, q, k: np.sin(places(s)) * np.arange(len(s)).reshape(-1, 1, 1, 1)
    ),
    "of the queries": scored(lambda s, q, k: np.sin(places(s)) * q[..., :1]),
    "1 whatever the largest score": max_and_one,
    "linear, not divided": not_divided,
    "weak fill": kinds.by_distance(rng(), fill=-10.0),
    "columns": kinds.by_distance(rng(), finish=lambda s: kinds.softmax(s, -2)),
}


@pytest.mark.parametrize("name", WRONG)
def test_never_healthy(name):
    report = examine(WRONG[name])
    assert not report.healthy
    assert report.unknown.sentence.startswith("It is another kind of attention, or ")


def test_what_hides_no_future_is_not_right_where_it_must():
    report = examine(kinds.linear_by_table(), causal=True)
    assert not report.healthy


class Gate(kinds.Tokens):
    """Each head's output times a sigmoid of the token."""

    def more(self, n_heads):
        self.gate = nn.Linear(n_heads * self.d_k, n_heads, bias=False)

    def forward(self, x, mask=None):
        values, gate = self.v_proj, torch.sigmoid(self.gate(x)).mT[..., None]
        q, k, v = (self.heads(p(x)) for p in (self.q_proj, self.k_proj, values))
        mixed = self.weigh(q @ k.mT / self.d_k**0.5, mask) @ v * gate
        return self.o_proj(mixed.transpose(1, 2).flatten(2))


class Talking(kinds.Tokens):
    """Scores of all heads mixed before the softmax."""

    def more(self, n_heads):
        self.mix = nn.Parameter(torch.randn(n_heads, n_heads))

    def added(self, scores):
        return torch.einsum("gh,bhqk->bgqk", self.mix, scores)


def differential(q, k, v):
    one, other = (kinds.softmax(kinds.half_scores(a, k)) for a in (q, q[..., ::-1]))
    return (one - 0.4 * other) @ v


@pytest.mark.parametrize(
    ("attention", "said"),
    [
        (
            lambda: module(Gate),
            "each head's output is multiplied by something that depends on the query",
        ),
        (
            lambda: module(Talking),
            "what one head asks changes what another gives, so heads are mixed",
        ),
        (lambda: differential, "some weights are negative"),
    ],
)
def test_another_kind_or_wrong(attention, said):
    report = examine(attention())
    assert not report.healthy
    assert not report.mistakes
    either = f"It is another kind of attention, or wrong: {said}"
    assert report.unknown.sentence.startswith(either)
