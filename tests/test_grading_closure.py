"""Which statements an answer needs: exactly those, whatever else the notebook holds."""

from __future__ import annotations

import builtins
import dis
import json
import types
from collections.abc import Iterator
from typing import Any

import pytest
import solve
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib import exercises
from attnlib.grading import magics, statements
from attnlib.grading.closure import Answer, answer
from attnlib.grading.notebook import Cell, Notebook, read

NOTEBOOKS = sorted(solve.NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))


def notebook(*cells: str) -> Notebook:
    return Notebook(tuple(Cell(n, source) for n, source in enumerate(cells, start=1)))


def found(*cells: str, name: str = "f") -> Answer:
    return answer(notebook(*cells), name)


def pieces(*cells: str, name: str = "f") -> list[str]:
    return [piece.source for piece in found(*cells, name=name).pieces]


def run(given: Answer) -> Any:
    """Run the pieces as the student's process does, and return the answer."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for piece in given.pieces:
        source = "\n" * (piece.line - 1) + piece.source
        exec(compile(source, f"<cell {piece.cell}>", "exec"), names)
    return names[given.name], names


@pytest.fixture(autouse=True)
def _settings_of_torch() -> Iterator[None]:
    """Lessons set torch's default type; the tests after these want their own."""
    import torch

    before = torch.get_default_dtype()
    yield
    torch.set_default_dtype(before)


# What is needed


def test_imports_helpers_and_values_are_found_and_nothing_else() -> None:
    assert pieces(
        "import numpy as np\nimport os",
        "SCALE = 2\nUNUSED = 3\nopen('/etc/passwd')",
        "def helper(x):\n    return np.sqrt(x) * SCALE",
        "print('hello')",
        "def f(x):\n    return helper(x)",
        "f(3)",
    ) == [
        "import numpy as np",
        "SCALE = 2",
        "def helper(x):\n    return np.sqrt(x) * SCALE",
        "def f(x):\n    return helper(x)",
    ]


def test_the_last_definition_that_is_no_stub_counts() -> None:
    given = found(
        "def f(x):\n    return 1",
        "def f(x):\n    return 2",
        'def f(x):\n    """Do."""\n    ...',
    )
    assert run(given)[0](0) == 2
    assert (given.cell, given.line) == (2, 1)
    assert given.notes == ("f is defined in the cells 1, 2: the last one counts.",)


@pytest.mark.parametrize(
    "stub",
    [
        "def f(x):\n    '''Do.'''\n    ...",
        "def f(x):\n    pass",
        "def f(x):\n    # YOUR CODE\n    raise NotImplementedError",
        "def f(x):\n    raise NotImplementedError('x')",
        "def f(x):\n    return None",
        "f = ...",
        "f: int = ...",
    ],
)
def test_a_stub_is_a_stub(stub: str) -> None:
    given = found("import os", stub)
    assert (given.status, given.cell, given.line) == ("stub", 2, 1)
    assert [piece.source for piece in given.pieces] == [stub]


@pytest.mark.parametrize("real", ["f = 3", "f = lambda x: x", "def f(x): return 0"])
def test_an_answer_is_no_stub(real: str) -> None:
    assert found(real).status == "found"


def test_missing() -> None:
    given = found("x = 1", "print(f)", "class C:\n    def f(self): return 1")
    assert (given.status, given.pieces, given.cell) == ("missing", (), None)
    assert given.notes == ("f stands inside another block, in cell 3.",)


def test_where_an_answer_is_missing_it_is_told_what_was_not_read() -> None:
    cells = [
        {"cell_type": "markdown", "source": "def f(x):\n    return x"},
        {"cell_type": "code", "source": "%%bash\nls"},
        {"cell_type": "code", "source": "def g(x): return x"},
    ]
    given = read(json.dumps({"cells": cells}).encode())
    assert answer(given, "f").notes == (
        "Cell 1 is a markdown cell with a function in it; unread.",
        "Cell 2 begins with %%bash, which defines no names; unread.",
    )
    assert answer(given, "g").notes == ()


