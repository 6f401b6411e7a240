import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from bs4 import BeautifulSoup
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib.explorers import (
    bars,
    explore,
    follow,
    follow_tokens,
    histogram,
    lights,
    matrix,
    note,
)
from attnlib.explorers.cells import strength, td, text
from attnlib.explorers.explorer import MAX_BYTES, asset
from attnlib.explorers.numbers import compact, one_line, rounded
from attnlib.shapes import ShapeError

NAMES = {"control": "t", "labels": [0, 1], "title": "T", "sentence": "It moves."}
ONE = NAMES | {"labels": [0]}


def two_states():
    return [[matrix([[t, 1 - t]], title="w"), note(f"t = {t}")] for t in (0.0, 0.25)]


def tokens_of(tables):
    return follow_tokens(tables, ["a"], title="T", sentence="S.")


class Tags(HTMLParser):
    """Every tag with its attributes, and whether tags are closed in order."""

    def __init__(self, html):
        super().__init__()
        self.found, self.open = [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in {"input", "br", "meta"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def all(self, tag):
        return [attributes for name, attributes in self.found if name == tag]


def packed(html):
    found = re.search(r'<script type="application/json">(.*?)</script>', html)
    return json.loads(found.group(1))


def test_the_bundle_is_a_sentence_and_html():
    figure = explore(two_states(), **NAMES)
    bundle = figure._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}
    assert bundle["text/plain"] == "It moves." == repr(figure)


def test_the_page_is_a_closed_table_with_names_for_a_screen_reader():
    tags = Tags(explore(two_states(), **NAMES, start=1).html)
    assert tags.open == []
    (slider,) = tags.all("input")
    assert slider["type"] == "range"
    assert "disabled" in slider
    assert slider["value"] == "1"
    assert slider["aria-valuetext"] == "1"
    # JupyterLab looks at the focused element itself, not at what is around it.
    assert slider["data-lm-suppress-shortcuts"] == "true"
    assert len(tags.all("caption")) == 1
    assert {th.get("scope") for th in tags.all("th")} == {"row", "col"}
    assert not any("id" in attributes for _, attributes in tags.found)


def test_nothing_is_fetched():
    for html in (explore(two_states(), **NAMES).html, lights([("a", "ok", "")]).html):
        assert not re.search(r"https?:|url\(|@import|src=", html)


def test_the_same_arrays_give_the_same_page():
    assert explore(two_states(), **NAMES) == explore(two_states(), **NAMES)
    other = explore([two_states()[1], two_states()[0]], **NAMES)
    assert other.html != explore(two_states(), **NAMES).html


def test_the_states_travel_as_rounded_numbers():
    data = packed(explore(two_states(), **NAMES).html)
    assert data["states"][1] == [{"t": "w", "v": [0.25, 0.75]}, {"t": "t = 0.25"}]


def test_colours_compare_over_all_states():
    states = [[matrix([[1.0]], title="w")], [matrix([[4.0]], title="w")]]
    html = explore(states, **NAMES).html
    assert 'data-maximum="4"' in html
    assert "--a:0.25" in html


def test_pixels_have_no_labels_and_their_numbers_are_there_to_be_read():
    states = [
        [matrix(np.eye(3) * t, title="w", digits=0, numbers=False)] for t in (2, 4)
    ]
    tags = Tags(explore(states, **NAMES).html)
    assert tags.open == []
    assert not tags.all("th")
    cells = [cell["style"] for cell in tags.all("td")]
    assert len(cells) == 9
    assert all("width:14px;height:14px" in style for style in cells)
    assert tags.all("tbody") == [{"style": "font-size:0"}]
    page = BeautifulSoup(explore(states, **NAMES).html, "html.parser")
    assert [td.text for td in page("td")] == list("200020002")


def test_the_look_of_pixels_travels_only_with_pixels():
    look = asset("pixels.css")
    with_numbers, without = (
        explore([[matrix(np.eye(2), title="w", numbers=numbers)]], **ONE).html
        for numbers in (True, False)
    )
    assert look not in with_numbers
    assert look in without


def test_the_look_of_pixels_wins_over_a_figure_further_down():
    # Each figure brings style.css, and of rules alike in rank the last one counts.
    rules = re.sub(r"/\*.*?\*/|\{[^}]*\}", ",", asset("pixels.css"), flags=re.S)
    selectors = [selector.strip() for selector in rules.split(",") if selector.strip()]
    assert len(selectors) == 10
    assert all(s.startswith(".attn table.attn-m.attn-pixels") for s in selectors)


def test_a_picture_cannot_become_a_table():
    states = [[matrix(np.eye(2), title="w", numbers=shown)] for shown in (True, False)]
    with pytest.raises(ShapeError, match="state 1 of T has the panels"):
        explore(states, **NAMES)


@pytest.mark.parametrize(
    "panel",
    [
        lambda i: matrix([[1, 2]], rows=[f"query {i}"], title="w"),
        lambda i: matrix([[1, 2]], columns=["key", f"key {i}"], title="w"),
        lambda i: matrix([[1, 2]], colour="groups", groups=[[0, i]], title="w"),
        lambda i: bars([1, 2], ["a", f"b {i}"], "w"),
    ],
)
def test_a_slider_does_not_rename_rows(panel):
    # The page would go on to show the names of the first state, and say nothing.
    with pytest.raises(ShapeError) as error:
        explore([[panel(0)], [panel(1)]], **NAMES)
    assert "state 1 of T has other names or groups in w" in str(error.value)


def test_titles_notes_and_ends_of_an_axis_may_change():
    states = [
        [
            matrix([[1, 2]], rows=["a"], title=f"w {i}", marked=[(0, i)]),
            histogram([1, 2], [i, 3, 6 - i], "h"),
            note(f"{i}"),
        ]
        for i in range(2)
    ]
    data = packed(explore(states, **NAMES).html)
    assert [state[0]["t"] for state in data["states"]] == ["w 0", "w 1"]


def test_text_is_escaped_everywhere():
    bad = '<u>"&'
    panels = [
        matrix([[1.0]], rows=[bad], columns=[bad], title=bad),
        bars([1.0], [bad], bad),
        histogram([1], [0, 1], bad),
        note(bad),
    ]
    html = explore([panels], control=bad, labels=[bad], title=bad, sentence="S.").html
    assert "<u>" not in html
    assert Tags(html).open == []


def test_a_script_end_in_a_title_does_not_end_the_script():
    end = "</script><script>alert(1)</script>"
    html = explore(
        [[note(end)]], control="c", labels=[0], title="T", sentence="S."
    ).html
    assert html.count("</script>") == 2
    assert packed(html)["states"] == [[{"t": end}]]


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True, width=64), min_size=1))
@settings(derandomize=True, deadline=None, max_examples=60)
def test_any_float_survives_json(values):
    kept = json.loads(compact(rounded(values, 3)))
    for value, found in zip(values, kept, strict=True):
        if np.isfinite(value):
            assert found == pytest.approx(value, abs=6e-4, rel=1e-12)
            form = r"-?\d\.\d\de\+\d+" if abs(found) >= 1e5 else r"-?\d+\.\d{3}"
            assert re.fullmatch(form, text(found, 3))
        else:
            assert text(found, 3) in {"NaN", "∞", "-∞"}


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (99_999.99, "99999.99"),
        (100_000, "1.00e+5"),
        (-100_500, "-1.01e+5"),  # a tie goes away from zero, as in the browser
        (999_999, "1.00e+6"),
        (2.0000000000000002e307, "2.00e+307"),
    ],
)
def test_large_numbers_are_short(value, shown):
    assert text(value, 2) == shown


