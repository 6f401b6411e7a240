"""The charts of the clinic: what they draw, what they say, and what they refuse."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from bs4 import BeautifulSoup

from attnlib.explorers.vitals import Sign, vitals
from attnlib.shapes import ShapeError
from attnlib.widgets import Board, dashboard
from attnlib.widgets.dashboard import SHOWN

SIGNS = [Sign("loss", 2, 0.5), Sign("keys", 1)]
CURVES = {
    "A": {"loss": [2.0, 1.0, np.nan], "keys": [[4.0, 1.0], [3.0, 1.0], [2.0, 1.0]]},
    "B": {"loss": [3.0, 2.0, 1.0], "keys": [[2.0, 2.0]] * 3},
}
NAMES = {
    "lines": ["head 0", "head 1"],
    "control": "patient",
    "title": "T",
    "sentence": "They differ.",
}


def drawn(curves=CURVES, signs=SIGNS, steps=(0, 6, 12), **other):
    return vitals(curves, signs, steps, **NAMES | other)


def page(figure):
    return BeautifulSoup(figure.html, "html.parser")


def points(line):
    return [tuple(map(int, p.split(","))) for p in line["points"].split()]


def test_one_patient_is_shown_and_the_others_wait():
    wards = page(drawn(start=1)).select(".attn-ward")
    assert [ward.has_attr("hidden") for ward in wards] == [True, False]
    assert [ward["aria-label"] for ward in wards] == ["patient A", "patient B"]


def test_lines_go_where_their_numbers_say():
    tile = page(drawn()).select("figure")[1]  # keys of A
    first, second = (points(line) for line in tile.select("polyline"))
    assert [x for x, _ in first] == [0, 100, 200]
    heights = [y for _, y in first]
    assert heights == sorted(heights)  # y grows downwards, keys fall
    assert len({y for _, y in second}) == 1
    assert second[0][1] > first[-1][1]


def test_a_scale_is_the_same_for_all_patients():
    soup = page(drawn())
    lines = soup.select("polyline")
    by_number = {
        3.0: points(lines[3])[0][1],  # loss of B
        2.0: points(lines[0])[0][1],  # loss of A
    }
    assert by_number[3.0] < by_number[2.0] == points(lines[3])[1][1]


def test_nan_is_marked_and_not_drawn():
    tile = page(drawn()).select("figure")[0]
    assert len(points(tile.polyline)) == 2
    assert tile.select_one(".attn-lost")
    assert "NaN" in tile.text
    assert not page(drawn()).select("figure")[2].select(".attn-lost")


def test_the_numbers_are_those_of_the_last_step_and_travel_rounded():
    figure = drawn()
    shown = [
        [span.text for span in tile.select(".attn-now span")]
        for tile in page(figure).select("figure")
    ]
    assert shown == [["NaN"], ["2.0", "1.0"], ["1.00"], ["2.0", "2.0"]]
    packed = re.search(r'<script type="application/json">(.*?)</script>', figure.html)
    data = json.loads(packed[1])
    assert data["steps"] == [0, 6, 12]
    assert data["values"][0][0] == [[2], [1], ["nan"]]


def test_controls_have_names_and_are_off_without_the_script():
    soup = page(drawn())
    for control in (soup.select_one("select"), soup.select_one("input")):
        assert control.has_attr("disabled")
        assert control["data-lm-suppress-shortcuts"] == "true"
        assert control.find_parent("label").text.strip()
    assert [option.text for option in soup.select("option")] == ["A", "B"]


def test_lines_differ_without_colours():
    tile = page(drawn()).select("figure")[1]
    dashes = [line.get("stroke-dasharray") for line in tile.select("polyline")]
    assert len(set(dashes)) == 2


def test_the_same_numbers_give_the_same_page():
    assert drawn().html == drawn().html


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"curves": {}}, "T has no patient to show"),
        ({"start": 2}, "start=2 is none of the 2 patients of T"),
        ({"sentence": ""}, "needs a sentence of one line"),
    ],
)
def test_what_is_refused(change, text):
    with pytest.raises(ValueError, match=text):
        drawn(**change)


def test_a_curve_that_does_not_fit_is_named():
    with pytest.raises(ShapeError, match="loss of A has shape"):
        drawn(steps=(0, 6))


class Chart:
    """What attnlib.nn.charts keeps, without torch."""

    def __init__(self, name, steps=(0, 6)):
        self.name, self.steps = name, steps

    def curve(self, name):
        n = len(self.steps)
        one = name in ("loss", "nan_weights", "nan_gradient")
        return np.ones(n) if one else np.ones((n, 4))


def test_the_dashboard_has_a_chart_for_every_sign():
    figure = dashboard([Chart("A"), Chart("B")], title="T", sentence="Alike.")
    assert len(page(figure).select("figure")) == 2 * len(SHOWN)
    assert repr(figure) == "Alike."


def test_the_dashboard_refuses_charts_that_do_not_belong_together():
    with pytest.raises(ValueError, match="A and B were measured at different steps"):
        dashboard([Chart("A"), Chart("B", (0,))], title="T", sentence="S.")
    with pytest.raises(ValueError, match="no sign is called 'entropy'"):
        dashboard([Chart("A")], title="T", sentence="S.", compare={"entropy": 1.0})


def test_the_board_draws_the_patient_that_trains(capsys):
    board = Board(12, "2 patients")
    assert "Patient" not in board.bar(1)
    board.see(Chart("Q"))
    soup = BeautifulSoup(board.bar(3), "html.parser")
    assert soup.select_one(".attn-title").text == "Patient Q"
    assert len(soup.select("figure")) == len(SHOWN)
    assert points(soup.polyline)[-1][0] < 30  # room for the steps to come
    assert capsys.readouterr().out == "2 patients, 12 steps.\n"


def test_every_sign_shown_is_measured():
    charts = pytest.importorskip("attnlib.nn.charts")
    assert tuple(SHOWN) == charts.SIGNS


def test_one_number_before_nan_is_drawn_too():
    curves = {"A": {"loss": [2.0, np.nan, np.nan]}, "B": {"loss": [3.0, 1.0, 1.0]}}
    figure = vitals(
        curves,
        [Sign("loss")],
        [0, 6, 12],
        lines=["head 0"],
        control="patient",
        title="T",
        sentence="A has one loss.",
    )
    tile = page(figure).select("figure")[0]
    (x, y), (further, same) = points(tile.polyline)
    assert x == 0 < further
    assert y == same
    assert float(tile.select_one(".attn-lost")["x"]) > 0
