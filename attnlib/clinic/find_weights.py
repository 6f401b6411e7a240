"""Find W_q, W_k, W_v and W_o in a module: by their names, then by what they do.

Matrices are gathered first: of nn.Linear, of other layers with a `weight`, of plain
parameters, with two axes or one more for the heads. Then names give the roles; where
they do not, the order of use and the sizes do.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from attnlib.clinic.tensors import torch
from attnlib.clinic.weight_names import (
    UNSURE,
    bias_roles,
    named_otherwise,
    roles_of,
)

NOT_WEIGHTS = ("Embedding", "Norm", "Rotary", "EmbeddingBag")


@dataclass
class Matrix:
    """A parameter that may be a weight, and what its name says."""

    path: str
    owner: Any
    name: str
    kind: str  # "linear": (n_out, n_in); "layer", "parameter": to be found out
    roles: tuple[str, ...]
    group: str  # the path without its numbers: the matrices of one list share it
    bias: tuple[Any, str] | None = None
    flipped: bool = False  # kept as (n_out, n_in)

    @property
    def tensor(self) -> Any:
        """The parameter, with a linear or convolution's weight as two axes."""
        tensor = getattr(self.owner, self.name).detach()
        while tensor.ndim > 2 and tensor.shape[-1] == 1:  # a 1x1 convolution
            tensor = tensor.squeeze(-1)
        return tensor

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape as (n_in, n_out) if there are two axes."""
        shape = tuple(self.tensor.shape)
        return shape[::-1] if self.flipped and len(shape) == 2 else shape

    def as_rows(self, tensor: Any) -> Any:
        """The parameter as (n_in, n_out)."""
        while tensor.ndim > 2 and tensor.shape[-1] == 1:
            tensor = tensor.squeeze(-1)
        return tensor.transpose(0, 1) if self.flipped else tensor


@dataclass
class Chosen:
    """Which matrices make up which weight, before fused ones are cut."""

    parts: dict[str, list[Matrix]] = field(default_factory=dict)  # "q", "qkv", "o"
    biases: dict[str, tuple[Any, str]] = field(default_factory=dict)  # of their own
    left: list[Matrix] = field(default_factory=list)
    problem: str = ""
    by_order: bool = False  # names did not tell


def gather(module: Any) -> tuple[list[Matrix], dict[str, tuple[Any, str]]]:
    """Every matrix of a module, and biases that are parameters by themselves."""
    matrices: list[Matrix] = []
    biases: dict[str, tuple[Any, str]] = {}
    holders = dict(module.named_modules())
    for path, part in holders.items():
        kind = type(part).__name__
        if any(word in kind for word in NOT_WEIGHTS):
            continue
        for name, parameter in part._parameters.items():
            if parameter is None:
                continue
            matrix = _matrix(part, path, name, parameter, holders)
            if matrix is not None:
                matrices.append(matrix)
            elif name != "bias" and re.search(r"bias|^b_|^b[qkvo]", name.lower()):
                squeezed = [n for n in parameter.shape if n > 1]
                roles = bias_roles(name)
                if len(squeezed) <= 2 and roles and name not in ("bias_k", "bias_v"):
                    biases.setdefault("".join(roles), (part, name))
    return matrices, biases


def _matrix(
    part: Any, path: str, name: str, parameter: Any, holders: dict[str, Any]
) -> Matrix | None:
    shape = [n for n in parameter.shape if n > 1] or [1]
    bias_like = re.search(r"bias|^b_|^b[A-Z]|^b[qkvo]$", name) is not None
    if len(parameter.shape) < 2 or len(shape) > 3 or bias_like:
        return None
    linear = isinstance(part, torch.nn.Linear) and name == "weight"
    kind = "linear" if linear or "Conv" in type(part).__name__ else "parameter"
    if kind == "linear" and type(part).__name__ == "Conv1D":
        kind = "layer"
    layer = name == "weight"
    if layer and kind == "parameter":
        kind = "layer"
    path = getattr(part, "stands_for", path)
    full = path if layer else f"{path}.{name}".strip(".")
    steps = full.split(".")
    roles: tuple[str, ...] = UNSURE
    for i in reversed(range(len(steps))):  # W_q.linear: what tells is further up
        if steps[i].isdigit():
            continue
        roles = roles_of(steps[i])
        holder = type(holders.get(".".join(steps[: i + 1]))).__name__
        if not roles and re.search("atten|attn", holder.lower()):
            roles = UNSURE  # an attention may have any name: self.cross
        if roles != UNSURE:
            break
    bias = None
    if layer and getattr(part, "bias", None) is not None:
        bias = (part, "bias")
    group = ".".join("*" if step.isdigit() else step for step in steps)
    flipped = kind == "linear"
    return Matrix(full, part, name, kind, roles, group, bias, flipped)


def choose(module: Any, used: list[Any]) -> Chosen:
    """Give every matrix its role. `used` are the layers in the order of their use."""
    matrices, biases = gather(module)
    chosen = Chosen(biases=biases)
    order = {id(owner): i for i, owner in enumerate(used)}
    late = len(order)
    by_role: dict[str, list[Matrix]] = defaultdict(list)
    for matrix in matrices:
        key = "".join(matrix.roles)
        letters = set(key)
        if key == "?" or not key:
            by_role[key].append(matrix)
        elif letters <= {"q", "k", "v"} and len(letters) > 1:
            # A list named qkv may hold one matrix for each.
            by_role["".join(sorted(letters, key="qkv".index))].append(matrix)
        else:
            by_role[key].append(matrix)
    unsure = sorted(by_role.pop("?", []), key=lambda m: order.get(id(m.owner), late))
    left = by_role.pop("", [])
    _lists(by_role, unsure, chosen)
    for key, found in by_role.items():
        if key in chosen.parts:
            left += found
            continue
        one = _one_attention(found)
        if one is None:
            places = sorted({m.path.rpartition(".")[0] or m.path for m in found})
            chosen.problem = (
                f"several attentions ({', '.join(places[:4])}): hand in one of them"
            )
            return chosen
        chosen.parts[key] = one
    _by_size(chosen, unsure)
    if "o" not in chosen.parts and unsure:
        fits = [m for m in unsure if not _is_list(m)] or unsure
        chosen.parts["o"] = [fits[-1]]
        unsure.remove(fits[-1])
    chosen.left = left + unsure
    strange = [m for m in chosen.left if not named_otherwise(m.path)]
    strange.sort(key=lambda m: order.get(id(m.owner), late))
    _by_any_name(chosen, strange)
    return chosen


def _by_any_name(chosen: Chosen, strange: list[Matrix]) -> None:
    """What names of no known word leave open: by the order of use, the last is W_o."""
    free = list(strange)
    if not {"q", "k", "v"} <= set("".join(chosen.parts)):
        _by_size(chosen, free)
    have = set("".join(chosen.parts))
    if "o" not in have and {"q", "k", "v"} <= have and free:
        chosen.parts["o"] = [free.pop()]
    chosen.left = [m for m in chosen.left if m in free or m not in strange]


def _is_list(matrix: Matrix) -> bool:
    return "*" in matrix.group.split(".")[-1:]


def _one_attention(found: list[Matrix]) -> list[Matrix] | None:
    """The matrices of one weight: one, or one for each head of a list."""
    groups = {m.group for m in found}
    shapes = {m.shape for m in found}
    if (
        len(groups) == 1
        and len(shapes) == 1
        and (len(found) == 1 or "*" in found[0].group)
    ):
        return found
    return None


def _lists(
    by_role: dict[str, list[Matrix]], unsure: list[Matrix], chosen: Chosen
) -> None:
    """`linears`, a list of four, or of three and an out projection: q, k, v, o."""
    for found in [*by_role.values(), unsure]:
        groups: dict[str, list[Matrix]] = defaultdict(list)
        for matrix in found:
            if matrix.group.endswith("*"):
                groups[matrix.group].append(matrix)
        for members in groups.values():
            name = "".join(members[0].roles)
            if name in ("q", "k", "v", "o") or len(members) not in (3, 4):
                continue
            for role, matrix in zip("qkvo", members, strict=False):
                chosen.parts[role] = [matrix]
                found.remove(matrix)
            chosen.by_order = True
    for key in [key for key, found in by_role.items() if not found]:
        del by_role[key]


def _by_size(chosen: Chosen, unsure: list[Matrix]) -> None:
    """Where no name tells: a fused one by its size, or three or four by their order."""
    have = set("".join(chosen.parts))
    if {"q", "k", "v"} <= have or not unsure:
        return
    missing = [role for role in "qkv" if role not in have]
    if len(missing) == 3:
        for matrix in unsure:
            small, large = sorted(matrix.shape)[0], sorted(matrix.shape)[-1]
            if len(matrix.shape) == 2 and large > small and large != 4 * small:
                chosen.parts["qkv"] = [matrix]
                unsure.remove(matrix)
                chosen.by_order = True
                return
            if len(matrix.shape) == 3 and matrix.shape[0] == 3:
                chosen.parts["qkv"] = [matrix]
                unsure.remove(matrix)
                return
    if len(unsure) >= len(missing):
        for role in missing:
            chosen.parts[role] = [unsure.pop(0)]
        chosen.by_order = True
