"""The checks of the exercises, held against mutants that nobody thought of.

`attnlib mutation` prints what is asserted here, and writes the recorded numbers.
"""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from attnlib import exercises
from attnlib.__main__ import main
from attnlib.clinic.case import Case
from attnlib.exercises import mutation
from attnlib.exercises.exercise import Exercise
from attnlib.exercises.mutants import mutants
from attnlib.exercises.mutation import Score, judge_with
from attnlib.exercises.value_mutants import value_mutants

RECORDED = Path(__file__).parent.parent / "benchmarks" / "results" / "mutation.json"
recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
NAMES = mutation.measured()
FUNCTIONS = [n for n in NAMES if isinstance(exercises.get(n), Exercise)]
VALUES = [n for n in NAMES if n not in FUNCTIONS]


# The guard.


@pytest.mark.parametrize("name", NAMES)
def test_no_score_falls_below_the_recorded_one(name):
    score = mutation.score(name)
    assert score.survivors == ()
    assert score.share >= recorded[name]["score"] == 1.0
    assert score.mutants >= (10 if name in FUNCTIONS else 5)


def test_all_exercises_are_recorded():
    text = (RECORDED.parent.parent.parent / "CONTRIBUTING.md").read_text("utf-8")
    wrong = recorded["all"]["mutants"] - recorded["all"]["equivalent"]
    assert f"refuse: {recorded['all']['killed']} of {wrong}." in text
    assert set(recorded) == {*NAMES, "all"}
    counts = [recorded[name] for name in NAMES]
    for key in set(recorded["all"]) - {"score"}:
        assert recorded["all"][key] == sum(count[key] for count in counts)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_listed_as_equivalent_is_a_mutant_and_gives_the_same(name):
    answers = {wrong.changed: wrong.answer for wrong in mutation.wrong_answers(name)}
    for changed, reason in mutation.equivalent(name).items():
        assert changed in answers
        assert mutation.differs(exercises.get(name), answers[changed]) == ""
        assert reason.endswith(".")
    assert len(mutation.equivalent(name)) <= 0.25 * len(answers)


def test_equivalent_mutants_are_held_against_more_than_the_cases():
    """Where cases hold the same numbers for every seed, other ones are tried."""
    rng = np.random.default_rng(5)
    layouts = ("half", "interleaved")
    more = {
        "alibi_slopes": [(n,) for n in range(1, 70)],
        "sinusoidal": [(n, d) for n in range(1, 8) for d in range(2, 20, 2)],
        "rope": [
            (rng.normal(size=(3, d)), np.array([0, 2, 900]), layout)
            for d in range(2, 20, 2)
            for layout in layouts
        ],
        "ntk_base": [(1e4, s, d) for s in (0.5, 1, 3.0) for d in range(4, 40, 4)],
        "document_mask": [(rng.integers(0, n, size=n),) for n in range(1, 12)],
        "patches": [
            (rng.normal(size=(a * s, b * s)), s)
            for s, a, b in rng.integers(1, 6, size=(20, 3)).tolist()
        ],
    }
    for name, calls in more.items():
        cases = [Case(str(args), args) for args in calls]
        answers = {w.changed: w.answer for w in mutation.wrong_answers(name)}
        for changed in mutation.equivalent(name):
            assert not mutation.differs(exercises.get(name), answers[changed], cases)


def test_only_exercises_have_equivalent_mutants():
    listed = json.loads(mutation.LISTED.read_text(encoding="utf-8"))
    assert set(listed) <= set(FUNCTIONS)


# The guard can fail.


def weakened(name, keep, laws=True):
    """An exercise with fewer cases: those of which `keep` says so."""
    exercise = exercises.get(name)

    def cases(rng):
        return tuple(case for case in exercise.cases(rng) if keep(case))

    kept = exercise.laws if laws else ()
    return replace(exercise, cases=cases, laws=kept)


@pytest.mark.parametrize(
    ("name", "keep", "survivor"),
    [
        ("causal", lambda case: case.name != "6 tokens", "n_k = 3 if n_k is None"),
        ("alibi_slopes", lambda case: case.args != (15,), "np.arange(1, below + 1)"),
        ("first_bad", lambda case: "minus" not in case.name, "if name >= 'scores':"),
        ("scaled_dot_product", lambda case: "thousands" not in case.name, "np.exp("),
    ],
)
def test_a_check_without_one_of_its_cases_scores_lower(name, keep, survivor):
    score = mutation.score(name, judge=judge_with(weakened(name, keep)))
    assert score.share < 1
    assert score.killed == score.mutants - score.equivalent - len(score.survivors)
    assert any(survivor in one.split(" -> ")[1] for one in score.survivors)


