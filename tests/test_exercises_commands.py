"""check, hint and solution: what they print, and what they never print."""

from __future__ import annotations

import ast
import inspect
import itertools
import subprocess
import sys

import numpy as np
import pytest

from attnlib import cost, exercises
from attnlib.exercises import check, get, hint, judge, names, solution
from attnlib.exercises.exercise import (
    Exercise,
    HuntExercise,
    ValueExercise,
    WitnessExercise,
)
from attnlib.exercises.wrap import WIDTH, wrapped

FUNCTIONS = [n for n in names() if isinstance(get(n), Exercise)]
HUNTS = [n for n in names() if isinstance(get(n), HuntExercise)]
VALUES = [n for n in names() if isinstance(get(n), ValueExercise)]
INPUTS = [n for n in names() if isinstance(get(n), WitnessExercise)]


@pytest.fixture(autouse=True)
def _no_hints_taken(monkeypatch):
    monkeypatch.setattr(exercises, "_hints_taken", {})


def said(capsys, command, *args, **kwargs):
    assert command(*args, **kwargs) is None
    return capsys.readouterr().out


def one_line(text):
    """A printed text without its line breaks, which come with the width."""
    return " ".join(text.split())


def stub(name):
    scope = {"np": np}
    exec(get(name).stub_source, scope)
    return scope[name]


def wrong_answers(name):
    """Every single mistake, as a function of the learner's."""
    exercise = get(name)
    for key in exercise.family.faults if name in FUNCTIONS else ():

        def answer(*args, key=key):
            return exercise.family.implementation(*args, faults=frozenset([key]))

        yield answer


# --- stubs ------------------------------------------------------------------------
@pytest.mark.parametrize("name", names())
def test_an_untouched_stub_gets_one_sentence(name, capsys):
    text = said(capsys, check, name, stub(name))
    assert " ".join(text.split()) == (
        f"{name}: not started yet. Replace the `...`, run the cell, then this one."
    )


@pytest.mark.parametrize("name", names())
def test_what_is_printed_stands_in_short_lines(name, capsys):
    said_of_it = [said(capsys, check, name, stub(name))]
    said_of_it += [said(capsys, hint, name) for _ in range(4)]
    for answer in itertools.islice(wrong_answers(name), 3):
        printed = said(capsys, check, name, answer)
        whole = exercises.judge(name, answer).text
        assert printed.split() == whole.split()
        said_of_it.append(printed)
    for line in "".join(said_of_it).splitlines():
        plain = line.startswith((" ", "[")) or len(line.split()) == 1
        assert len(line) <= WIDTH or plain or "`" in line, line


def test_rows_of_numbers_and_code_are_not_broken():
    row = f"[{'0.25 ' * 30}]"
    assert wrapped(row) == row
    assert wrapped(f"yours =\n {row}") == f"yours =\n {row}"
    code = f"`{'x + ' * 30}1`"
    assert wrapped(f"{'words ' * 12}{code}.").split("\n")[-1] == f"{code}."
    assert wrapped("one\n\ntwo") == "one\n\ntwo"


@pytest.mark.parametrize("name", FUNCTIONS + HUNTS)
@pytest.mark.parametrize(
    "body", ["pass", "return", "return None", "...", "raise NotImplementedError"]
)
def test_other_ways_to_leave_a_stub_empty(name, body):
    source = get(name).stub_source.replace("    ...\n", f"    {body}\n")
    scope = {}
    exec(source, scope)
    assert judge(name, scope[name]).status == "not started"


@pytest.mark.parametrize("name", FUNCTIONS + HUNTS)
def test_a_stub_has_the_signature_and_docstring_of_the_solution(name):
    exercise, made = get(name), stub(name)
    assert exercise.solution.__name__ == name
    assert inspect.signature(made) == inspect.signature(exercise.solution)
    assert inspect.getdoc(made) == inspect.getdoc(exercise.solution)


@pytest.mark.parametrize("name", FUNCTIONS + HUNTS)
def test_a_stub_is_one_function_of_docstring_and_ellipsis(name):
    (made,) = ast.parse(get(name).stub_source).body
    assert isinstance(made, ast.FunctionDef)
    docstring, rest = made.body
    assert isinstance(docstring.value.value, str)
    assert rest.value.value is Ellipsis
    assert get(name).stub_source.endswith("\n    ...\n")


@pytest.mark.parametrize("name", VALUES + INPUTS)
def test_the_stub_of_a_value_is_one_assignment(name):
    (made,) = ast.parse(get(name).stub_source).body
    assert isinstance(made, ast.Assign)
    assert made.targets[0].id == name
    assert made.value.value is Ellipsis


# --- solutions ----------------------------------------------------------------------
@pytest.mark.parametrize("name", FUNCTIONS + HUNTS)
def test_the_solution_passes_and_says_why(name, capsys):
    text = said(capsys, check, name, get(name).solution)
    assert text.startswith(f"{name}: passed. ")
    assert one_line(get(name).why) in one_line(text)


@pytest.mark.parametrize("name", VALUES + INPUTS)
def test_the_solution_of_a_value_passes(name):
    scope = {"np": np, "cost": cost}
    exec(get(name).solution_source, scope)
    assert judge(name, scope[name]).passed


@pytest.mark.parametrize("name", names())
def test_a_solution_replaces_its_stub(name):
    *before, solved = ast.parse(get(name).solution_source).body
    assert not before or name in VALUES  # a value may be worked out in steps
    found = solved.name if name in FUNCTIONS + HUNTS else solved.targets[0].id
    assert found == name
    assert len(get(name).solution_source.splitlines()) <= 25
    assert all(len(line) <= 79 for line in get(name).stub_source.splitlines())
    assert all(len(line) <= 88 for line in get(name).solution_source.splitlines())


