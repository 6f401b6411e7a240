"""`Workbench`: matrices that can be edited, and every matrix that follows from them.

The browser sends the edited inputs, the kernel calls `compute`, and the browser
repaints the tables. Nothing is kept in the kernel between two edits: each message
holds all inputs, so a lost one does no harm. The browser sends the next edit only
when the answer to the last one has come, and then only the newest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from uuid import uuid4

import anywidget
import numpy as np
import numpy.typing as npt
import traitlets

from attnlib.explorers.cells import Colour
from attnlib.explorers.explorer import asset
from attnlib.explorers.numbers import one_line, table
from attnlib.explorers.panels import Matrix, in_rows, legend
from attnlib.explorers.parts import matrix
from attnlib.shapes import ShapeError
from attnlib.widgets.assets import BENCH_CSS, BENCH_JS

Arrays = dict[str, npt.NDArray[np.generic]]
Compute = Callable[[Arrays], Mapping[str, npt.ArrayLike]]


class _View(anywidget.AnyWidget):
    """What the browser gets once. Edits and results travel as messages."""

    _esm = BENCH_JS
    key = traitlets.Unicode().tag(sync=True)
    page = traitlets.Unicode().tag(sync=True)
    spec = traitlets.Dict().tag(sync=True)


class Workbench:
    """Editable matrices, and the matrices that `compute` makes of them.

    Args:
        inputs: name -> (rows, columns). Boolean arrays become on/off cells, all
            others cells for a number.
        compute: gets the inputs as arrays by name, returns results by name; called
            in the kernel after every edit. Each result has one or two axes.
        rows, columns: name -> labels, for inputs and results alike.
        colours: name -> "weights", "signed", "mask" or "none". Left out: "mask" for
            booleans, "weights" for the name weights, "signed" for the rest.
        presets: name of a button -> the inputs it sets, by name.
        watch: the name of a boolean input whose rows can be chosen: what the row
            sees lights up, and the row stands out in every table with as many rows.
        digits: decimals of the results.
        per_row: how many results stand in each row, such as (3, 3, 1); left out, as
            many as fit.
        title: stands above the figure.
        sentence: what the figure shows, in one line; it holds without the picture.

    Raises:
        ShapeError: an input or result with more than two axes, labels that do not
            fit, a preset of another shape.
        ValueError: a preset or `watch` that names no input.

    >>> import numpy as np
    >>> bench = Workbench({"x": np.eye(2)}, lambda a: {"twice": 2 * a["x"]},
    ...                   title="Twice", sentence="Each number is doubled.")
    >>> bench.answer({"x": [1, 2, 3, 4]})["results"]["twice"]
    [2, 4, 6, 8]
    """

    def __init__(
        self,
        inputs: Mapping[str, npt.ArrayLike],
        compute: Compute,
        *,
        rows: Mapping[str, Sequence[object]] | None = None,
        columns: Mapping[str, Sequence[object]] | None = None,
        colours: Mapping[str, Colour] | None = None,
        presets: Mapping[str, Mapping[str, npt.ArrayLike]] | None = None,
        watch: str | None = None,
        digits: int = 2,
        per_row: Sequence[int] | None = None,
        title: str,
        sentence: str,
    ) -> None:
        self.sentence = one_line(sentence)
        self.title = title
        self._compute = compute
        self._rows, self._columns = rows or {}, columns or {}
        self._colours, self._digits = colours or {}, digits
        self._start: Arrays = {name: _own(name, a) for name, a in inputs.items()}
        self._presets = self._checked_presets(presets or {})
        if watch is not None and (
            watch not in self._start or self._start[watch].dtype != np.bool_
        ):
            raise ValueError(f"watch={watch!r} names no boolean input.")
        self._watch = watch
        self._inputs = {n: self._panel(n, a) for n, a in self._start.items()}
        self._shapes: dict[str, tuple[int, ...]] = {}
        results = self._results({n: a.copy() for n, a in self._start.items()})
        self._shapes = {name: np.shape(a) for name, a in results.items()}
        self._outputs = {n: self._panel(n, a) for n, a in results.items()}
        drawn = [panel.html() for panel in self._outputs.values()]
        self._drawn = in_rows(drawn, per_row, title)
        self._view: _View | None = None
        self._replaced = False
        self.display_id = uuid4().hex  # by which the kernel may replace the output

    def __repr__(self) -> str:
        return self.sentence

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> dict[str, object]:
        self._replaced = False
        if self._view is None:
            self._view = _View(key=self.display_id, page=self.html, spec=self.spec)
            self._view.on_msg(self._on_message)
        return {
            "text/plain": self.sentence,
            "text/html": self.html,
            "application/vnd.jupyter.widget-view+json": {
                "version_major": 2,
                "version_minor": 0,
                "model_id": self._view.model_id,
            },
        }

    @property
    def html(self) -> str:
        """The whole bench as plain tables; the script makes the inputs editable."""
        inputs, results = self._inputs.values(), self._outputs.values()
        before = in_rows([panel.html() for panel in inputs], None, self.title)
        return (
            '<div class="attn attnlib-workbench" role="group" '
            f'aria-label="{escape(self.title)}">'
            f"<style>{asset('style.css')}{BENCH_CSS}</style>"
            f'<p class="attn-title"><b>{escape(self.title)}</b></p>'
            '<p class="attn-off">A picture. Run this cell to edit it.</p>'
            f'<div class="attn-in" style="margin-bottom:16px">{before}</div>'
            f'<div class="attn-out">{self._drawn}</div>{legend([*inputs, *results])}'
            "</div>"
        )

    @property
    def spec(self) -> dict[str, object]:
        """What the script has to know besides the tables."""
        return {
            "inputs": [
                {
                    "name": name,
                    "kind": "bool" if array.dtype == np.bool_ else "number",
                    "values": _plain(array),
                }
                for name, array in self._start.items()
            ],
            "outputs": list(self._outputs),
            "presets": {
                name: {key: _plain(array) for key, array in preset.items()}
                for name, preset in self._presets.items()
            },
            "watch": self._watch,
        }

    def answer(self, values: Mapping[str, Sequence[float]]) -> dict[str, object]:
        """Compute all results from flat lists of inputs, as the browser sends them.

        Args:
            values: name -> all numbers of the input, row by row.

        Returns:
            {"results": name -> flat numbers} or {"error": one sentence}.
        """
        try:
            arrays = {
                name: np.asarray(values[name], dtype=first.dtype).reshape(first.shape)
                for name, first in self._start.items()
            }
            results = self._results(arrays)
            panels = {name: self._panel(name, a) for name, a in results.items()}
        except Exception as error:
            words = str(error).strip().split("\n")[0] or "no further words"
            return {"error": f"{type(error).__name__}: {words}"}
        return {
            "results": {name: list(panel.values) for name, panel in panels.items()},
            "maxima": {name: panel.maximum for name, panel in panels.items()},
        }

    def _results(self, arrays: Arrays) -> dict[str, npt.ArrayLike]:
        with np.errstate(all="ignore"):  # inf and NaN show in the table
            results = dict(self._compute(arrays))
        shapes = {name: np.shape(array) for name, array in results.items()}
        if self._shapes and shapes != self._shapes:
            raise ShapeError(
                f"compute returned the shapes {shapes}, but at first {self._shapes}; "
                "editing changes numbers, not shapes."
            )
        return results

    def _panel(self, name: str, values: npt.ArrayLike) -> Matrix:
        array = table(name, np.atleast_2d(np.asarray(values)))
        if array.dtype == np.bool_:
            usual: Colour = "mask"
        else:
            usual = "weights" if name == "weights" else "signed"
        return matrix(
            array,
            rows=self._rows.get(name),
            columns=self._columns.get(name),
            title=name,
            digits=self._digits,
            colour=self._colours.get(name, usual),
        )

    def _checked_presets(
        self, presets: Mapping[str, Mapping[str, npt.ArrayLike]]
    ) -> dict[str, Arrays]:
        checked: dict[str, Arrays] = {}
        for button, preset in presets.items():
            checked[button] = {}
            for name, values in preset.items():
                if name not in self._start:
                    raise ValueError(
                        f"preset {button!r} sets {name!r}, but the inputs are "
                        f"{', '.join(self._start)}."
                    )
                first = self._start[name]
                array = np.asarray(values, dtype=first.dtype)
                if array.shape != first.shape:
                    raise ShapeError(
                        f"preset {button!r} sets {name} with shape {array.shape}, but "
                        f"{name} has shape {first.shape}."
                    )
                checked[button][name] = array
        return checked

    def _on_message(self, view: _View, content: object, buffers: object) -> None:
        if isinstance(content, dict) and content.get("kind") == "edit":
            reply = self.answer(content.get("inputs", {}))
            view.send({"kind": "reply", "id": content.get("id"), **reply})
        # A widget that Lab draws twice says so twice; a second replacement would take
        # the tables away under the hand that edits them.
        drawn = isinstance(content, dict) and content.get("kind") == "drawn"
        if drawn and not self._replaced:
            self._replaced = True
            self._become_html()

    def _become_html(self) -> None:
        """Put the tables and the script that finds the model in the widget's place."""
        from IPython.display import display

        find = f"(window.attnlibBenches || new Map()).get('{self.display_id}')"
        script = (
            f"<script>{{const here = document.currentScript.closest('.attn');"
            f"const begin = {find}; if (begin) begin(here);}}</script></div>"
        )
        page = self.html.removesuffix("</div>") + script
        bundle = {"text/plain": self.sentence, "text/html": page}
        display(bundle, raw=True, display_id=self.display_id, update=True)  # type: ignore[no-untyped-call]


def _own(name: str, values: npt.ArrayLike) -> npt.NDArray[np.generic]:
    array = table(name, values)
    return array.copy() if array.dtype == np.bool_ else array.astype(np.float64)


def _plain(array: npt.NDArray[np.generic]) -> list[float]:
    """All numbers of an input, at most 6 digits each: people type shorter ones."""
    return [float(f"{value:.6g}") for value in array.astype(float).ravel()]
