"""Assignments of nbgrader, held against what its metadata must be (schema 3).

The rules are those of nbgrader's documentation and of its own validator; nbgrader is
not needed here.
"""

import ast
import io
import json
import re
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from test_grading_private import EXAMPLE, nothing_stays  # noqa: F401

from attnlib import exercises
from attnlib.__main__ import main
from attnlib.grading import lessons, nbgrader, points, release

NOTEBOOKS = sorted(
    (Path(__file__).resolve().parent.parent / "notebooks").glob("[0-9][0-9]_*.ipynb")
)
FIRST = NOTEBOOKS[0]
FIELDS = {"schema_version", "grade_id", "grade", "solution", "locked", "task"}


def objections(document):
    """What nbgrader would refuse, in sentences."""
    said, ids = [], []
    for number, cell in enumerate(document["cells"], start=1):
        marks = cell["metadata"].get("nbgrader")
        if marks is None:
            continue
        at = f"cell {number}"
        graded = marks.get("grade") is True
        if set(marks) != FIELDS | ({"points"} if graded else set()):
            said.append(f"{at} has the fields {sorted(marks)}.")
            continue
        if marks["schema_version"] != 3:
            said.append(f"{at} has schema {marks['schema_version']}.")
        if not re.fullmatch(r"[a-zA-Z0-9_\-]+", marks["grade_id"]):
            said.append(f"{at} has the grade_id {marks['grade_id']!r}.")
        kinds = [marks[key] for key in ("grade", "solution", "locked", "task")]
        if not all(type(kind) is bool for kind in kinds):
            said.append(f"{at} has a mark that is neither true nor false.")
        if marks["task"] or marks["solution"] == graded:
            said.append(f"{at} is neither an answer nor a test.")
        if graded and not (marks["locked"] and cell["cell_type"] == "code"):
            said.append(f"{at} grades, and can be changed.")
        if graded and not (
            type(marks["points"]) in (int, float) and marks["points"] > 0
        ):
            said.append(f"{at} is worth {marks['points']}.")
        source = lessons.source(cell)
        region = [source.count(word) for word in ("BEGIN SOLUTION", "END SOLUTION")]
        if region != ([1, 1] if marks["solution"] else [0, 0]):
            said.append(f"{at} has {region} marks of a solution.")
        ids.append(marks["grade_id"])
    if len(set(ids)) != len(ids):
        said.append("A grade_id stands twice.")
    for number, cell in enumerate(document["cells"], start=1):
        if "nbgrader" not in cell["metadata"] and "SOLUTION" in lessons.source(cell):
            said.append(f"cell {number} has a solution, and no marks.")
    return said


def students(document):
    """The students' version, as nbgrader makes it: a placeholder for each region."""
    for cell in document["cells"]:
        kept, inside = [], False
        for line in lessons.source(cell).split("\n"):
            if "BEGIN SOLUTION" in line:
                inside, indent = True, line[: len(line) - len(line.lstrip())]
                kept += [
                    f"{indent}# YOUR CODE HERE",
                    f"{indent}raise NotImplementedError()",
                ]
            elif "END SOLUTION" in line:
                inside = False
            elif not inside:
                kept.append(line)
        cell["source"] = lessons.lines("\n".join(kept))
    return document


def graded(document):
    """The points that each test gives: its last expression, or 0 if it raises."""
    got, names = {}, {"__name__": "__main__"}
    for _, cell in lessons.code_of(document):
        marks = cell["metadata"].get("nbgrader", {})
        if not (marks or "setup" in lessons.tags(cell)):
            continue
        *before, last = ast.parse(lessons.source(cell)).body
        try:
            with redirect_stdout(io.StringIO()):
                if not marks.get("grade"):
                    exec(lessons.source(cell), names)
                    continue
                exec(compile(ast.Module(before, []), "<cell>", "exec"), names)
                value = eval(ast.unparse(last), names)
        except (NotImplementedError, NameError):
            value = 0
        if marks.get("grade"):
            got[marks["grade_id"]] = float(repr(value))  # as nbgrader reads an output
    return got


def assignment(path):
    return json.loads(nbgrader.assignment(path.read_bytes(), path.name))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_nbgrader_has_no_objection(path):
    document = assignment(path)
    assert objections(document) == []
    names = exercises.names(int(path.name[:2]))
    ids = [
        cell["metadata"]["nbgrader"]["grade_id"]
        for cell in document["cells"]
        if "nbgrader" in cell["metadata"]
    ]
    assert sorted(ids) == sorted([*names, *(f"{name}_points" for name in names)])
    assert len({cell["id"] for cell in document["cells"]}) == len(document["cells"])
    worth = [
        c["metadata"].get("nbgrader", {}).get("points", 0) for c in document["cells"]
    ]
    assert sum(worth) == sum(exercises.get(name).minutes for name in names)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_students_version_holds_no_solution(path):
    document = students(assignment(path))
    lesson = json.loads(path.read_bytes())
    rows = {
        " ".join(row.split())
        for cell in lesson["cells"]
        for row in lessons.source(cell).split("\n")
    }
    for cell in document["cells"]:
        found = {" ".join(row.split()) for row in lessons.source(cell).split("\n")}
        for name in exercises.names(int(path.name[:2])):
            assert not (set(release.body(name)) & found) - rows
        assert not cell.get("outputs")


