"""Values on the wire: what is plain arrives as it was, and nothing else is trusted."""

from __future__ import annotations

import collections
import decimal
import enum
import functools
import json
import math

import hypothesis.extra.numpy as arrays_of
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib.exercises.exercise import Part
from attnlib.exercises.read import read
from attnlib.exercises.values import kind
from attnlib.grading import packing
from attnlib.grading.channel import CAPS
from attnlib.grading.values import Odd, pack, unpack


def sent(value):
    """Over the wire and back, through text."""
    node, arrays = pack(value)
    return unpack(json.loads(json.dumps(node, allow_nan=False)), arrays)


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    lambda parts: (
        st.lists(parts, max_size=12)
        | st.lists(parts, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=5) | st.integers(), parts, max_size=4)
    ),
    max_leaves=20,
)


@given(PLAIN)
@settings(derandomize=True, deadline=None, max_examples=150)
def test_plain_values_are_the_same_and_of_the_same_types(value):
    came = sent(value)
    assert came == value
    assert repr(came) == repr(value)


@given(
    arrays_of.arrays(
        st.sampled_from([np.bool_, np.int8, np.uint64, np.float16, np.float64]),
        arrays_of.array_shapes(min_dims=0, min_side=0, max_side=4),
    )
)
@settings(derandomize=True, deadline=None, max_examples=80)
def test_arrays_are_the_same_to_the_last_bit(array):
    came = sent(array)
    assert type(came) is np.ndarray
    assert (came.dtype, came.shape) == (array.dtype, array.shape)
    assert came.tobytes() == array.tobytes()


@pytest.mark.parametrize("kind", [np.float32, np.int64, np.bool_, np.complex64])
def test_numbers_of_numpy_keep_their_type(kind):
    came = sent(kind(1))
    assert type(came) is kind
    assert came == 1


def test_an_order_of_columns_and_one_array_twice_are_kept():
    x = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    one, two = sent((x, x))
    assert one.flags.f_contiguous
    assert one is two


def test_large_numbers_and_special_floats():
    for value in (2**80, -(2**200), math.inf, -0.0, 5e-324):
        assert repr(sent(value)) == repr(value)
    assert math.isnan(sent(math.nan))
    assert sent(slice(1, None, -2)) == slice(1, None, -2)
    assert sent(...) is ...
    assert type(sent(np.str_("a"))) is np.str_


def test_an_array_of_texts_is_kept():
    texts = np.array([["A", "bcd"], ["", "é"]])
    came = sent(texts)
    assert (came.dtype, came.tolist()) == (texts.dtype, texts.tolist())
    assert sent(np.array(["x"] * 1000)).size == 0  # that it is one, and no more


def test_a_payload_of_nan_is_only_nan():
    odd = np.array([0x7FF8_DEAD_BEEF_0001], np.uint64).view(np.float64)
    assert np.isnan(sent(odd)).all()
    assert math.isnan(sent(float(odd[0])))


# --- what is no plain value: the judge says the same of it --------------------------
class Liar:
    """Equals everything, and says that it is an array."""

    def __eq__(self, other):
        return True

    __hash__ = None
    __array_priority__ = 10**6

    @property
    def __class__(self):
        return np.ndarray

    @property
    def shape(self):
        return (2, 3)

    def __getitem__(self, index):
        return self

    def __float__(self):
        return 1.0


class Thrower:
    def __getattribute__(self, name):
        raise SystemError(name)


class Arrayish:
    def __init__(self, value=None):
        self.value = value

    def __array__(self, dtype=None, copy=None):
        if self.value is None:
            raise OSError("no")
        return np.array(self.value)


class Sub(np.ndarray):
    def __eq__(self, other):
        return np.True_

    def tolist(self):
        raise RuntimeError


class Text(str):
    def __eq__(self, other):
        return True

    __hash__ = str.__hash__


Pair = collections.namedtuple("Pair", "weights out")
Number = enum.IntEnum("Number", "ONE TWO")


