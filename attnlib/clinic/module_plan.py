"""What a module is called with: which argument is what, how many heads, what width."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from attnlib.clinic.signature import Parameter, Signature, plain, read_signature
from attnlib.clinic.tensors import torch

HEADS = (
    "n_heads num_heads heads n_head nhead nheads h num_attention_heads "
    "num_head attention_heads num_attn_heads n_attention_heads nb_heads head_num "
    "head_count number_of_heads head num_q_heads n_q_heads num_query_heads "
    "encoder_attention_heads n_local_heads self_attention_heads"
)
KV_HEADS = (
    "n_kv_heads num_kv_heads num_key_value_heads kv_heads n_kv_head num_kv_groups "
    "n_kv num_groups n_groups kv_head n_key_value_heads num_query_groups nb_kv_heads "
    "multi_query_group_num n_local_kv_heads"
)
# Names that may stand for something else, such as a height.
VAGUE = (
    *("h", "head", "n_local_heads", "n_local_kv_heads"),
    *("num_groups", "n_groups", "num_kv_groups"),  # also: query heads for one of keys
)
WIDTHS = (
    "d_model embed_dim hidden_size n_embd dim d_in embed_size emb_dim hidden_dim "
    "num_hiddens d_embed embedding_dim in_features model_dim query_dim n_state "
    "embedding_size emb_size in_dim input_dim dim_in size width features d"
)
HEAD_WIDTHS = (
    "d_k head_dim d_head head_size dim_head attention_head_size dim_k size_per_head "
    "d_kv key_dim depth"
)
CONFIGS = ("config", "args", "cfg", "params", "hparams", "conf", "opt")
# Arguments without a default that have a value which changes nothing.
NEUTRAL: dict[str, object] = {
    "dropout": None,
    "training": False,
    "cache": None,
    "bias": None,
    "padding": None,
    "lengths": None,
    "start": 0,
    "causal": False,
}


def attribute(module: Any, names: str) -> int | None:
    """A whole number that a module, its parts or its config have under such a name."""
    for part in module.modules():
        holders = [part, *(getattr(part, name, None) for name in CONFIGS)]
        for holder in holders:
            for name in names.split():
                value = _number(holder, name)
                if value is not None:
                    return value
    return None


def contradiction(module: Any, names: str, told: int | None) -> str:
    """What a module says of a number that is told otherwise; "" if it agrees.

    >>> import torch
    >>> contradiction(torch.nn.MultiheadAttention(8, 2), HEADS, 4)
    'num_heads=2'
    """
    said = {
        name: value
        for name in names.split()
        if name not in VAGUE and (value := attribute(module, name)) is not None
    }
    if told is None or told in said.values():
        return ""
    return next((f"{name}={value}" for name, value in said.items()), "")


def _number(holder: Any, name: str) -> int | None:
    try:
        value = holder[name] if isinstance(holder, dict) else getattr(holder, name)
    except Exception:  # not there, or an object that raises whatever it is asked
        return None
    whole = isinstance(value, int) and not isinstance(value, bool) and value > 0
    return value if whole else None


def head_count(module: Any, d_model: int) -> int | None:
    """How many heads it says it has."""
    found = attribute(module, HEADS)
    if found is None:
        width = attribute(module, HEAD_WIDTHS)
        if width and d_model % width == 0 and width < d_model:
            return d_model // width
    return found


def widths(module: Any) -> Iterator[int]:
    """What a token's width may be, the likeliest first."""
    seen: set[int] = set()
    candidates: list[int] = []
    for part in module.modules():
        if isinstance(part, torch.nn.Linear):
            candidates.append(int(part.in_features) or int(part.out_features))
    for name in WIDTHS.split():
        value = attribute(module, name)
        if value is not None:
            candidates.append(value)
    for parameter in module.parameters():
        if torch.nn.parameter.is_lazy(parameter):
            continue
        candidates += sorted((int(n) for n in parameter.shape), reverse=False)
    named = attribute(module, WIDTHS)
    if named is not None:
        candidates.insert(0, named)
    for width in candidates:
        if width > 0 and width not in seen:
            seen.add(width)
            yield width