def test_a_missing_answer_under_another_name_is_told() -> None:
    given = found("def soft_max(x): return x", name="softmax")
    assert given.notes == ("There is a function soft_max in cell 1.",)


@pytest.mark.parametrize(
    ("cells", "value"),
    [
        (["a = 1", "a += 2", "def f(): return a"], 3),
        (["t = {}", "t['x'] = 5", "def f(): return t['x']"], 5),
        (["t = [1]", "t.append(2)", "t.sort(reverse=True)",
          "def f(): return t"], [2, 1]),
        (["class C: pass", "C.g = lambda self: 4", "def f(): return C().g()"], 4),
        (["if True:\n    a = 1\nelse:\n    a = 2", "def f(): return a"], 1),
        (["try:\n    import nope\nexcept ImportError:\n    nope = 7",
          "def f(): return nope"], 7),
        (["import contextlib\nwith contextlib.suppress(ValueError):\n    a = 6",
          "def f(): return a"], 6),
        (["for i in range(4):\n    last = i", "def f(): return last"], 3),
        (["from math import *", "def f(): return round(cos(0) + sqrt(4))"], 3),
        (["a, (b, *c) = 1, (2, 3, 4)", "def f(): return [a, b, c]"], [1, 2, [3, 4]]),
        (["(n := 5)", "def f(): return n"], 5),
        (["def deco(g): return lambda: g() + 1", "@deco\ndef f():\n    return 1"], 2),
        (["def f(): return 1", "f = (lambda g: lambda: g() + 1)(f)"], 2),
        (["D = 4", "def f(x=D): return x"], 4),
        (["class A: v = 1", "class B(A):\n    w = A.v + 1", "def f(): return B.w"], 2),
        (["N = 3", "T = [i * N for i in range(N)]", "def f(): return T"], [0, 3, 6]),
        (["def g(): return K", "K = 2", "T = g()", "K = 9", "def f(): return T"], 2),
        (["def setup():\n    global W\n    W = 8", "W = 0", "setup()",
          "def f(): return W"], 8),
        (["import os.path", "import os", "def f(): return os.path.sep"], "/"),
        (["import xml.dom", "import xml.sax",
          "def f(): return xml.dom.__name__ + xml.sax.__name__"], "xml.domxml.sax"),
        (["from math import pi, nope_not_there", "def f(): return round(pi)"], 3),
        (["x = 1; y = 2; z = 3", "def f(): return (x, z)"], (1, 3)),
        (["é = 1; 猫 = '追逐'; z = 3", "def f(): return (猫, z)"], ("追逐", 3)),
        (["def even(n): return n == 0 or odd(n - 1)",
          "def odd(n): return n != 0 and even(n - 1)",
          "def f(): return even(4)"], True),
        (["match 3:\n    case 3 as got:\n        pass", "def f(): return got"], 3),
        (["def f(n): return 1 if n < 1 else n * f(n - 1)", "g = 1\nf = f(4)"], 24),
        (["x: int = 3", "x: int", "def f(): return x"], 3),
        (["import random\nrandom.seed(1)", "v = random.random()",
          "def f(): return round(v, 3)"], 0.134),
    ],
)  # fmt: skip
def test_every_way_to_bind_a_name(cells: list[str], value: object) -> None:
    given = found(*cells)
    result, _ = run(given)
    assert (result() if callable(result) else result) == value
    assert not [note for note in given.notes if "nothing in the notebook" in note]


def test_only_the_wanted_part_of_an_import_is_run() -> None:
    assert pieces(
        "from attnlib import attention, masks, figures as fig\nimport os, sys",
        "def f(x):\n    return masks.causal(sys.maxsize)",
    )[:2] == ["from attnlib import masks", "import sys"]


