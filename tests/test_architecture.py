"""Levels: imports only point down, and importing stays light.

    0  shapes, example, checkpoints       names, errors, three tokens, models' files
    1  attention, cost                    the formula
    2  masks, heads, diagnostics, ...     what is built on it, in NumPy
    3  nn                                 the PyTorch side, the only one to import it
    4  clinic                             names mistakes; torch only when handed torch
    5  figures, explorers, widgets        show what others computed
    6  exercises                          check, hint, solution
    7  grading, doctor                    programs
    8  commands                           what the command line knows
    9  __main__                           the command line that starts them

The rules are read off the source, so a broken one names its file and line. Each is
shown a module that breaks it, too.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "attnlib"
TABLE = {
    0: "attnlib results shapes example checkpoints",
    1: "attention cost",
    2: "masks heads positions tiles sparse lowrank numerics diagnostics "
    "head_diagnostics",
    3: "nn",
    4: "clinic",
    5: "figures explorers widgets",
    6: "exercises",
    7: "grading doctor",
    8: "commands",
    9: "__main__",
}
# Inside level 5 the explorers come first: figures and widgets use their tables.
BORROWS = {("figures", "explorers"), ("widgets", "explorers")}
LEVEL = {name: level for level, names in TABLE.items() for name in names.split()}
SHOWS = {"plotly", "ipywidgets", "anywidget", "IPython"}
READS = {"safetensors", "tokenizers"}  # the files of real models, in nn.models alone
OPTIONAL = {"triton"}  # in nn.triton_kernel alone, which only a call imports
HEAVY = SHOWS | READS | OPTIONAL | {"torch", "matplotlib", "pandas", "scipy", "sklearn"}
HEAVY |= {"nbformat", "jupyterlab"}
LINES = 320  # "about 300": a little room, so that no one shortens a comment for it


@dataclass(frozen=True)
class Import:
    target: str  # "attnlib.masks", "torch.nn"
    line: int
    lazy: bool  # inside a function, or only for the type checker


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def home(module: str) -> str:
    """The name that has a level: attnlib.nn.cache lives in nn."""
    return module.split(".")[1] if "." in module else module


def imports(source: str, module: str, is_package: bool = False) -> list[Import]:
    """Every import of a source, wherever it stands, with import_module("...")."""
    found: list[Import] = []

    def visit(node: ast.AST, lazy: bool) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            lazy = True
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            lazy = True
        targets: list[str] = []
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = module.split(".") if is_package else module.split(".")[:-1]
                parts = parts[: len(parts) - node.level + 1]
                base = ".".join([*parts, *filter(None, [base])])
            # `from attnlib import masks` means the module attnlib.masks.
            package = base == "attnlib"
            targets = [f"{base}.{a.name}" if package else base for a in node.names]
        elif (
            isinstance(node, ast.Call)
            and ast.unparse(node.func).split(".")[-1] in ("import_module", "__import__")
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            targets = [str(node.args[0].value)]
        found.extend(Import(t, getattr(node, "lineno", 0), lazy) for t in targets)
        for child in ast.iter_child_nodes(node):
            visit(child, lazy)

    visit(ast.parse(source), False)
    return found


def objections(module: str, source: str, is_package: bool = False) -> list[str]:
    """What is wrong with the imports and the size of one module, in sentences."""
    own = home(module)
    if own not in LEVEL:
        return [f"{module} has no level: add it to the table in this test."]
    level, said = LEVEL[own], []
    for found in imports(source, module, is_package):
        at, top = f"{module}:{found.line}", found.target.split(".")[0]
        if top == "attnlib":
            other = home(found.target)
            if other not in LEVEL and is_package and own == "attnlib":
                continue
            if other not in LEVEL:
                said.append(f"{at} imports {found.target}, which has no level.")
            elif own == other or (own, other) in BORROWS:
                continue
            elif LEVEL[other] >= level:
                said.append(
                    f"{at} (level {level}) imports {found.target} (level "
                    f"{LEVEL[other]}): imports point down."
                )
            elif own in ("figures", "explorers") and 1 <= LEVEL[other] <= 4:
                said.append(f"{at} imports {found.target}: figures compute nothing.")
        elif top == "torch":
            if level < 3 or (own != "nn" and not found.lazy):
                said.append(f"{at} imports torch: only attnlib.nn may, when imported.")
        elif top in READS:
            if not module.startswith("attnlib.nn.models."):
                said.append(f"{at} imports {top}: only attnlib.nn.models may.")
        elif top in OPTIONAL:
            if module != "attnlib.nn.triton_kernel":
                said.append(f"{at} imports {top}: only attnlib.nn.triton_kernel may.")
        elif level < 5 and top not in {*sys.stdlib_module_names, "numpy"}:
            said.append(f"{at} imports {top}: below level 5 there is NumPy only.")
    length = len(source.splitlines())
    if length > LINES:
        said.append(f"{module} has {length} lines: one idea a file, about 300 lines.")
    return said


def loaded(
    modules: list[str], forbidden: set[str], path: Path | None = None
) -> set[str]:
    """Which of the forbidden packages a fresh Python loads with these modules."""
    code = (
        "import sys, importlib\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        "print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | ({"PYTHONPATH": str(path)} if path else {}),
    )
    assert done.returncode == 0, done.stderr
    return forbidden & set(done.stdout.split())


# The rules, held against attnlib.


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_down_and_files_stay_short(module):
    path = MODULES[module]
    is_package = path.name == "__init__.py"
    assert objections(module, path.read_text(encoding="utf-8"), is_package) == []


def test_import_attnlib_loads_nothing_heavy():
    assert loaded(["attnlib"], HEAVY) == set()


def test_the_numpy_levels_load_nothing_heavy():
    below = [name for name in MODULES if LEVEL[home(name)] < 5 and home(name) != "nn"]
    assert len(below) > 5
    assert loaded(below, HEAVY) == set()


def test_nn_reads_no_real_model_before_it_is_asked_to():
    assert loaded(["attnlib.nn"], READS | {"sklearn"}) == set()


def test_where_the_files_of_models_lie_is_said_by_the_standard_library_alone():
    assert loaded(["attnlib.checkpoints"], HEAVY | {"numpy"}) == set()


def test_nothing_but_nn_loads_torch():
    others = [name for name in MODULES if home(name) not in ("nn", "__main__")]
    assert loaded(others, {"torch"}) == set()


# The rules, held against modules that break them.


@pytest.mark.parametrize(
    ("module", "source", "text"),
    [
        (
            "attnlib.shapes",
            "from attnlib.masks import causal",
            "attnlib.shapes:1 (level 0) imports attnlib.masks (level 2): imports point "
            "down.",
        ),
        (
            "attnlib.masks",
            "from attnlib import heads",
            "attnlib.masks:1 (level 2) imports attnlib.heads (level 2): imports point "
            "down.",
        ),
        (
            "attnlib.heads",
            "def f():\n    from . import clinic",
            "attnlib.heads:2 (level 2) imports attnlib.clinic (level 4): imports point "
            "down.",
        ),
        (
            "attnlib.clinic.match",
            "from ..exercises import check",
            "attnlib.clinic.match:1 (level 4) imports attnlib.exercises (level 6): "
            "imports point down.",
        ),
        (
            "attnlib.attention",
            "import importlib\nimportlib.import_module('attnlib.nn')",
            "attnlib.attention:2 (level 1) imports attnlib.nn (level 3): imports point "
            "down.",
        ),
        (
            "attnlib.explorers.cells",
            "from attnlib.figures import show",
            "attnlib.explorers.cells:1 (level 5) imports attnlib.figures (level 5): "
            "imports point down.",
        ),
        (
            "attnlib.masks",
            "import attnlib.helpers",
            "attnlib.masks:1 imports attnlib.helpers, which has no level.",
        ),
        (
            "attnlib.utils",
            "",
            "attnlib.utils has no level: add it to the table in this test.",
        ),
        (
            "attnlib.figures.show",
            "from attnlib.attention import softmax",
            "attnlib.figures.show:1 imports attnlib.attention: figures compute "
            "nothing.",
        ),
        (
            "attnlib.masks",
            "def f():\n    import torch",
            "attnlib.masks:2 imports torch: only attnlib.nn may, when imported.",
        ),
        (
            "attnlib.clinic",
            "try:\n    import torch.nn\nexcept ImportError:\n    pass",
            "attnlib.clinic:2 imports torch: only attnlib.nn may, when imported.",
        ),
        (
            "attnlib.exercises.lesson_05",
            "class Answer:\n    import torch",
            "attnlib.exercises.lesson_05:2 imports torch: only attnlib.nn may, when "
            "imported.",
        ),
        (
            "attnlib.clinic.evidence",
            "def f():\n    import plotly.graph_objects",
            "attnlib.clinic.evidence:2 imports plotly: below level 5 there is NumPy "
            "only.",
        ),
        (
            "attnlib.diagnostics",
            "import scipy",
            "attnlib.diagnostics:1 imports scipy: below level 5 there is NumPy only.",
        ),
        (
            "attnlib.nn.text",
            "from tokenizers import Tokenizer",
            "attnlib.nn.text:1 imports tokenizers: only attnlib.nn.models may.",
        ),
        (
            "attnlib.nn.triton_flash",
            "def f():\n    import triton.language",
            "attnlib.nn.triton_flash:2 imports triton: only attnlib.nn.triton_kernel "
            "may.",
        ),
        (
            "attnlib.masks",
            "x = 1\n" * (LINES + 1),
            "attnlib.masks has 321 lines: one idea a file, about 300 lines.",
        ),
    ],
)
def test_a_module_that_breaks_a_rule_is_named(module, source, text):
    assert objections(module, source) == [text]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("attnlib.heads", "from .attention import softmax\nfrom . import shapes"),
        ("attnlib.clinic.match", "from .case import Case\nfrom . import probes"),
        ("attnlib.clinic", "def f(x):\n    import torch"),
        (
            "attnlib.clinic",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch",
        ),
        ("attnlib.nn.cache", "import torch\nfrom attnlib.shapes import ShapeError"),
        ("attnlib.nn.models.any", "from safetensors.torch import load_file"),
        ("attnlib.nn.triton_kernel", "import triton\nimport triton.language as tl"),
        ("attnlib.figures.charts", "from attnlib.explorers.numbers import compact"),
        ("attnlib.widgets", "import anywidget\nfrom attnlib.attention import softmax"),
        ("attnlib.__main__", "from attnlib import doctor\nimport argparse"),
    ],
)
def test_a_module_that_keeps_the_rules_is_left_alone(module, source):
    assert objections(module, source) == []


def test_a_relative_import_in_a_package_starts_at_the_package():
    source = "from .shapes import size"
    assert imports(source, "attnlib", is_package=True)[0].target == "attnlib.shapes"
    assert imports("from . import case", "attnlib.clinic", True)[0].target == (
        "attnlib.clinic"
    )


def test_a_heavy_import_is_seen_in_a_fresh_python(tmp_path):
    (tmp_path / "plotly.py").touch()
    (tmp_path / "light.py").write_text("import plotly\n", encoding="utf-8")
    assert loaded(["light"], HEAVY, tmp_path) == {"plotly"}
