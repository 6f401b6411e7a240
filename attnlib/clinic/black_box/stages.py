"""What many variants have in common on one question, so that it is computed once.

Most pairs of mistakes are one in the scores and one after them. What a variant's scores
are depends on the first alone, and its weights on all but what is done with them later.
So both are kept, by the faults on which they depend; those of a single fault, which
come back with every second one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from attnlib.clinic.black_box.scores import Float
from attnlib.clinic.black_box.slots import (
    BOTH,
    CAUSAL,
    HARMLESS,
    MASK,
    ONLINE,
    WEIGHTS,
    WINDOW,
    Slots,
)
from attnlib.clinic.case import Faults

Value = TypeVar("Value")


def _all(*slots: Slots) -> Faults:
    return frozenset(key for each in slots for keys in each.values() for key in keys)


OF_OUTPUT = frozenset(WEIGHTS["mix"]).union(  # what is done with the weights
    {
        *("scale_after", "residual_added", "nan_zeroed"),
        *("merge_no_transpose", "merge_interleaved", "merge_mean_repeated"),
        *("W_o_missing", "W_o_transposed", "bias_o_missing"),
    }
)
OF_WEIGHTS = HARMLESS.union(  # what is done with the scores
    _all(WEIGHTS, MASK, CAUSAL, BOTH, WINDOW, ONLINE), {"causal_unasked", "pads"}
)
OF_VALUES = frozenset(  # what makes the values others, and nothing else
    {
        *("values_from_x", "values_from_keys", "values_not_projected"),
        *("values_by_key_table", "values_by_key_table_own_bias", "W_v_transposed"),
        *("bias_v_missing", "split_of_v_alone", "value_heads_tiled", "rope_on_v"),
    }
)
BY_VALUES = frozenset({"score_q_v", "score_k_v", "scale_d_v"})  # scores read the values
UNCOUNTED = HARMLESS | {"pads"}


@dataclass
class Stages:
    """The scores and the weights of variants of one kind, on one question."""

    scores: dict[Faults, tuple[Float, Float, Float]] = field(default_factory=dict)
    weights: dict[Faults, tuple[Float, Float, Float | None]] = field(
        default_factory=dict
    )

    @staticmethod
    def before(faults: Faults) -> tuple[Faults, Faults]:
        """The faults on which the scores, and the weights, of a variant depend."""
        if BY_VALUES.isdisjoint(faults):
            faults = faults - OF_VALUES
        until = faults - OF_OUTPUT
        return until - OF_WEIGHTS, until

    @staticmethod
    def kept(
        known: dict[Faults, Value], faults: Faults, compute: Callable[[], Value]
    ) -> Value:
        """What is known of these faults, or else is computed."""
        if faults in known:
            return known[faults]
        found = compute()
        if len(faults - UNCOUNTED) < 2:
            known[faults] = found
        return found