def test_rows_wrap_where_the_column_is_narrow():
    assert "flex-wrap:nowrap" not in asset("style.css")


def test_minus_zero_is_zero():
    assert text(rounded([-0.0001], 2)[0], 2) == "0.00"
    assert text(-0.001, 2) == "0.00"


def test_a_cell_says_by_shape_what_its_colour_says():
    assert "✓" in td(1, 0, "mask", 1)
    assert "×" in td(0, 0, "mask", 1)
    assert "-∞" in td("-inf", 2, "weights", 1)
    assert 'class="n"' in td(-1, 0, "signed", 1)
    assert 'class="p k"' in td(1, 0, "weights", 1, marked=True)
    assert strength(3, 2) == 1.0


def luminance(parts):
    parts = np.array(parts)
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))


def variables(css, theme):
    """The variables of a theme, short colours written out."""
    blocks = re.findall(r"\{(--zero[^}]*|\n--zero[^}]*)\}?", css)
    found = dict(re.findall(r"--([a-z]+):([^;}\n]+)", blocks[theme]))
    return {k: v * 2 if k == "zero" and len(v) == 4 else v for k, v in found.items()}


@pytest.mark.parametrize("theme", [0, 1])
@pytest.mark.parametrize(("ramp", "turn"), [("blue", "t"), ("orange", "tn")])
def test_numbers_are_readable_on_every_strength_of_colour(theme, ramp, turn):
    found = variables(asset("style.css"), theme)
    zero = found["zero"].replace("#", "").ljust(6, "f")
    full, turning = found[ramp].lstrip("#"), float(found[turn])
    for a in np.linspace(0, 1, 201):
        mixed = [
            (1 - a) * int(zero[i : i + 2], 16) / 255
            + a * int(full[i : i + 2], 16) / 255
            for i in (0, 2, 4)
        ]
        back = luminance(mixed)
        white = (a > turning) if found["up"] == "1" else (a < turning)
        ink = 1.0 if white else 0.0
        contrast = (max(ink, back) + 0.05) / (min(ink, back) + 0.05)
        assert contrast > 4.5, f"{ramp} at {a}: {contrast:.2f}"