@pytest.mark.parametrize("name", ["masked_attention", "softmax", "match_sdpa"])
def test_a_check_with_its_first_case_only_scores_lower(name):
    first = exercises.get(name).cases(np.random.default_rng(0))[0].name
    weak = weakened(name, lambda case: case.name == first, laws=False)
    assert mutation.score(name, judge=judge_with(weak)).share < 1


def test_a_check_that_accepts_all_scores_nothing():
    passed = exercises.judge("entropy", exercises.get("entropy").solution)
    score = mutation.score("entropy", judge=lambda answer: passed)
    assert score.share == score.killed == score.named == score.raised == 0
    assert len(score.survivors) == score.mutants - score.equivalent > 20


def test_an_equivalent_mutant_that_is_refused_is_no_merit():
    refused = exercises.judge("entropy", lambda weights: weights)
    score = mutation.score("entropy", judge=lambda answer: refused)
    assert score.share < 1 or score.survivors
    assert len(score.survivors) == len(mutation.equivalent("entropy"))
    assert all("though equivalent" in survivor for survivor in score.survivors)


def test_what_differs_on_other_numbers_is_not_equivalent():
    exercise = exercises.get("entropy")
    assert mutation.differs(exercise, exercise.solution) == ""
    assert mutation.differs(exercise, lambda weights: weights.sum(axis=-1))
    assert mutation.differs(exercise, lambda weights: weights)
    assert mutation.differs(exercise, lambda weights: 1 / 0)


# The mutants.

SMALL = '''\
def f(x, mask, n=2):
    """Text."""
    y = np.where(mask > 0, x, -1)
    if n == 3:
        y = y.T / np.sqrt(x.shape[0])
    return y.sum(axis=-1, keepdims=True), ~mask
'''
CHANGED = """\
y = np.where(mask > 0, x, -1) -> pass
y = np.where(mask > 0, x, -1) -> y = np.where(mask >= 0, x, -1)
y = np.where(mask > 0, x, -1) -> y = np.where(mask < 0, x, -1)
y = np.where(mask > 0, x, -1) -> y = np.where(mask > 1, x, -1)
y = np.where(mask > 0, x, -1) -> y = np.where(mask > 0, -1, x)
y = np.where(mask > 0, x, -1) -> y = np.where(x, mask > 0, -1)
y = np.where(mask > 0, x, -1) -> y = np.where(mask > 0, x)
y = np.where(mask > 0, x, -1) -> y = np.where(mask > 0, x, 0)
y = np.where(mask > 0, x, -1) -> y = np.where(mask > 0, x, 1)
y = np.where(mask > 0, x, -1) -> y = np.where(mask > 0, mask, -1)
y = np.where(mask > 0, x, -1) -> y = x
def f(x, mask, n=2): -> def f(x, mask, n=3):
if n == 3: -> if n != 3:
if n == 3: -> if mask == 3:
if n == 3: -> if True:
y = y.T / np.sqrt(x.shape[0]) -> y = y / np.sqrt(x.shape[0])
y = y.T / np.sqrt(x.shape[0]) -> y = y.T * np.sqrt(x.shape[0])
y = y.T / np.sqrt(x.shape[0]) -> y = np.sqrt(x.shape[0]) / y.T
y = y.T / np.sqrt(x.shape[0]) -> y = y.T / x.shape[0]
y = y.T / np.sqrt(x.shape[0]) -> y = y.T / np.sqrt(x.shape[1])
y = y.T / np.sqrt(x.shape[0]) -> y = y.T / np.sqrt(x.shape[-1])
y = y.T / np.sqrt(x.shape[0]) -> y = y.T / np.sqrt(7)
return (y.sum(axis=-1, keepdims=True), ~mask) -> pass
return (y.sum(axis=-1, keepdims=True), ~mask) -> return (~mask, y.sum(axis=-1, keepdims=True))
return (y.sum(axis=-1, keepdims=True), ~mask) -> return (y.sum(axis=-1, keepdims=True),)
return (y.sum(axis=-1, keepdims=True), ~mask) -> return (y.sum(axis=-1, keepdims=True), mask)
return (y.sum(axis=-1, keepdims=True), ~mask) -> return (y.sum(axis=-1), ~mask)
return (y.sum(axis=-1, keepdims=True), ~mask) -> return (y.sum(keepdims=True), ~mask)
return (y.sum(axis=-1, keepdims=True), ~mask) -> return (y.sum(axis=-2, keepdims=True), ~mask)
return (y.sum(axis=-1, keepdims=True), ~mask) -> return (y.sum(axis=0, keepdims=True), ~mask)
return (y.sum(axis=-1, keepdims=True), ~mask) -> return (y.mean(axis=-1, keepdims=True), ~mask)
return (y.sum(axis=-1, keepdims=True), ~mask) -> return (y, ~mask)
"""  # noqa: E501


