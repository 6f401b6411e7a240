"""A teacher's own exercises, from a folder that is not the course's."""

import re
from pathlib import Path
from types import SimpleNamespace

import grading_lines as lines
import numpy as np
import pytest

from attnlib import exercises
from attnlib.clinic import catalogue
from attnlib.exercises import private
from attnlib.grading import notebook
from attnlib.grading.asked import Asked
from attnlib.grading.closure import answer
from attnlib.grading.student import grade

PAGE = Path(__file__).resolve().parent.parent / "docs" / "own_exercises.md"
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
(EXAMPLE,) = [text for kind, text in BLOCKS if kind == "python"]
SOFTMAX = "from attnlib.attention import softmax"


@pytest.fixture(autouse=True)
def nothing_stays(monkeypatch):
    """What a test adds is gone after it."""
    monkeypatch.setattr(exercises, "_own", {})
    yield
    for key in catalogue._added:
        del catalogue.catalogue()[key]
    catalogue._added.clear()


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "für die Klasse"
    place.mkdir()
    (place / "our_own.py").write_text(EXAMPLE, encoding="utf-8")
    return place


def test_the_example_of_the_page_loads_and_its_solutions_pass(folder):
    function, value = private.load(folder)
    assert (function.name, value.name) == ("top_key", "loudest")
    verdict = exercises.judge_as(function, function.solution, counted=True)
    assert verdict.passed, verdict.text
    assert exercises.judge_as(value, 2).passed
    for seed in range(1, 20):
        assert exercises.judge_as(function, function.solution, seed).passed


def test_the_stub_on_the_page_is_the_one_that_is_made(folder):
    (function, _) = private.load(folder)
    assert function.stub_source in [text for _, text in BLOCKS]


def test_its_mistakes_are_named(folder, capsys):
    exercises.use(folder)
    exercises.check("top_key", lambda weights: np.argmax(weights, axis=0))
    assert "The largest of each column, not of each row" in capsys.readouterr().out
    verdict = exercises.judge("top_key", lambda weights: weights.argmin(axis=-1))
    assert [mistake.key for mistake in verdict.mistakes] == ["own_least_key"]
    exercises.check("loudest", 3)
    assert "Count from 0" in capsys.readouterr().out


def test_hints_and_solutions_are_there_once_it_is_used(folder, capsys):
    exercises.hint("top_key")
    assert "top_key" not in exercises.names()
    exercises.use(str(folder))
    exercises.use(folder)  # a cell may be run again
    assert exercises.names(1)[-2:] == ("top_key", "loudest")
    assert "top_key" not in exercises.of_the_course()
    exercises.hint("top_key")
    exercises.solution("top_key", now=True)
    said = capsys.readouterr().out
    assert "how many do you get for 2 queries?" in said
    assert said.rstrip().endswith("return np.argmax(weights, axis=-1)")


def test_a_class_is_graded_for_them(folder):
    handed = """# %%
import numpy as np
from attnlib.exercises import check, use
use("../private")
# %%
def top_key(weights):
    return np.argmax(weights, axis=0)
# %%
check("top_key", top_key)
loudest = 2
"""
    asked = Asked(lesson=1, folder=folder).fixed
    own = [exercise for exercise in asked if exercise.name in ("top_key", "loudest")]
    assert len(asked) == len(exercises.names(1)) + len(own)
    given = SimpleNamespace(
        student="ada", where="ada.py", data=handed.encode(), problem=""
    )
    found = grade(given, own, "secret", lines.ForkedSession)
    assert [(one.exercise, one.status, one.points) for one in found.grades] == [
        ("top_key", "mistake", 0),
        ("loudest", "passed", 200),
    ]
    assert found.grades[0].mistakes == ("own_top_query",)


