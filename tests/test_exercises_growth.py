"""Answers that look at all pairs, each in a way of its own, are seen to grow."""

from __future__ import annotations

import operator
from dataclasses import replace

import numpy as np
import pytest
import torch

from attnlib import attention, masks
from attnlib.clinic.limit import Clock
from attnlib.exercises import counted, get, growth
from attnlib.exercises.judging import judge_function

INF = np.inf
attend = attention.scaled_dot_product
softmax = attention.softmax


def tensors(*arrays):
    return [torch.from_numpy(np.array(a)) for a in arrays]


# --- right numbers, and all pairs looked at ----------------------------------------
def torch_table(q, k, v, width):
    q, k, v = tensors(q, k, v)
    n = len(q)
    ahead = torch.arange(n) - torch.arange(n)[:, None]
    look = (ahead <= 0) & (ahead > -width)
    scores = (q @ k.T / q.shape[1] ** 0.5).masked_fill(~look, -INF)
    return (torch.softmax(scores, dim=-1) @ v).numpy()


def torch_attention_under_a_mask(q, k, v, width):
    q, k, v = tensors(q, k, v)
    look = torch.from_numpy(masks.window(len(q), left=width - 1))
    attention = torch.nn.functional.scaled_dot_product_attention
    return attention(q[None], k[None], v[None], look[None])[0]


def torch_mask_without_room(q, k, v, width):
    """A mask that is a view: a band of 2 n numbers, looked at n times."""
    q, k, v = tensors(q, k, v)
    n = len(q)
    # With the keys backwards, query i sees the places n - 1 - i and the next ones.
    # So row i is row 0, one place to the left: with the queries backwards, too, it
    # is one place to the right, which is a step of 1.
    band = torch.zeros(2 * n, dtype=torch.bool)
    band[n - 1 : n - 1 + width] = True
    look = torch.as_strided(band, (n, n), (1, 1))  # look[i, j] = band[i + j]
    attention = torch.nn.functional.scaled_dot_product_attention
    return attention(q[None], k.flip(0)[None], v.flip(0)[None], look[None])[0]


def torch_rows(q, k, v, width):
    q, k, v = tensors(q, k, v)
    out = torch.empty_like(v)
    for i in range(len(q)):
        scores = k @ q[i] / q.shape[1] ** 0.5
        near = slice(max(0, i - width + 1), i + 1)
        out[i] = torch.softmax(scores[near], 0) @ v[near]
    return out


def torch_rows_in_half(q, k, v, width):
    q, k, v = tensors(q, k, v)
    wide, out = k.float().half(), torch.empty_like(v)
    for i in range(len(q)):
        wide @ q[i].half()
        near = slice(max(0, i - width + 1), i + 1)
        out[i] = torch.softmax(k[near] @ q[i] / q.shape[1] ** 0.5, 0) @ v[near]
    return out


def torch_one_buffer(q, k, v, width):
    """Each row into the same room."""
    q, k, v = tensors(q, k, v)
    row, out = torch.empty(len(q), dtype=q.dtype), torch.empty_like(v)
    for i in range(len(q)):
        torch.mv(k, q[i], out=row)
        near = slice(max(0, i - width + 1), i + 1)
        out[i] = torch.softmax(row[near] / q.shape[1] ** 0.5, 0) @ v[near]
    return out


def torch_weights_of_all(q, k, v, width):
    """Few scores, yet each row of weights is as long as the text."""
    q, k, v = tensors(q, k, v)
    row, out = torch.zeros(len(q), dtype=q.dtype), torch.empty_like(v)
    for i in range(len(q)):
        near = slice(max(0, i - width + 1), i + 1)
        row[near] = torch.softmax(k[near] @ q[i] / q.shape[1] ** 0.5, 0)
        out[i] = row @ v
        row[near] = 0
    return out


def table_in_half(q, k, v, width):
    q16, k16 = (np.asarray(a).astype(np.float16) for a in (q, k))
    kept = [q16[i] @ k16.T for i in range(len(q))]
    out = get("window_attention").solution(q, k, v, width)
    return out + 0 * kept[-1][-1].astype(float)


