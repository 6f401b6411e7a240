"""The program of a kernel on the wire: see `attnlib.exercises.program`.

It is noted in the student's process, and done again in another one that never had a
line of the student's in it. So the meters are those of our own chip. What may stand in
a program are numbers, and NumPy's own functions by their names: none that reads or
writes a file, or calls what it is handed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from attnlib.exercises.program import NOWHERE, OF_CHIP, OF_TILE, Program, Ref
from attnlib.grading.values import Odd, pack, unpack

Array = npt.NDArray[Any]

MOST = 1_500_000  # parts of a program
LONGEST = 64 << 20  # bytes of its text
HERE = ("q", "k", "v", "out")  # what lies in HBM before it begins
WAYS = {"__call__", "reduce", "accumulate", "reduceat", "outer", "at"}  # of a ufunc
STEPS = {"let go", "T", *OF_CHIP, *OF_TILE}
REFUSED = {
    *("save", "savez", "savez_compressed", "savetxt"),
    *("array2string", "array_repr", "array_str", "shares_memory", "einsum_path"),
    *("apply_along_axis", "apply_over_axes", "piecewise"),
}
UFUNCS = {n: f for n, f in vars(np).items() if isinstance(f, np.ufunc)}
FUNCTIONS = {
    name: function
    for module, prefix in ((np, ""), (np.linalg, "linalg."))
    for short, function in vars(module).items()
    if hasattr(function, "_implementation") and short not in REFUSED
    for name in (prefix + short,)
}
FUNCTIONS["sliding_window_view"] = np.lib.stride_tricks.sliding_window_view
KNOWN = {id(function) for function in FUNCTIONS.values()}
TYPES: dict[str, type] = {kind.__name__: kind for kind in (int, float, bool)}
TYPES |= {f"np.{kind.__name__}": kind for kind in np.sctypeDict.values()}
_NAMES = {
    id(one): {"is": word, "name": name}
    for word, table in (("ufunc", UFUNCS), ("function", FUNCTIONS), ("type", TYPES))
    for name, one in table.items()
}


def packed(program: Program) -> list[Array]:
    """A program as arrays: its text in bytes, and the arrays that stand in it."""
    numbers: dict[int, int] = {id(program.chip): 0, id(NOWHERE): -1}
    for name in HERE:
        if name in program.placed:
            numbers[id(program.placed[name])] = len(numbers) - 1

    def ref(one: Ref) -> int:
        return numbers.setdefault(id(one), len(numbers) - 1)

    def extra(value: object) -> Any:
        if type(value) is Ref:
            return {"is": "ref", "number": ref(value)}
        if type(value) is range:
            return {"is": "range", "ends": [value.start, value.stop, value.step]}
        if isinstance(value, np.dtype):
            return {"is": "dtype", "name": value.str}
        return _NAMES.get(id(value))

    steps = [
        (name, args, kwargs, [ref(one) for one in made])
        for name, args, kwargs, made in program.steps
    ]
    node, arrays = pack(steps, extra, MOST)
    text = np.frombuffer(json.dumps(node).encode(), np.uint8)
    return [text, *arrays]


def unpacked(arrays: Sequence[Array]) -> Program:
    """The program again. Raises Odd where it is none."""
    text, *rest = arrays
    if text.nbytes > LONGEST:
        raise Odd("a program is too long")
    program = Program()
    refs: dict[int, Ref] = {0: program.chip, -1: NOWHERE}
    for i, name in enumerate(HERE):
        program.placed[name] = refs[i + 1] = Ref()

    def ref(number: object) -> Ref:
        if type(number) is not int:
            raise Odd("a tile without a number")
        return refs.setdefault(number, Ref())

    def extra(node: Any) -> object:
        kind = node["is"]
        if kind == "ref":
            return ref(node["number"])
        if kind == "range":
            return range(*(int(end) for end in node["ends"]))
        if kind == "dtype":
            dtype = np.dtype(str(node["name"])[:8])
            if dtype.hasobject:
                raise Odd("no numbers")
            return dtype
        tables: Mapping[str, Mapping[str, Any]] = {
            "ufunc": UFUNCS,
            "function": FUNCTIONS,
            "type": TYPES,
        }
        return tables[kind][node["name"]]

    steps = unpack(json.loads(text.tobytes()), rest, extra, MOST)
    for name, args, kwargs, made in steps:
        if name not in STEPS or type(args) is not tuple or type(kwargs) is not dict:
            raise Odd("no step of a program")
        if name == "__array_ufunc__" and args[2] not in WAYS:
            raise Odd("no way to use a ufunc")
        if name == "__array_function__" and id(args[1]) not in KNOWN:
            raise Odd("no function of NumPy")
        program.steps.append((name, args, kwargs, tuple(map(ref, made))))
    return program
