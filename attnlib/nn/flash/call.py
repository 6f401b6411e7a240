"""Flash attention as one operation of autograd."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from attnlib.nn.flash.backward import Gradients, flash_backward
from attnlib.nn.flash.forward import flash_forward
from attnlib.nn.flash.plan import Plan


def flash_call(
    plan: Plan, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """Return out and, where it is wanted, the log-sum-exp, with their gradients."""
    out, log_sum_exp = FlashCall.apply(plan, q, k, v, bias)  # type: ignore[no-untyped-call]
    return out, log_sum_exp


class FlashCall(torch.autograd.Function):
    """Keeps q, k, v, out and one number a query; computes the weights again."""

    @staticmethod
    def forward(
        plan: Plan, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        return flash_forward(plan, q, k, v, bias)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.plan, *tensors = inputs
        ctx.save_for_backward(*tensors, *output)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *d_results: Any) -> Any:
        bias_too = ctx.needs_input_grad[4]
        saved = ctx.saved_tensors
        found = FlashGradients.apply(ctx.plan, bias_too, *saved, *d_results)  # type: ignore[no-untyped-call]
        return None, *found


class FlashGradients(torch.autograd.Function):
    """An operation of its own, so that asking for its gradient is an error."""

    @staticmethod
    def forward(plan: Plan, bias_too: bool, *tensors: Any) -> Gradients:
        return flash_backward(plan, tensors[:4], tensors[4:6], tensors[6:], bias_too)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        raise RuntimeError(
            "flash_attention has no second derivative, because backward keeps no "
            "weights to differentiate; attnlib.nn.scaled_dot_product has one."
        )
