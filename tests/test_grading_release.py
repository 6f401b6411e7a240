"""What students get: no answer in it, whatever the teacher did with their copy."""

import ast
import copy
import json
import re
from pathlib import Path

import pytest
from test_grading_private import EXAMPLE, nothing_stays  # noqa: F401

from attnlib import exercises
from attnlib.__main__ import main
from attnlib.grading import lessons, release, solutions
from attnlib.grading.lessons import LessonError

NOTEBOOKS = sorted(
    (Path(__file__).resolve().parent.parent / "notebooks").glob("[0-9][0-9]_*.ipynb")
)
FIRST, MASKS = NOTEBOOKS[0], NOTEBOOKS[3]
NONE_LONG = ("00",)  # lessons in which each solution is one short line
OWN_CODE = "print('a cell of mine', 1 + 1)"
OWN_TEXT = "A remark of mine, with `causal` in it."


def code(source, **more):
    cell = {"cell_type": "code", "execution_count": 7, "id": "own", "metadata": {}}
    return {**cell, "outputs": [], "source": lessons.lines(source), **more}


def text(source):
    return {"cell_type": "markdown", "id": "t", "metadata": {}, "source": [source]}


def answered(path):
    """A teacher's copy: every exercise filled in and run, solutions printed."""
    document = lessons.read(path.read_bytes(), path.name)
    for name, (cell, check) in lessons.stubs(document).items():
        solution = exercises.get(name).solution_source
        cell["source"] = lessons.lines("# my own way\n" + solution)
        cell["outputs"] = release.said(solution)
        check["outputs"] = release.said(f"{name}: passed.\n{solution}")
    return document


def with_cells(document, *cells):
    more = copy.deepcopy(document)
    more["cells"] += cells
    return lessons.to_bytes(more)


def rows(document):
    """All lines that stand anywhere in a notebook, without spaces around."""

    def texts(thing):
        if isinstance(thing, dict):
            yield from (t for value in thing.values() for t in texts(value))
        elif isinstance(thing, list) and all(isinstance(t, str) for t in thing):
            yield "".join(thing)
        elif isinstance(thing, list):
            yield from (t for value in thing for t in texts(value))
        elif isinstance(thing, str):
            yield thing

    return {" ".join(row.split()) for t in texts(document) for row in t.split("\n")}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_line_of_a_solution_is_in_a_released_lesson(path):
    lesson = json.loads(path.read_bytes())
    own = rows(lesson)
    document = answered(path)
    names = list(lessons.stubs(document))
    assert sorted(names) == sorted(exercises.names(int(path.name[:2])))
    document["cells"].insert(3, text(OWN_TEXT))
    document["cells"].append(code(OWN_CODE))
    shown = exercises.get(names[0]).solution_source
    asked = code(f'solution("{names[0]}", now=True)', outputs=release.said(shown))
    document["cells"].append(asked)
    for keep in (False, True):
        given = release.released(lessons.to_bytes(document), path.name, keep)
        found = rows(json.loads(given))
        for name in names:
            for row in release.body(name):
                assert row not in found or row in own, (name, row)
        assert {OWN_TEXT, OWN_CODE} <= found


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_with_its_outputs_a_filled_in_lesson_is_the_stored_one_again(path):
    document = answered(path)
    given = release.released(lessons.to_bytes(document), path.name, True)
    assert given == path.read_bytes()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_without_outputs_only_these_are_missing(path):
    content = path.read_bytes()
    given = json.loads(release.released(content, path.name))
    for cell, old in zip(given["cells"], json.loads(content)["cells"], strict=True):
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
            old |= {"outputs": [], "execution_count": None}
        assert cell == old


def test_a_solution_that_leaks_is_seen_by_this_test(monkeypatch):
    monkeypatch.setattr(release, "blank", lessons.stubs)
    with pytest.raises(AssertionError, match="weighted_mean"):
        test_no_line_of_a_solution_is_in_a_released_lesson(FIRST)


@pytest.mark.parametrize(
    "cell",
    [
        code("def causal(n_q, n_k=None):\n    return 1"),
        code("causal = lambda n_q, n_k=None: 1"),
        code("causal: object = len"),
        code("try:\n    1 / 0\nexcept ZeroDivisionError:\n    causal = len"),
        code("if 1:\n    def causal(n_q, n_k=None):\n        return 1"),
        code("x = 1\n!ls\ndef causal(n):\n    return 1"),  # does not compile
        code("def other(n_q, n_k=None):\n" + "    {BODY}"),
        text("<details>One way:\n\n```python\n{BODY}\n```\n</details>"),
        {**code("def causal(n):\n    return 1"), "metadata": {"tags": ["exercise"]}},
    ],
)
def test_a_cell_that_answers_an_exercise_is_named_and_not_given_out(cell):
    body = "\n    ".join(release.body("causal"))
    source = "".join(cell["source"]).replace("{BODY}", body)
    cell = {**cell, "source": lessons.lines(source)}
    document = json.loads(MASKS.read_bytes())
    number = len(document["cells"]) + 1
    with pytest.raises(LessonError) as caught:
        release.released(with_cells(document, cell), MASKS.name)
    said = str(caught.value)
    assert f" {number} " in said
    assert "causal" in said
    assert "tag `teacher`" in said
    cell["metadata"] = {"tags": ["teacher"]}
    given = release.released(with_cells(document, cell), MASKS.name)
    assert given == release.released(lessons.to_bytes(document), MASKS.name)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_solution_in_other_clothes_is_named(path):
    """Beside other lines, under another name, with remarks and other spaces."""
    document = json.loads(path.read_bytes())
    n_seen = 0
    for name in lessons.stubs(document):
        if not release._values(name):
            continue
        n_seen += 1
        solution = ast.parse(exercises.get(name).solution_source)
        for first in solution.body:
            if isinstance(first, ast.FunctionDef):
                first.name, first.body = "mine", first.body[1:]
            else:
                first.targets = [ast.Name("mine")]
        rows = ast.unparse(solution).splitlines()
        dressed = "\n".join(f"{row}  # so" for row in rows)
        for cell in (
            code(f"x = 1\n{dressed}\nprint(x)"),
            text(f"One way:\n\n```python\n{dressed}\n```\n"),
        ):
            with pytest.raises(LessonError, match=f"holds an answer to {name}: "):
                release.released(with_cells(document, cell), path.name)
    assert n_seen or path.name[:2] in NONE_LONG


