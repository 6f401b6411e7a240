"""M26 to M31: where a token stands."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Faults
from attnlib.clinic.diseases.disease import Disease, Shown
from attnlib.clinic.diseases.measured import drawn
from attnlib.clinic.families.learned import learned_positions, padded_positions
from attnlib.clinic.families.positions import rope, sinusoidal
from attnlib.clinic.families.slopes import alibi_slopes

Float = npt.NDArray[np.floating]
HALF = frozenset(["layout_always_half"])


def _convention() -> Shown:
    (q, k) = drawn((1, 6), (4, 6))
    places = np.arange(4)

    def scores(faults: Faults, order: list[int]) -> Float:
        asked, keys = (np.repeat(q, 4, axis=0)[:, order], k[:, order])
        turned = rope(keys, places, "interleaved", faults=faults)
        still = rope(asked, 0 * places, "interleaved", faults=faults)
        return np.asarray((still * turned).sum(-1))

    plain, dealt = [*range(6)], [0, 2, 4, 1, 3, 5]
    return Shown(
        "Scores of a query at position 0 with keys at positions 0 to 3, d_k = 6; then "
        "with the features of both put in the order 0 2 4 1 3 5.",
        (
            ("scores", scores(RIGHT, plain), scores(HALF, plain)),
            ("after the permutation", scores(RIGHT, plain), scores(HALF, dealt)),
        ),
    )


def _offset() -> Shown:
    q, k = drawn((5, 6), (5, 6))
    places = np.arange(5)
    keys = rope(k, places, "half")

    def last(faults: Faults) -> Float:
        return np.asarray(keys @ rope(q[4:], places[4:], "half", faults=faults)[0])

    full = (keys @ rope(q, places, "half").T)[:, 4]
    return Shown(
        "Five tokens. The last one comes alone, with the other keys in a cache; its "
        "position is counted anew from 0.",
        (
            ("its scores in the full pass", full, full),
            ("its scores alone", last(RIGHT), last(frozenset(["positions_ignored"]))),
        ),
    )


def _left_padding() -> Shown:
    real = np.array([[False, False, True, True, True]])
    right, wrong = (
        np.asarray(padded_positions(real, faults=frozenset(keys)), int)[0]
        for keys in ((), ("padded_by_place",))
    )
    table = sinusoidal(5, 6)
    alone = table[:3]
    return Shown(
        "A sentence of three tokens behind two fillers, with a table of positions.",
        (
            ("positions of the real tokens", right[2:], wrong[2:]),
            (
                "how far its rows are from those of the sentence alone",
                np.abs(table[right[2:]] - alone).max(),
                np.abs(table[wrong[2:]] - alone).max(),
            ),
        ),
    )


def _table() -> Shown:
    rows = np.arange(8.0)[:, None]
    right = learned_positions(rows, 4, offset=2)
    missing = frozenset(["learned_offset_missing"])
    wrong = learned_positions(rows, 4, offset=2, faults=missing)
    return Shown(
        "A table of learned positions whose first two rows are not positions, as in "
        "OPT. Each row holds its own number.",
        (("rows that positions 0 to 3 read", right[:, 0], wrong[:, 0]),),
    )


def _sinusoid() -> Shown:
    fault = frozenset(["frequency_by_column"])
    products = [t @ t.T for t in (sinusoidal(9, 6), sinusoidal(9, 6, faults=fault))]
    right, wrong = (p[[0, 3, 6], [2, 5, 8]] for p in products)
    return Shown(
        "Nine positions, six columns: products of rows that are two positions apart.",
        (("rows 0 and 2, 3 and 5, 6 and 8", right, wrong),),
    )


def _slopes() -> Shown:
    formula = frozenset(["slopes_by_formula"])
    shifted = frozenset(["slopes_from_one"])
    return Shown(
        "Slopes for 6 heads, and for 4.",
        (
            (
                "6 heads, one formula for all counts",
                alibi_slopes(6),
                alibi_slopes(6, faults=formula),
            ),
            (
                "4 heads, the exponent begins at 0",
                alibi_slopes(4),
                alibi_slopes(4, faults=shifted),
            ),
        ),
    )


DISEASES = (
    Disease(
        "M26",
        "RoPE pairs other features than the weights expect",
        "part",
        "A real model's first token is right, and the text falls apart behind it.",
        "Scores with keys at growing distance. At distance 0 they agree. Beyond, they "
        "differ, and agree again once the features of q and k are permuted.",
        "There are two conventions: neighbours form a pair, or feature i and feature "
        "i + d/2 do. Both are right. The weights were trained with one of them.",
        (
            "At which position does the first difference show?",
            "Which two features form pair 0 in your code, and in the model's?",
            "Change the layout, or permute the columns of W_q and W_k once.",
        ),
        _convention,
    ),
    Disease(
        "M27",
        "RoPE turns a token by the wrong position, or twice, or not at all",
        "part",
        "Generation with a cache differs from a full pass.",
        "The scores of the last token, alone with a cache, and in the full pass. They "
        "should be the same. And all positions may be shifted by 100 without effect.",
        "A token is turned once, by its own position in the whole text, before its key "
        "goes into the cache. Queries and keys are turned, values never.",
        (
            "At which position does a token stand that comes alone?",
            "Is a key in the cache turned already?",
            "Hand the offset, the length of the cache, to RoPE.",
        ),
        _offset,
    ),
    Disease(
        "M28",
        "With padding on the left, positions are counted from the fillers",
        "library",
        "A short sentence gets another answer in a batch than alone.",
        "The same sentence alone and behind fillers. Its positions should be the same.",
        "Position 0 is the first real token. Fillers in front push all others back "
        "unless the positions are counted over the real tokens.",
        (
            "At which position does the first real token stand?",
            "What does a running sum of the mask give?",
            "positions = cumsum(real) - 1, row by row.",
        ),
        _left_padding,
    ),
    Disease(
        "M29",
        "A table of learned positions begins at another row",
        "part",
        "A real model's outputs are slightly wrong, everywhere.",
        "Which row position 0 reads. In OPT it is row 2, not row 0.",
        "Some models kept their first rows for other purposes. This is history, and "
        "no formula tells you: the model's own code does.",
        (
            "Has the table as many rows as the model has positions?",
            "Which row belongs to the first token in the model's own code?",
            "Add the offset of this model before you look up the table.",
        ),
        _table,
    ),
    Disease(
        "M30",
        "The sinusoid has a wrong frequency",
        "part",
        "Nothing fails. It trains, with positions that are not what they claim to be.",
        "Products of rows that are equally far apart. They should be equal. Here they "
        "depend on where the rows stand.",
        "Columns 2i and 2i + 1 are sine and cosine of one angle, so they share one "
        "frequency, base^(-2i/d). Then rows a fixed distance apart have a fixed "
        "product.",
        (
            "Which columns share a frequency?",
            "What is sin a sin b + cos a cos b?",
            "The exponent uses column // 2, twice that over d.",
        ),
        _sinusoid,
    ),
    Disease(
        "M31",
        "ALiBi's slopes are wrong",
        "part",
        "Nothing fails. A trained model loads, and answers differently.",
        "The list of slopes, for a count that is a power of two and for one that is "
        "not.",
        "For p = 2^m heads the slopes are 2^(-8/p), 2^(-16/p), and so on. For other "
        "counts the reference takes the list of the power of two below, and then every "
        "other slope of twice as many heads.",
        (
            "What is the first slope of 8 heads?",
            "Is your number of heads a power of two?",
            "Append slopes 1, 3, 5, ... of the list for 2p heads.",
        ),
        _slopes,
    ),
)
