"""Switch off the dropouts of PyTorch for a while, however code calls them.

A dropout that is always on hides what else is wrong. With a mode of torch in between,
`F.dropout`, nn.Dropout and the dropout inside attention functions give back what they
were given. One that is written by hand, from random numbers, stays.
"""

from __future__ import annotations

import contextlib
import functools
from typing import Any

from attnlib.clinic.tensors import loaded

NAMES = {
    *("dropout", "dropout_", "dropout1d", "dropout2d", "dropout3d", "native_dropout"),
    *("alpha_dropout", "alpha_dropout_", "feature_alpha_dropout", "feature_dropout"),
}
AT = 4  # dropout_p in scaled_dot_product_attention(q, k, v, attn_mask, dropout_p)


def dropout_off() -> contextlib.AbstractContextManager[Any]:
    """No dropout of PyTorch does anything inside of this."""
    mode: Any = _Off()() if loaded() else contextlib.nullcontext()
    return mode  # type: ignore[no-any-return]


@functools.cache
def _Off() -> Any:
    """The class of the mode; made late, as torch is imported late."""
    from torch.overrides import TorchFunctionMode

    class Off(TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            named = dict(kwargs or {})
            name = getattr(func, "__name__", "")
            if name in NAMES:
                given = args[0] if args else named["input"]
                return (given, None) if name == "native_dropout" else given
            if name == "scaled_dot_product_attention":
                named.pop("dropout_p", None)
                args = (*args[:AT], 0.0, *args[AT + 1 :]) if len(args) > AT else args
            elif name == "multi_head_attention_forward":
                named["training"] = False
            return func(*args, **named)

    return Off
