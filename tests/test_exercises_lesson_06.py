"""Lesson 06: answers as people write them, right and wrong, and what they are told."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy
from torch_tools import one_thread

from attnlib import head_diagnostics, heads, masks, positions
from attnlib.attention import scaled_dot_product, softmax
from attnlib.exercises import get, judge, lesson_06, names
from attnlib.nn import course_model, text

__all__ = ["one_thread"]

FUNCTIONS = ("layer_attention", "offset_mass", "induction_score")


def test_the_lesson_has_these_exercises_and_their_minutes_fit_into_its_text():
    assert set(names(6)) == {*FUNCTIONS, "previous_token_head"}
    assert sum(get(name).minutes for name in names(6)) == 31


# --- right answers written another way --------------------------------------------
def layer_by_loops(normed, W_q, W_k, W_v, W_o, n_heads, n_kv_heads):
    """Head by head; each adds what its own rows of W_o make of it."""
    if normed.ndim > 2:
        rest = (W_q, W_k, W_v, W_o, n_heads, n_kv_heads)
        return np.stack([layer_by_loops(one, *rest) for one in normed])
    n, d_k, d_v = len(normed), W_q.shape[1] // n_heads, W_v.shape[1] // n_kv_heads
    out = np.zeros((n, W_o.shape[1]))
    for h in range(n_heads):
        g = h // (n_heads // n_kv_heads)
        q = positions.rope(normed @ W_q[:, h * d_k : (h + 1) * d_k], np.arange(n))
        k = positions.rope(normed @ W_k[:, g * d_k : (g + 1) * d_k], np.arange(n))
        v = normed @ W_v[:, g * d_v : (g + 1) * d_v]
        scores = np.where(np.tri(n), q @ k.T / d_k**0.5, -np.inf)
        out += softmax(scores) @ v @ W_o[h * d_v : (h + 1) * d_v]
    return out


def layer(places=np.arange, **changed):
    """The whole layer with one step replaced; right if none is."""

    def layer_attention(normed, W_q, W_k, W_v, W_o, n_heads, n_kv_heads):
        n = normed.shape[-2]
        x = changed.get("x", lambda x: x)(normed)
        q = heads.split_heads(x @ W_q, n_heads)
        k = heads.split_heads(x @ W_k, n_kv_heads)
        v = heads.split_heads(x @ W_v, n_kv_heads)
        at = places(n)
        turn = changed.get("turn", lambda q, k, v, at: (_rope(q, at), _rope(k, at), v))
        q, k, v = turn(q, k, v, at)
        share = changed.get("share", heads.repeat_heads)
        k, v = share(k, n_heads), share(v, n_heads)
        mask = changed.get("mask", masks.causal)(n)
        scale = changed.get("scale")
        scale = None if scale is None else scale(normed, q, n_heads)
        mixed = scaled_dot_product(q, k, v, mask, scale=scale).out
        merged = changed.get("merge", heads.merge_heads)(mixed)
        return changed.get("end", lambda merged, W_o, x: merged @ W_o)(
            merged, W_o, normed
        )

    return layer_attention


def _rope(x, at, layout="interleaved"):
    return positions.rope(x, at, layout=layout)


def half_layout_reordered(q, k, v, at):
    """Both reordered for "half", and turned so: the scores are the same."""
    order = positions.half_order(q.shape[-1])
    return _rope(q[..., order], at, "half"), _rope(k[..., order], at, "half"), v


def layer_by_multi_head(normed, W_q, W_k, W_v, W_o, n_heads, n_kv_heads):
    """Grouped queries, (n_kv_heads, group, n, d_k), instead of repeated keys."""
    n = normed.shape[-2]
    q, k, v = (
        heads.split_heads(normed @ W, h)
        for W, h in ((W_q, n_heads), (W_k, n_kv_heads), (W_v, n_kv_heads))
    )
    q, k = _rope(q, np.arange(n)), _rope(k, np.arange(n))
    q = q.reshape(*q.shape[:-3], n_kv_heads, -1, *q.shape[-2:])
    mixed = scaled_dot_product(q, k[..., None, :, :], v[..., None, :, :], np.tri(n) > 0)
    out = mixed.out
    return heads.merge_heads(out.reshape(*out.shape[:-4], n_heads, n, -1)) @ W_o


def mass_by_diagonal(weights, offset):
    return np.diagonal(weights, -offset, -2, -1).mean(-1)


def mass_by_loop(weights, offset):
    n = weights.shape[-1]
    return sum(weights[..., i, i - offset] for i in range(offset, n)) / (n - offset)


def score_by_diagonal(weights, period):
    return np.diagonal(weights[..., period:, 1:], 0, -2, -1).mean(-1)


def score_by_loop(weights, period):
    n = weights.shape[-1]
    return np.mean(
        [weights[..., i, i - period + 1] for i in range(period, n)], axis=0
    ).astype(np.float32)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("layer_attention", layer()),
        ("layer_attention", layer_by_loops),
        ("layer_attention", layer_by_multi_head),
        ("layer_attention", layer(lambda n: np.arange(1, n + 1))),
        ("layer_attention", layer(lambda n: np.arange(n) + 100)),
        ("layer_attention", layer(turn=half_layout_reordered)),
        (
            "layer_attention",
            layer(mask=lambda n: np.tri(n, dtype=bool)[None]),
        ),
        ("layer_attention", layer(x=lambda x: x.astype(np.float32))),
        ("offset_mass", head_diagnostics.offset_mass),
        ("offset_mass", mass_by_diagonal),
        ("offset_mass", mass_by_loop),
        ("induction_score", head_diagnostics.induction_score),
        ("induction_score", score_by_diagonal),
        ("induction_score", score_by_loop),
    ],
)
def test_another_right_way_passes(name, answer, seed):
    verdict = judge(name, answer, seed)
    assert verdict.passed, verdict.text


# --- wrong answers, as people write them ------------------------------------------
def turned_together(normed, W_q, W_k, W_v, W_o, n_heads, n_kv_heads):
    at = np.arange(normed.shape[-2])
    q = heads.split_heads(_rope(normed @ W_q, at), n_heads)
    k = heads.split_heads(_rope(normed @ W_k, at), n_kv_heads)
    v = heads.split_heads(normed @ W_v, n_kv_heads)
    k, v = heads.repeat_heads(k, n_heads), heads.repeat_heads(v, n_heads)
    mixed = scaled_dot_product(q, k, v, masks.causal(len(at))).out
    return heads.merge_heads(mixed) @ W_o


def tiled(a, n_heads):
    return np.concatenate([a] * (n_heads // a.shape[-3]), axis=-3)


def mass(rows=None, keys=None, end=None):
    def offset_mass(weights, offset):
        n = weights.shape[-1]
        i = np.arange(offset, n) if rows is None else rows(n, offset)
        j = i - offset if keys is None else keys(i, offset)
        found = weights[..., i, j]
        return found.mean(-1) if end is None else end(found, n)

    return offset_mass


def score(first=lambda p: p, back=lambda p: p - 1, last=None, end=None):
    def induction_score(weights, period):
        n = weights.shape[-1]
        i = np.arange(first(period), n if last is None else last(n, period))
        found = weights[..., i, i - back(period)]
        return found.mean(-1) if end is None else end(found, n)

    return induction_score


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("name", "answer", "key"),
    [
        (
            "layer_attention",
            layer(turn=lambda q, k, v, at: (q, k, v)),
            "rope_forgotten",
        ),
        (
            "layer_attention",
            layer(
                turn=lambda q, k, v, at: (_rope(q, at, "half"), _rope(k, at, "half"), v)
            ),
            "rope_half_layout",
        ),
        (
            "layer_attention",
            layer(turn=lambda q, k, v, at: (_rope(q, at), k, v)),
            "rope_on_q_only",
        ),
        (
            "layer_attention",
            layer(turn=lambda q, k, v, at: (q, _rope(k, at), v)),
            "rope_on_k_only",
        ),
        ("layer_attention", turned_together, "rope_before_split"),
        ("layer_attention", layer(lambda n: n - np.arange(n)), "rope_places_reversed"),
        ("layer_attention", layer(lambda n: 2 * np.arange(n)), "rope_places_doubled"),
        ("layer_attention", layer(share=tiled), "kv_heads_tiled"),
        (
            "layer_attention",
            layer(share=lambda a, n: np.repeat(a[..., :1, :, :], n, axis=-3)),
            "kv_head_first_only",
        ),
        ("layer_attention", layer(mask=lambda n: None), "causal_missing"),
        (
            "layer_attention",
            layer(mask=lambda n: np.triu(np.ones((n, n), bool))),
            "causal_mirrored",
        ),
        (
            "layer_attention",
            layer(mask=lambda n: np.tri(n, k=-1, dtype=bool)),
            "diagonal_missing",
        ),
        (
            "layer_attention",
            layer(scale=lambda x, q, h: x.shape[-1] ** -0.5),
            "scale_d_model",
        ),
        (
            "layer_attention",
            layer(scale=lambda x, q, h: (x.shape[-1] / h) ** -0.5),
            "scale_d_model_share",
        ),
        ("layer_attention", layer(scale=lambda x, q, h: 1.0), "scale_missing"),
        (
            "layer_attention",
            layer(scale=lambda x, q, h: 1 / q.shape[-1]),
            "scale_d_k",
        ),
        (
            "layer_attention",
            layer(merge=lambda a: a.reshape(*a.shape[:-3], a.shape[-2], -1)),
            "merge_no_transpose",
        ),
        ("layer_attention", layer(end=lambda m, W, x: m), "W_o_missing"),
        ("layer_attention", layer(end=lambda m, W, x: x + m @ W), "residual_added"),
        (
            "layer_attention",
            layer(x=lambda x: x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5)),
            "norm_again",
        ),
        ("offset_mass", mass(rows=lambda n, o: np.arange(n)), "rows_wrap"),
        ("offset_mass", mass(end=lambda f, n: f.sum(-1)), "sum_for_mean"),
        ("offset_mass", mass(end=lambda f, n: f.sum(-1) / n), "all_rows_counted"),
        ("offset_mass", mass(end=lambda f, n: f.max(-1)), "largest_for_mean"),
        ("offset_mass", mass(end=lambda f, n: f.mean()), "mean_over_heads"),
        ("offset_mass", mass(end=lambda f, n: f), "not_yet_averaged"),
        ("offset_mass", mass(keys=lambda i, o: i - 1), "key_always_one_back"),
        ("offset_mass", lambda w, o: mass()(w, 1), "offset_always_one"),
        (
            "offset_mass",
            lambda w, o: np.diagonal(w, o, -2, -1).mean(-1),
            "looks_forward",
        ),
        ("offset_mass", mass(keys=lambda i, o: i - i + o), "key_from_the_front"),
        ("induction_score", score(back=lambda p: p), "same_token"),
        (
            "induction_score",
            score(first=lambda p: p + 1, back=lambda p: p + 1),
            "token_before",
        ),
        ("induction_score", score(back=lambda p: p - 2), "two_after"),
        ("induction_score", score(first=lambda p: p - 1), "row_too_early"),
        (
            "induction_score",
            lambda w, p: head_diagnostics.offset_mass(w, p - 1),
            "row_too_early",
        ),
        ("induction_score", score(first=lambda p: 0), "rows_wrap"),
        ("induction_score", score(last=lambda n, p: 2 * p), "first_copy_only"),
        ("induction_score", score(end=lambda f, n: f.sum(-1)), "sum_for_mean"),
        ("induction_score", score(end=lambda f, n: f.sum(-1) / n), "all_rows_counted"),
        ("induction_score", score(end=lambda f, n: f.mean()), "mean_over_heads"),
        (
            "induction_score",
            lambda w, p: score()(np.swapaxes(w, -1, -2), p),
            "looks_forward",
        ),
    ],
)
def test_a_wrong_answer_is_named(name, answer, key, seed):
    verdict = judge(name, answer, seed)
    assert verdict.status == "mistake", verdict.text
    assert [m.key for m in verdict.mistakes] == [key], verdict.text


@pytest.mark.parametrize(
    ("name", "answer", "found"),
    [
        (
            "layer_attention",
            layer(turn=lambda q, k, v, at: (q, k, v), share=tiled),
            {"rope_forgotten", "kv_heads_tiled"},
        ),
        (
            "layer_attention",
            layer(mask=lambda n: None, scale=lambda x, q, h: x.shape[-1] ** -0.5),
            {"causal_missing", "scale_d_model"},
        ),
        (
            "induction_score",
            score(back=lambda p: p, end=lambda f, n: f.sum(-1)),
            {"same_token", "sum_for_mean"},
        ),
    ],
)
def test_two_mistakes_at_once_are_both_named(name, answer, found):
    assert {m.key for m in judge(name, answer).mistakes} == found


@pytest.mark.parametrize(
    ("name", "answer", "number"),
    [
        (
            "layer_attention",
            layer(turn=lambda q, k, v, at: (q, k, v)),
            "the token at place 0 is right, and the one at place",
        ),
        (
            "layer_attention",
            layer(share=lambda a, n: np.repeat(a[..., :1, :, :], n, axis=-3)),
            "of head 0, 1 are right, those of head 2, 3 are not",
        ),
        (
            "layer_attention",
            layer(scale=lambda x, q, h: 1.0),
            "your scores are 2.449 times the right ones, and √d_k is 2.449",
        ),
        ("offset_mass", mass(end=lambda f, n: f.sum(-1)), "and no weight is above 1"),
    ],
)
def test_a_number_gives_the_mistake_away(name, answer, number):
    assert number in judge(name, answer).text


def test_an_unknown_mistake_is_not_given_a_name():
    verdict = judge("layer_attention", lambda *args: 1.5 * layer()(*args))
    assert verdict.status in ("differs", "law")
    assert not verdict.mistakes


# --- the value ----------------------------------------------------------------------
@pytest.fixture(scope="module")
def weights():
    """The maps that the lesson calls so: 127 tokens of The Tempest."""
    model = course_model.load(torch.float64).requires_grad_(False)
    ids = course_model.tokenizer().encode(text.plays()[1][4000:])[:127]
    layers = model(torch.tensor(ids), return_stages=True).layers
    return np.stack([s.weights.numpy() for s in layers])


def test_the_head_that_looks_one_place_back(weights):
    mass = head_diagnostics.offset_mass(weights, 1)
    right = np.unravel_index(mass.argmax(), mass.shape)
    assert judge("previous_token_head", right).passed
    assert float(mass[right]) == pytest.approx(0.642, abs=1e-3)
    assert np.sort(mass.ravel())[-2] == pytest.approx(0.617, abs=1e-3)


@pytest.mark.parametrize(
    "answer",
    [
        (0, 5),
        [0, 5],
        np.array([[0, 5]]),
        np.where(np.arange(18).reshape(3, 6) == 5),
        torch.tensor([0, 5]),
        "0.5",
        0.5,
        np.float64(0.5),
        "(0, 5)",
        "[0,5]",
        ("0", "5"),
        "layer 0, head 5",
        "Head 5, layer 0",
        {"layer": 0, "head": 5},
        {"head": 5, "layer": 0},
    ],
)
def test_a_head_may_be_written_as_one_likes(answer):
    assert judge("previous_token_head", answer).passed


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((0, 2), "One head has more"),
        ((0, 4), "at the token itself"),
        ((0, 0), "at the token itself"),
        ((5, 0), "the wrong way round"),
        ((1, 6), "Counted from 1"),
        ((1, 5), "an induction head"),
        ((0, 3), "on <start>"),
        (5, "np.unravel_index"),
        ((2, 4), "head 2.4 has 0.11 of its weight"),
        ((3, 3), "That is not it"),
        (0.6415, "That is how much weight a head puts there"),
        ([(0, 5), (0, 2)], "Which of the two does it more"),
        ("head five", "should be a tuple"),
    ],
)
def test_a_wrong_head_is_told_what_it_does(answer, said):
    verdict = judge("previous_token_head", answer)
    assert not verdict.passed
    assert said in verdict.text


def test_what_is_said_of_wrong_heads_is_true(weights):
    one_back, itself = (head_diagnostics.offset_mass(weights, o) for o in (1, 0))
    np.testing.assert_allclose(lesson_06.ONE_BACK, one_back, rtol=0, atol=6e-3)
    assert (itself[[0, 0, 2], [0, 4, 2]] > 0.6).all()
    assert one_back[2].argmax() == 0
    assert one_back[2, 0] == pytest.approx(0.36, abs=5e-3)
    assert one_back[1, 5] == pytest.approx(0.02, abs=5e-3)
    assert one_back[0, 3] == pytest.approx(0.28, abs=5e-3)
    sink = head_diagnostics.sink_mass(weights[..., 1:, :])
    assert sink[0, 3] == pytest.approx(0.43, abs=6e-3)
    even = np.tril(np.ones((127, 127))) / np.arange(1, 128)[:, None]
    assert head_diagnostics.offset_mass(even, 1) == pytest.approx(0.04, abs=5e-3)


def test_two_heads_gone_cost_what_the_exercise_says():
    model = course_model.load(torch.float64).requires_grad_(False)
    generator = torch.Generator().manual_seed(6)
    once = torch.randint(1, 256, (8, 48), generator=generator)
    ids = torch.cat([torch.zeros(8, 1, dtype=torch.long), once, once], dim=1)
    W_o = model.layers[0].attention.W_o.weight
    for h in (2, 5):
        W_o[:, 24 * h : 24 * (h + 1)] = 0
    losses = cross_entropy(model(ids[:, :-1]).mT, ids[:, 1:], reduction="none")
    assert float(losses[:, 49:].mean()) == pytest.approx(5.7, abs=0.05)
