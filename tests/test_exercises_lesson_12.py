"""Lesson 12: right answers in many styles, wrong ones, and what they are told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tiles_kernels as written

from attnlib import tiles
from attnlib.exercises import get, judge, kernels, names
from attnlib.exercises.judging import judge_function
from attnlib.exercises.lesson_12 import MEASURED, OTHERWISE, WIDE
from attnlib.exercises.program import Program

LESSON = ("online_softmax", "tiled_attention", "tile_grad_q")
INF = np.inf
ROOT = Path(__file__).resolve().parent.parent


def changed(name, *pairs):
    """The solution with some pieces of its text exchanged."""
    source = get(name).solution_source
    for old, new in pairs:
        assert old in source, old
        source = source.replace(old, new)
    space = {"np": np, "tiles": tiles}
    exec(source, space)
    return space[name]


def test_the_lesson_has_these_exercises_and_their_minutes_fit_into_its_text():
    assert set(names(12)) == set(LESSON)
    assert sum(get(name).minutes for name in LESSON) == 33


def test_the_lines_of_triton_in_the_lesson_are_lines_of_the_kernel():
    # Read as text: neither the lesson nor this test needs the package triton.
    lesson = (ROOT / "notebooks/source/12_flash_attention.md").read_text("utf-8")
    kernel = (ROOT / "attnlib/nn/triton_kernel.py").read_text("utf-8")
    quoted = lesson.split("```python\n")[1].split("```")[0]
    assert quoted.count("\n") == 7
    assert quoted in "\n".join(line.strip() for line in kernel.splitlines())


# --- right answers written another way --------------------------------------------
def by_two_cases(m, total, mixed, scores, v):
    """Guards by asking, not by a stand-in."""
    new = np.maximum(m, np.max(scores, axis=1))
    with np.errstate(invalid="ignore"):
        shrink = np.nan_to_num(np.exp(m - new))
        e = np.nan_to_num(np.exp(scores - new[:, np.newaxis]))
    return (
        new,
        total * shrink + np.sum(e, axis=1),
        mixed * shrink[:, np.newaxis] + np.einsum("ij,jd->id", e, v),
    )


def row_by_row(m, total, mixed, scores, v):
    m, total, mixed = m.copy(), total.copy(), mixed.copy()
    for i in range(len(m)):
        for j in range(len(v)):
            s = scores[i, j]
            if s == -INF:
                continue
            new = max(m[i], s)
            shrink, e = np.exp(m[i] - new), np.exp(s - new)
            total[i] = total[i] * shrink + e
            mixed[i] = mixed[i] * shrink + e * v[j]
            m[i] = new
    return m, total, mixed


def by_parts(m, total, mixed, scores, v):
    """A state for the block alone, then both brought to one maximum."""
    top = scores.max(axis=-1, keepdims=True)
    own = np.where(np.isneginf(top), 0, top)
    e = np.exp(scores - own)
    new = np.maximum(m, top[:, 0])
    ref = np.where(np.isneginf(new), 0, new)
    a, b = np.exp(m - ref), np.exp(top[:, 0] - ref)
    both = a[:, None] * mixed + b[:, None] * (e @ v)
    return [new, a * total + b * e.sum(-1), both]


@pytest.mark.parametrize("answer", [by_two_cases, row_by_row, by_parts])
def test_other_right_steps(answer):
    for seed in range(2):
        verdict = judge("online_softmax", answer, seed)
        assert verdict.passed, verdict.text


step = get("online_softmax").solution


def with_the_step(chip, q, k, v, out, block_q, block_k):
    """Exercise 1 as it stands, stand-in and all."""
    for rows in tiles.ranges(len(q), block_q):
        tile = chip.load(q, rows)
        state = (
            chip.new(len(rows), -INF),
            chip.new(len(rows)),
            chip.new((len(rows), v.shape[1])),
        )
        for cols in tiles.ranges(len(k), block_k):
            scores = tile @ chip.load(k, cols).T / np.sqrt(q.shape[1])
            state = step(*state, scores, chip.load(v, cols))
        chip.store(out, rows, state[2] / state[1][:, None])


def every_stage_named(chip, q, k, v, out, block_q, block_k):
    """Nothing is written over: the most room that a patient answer takes."""
    for rows in tiles.ranges(len(q), block_q):
        q_tile = chip.load(q, rows)
        m, total = chip.new((len(rows), 1), -INF), chip.new((len(rows), 1))
        mixed = chip.new((len(rows), v.shape[1]))
        for cols in tiles.ranges(len(k), block_k):
            k_tile, v_tile = chip.load(k, cols), chip.load(v, cols)
            raw = q_tile @ k_tile.T
            scores = raw / np.sqrt(q.shape[1])
            top = scores.max(axis=-1, keepdims=True)
            m_new = np.maximum(m, top)
            shifted = scores - m_new
            weights = np.exp(shifted)
            shrink = np.exp(m - m_new)
            block_sum = weights.sum(axis=-1, keepdims=True)
            total = total * shrink + block_sum
            part = weights @ v_tile
            mixed = mixed * shrink + part
            m = m_new
        result = mixed / total
        chip.store(out, rows, result)


def paper_state(chip, q, k, v, out, block_q, block_k):
    """The output is divided in each step, and multiplied back: the first paper."""
    for rows in tiles.ranges(len(q), block_q):
        q_tile = chip.load(q, rows)
        m, total = chip.new((len(rows), 1), -INF), chip.new((len(rows), 1))
        o = chip.new((len(rows), v.shape[1]))
        for cols in tiles.ranges(len(k), block_k):
            s = q_tile @ chip.load(k, cols).T / q.shape[1] ** 0.5
            new = np.maximum(m, s.max(axis=-1, keepdims=True))
            p, shrink = np.exp(s - new), np.exp(m - new)
            more = shrink * total + p.sum(axis=-1, keepdims=True)
            o = (shrink * total * o + p @ chip.load(v, cols)) / more
            m, total = new, more
        chip.store(out, rows, o)


@pytest.mark.parametrize(
    "answer",
    [
        written.tiled,
        written.by_slices,
        written.query_by_query,
        with_the_step,
        every_stage_named,
        paper_state,
    ],
)
def test_other_right_kernels(answer):
    for seed in range(2):
        verdict = judge_function(get("tiled_attention"), answer, seed, limit=20)
        assert verdict.passed, verdict.text


def grad_by_loops(q, k, v, grad_out, log_sum_exp, delta):
    scale, grad = q.shape[1] ** -0.5, np.zeros(q.shape)
    for i in range(len(q)):
        for j in range(len(k)):
            w = np.exp(scale * q[i] @ k[j] - log_sum_exp[i])
            grad[i] += scale * w * (grad_out[i] @ v[j] - delta[i]) * k[j]
    return grad


def grad_of_scaled_k(q, k, v, grad_out, log_sum_exp, delta):
    k = k / np.sqrt(k.shape[-1])
    p = np.exp(q @ k.T - log_sum_exp[:, None])
    return (p * (grad_out @ v.T) - p * delta[:, None]) @ k


def grad_by_einsum(q, k, v, grad_out, log_sum_exp, delta):
    s = np.einsum("id,jd->ij", q, k) / q.shape[-1] ** 0.5
    p = np.exp(s.T - log_sum_exp).T
    ds = p * (np.einsum("id,jd->ij", grad_out, v).T - delta).T
    return np.einsum("ij,jd->id", ds, k) / q.shape[-1] ** 0.5


@pytest.mark.parametrize("answer", [grad_by_loops, grad_of_scaled_k, grad_by_einsum])
def test_other_right_gradients(answer):
    for seed in range(2):
        verdict = judge("tile_grad_q", answer, seed)
        assert verdict.passed, verdict.text


# --- wrong answers that are named --------------------------------------------------
WEIGHTS = "np.exp(scores - shift[:, None])"
SHRINK = "np.exp(m - shift)"
TOTAL = "total = shrink * total + weights.sum(axis=-1)"
MIXED = "mixed = shrink[:, None] * mixed + weights @ v"
RETURN = "return new, total, mixed"
MAXIMUM = "np.maximum(m, scores.max(axis=-1))"

STEPS = (
    ((MAXIMUM, "scores.max(axis=-1)"), "online_max_of_block"),
    ((MAXIMUM, "np.maximum(m, scores.max())"), "online_max_of_all"),
    ((MAXIMUM, "np.where(m == -np.inf, scores.max(-1), m)"), "online_max_kept"),
    (("np.where(new == -np.inf, 0, new)", "new"), "online_empty_block"),
    ((SHRINK, "np.exp(shift - m)"), "online_shrink_upside_down"),
    ((SHRINK, "(m - shift)"), "online_shrink_no_exp"),
    ((SHRINK, "np.ones_like(m)"), "online_not_rescaled"),
    ((TOTAL, "total = total + weights.sum(axis=-1)"), "online_sum_not_rescaled"),
    ((MIXED, "mixed = mixed + weights @ v"), "online_out_not_rescaled"),
    ((TOTAL, "total = weights.sum(axis=-1)"), "online_sum_replaced"),
    ((MIXED, "mixed = weights @ v"), "online_mixed_replaced"),
    ((TOTAL, "total = shrink * total + weights.sum()"), "online_sum_of_all"),
    ((TOTAL, "total = shrink * total + weights.mean(axis=-1)"), "online_sum_is_mean"),
    ((RETURN, "return new, total, mixed / total[:, None]"), "online_divided_early"),
    ((RETURN, "return total, new, mixed"), "online_state_exchanged"),
    ((RETURN, "return m, total, mixed"), "online_m_not_stored"),
    ((RETURN, "return shift, total, mixed"), "online_guard_stored"),
    ((RETURN, "return scores.max(axis=-1), total, mixed"), "online_top_stored"),
    ((WEIGHTS, "np.exp(scores - m[:, None])"), "online_old_maximum"),
    (
        (MIXED, "mixed = shrink[:, None] * mixed + weights / total[:, None] @ v"),
        "",
    ),
    (
        (
            MIXED,
            "mixed = shrink[:, None] * mixed + "
            "(weights / weights.sum(-1, keepdims=True)) @ v",
        ),
        "online_block_normalised",
    ),
)


@pytest.mark.parametrize(("pair", "key"), STEPS, ids=lambda x: str(x)[:40])
def test_wrong_steps_are_named(pair, key):
    verdict = judge("online_softmax", changed("online_softmax", pair))
    assert not verdict.passed
    assert {mistake.key for mistake in verdict.mistakes} == ({key} - {""})


def test_a_query_that_never_started_is_not_told_of_an_empty_row():
    def online_softmax(m, total, mixed, scores, v):
        first = step(m[:1], total[:1], mixed[:1], scores[:1], v)
        old = (x[1:] for x in (m, total, mixed))
        return tuple(np.concatenate(x) for x in zip(first, old, strict=True))

    verdict = judge("online_softmax", online_softmax)
    assert verdict.status == "nan"
    assert "infinity in `m` at [1]" in verdict.text
    assert "throughout" not in verdict.text


def test_two_mistakes_in_a_step_are_both_named():
    pairs = (
        (TOTAL, "total = total + weights.sum(-1)"),
        (RETURN, "return m, total, mixed"),
    )
    verdict = judge("online_softmax", changed("online_softmax", *pairs))
    keys = {mistake.key for mistake in verdict.mistakes}
    assert keys == {"online_sum_not_rescaled", "online_m_not_stored"}


def test_a_step_in_place_is_told_that_it_changed_its_arguments():
    pairs = (
        (TOTAL, "total *= shrink\n    total += weights.sum(axis=-1)"),
        (
            MIXED,
            "mixed *= shrink[:, None]\n    mixed += weights @ v",
        ),
    )
    verdict = judge("online_softmax", changed("online_softmax", *pairs))
    assert verdict.status == "mutates"
    assert "total" in verdict.text
    assert "mixed" in verdict.text


TILED = (
    ((" / q.shape[1] ** 0.5", " * 1"), "scale_missing"),
    (("q.shape[1] ** 0.5", "q.shape[1]"), "scale_d_k"),
    (("/ q.shape[1] ** 0.5", "* q.shape[1] ** 0.5"), "scale_multiplied"),
    (("q.shape[1] ** 0.5", "len(k) ** 0.5"), "scale_n_k"),
    (("q.shape[1] ** 0.5", "v.shape[1] ** 0.5"), "scale_d_v"),
    (("q.shape[1] ** 0.5", "block_k ** 0.5"), "scale_block_k"),
    (("chip.new(len(rows), -np.inf)", "chip.new(len(rows))"), "online_starts_at_0"),
    (("-np.inf", "-1e4"), "online_starts_at_10000"),
    (("            m = new\n", ""), "online_last_only"),
    (("mixed / total[:, None]", "mixed"), "online_not_divided"),
    (("mixed / total[:, None]", "mixed / (total[:, None] + 1)"), "online_epsilon"),
    (("shrink[:, None] * mixed + ", ""), "online_mixed_replaced"),
    (("shrink[:, None] * mixed", "mixed"), "online_out_not_rescaled"),
    (("shrink * total + ", "total + "), "online_sum_not_rescaled"),
    (("shrink * total + ", ""), "online_sum_replaced"),
    (("shrink = np.exp(m - new)", "shrink = 1 + 0 * new"), "online_not_rescaled"),
    (("np.maximum(m, scores.max(axis=-1))", "scores.max(axis=-1)"), "max_of_block"),
    (("tiles.ranges(len(q), block_q)", "tiles.ranges(len(q) // block_q * block_q, block_q)"), "tile_rest_dropped"),  # noqa: E501
    (("tiles.ranges(len(k), block_k)", "tiles.ranges(len(k) // block_k * block_k, block_k)"), "rest_dropped"),  # noqa: E501
    (("weights @ chip.load(v, cols)", "weights / weights.sum(axis=-1)[:, None] @ chip.load(v, cols)"), "online_block_normalised"),  # noqa: E501
)  # fmt: skip


@pytest.mark.parametrize(("pair", "key"), TILED, ids=lambda x: str(x)[:40])
def test_wrong_kernels_are_named(pair, key):
    verdict = judge("tiled_attention", changed("tiled_attention", pair))
    assert len(verdict.mistakes) == 1, verdict.text
    assert key in verdict.mistakes[0].key


@pytest.mark.parametrize(
    "pairs",
    [
        [("chip.new(len(rows), -np.inf)", "chip.new(len(rows), np.nan)")],
        [("mixed / total[:, None]", "mixed / (0 * total[:, None])"), ("+ weights @ chip.load(v, cols)", "")],  # noqa: E501
        [("np.exp(scores - new[:, None])", "np.exp(scores - m[:, None])")],
        [("np.exp(m - new)", "np.exp(new - m)")],
        [("shrink = np.exp(m - new)", "shrink = m - new")],
        [("chip.store(out, rows, mixed", "chip.store(out, rows, np.nan * mixed")],
    ],
)  # fmt: skip
def test_nan_throughout_is_told_as_nan_and_as_nothing_else(pairs):
    verdict = judge("tiled_attention", changed("tiled_attention", *pairs))
    assert verdict.status == "nan", verdict.text
    assert "NaN" in verdict.text


def test_tiles_of_twice_as_many_queries_are_told_of_their_size():
    pair = ("tiles.ranges(len(q), block_q)", "tiles.ranges(len(q), 2 * block_q)")
    verdict = judge("tiled_attention", changed("tiled_attention", pair))
    assert verdict.status == "law"
    assert "Is a tile larger than 16 x 16" in verdict.text


GRADS = (
    (("- log_sum_exp[:, None]", ""), "tile_without_sum"),
    (("- log_sum_exp[:, None]", "+ log_sum_exp[:, None]"), "tile_log_added"),
    (("- log_sum_exp[:, None])", ") / log_sum_exp[:, None]"), "tile_divided_by_log"),
    (("np.exp(q @", "(q @"), "tile_not_exponential"),
    (
        (
            "q @ k.T / root - log_sum_exp[:, None]",
            "(q @ k.T - log_sum_exp[:, None]) / root",
        ),
        "tile_log_scaled",
    ),
    (
        (
            "(grad_weights - delta[:, None])\n",
            "(grad_weights / root - delta[:, None]) * root\n",
        ),
        "delta_not_scaled",
    ),
    (("(grad_weights - delta[:, None])", "grad_weights"), "softmax_sum_missing"),
    (("- delta[:, None]", "+ delta[:, None]"), "softmax_sum_added"),
    (
        ("(grad_weights - delta[:, None])", "(delta[:, None] - grad_weights)"),
        "softmax_sides_exchanged",
    ),
    (("weights * (grad_weights", "(grad_weights"), "softmax_factor_missing"),
    (
        ("weights * (grad_weights - delta[:, None])", "grad_weights"),
        "softmax_not_differentiated",
    ),
    (
        ("delta[:, None]", "(weights * grad_weights).sum(-1, keepdims=True)"),
        "delta_of_the_tile",
    ),
    (("delta[:, None]", "delta[:, None] / len(k)"), "delta_of_the_mean"),
    (("grad_scores @ k / root", "grad_scores @ k"), "gradient_scale_missing"),
    (("grad_scores @ k / root", "grad_scores @ k * root"), "gradient_scale_multiplied"),
    (("k.T / root", "k.T"), "gradient_scale_only_back"),
    (("q.shape[-1] ** 0.5", "1"), "scale_missing"),
    (("q.shape[-1] ** 0.5", "q.shape[-1]"), "scale_d_k"),
    (("q.shape[-1] ** 0.5", "v.shape[-1] ** 0.5"), "scale_d_v"),
    (("q.shape[-1] ** 0.5", "len(k) ** 0.5"), "scale_n_k"),
    (("grad_out @ v.T", "np.ones_like(grad_out) @ v.T"), "grad_out_ignored"),
)


@pytest.mark.parametrize(("pair", "key"), GRADS, ids=lambda x: str(x)[:40])
def test_wrong_gradients_are_named(pair, key):
    verdict = judge("tile_grad_q", changed("tile_grad_q", pair))
    assert [mistake.key for mistake in verdict.mistakes] == [key], verdict.text


def test_a_softmax_of_the_tile_is_named():
    def tile_grad_q(q, k, v, grad_out, log_sum_exp, delta):
        root = q.shape[-1] ** 0.5
        e = np.exp(q @ k.T / root)
        weights = e / e.sum(axis=-1, keepdims=True)
        return weights * (grad_out @ v.T - delta[:, None]) @ k / root

    (mistake,) = judge("tile_grad_q", tile_grad_q).mistakes
    assert mistake.key == "tile_softmax"


# --- right numbers, and still refused ----------------------------------------------
def test_the_docstring_says_the_caps_that_are_asked():
    assert MEASURED.cap == 166720
    text = get("tiled_attention").solution_source
    assert f"at most {MEASURED.cap} may go" in text
    assert "at most 20000 bytes may lie on the" in text
    assert tuple(vars(MEASURED).values()) == (120, 170, 8, 6, 16, 16)


def all_keys_stay(chip, q, k, v, out, block_q, block_k):
    """Moves less than is asked, and has all keys on the chip."""
    keys, values = chip.load(k), chip.load(v)
    for rows in tiles.ranges(len(q), block_q):
        tile = chip.load(q, rows) / q.shape[1] ** 0.5
        state = chip.new(len(rows), -INF), chip.new(len(rows))
        state = (*state, chip.new((len(rows), v.shape[1])))
        for c in range(0, len(k), block_k):
            cols = slice(c, c + block_k)
            state = step(*state, tile @ keys[cols].T, values[cols])
        chip.store(out, rows, state[2] / state[1][:, None])


def all_queries_stay(chip, q, k, v, out, block_q, block_k):
    """Keys outside, and the states of all queries on the chip."""
    blocks = tiles.ranges(len(q), block_q)
    held = [chip.load(q, rows) / q.shape[1] ** 0.5 for rows in blocks]
    states = [
        (chip.new(len(r), -INF), chip.new(len(r)), chip.new((len(r), v.shape[1])))
        for r in blocks
    ]
    for cols in tiles.ranges(len(k), block_k):
        k_tile, v_tile = chip.load(k, cols), chip.load(v, cols)
        for i, tile in enumerate(held):
            states[i] = step(*states[i], tile @ k_tile.T, v_tile)
    for rows, (_, total, mixed) in zip(blocks, states, strict=True):
        chip.store(out, rows, mixed / total[:, None])


def past_the_chip(chip, q, k, v, out, block_q, block_k):
    """Reads what lies in HBM without loading it."""
    raw = [x.chip._tile(x._array) for x in (q, k, v)]
    scores = raw[0] @ raw[1].T / q.shape[1] ** 0.5
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    out._array[:] = (e / e.sum(axis=-1, keepdims=True) @ raw[2])._array
    chip.store(out, range(1), chip.load(out, range(1)))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (written.whole_matrix, ("20000 bytes of SRAM", "All 120 x 170 scores take")),
        (written.all_keys_at_once, ("room for all keys", "Only 16 of them")),
        (all_keys_stay, ("room for all keys", "Only 16 of them")),
        (all_queries_stay, ("room for all queries", "Only 16 of them")),
        (written.keys_outside, ("166720 bytes moved", "queries outside")),
        (written.one_query_at_a_time, ("loaded too often", "each tile of 16 queries")),
    ],
)
def test_right_numbers_over_a_cap_are_refused_and_told_why(answer, said):
    verdict = judge("tiled_attention", answer)
    assert verdict.status == "law"
    assert "The numbers are right, but" in verdict.text
    for words in said:
        assert words in verdict.text


def test_weights_through_hbm_are_seen():
    def tiled_attention(chip, q, k, v, out, block_q, block_k):
        kept = chip.hbm(np.zeros((len(q), len(k))))
        for rows in tiles.ranges(len(q), block_q):
            m, total = chip.new((len(rows), 1), -INF), chip.new((len(rows), 1))
            for cols in tiles.ranges(len(k), block_k):
                s = chip.load(q, rows) @ chip.load(k, cols).T / q.shape[1] ** 0.5
                chip.store(kept, (rows, cols), s)
                m = np.maximum(m, s.max(axis=-1, keepdims=True))
            mixed = chip.new((len(rows), v.shape[1]))
            for cols in tiles.ranges(len(k), block_k):
                e = np.exp(chip.load(kept, (rows, cols)) - m)
                total = total + e.sum(axis=-1, keepdims=True)
                mixed = mixed + e @ chip.load(v, cols)
            chip.store(out, rows, mixed / total)

    verdict = judge("tiled_attention", tiled_attention)
    assert verdict.status == "law"
    assert "room for all 120 x 170 scores" in verdict.text


def test_tiles_that_a_list_holds_are_seen():
    def tiled_attention(chip, q, k, v, out, block_q, block_k):
        held = []
        for rows in tiles.ranges(len(q), block_q):
            tile = chip.load(q, rows)
            state = chip.new(len(rows), -INF), chip.new(len(rows))
            state = (*state, chip.new((len(rows), v.shape[1])))
            for cols in tiles.ranges(len(k), block_k):
                s = tile @ chip.load(k, cols).T / q.shape[1] ** 0.5
                held.append(s)
                state = step(*state, s, chip.load(v, cols))
            chip.store(out, rows, state[2] / state[1][:, None])

    verdict = judge("tiled_attention", tiled_attention)
    assert verdict.status == "law"
    assert "bytes of yours lie on the chip at once" in verdict.text


def narrow_keys_stay(chip, q, k, v, out, block_q, block_k):
    """All keys on the chip, in float32: room enough for 170 of 8 numbers."""
    keys, values = (chip.load(x, dtype=np.float32) for x in (k, v))
    for rows in tiles.ranges(len(q), block_q):
        tile = chip.load(q, rows) / q.shape[1] ** 0.5
        state = chip.new(len(rows), -INF), chip.new(len(rows))
        state = (*state, chip.new((len(rows), v.shape[1])))
        for c in range(0, len(k), block_k):
            cols = slice(c, c + block_k)
            state = step(*state, tile @ keys[cols].T, values[cols])
        chip.store(out, rows, state[2] / state[1][:, None])


def narrow_queries_stay(chip, q, k, v, out, block_q, block_k):
    """Keys outside, and the states of all queries on the chip in float32."""
    blocks, narrow = tiles.ranges(len(q), block_q), np.float32
    held = [chip.load(q, rows, dtype=narrow) for rows in blocks]
    states = [
        (
            chip.new(len(r), -INF, narrow),
            chip.new(len(r), 0, narrow),
            chip.new((len(r), v.shape[1]), 0, narrow),
        )
        for r in blocks
    ]
    for cols in tiles.ranges(len(k), block_k):
        k_tile, v_tile = (chip.load(x, cols, dtype=narrow) for x in (k, v))
        for i, tile in enumerate(held):
            scores = tile @ k_tile.T / q.shape[1] ** 0.5
            states[i] = step(*states[i], scores, v_tile)
    for rows, (_, total, mixed) in zip(blocks, states, strict=True):
        chip.store(out, rows, mixed / total[:, None])


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (narrow_keys_stay, "room for all keys. Only 4 of them"),
        (narrow_queries_stay, "room for all queries. Only 5 of them"),
    ],
)
def test_float32_makes_no_room_for_all(answer, said):
    verdict = judge("tiled_attention", answer)
    assert verdict.status == "law"
    assert said in verdict.text
    first = replace(get("tiled_attention"), laws=get("tiled_attention").laws[:2])
    assert judge_function(first, answer).passed  # what the third law is for


def all_in_numpy(q, k, v):
    scores = q @ k.T / q.shape[1] ** 0.5
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ v


def through_scratch(chip, q, k, v, out, block_q, block_k):
    """Stores q, k and v into arrays of its own, and reads those without the chip."""
    own = [np.zeros(x.shape) for x in (q, k, v)]
    for x, array in zip((q, k, v), own, strict=True):
        place = chip.hbm(array, "scratch")
        for rows in tiles.ranges(len(x), block_q):
            chip.store(place, rows, chip.load(x, rows))
    found = chip.hbm(all_in_numpy(*own))
    for rows in tiles.ranges(len(q), block_q):
        chip.store(out, rows, chip.load(found, rows))


def through_a_callback(chip, q, k, v, out, block_q, block_k):
    """Keeps the rows that NumPy hands to a function."""
    own = []
    for x in (q, k, v):
        kept = []
        for rows in tiles.ranges(len(x), block_q):
            tile = chip.load(x, rows)
            np.apply_along_axis(lambda row, to=kept: to.append(row) or 0.0, 1, tile)
        own.append(np.array(kept))
    found = iter(all_in_numpy(*own))
    for rows in tiles.ranges(len(q), block_q):
        room = chip.new((len(rows), v.shape[1]))
        chip.store(out, rows, np.apply_along_axis(lambda _: next(found), 1, room))


def through_objects(chip, q, k, v, out, block_q, block_k):
    """Numbers of Python, which no chip counts."""
    own = []
    for x in (q, k, v):
        tile = chip.load(x).astype(object)
        rows, columns = tile.shape
        own.append([[tile[i, j] for j in range(columns)] for i in range(rows)])
    found = all_in_numpy(*(np.array(x, dtype=float) for x in own)).tolist()
    for rows in tiles.ranges(len(q), block_q):
        tile = chip.new((len(rows), v.shape[1]))
        tile[:] = found[rows.start : rows.stop]
        chip.store(out, rows, tile)


def meters_turned_back(chip, q, k, v, out, block_q, block_k):
    written.whole_matrix(chip, q, k, v, out, block_q, block_k)
    chip.peak = 1000


@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [
        (through_scratch, "differs", "nothing but zeros"),
        (through_a_callback, "raised", "a tile lies on the chip"),
        (through_objects, "raised", "of Python's own objects"),
        (meters_turned_back, "raised", "chip.peak can be read, but not set"),
    ],
)
def test_no_way_round_the_meters(answer, status, said):
    verdict = judge("tiled_attention", answer)
    assert verdict.status == status, verdict.text
    assert said in verdict.text


def test_a_kernel_may_read_the_meters_and_call_a_function_for_each_row():
    def tiled_attention(chip, q, k, v, out, block_q, block_k):
        assert repr(chip).startswith("Chip(sram_bytes=None, read=0")
        for rows in tiles.ranges(len(q), block_q):
            tile = chip.load(q, rows) / q.shape[1] ** 0.5
            state = chip.new(len(rows), -INF), chip.new(len(rows))
            state = (*state, chip.new((len(rows), v.shape[1])))
            for cols in tiles.ranges(len(k), block_k):
                scores = tile @ chip.load(k, cols).T
                top = np.apply_along_axis(np.max, 1, scores)
                m = np.maximum(state[0], top)
                e, shrink = np.exp(scores - m[:, None]), np.exp(state[0] - m)
                mixed = shrink[:, None] * state[2]
                mixed = mixed + np.einsum("ij,jd->id", e, chip.load(v, cols))
                state = m, shrink * state[1] + np.einsum("ij->i", e), mixed
            chip.store(out, rows, state[2] / state[1][:, None])
        assert 0 < chip.in_use < chip.peak
        assert chip.read > 0

    verdict = judge("tiled_attention", tiled_attention)
    assert verdict.passed, verdict.text


@pytest.mark.parametrize(
    ("source", "status", "said"),
    [
        ("return 1", "raised", "nothing was written into out"),
        ("return chip.load(q) @ chip.load(k).T", "raised", "chip.store"),
        ("scores = q @ k.T", "raised", "lies in HBM"),
        ("out[0] = 1", "raised", "chip.store copies a tile"),
        ("chip.store(out, None, np.zeros(out.shape))", "raised", "not on the chip"),
        ("x = chip.load(q) + np.zeros(3)", "raised", "neither HBM nor the chip"),
        ("chip.store(out, None, chip.load(q) @ chip.load(v))", "raised", ""),
        ("while True: pass", "timeout", ""),
    ],
)
def test_slips_with_the_chip(source, status, said):
    head = "def tiled_attention(chip, q, k, v, out, block_q, block_k):\n    "
    space = {"np": np, "tiles": tiles}
    exec(head + source, space)
    verdict = judge_function(
        get("tiled_attention"), space["tiled_attention"], limit=0.2
    )
    assert verdict.status == status
    assert said in verdict.text


def test_a_kernel_with_other_arguments_is_told():
    verdict = judge("tiled_attention", lambda q, k, v, block_q, block_k: q)
    assert verdict.status == "type"
    assert "chip, q, k, v, out, block_q, block_k" in verdict.text


# --- the hook ----------------------------------------------------------------------
def test_what_runs_a_kernel_gives_numbers_and_a_program():
    x = np.eye(2)
    run, program = kernels.on_a_chip(written.tiled), Program()
    np.testing.assert_allclose(run(x, x, x, 1, 2)[0], [0.67, 0.33], atol=0.005)
    out = run(x, x, x, 1, 2, program)
    assert out.tolist() == run(x, x, x, 1, 2).tolist()
    chip = program.again({"q": x, "k": x, "v": x, "out": np.zeros((2, 2))})
    assert (chip.traffic, chip.written) == (32 + 2 * 64 + 32, 32)  # q, k, v twice, out
    assert chip.peak > 0


def test_an_exercise_knows_the_arguments_of_its_cases_and_of_its_answers():
    kernel, plain = get("tiled_attention"), get("online_softmax")
    case = kernel.table().cases[0]
    assert kernel.names[:5] == ("q", "k", "v", "block_q", "block_k")
    assert len(case.args) == 5
    assert len(kernel.handed(case)) == 7
    assert plain.names == ("m", "total", "mixed", "scores", "v")
    assert plain.handed(plain.table().cases[0]) == plain.table().cases[0].args
    assert plain.called(step) is step


def test_without_its_laws_the_untiled_kernel_would_pass():
    lax = replace(get("tiled_attention"), laws=())
    assert judge_function(lax, written.whole_matrix).passed
    for sizes, sram in ((MEASURED, 20_000), (OTHERWISE, 16_500), (WIDE, 13_000)):
        strict = replace(lax, laws=(kernels.within_caps(sizes, sram),))
        for wrong in (written.whole_matrix, all_keys_stay, all_queries_stay):
            assert judge_function(strict, wrong).status == "law"
        assert judge_function(strict, written.keys_outside).status == "law"
        for right in (written.tiled, every_stage_named):
            assert judge_function(strict, right).passed
        roomy = replace(lax, laws=(kernels.within_caps(sizes, 10**6),))
        assert judge_function(roomy, written.whole_matrix).passed


def test_what_gets_past_the_chip_is_seen():
    law = kernels.within_caps(MEASURED, 10**6)
    run = kernels.on_a_chip(past_the_chip)
    assert "another way than chip.load" in law.broken(lambda *args: (run(*args),))


def test_laws_leave_wrong_numbers_to_others():
    wrong = changed("tiled_attention", (" / q.shape[1] ** 0.5", ""))
    run = kernels.on_a_chip(wrong)
    law = kernels.within_caps(MEASURED, 1)
    assert not law.broken(lambda *args: (run(*args),))
    right = kernels.on_a_chip(written.tiled)
    assert "bytes of yours" in (law.broken(lambda *args: (right(*args),)) or "")