@pytest.mark.parametrize("path", [NOTEBOOKS[0], NOTEBOOKS[3]], ids=lambda p: p.stem)
def test_solutions_get_all_points_and_blank_ones_none(path):
    names = exercises.names(int(path.name[:2]))
    full = {f"{n}_points": points.of(exercises.get(n)) / points.POINT for n in names}
    assert graded(assignment(path)) == full
    assert graded(students(assignment(path))) == dict.fromkeys(full, 0)


def test_what_is_right_in_part_gets_a_part():
    document = students(assignment(FIRST))
    for cell in document["cells"]:
        if lessons.source(cell).startswith("read_the_diagnosis"):
            cell["source"] = ["read_the_diagnosis = (1.0, 2.0)"]
        if lessons.source(cell).startswith("def weighted_mean"):
            cell["source"] = ["def weighted_mean(weights, values):\n    return 0.0"]
    assert graded(document) == {
        "weighted_mean_points": 0.0,
        "read_the_diagnosis_points": 1.5,
    }


def test_a_filled_in_copy_gives_the_same_assignment():
    document = lessons.read(FIRST.read_bytes(), "")
    for name, (cell, _) in lessons.stubs(document).items():
        cell["source"] = [f"{name} = 3"]
        cell["metadata"]["nbgrader"] = {"schema_version": 1}
    given = nbgrader.assignment(lessons.to_bytes(document), FIRST.name)
    assert given == nbgrader.assignment(FIRST.read_bytes(), FIRST.name)


def test_a_solution_in_another_cell_is_refused():
    document = json.loads(FIRST.read_bytes())
    document["cells"].append({**document["cells"][-1], "cell_type": "markdown"})
    document["cells"][-1]["source"] = ["\n".join(release.body("weighted_mean"))]
    with pytest.raises(
        lessons.LessonError, match=r"`\) holds an answer to weighted_mean"
    ):
        nbgrader.assignment(lessons.to_bytes(document), "a.ipynb")


def test_a_notebook_without_exercises_is_no_assignment():
    document = json.loads(FIRST.read_bytes())
    document["cells"] = document["cells"][:2]
    with pytest.raises(lessons.LessonError, match=r"a\.ipynb holds no exercise\."):
        nbgrader.assignment(lessons.to_bytes(document), "a.ipynb")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda marks: marks.update(schema_version=2), "has schema 2"),
        (lambda marks: marks.pop("task"), "has the fields"),
        (lambda marks: marks.update(grade_id="größe"), "has the grade_id"),
        (lambda marks: marks.update(grade_id="weighted_mean_points"), "stands twice"),
        (lambda marks: marks.update(solution=False), "is neither an answer nor a test"),
    ],
)
def test_the_rules_see_what_is_wrong(change, said):
    document = assignment(FIRST)
    cell = next(c for c in document["cells"] if "nbgrader" in c["metadata"])
    change(cell["metadata"]["nbgrader"])
    assert said in " ".join(objections(document))


def test_names_in_other_letters_become_plain_ones():
    assert nbgrader._ascii("größe_猫") == "gr-f6--df-e_-732b-"


def test_the_command_lays_files_where_nbgrader_looks(tmp_path, monkeypatch, capsys):
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "own.py").write_text(EXAMPLE, encoding="utf-8")
    monkeypatch.chdir(FIRST.parent.parent)
    out = tmp_path / "Kurs 1"
    words = ["export", "nbgrader", "0", "-o", str(out)]
    assert main([*words, "--exercises", str(tmp_path / "private")]) == 0
    path = out / "source" / FIRST.stem / FIRST.name
    assert capsys.readouterr().out == f"{path}\n"
    assert path.read_bytes() == nbgrader.assignment(FIRST.read_bytes(), FIRST.name)


def test_its_help_says_what_was_measured(capsys):
    with pytest.raises(SystemExit):
        main(["export", "nbgrader", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "nbgrader judges inside the student's process." in said
    assert "a blank notebook that changes how cells are compiled got all points" in said


def test_another_grader_is_not_known(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["export", "otter", "0", "-o", "x"])
    assert caught.value.code == 2
    assert "invalid choice: 'otter'" in capsys.readouterr().err