def test_a_name_has_the_value_that_it_had_at_the_check() -> None:
    cells = ["d = 4", "def f(): return d", 'check("f", f)', "d = 8\nf()"]
    assert run(found(*cells))[0]() == 4
    # Without a check it is the value where the answer stands.
    assert run(found("d = 4", "def f(): return d", "d = 8"))[0]() == 4
    # And what stands between answer and check counts.
    cells = ["d = 4", "def f(): return d", "d = 5", 'exercises.check("f", f)', "d = 8"]
    assert run(found(*cells))[0]() == 5


def test_a_helper_that_was_mended_below_counts() -> None:
    cells = ["def g(): return 1", "def f(): return g()", "def g(): return 2"]
    assert run(found(*cells))[0]() == 2
    stub = ["def g(): return 1", "def g(): ...", "def f(): return g()"]
    assert run(found(*stub))[0]() == 1


def test_what_is_only_defined_below_is_moved_up() -> None:
    given = found(
        "@deco\ndef f():\n    return np.float64(1)",
        'check("f", f)',
        "def deco(g):\n    return lambda: g() + more()",
        "def more():\n    return STEP",
        "STEP = int('2')\nimport numpy as np",
    )
    assert run(given)[0]() == 3
    assert [note for note in given.notes if "only defined below it" in note]


def test_settings_of_a_library_that_is_used_are_kept() -> None:
    cells = [
        "import torch\nimport numpy as np",
        "torch.set_default_dtype(torch.float64)\nnp.random.seed(3)",
        "from torch import nn",
        "def f(): return nn.Linear(2, 2)",
    ]
    assert pieces(*cells) == [
        "import torch",
        "torch.set_default_dtype(torch.float64)",
        "from torch import nn",
        "def f(): return nn.Linear(2, 2)",
    ]
    assert found(*cells).needs_torch
    assert not found("import numpy as np", "def f(): return np.pi").needs_torch


def test_a_name_that_nothing_defines_is_told() -> None:
    given = found("def f(x):\n    return helper(x) + len(x) + __name__")
    assert given.status == "found"
    assert given.notes == ("f uses helper, which nothing in the notebook defines.",)


def test_a_lost_setup_cell_is_made_good() -> None:
    given = found("import numpy as = np", "def f(x):\n    return np.sqrt(x)")
    assert run(given)[0](4) == 2
    assert given.notes == (
        "f uses np, which nothing in the notebook defines.",
        "np was imported for it.",
    )


def test_what_the_lesson_imports_is_made_good_and_no_answer() -> None:
    use = "def multi_head(X):\n    return heads, scaled_dot_product"
    given = found(use, name="multi_head")
    names = run(given)[0](0)
    assert [one.__name__ for one in names] == ["attnlib.heads", "scaled_dot_product"]
    assert "heads was imported for it." in given.notes
    # In lesson 01 the learner writes softmax: it is not given, nor where it is broken.
    use = "def scaled_dot_product(q, k, v):\n    return softmax(q)"
    assert len(pieces(use, name="scaled_dot_product")) == 1
    use = "def multi_head(X):\n    return heads"
    assert len(pieces("heads = = 1", use, name="multi_head")) == 1


def test_a_name_of_python_is_not_taken_from_below() -> None:
    assert run(found("def f(x): return sum(x)", "sum = 0", "def max(): 0"))[0]([2]) == 2


def test_a_global_counter() -> None:
    count = "def f():\n    global n\n    n += 1\n    return n"
    assert run(found("n = 4", count))[0]() == 5
    given = found("def f():\n    global n\n    n = 1\n    return n")
    assert (run(given)[0](), given.notes) == (1, ())


def test_what_changes_a_value_is_kept_and_what_uses_a_module_is_not() -> None:
    cells = [
        "import torch\nfrom torch import nn\nimport numpy as np",
        "W = np.ones((2, 2))\nnp.fill_diagonal(W, 0)\nV = torch.ones(2)",
        "nn.init.zeros_(V)\ntorch.manual_seed(0)\nnp.random.seed(0)",
        "def f(): return W + nn.init.calculate_gain('relu')",
    ]
    assert pieces(*cells) == [
        "from torch import nn",
        "import numpy as np",
        "W = np.ones((2, 2))",
        "np.fill_diagonal(W, 0)",
        "def f(): return W + nn.init.calculate_gain('relu')",
    ]


