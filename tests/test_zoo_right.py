"""The right attentions of the zoo are right: against float64, and on empty rows."""

import inspect
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))

import right_answers
from zoo import (
    right_causal,
    right_families,
    right_functions,
    right_library,
    right_modules,
    right_positions,
    right_streams,
    right_torch,
)

FUNCTIONS = right_functions.SPECIMENS + right_streams.SPECIMENS + right_torch.SPECIMENS
MODULES = (
    right_library.SPECIMENS
    + right_modules.SPECIMENS
    + right_causal.SPECIMENS
    + right_positions.SPECIMENS
    + right_families.SPECIMENS
)
# Functions written for fewer axes than (batch, n_heads, n, d).
AXES = {
    "right: three loops": 2,
    "right: list comprehensions": 2,
    "right: only the allowed keys": 2,
    "right: no mask argument, two axes": 2,
    "right: torch, baddbmm": 3,
}
MASKS = ("mask", "attn_mask", "key_mask", "attention_mask")
PADDINGS = ("key_padding_mask", "memory_key_padding_mask")
MEMORIES = ("memory", "context", "xa", "encoder_hidden_states")

# FlexAttention says that it would be faster compiled.
pytestmark = pytest.mark.filterwarnings("ignore:flex_attention called without")


def named(specimens):
    return pytest.mark.parametrize("specimen", specimens, ids=lambda s: s.name)


def parameters(thing):
    call = thing.forward if isinstance(thing, torch.nn.Module) else thing
    return list(inspect.signature(call).parameters)


def first(names, wanted):
    return next((name for name in wanted if name in names), None)


def said(look, intent, dtype):
    """A mask as this attention understands it."""
    meaning = intent.get("mask", "may look")
    if meaning == "blocked":
        return ~look
    return np.where(look, 0.0, -np.inf).astype(dtype) if meaning == "added" else look


def read(answer):
    """The result, out of whatever came back."""
    if isinstance(answer, dict):
        answer = answer["out" if "out" in answer else "output"]
    for name in ("output", "out"):
        answer = getattr(answer, name, answer)
    if isinstance(answer, tuple):
        answer = answer[0]
    if isinstance(answer, torch.Tensor):
        answer = answer.detach().double().numpy()
    return np.asarray(answer)


def causal_look(n_q, n_k):
    return np.arange(n_k) <= np.arange(n_q)[:, None] + n_k - n_q


def test_there_are_enough_and_their_names_differ():
    everyone = FUNCTIONS + MODULES
    assert len(everyone) >= 60
    assert len({s.name for s in everyone}) == len(everyone)
    assert all(s.name.startswith("right: ") and not s.codes for s in everyone)
    assert len({s.style for s in everyone}) >= 30


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("size", [1.0, 30.0], ids=["small", "huge"])
@named(FUNCTIONS)
def test_function(specimen, size, dtype):
    rng = np.random.default_rng(7)
    function = specimen.make(rng, dtype)
    intent, names = specimen.intent, parameters(function)
    half = intent.get("dtype") == "float16"
    if half and size > 1:
        pytest.skip("float16 ends before")
    tensors = specimen in right_torch.SPECIMENS
    mask_name = first(names, MASKS)
    causal = "causal" in specimen.name and "option" not in specimen.name
    n_q = n_k = 6
    if not causal and "window" not in specimen.name:
        n_q, n_k = 4, 7
    d_v = 5 if "flex" not in specimen.name else 4
    lead = (2, 3)[: AXES.get(specimen.name, 4) - 2]
    q = size * rng.normal(size=(*lead, n_q, 4))
    k, v = rng.normal(size=(*lead, n_k, 4)), rng.normal(size=(*lead, n_k, d_v))
    if half:
        q, k, v = (a.astype(np.float16) for a in (q, k, v))
    look = causal_look(n_q, n_k) if causal else np.ones((n_q, n_k), bool)
    if "window" in intent:
        look = np.tril(np.ones((n_q, n_k), bool)) & ~np.tril(
            np.ones((n_q, n_k), bool), -intent["window"]
        )
    options = {}
    if mask_name is not None:
        look = rng.random((*lead, n_q, n_k)) < 0.6
        look[..., 1, :] = False
        options[mask_name] = said(look, intent, q.dtype)
    arrays = [q, k, v, *options.values()]
    kept = [a.copy() for a in arrays]
    if tensors:  # they share the memory of the arrays
        handed = map(torch.from_numpy, (q, k, v))
        options = {name: torch.from_numpy(a) for name, a in options.items()}
    else:
        handed = (q, k, v)
    out = read(function(*handed, **options))
    wanted = right_answers.attend(q, k, v, look, cap=intent.get("softcap"))
    exact = {"atol": 1e-9, "rtol": 1e-9}
    if half or "float32" in specimen.name + dtype:
        exact = {"atol": 3e-3 if half else 1e-4, "rtol": 0}
    if "softmax, divided" in specimen.name and size > 1:
        exact = {"atol": 1e-5, "rtol": 1e-5}
    np.testing.assert_allclose(out, wanted, **exact)
    for before, now in zip(kept, arrays, strict=True):
        np.testing.assert_array_equal(before, now)
    if mask_name is not None:
        assert not out[..., 1, :].any()


