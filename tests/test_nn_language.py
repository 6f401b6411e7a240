"""The language model: against NumPy in float64, with and without a cache, causal."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from attnlib.nn import KVCache, MultiHeadAttention
from attnlib.nn.language import (
    LanguageModel,
    LanguageSizes,
    LanguageStages,
    RMSNorm,
    SwiGLU,
)
from attnlib.nn.rotary import Rotary
from attnlib.positions import rope, rope_frequencies, yarn_frequencies
from attnlib.shapes import ShapeError

SIZES = LanguageSizes(
    n_tokens=23,
    n_layers=3,
    d_model=10,
    n_heads=4,
    n_kv_heads=2,
    d_k=6,
    d_mlp=14,
    n_context=19,
)


def model_of(seed: int = 0) -> LanguageModel:
    """A model with weights large enough that every step shows in the result."""
    generator = torch.Generator().manual_seed(seed)
    model = LanguageModel(SIZES, generator).double()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            loud = 1.0 if "embedding" in name else 0.3
            weight.normal_(float(weight.ndim == 1), loud, generator=generator)
    return model.eval()


def drawn(*shape: int, seed: int = 1) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(SIZES.n_tokens, shape, generator=generator)


def in_numpy(model: LanguageModel, ids: np.ndarray) -> dict[str, np.ndarray]:
    """The formulas once more, with loops over heads and queries, for ids (n)."""
    weights = {name: w.numpy() for name, w in model.state_dict().items()}
    n, s, kept = len(ids), model.sizes, {}

    def norm(x, gain):
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * gain

    def turned(x):  # (n, d_k)
        out = x.copy()
        for place in range(n):
            for i in range(s.d_k // 2):
                angle = place * s.base ** (-2 * i / s.d_k)
                turn = np.array(
                    [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
                )
                out[place, 2 * i : 2 * i + 2] = turn @ x[place, 2 * i : 2 * i + 2]
        return out

    x = weights["embedding.weight"][ids]
    for number in range(s.n_layers):
        own = {
            name.removeprefix(f"layers.{number}."): w
            for name, w in weights.items()
            if name.startswith(f"layers.{number}.")
        }
        normed = norm(x, own["attention_norm.gain"])
        mixed = np.zeros((n, s.n_heads * s.d_k))
        maps = np.zeros((s.n_heads, n, n))
        for h in range(s.n_heads):
            g = h // (s.n_heads // s.n_kv_heads)
            mine = slice(h * s.d_k, (h + 1) * s.d_k)
            shared = slice(g * s.d_k, (g + 1) * s.d_k)
            q = turned(normed @ own["attention.W_q.weight"][mine].T)
            k = turned(normed @ own["attention.W_k.weight"][shared].T)
            v = normed @ own["attention.W_v.weight"][shared].T
            for i in range(n):
                e = np.exp(q[i] @ k[: i + 1].T / np.sqrt(s.d_k))
                maps[h, i, : i + 1] = e / e.sum()
                mixed[i, mine] = maps[h, i, : i + 1] @ v[: i + 1]
        x = x + mixed @ own["attention.W_o.weight"].T
        read = norm(x, own["mlp_norm.gain"])
        gate = read @ own["mlp.W_gate.weight"].T
        opened = gate / (1 + np.exp(-gate)) * (read @ own["mlp.W_up.weight"].T)
        x = x + opened @ own["mlp.W_down.weight"].T
        kept[f"weights {number}"], kept[f"result {number}"] = maps, x
    kept["logits"] = norm(x, weights["norm.gain"]) @ weights["embedding.weight"].T
    return kept


def test_every_layer_equals_the_formulas_in_numpy():
    model, ids = model_of(), drawn(9)
    expected = in_numpy(model, ids.numpy())
    with torch.no_grad():
        stages = model(ids, return_stages=True)
    np.testing.assert_allclose(stages.logits, expected["logits"], atol=1e-10)
    for number, layer in enumerate(stages.layers):
        weights, result = expected[f"weights {number}"], expected[f"result {number}"]
        np.testing.assert_allclose(layer.weights, weights, atol=1e-12)
        np.testing.assert_allclose(layer.result, result, atol=1e-11)


def test_the_stages_have_the_shapes_they_say():
    model = model_of()
    stages = model(drawn(2, 5), return_stages=True)
    assert isinstance(stages, LanguageStages)
    wanted = {
        "x normed middle mlp_normed mlp out result": (2, 5, 10),
        "q q_plain mixed": (2, 4, 5, 6),
        "k k_plain v": (2, 2, 5, 6),
        "raw_scores scores weights": (2, 4, 5, 5),
    }
    shapes = {name: shape for names, shape in wanted.items() for name in names.split()}
    for layer in stages.layers:
        assert {name: tuple(value.shape) for name, value in vars(layer).items()} == (
            shapes
        )
    assert stages.logits.shape == (2, 5, 23)


@torch.no_grad()
def test_the_stages_follow_from_each_other():
    model, ids = model_of(), drawn(2, 7)
    stages = model(ids, return_stages=True)
    x = stages.embedded
    for layer, kept in zip(model.layers, stages.layers, strict=True):
        assert torch.equal(kept.x, x)
        assert torch.equal(kept.normed, layer.attention_norm(x))
        places = torch.arange(7)
        for plain, turned in ((kept.q_plain, kept.q), (kept.k_plain, kept.k)):
            np.testing.assert_allclose(turned, rope(plain, places), atol=1e-12)
            assert torch.equal(plain[..., 0, :], turned[..., 0, :])
            assert not torch.allclose(plain, turned)
        q_4 = kept.normed @ layer.attention.W_q.weight.T[:, 3 * 6 :]
        torch.testing.assert_close(kept.q_plain[:, 3], q_4)
        assert torch.equal(kept.middle, x + kept.out)
        assert torch.equal(kept.mlp_normed, layer.mlp_norm(kept.middle))
        assert torch.equal(kept.mlp, layer.mlp(kept.mlp_normed))
        assert torch.equal(kept.result, kept.middle + kept.mlp)
        x = kept.result
    assert torch.equal(stages.normed, model.norm(x))
    assert torch.equal(stages.logits, model(ids))


@settings(derandomize=True, deadline=None, max_examples=15)
@given(n=st.integers(1, 12), change=st.integers(0, 11), seed=st.integers(0, 99))
def test_no_token_sees_what_comes_after_it(n, change, seed):
    model, ids = model_of(), drawn(n, seed=seed)
    change = change % n
    other = ids.clone()
    other[change] = (ids[change] + 1 + seed) % SIZES.n_tokens
    with torch.no_grad():
        before, after = model(ids), model(other)
    assert torch.equal(before[:change], after[:change])
    if other[change] != ids[change]:
        assert not torch.allclose(before[change], after[change])


@settings(derandomize=True, deadline=None, max_examples=15)
@given(cuts=st.lists(st.integers(1, 5), min_size=1, max_size=4), batch=st.booleans())
def test_pieces_through_the_caches_give_what_the_whole_gives(cuts, batch):
    model = model_of()
    ids = drawn(*(2, sum(cuts)) if batch else (sum(cuts),))
    caches = [KVCache() for _ in model.layers]
    with torch.no_grad():
        pieces = [model(part, caches=caches) for part in ids.split(cuts, dim=-1)]
        torch.testing.assert_close(
            torch.cat(pieces, -2), model(ids), atol=1e-11, rtol=0
        )
    assert {cache.length for cache in caches} == {sum(cuts)}


@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize("shape", [(3,), (2, 4)])
def test_generating_with_a_cache_gives_the_same_tokens(shape, temperature):
    model, ids = model_of(), drawn(*shape)
    texts = [
        model.generate(
            ids,
            12,
            temperature=temperature,
            generator=torch.Generator().manual_seed(7),
            use_cache=use_cache,
        )
        for use_cache in (True, False)
    ]
    assert torch.equal(*texts)
    assert texts[0].shape == (*shape[:-1], shape[-1] + 12)
    assert torch.equal(texts[0][..., : shape[-1]], ids)


def test_without_a_temperature_the_likeliest_token_comes_next():
    model, ids = model_of(), drawn(4)
    text = model.generate(ids, 6)
    with torch.no_grad():
        logits = model(text)
    assert torch.equal(logits[3:-1].argmax(-1), text[4:])


def test_a_temperature_draws_by_the_chances():
    model, ids = model_of(), drawn(2, 4)[:1].expand(4000, 4)
    heat = 3.0
    nxt = model.generate(
        ids, 1, temperature=heat, generator=torch.Generator().manual_seed(0)
    )[:, -1]
    found = torch.bincount(nxt, minlength=SIZES.n_tokens) / len(nxt)
    with torch.no_grad():
        chances = torch.softmax(model(ids[0])[-1] / heat, -1)
    assert (found - chances).abs().max() < 0.03
    assert chances.max() - chances.min() > 0.1


def test_gradients_reach_every_weight_and_the_table_twice():
    model = model_of()
    ids = drawn(1, 6)
    model(ids).logsumexp(-1).sum().backward()
    for name, weight in model.named_parameters():
        assert weight.grad is not None, name
        assert weight.grad.abs().sum() > 0, name
    unseen = sorted(set(range(SIZES.n_tokens)) - set(ids.flatten().tolist()))
    assert model.embedding.weight.grad[unseen].abs().sum() > 0  # as a reader of x


def test_the_first_weights_come_from_the_generator():
    a, b = (LanguageModel(SIZES, torch.Generator().manual_seed(5)) for _ in range(2))
    other = LanguageModel(SIZES, torch.Generator().manual_seed(6))
    for name, weight in a.state_dict().items():
        assert torch.equal(weight, b.state_dict()[name])
        assert name.endswith("gain") or not torch.equal(
            weight, other.state_dict()[name]
        )
    wide = LanguageModel(
        LanguageSizes(400, 2, 60, 4, 2, 16, 90, 9), torch.Generator().manual_seed(0)
    )
    spread = {name: float(w.std()) for name, w in wide.state_dict().items()}
    assert spread["embedding.weight"] == pytest.approx(0.5, rel=0.05)
    xavier = (2 / (60 + 64)) ** 0.5
    assert spread["layers.1.attention.W_o.weight"] == pytest.approx(xavier, rel=0.05)
    assert spread["layers.1.mlp.W_up.weight"] == pytest.approx(0.05, rel=0.05)
    assert spread["layers.0.mlp.W_down.weight"] == pytest.approx(0.01, rel=0.05)


@torch.no_grad()
def test_the_first_guess_is_nearly_even():
    sizes = LanguageSizes(300, 2, 64, 4, 2, 16, 90, 9)
    model = LanguageModel(sizes, torch.Generator().manual_seed(1))
    logits = model(torch.arange(50))
    loss = nn.functional.cross_entropy(logits, torch.arange(50) + 200)
    assert loss == pytest.approx(np.log(300), abs=0.5)


def test_rms_norm_is_the_one_of_torch():
    ours, theirs = RMSNorm(7).double(), nn.RMSNorm(7, eps=1e-5).double()
    gain = torch.linspace(-1, 2, 7)
    with torch.no_grad():
        ours.gain.copy_(gain)
        theirs.weight.copy_(gain)
    x = torch.linspace(-3, 4, 5 * 7).double().reshape(5, 7)
    torch.testing.assert_close(ours(x), theirs(x))
    assert torch.equal(ours(torch.zeros(7)), torch.zeros(7))


def test_swiglu_is_its_formula():
    mlp = SwiGLU(5, 8).double()
    x = torch.linspace(-2, 2, 15).double().reshape(3, 5)
    gate = x @ mlp.W_gate.weight.T
    expected = (gate * gate.sigmoid() * (x @ mlp.W_up.weight.T)) @ mlp.W_down.weight.T
    torch.testing.assert_close(mlp(x), expected)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_rotary_is_rope_for_tensors(dtype):
    x = torch.linspace(-2, 3, 2 * 4 * 7 * 6, dtype=dtype).reshape(2, 4, 7, 6)
    for places in (torch.arange(7) + 500, torch.arange(14).reshape(2, 1, 7)):
        ours = Rotary(base=500.0)(x, places)
        assert ours.dtype == dtype
        close = 1e-12 if dtype == torch.float64 else 1e-6
        np.testing.assert_allclose(ours, rope(x, places, base=500.0), atol=close)


@pytest.mark.parametrize(
    "slowed", [rope_frequencies(8) / 4, yarn_frequencies(8, 4, trained_length=9)]
)
def test_rotary_takes_frequencies_that_were_slowed(slowed):
    x = torch.linspace(-2, 3, 2 * 5 * 8, dtype=torch.float64).reshape(2, 5, 8)
    places = [0, 3, 4, 90, 200]
    ours = Rotary(frequencies=slowed, factor=3)(x, torch.tensor(places))
    wanted = 3 * rope(x, places, frequencies=slowed)
    np.testing.assert_allclose(ours, wanted, atol=1e-12)


def test_rotary_serves_any_multi_head_attention():
    attention = MultiHeadAttention(8, 2, rotate=Rotary()).double()
    x = torch.linspace(-1, 1, 24).double().reshape(3, 8)
    moved = attention(x, positions=torch.arange(3) + 40)
    torch.testing.assert_close(attention(x), moved)  # only distances matter
    assert not torch.allclose(attention(x), attention(x, positions=torch.arange(3) * 2))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda m: m(torch.tensor([3, 23])),
            ValueError,
            "ids must be from 0 to n_tokens - 1 = 22, but there is 23.",
        ),
        (
            lambda m: m(torch.tensor([-1, 22])),
            ValueError,
            "ids must be from 0 to n_tokens - 1 = 22, but there is -1.",
        ),
        (
            lambda m: m(drawn(3), caches=[KVCache()]),
            ShapeError,
            "a model of n_layers=3 needs as many caches, but 1 were given.",
        ),
        (
            lambda m: m.generate(drawn(0), 3),
            ShapeError,
            "generate needs at least one token to start from.",
        ),
        (
            lambda m: m.generate(drawn(2, 17), 3),
            ShapeError,
            "17 tokens and 3 new ones are more than the n_context=19 that the model "
            "was trained on.",
        ),
        (
            lambda m: m.generate(drawn(3), 3, temperature=-1.0),
            ValueError,
            "temperature must not be negative, but it is -1.0.",
        ),
    ],
)
def test_what_does_not_fit_is_said(call, error, words):
    with pytest.raises(error, match=re.escape(words)):
        call(model_of())


def test_an_empty_text_has_no_logits():
    assert model_of()(drawn(2, 0)).shape == (2, 0, 23)
