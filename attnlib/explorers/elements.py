"""`follow_tokens`: follow numbered elements from table to table, coloured by token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from attnlib.explorers.explorer import Explorer, follow
from attnlib.explorers.parts import matrix
from attnlib.shapes import ShapeError


def follow_tokens(
    tables: Mapping[str, npt.ArrayLike],
    tokens: Sequence[object],
    *,
    title: str,
    sentence: str,
    start: tuple[int, int] = (0, 0),
    per_row: Sequence[int] | None = None,
) -> Explorer:
    """`follow`, for tables that hold the numbers of their elements.

    Each element of the first table has its own number, as in
    `np.arange(x.size).reshape(x.shape)`, and each of its rows is a token. Wherever an
    element goes, it keeps the colour of its token.

    Args:
        tables: name -> whole numbers of two axes; the first table holds them all.
        tokens: names of the rows; a table with as many rows has them too.
        title: stands above the figure.
        sentence: what the figure shows, in one line; it holds without the picture.
        start: the cell of the first table chosen at first, (row, column).
        per_row: how many tables stand in each row, such as (1, 2, 1); left out, as
            many as fit.

    Raises:
        ShapeError: a table without two axes, or as `follow`.
        ValueError: a number that is not in the first table, or twice in it.

    >>> import numpy as np
    >>> from attnlib.explorers import follow_tokens
    >>> x = np.arange(8).reshape(2, 4)
    >>> follow_tokens({"x": x, "left": x[:, :2]}, ["cat", "dog"], title="T",
    ...               sentence="The left half of each row.")
    The left half of each row.
    """
    arrays = {name: np.asarray(ids) for name, ids in tables.items()}
    for name, ids in arrays.items():
        if ids.ndim != 2 or ids.dtype.kind not in "iu":
            raise ShapeError(
                f"{name} needs whole numbers on two axes to be followed, but has "
                f"{ids.dtype} of shape {ids.shape}."
            )
    first, whole = next(iter(arrays.items()))
    token_of = {int(i): row for row, ids in enumerate(whole) for i in ids}
    if len(token_of) != whole.size:
        raise ValueError(f"{first} has a number twice, so it names no single element.")
    panels = []
    for name, ids in arrays.items():
        if strange := set(ids.ravel().tolist()) - set(token_of):
            raise ValueError(
                f"{name} holds {min(strange)}, which is no element of {first}."
            )
        groups = np.reshape([token_of[i] for i in ids.ravel().tolist()], ids.shape)
        named = tokens if len(ids) == len(tokens) else None
        panels.append(
            matrix(
                ids, title=name, rows=named, digits=0, colour="groups", groups=groups
            )
        )
    return follow(
        panels,
        list(arrays.values()),
        title=title,
        sentence=sentence,
        start=start,
        per_row=per_row,
    )
