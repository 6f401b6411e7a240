"""Kernels as learners write them for the chip, right ones and wrong ones."""

import numpy as np

from attnlib.tiles import ranges


def tiled(chip, q, k, v, out, block_q, block_k):
    """The answer that lesson 12 asks for: a page, no tricks."""
    for rows in ranges(len(q), block_q):
        q_tile = chip.load(q, rows) / q.shape[1] ** 0.5
        m = chip.new(len(rows), -np.inf)
        total = chip.new(len(rows))
        mixed = chip.new((len(rows), v.shape[1]))
        for cols in ranges(len(k), block_k):
            scores = q_tile @ chip.load(k, cols).T
            new = np.maximum(m, scores.max(axis=-1))
            weights = np.exp(scores - new[:, None])
            shrink = np.exp(m - new)
            total = shrink * total + weights.sum(axis=-1)
            mixed = shrink[:, None] * mixed + weights @ chip.load(v, cols)
            m = new
        chip.store(out, rows, mixed / total[:, None])


def by_slices(chip, q, k, v, out, block_q, block_k):
    """Slices that run past the end, np.max and in-place sums: another style."""
    for i in range(0, len(q), block_q):
        q_tile = chip.load(q, slice(i, i + block_q))
        m = chip.new((len(q_tile), 1), -np.inf)
        total, mixed = np.zeros_like(m), chip.new((len(q_tile), v.shape[1]))
        for j in range(0, len(k), block_k):
            cols = slice(j, j + block_k)
            scores = np.einsum("id,jd->ij", q_tile, chip.load(k, cols))
            scores *= q.shape[1] ** -0.5
            new = np.maximum(m, np.max(scores, axis=1, keepdims=True))
            weights, shrink = np.exp(scores - new), np.exp(m - new)
            total *= shrink
            total += np.sum(weights, axis=1, keepdims=True)
            mixed *= shrink
            mixed += np.matmul(weights, chip.load(v, cols))
            m = new
        chip.store(out, slice(i, i + block_q), np.divide(mixed, total))


def query_by_query(chip, q, k, v, out, block_q, block_k):
    """A loop over queries inside the tile, with scalars from the chip."""
    for rows in ranges(len(q), block_q):
        q_tile = chip.load(q, rows)
        mixed = chip.new((len(rows), v.shape[1]))
        m, total = chip.new(len(rows), -np.inf), chip.new(len(rows))
        for cols in ranges(len(k), block_k):
            k_tile, v_tile = chip.load(k, cols), chip.load(v, cols)
            for i in range(len(rows)):
                s = k_tile @ q_tile[i] / q.shape[1] ** 0.5
                if s.max() > m[i]:
                    shrink = np.exp(m[i] - s.max())
                    total[i], mixed[i] = total[i] * shrink, mixed[i] * shrink
                    m[i] = s.max()
                w = np.exp(s - m[i])
                total[i], mixed[i] = total[i] + w.sum(), mixed[i] + w @ v_tile
        chip.store(out, rows, mixed / total[:, None])


def keys_outside(chip, q, k, v, out, block_q, block_k):
    """Algorithm 1 of the first FlashAttention paper: the result goes to and fro."""
    d_v = v.shape[1]
    m_all = chip.hbm(np.full((len(q), 1), -np.inf))
    total_all = chip.hbm(np.zeros((len(q), 1)))
    for cols in ranges(len(k), block_k):
        k_tile, v_tile = chip.load(k, cols), chip.load(v, cols)
        for rows in ranges(len(q), block_q):
            scores = chip.load(q, rows) @ k_tile.T / q.shape[1] ** 0.5
            m, total = chip.load(m_all, rows), chip.load(total_all, rows)
            first = cols.start == 0
            old = chip.new((len(rows), d_v)) if first else chip.load(out, rows)
            new = np.maximum(m, scores.max(axis=1, keepdims=True))
            weights, shrink = np.exp(scores - new), np.exp(m - new)
            more = shrink * total + weights.sum(axis=1, keepdims=True)
            chip.store(out, rows, (shrink * total * old + weights @ v_tile) / more)
            chip.store(m_all, rows, new)
            chip.store(total_all, rows, more)


def whole_matrix(chip, q, k, v, out, block_q, block_k):
    """Right numbers, all scores at once."""
    scores = chip.load(q) @ chip.load(k).T / q.shape[1] ** 0.5
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    chip.store(out, None, weights / weights.sum(axis=-1)[:, None] @ chip.load(v))


def through_hbm(chip, q, k, v, out, block_q, block_k):
    """Right numbers, tiles too: but every weight goes to HBM and comes back."""
    kept = chip.hbm(np.zeros((len(q), len(k))))
    totals = chip.hbm(np.zeros((len(q), 1)))
    for rows in ranges(len(q), block_q):
        q_tile, total = chip.load(q, rows), chip.new((len(rows), 1))
        for cols in ranges(len(k), block_k):
            weights = np.exp(q_tile @ chip.load(k, cols).T / q.shape[1] ** 0.5)
            total += weights.sum(axis=1, keepdims=True)
            chip.store(kept, (rows, cols), weights)
        chip.store(totals, rows, total)
    for rows in ranges(len(q), block_q):
        mixed = chip.new((len(rows), v.shape[1]))
        for cols in ranges(len(k), block_k):
            mixed += chip.load(kept, (rows, cols)) @ chip.load(v, cols)
        chip.store(out, rows, mixed / chip.load(totals, rows))


def one_query_at_a_time(chip, q, k, v, out, block_q, block_k):
    """Right numbers, small SRAM: but k and v are read once for every query."""
    tiled(chip, q, k, v, out, 1, block_k)


def all_keys_at_once(chip, q, k, v, out, block_q, block_k):
    """Tiles of queries alone: a row of scores is as long as the text."""
    tiled(chip, q, k, v, out, block_q, len(k))


def all_scores_kept(chip, q, k, v, out, block_q, block_k):
    """Tiles in a list: they lie on the chip as long as the list holds them."""
    tiles = [
        chip.load(q, rows) @ chip.load(k, cols).T
        for rows in ranges(len(q), block_q)
        for cols in ranges(len(k), block_k)
    ]
    chip.store(out, None, np.concatenate(tiles))
