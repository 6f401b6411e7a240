"""A module's attention, from tokens to output, with every mistake built in."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from attnlib.clinic.black_box.core import attend
from attnlib.clinic.black_box.looks import PADDING, Truth
from attnlib.clinic.black_box.scores import Unforeseen
from attnlib.clinic.black_box.stages import Stages
from attnlib.clinic.black_box.traits import NOTHING, PLAIN, Found, Traits
from attnlib.clinic.case import RIGHT, Faults
from attnlib.clinic.families.splits import merge_heads, split_heads
from attnlib.clinic.subject import Weights
from attnlib.shapes import Array

Heads = tuple[Array, Array, Array]  # queries, keys and values


@dataclass(frozen=True, eq=False)
class Asked:
    """One call of a module: tokens, and what else it takes."""

    name: str
    x: Array  # (batch, n_q, d_model)
    weights: Weights
    memory: Array | None = None  # (batch, n_k, d_memory)
    mask: Truth | None = None  # (n_q, n_k) or (batch, n_q, n_k)
    padding: Truth | None = None  # (batch, n_k)
    causal: bool = False
    optional: bool = False
    item: bool = False  # what is empty is item 1: never so where padding says it
    pads: bool = False  # the module has an argument for padding, given here or not
    xray: bool = False  # W_v and W_o are such that out is the weights
    said: Array | None = None  # (batch, n_k, d_value), for values, if not memory

    @property
    def look(self) -> Truth | None:
        """Mask and padding in one, (batch or 1, 1, n_q or 1, n_k)."""
        look = None
        if self.mask is not None:
            look = self.mask[None, None] if self.mask.ndim == 2 else self.mask[:, None]
        if self.padding is not None:
            real = self.padding[:, None, None, :]
            look = real if look is None else look & real
        return look

    def sizes(self) -> str:
        """Its sizes by name, as a sentence holds them."""
        w = self.weights
        n_k = (self.x if self.memory is None else self.memory).shape[-2]
        return (
            f"batch={len(self.x)}, n_q={self.x.shape[-2]}, n_k={n_k}, "
            f"d_model={w.d_model}, n_heads={w.n_heads}"
        )


def project(
    asked: Asked,
    traits: Traits = PLAIN,
    faults: Faults = RIGHT,
    found: Found = NOTHING,
    known: dict[Faults, Heads] | None = None,
    stages: Stages | None = None,
) -> Array:
    """The output of a variant, (batch, n_q, d_model).

    `known` holds the heads of this question, by the faults that they depend on, and
    `stages` what comes of them in attention of this kind.
    """
    if "batch_as_sequence" in faults and (asked.look is not None or asked.causal):
        raise Unforeseen
    if asked.pads and asked.padding is None:
        faults = faults - PADDING  # they are about padding that is given
    if asked.pads:
        faults = faults | {"pads"}
    w = without(asked.weights, faults)
    x, memory = asked.x, asked.memory
    if "batch_as_sequence" in faults:
        x = np.swapaxes(x, 0, 1)
        memory = None if memory is None else np.swapaxes(memory, 0, 1)
    if "batch_as_sequence" in faults and asked.said is not None:
        raise Unforeseen
    known, shaping = {} if known is None else known, faults & SHAPING
    if shaping not in known:
        known[shaping] = heads_of(x, memory, w, faults, asked.said)
    q, k, v = known[shaping]
    mask, padding = asked.mask, asked.padding
    if mask is not None:
        mask = mask[None, None] if mask.ndim == 2 else mask[:, None]
    if padding is not None:
        padding = padding[:, None, None, :]
    _, mixed = attend(
        q,
        k,
        v,
        mask,
        asked.causal,
        padding=padding,
        traits=traits,
        faults=faults,
        found=found,
        stages=stages,
    )
    mixed_faults = (
        faults | {"merge_interleaved"} if "heads_interleaved" in faults else faults
    )
    merged = merge_heads(mixed, faults=mixed_faults & MERGES)
    if w.W_o is None or "W_o_missing" in faults:
        out = merged
    else:
        out = merged @ (w.W_o.T if "W_o_transposed" in faults else w.W_o)
        out = out if w.b_o is None else out + w.b_o
    if "residual_added" in faults:
        out = out + x
    if "nan_zeroed" in faults:  # in a row that is empty, the bias of W_o as well
        out = np.nan_to_num(out)
    return np.asarray(np.swapaxes(out, 0, 1) if "batch_as_sequence" in faults else out)


MERGES = frozenset({"merge_no_transpose", "merge_interleaved", "merge_mean_repeated"})
SPLITS = frozenset({"split_no_transpose", "split_interleaved"})
VIEW = frozenset({"split_no_transpose"})
WEIGHING = frozenset(  # what `without` looks for
    {
        *("biases_missing", "bias_q_missing", "bias_v_missing", "bias_o_missing"),
        "bias_q_and_v_missing",
        *("weights_W_transposed", "W_q_transposed", "W_k_transposed", "W_v_transposed"),
        *("tables_q_k_swapped", "tables_k_v_swapped", "tables_q_v_swapped"),
        *("values_by_key_table", "keys_by_query_table"),
        *("values_by_key_table_own_bias", "keys_by_query_table_own_bias"),
    }
)
SHAPING = WEIGHING.union(  # all that decides what queries, keys and values are
    {
        "batch_as_sequence",
        *("self_attention", "memory_asks", "keys_from_x", "values_from_x"),
        *("keys_from_values", "values_from_keys", "queries_not_projected"),
        *("keys_not_projected", "values_not_projected", "one_head"),
        *("heads_interleaved", "split_no_transpose", "split_interleaved"),
        *("split_of_q_alone", "split_of_k_alone", "split_of_v_alone"),
        *("split_of_q_and_k_alone", "split_of_fused"),
    }
)
ALONE = {  # what is split without a transpose, where not all are
    "split_of_q_alone": "q",
    "split_of_k_alone": "k",
    "split_of_v_alone": "v",
    "split_of_q_and_k_alone": "qk",
}


def without(w: Weights, faults: Faults) -> Weights:
    """Weights as a fault uses them: without a bias, transposed, exchanged."""
    if WEIGHING.isdisjoint(faults):
        return w
    if "biases_missing" in faults:
        return replace(w, b_q=None, b_k=None, b_v=None, b_o=None)
    if "bias_q_and_v_missing" in faults:  # that of the keys shows nowhere
        return replace(w, b_q=None, b_k=None, b_v=None)
    for name in ("q", "v", "o"):
        if f"bias_{name}_missing" in faults:
            w = replace(w, **{f"b_{name}": None})  # type: ignore[arg-type]
    if "weights_W_transposed" in faults:
        return replace(w, W_q=w.W_q.T, W_k=w.W_k.T, W_v=w.W_v.T)
    for name in ("q", "k", "v"):
        if f"W_{name}_transposed" in faults:
            w = replace(w, **{f"W_{name}": getattr(w, f"W_{name}").T})
    if "tables_q_k_swapped" in faults:
        w = replace(w, W_q=w.W_k, W_k=w.W_q, b_q=w.b_k, b_k=w.b_q)
    elif "tables_k_v_swapped" in faults:
        w = replace(w, W_k=w.W_v, W_v=w.W_k, b_k=w.b_v, b_v=w.b_k)
    elif "tables_q_v_swapped" in faults:
        w = replace(w, W_q=w.W_v, W_v=w.W_q, b_q=w.b_v, b_v=w.b_q)
    elif "values_by_key_table_own_bias" in faults:
        w = replace(w, W_v=w.W_k)
    elif "keys_by_query_table_own_bias" in faults:
        w = replace(w, W_k=w.W_q)
    elif "values_by_key_table" in faults:
        w = replace(w, W_v=w.W_k, b_v=w.b_k)
    elif "keys_by_query_table" in faults:
        w = replace(w, W_k=w.W_q, b_k=w.b_q)
    return w


def heads_of(
    x: Array,
    memory: Array | None,
    w: Weights,
    faults: Faults,
    values: Array | None = None,
) -> tuple[Array, Array, Array]:
    """Queries, keys and values, split into heads."""
    asks, keys = x, x if memory is None else memory
    said = keys
    if memory is not None:
        if "self_attention" in faults:
            keys = said = x
        elif "memory_asks" in faults:
            asks, keys, said = memory, x, x
        elif "keys_from_x" in faults:
            keys = x
        elif "values_from_x" in faults:
            said = x
        elif "keys_from_values" in faults and values is not None:
            keys = values
        if values is not None and said is memory and "values_from_keys" not in faults:
            said = values
    if said.shape[-1] != w.W_v.shape[0]:  # keys and values of other widths
        width = w.W_v.shape[0]
        said = np.tile(said, -(-width // said.shape[-1]))[..., :width]
    q = asks if "queries_not_projected" in faults else line(asks, w.W_q, w.b_q)
    k = keys if "keys_not_projected" in faults else line(keys, w.W_k, w.b_k)
    v = said if "values_not_projected" in faults else line(said, w.W_v, w.b_v)
    n_heads, n_kv = w.n_heads, w.n_kv_heads
    if "one_head" in faults:
        n_heads = n_kv = 1
    how = faults | {"split_interleaved"} if "heads_interleaved" in faults else faults
    how = how & SPLITS
    if "split_of_fused" in faults:
        fused = np.concatenate([q, k, v], axis=-1)  # raises unless all fit together
        whole = fused.reshape(3, len(q), n_heads, q.shape[1], -1)
        return whole[0], whole[1], whole[2]
    alone = ALONE.get(next(iter(faults & ALONE.keys()), ""), "")
    return (
        split_heads(q, n_heads, faults=how | (VIEW if "q" in alone else RIGHT)),
        split_heads(k, n_kv, faults=how | (VIEW if "k" in alone else RIGHT)),
        split_heads(v, n_kv, faults=how | (VIEW if "v" in alone else RIGHT)),
    )


def line(x: Array, W: Array, b: Array | None) -> Array:
    """x W + b."""
    return np.asarray(x @ W if b is None else x @ W + b)
