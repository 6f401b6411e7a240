"""The imports that are lost with a lesson's first cell: a teacher would add them again.

Only what the exercise's own solution imports from NumPy, torch or attnlib, under the
same name; nothing that the course keeps with its exercises.
"""

from __future__ import annotations

import types

from attnlib.exercises.exercise import AnyExercise

_USUAL = {
    "np": "import numpy as np",
    "math": "import math",
    "torch": "import torch",
    "F": "import torch.nn.functional as F",
}
# The parts of attnlib that lessons import by this name. (`nn` may be torch's.)
_PARTS = (
    "attention cost diagnostics example heads lowrank masks numerics positions sparse"
)
_USUAL |= {part: f"from attnlib import {part}" for part in _PARTS.split()}
_LIBRARIES = ("attnlib", "numpy", "torch", "math")
_KEPT = ("attnlib.exercises", "attnlib.clinic", "attnlib.grading")


def import_of(exercise: AnyExercise | None, name: str) -> str:
    """The import that gives a name its value in the lesson, or nothing."""
    if name in _USUAL:
        return _USUAL[name]
    solution = getattr(exercise, "solution", None)  # None, where the answer is a value
    value = getattr(solution, "__globals__", {}).get(name)
    if isinstance(value, types.ModuleType):
        module, line = value.__name__, f"import {value.__name__} as {name}"
    else:
        module = str(getattr(value, "__module__", None))
        own = getattr(value, "__qualname__", "")
        line = f"from {module} import {own} as {name}" if own.isidentifier() else ""
    known = module.split(".")[0] in _LIBRARIES
    return line if known and not module.startswith(_KEPT) else ""
