"""Call a module with tokens in the way it wants: names, types, forms of masks."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from attnlib.clinic.backward import with_gradients
from attnlib.clinic.budget import Budget
from attnlib.clinic.function_call import read_answer
from attnlib.clinic.handing import (
    AnyArray,
    Places,
    differs,
    hand_in,
    hand_mask,
    keep,
)
from attnlib.clinic.module_copy import device_of
from attnlib.clinic.run import Ran, run
from attnlib.clinic.signature import Signature, arrange
from attnlib.clinic.subject import Answer
from attnlib.clinic.tensors import torch
from attnlib.shapes import Array

# See function_call.FORMS. "Bqk" is (batch * n_heads, n_q, n_k), "b" are lengths.
MASKS = ("b1qk", "qk", "bqk", "bhqk", "Bqk")
PADDINGS = ("bk", "b1k", "b11k", "b")


@dataclass
class ModuleCall:
    """How to call one module; filled in by trial calls."""

    module: Any  # the examiner's own copy
    signature: Signature
    roles: dict[str, str]  # x or q k v, memory, mask, padding ... -> argument
    meaning: str
    budget: Budget
    dtype: str = "float64"
    n_heads: int = 1
    batch_first: bool = True
    tensors: bool = True  # a function that is handed its weights may want arrays
    kinds: dict[str, str] = field(default_factory=dict)  # mask, padding -> bool, number
    forms: dict[str, tuple[str, ...]] = field(default_factory=dict)
    filled: dict[str, object] = field(default_factory=dict)
    fill: Callable[[int], dict[str, object]] | None = None  # n -> what must be given
    must_mask: str = ""  # it must be given a mask, and in this form
    places: Places | None = None
    width: int = 0  # of the result
    memory_width: int | None = None  # it must be given a memory, and that wide
    values_width: int | None = None  # and values of their own, and that wide
    stopped: bool = False  # a trial call took too long
    residual: bool = False  # it adds its tokens to the result
    differentiate: bool = False  # also go back from the sum of the output
    grads: tuple[Array, ...] = ()  # of all weights, after such a call

    def ask(
        self,
        x: Array,
        memory: Array | None = None,
        *,
        values: Array | None = None,
        mask: AnyArray | None = None,
        padding: AnyArray | None = None,
        causal: bool | None = None,
        train: bool = False,
    ) -> Answer:
        """One call, as an Answer."""
        x = np.asarray(x, dtype=np.float64)
        other = self.memory_of(x, memory)
        n_k = (x if other is None else other).shape[-2]
        if mask is not None and "mask" not in self.forms:
            return Answer(sentence="it takes no mask")
        if padding is not None and "padding" not in self.forms:
            return Answer(sentence="it takes no padding mask")
        if other is not None and not self.takes_memory:
            return Answer(sentence="it takes no memory")
        given: dict[str, tuple[AnyArray, str]] = {}
        sizes = (len(x), self.n_heads, x.shape[-2], n_k)
        if mask is not None:
            form = _best(np.asarray(mask, bool), self.forms["mask"])
            given["mask"] = (form_of(np.asarray(mask, bool), form, sizes), form)
        if padding is not None:
            form = self.forms["padding"][0]
            formed = padding_of(np.asarray(padding, bool), form)
            role = "padding" if self.padding_by_itself else "mask"
            if role in given:
                return Answer(sentence="it takes a mask or a padding mask, not both")
            given[role] = (formed, form)
        ran, changed, seconds = self.run(x, other, values, given, causal, train)
        shape = (*x.shape[:-1], self.width)
        if not self.batch_first:
            shape = (shape[1], shape[0], shape[2])
        answer = read_answer(
            ran, self.places, shape, (x.shape[-2], n_k), changed, seconds
        )
        return self._alone(self._turned(answer), x)

    @property
    def takes_memory(self) -> bool:
        """Whether it can read from other tokens than x."""
        return "memory" in self.roles or "k" in self.roles

    @property
    def padding_by_itself(self) -> bool:
        """Whether the padding mask has an argument of its own."""
        return "padding" in self.roles or "lengths" in self.roles

    def run(
        self,
        x: Array,
        memory: Array | None = None,
        values: Array | None = None,
        masks: dict[str, tuple[AnyArray, str]] | None = None,
        causal: bool | None = None,
        train: bool = False,
    ) -> tuple[Ran, tuple[str, ...], float]:
        """One guarded call: how it ended, what it changed, and the seconds."""
        device = device_of(self.module) if self.tensors else None
        memory = self.memory_of(x, memory)
        if values is None and memory is not None and self.values_width:
            values = _as_wide(memory, self.values_width)
        given: dict[str, object] = dict(self.filled)
        if self.fill is not None:
            given |= self.fill(x.shape[-2])
        tokens = self._tokens(x, device)
        read = tokens if memory is None else self._tokens(memory, device)
        if "k" in self.roles:
            given[self.roles["k"]] = read
            said = read if values is None else self._tokens(values, device)
            if "v" in self.roles:
                given[self.roles["v"]] = said
            given[self.roles["q"]] = tokens
        else:
            given[self.roles["x"]] = tokens
        if "memory" in self.roles and (memory is not None or self._must("memory")):
            given[self.roles["memory"]] = read
        for role in ("mask", "padding", "lengths", "cache", "causal"):
            if role in self.roles and self._must(role):
                given[self.roles[role]] = False if role == "causal" else None
        if causal is not None and "causal" in self.roles:
            given[self.roles["causal"]] = causal
        masks = dict(masks or {})
        if self.must_mask and "mask" not in masks:
            n_k = (x if memory is None else memory).shape[-2]
            masks["mask"] = (self._everything(x, n_k), self.must_mask)
        for role, (array, form) in masks.items():
            given[self.roles[self._own(role)]] = self._mask(role, array, form, device)
        before = {name: keep(thing) for name, thing in given.items()}
        call = arrange(self.signature, given)
        exact = self.tensors and self.dtype == "float64"

        def inside() -> object:
            if exact:  # what it makes by itself is to be as exact as what it is given
                torch.set_default_dtype(torch.float64)
            self.module.train(train)
            if not (self.differentiate and self.tensors):
                return self.module(*call.args, **call.named)
            leaves = [p for p in self.module.parameters() if p.is_leaf]
            value, self.grads = with_gradients(
                lambda: self.module(*call.args, **call.named), leaves
            )
            return value

        start = time.perf_counter()
        ran = run(inside, (), self.budget.for_one)
        seconds = time.perf_counter() - start
        self.budget.spend(seconds)
        if train:
            self.module.eval()
        names = {name: role for role, name in self.roles.items()}
        changed = tuple(
            names.get(name, name)
            for name, thing in given.items()
            if differs(thing, before[name])
        )
        return ran, changed, seconds

    def memory_of(self, x: Array, memory: Array | None) -> Array | None:
        """The memory; if it must be given one, then x as wide as that has to be."""
        if memory is not None:
            return np.asarray(memory, dtype=np.float64)
        return None if self.memory_width is None else _as_wide(x, self.memory_width)

    def _everything(self, x: Array, n_k: int) -> AnyArray:
        """A mask that hides nothing."""
        if self.must_mask in PADDINGS:
            return padding_of(np.ones((len(x), n_k), bool), self.must_mask)
        sizes = (len(x), self.n_heads, x.shape[-2], n_k)
        return form_of(np.ones((x.shape[-2], n_k), bool), self.must_mask, sizes)

    def _own(self, role: str) -> str:
        return "lengths" if role == "padding" and role not in self.roles else role

    def _mask(self, role: str, array: AnyArray, form: str, device: Any) -> Any:
        if form == "b":  # how many real keys each item has
            lengths = torch.from_numpy(array.sum(-1).astype(np.int64))
            return lengths.to(device)
        kind = self.kinds.get(role, "bool")
        return hand_mask(array, kind, self.meaning, self.dtype, self.tensors, device)

    def _must(self, role: str) -> bool:
        name = self.roles[role]
        return any(p.name == name and p.required for p in self.signature.parameters)

    def _tokens(self, x: Array, device: Any) -> Any:
        turned = x if self.batch_first else np.swapaxes(x, 0, 1)
        return hand_in(turned, self.dtype, self.tensors, device)

    def _alone(self, answer: Answer, x: Array) -> Answer:
        """The result without the tokens that were added to it."""
        if not self.residual or answer.out is None or answer.out.shape != x.shape:
            return answer
        return replace(answer, out=answer.out - x)

    def _turned(self, answer: Answer) -> Answer:
        if self.batch_first or answer.out is None:
            return answer
        return replace(answer, out=np.swapaxes(answer.out, 0, 1))


def _as_wide(x: Array, width: int) -> Array:
    return np.asarray(x[..., np.arange(width) % x.shape[-1]])


def form_of(mask: AnyArray, form: str, sizes: tuple[int, int, int, int]) -> AnyArray:
    """A mask (n_q, n_k), or one for each item, in the form that a module takes."""
    batch, heads, n_q, n_k = sizes
    if mask.ndim == 3:
        mask = mask[:, None]
    full: AnyArray = np.broadcast_to(mask, (batch, heads, n_q, n_k))
    if form == "qk":
        return np.asarray(full[0, 0])
    if form == "bqk":
        return full[:, 0]
    if form == "b1qk":
        return full[:, :1]
    if form == "Bqk":
        every: AnyArray = full.reshape(batch * heads, n_q, n_k)
        return every
    return full


def padding_of(padding: AnyArray, form: str) -> AnyArray:
    """Which keys are real, (batch, n_k), in the form that a module takes."""
    if form == "b1k":
        return padding[:, None]
    return padding[:, None, None] if form == "b11k" else padding


def _best(mask: AnyArray, forms: tuple[str, ...]) -> str:
    if mask.ndim == 2 and "qk" in forms:
        return "qk"
    if mask.ndim == 4 and mask.shape[1] > 1 and "bhqk" in forms:
        return "bhqk"
    return next((form for form in forms if form != "qk"), forms[0])
