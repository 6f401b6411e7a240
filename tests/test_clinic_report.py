"""What an examination found, as text and as HTML, and assert_healthy."""

from __future__ import annotations

import importlib
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from attnlib.clinic.healthy import Unhealthy, assert_healthy
from attnlib.clinic.report import WIDTH, Finding, Report, Unknown
from attnlib.clinic.report_html import MOST, html_of
from attnlib.clinic.words import a, one_line

SCALE = Finding(
    "M02",
    "scale_d_model",
    "Divided by √d_model, where √d_k is meant",
    "The dot product adds `d_k` numbers, so its spread grows with √d_k, and the width "
    "of all heads together has nothing to do with it.",
    "the scores are divided by 8; √d_k = 4 is right.",
    8.0,
    4.0,
    "Divide by the root of the size of one head.",
    ("a/b#1", "c/d#2", "e/f#3", "g/h#4", "i/j#5"),
)
MASK = Finding("M08", "mask_added", "A mask is added", "True is 1.", "0.2, not 0.")
LAW = Unknown(
    "a batch gives what its items give alone",
    "Item 1 changes when item 0 does.",
    "x =\n[[1 2]\n [3 4]]",
)


# The data.


@pytest.mark.parametrize(
    ("report", "healthy"),
    [
        (Report("f"), True),
        (Report("f", cautions=(SCALE,)), True),
        (Report("f", untested=("masks: it takes none.",)), True),
        (Report("f", (SCALE,)), False),
        (Report("f", unknown=LAW), False),
        (Report("f", refused="It is a number."), False),
    ],
)
def test_healthy_means_examined_and_nothing_wrong(report, healthy):
    assert report.healthy is healthy


def test_codes_come_once_and_evidence_by_code():
    report = Report("f", (SCALE, MASK, SCALE))
    assert report.codes == ("M02", "M08")
    assert report.evidence["M08"] == "0.2, not 0."
    assert report.evidence["M02"].count("√d_k = 4 is right.") == 2


def test_a_report_with_arrays_can_be_compared_and_kept_in_a_set():
    report = Report("f", weights=np.eye(2))
    assert report == report
    assert len({report, report}) == 1


# The text.


def test_a_healthy_report_is_one_line():
    assert str(Report("attention")) == "attention is healthy."


def test_one_mistake_in_a_terminal():
    text = str(Report("MyAttention", (SCALE,), features=("RoPE, halves", "causal")))
    assert text.splitlines() == [
        "MyAttention is not healthy: one mistake.",
        "",
        "M02 Divided by √d_model, where √d_k is meant.",
        "  The dot product adds `d_k` numbers, so its spread grows with √d_k, and the "
        "width of",
        "  all heads together has nothing to do with it.",
        "  What gave it away: the scores are divided by 8; √d_k = 4 is right.",
        "  Divide by the root of the size of one head.",
        "  You are not the first: a/b#1, c/d#2, e/f#3, g/h#4 and 1 more.",
        "",
        "Found out: RoPE, halves; causal.",
    ]


def test_two_mistakes_are_counted_and_numbered():
    text = str(Report("f", (SCALE, MASK)))
    assert text.startswith("f is not healthy: two mistakes.\n")
    assert "\n1. M02 Divided" in text
    assert "\n2. M08 A mask is added.\n" in text


def test_what_has_no_name_is_said_with_its_law_and_the_smallest_example():
    text = str(Report("f", unknown=LAW))
    assert text == (
        "f is not healthy: something is wrong that has no name here.\n\n"
        "Wrong, but no mistake that is known here: a batch gives what its items give "
        "alone.\n  Item 1 changes when item 0 does.\n"
        "  The smallest example:\n    x =\n    [[1 2]\n     [3 4]]"
    )
    both = str(Report("f", (MASK,), unknown=LAW))
    assert both.startswith(
        "f is not healthy: one mistake, and something that has no name here.\n"
    )


