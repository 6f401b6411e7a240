# mypy: allow-untyped-defs, allow-untyped-calls
"""The exercises of lesson 11: what does attention cost?"""

import numpy as np

from attnlib import attention, masks
from attnlib.clinic.families.cache_size import KV_BYTES
from attnlib.clinic.families.cached_keys import CACHED_STEP
from attnlib.clinic.families.shared_keys import GROUPED_ATTENTION
from attnlib.clinic.probes import table
from attnlib.clinic.probes_cost import (
    cached_step_cases,
    grouped_attention_cases,
    kv_bytes_cases,
)
from attnlib.exercises.exercise import (
    Exercise,
    Law,
    Misconception,
    Part,
    ValueExercise,
)
from attnlib.exercises.laws import CLOSE, batch_independent


def kv_bytes(n_layers, n_heads, n_kv_heads, d_k, n, batch, window):
    """Count the bytes that the caches of a model take, in float16.

    n_heads: query heads; n_kv_heads of them have keys and values
    d_k: numbers in a key of one head, and in a value
    n: tokens in each text so far   batch: how many texts
    window: how many tokens a query sees, itself included, or None for all;
        older ones are dropped
    returns: the bytes for all layers and texts together
    """
    kept = n if window is None else min(n, window)
    return 2 * n_layers * n_kv_heads * d_k * 2 * kept * batch


def cached_step(q, k, v, old_k, old_v):
    """Let new tokens look at a cache and at themselves, causally.

    q, k: of the new tokens, (..., n_new, d_k)   v: (..., n_new, d_v)
    old_k, old_v: of all tokens before, (..., n_old, d_k) and (..., n_old, d_v)
    n_old may be 0; the new tokens come right after the old ones
    returns: out (..., n_new, d_v), and what the next call needs: all keys
        (..., n_old + n_new, d_k), all values (..., n_old + n_new, d_v)
    """
    keys = np.concatenate([old_k, k], axis=-2)
    values = np.concatenate([old_v, v], axis=-2)
    look = masks.causal(q.shape[-2], keys.shape[-2])
    stages = attention.scaled_dot_product(q, keys, values, look)
    return stages.out, keys, values


def grouped_attention(q, k, v):
    """Attend with more query heads than key heads, without repeating a key.

    q: (..., n_heads, n_q, d_k)   k: (..., n_kv_heads, n_k, d_k)
    v: (..., n_kv_heads, n_k, d_v)   no mask
    n_heads is a multiple of n_kv_heads; neighbours share a key head
    returns: (..., n_heads, n_q, d_v)
    """
    *batch, n_heads, n_q, d_k = q.shape
    n_kv_heads = k.shape[-3]
    rows = n_heads // n_kv_heads * n_q
    folded = q.reshape(*batch, n_kv_heads, rows, d_k)
    out = attention.scaled_dot_product(folded, k, v).out
    return out.reshape(*batch, n_heads, n_q, v.shape[-1])


_rng = np.random.default_rng(110)
_text = tuple(table(_rng, 3, 6, d) for d in (4, 4, 5))  # q, k, v of 3 heads, 6 tokens
_nothing = (np.zeros((3, 0, 4)), np.zeros((3, 0, 5)))


def pieces_are_the_whole(call):
    """A law: a text read in pieces gives what it gives at once."""
    whole = call(*_text, *_nothing)
    if whole is None or len(whole) != 3:
        return None
    found, kept = [], _nothing
    for start, stop in ((0, 2), (2, 5), (5, 6)):
        step = call(*(a[:, start:stop] for a in _text), *kept)
        if step is None or len(step) != 3:
            return None
        found.append(step[0])
        kept = step[1:]
    for (start, stop), piece in zip(((0, 2), (2, 5), (5, 6)), found, strict=True):
        right = whole[0][:, start:stop]
        if right.shape != piece.shape:
            return None
        apart = float(np.abs(right.astype(float) - piece.astype(float)).max())
        if apart > CLOSE:
            return (
                f"A text of 6 tokens, read in pieces of 2, 3 and 1, and at once: "
                f"tokens {start} to {stop - 1} differ by up to {apart:.3g}."
            )
    return None


_of_heads = (table(_rng, 2, 6, 3, 4), table(_rng, 2, 2, 5, 4), table(_rng, 2, 2, 5, 7))

_GIB = 1024**3
_OF_TOKEN = 2 * 48 * 8 * 128 * 2
_OF_TEXT = _OF_TOKEN * 16_384  # 3 GiB
_FITS = 60 * _GIB // _OF_TEXT  # 20


