"""What the clinic examines, in one form: NumPy float64 in, NumPy float64 out.

`make_subject` turns any attention into a FunctionSubject (it takes q, k and v) or a
ModuleSubject (it takes tokens and has weights of its own), or into a Refusal: one
sentence that says what was wrong and what to do. A subject's call never raises; what
the attention did, errors included, stands in the Answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from attnlib.shapes import Array, Mask


@dataclass(frozen=True)
class Weights:
    """The weights of a module in the course's order: rows are inputs, x @ W.

    Head h owns the neighbouring columns h * d_k to (h + 1) * d_k.
    """

    W_q: Array  # (d_model, n_heads * d_k)
    W_k: Array  # (d_memory, n_kv_heads * d_k)
    W_v: Array  # (d_memory, n_kv_heads * d_v)
    W_o: Array | None  # (n_heads * d_v, d_model); None: the module has none
    b_q: Array | None  # (n_heads * d_k,)
    b_k: Array | None  # (n_kv_heads * d_k,)
    b_v: Array | None  # (n_kv_heads * d_v,)
    b_o: Array | None  # (d_model,)
    n_heads: int
    n_kv_heads: int
    d_model: int


@dataclass(frozen=True)
class Takes:
    """What an attention can be handed."""

    mask: bool  # (n_q, n_k), and one for each item
    padding: bool  # (batch, n_k): which keys are real
    causal: bool  # a flag that asks for a causal mask
    memory: bool  # other tokens than x to read from
    cache: bool
    values: bool  # v may differ from k
    dims: tuple[int, ...] = ()  # the ranks of arrays that a function takes: 4, 3, 2
    equal_d: bool = False  # a function needs d_v == d_k
    no_cross: bool = False  # n_q must be n_k
    grouped: bool = False  # k and v may have fewer heads than q
    mask_dims: tuple[int, ...] = ()  # the ranks of masks it takes: 2, 3, 4
    item_masks: bool = False  # each item of a batch may have a mask of its own
    d_k: int = 0  # the only width that it takes, if it says so
    no_self: bool = False  # a module must be given a memory
    batch_is_heads: bool = False  # its mask fits only if batch == n_heads


@dataclass(frozen=True)
class Answer:
    """How one call ended."""

    out: Array | None = None  # float64; of the right shape, or as it came
    weights: Array | None = None  # what it returned besides, if it looks like weights
    error: BaseException | None = None
    sentence: str = ""  # why the result could not be read, or ""
    printed: int = 0  # characters
    seconds: float = 0.0
    timed_out: bool = False
    changed: tuple[str, ...] = ()  # which arguments differ afterwards: "q", "mask", ...
    dtype: str = ""  # of the result, as it was returned


@dataclass(frozen=True)
class Refusal:
    """What was handed in cannot be examined: what was wrong, and what to do."""

    sentence: str


@dataclass(frozen=True)
class FunctionSubject:
    """An attention that takes q, k and v."""

    name: str
    takes: Takes
    tensors: bool  # it is handed torch tensors
    ask: Callable[..., Answer]
    notes: tuple[str, ...] = ()  # sentences: what could not be handed in, and why

    def call(
        self,
        q: Array,
        k: Array,
        v: Array,
        mask: Mask | None = None,
        *,
        causal: bool | None = None,
        dtype: str | None = None,
    ) -> Answer:
        """Hand in q (..., n_q, d_k), k, v and a boolean mask, True = may look."""
        return self.ask(q, k, v, mask, causal=causal, dtype=dtype)


@dataclass(frozen=True)
class ModuleSubject:
    """An attention that takes tokens and has weights of its own.

    It is the examiner's own copy: `set` changes the copy, never the module handed in.
    """

    name: str
    takes: Takes
    ask: Callable[..., Answer]
    read: Callable[[], Weights]
    write: Callable[[Weights], None]
    notes: tuple[str, ...] = ()  # sentences: what was guessed, or could not be done

    @property
    def weights(self) -> Weights:
        """The weights that the copy has now."""
        return self.read()

    def set(self, weights: Weights) -> None:
        """Put other weights into the copy."""
        self.write(weights)

    def call(
        self,
        x: Array,
        memory: Array | None = None,
        *,
        values: Array | None = None,
        mask: Mask | None = None,
        padding: Mask | None = None,
        causal: bool | None = None,
        train: bool = False,
    ) -> Answer:
        """Hand in tokens (batch, n, d_model) and what else the module takes.

        The mask is boolean, (n_q, n_k) or (batch, n_q, n_k), True = may look; padding
        is (batch, n_k), True = a real token. `values` are what the values are made of,
        if that is not the memory.
        """
        return self.ask(
            x,
            memory,
            values=values,
            mask=mask,
            padding=padding,
            causal=causal,
            train=train,
        )


def make_subject(
    attention: object,
    *,
    n_heads: int | None = None,
    n_kv_heads: int | None = None,
    mask: str = "may look",
    dtype: str | None = None,
    seed: int = 0,
    seconds: float = 20.0,
) -> FunctionSubject | ModuleSubject | Refusal:
    """Turn an attention into a subject, or say why it cannot be examined."""
    from attnlib.clinic.make_subject import make

    return make(attention, n_heads, n_kv_heads, mask, dtype, seed, seconds)
