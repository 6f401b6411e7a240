"""Functions that are handed their weights: (x, W_q, W_k, W_v, W_o, n_heads)."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from test_clinic_subject_modules import close, right, texts

from attnlib.attention import scaled_dot_product
from attnlib.clinic.subject import ModuleSubject, Refusal, make_subject
from attnlib.heads import merge_heads, multi_head, split_heads


def lesson(x, W_q, W_k, W_v, W_o, n_heads):
    q, k, v = (split_heads(x @ W, n_heads) for W in (W_q, W_k, W_v))
    return merge_heads(scaled_dot_product(q, k, v).out) @ W_o


def one_head(x, Wq, Wk, Wv):
    q, k, v = x @ Wq, x @ Wk, x @ Wv
    return scaled_dot_product(q, k, v).out


def with_biases(x, w_q, w_k, w_v, w_o, b_q, b_k, b_v, b_o, h, mask=None):
    q, k, v = (
        split_heads(x @ w + b, h) for w, b in ((w_q, b_q), (w_k, b_k), (w_v, b_v))
    )
    mask = None if mask is None else mask[:, None] if mask.ndim == 3 else mask
    return merge_heads(scaled_dot_product(q, k, v, mask).out) @ w_o + b_o


def of_tensors(query, key, value, q_weight, k_weight, v_weight, out_weight, num_heads):
    linear = torch.nn.functional.linear
    pairs = (query, q_weight), (key, k_weight), (value, v_weight)
    q, k, v = (
        linear(x, w).unflatten(-1, (num_heads, -1)).transpose(1, 2) for x, w in pairs
    )
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    return linear(out.transpose(1, 2).flatten(-2), out_weight)


@pytest.mark.parametrize(
    ("function", "takes", "n_heads", "has_out"),
    [
        (multi_head, {"mask", "memory"}, 4, True),
        (lesson, set(), 4, True),
        (one_head, set(), 1, False),
        (with_biases, {"mask"}, 4, True),
        (of_tensors, {"memory"}, 4, True),
    ],
)
def test_a_function_gives_what_its_weights_say(function, takes, n_heads, has_out):
    subject = make_subject(function)
    assert isinstance(subject, ModuleSubject), subject
    found = subject.takes
    assert {n for n in ("mask", "memory", "padding") if getattr(found, n)} == takes
    w = subject.weights
    assert w.n_heads == n_heads
    assert (w.W_o is not None) == has_out
    assert (w.b_q is not None) == (function is with_biases)
    x, memory, _ = texts(w)
    close(subject.call(x), right(w, x))
    if "memory" in takes:
        close(subject.call(x, memory), right(w, x, memory))
    if "mask" in takes:
        for mask in (np.tri(5, dtype=bool), np.tri(5, dtype=bool)[None].repeat(3, 0)):
            close(subject.call(x, mask=mask), right(w, x, None, mask))
    other = dataclasses.replace(w, W_q=w.W_q * 2)
    subject.set(other)
    close(subject.call(x), right(other, x))


def test_fewer_key_heads_are_handed_in():
    subject = make_subject(multi_head, n_kv_heads=2)
    w = subject.weights
    assert w.n_kv_heads == 2
    x, _, _ = texts(w)
    close(subject.call(x), right(w, x))


def test_a_function_that_changes_its_weights_changes_a_copy():
    def rude(x, W_q, W_k, W_v):
        out = one_head(x, W_q, W_k, W_v)
        W_q *= 2
        return out

    subject = make_subject(rude)
    x, _, _ = texts(subject.weights)
    assert (subject.call(x).out == subject.call(x).out).all()


@pytest.mark.parametrize(
    ("function", "start"),
    [
        (
            lambda x, W_q, W_k, W_v, temperature: x,
            "The function must be given temperature besides tokens and weights.",
        ),
        (lambda x, W_q, W_k, W_v: 1 / 0, "The function raised ZeroDivisionError"),
        (lambda x, W_q, W_k, W_v: None, "The function returned no array of shape"),
    ],
)
def test_a_weighted_function_that_cannot_be_called_is_refused(function, start):
    found = make_subject(function)
    assert isinstance(found, Refusal)
    assert found.sentence.startswith(start)
