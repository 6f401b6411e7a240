"""Wrong online softmax: attention in tiles, in NumPy and PyTorch."""

import math

import numpy as np
import torch

from .made import drawn

BLOCKS = (2, 3, 16, 64)


def block_size(rng):
    return int(rng.choice(BLOCKS[:2]))


def quiet(function):
    """inf - inf warns in NumPy; a notebook shows that once and goes on."""

    def attention(q, k, v, mask=None):
        with np.errstate(all="ignore"):
            return function(q, k, v, mask)

    return attention


# Nothing is rescaled when the maximum grows


def no_rescale(rng):
    size = block_size(rng)

    @quiet
    def attention(q, k, v, mask):
        n_k, scale = k.shape[-2], q.shape[-1] ** -0.5
        m = np.full((*q.shape[:-1], 1), -np.inf, dtype=q.dtype)
        total = np.zeros_like(m)
        out = np.zeros((*q.shape[:-1], v.shape[-1]), dtype=q.dtype)
        for start in range(0, n_k, size):
            end = min(start + size, n_k)
            s = q @ np.swapaxes(k[..., start:end, :], -1, -2) * scale
            if mask is not None:
                s = np.where(mask[..., start:end], s, -np.inf)
            m = np.maximum(m, s.max(-1, keepdims=True))
            p = np.exp(s - np.where(np.isneginf(m), 0, m))
            total = total + p.sum(-1, keepdims=True)
            out = out + p @ v[..., start:end, :]
        return out / np.where(total == 0, 1, total)

    return attention


def no_rescale_torch(rng):
    size = int(rng.choice(BLOCKS))

    def attention(q, k, v):
        m = q.new_full((*q.shape[:-1], 1), float("-inf"))
        total, out = torch.zeros_like(m), torch.zeros_like(q @ v.mT @ v)
        for kj, vj in zip(k.split(size, dim=-2), v.split(size, dim=-2), strict=True):
            s = q @ kj.mT / math.sqrt(q.size(-1))
            new = torch.maximum(m, s.amax(-1, keepdim=True))
            p = torch.exp(s - new)
            total = total + p.sum(-1, keepdim=True)
            out, m = out + p @ vj, new
        return out / total

    return attention


def only_the_sum(rng):
    size = block_size(rng)

    def attention(q, k, v):
        n_q, d = q.shape
        out = np.zeros((n_q, v.shape[1]), dtype=q.dtype)
        for i in range(n_q):
            m, total, acc = -np.inf, 0.0, 0.0
            for start in range(0, len(k), size):
                s = k[start : start + size] @ q[i] / math.sqrt(d)
                new = max(m, s.max())
                p = np.exp(s - new)
                total = total * np.exp(m - new) + p.sum()
                acc = acc + p @ v[start : start + size]  # acc * exp(m - new) is right
                m = new
            out[i] = acc / total
        return out

    return attention


def only_the_result(q, k, v):
    """One key at a time; the sum is the one that is not rescaled."""
    m = q.new_full(q.shape[:-1], float("-inf"))
    total = torch.zeros_like(m)
    out = q.new_zeros(*q.shape[:-1], v.size(-1))
    for kj, vj in zip(k.unbind(-2), v.unbind(-2), strict=True):
        s = (q * kj.unsqueeze(-2)).sum(-1) / math.sqrt(q.size(-1))
        new = torch.maximum(m, s)
        p = torch.exp(s - new)
        total = total + p
        out = out * torch.exp(m - new).unsqueeze(-1) + p.unsqueeze(-1) * vj.unsqueeze(
            -2
        )
        m = new
    return out / total.unsqueeze(-1)


def the_wrong_way(rng):
    """exp(new - old) in place of exp(old - new)."""
    size = block_size(rng)

    @quiet
    def attention(q, k, v, mask):
        d = q.shape[-1]
        m = np.full(q.shape[:-1], -1e300 if q.dtype == np.float64 else -1e38, q.dtype)
        total = np.zeros_like(m)
        out = np.zeros((*q.shape[:-1], v.shape[-1]), dtype=q.dtype)
        for j in range(0, k.shape[-2], size):
            s = np.einsum("...id,...jd->...ij", q, k[..., j : j + size, :]) / np.sqrt(d)
            if mask is not None:
                s = np.where(mask[..., j : j + size], s, -np.inf)
            new = np.maximum(m, s.max(-1))
            p = np.exp(s - new[..., None])
            old = np.where(total > 0, np.exp(new - m), 0.0)
            total = total * old + p.sum(-1)
            out = out * old[..., None] + p @ v[..., j : j + size, :]
            m = new
        return out / np.where(total == 0, 1, total)[..., None]

    return attention


# The first maximum