def test_imports_are_answers_only_where_the_exercise_stands() -> None:
    line = "from attnlib.attention import softmax"
    assert found(line, name="softmax").status == "missing"
    given = found("def softmax(x): ...", line, name="softmax")
    assert given.status == "found"
    assert given.notes == ("It uses attnlib's own softmax.",)


# What is taken ready-made


@pytest.mark.parametrize(
    ("cells", "note"),
    [
        (
            ["import torch.nn.functional as F",
             "def f(q): return F.scaled_dot_product_attention(q, q, q)"],
            "It uses torch's scaled_dot_product_attention.",
        ),
        (
            ["from torch.nn import MultiheadAttention as M", "def f(): return M(4, 1)"],
            "It uses torch's nn.MultiheadAttention.",
        ),
        (
            ["from attnlib import masks", "def f(n): return masks.causal(n)"],
            "It uses attnlib's own masks.causal.",
        ),
        (["import attnlib.masks", "def f(n): return attnlib.masks.causal(n)"],
         "It uses attnlib's own attnlib.masks.causal."),
        (["def f(n):\n    from attnlib.masks import causal\n    return causal(n)"],
         "It uses something of attnlib's own."),
        (["import importlib", "f = importlib.import_module('attnlib.masks').causal"],
         "It uses something of attnlib's own."),
        (["from attnlib.masks import *", "def f(n): return causal(n)"],
         "It uses names that attnlib gives (import *)."),
        (["import torch.nn.functional as F", "def f(q): return getattr(F, 's' + q)(q)"],
         "It may use what is not written in it: it has getattr."),
        (["def f(q): return __import__('att' + q)"],
         "It may use what is not written in it: it has __import__."),
        (["import sys", "m = sys.modules", "def f(q): return vars(m[q]), exec (q)"],
         "It may use what is not written in it: it has exec, sys.modules, vars."),
        (["from torch.ops import aten",
          "def f(q): return aten._scaled_dot_product_flash_attention_for_cpu(q, q, q)"],
         "It uses what torch's scaled_dot_product_attention stands on."),
        (["from torch import nn", "def f(q): return nn.TransformerEncoderLayer(8, 2)"],
         "It uses torch's nn.Transformer."),
    ],
)  # fmt: skip
def test_what_is_taken_ready_made_is_told(cells: list[str], note: str) -> None:
    given = found(*cells)
    assert given.status == "found"
    assert note in given.notes


@pytest.mark.parametrize(
    "code",
    [
        "def f(model, df): return model.eval(), df.eval('x')",
        "def f(getattribute, variables): return variables",
        "class F:\n    def __call__(self, x): return x.__class__.__name__\nf = F()",
    ],
)
def test_what_only_looks_like_it_is_not_told(code: str) -> None:
    assert found(code).notes == ()


# Broken cells


def test_a_syntax_error_costs_only_its_cell() -> None:
    cells = ["import math", "x = = 1", "def f(): return math.pi", "def g(:\n  pass"]
    assert found(*cells).status == "found"
    given = found(*cells, name="g")
    assert (given.status, given.pieces, given.cell, given.line) == ("syntax", (), 4, 1)
    assert given.notes[0].startswith("Cell 4, line 1 (`def g(:`): ")


def test_a_helper_in_a_broken_cell_is_told() -> None:
    given = found("def g():\n    return (1", "def f(): return g()")
    assert given.notes[0].startswith(
        "f uses g of cell 1, which has a syntax error in line 2 (`return (1`): "
    )


