"""Errors of PyTorch, where an exercise is answered in PyTorch: what each one means.

`habits` does the same for NumPy exercises. Both are asked before the general meanings.
"""

from __future__ import annotations

import ast
import re

from attnlib.exercises import habits, meanings
from attnlib.exercises.frames import Place, Shape, builtin_name

NOT_IMPORTED = "`{name}` is imported in the lesson's setup cell. Was that cell run?"
DTYPES = (
    "The inputs are float64, and a tensor that you make is float32 unless told: write "
    "dtype=q.dtype, with the name of an input."
)
NOT_A_TENSOR = (
    "Something here is {what}, and PyTorch wants a tensor. All inputs are tensors: "
    "stay with torch, or wrap it, torch.tensor(...)."
)
DIM_MISSING = "PyTorch wants to know the axis: dim=-1 is the last one."
DIM = "PyTorch says `dim` and `keepdim`, where NumPy has axis, keepdims."
VIEW = "`.view` needs numbers that lie in order. After a transpose, use `.reshape`."
MASK_KIND = "This wants a mask of True and False, and got numbers: compare, or .bool()."
NOT_BOTH = (
    "`attn_mask` and `is_causal=True` exclude each other here. Put both rules into one "
    "mask, with &, and leave is_causal out."
)
NO_GRADIENT = (
    "Nothing here remembers how it was computed. Before the computation, ask for it: "
    "q = q.detach().requires_grad_(), for each input."
)
DETACH = "Stay with tensors. To leave, if you must: x.detach().numpy()."
MAX_OF_AN_AXIS = (
    "With an axis, torch's max gives two things, values and places. Take .values, or "
    "torch.amax."
)
WRONG_KIND = (
    "torch does this for another kind of numbers only: `&` and `|` want True and False "
    "on both sides, softmax and `@` want numbers. Compare, or .to(q.dtype)."
)
INVERT = "`~` turns True and False over, and here are numbers. Use a comparison first."
MASK_OF_NUMBERS = (
    "SDPA takes a mask of True and False, or numbers to add of the kind of q. Whole "
    "numbers are neither: compare, or .bool()."
)
IN_PLACE_LARGER = (
    "A change in place cannot make a tensor larger, and the other one has more rows or "
    "axes. Make a new one: x = x & y, not x &= y, and masked_fill, not masked_fill_."
)
SAME_LENGTHS = (
    "SDPA wants q, k and v in this order: q and k equally wide, k and v equally long."
)
LEAF = (
    "An input that asks for gradients may not be changed in place. Make a new tensor: "
    "x = x + 1, not x += 1."
)
TWO_AXES = "In PyTorch, transpose and swapaxes name the two axes to exchange: (-1, -2)."
NUMPY_NAME = "A tensor has no `.{name}`: {instead}."
_INSTEAD = {
    "astype": "write x.to(torch.float64), or x.bool()",
    "copy": "PyTorch says x.clone()",
    "dot": "write `@`",
    "fill": "PyTorch says x.fill_(...)",
    "repeat_interleaves": "it is x.repeat_interleave(...)",
}
_QKV = ("query", "key", "value")
_CLASHES = (
    r"mat1 and mat2 shapes cannot be multiplied|must match the size of tensor b"
    r"|batch of matrices|must be a 3D tensor|match the broadcast shape"
)
# (class of the error, pattern in its message, meaning)
_MEANINGS = (
    ("RuntimeError", r"attn_mask dtype to be bool", MASK_OF_NUMBERS),
    ("RuntimeError", r"only for scalar outputs", habits.SCALAR_ONLY),
    ("RuntimeError", r"same dtype|scalar type|dtype of", DTYPES),
    ("TypeError", r'missing .* "dim"', DIM_MISSING),
    ("TypeError", r"missing .* \"?(dim1|axis1)", TWO_AXES),
    ("TypeError", r"unexpected keyword argument '(axis|keepdims)'", DIM),
    ("TypeError", r"torch\.return_types\.", MAX_OF_AN_AXIS),
    ("TypeError", r"~ \(operator\.invert\)", INVERT),
    ("NotImplementedError", r"not implemented for", WRONG_KIND),
    ("RuntimeError", r"two bool tensors", WRONG_KIND),
    ("RuntimeError", r"view size is not compatible", VIEW),
    ("RuntimeError", r"boolean masks?", MASK_KIND),
    ("RuntimeError", r"should not be set when is_causal", NOT_BOTH),
    ("RuntimeError", r"does not require grad", NO_GRADIENT),
    ("RuntimeError", r"numpy\(\) on Tensor that requires grad", DETACH),
    ("RuntimeError", r"in-place operation", LEAF),
    ("RuntimeError", r"Boolean value of Tensor", meanings.TRUTH),
    ("RuntimeError", r"is invalid for input of size", meanings.RESHAPE),
    ("RuntimeError", r"Sizes of tensors must match", meanings.CONCATENATE),
    ("RuntimeError", r"subscript", meanings.LETTERS),
    ("IndexError", r"Dimension out of range", meanings.AXIS),
)


