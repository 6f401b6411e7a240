"""The docstrings of the library: complete, and what they show is true.

A public function of levels 0 to 4 says in one sentence what it does, then gives the
arguments and the result with their shapes, what it raises, what it costs, where it
comes from, which lesson teaches it, and an example that runs.
"""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.util
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "attnlib"
PLAIN = ("shapes", "example", "attention", "cost", "masks", "heads", "positions")
PLAIN += ("tiles", "sparse", "lowrank", "numerics", "diagnostics", "head_diagnostics")
PLAIN += ("checkpoints", "nn/models/minilm", "nn/models/smollm2")
PLAIN += ("nn/models/whisper", "nn/models/sound")
PACKAGES = ("nn", "clinic")  # public is what their __init__ hands out
SECTIONS = ("Args:", "Returns:", "Raises:", "Cost:", "Source:", "Lesson:")


def modules() -> list[str]:
    names = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        if parts[-1] != "__main__":
            names.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return names


def public_functions(module: ModuleType) -> dict[str, Callable[..., object]]:
    is_package = hasattr(module, "__path__")
    found = {}
    for name, value in vars(module).items():
        own = value.__module__ == module.__name__ if hasattr(value, "__module__") else 0
        given = is_package and getattr(value, "__module__", "").startswith("attnlib.")
        if not name.startswith("_") and inspect.isfunction(value) and (own or given):
            found[f"{module.__name__}.{name}"] = value
    return found


def objections(function: Callable[..., object]) -> list[str]:
    """What a docstring lacks, in words."""
    text = inspect.getdoc(function)
    if not text:
        return ["has no docstring"]
    said = []
    first = text.split("\n\n")[0]
    if not first.endswith(".") or first.count(". "):
        said.append("does not start with one sentence")
    places = [text.find(f"\n{section}") for section in SECTIONS]
    said += [f"lacks {s}" for s, at in zip(SECTIONS, places, strict=True) if at < 0]
    if not said and places != sorted(places):
        said.append("has its sections in another order")
    if ">>> " not in text:
        said.append("shows no example")
    if not re.search(r"^Lesson: \d\d(, \d\d)*\.$", text, re.M):
        said.append("names no lesson")
    arguments = text[places[0] : places[1]] if min(places[:2]) >= 0 else ""
    for name in inspect.signature(function).parameters:
        if not re.search(rf"^    {name}: \S", arguments, re.M):
            said.append(f"does not explain {name}")
    return said


FUNCTIONS: dict[str, Callable[..., object]] = {}
for _name in (*PLAIN, *PACKAGES):
    if (PACKAGE / f"{_name}.py").exists() or (PACKAGE / _name).is_dir():
        _module = importlib.import_module(f"attnlib.{_name.replace('/', '.')}")
        FUNCTIONS |= public_functions(_module)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_public_functions_are_explained(name):
    assert objections(FUNCTIONS[name]) == []


def test_the_functions_are_found():
    promised = (
        "attention.softmax attention.scaled_dot_product masks.causal masks.padding "
        "masks.window masks.prefix masks.document masks.blocks heads.split_heads "
        "heads.merge_heads heads.multi_head"
    )
    assert {f"attnlib.{name}" for name in promised.split()} <= set(FUNCTIONS)


@pytest.mark.parametrize("module", modules())
def test_every_module_says_what_it_is_for(module):
    spec = importlib.util.find_spec(module)
    source = Path(spec.origin).read_text(encoding="utf-8")
    assert (ast.get_docstring(ast.parse(source)) or "").split("\n")[0].strip()


@pytest.mark.parametrize("module", modules())
def test_the_examples_in_the_docstrings_are_true(module):
    if module == "attnlib.nn.triton_kernel":
        pytest.importorskip("triton", reason="the package triton is not installed")
    result = doctest.testmod(importlib.import_module(module))
    assert result.failed == 0, f"python -m doctest -v {module} shows which"


# The guard, held against docstrings that lack something.


def good(x):
    """Say one thing.

    Args:
        x: anything, (n).

    Returns:
        The same.

    Raises:
        Nothing.

    Cost: none.
    Source: the names of the course.
    Lesson: 01.

    >>> good(1)
    1
    """
    return x


def blank(x):
    return x


def test_a_complete_docstring_passes_and_a_missing_one_does_not():
    assert objections(good) == []
    assert objections(blank) == ["has no docstring"]


ONE_SENTENCE = "does not start with one sentence"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("Say one thing.", "Say one thing. And another.", ONE_SENTENCE),
        ("Say one thing.", "Say one thing", ONE_SENTENCE),
        ("Cost:", "Price:", "lacks Cost:"),
        ("Source:", "From:", "lacks Source:"),
        ("Raises:\n    Nothing.\n", "", "lacks Raises:"),
        ("Lesson: 01.", "Lesson: soon.", "names no lesson"),
        (">>> good(1)\n1", "", "shows no example"),
        ("    x: anything", "    y: anything", "does not explain x"),
        (
            "Cost: none.\nSource: the",
            "Source: the\nCost: none.\n",
            "has its sections in another order",
        ),
    ],
)
def test_an_incomplete_docstring_is_named(old, new, said):
    text = inspect.getdoc(good)
    assert old in text

    def worse(x):
        return x

    worse.__doc__ = text.replace(old, new)
    assert said in objections(worse)


def test_a_false_example_is_seen(capsys):
    module = ModuleType("false_example")
    source = 'def one():\n    """Give one.\n\n    >>> 1 + 1\n    3\n    """\n'
    exec(source, vars(module))
    assert doctest.testmod(module, report=False).failed == 1
    assert "Expected:\n    3\nGot:\n    2\n" in capsys.readouterr().out