def test_a_cell_is_told_by_what_stands_in_it_too() -> None:
    """A notebook shows no numbers of cells."""
    given = found(
        "x = 1", "\n@mark\ndef f(a):\n    return g(a)\n", "def g(a): return a"
    )
    assert given.begins == " (`@mark`)"
    later = "f needs what is only defined below it, in cell 3 (`def g(a): return a`)."
    assert later not in given.notes  # it is there when f is called
    given = found("y = g(1)\ndef f(): return y", "def g(a): return a")
    assert later.replace("3", "2") in given.notes
    assert given.begins == " (`def f(): return y`)"
    long = found(f"def f(): return '{'`' * 900}'").begins
    assert (len(long), long.count("`")) == (65, 2)


def test_an_answer_beside_a_broken_one_counts() -> None:
    given = found("def f(): return 1", "def f(:\n    return 2")
    assert run(given)[0]() == 1
    assert len(given.notes) == 1


def test_what_only_the_compiler_refuses_costs_its_statement() -> None:
    given = found("x = 1\ndef f():\n    y = 1\n    global y", "def g(): return x")
    assert (given.status, given.cell, given.line) == ("syntax", 1, 4)
    other = "x = 1\ndef f():\n    y = 1\n    global y"
    assert run(found(other, "def g(): return x", name="g"))[0]() == 1


# IPython's own


@pytest.mark.parametrize(
    ("source", "python"),
    [
        ("%matplotlib inline\nx = 1", "pass\nx = 1"),
        ("!pip install torch\nx = 1", "pass\nx = 1"),
        ("!pip install \\\n  torch\nx = 1", "pass\n\nx = 1"),
        ("files = !ls\nx = 1", "files = None\nx = 1"),
        ("t = %timeit -o f()\nx = 1", "t = None\nx = 1"),
        ("%time y = 2\nx = 1", "y = 2\nx = 1"),
        ("f?\nx = 1", "pass\nx = 1"),
        ("np.sqrt??\n?np\nx = 1", "pass\npass\nx = 1"),
        ("if True:\n    !pip install x\n    y = 1", "if True:\n    pass\n    y = 1"),
        ("%%time\nx = 1", "\nx = 1"),
        ("\n%%capture out\nx = 1", "\n\nx = 1"),
        (">>> x = 1\n>>> def f():\n...     return 1", "x = 1\ndef f():\n    return 1"),
        ("In [3]: x = 1", "x = 1"),
        ("    x = 1\n    y = 2", "x = 1\ny = 2"),
        ("s = '''\n%time\n!x\n'''\n%time", "s = '''\n%time\n!x\n'''\npass"),
        ("a = (7\n  % 4)\n!ls", "a = (7\n  % 4)\npass"),
        ("!echo \"it's (\nx = 1\n!ls", "pass\nx = 1\npass"),
        ("pip install numpy", ""),
        ("x = 1", "x = 1"),
    ],
)
def test_magics_are_taken_out_line_for_line(source: str, python: str) -> None:
    plain, _ = magics.plain(source)
    assert plain == python
    magics.parse(plain)


@pytest.mark.parametrize("head", ["%%bash", "%%writefile a.py", "%%timeit", "%%html"])
def test_cells_that_define_nothing_are_left_out_with_a_word(head: str) -> None:
    given = notebook(f"{head}\ndef f(): return 1")
    assert answer(given, "f").status == "missing"
    assert (
        statements.program_of(given)
        .notes[0]
        .startswith(f"Cell 1 begins with {head.split()[0]}")
    )


def test_lines_stay_where_they_are() -> None:
    given = found("%matplotlib inline\n\n!ls\n@staticmethod\ndef f():\n    return 1")
    assert [(piece.cell, piece.line) for piece in given.pieces] == [(1, 4)]
    assert given.line == 4


def test_warnings_of_the_compiler_are_no_errors() -> None:
    assert found("def f():\n    return '\\d' is 3").status == "found"


# Anything at all

