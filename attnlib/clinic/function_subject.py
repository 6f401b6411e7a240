"""Turn any function of q, k and v into a subject, by trial calls.

All sizes of a trial differ, so that nothing fits by accident. What does not work that
way is tried with d_v == d_k, then with n_q == n_k, then with both.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from attnlib.attention import scaled_dot_product
from attnlib.clinic.budget import Budget
from attnlib.clinic.function_call import FORMS, FunctionCall
from attnlib.clinic.function_roles import fill_in, find_roles
from attnlib.clinic.guess import wants_tensors
from attnlib.clinic.handing import (
    KINDS,
    at,
    find_places,
    forms_that_agree,
    says_what,
    torch_is_there,
)
from attnlib.clinic.run import Ran
from attnlib.clinic.signature import read_signature
from attnlib.clinic.subject import FunctionSubject, Refusal, Takes
from attnlib.clinic.words_refused import HAND_IN, listed, raised
from attnlib.shapes import Array

BATCH, HEADS, N_Q, N_K, D_K, D_V = 2, 3, 4, 5, 6, 7


@dataclass(frozen=True)
class Sizes:
    """The sizes of a trial."""

    n_q: int = N_Q
    n_k: int = N_K
    d_k: int = D_K
    d_v: int = D_V
    batch: int = BATCH

    def arrays(self, rank: int, kv_heads: int = HEADS, heads: int = HEADS) -> Trial:
        """q, k and v of one rank, drawn from a generator of their own."""
        rng = np.random.default_rng(20)
        front = {4: (self.batch, heads), 3: (self.batch,), 2: ()}[rank]
        back = {4: (self.batch, kv_heads), 3: (self.batch,), 2: ()}[rank]
        shapes = (front, self.n_q, self.d_k), (back, self.n_k, self.d_k)
        shapes = (*shapes, (back, self.n_k, self.d_v))  # type: ignore[assignment]
        drawn = [np.round(rng.normal(size=(*a, b, c)) * 8) / 8 for a, b, c in shapes]
        return Trial(drawn[0], drawn[1], drawn[2])


@dataclass(frozen=True)
class Trial:
    q: Array
    k: Array
    v: Array

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {"q": self.q.shape, "k": self.k.shape, "v": self.v.shape}


def function_subject(
    function: Callable[..., object],
    name: str,
    *,
    mask: str,
    dtype: str | None,
    budget: Budget,
    d_k: int | None = None,
) -> FunctionSubject | Refusal:
    """Find out by trial what a function takes."""
    signature = read_signature(function)
    found = find_roles(signature, name, mask)
    if isinstance(found, Refusal):
        return found
    signature, roles = found
    call = FunctionCall(function, signature, roles, mask, budget)
    call.dtype = dtype or "float64"
    sentence = fill_in(call, name)
    if sentence:
        return Refusal(sentence)
    works = _what_works(call, name, d_k)
    if isinstance(works, Refusal):
        return works
    sizes, dims = works
    notes: list[str] = []
    if "mask" in roles:
        sizes = _mask_forms(call, sizes, dims, notes)
        dims = tuple(rank for rank in dims if rank in call.forms) or dims
    forms = {form for forms in call.forms.values() for form in forms}
    takes = Takes(
        mask=bool(forms - {"bk"}),
        padding="bk" in forms,
        causal="causal" in roles,
        memory=sizes.n_q != sizes.n_k,
        cache=False,
        values=True,
        dims=dims,
        equal_d=sizes.d_k == sizes.d_v,
        no_cross=sizes.n_q == sizes.n_k,
        grouped=4 in dims and _grouped(call, sizes),
        mask_dims=tuple(sorted({len(f) for f in forms - {"bk"}})),
        item_masks=bool(forms & {"bqk", "b1qk", "bhqk"}),
        d_k=d_k or 0,
        batch_is_heads=sizes.batch == HEADS,
    )
    return FunctionSubject(name, takes, call.tensors, call.ask, tuple(notes))


def _what_works(
    call: FunctionCall, name: str, d_k: int | None
) -> tuple[Sizes, tuple[int, ...]] | Refusal:
    """The least restricted sizes that work, and for which ranks they do."""
    width = d_k or D_K
    other = D_V if width != D_V else D_V + 1
    variations = (
        Sizes(d_k=width, d_v=other),
        Sizes(d_k=width, d_v=width),
        Sizes(n_k=N_Q, d_k=width, d_v=other),
        Sizes(n_k=N_Q, d_k=width, d_v=width),
    )
    first = wants_tensors(call.function)
    # Who speaks of torch nowhere, and has not loaded it, wants no tensors.
    kinds = [False, True] if "torch" in sys.modules else [False]
    if first:
        kinds = [True, False] if torch_is_there() else [False]
    dtypes = [call.dtype] if call.dtype != "float64" else ["float64", "float32"]
    said: Refusal | None = None
    for dtype in dtypes:
        for sizes in variations:
            for call.tensors in kinds:
                call.dtype = dtype
                dims = []
                for rank in (4, 3, 2):
                    trial = sizes.arrays(rank)
                    ran, works = _try(call, trial, sizes)
                    if ran.timed_out or call.budget.left == 0:
                        return Refusal(_slow(name, trial))
                    if works:
                        dims.append(rank)
                    elif call.tensors == kinds[0] and rank > 2:
                        # The most restricted trial says best what is wrong.
                        said = Refusal(_did_not(name, ran, trial, call.tensors))
                if dims:
                    finite = _finite(call, sizes, dims[0])
                    return (sizes, tuple(dims)) if finite else Refusal(_nan(name))
    return said or Refusal(_nan(name))


def _try(call: FunctionCall, trial: Trial, sizes: Sizes) -> tuple[Ran, bool]:
    shape = (*trial.q.shape[:-1], trial.v.shape[-1])
    tail = (sizes.n_q, sizes.n_k)
    ran, _, _ = call.run(trial.q, trial.k, trial.v)
    must = "mask" in call.roles and call._must("mask")
    if ran.error is not None and must and not ran.timed_out:
        known = call.needs_mask
        for call.needs_mask in FORMS[trial.q.ndim]:
            again, _, _ = call.run(trial.q, trial.k, trial.v)
            if again.error is None and find_places(again.value, shape, tail):
                ran = again
                break
        else:
            call.needs_mask = known
    if ran.error is not None:
        return ran, False
    places = find_places(ran.value, shape, tail)
    if places is None:
        return ran, False
    call.places = call.places or places
    return ran, True


def _finite(call: FunctionCall, sizes: Sizes, rank: int) -> bool:
    trial = sizes.arrays(rank)
    out = call.ask(trial.q, trial.k, trial.v).out
    return out is None or bool(np.isfinite(out).any())


def _mask_forms(
    call: FunctionCall, sizes: Sizes, dims: tuple[int, ...], notes: list[str]
) -> Sizes:
    """Which forms of a mask the function takes, and the sizes with which it does.

    A mask that fits only by accident, because two sizes are equal, is tried last: it
    is wrong, and the examination is to see in which way.
    """
    errors: list[BaseException] = []
    square = replace(sizes, n_k=sizes.n_q)
    for trial_sizes in (sizes, square, replace(sizes, batch=HEADS)):
        for kind in KINDS:
            call.kind = kind
            for rank in dims:
                trial = trial_sizes.arrays(rank)
                found = _forms_taken(call, trial_sizes, trial, errors)
                if found:
                    call.forms[rank] = found
            if call.forms:
                if trial_sizes.batch != HEADS and 4 in call.forms:
                    _find_luck(call, trial_sizes)
                return trial_sizes
    call.kind = "bool"
    if call.dtype == "float16" and any("overflow" in str(e) for e in errors):
        call.dtype = "float64"  # its own fill value is too large for half
        return _mask_forms(call, sizes, dims, notes)
    why = f": it raised {raised(errors[0])}" if errors else ""
    notes.append(f"It took no mask of any form{why}.")
    return sizes


def _find_luck(call: FunctionCall, sizes: Sizes) -> None:
    """Whether masks (batch, 1, n_q, n_k) fit only where batch == n_heads.

    A function that takes (batch, n_heads, n_q, n_k) knows what the four axes are.
    """
    if "bhqk" not in call.forms[4] or "b1qk" in call.forms[4]:
        return
    works = []
    for one in (sizes, replace(sizes, batch=HEADS)):
        trial, look = one.arrays(4), np.ones((one.n_q, one.n_k), bool)
        formed = call.form(look, trial.q, "b1qk")
        ran, _, _ = call.run(trial.q, trial.k, trial.v, formed)
        works.append(ran.error is None)
    if works == [False, True]:
        call.by_luck = "b1qk"


def _forms_taken(
    call: FunctionCall, sizes: Sizes, trial: Trial, errors: list[BaseException]
) -> tuple[str, ...]:
    """The forms of a mask that work with one rank of q."""

    outs: dict[str, Array] = {}

    def works(form: str) -> bool:
        allowed = np.tri(sizes.n_q, sizes.n_k, sizes.n_k - sizes.n_q, dtype=bool)
        if form == "bk":
            allowed = allowed[:1]  # the same keys for all queries
        formed = call.form(allowed, trial.q, form)
        ran, _, _ = call.run(trial.q, trial.k, trial.v, formed)
        if ran.error is not None:
            errors.append(ran.error)
            return False
        shape = (*trial.q.shape[:-1], trial.v.shape[-1])
        places = find_places(ran.value, shape, (sizes.n_q, sizes.n_k))
        out = None if places is None else at(ran.value, places.out)
        if out is not None:
            outs[form] = out
        return out is not None

    forms = FORMS[trial.q.ndim]
    if _is_padding(call) and "bk" in forms and works("bk"):
        return ("bk",)
    known = tuple(form for form in forms if form != "bk" and works(form))
    if len(known) > 1:
        allowed = np.tri(sizes.n_q, sizes.n_k, sizes.n_k - sizes.n_q, dtype=bool)
        right = None
        if trial.q.shape[:-2] == trial.k.shape[:-2]:
            right = scaled_dot_product(trial.q, trial.k, trial.v, allowed).out
        known = forms_that_agree(outs, right)
    # The keys of each item alone, only where no other mask is taken.
    return known or (("bk",) if "bk" in forms and works("bk") else ())


def _is_padding(call: FunctionCall) -> bool:
    name = call.roles["mask"]
    return any(
        p.name == name and p.role == "padding" for p in call.signature.parameters
    )


def _grouped(call: FunctionCall, sizes: Sizes) -> bool:
    trial = sizes.arrays(4, kv_heads=2, heads=4)
    return _try(call, trial, sizes)[1]


def _did_not(name: str, ran: Ran, trial: Trial, tensors: bool) -> str:
    kind = "tensors" if tensors else "arrays"
    given = f"when it was given {kind} {listed(trial.shapes)}"
    if ran.error is not None:
        return f"{name} raised {raised(ran.error)}, {given}. {HAND_IN}"
    shape = (*trial.q.shape[:-1], trial.v.shape[-1])
    return f"{name} {says_what(ran.value)} and not {shape}, {given}. {HAND_IN}"


def _slow(name: str, trial: Trial) -> str:
    return (
        f"{name} did not come to an end in time, with {listed(trial.shapes)}. Hand in "
        "one that does: a loop without an end, or one that waits, cannot be examined."
    )


def _nan(name: str) -> str:
    return (
        f"{name} returned NaN everywhere for plain numbers and no mask, so that there "
        "is nothing to examine. Look for 0/0, inf - inf or a root of a negative number."
    )