def rows_in_half(q, k, v, width):
    q, k, v = (np.asarray(a) for a in (q, k, v))
    q16, k16 = q.astype(np.float16), k.astype(np.float16)
    out = np.zeros((len(q), v.shape[1]))
    for i in range(len(q)):
        scores = k16 @ q16[i]
        near = slice(max(0, i - width + 1), i + 1)
        scores = scores[near].astype(np.float64) * 0
        scores = scores + k[near] @ q[i] / q.shape[1] ** 0.5
        top = scores.max()
        e = np.exp(scores - top)
        weights = e / e.sum()
        out[i] = weights @ v[near]
    return out


def rows_by_einsum(q, k, v, width):
    """Full rows, 20 queries at a time, of plain arrays."""
    q, k, v = (np.asarray(a) for a in (q, k, v))
    n, out = len(q), []
    for start in range(0, n, 20):
        rows = np.arange(start, min(start + 20, n))
        scores = np.einsum("id,jd->ij", q[rows], k) / q.shape[1] ** 0.5
        ahead = np.arange(n) - rows[:, None]
        scores[(ahead > 0) | (ahead <= -width)] = -INF
        out.append(np.einsum("ij,jd->id", softmax(scores), v))
    return np.concatenate(out)


def one_buffer(q, k, v, width):
    """Each row into the same room, and no array counts."""
    q, k, v = (np.asarray(a) for a in (q, k, v))
    row, out = np.empty(len(q)), np.empty_like(v)
    for i in range(len(q)):
        np.matmul(k, q[i], out=row)
        near = slice(max(0, i - width + 1), i + 1)
        out[i] = softmax(row[near] / q.shape[1] ** 0.5) @ v[near]
    return out


def copied_by_hand(q, k, v, width):
    own = [np.zeros(a.shape) for a in (q, k, v)]
    for mine, given in zip(own, (q, k, v), strict=True):
        mine[:] = given
    return one_buffer(*own, width)


def weights_of_all(q, k, v, width):
    row, out = np.zeros(len(q)), np.zeros(v.shape)
    for i in range(len(q)):
        near = slice(max(0, i - width + 1), i + 1)
        row[near] = softmax(k[near] @ q[i] / q.shape[1] ** 0.5)
        out[i] = row @ v
        row[near] = 0
    return out


def half_rows(q, k, v, width):
    """All keys that came before: half of all pairs."""
    q, k, v = (a.view(np.ndarray) for a in (q, k, v))
    out = np.zeros(v.shape)
    for i in range(len(q)):
        scores = k[: i + 1] @ q[i] / q.shape[1] ** 0.5
        out[i] = softmax(scores[-width:]) @ v[: i + 1][-width:]
    return out


def much_beside_it(q, k, v, width):
    """So much work for each token that a row of n is little beside it."""
    out = np.zeros(v.shape)
    for i in range(len(q)):
        np.exp(np.ones(4000) + q[0, 0])
        scores = k @ q[i] / q.shape[1] ** 0.5
        near = slice(max(0, i - width + 1), i + 1)
        out[i] = softmax(scores[near]) @ v[near]
    return out


def pairs_in_python(q, k, v, width):
    q, k, out = q.tolist(), k.tolist(), np.zeros(v.shape)
    for i, one in enumerate(q):
        near = []
        for j, other in enumerate(k):
            if i - width < j <= i:
                near.append(sum(map(operator.mul, one, other)) / len(one) ** 0.5)
        out[i] = softmax(np.array(near)) @ v[max(0, i - width + 1) : i + 1]
    return out


def pairs_in_a_generator(q, k, v, width):
    rows, keys, out = q.tolist(), k.tolist(), np.zeros(v.shape)
    for i, q_i in enumerate(rows):
        found = (q_i[0] * key[0] for key in keys)
        total = sum(found)
        near = slice(max(0, i - width + 1), i + 1)
        out[i] = softmax(k[near] @ q[i] / q.shape[1] ** 0.5 + 0 * total) @ v[near]
    return out