@named(FUNCTIONS)
def test_function_without_its_mask(specimen):
    rng = np.random.default_rng(8)
    function = specimen.make(rng, "float64")
    if first(parameters(function), MASKS) is None:
        return
    kind = specimen.intent.get("dtype", "float64")
    lead = (2, 3)[: AXES.get(specimen.name, 4) - 2]
    q, k, v = (rng.normal(size=(*lead, 5, 4)).astype(kind) for _ in range(3))
    wanted = right_answers.attend(
        q, k, v, np.ones((5, 5), bool), cap=specimen.intent.get("softcap")
    )
    if specimen in right_torch.SPECIMENS:
        q, k, v = map(torch.from_numpy, (q, k, v))
    out = read(function(q, k, v))
    loose = kind == "float16" or "float32" in specimen.name
    np.testing.assert_allclose(out, wanted, atol=3e-3 if loose else 1e-9)


@named(right_torch.SPECIMENS)
def test_gradients_are_finite_where_a_row_is_empty(specimen):
    rng = np.random.default_rng(10)
    function = specimen.make(rng, "float64")
    mask_name = first(parameters(function), MASKS)
    if mask_name is None or "flex" in specimen.name:  # it has no gradient on a CPU
        return
    lead = (2, 3)[: AXES.get(specimen.name, 4) - 2]
    kind = specimen.intent.get("dtype", "float64")
    arrays = (rng.normal(size=(*lead, 5, 4)).astype(kind) for _ in range(3))
    given = [torch.from_numpy(a).requires_grad_() for a in arrays]
    look = rng.random((*lead, 5, 5)) < 0.6
    look[..., 1, :] = False
    mask = torch.from_numpy(said(look, specimen.intent, kind))
    answer = function(*given, **{mask_name: mask})
    answer = getattr(answer, "out", answer)
    out = answer[0] if isinstance(answer, tuple) else answer
    for gradient in torch.autograd.grad(out.sum(), given):
        assert gradient.isfinite().all()


def features_of_x(plain):
    return len(plain.q[0]), len(plain.k[0])


def call(module, specimen, x, memory, mask_name, mask):
    """One call of a module; returns what `read` makes of it, the batch first."""
    names = parameters(module)
    sources = {"query": x, "key": memory, "value": memory}
    sources |= {"keys": memory, "values": memory}
    options = {} if mask_name is None else {mask_name: mask}
    if isinstance(module, torch.nn.MultiheadAttention):
        arguments = (x, memory, memory)
        if not module.batch_first:
            arguments = tuple(a.transpose(0, 1) for a in arguments)
        out = read(module(*arguments, need_weights=False, **options))
        return out if module.batch_first else out.swapaxes(0, 1)
    if {"value", "values"} & set(names) and memory is not None and names[0] != "x":
        asked = {name: sources[name] for name in names if name in sources}
        return read(module(**asked, **options))
    other = first(names, MEMORIES)
    if other is not None and memory is not x:
        options[other] = memory
    return read(module(x, **options))


@pytest.mark.parametrize("masked", [False, True], ids=["open", "masked"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@named(MODULES)
def test_module(specimen, dtype, masked):
    rng = np.random.default_rng(9)
    module = specimen.make(rng, dtype).eval()
    plain, names = right_answers.weights(module), parameters(module)
    weight = next(module.parameters())
    d_x, d_memory = features_of_x(plain)
    crossing = type(module).__name__ in ("CrossOnly", "Crossing")
    own_memory = d_memory != d_x or crossing
    n_q, n_k = (4, 6) if own_memory else (6, 6)
    x = torch.from_numpy(rng.normal(size=(3, n_q, d_x))).to(weight.dtype)
    memory = x
    if own_memory:
        memory = torch.from_numpy(rng.normal(size=(3, n_k, d_memory))).to(weight.dtype)
    causal = specimen.name.startswith(("right: causal", "right: positions"))
    causal = causal and "option" not in specimen.name
    look = causal_look(n_q, n_k) if causal else np.ones((n_q, n_k), bool)
    look = np.broadcast_to(look, (3, n_q, n_k))
    mask_name, mask = None, None
    padding_name = first(names, PADDINGS)
    theirs = isinstance(module, torch.nn.MultiheadAttention)
    if masked and first(names, MASKS) and not theirs:
        mask_name = first(names, MASKS)
        drawn = rng.random((3, n_q, n_k)) < 0.6
        drawn[:, 1] = specimen.intent.get("empty_rows", True) is False
        look = look & drawn
        kind = {torch.float64: "float64"}.get(weight.dtype, "float32")
        mask = torch.from_numpy(said(drawn, specimen.intent, kind))
        if type(module).__name__ == "MultiHeadAttention":
            mask = mask[:, None]
    elif masked and padding_name:
        mask_name = padding_name
        real = np.arange(n_k) < np.array([n_k, 3, 0])[:, None]
        look = look & real[:, None]
        hidden = theirs or specimen.intent.get("mask") == "blocked"
        mask = torch.from_numpy(~real if hidden else real)
    elif masked:
        return
    out = call(module, specimen, x, memory, mask_name, mask)
    wanted = right_answers.multi(
        plain, x.double().numpy(), memory.double().numpy(), look
    )
    close = {torch.float64: 1e-9, torch.float32: 2e-4}.get(weight.dtype, 0.06)
    np.testing.assert_allclose(out, wanted, atol=close, rtol=close)
