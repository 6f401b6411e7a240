"""Every sentence on what an error of a learner's means, and what to do."""

from __future__ import annotations

Shape = tuple[int, ...]

PRINT_SHAPES = "Print both shapes before this line."
MATMUL = "`A @ B` needs as many columns in A as B has rows."
MATMUL_OF_A_NUMBER = "`@` multiplies tables. One side is a single number: use `*`."
BROADCAST = (
    "Two arrays of different shapes meet here. Compared from the last axis, their "
    "sizes must be equal, or one of them 1."
)
KEEPDIMS = "After a sum or a max, keepdims=True keeps the axis."
RESHAPE = (
    "reshape keeps the number of elements: the new sizes must multiply to the old "
    "number."
)
CONCATENATE = "Arrays are joined along one axis; all their other sizes must be equal."
TRUTH = (
    "`if`, `and`, `or` and `not` want one True or False, and this is a whole array. "
    "Use &, |, ~, np.where, .any() or .all()."
)
BITWISE = (
    "`&`, `|` and `~` want True and False, and here is a table of numbers. "
    "np.ones(..., dtype=bool) and comparisons give truth values."
)
SIZES_IN_BRACKETS = (
    "The sizes belong together, in brackets of their own: np.ones((2, 3))."
)
SPLIT_EVENLY = "This axis has no such number of equal parts. Is it the right axis?"
LETTERS = "Each axis needs its letter. `...` in front stands for all axes of a batch."
AXES = (
    "The list of axes does not fit. `transpose` of an array wants all of them, in "
    "their new order; that of a tensor exchanges two."
)
RAGGED = "The pieces are not equally large: they are no rows of one table."
BOOLEAN_INDEX = (
    "A mask in square brackets must have the shape of the array; np.where(mask, a, b) "
    "spreads it over the axes in front."
)
ONE_OBJECT = (
    "That is one object, and no tuple. Give it a name, and take from it what you need: "
    "found.weights, found.out."
)
UNPACK = (
    "The number of names on the left is not the number of values on the right. "
    "Batches bring extra axes: use x.shape[-1], not a fixed number of sizes."
)
AXIS = (
    "The array has fewer axes than that. Count from the end: the last axis is -1, "
    "however many there are."
)
AXIS_IS_FIXED = (
    "The axis is a fixed number here, and this array has fewer axes. Use the argument "
    "`axis`."
)
SOMETHING_IS_NONE = (
    "One of the values is None. Does a function you call have no `return` yet?"
)
SOMETHING_IS_ELLIPSIS = "One of the values is still `...`."
NOT_CALLABLE = "Something that is no function is called with ()."
NOT_CALLED = "A function stands here where a number is wanted. Call it, with ()."
NOT_ITS_ARRAY = (
    "What scaled_dot_product gives is one object; take from it what you need: "
    "found.weights, found.out."
)
NO_COLUMNS = (
    "A slice that begins behind the last column is empty. Which columns belong to this "
    "head, and how many are there?"
)
ODD_WIDTH = (
    "RoPE turns queries and keys, each head's own d_k features. What did you give it?"
)
PLACES = "Places are np.arange(n), n the number of tokens, which is no batch axis."
DIAGONAL = (
    "np.diag takes one table. np.diagonal(x, offset, -2, -1) takes the diagonal of "
    "each, whatever axes stand in front."
)
MEAN_OF_NOTHING = (
    "\nSomewhere the mean is taken over nothing. Are there rows at all? Print what is "
    "averaged; sizes count from the end, shape[-1]."
)
ONE_NUMBER = "math.exp and float() take one number. For arrays: np.exp."
WHOLE_NUMBER = "Sizes and places are whole numbers. `/` gives a float, `//` does not."
DTYPE = (
    "The result does not fit into the array it is written into. Make a new one: "
    "`a = a / b`, not `a /= b`."
)
NO_SUCH_VALUES = "This operation works on numbers only. What is in the array?"
ATTRIBUTE = "The object has nothing of that name. Is it misspelt?"
UNBOUND = "This name is used before it gets a value inside the function."
NAME = "Nothing has this name. Is it misspelt, or is a cell not run?"
INDEX = "The index is outside the array. Does the code fix a size?"
ZERO_TIMES_HIDDEN = (
    "\nWhere a key is hidden, the score is -inf, and so is its log-softmax. A weight "
    "times -inf is infinite, and 0 times -inf is NaN: put a finite number there first."
)
MASK_FITS = (
    "In x[mask] the axes of the mask stand for the first axes of x, in their order. Do "
    "they lie there? transpose exchanges two."
)
MASK_KINDS = (
    "A mask in square brackets holds True and False. Numbers there are places, and "
    "have to be whole."
)
NO_LENGTH = (
    "That is one number, and no list. `left.pop(...)` changes the list itself, and "
    "returns what it takes out: write it without `left =` in front."
)
LIST_COMPARED = "A list is no number. len(...) says how many are in it."
RANGE_IS_FIXED = "A range cannot be changed; list(range(n)) can."
NOT_IN_LIST = (
    "What is removed or looked up is not in the list. Has it gone already, or is it a "
    "place, where a number of the list is meant?"
)
PLACE_IN_LIST = (
    "`pop` and `del` take a place in the list, not a number that stands there; "
    "left.index(number) says where it stands."
)
KEY = "There is no such key. In a dict, d.items() gives each name with its value."
TOO_LARGE_FOR_HALF = (
    "float16 ends at 65504, and PyTorch refuses to store more (M13). -inf exists in "
    "every float type."
)
THREE_THINGS = "np.where(mask, a, b) takes three: where, what if True, what if False."
MODULE = "The lesson needs nothing but NumPy."
ZERO = "Something is divided by zero."
RECURSION = "The function calls itself without end."
MEMORY = "The array would be far too large."
ASSERTION = "Your own assert failed."


def argument_is_none(name: str) -> str:
    return (
        f"`{name}` is None in this case. Ask `if {name} is None` before you use it; "
        "the description says what is wanted then."
    )


def stub_returned(name: str) -> str:
    return f"Your `{name}` returned None: it is still the stub. Write that first."


def name_is_none(name: str) -> str:
    return f"`{name}` is None here. Does the function that made it have no `return`?"


def was_it_given(name: str) -> str:
    return f"To ask whether `{name}` was given, write `{name} is not None`."


def matmul_shapes(a: str, left: Shape, b: str, right: Shape) -> str:
    return f"{MATMUL} Here they are `{a}`, {left}, and `{b}`, {right}."


def matmul_sizes(columns: str, rows: str) -> str:
    return f"{MATMUL} Here A has {columns} columns, and B {rows} rows."


def turns_all(name: str) -> str:
    return (
        f"`.T` turns all axes over. With a batch in front exchange the last two only: "
        f"np.swapaxes({name}, -1, -2)."
    )


def turned_would_fit(name: str) -> str:
    if name.endswith(".T"):
        return f"`{name[:-2]}` fits as it is, without `.T`."
    return f"Should `{name}` be turned over, with np.swapaxes({name}, -1, -2)?"