def _not_so_many(value: float, sentence: str) -> tuple[Misconception, ...]:
    """A wrong number of texts, also with two decimals, and cut to a whole one."""
    numbers = dict.fromkeys((value, round(value, 2), value // 1))
    return tuple(
        Misconception(number, sentence)
        for number in numbers
        if number not in (0, _FITS)
    )


EXERCISES = (
    Exercise(
        "kv_bytes",
        11,
        6,
        kv_bytes,
        kv_bytes_cases,
        (Part("bytes"),),
        KV_BYTES,
        (
            "How many numbers does one token leave in one layer? A key and a value, "
            "for each key head.",
            "Times the layers, times two bytes. Then count the tokens that are kept.",
            "With a window, min(n, window) tokens of each text are kept; without one, "
            "n. `window is None` asks which it is.",
        ),
        "The width of the model, its MLP and its query heads do not matter. That is "
        "why two models of one size can differ by a factor of eight here.",
    ),
    Exercise(
        "cached_step",
        11,
        10,
        cached_step,
        cached_step_cases,
        (
            Part("out", "n_new d_v"),
            Part("keys", "n d_k"),
            Part("values", "n d_v"),
        ),
        CACHED_STEP,
        (
            "The new tokens look at themselves, too. So what has to come first, "
            "joining or attending?",
            "np.concatenate joins, with axis=-2 for the tokens. There are n_new "
            "queries and n_old + n_new keys, and the last query stands beside the last "
            "key.",
            "masks.causal takes two sizes, the queries and all keys; its result goes "
            "into attention.scaled_dot_product as the fourth argument.",
        ),
        "With n_old = 0 this reads a prompt, with n_new = 1 it writes, and between "
        "them it reads in pieces: one rule for all three.",
        (
            Law("pieces give what the whole gives", pieces_are_the_whole),
            batch_independent((*_text, *_nothing), (0, 1, 2, 3, 4)),
        ),
        "out has a row for each new token; keys and values have one for each token.",
    ),
    Exercise(
        "grouped_attention",
        11,
        8,
        grouped_attention,
        grouped_attention_cases,
        (Part("out", "n_heads n_q d_v"),),
        GROUPED_ATTENTION,
        (
            "All rows of queries that look at the same keys can stand below each "
            "other, in one table. Which heads are they?",
            "Neighbours: a plain reshape of q to (..., n_kv_heads, group * n_q, d_k) "
            "puts them below each other. It moves nothing.",
            "attention.scaled_dot_product takes the folded queries with k and v as "
            "they are. Then reshape its .out back; a name with a star, `*batch`, takes "
            "whatever stands in front.",
        ),
        "np.repeat gives the same numbers, and reads every key as many times as there "
        "are heads in a group. Reading is what decoding waits for.",
        (batch_independent(_of_heads, (0, 1, 2)),),
        "q has n_heads tables, k and v have n_kv_heads.",
    ),
    ValueExercise(
        "texts_that_fit",
        11,
        4,
        _FITS,
        (
            "First the bytes of one token: a key and a value, in 48 layers, for the "
            "heads that have keys.",
            "Then those of a text of 16 384 tokens, and then see how often that goes "
            "into 60 * 1024**3.",
            "One token takes 2 * 48 * 8 * 128 * 2 bytes.",
        ),
        "With a key head for each of the 40 query heads it would be 4. Sharing keys is "
        "five times as many customers on one machine.",
        "texts_that_fit = 60 * 1024**3 // (2 * 48 * 8 * 128 * 2 * 16384)",
        (
            Misconception(
                3, "That is how many GiB one text takes. How many texts go into 60?"
            ),
            Misconception(
                19, "Texts of 3 GiB fill 60 GiB without a rest: does one more fit?"
            ),
            Misconception(
                21, "Texts of 3 GiB fill 60 GiB without a rest. Is there room for more?"
            ),
            Misconception(27, "All 80 GiB are counted. 20 are taken by the weights."),
            Misconception(
                60 / 18, "Query heads and key heads are added. Only 8 have keys."
            ),
            *_not_so_many(
                60 / 15, "That is with 40 key heads (M33). Only 8 have keys."
            ),
            *_not_so_many(
                40,
                "Half of a text's bytes are missing: a key and a value, of two bytes.",
            ),
            *_not_so_many(
                80,
                "Two factors of 2 are missing: a key and a value, of two bytes each.",
            ),
            *_not_so_many(10, "That is in float32. Two bytes a number are wanted."),
            Misconception(
                5,
                "Too many bytes for a text, or too much room: 8 heads have keys, with "
                "two bytes a number, and 60 GiB are left.",
            ),
            *_not_so_many(
                80 / 15,
                "That is with 40 key heads, and in all 80 GiB. Only 8 have keys.",
            ),
            *_not_so_many(2, "That is with 40 key heads and in float32, or in bits."),
            *_not_so_many(2.5, "That is in bits. A number takes two bytes."),
            *_not_so_many(1, "That is with 40 key heads and in float64."),
            *_not_so_many(
                60 / 120, "Query heads and key heads are multiplied. Only 8 have keys."
            ),
            *_not_so_many(
                8, "That is with 40 key heads, and a factor of 2 is missing."
            ),
            *_not_so_many(
                32, "The size of a group, 5, is taken for the number of key heads, 8."
            ),
            *_not_so_many(
                40 / 3,
                "Queries are counted as well, or four bytes a number in all 80 GiB.",
            ),
            *_not_so_many(960, "One layer is counted. Each of the 48 has a cache."),
            *_not_so_many(160, "One key head is counted. There are 8."),
            *_not_so_many(
                327680, "That is how many tokens fit. A text has 16 384 of them."
            ),
            *_not_so_many(
                80 / 3, "All 80 GiB are counted. 20 are taken by the weights."
            ),
            *_not_so_many(
                160 / 3,
                "All 80 GiB are counted, and half of a text's bytes are missing.",
            ),
            *_not_so_many(
                100 / 3, "The weights take 20 of the 80 GiB; they bring no room."
            ),
            *_not_so_many(60e9 / _OF_TEXT, "A GiB is 1024³ bytes. 10⁹ bytes are a GB."),
            *_not_so_many(
                60 * _GIB / 16_000 / _OF_TOKEN, "A text has 16 384 tokens, not 16 000."
            ),
            *_not_so_many(
                60, "That is how many GiB are left. How many does one text take?"
            ),
            *_not_so_many(
                _OF_TEXT, "That is how many bytes one text takes. How many texts fit?"
            ),
            *_not_so_many(
                _OF_TOKEN,
                "That is how many bytes one token takes. How many texts fit?",
            ),
            *_not_so_many(
                1 / 20, "That is the share of one text. How many of it go into 1?"
            ),
        ),
        tolerance=1e-6,
        form="One whole number is wanted.",
    ),
)
