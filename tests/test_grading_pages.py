"""Feedback pages: kind, whole, escaped, and nothing but themselves."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from grading_class import SMALL, a_class, grade, graded

from attnlib.exercises import get
from attnlib.grading import closure, outputs, page, pages, sentences
from attnlib.grading.notebook import Cell, Notebook

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&"
VOID = {"meta", "br", "img", "link", "hr"}


class Seen(HTMLParser):
    """Which elements a page has, and whether each one is closed."""

    def __init__(self, raw):
        super().__init__()
        self.tags, self.open, self.text = set(), [], []
        self.feed(raw.decode())
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        for name, value in attrs:
            assert not name.startswith("on"), name
            assert name != "src", value
            if name == "href":  # only from the class's page to a student's
                assert re.fullmatch(r"feedback/[\w%-]+\.html", value), value
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def seen(all_, student):
    one = next(s for s in all_.students() if s.student == student)
    found = Seen(pages.content(one, all_))
    assert found.open == []
    return found


def text_of(all_, student):
    return " ".join(" ".join(seen(all_, student).text).split())


def test_a_student_reads_the_mistake_the_evidence_a_hint_and_the_points():
    text = text_of(SMALL, "Ada")
    assert "Ada Lovelace" in text
    assert "0.76 of 10 points" in text
    assert "The scores are not scaled" in text
    assert "What gave it away: <b>&" in text
    assert "cell 4 from the top ( def softmax(x): )" in text
    assert "softmax: not yet" not in text  # the heading says it


def test_how_an_answer_begins_stands_where_there_is_something_to_mend():
    begins = " (`def softmax(x):`)"
    right = grade(cell=4, begins=begins)
    text = text_of(a_class(graded("ada", right)), "ada")
    assert "cell 4 from the top" in text
    assert "def softmax" not in text


def test_a_syntax_error_is_shown_by_the_line_that_is_broken():
    source = "def softmax(x):\n    y = (x\n    return y y"
    cells = Notebook((Cell(4, source, ()),), ())
    found = closure.answer(cells, "softmax")
    assert found.status == "syntax"
    said = sentences.syntax("softmax", found.notes)
    wrong = grade(points=0, status="syntax", text=said, cell=4, begins=found.begins)
    text = text_of(a_class(graded("ada", wrong)), "ada")
    assert "y = (x )" in text
    assert "def softmax" not in text


def test_the_answer_is_not_in_it():
    raw = pages.content(next(iter(SMALL.students())), SMALL).decode()
    for line in get("softmax").solution_source.splitlines():
        if "return" in line or "=" in line:
            assert line.strip() not in raw


def test_where_the_grader_failed_it_says_so_and_counts_nothing():
    text = text_of(SMALL, "Ada")
    assert "through no fault of yours" in text
    assert "no processes left" not in text  # that is for the teacher
    assert "0.76 of 10 points 0 of 1" in text or "0.76 of 10 points" in text


def test_what_could_not_be_read_is_no_zero():
    text = text_of(SMALL, "bob")
    assert "That is no zero" in text
    assert "ends in the middle" in text
    assert "0 of" not in text
    assert "That is no zero" in text_of(SMALL, "mia")


def test_whatever_a_student_wrote_is_escaped():
    wrong = grade(
        EVIL,
        status="raised",
        text=f"{EVIL}: not yet. `{EVIL}`\n  {EVIL}",
        mistakes=(EVIL,),
        hint=EVIL,
        notes=(EVIL,),
        cell=1,
        begins=f" (`{EVIL}`)",
    )
    all_ = a_class(
        graded(EVIL, wrong, where=f"{EVIL}.ipynb"),
        graded(EVIL, status="unreadable", problem=EVIL, where="b"),
        title=EVIL,
    )
    found = seen(all_, EVIL)
    assert not found.tags & {"script", "img", "a", "iframe", "link", "b<"}
    assert found.tags <= {
        *("html", "head", "meta", "title", "style", "body", "section", "div", "span"),
        *("h1", "h2", "h3", "p", "b", "code", "pre", "em"),
    }


def test_nothing_is_fetched_and_no_script_may_run():
    raw = pages.content(next(iter(SMALL.students())), SMALL).decode()
    assert "default-src 'none'" in raw
    assert "prefers-color-scheme" in raw
    assert "width=device-width" in raw
    assert not re.search(r"https?:|url\(|@import|<script", raw)


def test_what_turns_a_line_round_is_marked():
    assert page.safe("a\u202eb\0c\x1b[31m") == "a\ufffdb\ufffdc\ufffd[31m"
    assert page.safe("李明 é") == "李明 é"


def test_tables_in_a_text_keep_their_columns():
    html = page.prose("Yours:\n  1  2\n  3  4\nNot so.")
    assert html == "<p>Yours:</p>\n<pre>  1  2\n  3  4</pre>\n<p>Not so.</p>"


def test_values_stand_as_check_shows_them():
    said = "Differs in X.\nX =\n[[1. 2.]\n [3. 4.]]\nyours[0] = 4\nexpected[0] = 5"
    html = page.prose(said)
    assert html.startswith("<p>Differs in X.</p>\n<pre>X =\n[[1. 2.]\n [3. 4.]]\n")
    assert html.endswith("yours[0] = 4\nexpected[0] = 5</pre>")
    assert page.prose("[0, 1] is wrong.") == "<p>[0, 1] is wrong.</p>"


def test_what_a_hint_stresses_is_stressed_and_code_is_left_alone():
    assert page.inline("each *column* of `a * b * c`") == (
        "each <em>column</em> of <code>a * b * c</code>"
    )
    for plain in ("2 * 3 * 4", "a*b*c", "**kwargs and **more"):
        assert page.inline(plain) == plain


def test_a_general_hint_is_for_where_no_mistake_was_named():
    """Who only forgot the root is not sent back to the first step."""
    open_ = grade(points=0, status="differs", hint="Look at `d_k`.")
    assert "A hint. Look at d_k ." in text_of(a_class(graded("ada", open_)), "ada")
    assert "A hint." not in text_of(SMALL, "Ada")


def test_each_lesson_has_its_heading_and_one_that_is_not_there_is_told():
    away = "Mail/Ben_4821007_assignsubmission_file/my masks.ipynb"
    both = a_class(
        graded("ada", grade(), where="a/01.ipynb"),
        graded("ada", grade("causal", 0, 500, "law"), where=away),
        graded("ben", grade("causal"), where="b/03.ipynb"),
    )
    text = text_of(both, "ada")
    assert "Lesson 01 Your file: 01.ipynb" in text
    assert "Lesson 03 Your file: my masks.ipynb" in text
    assert "assignsubmission" not in text
    assert 'hint("causal")' in text
    assert "is here" not in text
    assert "Nothing of lesson 01 is here" in text_of(both, "ben")


def test_a_lesson_that_is_in_no_sum_is_said_to_be():
    more = graded("eve", grade("causal", 250, 500, "law"), where="b")
    class_ = [graded(name, grade()) for name in "abc"]
    for files in ([more], [graded("eve", grade()), more]):
        text = text_of(a_class(*class_, *files), "eve")
        assert text.count("The class was not asked for this lesson") == 1
    assert "not asked" not in text_of(a_class(*class_, *files), "a")


def test_a_text_without_end_is_cut():
    assert len(page.prose("a" * 10**6)) < 2 * page.LONGEST


@pytest.mark.parametrize(
    ("states", "said"),
    [
        (["passed", "passed"], "Everything is right. Well done."),
        (["not started", "missing"], "Nothing is begun yet."),
        (["missing", "missing"], "None of the exercises is in this file."),
        (["passed", "law"], "1 of 2 are right. Well done; one is left."),
        (["passed", "law", "law"], "1 of 3 is right."),
        (["law", "missing"], "You have begun."),
        (["passed", "ungraded"], "Everything is right. Well done."),
    ],
)
def test_the_first_sentence_says_what_stands(states, said):
    grades = [grade(f"e{n}", 0, 100, state) for n, state in enumerate(states)]
    (one,) = a_class(graded("ada", *grades)).students()
    assert pages.greeting(one).startswith(said)


def test_everything_is_written_and_names_lead_nowhere_else(tmp_path):
    names = ["../../up", "A", "a", "x" * 300, EVIL, "="]
    all_ = a_class(*(graded(name, grade()) for name in names))
    outputs.everything(all_, tmp_path)
    assert len(list((tmp_path / "feedback").glob("*.html"))) == len(names)
    assert len(list((tmp_path / "gradescope").glob("*.json"))) == len(names)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        *("canvas.csv", "class.html", "feedback", "grades.csv", "gradescope"),
        "moodle.csv",
    ]
    assert not list(tmp_path.parent.glob("up*"))