def secret_lines(name):
    """The lines of the solution that are work, not signature or docstring."""
    stub_lines = {line.strip() for line in get(name).stub_source.splitlines()}
    lines = (line.strip() for line in get(name).solution_source.splitlines())
    return [line for line in lines if line and line not in stub_lines]


@pytest.mark.parametrize("name", FUNCTIONS + HUNTS)
def test_check_never_prints_the_solution(name):
    answers = [stub(name), lambda *a: None, lambda *a: a[0], 3, None, get(name)]
    texts = [judge(name, answer).text for answer in answers]
    texts += [judge(name, answer).text for answer in wrong_answers(name)]
    for line in secret_lines(name):
        assert not any(line in text for text in texts), line


@pytest.mark.parametrize("name", FUNCTIONS + HUNTS)
def test_no_hint_holds_the_work_of_the_solution(name):
    lines = secret_lines(name)
    for sentence in get(name).hints:
        held = [line for line in lines if line in sentence]
        assert lines[-1] not in held
        assert len(held) <= len(lines) / 2, held
        assert sum(len(line) > 25 for line in held) <= 1, held


@pytest.mark.parametrize("name", VALUES)
def test_check_never_prints_the_right_value(name):
    exercise = get(name)
    shown = exercise.show.split("=", 1)[1].strip()
    answers = [m.value for m in exercise.wrong]
    answers += [..., None, "x", 17.25, (1, 2, 3, 4, 5), {}, [], np.zeros(3), len]
    for answer in answers:
        assert shown not in judge(name, answer).text


# --- hints --------------------------------------------------------------------------
@pytest.mark.parametrize("name", names())
def test_three_hints_one_at_a_time_and_then_the_solution(name, capsys):
    exercise = get(name)
    assert len(exercise.hints) == 3
    for number, sentence in enumerate(exercise.hints, start=1):
        left = said(capsys, solution, name)
        assert f"{4 - number} hint" in left
        assert f'solution("{name}", now=True)' in left
        text = said(capsys, hint, name)
        assert one_line(text) == one_line(f"Hint {number} of 3: {sentence}")
    assert f'solution("{name}")' in said(capsys, hint, name)
    assert said(capsys, solution, name).strip() == exercise.solution_source.strip()


def test_the_solution_can_be_seen_before_the_hints(capsys):
    text = said(capsys, solution, "softmax", now=True)
    assert text.strip() == get("softmax").solution_source.strip()
    assert "Hint 1 of 3" in said(capsys, hint, "softmax")


# --- calls gone wrong ---------------------------------------------------------------
def softmax(x, axis=-1):
    return x


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((), 'check("name", name)'),
        (("softmax",), 'The answer is missing: write check("softmax", softmax).'),
        ((softmax,), 'The answer is missing: write check("softmax", softmax).'),
        ((softmax, "softmax"), 'The two are swapped: write check("softmax", softmax).'),
        (("sofmax", softmax), 'Did you mean "softmax"?'),
        (("xyz", softmax), 'There is no exercise "xyz". There are: weighted_mean,'),
        ((3, softmax), "check wants the name of an exercise in quotes first"),
        ((None, None), "here it got a NoneType"),
        ((np.ones(3), softmax), "here it got an ndarray"),
        (
            ("scaled_dot_product", softmax),
            'You gave the function softmax: write check("scaled_dot_product",',
        ),
    ],
)
def test_a_check_called_wrongly_says_how(args, words, capsys):
    text = said(capsys, check, *args)
    assert words in one_line(text)
    assert text.rstrip("\n").endswith((".", "?"))
    assert judge(*args).status == "usage"


@pytest.mark.parametrize("command", [hint, solution])
@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((), "wants the name of an exercise in quotes first"),
        (("softmaxx",), 'Did you mean "softmax"?'),
        ((softmax,), "here it got softmax"),
        ((3,), "here it got an int"),
    ],
)
def test_a_hint_or_solution_called_wrongly_says_how(command, args, words, capsys):
    assert words in one_line(said(capsys, command, *args))


def test_check_survives_a_fault_of_its_own(monkeypatch, capsys):
    def broken(*args):
        raise ZeroDivisionError

    monkeypatch.setattr(exercises, "judge", broken)
    assert "That is not your mistake" in one_line(
        said(capsys, check, "softmax", softmax)
    )


def test_names_and_get():
    assert names(0) == ("weighted_mean", "read_the_diagnosis")
    assert names(1) == ("softmax", "scaled_dot_product", "distance_to_possible")
    assert set(names(0) + names(1)) < set(names())
    with pytest.raises(KeyError, match='Did you mean "softmax"'):
        get("softmaz")


def test_texts_are_plain_sentences():
    for name in names():
        exercise = get(name)
        for sentence in (*exercise.hints, exercise.why):
            assert sentence == sentence.strip(), sentence
            assert sentence.rstrip("`")[-1] in ".?!", sentence
            assert "!" not in sentence.replace("!=", ""), sentence
        assert exercise.minutes > 0


def test_the_exercises_load_no_torch_and_no_plotly():
    code = (
        "import sys, attnlib.exercises as e; e.check('softmax', lambda x, axis=-1: x);"
        "e.judge('read_the_diagnosis', 3);"
        "print({'torch', 'plotly', 'ipywidgets', 'IPython'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "set()"