def test_every_place_is_changed_in_every_way():
    made = [m.changed for m in mutants("f", SMALL, {"x": np.zeros((7, 3)), "n": 3})]
    assert [line for line in CHANGED.splitlines() if line not in made] == []
    assert len(made) == len(set(made))


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ("a @ b", "b @ a"),
        ("a + b", "a - b"),
        ("a - b", "b - a"),
        ("a * b", "a / b"),
        ("a & b", "a | b"),
        ("a[..., 1:, b]", "a[..., :, b]"),
        ("a[b:][0]", "a[:b][0]"),
        ("a[0::2]", "a[0:]"),
        ("a if b is None else b", "b if b is None else a"),
        ("a <= b and b", "a < b and b"),
        ("a <= b and b", "a <= b or b"),
        ("max(1, a)", "max(1, b)"),
        ("np.max(a - b)", "np.min(a - b)"),
        ("np.max(a - b)", "a - b"),
        ("a.copy()", "a"),
        ("a == 'half'", "a == 'halfs'"),
    ],
)
def test_an_expression_is_changed(body, wrong):
    source = f"def f(a, b):\n    return {body}\n"
    wanted = ast.unparse(ast.parse(f"def f(a, b):\n    return {wrong}\n"))
    assert wanted in [mutant.source for mutant in mutants("f", source)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_mutant_is_another_function_of_the_same_name(name):
    exercise = exercises.get(name)
    whole = ast.unparse(ast.parse(exercise.solution_source))
    made = mutants(name, exercise.solution_source)
    assert whole not in {mutant.source for mutant in made}
    assert len({mutant.source for mutant in made}) == len(made) >= 10
    assert made[0].make(exercise.solution).__name__ == name
    assert all(" -> " in mutant.changed for mutant in made)


@pytest.mark.parametrize("name", VALUES)
def test_a_wrong_value_is_never_the_right_one(name):
    exercise = exercises.get(name)
    pairs = value_mutants(exercise)
    least = 5 if name == "texts_that_fit" else 20  # it is one number, with few others
    assert len({text for text, _ in pairs}) == len(pairs) >= least
    assert all(exercises.judge(name, value).status != "passed" for _, value in pairs)


@pytest.mark.parametrize("name", ["mask_check", "bug_bash", "smallest_input"])
def test_what_is_graded_by_bugs_itself_has_no_score(name):
    assert name not in NAMES
    with pytest.raises(ValueError, match="graded by mutants itself"):
        mutation.wrong_answers(name)


# The command.


def test_the_command_prints_a_table_and_writes_it(capsys, tmp_path):
    file = tmp_path / "mutation.json"
    asked = ["--exercise", "entropy", "--exercise", "weighted_mean"]
    assert main(["mutation", *asked, "--equivalent", "--write", str(file)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == [
        *("exercise", "mutants", "killed", "named", "specific", "raised"),
        *("equivalent", "survived", "score"),
    ]
    assert lines[1].startswith("entropy ")
    assert lines[1].endswith("100.0 %")
    assert lines[3] == "        The logarithm is multiplied by a weight of 0."
    assert lines[-1].startswith("all ")
    written = json.loads(file.read_text())
    assert set(written) == {"entropy", "weighted_mean", "all"}
    assert written["entropy"] == recorded["entropy"]


def test_the_command_fails_if_a_mutant_survives(capsys, monkeypatch):
    found = Score(10, 7, 3, 5, 2, 1, ("a -> b", "c -> d"))
    monkeypatch.setattr(mutation, "score", lambda name, seed: found)
    assert main(["mutation", "--exercise", "entropy", "--list"]) == 1
    out = capsys.readouterr().out
    assert "77.8 %" in out
    assert out.endswith("\n    a -> b\n    c -> d\n")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("entropi", "There is no exercise entropi."),
        (
            "bug_bash",
            "bug_bash is graded by mutants itself: it has no mutation score.",
        ),
    ],
)
def test_the_command_knows_its_exercises(name, text, capsys):
    assert main(["mutation", "--exercise", name]) == 2
    captured = capsys.readouterr()
    assert captured.err == text + "\n"
    assert captured.out == ""
