"""The budget: where things lie, what turns grey, what is said, what is refused."""

from __future__ import annotations

import json
from itertools import combinations, product

import pytest
from bs4 import BeautifulSoup

from attnlib.explorers import budget

THINGS = {
    "slow": (40.0, 0.9, 0.01),
    "near": (10.0, 0.8, 0.02),
    "fast": (1.0, 0.5, 0.1),
}
NAMES = {"cost": "time", "worth": "accuracy", "title": "T", "sentence": "S."}


def page(things=THINGS, budgets=(0.5, 1.0, 20.0, 50.0), **other):
    figure = budget(things, budgets, **NAMES | {"unit": "ms"} | other)
    return BeautifulSoup(figure.html, "html.parser")


def data(soup):
    return json.loads(soup.find("script", type="application/json").string)


def test_a_cost_at_the_budget_is_within_it():
    found = data(page())
    assert found["labels"] == ["0.5 ms", "1 ms", "20 ms", "50 ms"]
    assert found["over"] == [[1, 1, 1], [1, 1, 0], [1, 0, 0], [0, 0, 0]]
    notes = [state[0]["t"] for state in found["states"]]
    assert notes[0] == "Within 0.5 ms: nothing."
    assert notes[2] == (
        "Within 20 ms: near, fast. The highest accuracy of these: near, 0.80 ± 0.02."
    )


def test_what_is_over_is_hollow_and_said_in_words():
    soup = page(start=2)
    groups = {g.find("text").text.strip(): g for g in soup.select("g[data-at]")}
    assert groups["slow"].circle["fill"] == "none"
    assert groups["near"].circle["fill"] != "none"
    rows = [[c.text for c in row.find_all(["th", "td"])] for row in soup.select("tr")]
    assert rows[1] == ["slow", "0.90 ± 0.01", "40 ms", "over"]
    assert rows[2] == ["near", "0.80 ± 0.02", "10 ms", "within"]
    assert soup.select_one(".attn-note").text.startswith("Within 20 ms: near, fast.")


def test_points_lie_where_their_numbers_say():
    soup = page()
    at = {
        g.find("text").text.strip(): (float(g.circle["cx"]), float(g.circle["cy"]))
        for g in soup.select("g[data-at]")
    }
    assert at["fast"][0] < at["near"][0] < at["slow"][0]
    assert at["slow"][1] < at["near"][1] < at["fast"][1]  # upwards is less
    # A logarithmic axis: 1 to 10 is as far as 10 to 100.
    lines = data(soup)["x"]
    assert lines[0] < at["fast"][0] == lines[1] < at["near"][0] < lines[2]


def test_names_of_points_that_lie_together_do_not_overlap():
    close = {f"thing {i}": (1.0, 0.5 + i / 1000, 0.0) for i in range(5)}
    soup = page(close | {"far": (9.0, 0.9, 0.0)})
    boxes = []
    for group in soup.select("g[data-at]"):
        text = group.find("text")
        x, y, wide = float(text["x"]), float(text["y"]), 7 * len(text.text.strip())
        boxes.append((x - wide if text["text-anchor"] == "end" else x, y, wide))
    for (a, y, wide), (b, z, other) in combinations(boxes, 2):
        assert abs(y - z) >= 13 or a + wide <= b or b + other <= a
    circles = [(float(c["cx"]), float(c["cy"])) for c in soup.select("g circle")]
    for (a, y, wide), (u, v) in product(boxes, circles):
        assert not (a < u < a + wide and abs(y - 4 - v) < 5)


def test_text_is_escaped():
    html = budget({"<b>": (1.0, 0.5, 0.0)}, [1], **NAMES).html
    assert "<b>" not in html.replace("<b>T</b>", "")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"things": {}}, "T has no thing or no budget"),
        ({"budgets": ()}, "T has no thing or no budget"),
        ({"budgets": (2, 1)}, "the budgets of T do not rise"),
        ({"budgets": (0, 1)}, "not above 0"),
        ({"things": {"a": (0.0, 1.0, 0.0)}}, "not above 0"),
        ({"start": 4}, "start=4 is none of the 4 budgets"),
        ({"sentence": ""}, "needs a sentence of one line"),
    ],
)
def test_what_is_refused(change, text):
    with pytest.raises(ValueError, match=text):
        page(**change)


def test_without_its_drawing_the_table_says_it_all():
    soup = page(start=2)
    for svg in soup.select("svg"):
        assert svg.parent["style"] == "font-size:0"  # what is left of it is not seen
        svg.decompose()
    said = " ".join(soup.text.split())
    assert "slow 0.90 ± 0.01 40 ms over".replace(" ", "") in said.replace(" ", "")