def read_plan(module: Any) -> tuple[Signature, dict[str, str], str]:
    """Which argument of forward is what; and what is wrong with it, or ""."""
    signature = _signature(module)
    places = list(signature.places)
    roles: dict[str, str] = {}
    for role in ("q", "k", "v", "memory", "mask", "padding", "lengths", "causal"):
        p = signature.of(role)
        if p is not None:
            roles[role] = p.name
    cache = signature.of("cache")
    if cache is not None:
        roles["cache"] = cache.name
    first = next((p for p in places if p.role in ("x", "q", "")), None)
    if {"q", "k"} <= set(roles):
        return signature, roles, ""
    if len([r for r in ("q", "k", "v") if r in roles]) == 1 and signature.of("x"):
        first = signature.of("x")
    if first is None:
        first = places[0] if places else None
    if first is None:
        by_name = [p for p in signature.parameters if p.role in ("x", "q")]
        first = by_name[0] if by_name else None
    if first is None and signature.takes_more:
        first = Parameter("x", "x", True, False, 0)
        signature = replace(signature, parameters=(first, *signature.parameters))
    if first is None:
        return signature, roles, "its forward takes no tokens"
    for role in ("q", "k", "v"):
        if roles.get(role) not in (None, first.name) and "memory" not in roles:
            roles["memory"] = roles[role]
        roles.pop(role, None)
    roles = {role: name for role, name in roles.items() if name != first.name}
    roles["x"] = first.name
    if "memory" not in roles:
        other = next(
            (p for p in places[1:] if p.required and p.role in ("", "x")),
            None,
        )
        if other is not None:
            roles["memory"] = other.name
    return signature, roles, ""


def _signature(module: Any) -> Signature:
    """Of forward; of the only part's, where forward hands everything on to that."""
    signature = read_signature(module.forward)
    inside = list(module.children())
    hands_on = signature.takes_more and signature.takes_any_name
    alone = len(inside) == 1 and not list(module.parameters(recurse=False))
    return _signature(inside[0]) if hands_on and alone else signature


def fill_in(
    signature: Signature, roles: dict[str, str], module: Any
) -> tuple[dict[str, object], Callable[[int], dict[str, object]] | None, str]:
    """Values for what else must be given: fixed ones, ones that depend on n."""
    fixed: dict[str, object] = {}
    by_length: dict[str, str] = {}
    taken = set(roles.values()) - {roles.get("cache")}
    for p in signature.parameters:
        if p.role == "need_weights" and _is_mha(module):
            fixed[p.name] = False
        if not p.required or p.name in taken:
            continue
        if p.role in NEUTRAL:
            fixed[p.name] = NEUTRAL[p.role]
        elif p.role in ("positions", "angles", "freqs"):
            by_length[p.name] = p.role
        elif p.role == "mask" or "mask" in plain(p.name):
            fixed[p.name] = None
        elif p.role == "need_weights":
            fixed[p.name] = False
        else:
            return fixed, None, p.name
    if not by_length:
        return fixed, None, ""
    width = attribute(module, HEAD_WIDTHS)
    if width is None:
        heads, whole = attribute(module, HEADS), attribute(module, WIDTHS)
        width = whole // heads if heads and whole else 8

    def fill(n: int) -> dict[str, object]:
        return {name: _neutral(role, n, width) for name, role in by_length.items()}

    return fixed, fill, ""


def _neutral(role: str, n: int, width: int) -> object:
    """Positions 0, 1, 2, ...; angles of zero, which turn nothing."""
    if role == "positions":
        return torch.arange(n)
    if role == "freqs":
        return torch.ones(n, width // 2, dtype=torch.complex128)
    ones = torch.ones(1, n, width, dtype=torch.float64)
    return ones, torch.zeros_like(ones)


def _is_mha(module: Any) -> bool:
    return isinstance(module, torch.nn.MultiheadAttention)


def attentions_in(module: Any) -> list[str]:
    """The names of parts that look like attentions, the outermost only."""
    found: list[str] = []
    for path, part in module.named_modules():
        last = path.rpartition(".")[2]
        kind = type(part).__name__.lower()
        named = "atten" in kind or "attn" in kind or "attn" in last.lower()
        inside = any(path.startswith(outer + ".") for outer in found)
        if path and named and not inside and next(part.parameters(), None) is not None:
            found.append(path)
    return found