def meaning(kind: str, message: str, place: Place | None) -> str:
    """What an error of PyTorch means, or "" if it is none that is known."""
    if kind == "NameError":
        missing = re.search(r"name '(torch|F|nn|np|math)'", message)
        return NOT_IMPORTED.format(name=missing[1]) if missing else ""
    if kind == "AttributeError":
        missing = re.search(r"'Tensor' object has no attribute '(\w+)'", message)
        name = missing[1] if missing else ""
        if name not in _INSTEAD:
            return ""
        return NUMPY_NAME.format(name=name, instead=_INSTEAD[name])
    other = re.search(r"must be Tensor, not ([\w.]+)|got \((numpy\.ndarray)", message)
    if kind == "TypeError" and other:
        kinds = {"numpy.ndarray": "a NumPy array", "int": "a number"}
        found = other[1] or other[2]
        return NOT_A_TENSOR.format(what=kinds.get(found, f"of the kind {found}"))
    if kind == "RuntimeError" and re.search(_CLASHES, message):
        return _shapes(message, place)
    for error, pattern, said in _MEANINGS:
        if kind == error and re.search(pattern, message):
            return said
    return ""


def _shapes(message: str, place: Place | None) -> str:
    """Which two shapes clash, by the names that they have in the learner's line."""
    call = _sdpa(place)
    if place is not None and call is not None:
        return _shapes_of_sdpa(message, place, call)
    if "broadcast shape" in message:
        return IN_PLACE_LARGER
    product = place is None or isinstance(getattr(place.node, "op", None), ast.MatMult)
    general = meanings.MATMUL if "mat1" in message or product else meanings.BROADCAST
    pair = place.operands() if place else None
    if place is None or pair is None:
        return f"{general} {meanings.PRINT_SHAPES}"
    left, right = (place.shape(node) for node in pair)
    if left is None or right is None:
        return f"{general} {meanings.PRINT_SHAPES}"
    a, b = (ast.unparse(node) for node in pair)
    return f"{general} Here they are `{a}`, {left}, and `{b}`, {right}."


def _sdpa(place: Place | None) -> ast.Call | None:
    """The call of SDPA that failed, if it was one."""
    node = place.node if place else None
    if place is None or not isinstance(node, ast.Call):
        return None
    name = ast.unparse(node.func).split(".")[-1]
    name = builtin_name(place.values.get(name)) or name  # another name for it
    return node if name == "scaled_dot_product_attention" else None


def _shapes_of_sdpa(message: str, place: Place, call: ast.Call) -> str:
    """Which of q, k, v and the mask does not fit."""
    given = dict(zip(("query", "key", "value", "attn_mask"), call.args, strict=False))
    given |= {k.arg: k.value for k in call.keywords if k.arg in (*_QKV, "attn_mask")}
    shapes = {name: _shape(place, node) for name, node in given.items()}
    q, k, v = (shapes.get(name) for name in _QKV)
    if q is None or k is None or v is None or min(map(len, (q, k, v))) < 2:
        return f"{SAME_LENGTHS} {meanings.PRINT_SHAPES}"
    if q[-1] != k[-1] or k[-2] != v[-2]:
        texts = [f"`{ast.unparse(given[name])}`, {shapes[name]}" for name in _QKV]
        return f"{SAME_LENGTHS} Yours are {texts[0]}, {texts[1]} and {texts[2]}."
    wanted, mask = (q[-2], k[-2]), shapes.get("attn_mask")
    fits = f"The scores have {wanted[0]} rows, queries, and {wanted[1]} columns, keys"
    if mask is None:
        return f"{fits}: so should the mask. {meanings.PRINT_SHAPES}"
    name = ast.unparse(given["attn_mask"])
    if mask[-2:] == wanted:
        return f"`{name}` is {mask}. Its axes in front do not fit those of q, {q}."
    return f"{fits}; `{name}` is {mask}. Its last two axes should be {wanted}."


def _shape(place: Place, node: ast.expr) -> Shape | None:
    inner = node.operand if isinstance(node, ast.UnaryOp) else node  # ~mask
    return place.shape(inner)
