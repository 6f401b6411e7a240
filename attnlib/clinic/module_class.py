"""Make an object of a module's class with plain sizes, if its arguments are known."""

from __future__ import annotations

import inspect
from typing import Any

from attnlib.clinic.budget import Budget
from attnlib.clinic.module_plan import HEAD_WIDTHS, HEADS, KV_HEADS, WIDTHS
from attnlib.clinic.run import run
from attnlib.clinic.signature import plain
from attnlib.clinic.subject import Refusal
from attnlib.clinic.words_refused import raised

D_MODEL, N_HEADS = 32, 4
WIDE = f"{WIDTHS} d_out out_dim output_dim dim_out hidden d_hidden emb embed_size"
LONG = (
    "context_length max_len block_size max_seq_len seq_len max_length n_positions "
    "max_position_embeddings context_size"
)


def instance(
    cls: type, n_heads: int | None, n_kv_heads: int | None, budget: Budget
) -> Any | Refusal:
    """An object of `cls`, or a sentence that asks for one."""
    name = cls.__name__
    heads = n_heads or N_HEADS
    sizes: dict[str, object] = {}
    sizes |= dict.fromkeys(WIDE.split(), 8 * heads)
    sizes |= dict.fromkeys(HEADS.split(), heads)
    sizes |= dict.fromkeys(KV_HEADS.split(), n_kv_heads or heads)
    sizes |= dict.fromkeys(HEAD_WIDTHS.split(), 8) | {"d_v": 8}
    sizes |= dict.fromkeys(LONG.split(), 64)
    sizes |= {"dropout": 0.0, "bias": True, "qkv_bias": True, "p": 0.0}
    given: dict[str, object] = {}
    asks = f"Hand in an object of it, such as {name}(d_model=32, n_heads=4)."
    try:
        parameters = inspect.signature(cls).parameters.values()
    except (ValueError, TypeError):
        return Refusal(f"{name} is a class. {asks}")
    for p in parameters:
        needed = p.default is p.empty and p.kind not in (
            p.VAR_POSITIONAL,
            p.VAR_KEYWORD,
        )
        count = plain(p.name) in HEADS.split() + KV_HEADS.split() and n_heads
        if not needed and not count:
            continue
        if plain(p.name) not in sizes:
            return Refusal(
                f"{name} is a class, and what its {p.name} should be is not known. "
                f"Hand in an object of it, such as {name}({p.name}=...)."
            )
        given[p.name] = sizes[plain(p.name)]
    ran = run(lambda: cls(**given), (), max(budget.for_one, 3.0))
    if ran.error is not None:
        said = ", ".join(f"{key}={value}" for key, value in given.items())
        return Refusal(
            f"{name} is a class, and {name}({said}) raised {raised(ran.error)}. {asks}"
        )
    return ran.value
