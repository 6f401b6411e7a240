"""A teacher's own exercises: files of the form of `lesson_NN.py`, in a folder apart.

`load` reads them for a grader, `attnlib.exercises.use` for `check`. The files run as
part of this program: they are the teacher's, and trusted. `docs/own_exercises.md` shows
one from its first line to its last.
"""

from __future__ import annotations

import hashlib
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from attnlib import exercises
from attnlib.clinic import catalogue
from attnlib.exercises.exercise import (
    AnyExercise,
    Exercise,
    HuntExercise,
    ValueExercise,
    WitnessExercise,
)

KINDS = (Exercise, HuntExercise, ValueExercise, WitnessExercise)
N_HINTS = 3


class PrivateError(ValueError):
    """A file of exercises cannot be used; the message says which, and why."""


def files(folder: Path) -> list[Path]:
    """The files that may hold exercises, in the order of their names.

    Args:
        folder: where they lie; files that begin with `_` or `.` are not read.
    """
    return [p for p in sorted(folder.glob("*.py")) if not p.name.startswith((".", "_"))]


def fingerprint(folder: Path) -> str:
    """A hash of all that these files say.

    Args:
        folder: where they lie.
    """
    told = hashlib.sha256()
    for path in files(folder):
        content = path.read_bytes()
        told.update(f"{path.name}\n{len(content)}\n".encode())
        told.update(content)
    return told.hexdigest()


def load(folder: Path) -> tuple[AnyExercise, ...]:
    """Run the files of a folder and return their exercises.

    A file may describe mistakes of its own, too, in a tuple `MISTAKES`: from then on
    the catalogue knows them.

    Args:
        folder: holds files with a tuple `EXERCISES` at their end.

    Returns:
        The exercises, in the order of the files.

    Raises:
        PrivateError: there is none, a file does not run, a name is there already, or a
            stub cannot be made.
    """
    if not folder.is_dir():
        raise PrivateError(f"There is no folder {folder}.")
    found: dict[str, AnyExercise] = {}
    for path in files(folder):
        for exercise in _exercises(path):
            if exercise.name in exercises.of_the_course():
                raise PrivateError(
                    f"{path} has an exercise {exercise.name}, and so has the course: "
                    "give it another name."
                )
            if exercise.name in found:
                raise PrivateError(
                    f"{path} has an exercise {exercise.name}, which is there already: "
                    "give it another name."
                )
            try:
                fault = _fault(exercise)
            except Exception as error:  # parts of another kind than they should be
                fault = f"{exercise.name} cannot be read: {_said(error, path)}"
            if fault:
                raise PrivateError(f"{path}: {fault}")
            found[exercise.name] = exercise
    if not found:
        raise PrivateError(f"{folder} holds no file with EXERCISES = (...).")
    return tuple(found.values())


def _exercises(path: Path) -> Iterator[AnyExercise]:
    module = _module(path)
    listed = getattr(module, "EXERCISES", None)
    if not isinstance(listed, tuple):
        raise PrivateError(f"{path} does not end with EXERCISES = (...), a tuple.")
    try:
        catalogue.add(getattr(module, "MISTAKES", ()))
    except (ValueError, AttributeError) as error:
        raise PrivateError(f"{path} has MISTAKES that do not fit: {error}") from None
    for exercise in listed:
        if not isinstance(exercise, KINDS):
            kind = type(exercise).__name__
            raise PrivateError(
                f"{path} lists {kind!r} in EXERCISES, which is no exercise."
            )
        yield exercise


def _fault(exercise: AnyExercise) -> str:
    """What is wrong with an exercise, before anyone answers it; or nothing."""
    name = exercise.name
    if not name.isidentifier():
        return f"{name!r} is no name of an exercise: write it like a variable."
    if len(exercise.hints) != N_HINTS or isinstance(exercise.hints, str):
        return f"{name} has {len(exercise.hints)} hints, and there must be {N_HINTS}."
    if exercise.minutes < 1:
        return f"{name} takes {exercise.minutes} minutes, and 1 is the least."
    if isinstance(exercise, Exercise | HuntExercise):
        given = getattr(exercise.solution, "__name__", "a thing without a name")
        if given != name:
            return f"the solution of {name} is named {given}, so its stub does not fit."
        try:
            stub = exercise.stub_source
        except (TypeError, OSError, SyntaxError):
            stub = ""
        if not stub:
            return (
                f"there is no stub of {name}: its solution must be a function that "
                "stands in the file, with a docstring."
            )
    elif not exercise.show.startswith(f"{name} = "):
        return f"`show` of {name} does not begin with `{name} = `, as its stub does."
    if isinstance(exercise, Exercise):
        strange = [k for k in exercise.family.faults if k not in catalogue.catalogue()]
        if strange:
            return (
                f"the family of {name} has a mistake {strange[0]} that is described "
                "nowhere: add it to MISTAKES."
            )
    return ""


def _module(path: Path) -> ModuleType:
    """Run a file; nothing is written beside it."""
    path = path.resolve()
    name = f"attnlib_private_{path.stem}"
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module  # where `inspect` looks for the source of a solution
    try:
        exec(compile(path.read_bytes(), str(path), "exec"), vars(module))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise PrivateError(f"{path} does not run: {_said(error, path)}") from None
    return module


def _said(error: BaseException, path: Path) -> str:
    """An error as a sentence, with the line of the file in which it was raised."""
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: {error.msg}."
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(path)]
    at = f"line {lines[-1]}: " if lines else ""
    own = " ".join(str(error).split()).rstrip(".")
    return f"{at}{type(error).__name__}{': ' if own else ''}{own}."