def generator():
    yield 1


async def coroutine(): ...


async def asynchronous():
    yield 1


deep: list = []
for _ in range(300):
    deep = [deep]
loop: list = []
loop.append(loop)
many: list = []
for _ in range(40):
    many = [many, many]

ODD = (
    Liar,
    Liar(),
    Thrower(),
    Arrayish(),
    Arrayish([1.0, 2.0]),
    Arrayish("abc"),
    np.arange(4.0).view(Sub),
    np.ma.masked_array([1.0, 2.0], [True, False]),
    np.arange(4).astype(object),
    np.array(["a", "b"]),
    np.array([1], "datetime64[s]"),
    np.broadcast_to(0.0, (3000, 4000)),
    np.array(1j),
    1j,
    Text("abc"),
    Pair(np.ones(3), np.zeros(3)),
    (Pair(1, 2),),
    [np.ones(3), np.zeros(2)],
    [1.0] * 30,
    [[1.0] * 30] * 4,
    [[1.0], [1.0, 2.0]],
    [Liar()],
    [np.ones(2), Liar()],
    Number.TWO,
    decimal.Decimal(3),
    collections.OrderedDict(a=1),
    {"a": np.ones(2)},
    {1, 2},
    range(3),
    collections.deque([1.0, 2.0]),
    b"abc",
    generator(),
    (x for x in "a"),
    map(int, "1"),
    zip((), strict=True),
    filter(None, ()),
    asynchronous(),
    len,
    functools.partial(len),
    lambda: 3,
    NotImplemented,
    None,
    "x" * 10**6,
    torch.arange(3.0),
    torch.ones(2, 3, dtype=torch.bfloat16),
    torch.nn.Parameter(torch.ones(3)),
    torch.ones(3, dtype=torch.complex64),
    [torch.ones(3), torch.zeros(3)],
    list(torch.ones(3)),
    list(torch.ones(2, 3, requires_grad=True)),
    [torch.ones(3), torch.zeros(2)],
    torch.max(torch.eye(3), dim=0),
    (torch.ones(3), torch.ones(3)),
)
ONE = (Part("weights", "n_q n_k"),)
TWO = (Part("weights", "n_q n_k"), Part("out", "n_q d_v"))


