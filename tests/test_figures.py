import json

import numpy as np
import pytest

from attnlib.figures import bars, curves, heat, histograms, show
from attnlib.figures.chart import MIME, plain
from attnlib.shapes import ShapeError

RNG = np.random.default_rng(3)
X = [1, 2, 4, 8]
WORDS = {"title": "T", "sentence": "It says so."}
AXES = {"x_title": "x", "y_title": "y"}


def a_curve(**more):
    lines = {"raw": np.sqrt(X), "divided": np.ones(4)}
    return curves(X, lines, **WORDS, **AXES, **more)


FIGURES = {
    "curves": lambda: a_curve(bands={"raw": (np.zeros(4), np.full(4, 3.0))}),
    "one curve": lambda: curves(X, {"raw": [1, np.nan, 2, 3]}, **WORDS, **AXES),
    "logarithms": lambda: a_curve(log_x=True, log_y=True),
    "bars": lambda: bars("ab", {"u": [1, 2], "w": [-1, 0.5]}, **WORDS, y_title="y"),
    "small heat": lambda: heat(RNG.random((3, 5)), **WORDS),
    "large heat": lambda: heat(RNG.normal(size=(40, 30)), signed=True, **WORDS),
    "holes": lambda: heat([[np.nan, -np.inf], [1.0, 2.0]], **WORDS),
    "histograms": lambda: histograms(
        np.linspace(-1, 1, 5), {"a": [1, 2, 3, 4], "b": [0.1] * 4}, **WORDS, x_title="x"
    ),
}


@pytest.mark.parametrize("name", FIGURES)
def test_plotly_accepts_every_chart(name):
    drawn = FIGURES[name]().to_plotly()  # plotly checks each name and value
    assert drawn.layout.title.text == "T"


@pytest.mark.parametrize("name", FIGURES)
def test_the_bundle_is_a_sentence_and_plain_rounded_json(name):
    bundle = FIGURES[name]()._repr_mimebundle_()
    assert list(bundle) == ["text/plain", MIME]
    assert bundle["text/plain"] == "It says so."
    written = json.dumps(bundle, allow_nan=False)
    assert "bdata" not in written
    assert len(written) < 40_000


def numbers_of(trace, key):
    return [value for value in trace[key] if value is not None]


@pytest.mark.parametrize("name", ["curves", "one curve", "bars", "histograms"])
def test_ranges_hold_the_data(name):
    figure = FIGURES[name]()
    low, high = figure.layout["yaxis"]["range"]
    values = [v for trace in figure.traces for v in numbers_of(trace, "y")]
    assert low <= min(values)
    assert max(values) <= high
    assert high - low <= 1.2 * (max(*values, 0) - min(*values, 0))


def test_a_legend_only_where_there_is_something_to_tell_apart():
    assert FIGURES["curves"]().layout["showlegend"]
    assert not FIGURES["one curve"]().layout["showlegend"]


def test_lines_differ_in_more_than_colour():
    lines = {str(i): [0, 1, 2, i] for i in range(6)}
    traces = curves(X, lines, **WORDS, **AXES).traces
    assert len({t["line"]["dash"] for t in traces}) == 6
    assert len({t["marker"]["symbol"] for t in traces}) == 6
    assert len({t["line"]["color"] for t in traces}) == 6


def test_a_band_lies_around_its_line():
    band, line = FIGURES["curves"]().traces[:2]
    assert band["y"] == [3, 3, 3, 3, 0, 0, 0, 0]
    assert band["x"] == [1, 2, 4, 8, 8, 4, 2, 1]
    assert band["legendgroup"] == line["legendgroup"] == "raw"


def test_a_heat_map_shows_numbers_up_to_twelve_by_twelve():
    texts = [t for t in heat(np.eye(12), **WORDS).traces if t["type"] == "scatter"]
    assert sum(len(t["text"]) for t in texts) == 144
    assert len(heat(np.ones((13, 2)), **WORDS).traces) == 1


def test_the_numbers_of_a_heat_map_are_black_on_light_and_white_on_dark():
    heatmap, *texts = heat([[0.0, 1.0]], **WORDS).traces
    inks = {t["textfont"]["color"]: t["text"] for t in texts}
    assert inks == {"#ffffff": ["0.00"], "#000000": ["1.00"]}
    assert (heatmap["zmin"], heatmap["zmax"]) == (0, 1)


def test_signed_colours_are_even_around_zero():
    (heatmap, *_) = heat([[-1.0, 3.0]], signed=True, **WORDS).traces
    assert (heatmap["zmin"], heatmap["zmax"]) == (-3, 3)


def test_plain_numbers():
    assert plain([1 / 3, -0.0, np.inf]) == [0.3333, 0.0, None]
    assert str(plain([-0.0])[0]) == "0.0"
    assert plain([True, False]) == [1, 0]
    assert plain(["a"]) == ["a"]
    assert plain([[1.0], [2.0]]) == [[1.0], [2.0]]


def test_the_last_digits_of_a_machine_do_not_show():
    one = a_curve()
    two = curves(
        X, {"raw": np.sqrt(X) * (1 + 1e-12), "divided": np.ones(4)}, **WORDS, **AXES
    )
    assert one == two


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: curves(X, {"raw": [1, 2]}, **WORDS, **AXES),
            "raw has shape (2,), but 4 values are needed.",
        ),
        (
            lambda: a_curve(bands={"raw": ([1], [2])}),
            "band of raw has shape (1,), but 4 values are needed.",
        ),
        (
            lambda: a_curve(bands={"none": (X, X)}),
            "a band was given for 'none', which is no line.",
        ),
        (
            lambda: curves([0, 1], {"a": [1, 2]}, log_x=True, **WORDS, **AXES),
            "log_x needs values above 0, but found 0.",
        ),
        (
            lambda: heat(np.ones(3), **WORDS),
            "T needs two axes to be shown as a table, but its shape is (3,).",
        ),
        (
            lambda: heat(np.eye(2), rows=["a"], **WORDS),
            "T has 2 rows, but 1 labels were given for them.",
        ),
        (
            lambda: histograms([0, 1], {"a": [1, 2]}, x_title="x", **WORDS),
            "a has shape (2,), but 1 values are needed.",
        ),
        (
            lambda: heat(np.ones((200, 200)), **WORDS)._repr_mimebundle_(),
            "more than 100000; show fewer points.",
        ),
        (
            lambda: heat(np.eye(2), title="T", sentence=""),
            "a figure needs a sentence of one line",
        ),
    ],
)
def test_errors_say_what_was_found(call, words):
    with pytest.raises((ValueError, ShapeError)) as caught:
        call()
    assert words in str(caught.value)


def test_show_prints_the_sentence(capsys):
    show(a_curve())
    assert capsys.readouterr().out.startswith("It says so.\n")


@pytest.mark.parametrize("thing", [3, None, "text", np.eye(2)])
def test_show_says_what_it_takes(thing):
    with pytest.raises(TypeError, match=r"^show takes a figure of attnlib\."):
        show(thing)


def test_a_logarithmic_axis_says_whole_numbers():
    made = curves([1, 2, 3], {"a": [4, 30, 300]}, log_y=True, **WORDS, **AXES)
    axis = made.layout["yaxis"]
    assert axis["ticktext"] == ["5", "10", "20", "50", "100", "200"]
    wide = curves([1, 2, 3], {"a": [1, 1e3, 1e6]}, log_y=True, **WORDS, **AXES)
    text = wide.layout["yaxis"]["ticktext"]
    assert text == ["1", "10", "100", "1000", "10000", "100000", "1e+06"]