def test_names_of_other_lessons_are_anybodys():
    cell = code("softmax = max")  # an exercise of lesson 01
    given = json.loads(
        release.released(with_cells(json.loads(MASKS.read_bytes()), cell), "a")
    )
    assert given["cells"][-1]["source"] == ["softmax = max"]


def test_what_editors_note_of_a_run_is_not_given_out():
    document = json.loads(FIRST.read_bytes())
    who = {"user": {"displayName": "Frau Lehrerin", "userId": "0421"}}
    document["metadata"] |= {"widgets": {"a": 1}, "colab": who}
    document["cells"][2]["metadata"]["executionInfo"] = who
    for keep in (False, True):
        given = release.released(lessons.to_bytes(document), "a.ipynb", keep)
        assert b"0421" not in given
        assert set(json.loads(given)["metadata"]) == {"kernelspec", "language_info"}


def test_tags_that_were_lost_are_there_again():
    document = json.loads(FIRST.read_bytes())
    for cell in document["cells"]:
        cell["metadata"] = {}
    given = json.loads(release.released(lessons.to_bytes(document), "a.ipynb"))
    tags = [tag for cell in given["cells"] for tag in lessons.tags(cell)]
    assert tags == ["setup", "exercise", "check", "exercise", "check"]


def test_an_exercise_that_nobody_knows_is_named():
    stub = {
        **code("def top_key(weights):\n    ..."),
        "metadata": {"tags": ["exercise"]},
    }
    document = json.loads(FIRST.read_bytes())
    content = with_cells(document, stub, code('check("top_key", top_key)'))
    with pytest.raises(LessonError, match="asks for top_key, which is none of the c"):
        release.released(content, "a.ipynb")


def test_the_command_knows_exercises_of_ones_own(tmp_path, monkeypatch, capsys):
    private = tmp_path / "private"
    private.mkdir()
    (private / "our_own.py").write_text(EXAMPLE, encoding="utf-8")
    stub = code("def top_key(weights):\n    return weights.argmax(-1)")
    mine = tmp_path / "lesson of mine.ipynb"
    document = json.loads(FIRST.read_bytes())
    mine.write_bytes(with_cells(document, stub, code('check("top_key", top_key)')))
    monkeypatch.chdir(tmp_path)
    words = ["release", mine.name, "-o", "out"]
    assert main(words) == 2
    assert "your own ones need --exercises FOLDER" in capsys.readouterr().err
    assert main([*words, "--exercises", "private"]) == 0
    given = json.loads(Path("out", mine.name).read_bytes())
    wanted = exercises.get("top_key").stub_source.strip("\n")
    assert lessons.source(given["cells"][-2]) == wanted
    assert b"argmax(-1)" not in Path("out", mine.name).read_bytes()
    assert main(["solutions", *words[1:-1], "solved", "--exercises", "private"]) == 0
    solved = Path("solved", mine.name).read_text(encoding="utf-8")
    assert "return np.argmax(weights, axis=-1)" in solved


def test_an_exercise_of_ones_own_needs_neither_tag_nor_check(tmp_path, monkeypatch):
    (tmp_path / "own.py").write_text(EXAMPLE, encoding="utf-8")
    exercises.use(tmp_path)
    document = json.loads(FIRST.read_bytes())
    filled = code("def top_key(weights):\n    return weights.argmax(-1)")
    given = json.loads(release.released(with_cells(document, filled), "a.ipynb"))
    wanted = exercises.get("top_key").stub_source.strip("\n")
    assert lessons.source(given["cells"][-1]) == wanted
    assert lessons.tags(given["cells"][-1]) == ["exercise"]
    solved = json.loads(solutions.solved(with_cells(document, filled), "a.ipynb"))
    assert lessons.source(solved["cells"][-1]) == 'check("top_key", top_key)'


def test_the_command_keeps_outputs_where_it_is_told_to(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    solved = tmp_path / "solved.ipynb"
    solved.write_bytes(solutions.solve(FIRST.read_bytes()))
    assert main(["release", "solved.ipynb", "-o", "a", "--keep-outputs"]) == 0
    assert Path("a/solved.ipynb").read_bytes() == FIRST.read_bytes()
    assert main(["release", "solved.ipynb", "-o", "b"]) == 0
    assert not re.search(r'"output_type"', Path("b/solved.ipynb").read_text())
    assert capsys.readouterr().err == ""