CHEATS = (
    torch_table,
    torch_attention_under_a_mask,
    torch_mask_without_room,
    torch_rows,
    torch_rows_in_half,
    torch_one_buffer,
    torch_weights_of_all,
    table_in_half,
    rows_in_half,
    rows_by_einsum,
    one_buffer,
    copied_by_hand,
    weights_of_all,
    half_rows,
    much_beside_it,
    pairs_in_python,
    pairs_in_a_generator,
)


SLOW = torch_rows_in_half, pairs_in_python, pairs_in_a_generator


@pytest.mark.parametrize("answer", CHEATS, ids=lambda f: f.__name__)
def test_all_pairs_are_seen(answer, monkeypatch):
    if answer in SLOW:  # a judge may well stop them before it has counted
        monkeypatch.setattr(growth, "SHORT", 100)
        monkeypatch.setattr(growth, "LONG", 200)
    exercise = get("window_attention")
    verdict = judge_function(exercise, answer, limit=60)
    assert verdict.status == "law", verdict.text
    lax = replace(exercise, laws=())
    assert judge_function(lax, answer).passed


def in_blocks_of(size):
    def window_attention(q, k, v, width):
        out = []
        for start in range(0, len(q), size):
            stop, first = min(start + size, len(q)), max(0, start - width + 1)
            ahead = np.arange(first, stop) - np.arange(start, stop)[:, None]
            look = (ahead <= 0) & (ahead > -width)
            out.append(attend(q[start:stop], k[first:stop], v[first:stop], look).out)
        return np.concatenate(out)

    return window_attention


@pytest.mark.parametrize("size", [16, 32, 64, 100, 128, 200, 256, 300, 400, 512])
def test_blocks_that_the_text_does_not_fill_pass(size):
    for law in (growth.ROOM, growth.WORK):
        run = growth.metered(in_blocks_of(size))
        assert law.broken(lambda *args, run=run: (run(*args),)) is None


def test_what_is_counted_is_what_is_computed_or_gone_through():
    tally = counted.Tally()
    x = counted.array(np.ones((4, 3)), tally)
    y = np.eye(3) @ x.T  # 12
    y = np.where(y > 1, y, 0)  # 12 and 12
    y.sum(axis=0)  # 12, of which 4 are left
    np.einsum("ij->", x)  # 12
    np.take(x, [1], axis=0)  # 3
    x.dot(np.ones(3))  # 12
    np.exp(x, out=np.empty((4, 3)))  # 12
    np.add.at(x, np.array([1, 2]), 1.0)  # 2
    x.view(np.ndarray) + 1  # 12
    assert tally.numbers == 7 * 12 + 12 + 3 + 2
    assert isinstance(np.concatenate([x, x]), counted.Counted)


def test_meanwhile_numpy_and_torch_count_and_afterwards_not():
    tally, zeros = counted.Tally(), np.zeros
    with counted.everywhere(tally):
        np.asarray(np.zeros(5)) + 1
        assert tally.numbers == 5
        x = torch.from_numpy(np.ones((7, 2)))
        before = tally.numbers
        x[2:], x.T  # no number is computed
        assert tally.numbers == before
        x @ x.T
        assert (tally.numbers, tally.largest) == (before + 49, 8 * 49)
        q = torch.ones(1, 6, 2)
        before = tally.numbers
        torch.nn.functional.scaled_dot_product_attention(q, q, q)
        assert tally.numbers - before >= 36  # all pairs, seen or not
        before = tally.numbers
    x + 1
    assert np.zeros is zeros
    assert type(np.asarray([1.0])) is np.ndarray
    assert tally.numbers == before


def test_lines_are_counted():
    def loop(n):
        for _ in range(n):
            pass

    few, many = (growth.bytes_of(loop, n)[3] for n in (100, 200))
    assert many - few >= 100


def test_a_call_under_meters_may_take_longer():
    assert growth.ROOM.slower == growth.WORK.slower == 4
    clock = Clock(3.0)
    assert clock.slowed(1) is clock
    assert clock.slowed(4).limit == 12.0
