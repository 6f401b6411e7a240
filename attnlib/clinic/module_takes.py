"""Find out by trial what a module takes: masks of which form, padding, a memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from attnlib.attention import scaled_dot_product
from attnlib.clinic.handing import KINDS, AnyArray, at, forms_that_agree
from attnlib.clinic.module_call import (
    MASKS,
    PADDINGS,
    ModuleCall,
    form_of,
    padding_of,
)
from attnlib.clinic.subject import Takes, Weights
from attnlib.heads import merge_heads, repeat_heads, split_heads
from attnlib.shapes import Array


def find_out(
    call: ModuleCall, read: Callable[[], Weights], notes: list[str], seed: int
) -> Takes:
    """Try masks, padding, a causal flag and a memory, and keep what works."""
    weights = read()
    trial = _Trial(call, weights, seed)
    memory = call.takes_memory and trial.works(trial.other) is not None
    square = "memory" in call.roles and not memory and trial.reads_as_many()
    if square:
        notes.append("It takes no memory that is longer or shorter than its tokens.")
    elif "memory" in call.roles and not memory and not call._must("memory"):
        del call.roles["memory"]
    trial.crossing = memory
    if "mask" in call.roles:
        trial.find_used("mask", MASKS)
    if "padding" in call.roles:
        trial.find_used("padding", PADDINGS)
    elif "lengths" in call.roles:
        trial.find("padding", ("b",))
    elif "mask" in call.roles:
        trial.find("padding", PADDINGS[:1] if "mask" in call.forms else PADDINGS[:3])
    causal = "causal" in call.roles and trial.causal_works()
    if not causal:
        call.roles.pop("causal", None)
    for role in ("mask", "padding"):
        asked = role in call.roles and role not in call.forms
        if asked and not ({"mask", "padding"} & set(call.forms)):
            notes.append(f"It took no {call.roles[role]} of any form.")
    forms = call.forms.get("mask", ())
    return Takes(
        mask=bool(forms),
        padding="padding" in call.forms,
        causal=causal,
        memory=memory,
        cache="cache" in call.roles,
        values="v" in call.roles,
        mask_dims=tuple(sorted({len(f) for f in forms if f != "Bqk"})),
        item_masks=bool(set(forms) - {"qk"}),
        batch_is_heads=trial.batch_is_heads,
        no_cross=square,
        no_self=call.memory_width is not None,
    )


class _Trial:
    """Tokens of sizes that all differ, and the calls made with them."""

    def __init__(self, call: ModuleCall, weights: Weights, seed: int) -> None:
        self.call, self.weights = call, weights
        taken = {1, weights.n_heads, weights.n_kv_heads, weights.d_model}
        taken.add(weights.W_q.shape[1] // weights.n_heads)
        free = [n for n in range(2, 20) if n not in taken]
        self.batch, self.n_q, self.n_k = free[:3]
        self.crossing = False
        self.batch_is_heads = False
        self.moved = False  # the last mask that was tried had an influence
        self.rng = np.random.default_rng(seed + 1)
        self.x = self._text(self.batch, self.n_q, weights.d_model)
        self.other = self._text(self.batch, self.n_k, weights.W_k.shape[0])

    def _text(self, batch: int, n: int, width: int) -> Array:
        return np.round(self.rng.normal(size=(batch, n, width)) * 8) / 8

    def works(
        self,
        memory: Array | None = None,
        masks: dict[str, tuple[AnyArray, str]] | None = None,
        causal: bool | None = None,
    ) -> Array | None:
        """The result if it has the right shape, else None."""
        call = self.call
        ran, _, _ = call.run(self.x, memory, None, masks, causal)
        if ran.error is not None or call.places is None:
            return None
        out = at(ran.value, call.places.out)
        if out is None or out.ndim != 3:
            return None
        out = out if call.batch_first else np.swapaxes(out, 0, 1)
        batch, n = self.x.shape[:2]
        if call.residual and out.shape == self.x.shape:
            out = out - self.x
        fits = out.shape in ((batch, n, call.width), (n, batch, call.width))
        return out if fits else None

    def reads_as_many(self) -> bool:
        """Whether a memory as long as x is taken, and read."""
        as_long = self._text(self.batch, self.n_q, self.weights.W_k.shape[0])
        with_it, without = self.works(as_long), self.works()
        if with_it is None or without is None:
            return with_it is not None
        return not np.array_equal(with_it, without, equal_nan=True)

    def causal_works(self) -> bool:
        """Whether the flag can be set, and nothing else is needed with it."""
        return self.works(None, None, True) is not None

    def find_used(self, role: str, forms: tuple[str, ...]) -> None:
        """The same; of several arguments (tgt_mask, memory_mask) one with influence."""
        call, first = self.call, self.call.roles[role]
        taken = set(call.roles.values())
        others = [
            p.name
            for p in call.signature.parameters
            if "mask" in p.name and ("pad" in p.name) == (role == "padding")
            if p.name not in taken and p.default is None and not p.required
        ]
        for name in (first, *others, *([first] if others else [])):
            call.roles[role] = name
            call.forms.pop(role, None)
            call.kinds.pop(role, None)
            self.find(role, forms)
            if self.moved or not others:
                return

    def find(self, role: str, forms: tuple[str, ...]) -> None:
        """Which forms of a mask work, first for a memory, then for x itself."""
        self.moved = False
        variations = [self.other, None] if self.crossing else [None]
        if self.call.memory_width is not None:
            variations = variations[:1]
        for memory in variations:
            if self._find(role, forms, memory):
                return
        if role == "mask" and self.weights.n_heads > 1:
            # It may fit only if there are as many items as heads, by accident.
            kept = self.x, self.batch
            self.batch = self.weights.n_heads
            self.x = self._text(self.batch, self.n_q, self.weights.d_model)
            self.batch_is_heads = self._find(role, ("bqk",), None)
            self.x, self.batch = kept

    def _find(self, role: str, forms: tuple[str, ...], memory: Array | None) -> bool:
        call = self.call
        own = role if role == "mask" or call.padding_by_itself else "mask"
        for kind in (call.kinds.get(own),) if own in call.kinds else KINDS:
            call.kinds[own] = str(kind)
            outs: dict[str, Array] = {}
            for form in forms:
                formed = self._formed(role, form, memory)
                out = self.works(memory, {own: (formed, form)})
                if out is not None:
                    outs[form] = out
            if outs:
                still = self.works(memory)
                self.moved = any(
                    still is None or not np.array_equal(out, still, equal_nan=True)
                    for out in outs.values()
                )
                call.forms[role] = self._agree(role, outs, memory)
                return True
        call.kinds.pop(own, None)
        return False

    def _allowed(self, role: str, n_k: int) -> AnyArray:
        if role == "mask":
            return np.tri(self.n_q, n_k, n_k - self.n_q, dtype=bool)
        lengths = n_k - 1 - np.arange(self.batch) % 2
        return np.asarray(np.arange(n_k) < lengths[:, None])

    def _formed(self, role: str, form: str, memory: Array | None) -> AnyArray:
        n_k = self.n_q if memory is None else self.n_k
        allowed = self._allowed(role, n_k)
        sizes = (self.batch, self.weights.n_heads, self.n_q, n_k)
        if role == "mask":
            return form_of(allowed, form, sizes)
        return padding_of(allowed, form)

    def _agree(
        self, role: str, outs: dict[str, Array], memory: Array | None
    ) -> tuple[str, ...]:
        """The forms that mean the same: those with the right result, or the most."""
        n_k = self.n_q if memory is None else self.n_k
        allowed = self._allowed(role, n_k)
        if role == "padding":
            allowed = allowed[:, None]
        right = attend(self.weights, self.x, memory, allowed)
        return forms_that_agree(outs, right)


def attend(
    weights: Weights, x: Array, memory: Array | None, mask: AnyArray | None
) -> Array | None:
    """What a right attention gives with these weights; None if sizes do not fit."""
    other = x if memory is None else memory
    w = weights
    if mask is not None and mask.ndim == 3:
        mask = mask[:, None]

    def product(tokens: Array, W: Array, b: Array | None) -> Array:
        return tokens @ W + (0.0 if b is None else b)

    try:
        q = split_heads(product(x, w.W_q, w.b_q), w.n_heads)
        k = split_heads(product(other, w.W_k, w.b_k), w.n_kv_heads)
        v = split_heads(product(other, w.W_v, w.b_v), w.n_kv_heads)
        k, v = repeat_heads(k, w.n_heads), repeat_heads(v, w.n_heads)
        mixed = merge_heads(scaled_dot_product(q, k, v, mask).out)
        return mixed if w.W_o is None else product(mixed, w.W_o, w.b_o)
    except ValueError:
        return None