BITS = [
    "f",
    " = ",
    "def f():",
    "\n",
    "    ",
    "return ",
    "(",
    ")",
    "%",
    "!",
    "?",
    "x",
    ":",
]
BITS += ["\\", "'''", '"', "lambda", "import ", "*", ";", "global x", "class f:", "="]
BITS += ["%%time\n", "@", "await ", "\t"]


@settings(derandomize=True, deadline=None, max_examples=300)
@given(
    st.lists(
        st.one_of(
            st.text(max_size=60),
            st.lists(st.sampled_from(BITS), max_size=14).map("".join),
        ),
        max_size=4,
    )
)
def test_any_cells_give_an_answer(cells: list[str]) -> None:
    raw = {"cells": [{"cell_type": "code", "source": source} for source in cells]}
    given = answer(read(json.dumps(raw).encode()), "f")
    assert given.status in ("found", "missing", "stub", "syntax")
    assert bool(given.pieces) == (given.status in ("found", "stub"))
    assert (given.cell is None) == (given.status == "missing")


@pytest.mark.parametrize(
    "source",
    [
        "f = " + "-" * 50_000 + "1",
        "f = " + "(" * 150 + "1" + ")" * 150,
        "f = " + "+".join("1" * 20_000),
        "f = " + "a." * 20_000 + "b",
        "f = " + "[" * 5_000,
        "x = x\n" * 19_000 + "f = x",
        "x += 1\n" * 19_000 + "f = x",
        "".join(f"def g{n}(): return g{n + 1}()\n" for n in range(3_000)) + "f = g0",
        "!ls (\n" * 20_000,
        "'''\n" * 30_001,
        "import " + ", ".join(f"m{n}" for n in range(10_000)) + "\nf = m1",
        "x = 1\n" * 60_000,
        "{" * 60 + ":" + "f = 1",
        "f(" * 90 + "a=" + ")" * 90,
        "f = " + "lambda x: " * 3_000 + "1",
        "f = f'" + "{f'" * 50,
    ],
    ids=range(16),
)
def test_no_cell_makes_it_slow_or_fail(source: str) -> None:
    # Each takes a second or two at most; what is quadratic or worse takes hours.
    assert answer(notebook(source), "f").status in ("found", "missing", "syntax")


# The course itself


def answers_of(path: Any) -> dict[str, Answer]:
    solved = read(solve.solve(path.read_bytes()), path.name)
    names = exercises.names(int(path.name[:2]))
    return {name: answer(solved, name) for name in names}


def unresolved(names: dict[str, Any]) -> set[str]:
    """The global names that the functions of a namespace read and do not find."""
    waiting = [v.__code__ for v in names.values() if type(v) is types.FunctionType]
    waiting = [c for c in waiting if c.co_filename.startswith("<cell")]
    wanted: set[str] = set()
    while waiting:
        one = waiting.pop()
        waiting += [c for c in one.co_consts if isinstance(c, types.CodeType)]
        loads = ("LOAD_GLOBAL", "LOAD_NAME")
        wanted |= {s.argval for s in dis.get_instructions(one) if s.opname in loads}
    return wanted - set(names) - set(dir(builtins))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_solved_notebook_gives_exactly_what_its_answers_need(path: Any) -> None:
    given = answers_of(path)
    assert given
    for name, one in given.items():
        assert one.status == "found", name
        assert one.notes == (), name
        value, names = run(one)
        assert exercises.judge(name, value).status == "passed"
        assert unresolved(names) == set()
        for left_out in one.pieces:
            fewer = tuple(piece for piece in one.pieces if piece is not left_out)
            if "set_default" in left_out.source:
                continue  # it gives no name
            try:
                _, names = run(Answer(name, fewer, "found"))
            except (NameError, KeyError):
                continue
            assert unresolved(names), (name, left_out)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_blank_notebook_is_full_of_stubs(path: Any) -> None:
    blank = read(path.read_bytes(), path.name)
    for name in exercises.names(int(path.name[:2])):
        assert answer(blank, name).status == "stub", name
