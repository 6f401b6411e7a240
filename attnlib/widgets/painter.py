"""`mask_painter`: a workbench whose one input is a mask."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from attnlib.widgets.workbench import Arrays, Workbench


def mask_painter(
    mask: npt.ArrayLike,
    compute: Callable[[npt.NDArray[np.bool_]], Mapping[str, npt.ArrayLike]],
    *,
    rows: Sequence[object] | None = None,
    columns: Sequence[object] | None = None,
    presets: Mapping[str, npt.ArrayLike] | None = None,
    labels: Mapping[str, Sequence[object]] | None = None,
    per_row: Sequence[int] | None = None,
    title: str,
    sentence: str,
) -> Workbench:
    """A mask to paint, with everything that follows from it.

    Args:
        mask: boolean (n_q, n_k), True = may look.
        compute: gets the mask, returns results by name, such as weights and out.
        rows, columns: labels of queries and keys, also for results of that size.
        presets: name of a button -> a mask.
        labels: name of a result -> labels of its columns, where they are no keys.
        per_row: how many results stand in each row; left out, as many as fit.
        title: stands above the figure.
        sentence: what the figure shows, in one line; it holds without the picture.

    Raises:
        ShapeError, ValueError: as `Workbench`.

    >>> import numpy as np
    >>> mask_painter(np.eye(2) > 0, lambda m: {"weights": m / m.sum(-1, keepdims=True)},
    ...              title="Paint", sentence="Each token sees itself.")
    Each token sees itself.
    """
    start = np.asarray(mask, dtype=np.bool_)

    def of_inputs(arrays: Arrays) -> Mapping[str, npt.ArrayLike]:
        return compute(arrays["mask"].astype(np.bool_))

    shapes = {"mask": start.shape}
    shapes |= {name: np.shape(a) for name, a in compute(start.copy()).items()}
    n_q, n_k = start.shape
    return Workbench(
        {"mask": start},
        of_inputs,
        rows={n: rows for n, s in shapes.items() if rows and s[:1] == (n_q,)},
        columns={n: columns for n, s in shapes.items() if columns and s == (n_q, n_k)}
        | dict(labels or {}),
        presets={name: {"mask": m} for name, m in (presets or {}).items()},
        watch="mask",
        per_row=per_row,
        title=title,
        sentence=sentence,
    )
