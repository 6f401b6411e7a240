"""What a call of `MultiHeadAttention` may be given, and what fits with what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from attnlib.nn.shapes import check_tensors
from attnlib.shapes import ShapeError

if TYPE_CHECKING:
    from attnlib.nn.multihead import MultiHeadAttention


def check_inputs(
    attention: MultiHeadAttention,
    x: Tensor,
    memory: Tensor | None,
    values: Tensor | None,
    positions: Tensor | None,
) -> tuple[Tensor, Tensor] | None:
    """Raise where the inputs do not fit; return what k and v are made of."""
    check_tensors({"x": (x, "n_q d_model")}, d_model=attention.d_model)
    if attention.rotate is None and positions is not None:
        raise ValueError("positions were given, but the module has no rotate.")
    if positions is not None and positions.shape[-1:] != x.shape[-2:-1]:
        raise ShapeError(
            f"positions has shape {tuple(positions.shape)}, which must end in "
            f"n_q={x.shape[-2]}, the tokens of x."
        )
    if memory is None:
        if values is not None:
            raise ValueError("values were given without a memory.")
        for name in ("d_memory", "d_values"):
            if getattr(attention, name) != attention.d_model:
                raise ShapeError(
                    f"this module needs a memory: it reads {name}="
                    f"{getattr(attention, name)}, but x has d_model="
                    f"{attention.d_model}."
                )
        return None
    if attention.rotate is not None:
        raise ValueError(
            "rotate puts x at its positions, but a memory has none in the same "
            "text; cross-attention needs a module without rotate."
        )
    check_tensors({"memory": (memory, "n_k d_memory")}, d_memory=attention.d_memory)
    if values is None:
        if attention.d_values != attention.d_memory:
            raise ShapeError(
                "this module needs values: it reads d_values="
                f"{attention.d_values}, but the memory has d_memory="
                f"{attention.d_memory}."
            )
        return memory, memory
    sizes = {"n_k": memory.shape[-2], "d_values": attention.d_values}
    check_tensors({"values": (values, "n_k d_values")}, **sizes)
    return memory, values