@pytest.mark.parametrize("place", range(len(ODD)))
def test_the_judge_says_of_what_came_what_it_says_of_the_original(place):
    value = ODD[place]  # pytest would ask the objects for their names
    came = sent(value)
    assert kind(came) == kind(value)
    for parts in (ONE, TWO):
        here, there = read(value, parts), read(came, parts)
        assert there.sentence == here.sentence
        for a, b in zip(here.arrays, there.arrays, strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            assert a.astype(float).tobytes() == b.astype(float).tobytes()


def test_a_coroutine_is_told_as_one():
    assert read(sent(coroutine()), ONE).sentence == read(coroutine(), ONE).sentence


@pytest.mark.parametrize("place", range(len(ODD)))
def test_nothing_of_the_original_arrives(place):
    came = sent(ODD[place])
    seen = [came, *(came if isinstance(came, tuple | list) else ())]
    for one in seen:
        own = (Liar, Thrower, Arrayish, Sub, Text, Pair, Number, torch.Tensor)
        assert not issubclass(type(one), own)


@pytest.mark.parametrize("value", [deep, many, loop], ids=["deep", "many", "loop"])
def test_what_is_too_deep_or_too_much_goes_by_its_type(value):
    came = sent(value)
    assert type(came).__name__ == "list"
    assert not isinstance(came, list)
    assert read(came, ONE).sentence


def test_a_tensor_far_too_large_goes_by_its_shape():
    value = torch.zeros(2000, 1000)
    assert read(sent(value), ONE).sentence == read(value, ONE).sentence


def test_a_tensor_can_be_gone_through():
    assert [float(x) for x in sent(torch.arange(3.0))] == [0.0, 1.0, 2.0]
    with pytest.raises(TypeError):
        iter(sent(torch.tensor(1.0)))


def test_a_key_of_nan_and_other_odd_keys():
    nan = float("nan")
    came = sent({nan: 1, None: 2, (1, nan): 3, Text("a"): 4, 1: 5, 2.5: 6})
    assert len(came) == 6
    assert sorted(came.values()) == [1, 2, 3, 4, 5, 6]


def test_the_same_limits_hold_on_both_sides_and_in_the_channel():
    from attnlib.exercises import read as reading

    assert packing.LARGEST == reading.LARGEST
    assert CAPS.arrays >= packing.MOST_ARRAYS
    assert CAPS.numbers >= 4 * packing.LARGEST * 32
    node, arrays = pack([np.ones(2) + i for i in range(5000)])
    assert node["is"] == "stand-in"
    assert arrays == []


# --- what no one of ours has sent ---------------------------------------------------
FORGED = (
    3.5,
    [],
    {},
    {"is": 3},
    {"is": "eval", "code": "1"},
    {"is": "array"},
    {"is": "array", "number": -1},
    {"is": "array", "number": 7},
    {"is": "array", "number": True},
    {"is": "array", "number": "0"},
    {"is": "scalar", "number": 0},
    {"is": "float", "hex": "0x1p99999"},
    {"is": "float", "hex": 3},
    {"is": "int", "hex": "0x" + "f" * 10**5},
    {"is": "int", "hex": "zzz"},
    {"is": "large", "shape": [2, 3]},
    {"is": "large", "shape": [-1]},
    {"is": "large", "shape": [10**40]},
    {"is": "large", "shape": "ab"},
    {"is": "tuple"},
    {"is": "list", "parts": 3},
    {"is": "list", "all": 9},
    {"is": "dict", "pairs": [[1]]},
    {"is": "slice", "ends": [1, 2]},
    {"is": "function", "number": 0, "name": "f"},
    {"is": "text", "text": 3, "type": "T"},
    {"is": "texts", "dtype": "O", "shape": [1], "texts": ["a"]},
    {"is": "texts", "dtype": "<U1", "shape": [3], "texts": ["a"]},
    {"is": "texts", "dtype": "<U999999", "shape": [1], "texts": ["a"]},
    {"is": "texts", "dtype": "<U1", "shape": [1000], "texts": ["a"] * 1000},
)


@pytest.mark.parametrize("node", FORGED, ids=str)
def test_a_forged_value_is_refused(node):
    with pytest.raises(Odd):
        unpack(node, [np.eye(2), np.eye(3)])


def test_a_forged_array_is_refused():
    for array in (np.array([{}]), np.array(["a"]), np.ma.masked_array([1.0]), [1]):
        with pytest.raises(Odd):
            unpack(None, [array])


@pytest.mark.parametrize(
    "node",
    [
        {"is": "stand-in", "type": "int", "mark": "class"},
        {"is": "stand-in", "type": "__import__('os')", "mark": "callable"},
        {"is": "stand-in", "type": 3, "mark": ["generator"]},
        {"is": "stand-in", "type": "x" * 10**6, "fields": [3, "out", None]},
        {"is": "odd", "dtype": "O8,f4"},
        {"is": "odd", "dtype": "U3"},
    ],
    ids=lambda node: str(node)[:60],
)
def test_a_forged_stand_in_can_do_nothing(node):
    came = unpack(node, [])
    assert read(came, ONE).sentence
    assert len(type(came).__name__) <= 80
    if callable(came) and not isinstance(came, type):
        with pytest.raises(TypeError):
            came()


def test_a_forged_depth_is_refused():
    node = None
    for _ in range(500):
        node = {"is": "list", "parts": [node]}
    with pytest.raises(Odd, match="too many parts"):
        unpack(node, [])


def test_a_forged_truth_value_is_true_or_false():
    forged = np.array([0, 1, 2, 255], np.uint8).view(bool)
    assert unpack({"is": "array", "number": 0}, [forged]).sum() == 3