def test_follow_sends_the_ids_and_names():
    ids = np.arange(6).reshape(2, 3)
    x = matrix(ids, title="x", digits=0)
    xt = matrix(ids.T, title="x.T", digits=0)
    figure = follow([x, xt], [ids, ids.T], title="T", sentence="S.", start=(1, 0))
    assert packed(figure.html) == {
        "names": ["x", "x.T"],
        "ids": [[0, 1, 2, 3, 4, 5], [0, 3, 1, 4, 2, 5]],
        "start": 3,
    }


def test_panels_stand_in_the_rows_that_were_asked_for():
    parts = [matrix([[i]], title=f"m{i}", digits=0) for i in range(3)]
    for figure in (
        explore([parts], control="c", labels=[0], title="T", sentence="S.",
                per_row=(1, 2)),
        follow(parts, [[[0]]] * 3, title="T", sentence="S.", per_row=[1, 2]),
    ):  # fmt: skip
        page = BeautifulSoup(figure.html, "html.parser")
        assert [len(row("table")) for row in page(class_="attn-line")] == [1, 2]
        assert Tags(figure.html).open == []
    free = explore([parts], control="c", labels=[0], title="T", sentence="S.")
    assert 'class="attn-line"' not in free.html


def test_follow_tokens_colours_by_the_row_of_the_first_table():
    x = np.arange(6).reshape(3, 2)
    figure = follow_tokens(
        {"x": x, "wrong": x.reshape(2, 3)},
        ["a", "b", "c"],
        title="T",
        sentence="S.",
        start=(2, 1),
    )
    data = packed(figure.html)
    assert data["names"] == ["x", "wrong"]
    assert data["start"] == 5
    first, second = BeautifulSoup(figure.html, "html.parser")("table")
    colours = [cell["class"][0] for cell in second.tbody("td")]
    assert colours == ["g0", "g0", "g1", "g1", "g2", "g2"]
    assert [th.text for th in first.tbody("th")] == ["a", "b", "c"]
    assert [th.text for th in second.tbody("th")] == ["0", "1"]


def test_the_colours_are_explained_where_there_are_two():
    both = explore([[matrix([[-1]], title="s", colour="signed")]], control="c",
                   labels=[0], title="T", sentence="S.").html  # fmt: skip
    assert "above zero" in both
    assert "above zero" not in explore(two_states(), **NAMES).html


def test_a_scale_says_what_a_full_bar_is():
    states = [
        [bars([b], ["x"], "b"), histogram([c], [0, 4], "h", x_title="score")]
        for b, c in ((1.5, 3), (6, 9))
    ]
    text_of = BeautifulSoup(explore(states, **NAMES).html, "html.parser").get_text(" ")
    assert "0 to 6.00" in " ".join(text_of.split())
    assert "full height: 9" in text_of
    assert "← score →" in text_of


def test_groups_colour_cells():
    html = matrix([[1, 2]], title="x", colour="groups", groups=[[0, 9]]).html()
    assert 'class="g0"' in html
    assert 'class="g1"' in html