def starts_at(first, size=None):
    def build(rng):
        width = size or block_size(rng)

        @quiet
        def attention(q, k, v, mask):
            m = np.full((*q.shape[:-1], 1), first, dtype=q.dtype)
            total = np.zeros_like(m)
            out = np.zeros((*q.shape[:-1], v.shape[-1]), dtype=q.dtype)
            for j in range(0, k.shape[-2], width):
                kj, vj = k[..., j : j + width, :], v[..., j : j + width, :]
                s = q @ np.swapaxes(kj, -1, -2) / math.sqrt(q.shape[-1])
                if mask is not None:
                    s = np.where(mask[..., j : j + width], s, -np.inf)
                new = np.maximum(m, s.max(-1, keepdims=True))
                p, old = np.exp(s - new), np.exp(m - new)
                total = total * old + p.sum(-1, keepdims=True)
                out = out * old + p @ vj
                m = new
            return out / np.where(total == 0, 1, total)

        return attention

    return build


def starts_at_torch(first):
    def build(rng):
        size = int(rng.choice(BLOCKS))

        def attention(q, k, v, mask=None):
            m = q.new_full((*q.shape[:-1], 1), first)
            total = torch.zeros_like(m)
            out = q.new_zeros(*q.shape[:-1], v.size(-1))
            for j in range(0, k.size(-2), size):
                s = q @ k[..., j : j + size, :].mT * q.size(-1) ** -0.5
                if mask is not None:
                    s = s.masked_fill(~mask[..., j : j + size], float("-inf"))
                new = torch.maximum(m, s.amax(-1, keepdim=True))
                p, old = torch.exp(s - new), torch.exp(m - new)
                total = total * old + p.sum(-1, keepdim=True)
                out = out * old + p @ v[..., j : j + size, :]
                m = new
            return out / total.masked_fill(total == 0, 1.0)

        return attention

    return build


# The first block hides everything: (-inf) - (-inf)


def empty_first_block(size):
    def build(rng):
        @quiet
        def attention(q, k, v, mask):
            n_k = k.shape[-2]
            m = np.full((*q.shape[:-1], 1), -np.inf, dtype=q.dtype)
            total = np.zeros_like(m)
            out = np.zeros((*q.shape[:-1], v.shape[-1]), dtype=q.dtype)
            for j in range(0, n_k, size):
                s = (
                    q
                    @ np.swapaxes(k[..., j : j + size, :], -1, -2)
                    / q.shape[-1] ** 0.5
                )
                if mask is not None:
                    s = np.where(mask[..., j : j + size], s, -np.inf)
                new = np.maximum(m, s.max(-1, keepdims=True))
                p = np.exp(s - new)
                total = np.exp(m - new) * total + p.sum(-1, keepdims=True)
                out = np.exp(m - new) * out + p @ v[..., j : j + size, :]
                m = new
            result = out / total
            if mask is not None:  # a row without any key is thought of
                some = np.broadcast_to(mask, (*q.shape[:-1], n_k)).any(-1)
                result[~some] = 0.0
            return result

        return attention

    return build


def empty_first_block_torch(rng):
    size = block_size(rng)

    def attention(q, k, v, mask=None):
        m = q.new_full((*q.shape[:-1], 1), -torch.inf)
        total, out = torch.zeros_like(m), torch.zeros_like(q[..., :1] * v[..., :1, :])
        for j in range(0, k.size(-2), size):
            s = torch.einsum("...id,...jd->...ij", q, k[..., j : j + size, :])
            s = s / math.sqrt(q.size(-1))
            if mask is not None:
                s = torch.where(mask[..., j : j + size], s, -torch.inf)
            new = torch.maximum(m, s.max(-1, keepdim=True).values)
            p = torch.exp(s - new)
            out = out * torch.exp(m - new) + p @ v[..., j : j + size, :]
            total = total * torch.exp(m - new) + p.sum(-1, keepdim=True)
            m = new
        return out / total

    return attention


NO_EMPTY = {"empty_rows": False}
SPECIMENS = (
    drawn("M36", "nothing rescaled", no_rescale, "tiles"),
    drawn("M36", "nothing rescaled, torch", no_rescale_torch, "tiles"),
    drawn("M36", "only the sum rescaled", only_the_sum, "loops"),
    drawn("M36", "only the result rescaled", lambda rng: only_the_result, "one key"),
    drawn("M36", "rescaled the wrong way", the_wrong_way, "tiles"),
    drawn("M36", "maximum from 0", starts_at(0.0), "tiles"),
    drawn("M36", "maximum from 0, blocks of 16", starts_at(0.0, 16), "tiles"),
    drawn("M36", "maximum from 0, torch", starts_at_torch(0.0), "tiles"),
    drawn("M36", "maximum from -1e4", starts_at(-1e4), "tiles"),
    drawn("M36", "maximum from -1e4, blocks of 64", starts_at(-1e4, 64), "tiles"),
    drawn("M36", "maximum from -1e4, torch", starts_at_torch(-1e4), "tiles"),
    drawn("M36", "empty first block of 2", empty_first_block(2), "tiles"),
    drawn("M36", "empty first block of 3", empty_first_block(3), "tiles"),
    drawn("M36", "empty first block of 16", empty_first_block(16), "tiles"),
    drawn(
        "M36", "empty first block, torch", empty_first_block_torch, "tiles", **NO_EMPTY
    ),
)
