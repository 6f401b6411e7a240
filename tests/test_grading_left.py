"""Notebooks as students leave them: lesson 01 with a right softmax, in disorder."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import solve
from test_grading_closure import run

from attnlib import exercises
from attnlib.grading.closure import answer
from attnlib.grading.notebook import read

BLANK = (solve.NOTEBOOKS / "01_three_tokens.ipynb").read_bytes()
STUB = next(
    "".join(cell["source"])
    for cell in json.loads(BLANK)["cells"]
    if "".join(cell["source"]).startswith("def softmax")
)
RIGHT = """def softmax(x, axis=-1):
    x = np.asarray(x, dtype=float)
    top = x.max(axis=axis, keepdims=True)
    e = np.exp(x - np.where(np.isfinite(top), top, 0))
    total = e.sum(axis=axis, keepdims=True)
    return np.divide(e, total, out=np.zeros_like(e), where=total > 0)
"""

Document = dict[str, Any]
LEFT: dict[str, Callable[[Document], Document | bytes | None]] = {}


def left(change: Callable[[Document], Any]) -> Callable[[Document], Any]:
    """One way to leave a notebook; given one whose stub is filled in."""
    LEFT[change.__name__.replace("_", " ")] = change
    return change


def cell(source: str, **more: Any) -> Document:
    return {"cell_type": "code", "metadata": {}, "source": source, "outputs": []} | more


def at(document: Document, source: str) -> int:
    """Where the cell is that has this text."""
    cells = document["cells"]
    return next(n for n, c in enumerate(cells) if source in "".join(c["source"]))


def fill(document: Document, source: str) -> None:
    document["cells"][at(document, RIGHT)]["source"] = source


@left
def untouched_but_filled_in(document):
    pass


@left
def no_metadata_at_all(document):
    for one in document["cells"]:
        one.pop("metadata", None)
        one.pop("id", None)
    document.pop("metadata")


@left
def another_kernel(document):
    document["metadata"]["kernelspec"] = {"name": "conda-env-ml-py", "language": "R"}


@left
def all_outputs_and_checks_deleted(document):
    document["cells"] = [
        c for c in document["cells"] if "check(" not in "".join(c["source"])
    ]
    document["cells"].insert(0, cell("import numpy as np"))


@left
def setup_cell_deleted(document):
    del document["cells"][at(document, "import numpy as np")]


@left
def setup_cell_broken(document):
    document["cells"][at(document, "import numpy as np")]["source"] += [
        "\n!pip instal("
    ]
    document["cells"][at(document, "import numpy as np")]["source"] += ["\nimport = 1"]


@left
def only_the_answer_is_left(document):
    document["cells"] = [document["cells"][at(document, RIGHT)]]


@left
def cells_in_any_order(document):
    random.Random(1).shuffle(document["cells"])


@left
def cells_from_last_to_first(document):
    document["cells"].reverse()


@left
def answer_above_the_stub(document):
    place = at(document, RIGHT)
    document["cells"].insert(place, cell(RIGHT))
    document["cells"][place + 1]["source"] = STUB


@left
def answer_at_the_very_end(document):
    fill(document, STUB)
    document["cells"].append(cell(RIGHT))


@left
def answer_at_the_very_beginning(document):
    fill(document, STUB)
    document["cells"].insert(0, cell(RIGHT))


@left
def everything_twice(document):
    document["cells"] *= 2


@left
def three_tries_the_last_is_right(document):
    place = at(document, RIGHT)
    document["cells"].insert(place, cell("def softmax(x, axis=-1):\n    return x"))
    document["cells"].insert(place, cell("def softmax(x):\n    retrun x"))


@left
def tries_in_comments(document):
    fill(
        document,
        "# def softmax(x): return x / x.sum()\n'''\ndef softmax(x\n'''\n" + RIGHT,
    )


@left
def docstring_kept_and_dots_behind(document):
    fill(
        document,
        RIGHT.replace(
            "    x = np.asarray", "    '''Do.'''\n    ...\n    x = np.asarray"
        ),
    )


@left
def helpers_above(document):
    place = at(document, RIGHT)
    document["cells"].insert(
        place,
        cell("EPS = 0\ndef add_up(e, axis): return e.sum(axis=axis, keepdims=True)"),
    )
    fill(
        document,
        RIGHT.replace("e.sum(axis=axis, keepdims=True)", "add_up(e, axis) + EPS"),
    )


@left
def helpers_below(document):
    document["cells"].append(
        cell("def add_up(e, axis): return e.sum(axis=axis, keepdims=True)")
    )
    fill(document, RIGHT.replace("e.sum(axis=axis, keepdims=True)", "add_up(e, axis)"))


@left
def prints_and_tests_in_the_same_cell(document):
    fill(document, f"{RIGHT}\nprint(softmax([1, 2]))\nassert False, 'later'\n")


@left
def a_test_that_fails_above(document):
    document["cells"].insert(at(document, RIGHT), cell("1 / 0\nraise SystemExit"))


@left
def an_endless_loop_above(document):
    document["cells"].insert(at(document, RIGHT), cell("while True:\n    n = input()"))


@left
def time_magic_on_top(document):
    fill(document, "%%time\n" + RIGHT)


@left
def matplotlib_and_pip_in_the_cell(document):
    fill(document, "%matplotlib inline\n!pip install numpy\n" + RIGHT + "softmax?\n")


@left
def the_whole_cell_indented(document):
    fill(document, "".join("    " + line for line in RIGHT.splitlines(keepends=True)))


@left
def windows_line_ends(document):
    fill(document, RIGHT.replace("\n", "\r\n"))


@left
def own_imports(document):
    fill(document, "import numpy as numpy_, os\nfrom numpy import *\n" + RIGHT)


@left
def a_lambda(document):
    lines = RIGHT.replace("def softmax", "def mine")
    fill(document, f"{lines}\nsoftmax = lambda x, axis=-1: mine(x, axis)")


@left
def a_class_with_a_method(document):
    inside = "".join("    " + line for line in RIGHT.splitlines(keepends=True))
    inside = inside.replace("softmax(x", "__call__(self, x")
    fill(document, f"class Softmax:\n{inside}\nsoftmax = Softmax().__call__")


@left
def decorated(document):
    fill(
        document,
        "import functools\ndef shout(f):\n    @functools.wraps(f)\n"
        "    def g(*a, **k): return f(*a, **k)\n    return g\n@shout\n" + RIGHT,
    )


@left
def names_of_python_taken_elsewhere(document):
    document["cells"].append(cell("sum = 0\nmax = 3\nnp = None"))


@left
def type_hints_from_typing(document):
    fill(
        document,
        "from typing import Optional as O\n"
        + RIGHT.replace("axis=-1", "axis: O[int] = -1"),
    )


@left
def old_format(document):
    cells = [
        {"cell_type": "code", "input": c["source"], "language": "python", "outputs": []}
        if c["cell_type"] == "code"
        else c
        for c in document["cells"]
    ]
    return {"nbformat": 3, "metadata": {}, "worksheets": [{"cells": cells}]}


@left
def next_format(document):
    return document | {"nbformat": 6, "new": {"cells": []}}


@left
def gbk(document):
    return json.dumps(document, ensure_ascii=False).encode("gb18030")


@left
def utf16(document):
    return json.dumps(document, ensure_ascii=False).encode("utf-16")


@left
def colab(document):
    for number, one in enumerate(document["cells"]):
        one["metadata"] = {"id": f"x{number}", "colab": {"base_uri": "https://"}}
        one.pop("id", None)
    document["cells"].insert(
        0, cell("from google.colab import drive\ndrive.mount('/x')")
    )
    return document | {"nbformat_minor": 0}


@left
def vscode(document):
    for one in document["cells"]:
        one["metadata"] = {"vscode": {"languageId": "python"}}


@left
def a_shell_cell_of_vscode(document):
    shell = {"vscode": {"languageId": "shellscript"}}
    document["cells"].insert(0, cell("def softmax(", metadata=shell))


@left
def a_million_outputs(document):
    text = [f'step {n} loss [{{"outputs": []}}\n' for n in range(100_000)]
    document["cells"][at(document, RIGHT)]["outputs"] = [{"text": text}]


@left
def as_a_python_file(document):
    code = (
        "# %%\n" + "".join(c["source"])
        for c in document["cells"]
        if c["cell_type"] == "code"
    )
    return "\n\n".join(code).encode()


@left
def as_a_python_file_without_cells(document):
    place = at(document, RIGHT)
    setup = "".join(document["cells"][at(document, "import numpy as np")]["source"])
    return f"{setup}\n\n{''.join(document['cells'][place]['source'])}".encode()


@left
def text_behind_the_end(document):
    return json.dumps(document).encode() + b"\n\0\0\0"


@left
def other_names_for_the_check(document):
    checks = document["cells"][at(document, 'check("softmax"')]
    checks["source"] = (
        "import attnlib.exercises as ex\nex.check(name='softmax', answer=softmax);"
    )


@left
def the_name_used_again_below(document):
    document["cells"].append(cell("for softmax in []:\n    pass"))
    document["cells"].append(cell("del softmax"))


@pytest.mark.parametrize("way", LEFT)
def test_a_right_answer_is_found_however_it_is_left(way: str) -> None:
    document = json.loads(BLANK)
    document["cells"][at(document, "def softmax")]["source"] = RIGHT
    made = LEFT[way](document)
    made = document if made is None else made
    if isinstance(made, bytes):
        data, name = made, "a.py" if "python file" in way else "a.ipynb"
    else:
        data, name = json.dumps(made, ensure_ascii=False).encode(), "a.ipynb"
    given = answer(read(data, name), "softmax")
    assert given.status == "found", given.notes
    value, _ = run(given)
    verdict = exercises.judge("softmax", value)
    assert verdict.status == "passed", verdict.text


def test_there_are_forty_ways() -> None:
    assert len(LEFT) >= 40


# Whole lessons, all answers at once


def tagged(document: Document, tag: str) -> list[Document]:
    return [c for c in document["cells"] if tag in c["metadata"].get("tags", [])]


def disorder(document: Document, kind: str) -> None:
    cells = document["cells"]
    answers, code = tagged(document, "exercise"), []
    for one in cells:
        raises = "raises-exception" in one["metadata"].get("tags", [])
        if one["cell_type"] == "code" and not raises:
            code.append("".join(one["source"]))
    match kind:
        case "shuffled":
            random.Random(2).shuffle(cells)
        case "reversed":
            cells.reverse()
        case "no checks":
            cells[:] = [c for c in cells if c not in tagged(document, "check")]
        case "no setup":
            cells[:] = [c for c in cells if c not in tagged(document, "setup")]
        case "answers first":
            cells[:] = answers + [c for c in cells if c not in answers]
        case "answers last":
            cells[:] = [c for c in cells if c not in answers] + answers
        case "answers alone":
            cells[:] = answers
        case "one cell":
            cells[:] = [cell("\n".join(code))]
        case "twice":
            cells *= 2


KINDS = ["shuffled", "reversed", "no checks", "no setup", "answers first"]
KINDS += ["answers last", "answers alone", "one cell", "twice"]


@cache
def solved(stem: str) -> bytes:
    return solve.solve((solve.NOTEBOOKS / f"{stem}.ipynb").read_bytes())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stem", ["01_three_tokens", "03_masks", "04_many_heads"])
def test_every_answer_of_a_lesson_passes_in_disorder(stem: str, kind: str) -> None:
    document = json.loads(solved(stem))
    disorder(document, kind)
    left_so = read(json.dumps(document).encode(), "a.ipynb")
    for name in exercises.names(int(stem[:2])):
        value, _ = run(answer(left_so, name))
        assert exercises.judge(name, value).status == "passed", name
