"""Call a function of q, k and v in the way it wants: the words, types and forms."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from attnlib.clinic.backward import with_gradients
from attnlib.clinic.budget import Budget
from attnlib.clinic.handing import (
    AnyArray,
    Places,
    at,
    differs,
    find_places,
    hand_in,
    hand_mask,
    is_tensor,
    keep,
    says_what,
)
from attnlib.clinic.run import Ran, run
from attnlib.clinic.signature import Signature, arrange
from attnlib.clinic.subject import Answer
from attnlib.clinic.tensors import torch
from attnlib.shapes import Array

# Forms of masks: "qk" (n_q, n_k), "bqk" one for each item, "b1qk" with an axis of one
# for the heads, "bhqk" one for each head, "bk" which keys of an item are real.
FORMS = {4: ("qk", "b1qk", "bqk", "bhqk", "bk"), 3: ("qk", "bqk", "bk"), 2: ("qk",)}


@dataclass
class FunctionCall:
    """How to call one function; filled in by the trial calls."""

    function: Callable[..., object]
    signature: Signature
    roles: dict[str, str]  # q, k, v, mask, causal ... -> the name of the argument
    meaning: str  # of the mask: "may look", "blocked", "added"
    budget: Budget
    tensors: bool = False
    dtype: str = "float64"
    kind: str = "bool"  # of the mask: booleans, or 1 and 0
    needs_mask: str = ""  # it must be given a mask, and in this form
    filled: dict[str, object] = field(default_factory=dict)
    forms: dict[int, tuple[str, ...]] = field(default_factory=dict)
    by_luck: str = ""  # a form that fits only where batch == n_heads
    places: Places | None = None
    differentiate: bool = False  # also go back from the sum of the output
    grads: tuple[Array, ...] = ()  # of q, k and v, after such a call

    def ask(
        self,
        q: Array,
        k: Array,
        v: Array,
        mask: Array | None = None,
        *,
        causal: bool | None = None,
        dtype: str | None = None,
    ) -> Answer:
        """One call, as an Answer."""
        q, k, v = (np.asarray(a, dtype=np.float64) for a in (q, k, v))
        tail = (q.shape[-2], k.shape[-2])
        formed = None
        if mask is not None:
            if "mask" not in self.roles:
                return Answer(sentence="it takes no mask")
            formed = self.form(np.asarray(mask, dtype=bool), q)
        ran, changed, seconds = self.run(q, k, v, formed, causal, dtype)
        return self.read(ran, (*q.shape[:-1], v.shape[-1]), tail, changed, seconds)

    def form(self, mask: AnyArray, q: Array, form: str = "") -> AnyArray:
        """A mask in a form that the function takes, as boolean, True = may look."""
        rank = q.ndim
        known = self.forms.get(rank, ())
        lucky = rank == mask.ndim == 4 and mask.shape[1] == 1
        if not form and lucky and self.by_luck and q.shape[0] == q.shape[1]:
            form = self.by_luck
        if not form:
            own = {2: "qk", 3: "bqk", 4: "b1qk" if mask.shape[1:2] == (1,) else "bhqk"}
            wanted = own.get(mask.ndim, "")
            if wanted in known or not known:
                return mask
            form = next((f for f in known if _holds(f, mask)), known[0])
        full = mask
        if full.ndim == 3 and rank == 4:
            full = full[:, None]
        full = full.reshape((1,) * (rank - full.ndim) + full.shape)
        n_q = q.shape[-2]
        full = np.broadcast_to(full, (*full.shape[:-2], n_q, full.shape[-1]))
        return _cut(full, form, q.shape)

    def run(
        self,
        q: Array,
        k: Array,
        v: Array,
        mask: AnyArray | None = None,
        causal: bool | None = None,
        dtype: str | None = None,
    ) -> tuple[Ran, tuple[str, ...], float]:
        """One guarded call: how it ended, what it changed, and the seconds."""
        dtype = dtype or self.dtype
        given: dict[str, object] = dict(self.filled)
        try:
            for role, array in (("q", q), ("k", k), ("v", v)):
                given[self.roles[role]] = hand_in(array, dtype, self.tensors)
            if mask is None and self.needs_mask:
                known = self.forms.get(q.ndim, (self.needs_mask,))
                everything = np.ones((q.shape[-2], k.shape[-2]), bool)
                mask = self.form(everything, q, known[0])
            if mask is not None:
                given[self.roles["mask"]] = hand_mask(
                    mask, self.kind, self.meaning, dtype, self.tensors
                )
            elif "mask" in self.roles and self._must("mask"):
                given[self.roles["mask"]] = None
        except Exception as error:  # a type that NumPy does not have
            return Ran(error=error), (), 0.0
        if causal is not None and "causal" in self.roles:
            given[self.roles["causal"]] = causal
        if "d_k" in self.roles:
            given[self.roles["d_k"]] = q.shape[-1]
        grouped = q.ndim == 4 and k.shape[1] != q.shape[1]
        if grouped and "enable_gqa" in self.roles:
            given[self.roles["enable_gqa"]] = True
        before = {name: keep(thing) for name, thing in given.items()}
        call = arrange(self.signature, given)
        exact = self.tensors and dtype == "float64"

        def inside() -> object:
            if exact:  # what it makes by itself is to be as exact as what it is given
                torch.set_default_dtype(torch.float64)
            if not self.differentiate:
                return self.function(*call.args, **call.named)
            leaves = [given[self.roles[role]] for role in ("q", "k", "v")]
            value, self.grads = with_gradients(
                lambda: self.function(*call.args, **call.named), leaves
            )
            return value

        start = time.perf_counter()
        ran = run(inside, (), self.budget.for_one)
        seconds = time.perf_counter() - start
        self.budget.spend(seconds)
        roles = {name: role for role, name in self.roles.items()}
        changed = tuple(
            roles.get(name, name)
            for name, thing in given.items()
            if differs(thing, before[name])
        )
        return ran, changed, seconds

    def _must(self, role: str) -> bool:
        name = self.roles[role]
        return any(p.name == name and p.required for p in self.signature.parameters)

    def read(
        self,
        ran: Ran,
        shape: tuple[int, ...],
        tail: tuple[int, int],
        changed: tuple[str, ...],
        seconds: float,
    ) -> Answer:
        """What came back, as an Answer."""
        return read_answer(ran, self.places, shape, tail, changed, seconds)


def read_answer(
    ran: Ran,
    places: Places | None,
    shape: tuple[int, ...],
    tail: tuple[int, int],
    changed: tuple[str, ...] = (),
    seconds: float = 0.0,
) -> Answer:
    """Read the result and the weights where they stood in the trial call."""

    def answer(**more: Any) -> Answer:
        return Answer(
            printed=ran.printed,
            seconds=seconds,
            timed_out=ran.timed_out,
            changed=changed,
            **more,
        )

    if ran.timed_out:
        return answer(error=ran.error, sentence="it did not come to an end in time")
    if ran.error is not None:
        return answer(error=ran.error)
    places = places or find_places(ran.value, shape, tail)
    out = None if places is None else at(ran.value, places.out)
    if places is None or out is None:
        return answer(sentence=f"it {says_what(ran.value)}, and {shape} was expected")
    weights = None if places.weights is None else at(ran.value, places.weights)
    if weights is not None and weights.shape[-2:] != tail:
        weights = None
    said = "" if out.shape == shape else f"it returned {out.shape} for {shape}"
    kind = dtype_of(ran.value, places)
    return answer(out=out, weights=weights, sentence=said, dtype=kind)


def dtype_of(value: Any, places: Places) -> str:
    """The type of the result as it was returned: "float32"."""
    try:
        for step in places.out:
            item = isinstance(step, int) or hasattr(value, "keys")
            value = value[step] if item else getattr(value, str(step))
        if is_tensor(value) or isinstance(value, np.ndarray):
            return str(value.dtype).removeprefix("torch.")
    except Exception:  # an object that raises whatever it is asked
        return ""
    return ""


def _holds(form: str, mask: AnyArray) -> bool:
    """Whether a form can say what the mask says."""
    items = mask.ndim > 2 and mask.shape[0] > 1
    heads = mask.ndim > 3 and mask.shape[1] > 1
    if form == "bk":
        return not heads and bool((mask == mask[..., :1, :]).all())
    return (not items or "b" in form) and (not heads or "h" in form)


def _cut(mask: AnyArray, form: str, q_shape: tuple[int, ...]) -> AnyArray:
    """A mask with the rank of q, brought into a form."""
    if form == "qk":
        whole: AnyArray = mask.reshape(-1, *mask.shape[-2:])[0]
        return whole
    batch = q_shape[0]
    if form == "bqk":
        one = mask[:, 0] if mask.ndim == 4 else mask
        return np.broadcast_to(one, (batch, *one.shape[1:]))
    if form == "bk":
        one = (mask[:, 0] if mask.ndim == 4 else mask)[:, 0]
        return np.broadcast_to(one, (batch, one.shape[-1]))
    heads = q_shape[1] if form == "bhqk" else 1
    one = mask if form == "bhqk" else mask[:, :1]
    return np.broadcast_to(one, (batch, heads, *one.shape[2:]))