def test_lights_count_and_name_what_is_left():
    rows = [("a", "ok", ""), ("b", "old", "do x"), ("c", "missing", "do y")]
    figure = lights(rows)
    assert figure.sentence == "1 of 3 things are in order; to do: b, c."
    for sign in ("● ", "▲ ", "■ "):
        assert sign.strip() in figure.html
    assert lights([("a", "ok", "")]).sentence == (
        "1 of 1 things are in order; nothing to do."
    )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: explore([], **NAMES), "T has no state to show."),
        (
            lambda: explore(two_states(), **NAMES | {"labels": [1]}),
            "T has 2 states, but 1 labels for them.",
        ),
        (
            lambda: explore(two_states(), **NAMES, start=2),
            "start=2 is none of the 2 states of T.",
        ),
        (
            lambda: explore([two_states()[0], two_states()[1][:1]], **NAMES),
            "a slider changes numbers, not shapes.",
        ),
        (
            lambda: explore(two_states(), **NAMES | {"sentence": "two\nlines"}),
            "a figure needs a sentence of one line",
        ),
        (
            lambda: matrix([1.0], title="w"),
            "w needs two axes to be shown as a table, but its shape is (1,).",
        ),
        (
            lambda: matrix([[1.0]], title="w", rows=["a", "b"]),
            "w has 1 rows, but 2 labels were given for them.",
        ),
        (
            lambda: matrix([[1.0]], title="w", marked=[(1, 0)]),
            "marked cell (1, 0) lies outside w with 1 rows and 1 columns.",
        ),
        (
            lambda: matrix(np.ones((30, 30)), title="w"),
            "w has 30 x 30 cells; a table takes at most 400",
        ),
        (lambda: matrix([[1.0]], title="w", colour="red"), "colour='red' is none of"),
        (
            lambda: matrix([[1.0]], title="w", colour="groups"),
            "w has colour='groups', but no groups were given.",
        ),
        (
            lambda: matrix([[1.0]], title="w", groups=[[1, 2]]),
            "groups has shape (1, 2), but w has (1, 1).",
        ),
        (lambda: bars([1.0], [], "b"), "b has values of shape (1,), but 0 labels."),
        (
            lambda: histogram([1, 2], [0, 1], "h"),
            "n counts need n + 1 edges.",
        ),
        (
            lambda: follow(
                [matrix([[1]], title="x")], [[[1, 2]]], title="T", sentence="S."
            ),
            "the ids of x have shape (1, 2), but the panel has (1, 1).",
        ),
        (
            lambda: follow([matrix([[1]], title="x")], [], title="T", sentence="S."),
            "T has 1 panels, but ids for 0 of them.",
        ),
        (
            lambda: follow(
                [matrix([[1]], title="x")],
                [[[1]]],
                title="T",
                sentence="S.",
                start=(0, 1),
            ),
            "start=(0, 1) lies outside x with 1 rows and 1 columns.",
        ),
        (
            lambda: explore(two_states(), **NAMES, per_row=(1,)),
            "T has 2 panels, but per_row=(1,) places 1; each row takes one or more.",
        ),
        (
            lambda: explore(two_states(), **NAMES, per_row=(0, 2)),
            "each row takes one or more.",
        ),
        (
            lambda: tokens_of({"x": [[0, 0]]}),
            "x has a number twice, so it names no single element.",
        ),
        (
            lambda: tokens_of({"x": [[0, 1]], "y": [[2]]}),
            "y holds 2, which is no element of x.",
        ),
        (
            lambda: tokens_of({"x": [[0.0, 1.0]]}),
            "x needs whole numbers on two axes to be followed, but has float64",
        ),
        (
            lambda: lights([("a", "red", "")]),
            "a has the state 'red', which is none of 'ok', 'old', 'missing'.",
        ),
        (lambda: one_line("  "), "a figure needs a sentence of one line"),
    ],
)
def test_errors_say_what_was_found(call, words):
    with pytest.raises((ValueError, ShapeError)) as caught:
        call()
    assert words in str(caught.value)


def test_a_figure_of_too_many_bytes_is_refused():
    rng = np.random.default_rng(0)
    states = [[matrix(rng.random((20, 20)), title="w", digits=9)] for _ in range(21)]
    with pytest.raises(ValueError, match=f"more than {MAX_BYTES}"):
        explore(states, control="c", labels=range(21), title="T", sentence="S.")
    small = [[matrix(rng.random((12, 12)), title="w")] for _ in range(21)]
    figure = explore(small, control="c", labels=range(21), title="T", sentence="S.")
    assert len(figure.html.encode()) < MAX_BYTES / 2