def test_what_a_teachers_own_solution_imports_is_made_good_and_no_news(folder):
    own = EXAMPLE.replace("import numpy as np\n", f"import numpy as np\n{SOFTMAX}\n", 1)
    own = own.replace("argmax(weights, axis=-1)", "argmax(softmax(weights), -1)", 1)
    (folder / "our_own.py").write_text(own, encoding="utf-8")
    function, _ = private.load(folder)
    line = "def top_key(weights):\n    return softmax(weights).argmax(-1)"
    for source, lost in ((line, True), (f"{SOFTMAX}\n{line}", False)):
        cells = notebook.Notebook((notebook.Cell(1, source),))
        given = answer(cells, "top_key", function)
        assert [piece.source for piece in given.pieces][1:] == [line]
        assert "It uses attnlib's own softmax." not in given.notes
        assert ("softmax was imported for it." in given.notes) == lost
    assert "It uses attnlib's own softmax." in answer(cells, "top_key").notes


def test_a_changed_file_is_read_anew(folder):
    private.load(folder)
    before = private.fingerprint(folder)
    path = folder / "our_own.py"
    path.write_text(
        EXAMPLE.replace("axis=-1)\n\n\ndef cases", "axis=1)\n\n\ndef cases")
    )
    (function, _) = private.load(folder)
    assert function.solution_source.rstrip().endswith("axis=1)")
    assert private.fingerprint(folder) != before


def test_nothing_is_written_into_the_folder(folder):
    folder.chmod(0o555)
    private.load(folder)
    folder.chmod(0o755)
    assert [path.name for path in folder.iterdir()] == ["our_own.py"]


def test_other_files_in_the_folder_are_left_alone(folder):
    (folder / "_draft.py").write_text("1 / 0")
    (folder / "notes.txt").write_text("1 / 0")
    assert len(private.load(folder)) == 2


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("import numpy as np", "import numpy as", "does not run: line 3: "),
        (
            "import numpy as np",
            "import nompy",
            "does not run: line 3: ModuleNotFoundError: No module named 'nompy'.",
        ),
        ("import numpy as np", "raise SystemExit", "line 3: SystemExit."),
        ("EXERCISES = (", "THINGS = (", "does not end with EXERCISES = (...), a tuple"),
        ("    ValueExercise(", "    dict(", "lists 'dict' in EXERCISES, which is no"),
        (
            'name="top_key"',
            'name="softmax"',
            "has an exercise softmax, and so has the course: give it another name.",
        ),
        (
            'name="top_key"',
            'name="best_key"',
            "the solution of best_key is named top_key, so its stub does not fit.",
        ),
        (
            'name="loudest"',
            'name="quietest"',
            "`show` of quietest does not begin with `quietest = `",
        ),
        ('name="loudest"', 'name="two words"', "'two words' is no name of an exercise"),
        (
            '    """Find the key that',
            '    _ = """Find the key that',
            "there is no stub of top_key: its solution must be a function",
        ),
        ('"Count from 0.", "It', '"Count from 0. It', "loudest has 2 hints"),
        ("minutes=4", "minutes=0", "top_key takes 0 minutes, and 1 is the least."),
        (
            '{"axis": ("own_top_query",)',
            '{"axis": ("own_other",)',
            "the family of top_key has a mistake own_other that is described nowhere",
        ),
        (
            'Mistake(\n        "own_least_key"',
            'Mistake(\n        "scale_missing"',
            "the course has a mistake scale_missing already.",
        ),
        ("minutes=4", "minutes=None", "top_key cannot be read: TypeError: "),
        ("MISTAKES = (", "MISTAKES = (1,", "has MISTAKES that do not fit: "),
    ],
)
def test_what_does_not_fit_is_one_sentence(folder, old, new, said):
    assert EXAMPLE.count(old) >= 1
    path = folder / "our_own.py"
    path.write_text(EXAMPLE.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(private.PrivateError) as caught:
        private.load(folder)
    told = str(caught.value)
    assert said in told
    assert told.startswith(str(path))
    assert "\n" not in told


def test_two_files_may_not_have_one_name(folder):
    (folder / "second.py").write_text(EXAMPLE, encoding="utf-8")
    with pytest.raises(private.PrivateError, match="top_key, which is there already"):
        private.load(folder)


def test_a_folder_must_be_there_and_hold_something(tmp_path):
    with pytest.raises(private.PrivateError, match="There is no folder"):
        private.load(tmp_path / "nowhere")
    with pytest.raises(private.PrivateError, match="holds no file with EXERCISES"):
        private.load(tmp_path)