def test_cautions_are_no_mistakes_and_what_was_not_tested_is_listed():
    text = str(Report("f", cautions=(MASK,), untested=("masks: it takes no mask.",)))
    assert text.startswith("f is healthy.\n\nCaution, no mistake: M08 A mask is added.")
    assert text.endswith("\n\nNot tested:\n- Masks: it takes no mask.")


@pytest.mark.parametrize(
    "refused", ["It is a number.", "f could not be examined: it is a number."]
)
def test_what_could_not_be_examined_says_why_once(refused):
    text = str(Report("f", refused=refused))
    assert text == "f could not be examined.\n\nIt is a number."
    assert html_of(Report("f", refused=refused)).count("examined") == 1


@pytest.mark.parametrize(
    ("sentence", "begins"),
    [
        ("attention returned None.", "attention returned None."),
        ("n_heads=3 was given.", "n_heads=3 was given."),
        ("q is written over.", "q is written over."),
        ("a key is left.", "A key is left."),
        ("attentions differ.", "Attentions differ."),
        ("key-padding was not tested.", "Key-padding was not tested."),
        ("`mine` is slow.", "`mine` is slow."),
    ],
)
def test_names_of_python_keep_their_first_letter(sentence, begins):
    finding = Finding("M01", "k", "n", "s", sentence)
    report = Report("attention", (finding,), untested=(sentence,), refused=sentence)
    assert report.reason == begins
    assert report.evidence == {"M01": begins}
    assert f"\n- {begins}" in str(report)
    assert f"<li>{begins.replace('`mine`', '<code>mine</code>')}</li>" in html_of(
        report
    )


def test_lines_are_short_and_long_names_are_not_cut():
    long = Finding("M01", "k", "n" * 120, "word " * 60, "number " * 40, reports=("r",))
    lines = str(Report("f", (long,), untested=("word " * 60,))).splitlines()
    assert max(len(line) for line in lines if "n" * 9 not in line) <= WIDTH
    assert f"M01 {'n' * 120}." in lines or "n" * 120 + "." in lines


def test_a_name_cannot_steer_the_terminal():
    name = "f\x1b[31m\nis healthy.\u202e"
    first = str(Report(name, (MASK,))).splitlines()[0]
    assert first == "f[31m is healthy. is not healthy: one mistake."
    assert one_line("a\tb") == "a b"


def test_a_prompt_shows_the_text():
    assert repr(Report("f", (MASK,))) == str(Report("f", (MASK,)))


def test_nouns_get_their_article():
    assert [a(noun) for noun in ("array", "unit", "Unknown", "ndarray", "list")] == [
        "an array",
        "a unit",
        "an Unknown",
        "an ndarray",
        "a list",
    ]


# The HTML.


