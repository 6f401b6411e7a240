"""Any function of q, k and v as a subject: written as people write them."""

from __future__ import annotations

import dataclasses
import functools
import math
import time
from typing import NamedTuple

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from attnlib.attention import scaled_dot_product
from attnlib.clinic.subject import FunctionSubject, make_subject


# --- the functions -------------------------------------------------------------------
def softmax(x):
    top = x.max(axis=-1, keepdims=True)
    e = np.exp(x - np.where(np.isfinite(top), top, 0.0))
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total == 0, 1.0, total)


def plain(q, k, v, mask=None):
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(k.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    return softmax(scores) @ v


def no_mask(Q, K, V):
    return softmax(np.einsum("...id,...jd->...ij", Q, K) / K.shape[-1] ** 0.5) @ V


def loops(q, k, v, mask=None):
    out = np.zeros((len(q), v.shape[1]))
    for i in range(len(q)):
        scores = np.array([q[i] @ k[j] for j in range(len(k))]) / math.sqrt(len(q[i]))
        if mask is not None:
            scores[~mask[i]] = -np.inf
        out[i] = softmax(scores) @ v
    return out


def transposed_two_axes(q, k, v):
    return softmax(q @ k.T / np.sqrt(q.shape[1])) @ v


def four_axes(query, key, value, attn_mask=None):
    scores = np.einsum("bhid,bhjd->bhij", query, key) / np.sqrt(query.shape[-1])
    if attn_mask is not None:
        scores = np.where(attn_mask[:, None], scores, -np.inf)
    return np.einsum("bhij,bhjd->bhid", softmax(scores), value)


def three_axes(q, k, v, mask=None):
    scores = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(q.size(-1))
    if mask is not None:
        scores = scores.masked_fill(mask == 0, float("-inf"))
    return torch.bmm(torch.softmax(scores, -1), v)


def padding_of_keys(q, k, v, key_padding_mask=None):
    scores = q @ k.mT / math.sqrt(q.size(-1))
    if key_padding_mask is not None:
        scores = scores.masked_fill(~key_padding_mask[:, None, None, :], -torch.inf)
    return scores.softmax(-1) @ v


def numbers_for_a_mask(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores - 1e9 * (1 - mask)  # of booleans torch makes no difference
    return torch.softmax(scores, -1) @ v


def blocked(q, k, v, mask=None):
    return plain(q, k, v, None if mask is None else ~mask)


def added(q, k, v, mask=0.0):
    return softmax(q @ np.swapaxes(k, -1, -2) / np.sqrt(k.shape[-1]) + mask) @ v


def needs_a_mask(q, k, v, mask):
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(k.shape[-1])
    return softmax(np.where(mask.astype(bool), scores, -np.inf)) @ v


def pair(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(k.size(-1))
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    weights = F.softmax(scores, dim=-1)
    return weights @ v, weights


def pair_turned(q, k, v):
    weights = softmax(q @ np.swapaxes(k, -1, -2) / np.sqrt(k.shape[-1]))
    return weights, weights @ v


class Result(NamedTuple):
    weights: object
    output: object


@dataclasses.dataclass
class Stages:
    scores: object
    weights: object
    out: object


def named_tuple(q, k, v):
    weights, out = pair_turned(q, k, v)
    return Result(weights, out)


def stages(q, k, v):
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(k.shape[-1])
    return Stages(scores, softmax(scores), softmax(scores) @ v)


def dictionary(q, k, v):
    weights, out = pair_turned(q, k, v)
    return {"attention": weights, "context": out}


def lists(q, k, v):
    return plain(q, k, v).tolist()


def by_keyword(*, q, k, v, mask=None):
    return plain(q, k, v, mask)


def star(*args):
    return plain(*args)


def other_order(value, key, query, mask=None):
    return plain(query, key, value, mask)


def flag(q, k, v, mask=None, causal=False):
    if causal:
        lower = np.tri(q.shape[-2], k.shape[-2], k.shape[-2] - q.shape[-2], dtype=bool)
        mask = lower if mask is None else lower & mask
    return plain(q, k, v, mask)


def width_is_given(q, k, v, d_k, mask=None, dropout=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(d_k)
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    return F.softmax(scores, -1) @ v


def makes_float32(q, k, v):
    out = torch.zeros(*q.shape[:-1], v.shape[-1])
    out += torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1) @ v
    return out


def cross_not_thought_of(q, k, v):
    n = q.shape[-2]
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    return softmax(scores + np.zeros((n, n))) @ v


def one_width(q, k, v):
    out = np.zeros_like(q)
    out += plain(q, k, v)
    return out


def noisy(q, k, v):
    print("attending")
    return plain(q, k, v)


class Object:
    def __init__(self, scale=None):
        self.scale = scale

    def __call__(self, q, k, v, mask=None):
        return plain(q, k, v, mask)

    def method(self, q, k, v, mask=None):
        return torch.from_numpy(plain(q.numpy(), k.numpy(), v.numpy()))


class Module(nn.Module):
    """A module without weights of its own."""

    def __init__(self):
        super().__init__()
        self.dropout = nn.Dropout(0.5)

    def forward(self, query, key, value, mask=None):
        scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        weights = self.dropout(torch.softmax(scores, -1))
        return weights @ value, weights


def in_a_closure(scale=0.5):
    def inner(q, k, v, mask=None):
        scores = torch.matmul(q, k.transpose(-2, -1)) * k.size(-1) ** -scale
        if mask is not None:
            scores = torch.where(mask, scores, torch.tensor(-1e9))
        return torch.matmul(scores.softmax(-1), v)

    return inner


# name, function, keywords of make_subject, what it takes
CASES = [
    ("plain", plain, {}, {"mask", "rank 4", "rank 3", "rank 2", "items"}),
    ("no mask", no_mask, {}, {"rank 4", "rank 3", "rank 2"}),
    ("loops", loops, {}, {"mask", "rank 2"}),
    ("two axes", transposed_two_axes, {}, {"rank 2"}),
    ("mask for items", four_axes, {}, {"mask", "rank 4", "items"}),
    ("bmm", three_axes, {}, {"mask", "rank 3", "items", "tensors"}),
    ("padding", padding_of_keys, {}, {"padding", "rank 4", "tensors"}),
    (
        "1 - mask",
        numbers_for_a_mask,
        {},
        {"mask", "rank 4", "rank 3", "rank 2", "items", "tensors"},
    ),
    (
        "blocked",
        blocked,
        {"mask": "blocked"},
        {"mask", "rank 4", "rank 3", "rank 2", "items"},
    ),
    (
        "added",
        added,
        {"mask": "added"},
        {"mask", "rank 4", "rank 3", "rank 2", "items"},
    ),
    ("needs a mask", needs_a_mask, {}, {"mask", "rank 4", "rank 3", "rank 2", "items"}),
    (
        "pair",
        pair,
        {},
        {"mask", "rank 4", "rank 3", "rank 2", "items", "tensors", "weights"},
    ),
    ("pair turned", pair_turned, {}, {"rank 4", "rank 3", "rank 2", "weights"}),
    ("named tuple", named_tuple, {}, {"rank 4", "rank 3", "rank 2", "weights"}),
    ("dataclass", stages, {}, {"rank 4", "rank 3", "rank 2", "weights"}),
    ("dict", dictionary, {}, {"rank 4", "rank 3", "rank 2", "weights"}),
    ("lists", lists, {}, {"rank 4", "rank 3", "rank 2"}),
    ("keywords only", by_keyword, {}, {"mask", "rank 4", "rank 3", "rank 2", "items"}),
    ("*args", star, {}, {"mask", "rank 4", "rank 3", "rank 2", "items"}),
    ("v, k, q", other_order, {}, {"mask", "rank 4", "rank 3", "rank 2", "items"}),
    (
        "causal flag",
        flag,
        {},
        {"mask", "rank 4", "rank 3", "rank 2", "items", "causal"},
    ),
    (
        "d_k is given",
        width_is_given,
        {},
        {"mask", "rank 4", "rank 3", "rank 2", "items", "tensors"},
    ),
    ("float32 inside", makes_float32, {}, {"rank 4", "rank 3", "rank 2", "tensors"}),
    (
        "n_q == n_k",
        cross_not_thought_of,
        {},
        {"rank 4", "rank 3", "rank 2", "no cross"},
    ),
    ("d_k == d_v", one_width, {}, {"rank 4", "rank 3", "rank 2", "equal d"}),
    ("prints", noisy, {}, {"rank 4", "rank 3", "rank 2"}),
    ("object", Object(), {}, {"mask", "rank 4", "rank 3", "rank 2", "items"}),
    (
        "method on tensors",
        Object().method,
        {},
        {"mask", "rank 4", "rank 3", "rank 2", "items", "tensors", "mask ignored"},
    ),
    (
        "module without weights",
        Module(),
        {},
        {"mask", "rank 4", "rank 3", "rank 2", "items", "tensors", "weights"},
    ),
    (
        "closure",
        in_a_closure(),
        {},
        {"mask", "rank 4", "rank 3", "rank 2", "items", "tensors"},
    ),
    (
        "lambda",
        lambda q, k, v, m=None: plain(q, k, v, m),
        {},
        {"mask", "rank 4", "rank 3", "rank 2", "items"},
    ),
    (
        "partial",
        functools.partial(flag, causal=False),
        {},
        {"mask", "rank 4", "rank 3", "rank 2", "items", "causal"},
    ),
    (
        "SDPA",
        F.scaled_dot_product_attention,
        {},
        {
            "mask",
            "rank 4",
            "rank 3",
            "rank 2",
            "items",
            "tensors",
            "causal",
            "grouped",
        },
    ),
    (
        "attnlib",
        scaled_dot_product,
        {},
        {"mask", "rank 4", "rank 3", "rank 2", "items", "weights"},
    ),
]
NAMES = [case[0] for case in CASES]
SHAPES = {4: (2, 3), 3: (2,), 2: ()}


def takes(subject):
    """What a subject takes, in words."""
    t = subject.takes
    words = {f"rank {rank}" for rank in t.dims}
    flags = {
        "mask": t.mask,
        "padding": t.padding,
        "causal": t.causal,
        "items": t.item_masks,
        "no cross": t.no_cross,
        "equal d": t.equal_d,
        "grouped": t.grouped,
        "tensors": subject.tensors,
    }
    return words | {word for word, there in flags.items() if there}


def arrays(subject, rank, seed=0, heads=None):
    """q, k and v that the subject takes."""
    rng = np.random.default_rng(seed)
    n_q, n_k = (4, 4) if subject.takes.no_cross else (4, 6)
    d_k, d_v = (8, 8) if subject.takes.equal_d else (8, 5)
    front = SHAPES[rank]
    back = front if heads is None else (front[0], heads)
    return (
        rng.normal(size=(*front, n_q, d_k)),
        rng.normal(size=(*back, n_k, d_k)),
        rng.normal(size=(*back, n_k, d_v)),
    )


@pytest.mark.parametrize(("name", "function", "options", "expected"), CASES, ids=NAMES)
def test_what_a_function_takes_is_found_out(name, function, options, expected):
    subject = make_subject(function, **options)
    assert isinstance(subject, FunctionSubject), subject
    assert takes(subject) == expected - {"weights", "mask ignored"}
    assert subject.notes == ()


@pytest.mark.parametrize(("name", "function", "options", "expected"), CASES, ids=NAMES)
def test_a_subject_gives_what_the_function_gives(name, function, options, expected):
    subject = make_subject(function, **options)
    for rank in subject.takes.dims:
        q, k, v = arrays(subject, rank)
        answer = subject.call(q, k, v)
        right = scaled_dot_product(q, k, v)
        assert answer.error is None
        assert answer.sentence == ""
        assert answer.changed == ()
        np.testing.assert_allclose(answer.out, right.out, rtol=1e-6, atol=1e-9)
        if "weights" in expected:
            np.testing.assert_allclose(answer.weights, right.weights, atol=1e-9)
        else:
            assert answer.weights is None


@pytest.mark.parametrize(("name", "function", "options", "expected"), CASES, ids=NAMES)
def test_a_mask_arrives_with_its_meaning(name, function, options, expected):
    subject = make_subject(function, **options)
    rng = np.random.default_rng(1)
    for rank in subject.takes.dims:
        q, k, v = arrays(subject, rank)
        n_q, n_k = q.shape[-2], k.shape[-2]
        masks = []
        if subject.takes.mask:
            masks.append(rng.random((n_q, n_k)) < 0.6)
        if subject.takes.item_masks and rank > 2:
            masks.append(rng.random((2, n_q, n_k)) < 0.6)
        if subject.takes.item_masks and rank == 4:
            masks.append(rng.random((2, 1, n_q, n_k)) < 0.6)
        if subject.takes.padding:
            masks.append(np.broadcast_to(rng.random((2, 1, n_k)) < 0.6, (2, n_q, n_k)))
        for mask in masks:
            mask = mask.copy()
            mask[..., 0] = True  # no empty rows
            full = mask[:, None] if mask.ndim == 3 and rank == 4 else mask
            right = scaled_dot_product(q, k, v, full).out
            if "mask ignored" in expected:
                right = scaled_dot_product(q, k, v).out
            answer = subject.call(q, k, v, mask)
            assert answer.error is None
            np.testing.assert_allclose(answer.out, right, rtol=1e-6, atol=1e-9)


def test_a_causal_flag_is_handed_on():
    subject = make_subject(flag)
    q, k, v = arrays(subject, 3)
    lower = np.tri(4, 6, 2, dtype=bool)
    right = scaled_dot_product(q, k, v, lower).out
    np.testing.assert_allclose(subject.call(q, k, v, causal=True).out, right)
    right = scaled_dot_product(q, k, v).out
    np.testing.assert_allclose(subject.call(q, k, v, causal=False).out, right)


def test_fewer_key_heads_reach_a_function_that_takes_them():
    subject = make_subject(F.scaled_dot_product_attention)
    rng = np.random.default_rng(0)
    q = rng.normal(size=(2, 6, 4, 8))
    k, v = rng.normal(size=(2, 2, 3, 5, 8))[:, :2].reshape(2, 2, 3, 5, 8)[:, :, :2]
    out = subject.call(q, k, v).out
    right = scaled_dot_product(q, np.repeat(k, 3, 1), np.repeat(v, 3, 1)).out
    np.testing.assert_allclose(out, right)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_a_function_can_be_asked_in_any_type(dtype):
    seen = []

    def function(q, k, v):
        seen.append(str(q.dtype))
        return F.scaled_dot_product_attention(q, k, v)

    subject = make_subject(function)
    q, k, v = arrays(subject, 4)
    answer = subject.call(q, k, v, dtype=dtype)
    assert seen[-1] == f"torch.{dtype}"
    assert answer.dtype == dtype
    assert answer.out.dtype == np.float64
    subject = make_subject(function, dtype=dtype)
    assert subject.call(q, k, v).dtype == dtype


def test_numpy_has_no_bfloat16():
    answer = make_subject(plain).call(*arrays(make_subject(plain), 3), dtype="bfloat16")
    assert str(answer.error) == "NumPy has no bfloat16"


def test_an_error_of_one_call_comes_back_as_a_value():
    def picky(q, k, v):
        if q.shape[-2] == 9:
            raise ValueError("not nine")
        return plain(q, k, v)

    subject = make_subject(picky)
    q = np.ones((9, 8))
    answer = subject.call(q, q, q)
    assert str(answer.error) == "not nine"
    assert answer.out is None


def test_changed_arguments_are_said():
    def rude(q, k, v, mask=None):
        out = plain(q, k, v, mask)
        k *= 2
        return out

    subject = make_subject(rude)
    q, k, v = arrays(subject, 3)
    kept = k.copy()
    assert subject.call(q, k, v).changed == ("k",)
    assert (k == kept).all()


def test_printed_text_is_counted_and_not_shown(capsys):
    subject = make_subject(noisy)
    assert subject.call(*arrays(subject, 3)).printed == len("attending\n")
    assert capsys.readouterr().out == ""


def test_a_result_of_another_shape_is_given_as_it_came():
    def sometimes(q, k, v):
        out = plain(q, k, v)
        return out[..., 1:, :] if q.shape[-2] == 9 else out

    q = np.ones((9, 8))
    answer = make_subject(sometimes).call(q, q, q)
    assert answer.out.shape == (8, 8)
    assert answer.sentence == "it returned (8, 8) for (9, 8)"


def test_a_loop_in_one_call_is_stopped():
    def sometimes(q, k, v):
        while q.shape[-2] == 9:
            pass
        return plain(q, k, v)

    q = np.ones((9, 8))
    answer = make_subject(sometimes, seconds=0.5).call(q, q, q)
    assert answer.timed_out
    assert answer.sentence == "it did not come to an end in time"


def test_no_torch_is_imported_for_a_numpy_function():
    import subprocess
    import sys

    code = (
        "import sys, numpy as np\n"
        "from attnlib.attention import scaled_dot_product\n"
        "from attnlib.clinic.subject import make_subject\n"
        "subject = make_subject(scaled_dot_product)\n"
        "assert subject.takes.dims == (4, 3, 2), subject\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_mask_that_fits_by_accident_only_is_taken_all_the_same():
    """What is wrong in it is for the examination to say."""

    def on_the_queries(q, k, v, mask=None):
        scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(k.shape[-1])
        if mask is not None:
            scores = np.where(np.swapaxes(mask, -1, -2), scores, -np.inf)
        return softmax(scores) @ v

    subject = make_subject(on_the_queries)
    assert subject.takes.mask
    assert subject.takes.no_cross


def test_a_mask_that_raises_is_no_mask_and_is_said():
    def broken(q, k, v, mask=None):
        if mask is not None:
            raise ValueError("masks are not done yet")
        return plain(q, k, v)

    subject = make_subject(broken)
    assert not subject.takes.mask
    assert subject.notes == (
        "It took no mask of any form: it raised ValueError: masks are not done yet.",
    )


def test_a_mask_that_fits_in_a_form_that_is_not_meant_is_not_handed_in_so():
    def by_item(q, k, v, mask=None):
        """Takes (batch, n_q, n_k); of a mask (n_q, n_k) it would read single rows."""
        assert q.ndim == 3
        items = range(len(q))
        return np.stack(
            [plain(q[i], k[i], v[i], None if mask is None else mask[i]) for i in items]
        )

    subject = make_subject(by_item)
    assert subject.takes.mask_dims == (3,)
    q, k, v = arrays(subject, 3)
    mask = np.tri(4, 6, 2, dtype=bool)
    out = subject.call(q, k, v, mask).out
    np.testing.assert_allclose(out, scaled_dot_product(q, k, v, mask).out)


def test_the_time_of_all_calls_is_limited_together():
    def slow(q, k, v):
        time.sleep(0.1)
        return plain(q, k, v)

    subject = make_subject(slow, seconds=1.0)
    q = np.ones((3, 4))
    answers = [subject.call(q, q, q) for _ in range(12)]
    assert answers[-1].timed_out
