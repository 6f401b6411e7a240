"""Switches: a state for each set of things, in the order of their bits."""

from __future__ import annotations

import json

import pytest
from bs4 import BeautifulSoup

from attnlib.explorers import bars, note, switches
from attnlib.shapes import ShapeError

MOST = 8
NAMES = {"control": "things", "title": "T", "sentence": "Each thing counts 1."}


def states(n):
    return [
        [bars([bin(s).count("1")], ["on"], "how many", maximum=n), note(f"set {s}")]
        for s in range(2**n)
    ]


def drawn(n=3, **other):
    given = {"states": states(n), "names": [f"<{i}>" for i in range(n)]}
    return switches(
        **NAMES | given | {"labels": [f"label {s}" for s in range(2**n)]} | other
    )


def page(figure):
    return BeautifulSoup(figure.html, "html.parser")


def test_every_switch_has_a_name_and_waits_for_the_script():
    boxes = page(drawn()).select("fieldset label")
    assert [box.text for box in boxes] == ["<0>", "<1>", "<2>"]
    for box in boxes:
        assert box.input["type"] == "checkbox"
        assert box.input.has_attr("disabled")
    assert page(drawn()).legend.text == "things"


@pytest.mark.parametrize(
    ("start", "on"), [(None, [1, 1, 1]), (0, [0, 0, 0]), (1, [1, 0, 0]), (6, [0, 1, 1])]
)
def test_what_is_shown_first_is_the_set_of_its_bits(start, on):
    found = page(drawn(start=start))
    boxes = found.select("input")
    assert [box.has_attr("checked") for box in boxes] == [bool(i) for i in on]
    shown = 7 if start is None else start
    assert found.output.text == f"label {shown}"
    assert found.select_one(".attn-note").text == f"set {shown}"


def test_all_states_are_in_the_page_in_their_order():
    packed = page(drawn()).select_one('script[type="application/json"]').string
    data = json.loads(packed)
    assert [state[0]["v"] for state in data["states"]] == [
        [bin(s).count("1")] for s in range(8)
    ]
    assert data["labels"][6] == "label 6"


def test_its_sentence_stands_for_it():
    assert repr(drawn()) == "Each thing counts 1."


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"names": []}, ValueError, "0 switches; it takes 1 to 8"),
        ({"names": list(range(MOST + 1))}, ValueError, "9 switches"),
        ({"names": ["a", "b"]}, ShapeError, "8 states, but 2 switches have 4 sets"),
        ({"labels": ["a"]}, ShapeError, "1 labels, but 3 switches have 8 sets"),
        ({"start": 8}, ValueError, "start=8 is none of the 8 states"),
        (
            {"states": [*states(3)[:7], [note("x"), note("y")]]},
            ShapeError,
            "state 0 of T has the panels",
        ),
        ({"sentence": ""}, ValueError, "sentence"),
    ],
)
def test_what_does_not_fit_is_said(change, error, words):
    with pytest.raises(error, match=words):
        drawn(**change)