class _Tags(HTMLParser):
    """Every tag that is opened, and whether all are closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.opened: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.opened.append(tag)
        assert not any(name.startswith("on") for name, _ in attrs)
        if tag not in ("br", "meta"):
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag


def tables(html: str) -> list[list[list[str]]]:
    """The cells of each table, row by row, without their tags."""
    return [
        [
            [re.sub("<[^>]*>", "", c) for c in re.findall(r"<td.*?</td>", row)]
            for row in re.findall(r"<tr>.*?</tr>", table)[1:]
        ]
        for table in re.findall(r"<table.*?</table>", html)
    ]


WRONG, RIGHT = np.array([[0.5, 0.5], [0.25, 0.75]]), np.array([[1, 0], [0.25, 0.75]])


def test_html_holds_what_the_text_holds():
    report = Report("f", (SCALE, MASK), (MASK,), LAW, ("no.",), ("RoPE",))
    html = html_of(report)
    tags = _Tags(html)
    plain = re.sub("<[^>]*>", " ", html.replace("<code>", "`").replace("</code>", "`"))
    for line in str(report).split("\n"):
        words = line.strip("- ").removeprefix("What gave it away: ")
        if "example" not in line:
            assert words[:40] in plain, line
    assert not {"script", "style", "link", "img", "iframe"} & set(tags.opened)
    assert "http" not in html


@pytest.mark.parametrize("evil", ["<script>alert(1)</script>", '"><img src=x>', "&lt;"])
def test_nothing_from_outside_becomes_markup(evil):
    finding = Finding(evil, evil, evil, evil, evil, None, None, evil, (evil,))
    law = Unknown(evil, evil, evil)
    report = Report(
        evil, (finding,), (finding,), law, (evil,), (evil,), RIGHT, RIGHT, ""
    )
    html = html_of(report) + html_of(Report(evil, refused=evil))
    assert not {"script", "img"} & set(_Tags(html).opened)
    assert evil not in html


def test_weights_stand_beside_the_right_ones_and_what_differs_is_marked():
    html = Report("f", (SCALE,), weights=WRONG, right_weights=RIGHT)._repr_html_()
    yours, right = tables(html)
    assert yours == [["≠ 0.50", "≠ 0.50", "1.00"], ["0.25", "0.75", "1.00"]]
    assert right == [["1.00", "0.00", "1.00"], ["0.25", "0.75", "1.00"]]
    assert "2 of 4 cells differ (≠, framed)." in html
    assert html.count("border:2px solid") == 2


def test_every_number_can_be_shown():
    odd = np.array([[np.nan, np.inf], [-np.inf, -2e5]])
    with np.errstate(invalid="ignore"):
        html = html_of(Report("f", (SCALE,), weights=odd, right_weights=RIGHT))
    assert tables(html)[0] == [
        ["≠ NaN", "≠ ∞", "NaN"],
        ["≠ -∞", "≠ -2.0e+05", "-∞"],
    ]


def test_the_same_nan_does_not_differ():
    odd = np.array([[np.nan, 0.5]])
    html = html_of(Report("f", (SCALE,), weights=odd, right_weights=odd))
    assert "≠" not in html


def test_large_tables_are_cut_and_say_so():
    rng = np.random.default_rng(0)
    wrong, right = rng.random((2, 3, 20, 30))  # with an axis of heads
    html = html_of(Report("f", (SCALE,), weights=wrong, right_weights=right))
    assert [len(table) for table in tables(html)] == [MOST, MOST]
    assert "the first 12 of 20 queries and the first 12 of 30 keys" in html


@pytest.mark.parametrize(
    ("weights", "right"), [(None, RIGHT), (RIGHT, None), (RIGHT, np.eye(3))]
)
def test_without_two_tables_of_one_shape_there_are_none(weights, right):
    html = html_of(Report("f", (SCALE,), weights=weights, right_weights=right))
    assert tables(html) == []


def test_a_healthy_report_has_no_tables():
    assert tables(html_of(Report("f", weights=RIGHT, right_weights=RIGHT))) == []


# assert_healthy.


@pytest.fixture
def examined(monkeypatch):
    """A stand-in for `examine` that gives a report and notes what it was asked."""
    asked: list[dict[str, object]] = []

    def answer(report: Report) -> list[dict[str, object]]:
        def examine(attention: object, **intent: object) -> Report:
            asked.append({"attention": attention, **intent})
            return report

        module = importlib.import_module("attnlib.clinic.examine")
        monkeypatch.setattr(module, "examine", examine)
        return asked

    return answer


def test_assert_healthy_returns_the_report_and_hands_on_the_intent(examined):
    report = Report("f", cautions=(MASK,))
    asked = examined(report)
    assert assert_healthy(print, n_heads=4, mask="blocked") is report
    assert asked == [{"attention": print, "n_heads": 4, "mask": "blocked"}]


@pytest.mark.parametrize(
    "report",
    [Report("f", (SCALE,)), Report("f", unknown=LAW), Report("f", refused="x")],
)
def test_assert_healthy_raises_with_the_whole_text(examined, report):
    examined(report)
    with pytest.raises(AssertionError) as caught:
        assert_healthy(print)
    assert str(caught.value) == str(report)
    assert isinstance(caught.value, Unhealthy)
    assert caught.value.report is report
