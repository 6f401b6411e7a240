"""A copy of a module to experiment on, so that the module itself is never touched."""

from __future__ import annotations

import copy
import types
from collections import OrderedDict
from typing import Any

from attnlib.clinic.tensors import torch

# They hand everything on to the module inside.
WRAPPERS = ("OptimizedModule", "DataParallel", "DistributedDataParallel")
HOOKS = (
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_backward_hooks",
    "_backward_pre_hooks",
)


def copy_module(module: Any) -> Any:
    """An equal module with tensors of its own, in eval mode, without the user's hooks.

    What reparametrises weights (weight norm, spectral norm, pruning) is taken off the
    copy: the weights become plain ones with the values that they have now.
    """
    try:
        twin = copy.deepcopy(module)
    except Exception:  # a lock, a generator, a tensor with a history
        twin = _by_hand(module, {})
    for part in twin.modules():
        _plain_weights(part)
        for name in HOOKS:
            hooks = part.__dict__.get(name, {})
            for key in [key for key, hook in hooks.items() if not _of_torch(hook)]:
                del hooks[key]
    twin.eval()
    while type(twin).__name__ in WRAPPERS and len(list(twin.children())) == 1:
        twin = next(twin.children())
    return twin


def _of_torch(hook: Any) -> bool:
    """Whether torch put the hook there, as it does in LazyLinear."""
    return str(getattr(hook, "__module__", "")).startswith("torch.")


def move(twin: Any, dtype: str) -> None:
    """Bring a copy into a type, with the tensors that are no parameters, too."""
    kind = getattr(torch, dtype)
    twin.to(dtype=kind)
    for part in twin.modules():
        for name, thing in vars(part).items():
            if isinstance(thing, torch.Tensor) and thing.is_floating_point():
                part.__dict__[name] = thing.detach().to(kind)
    for parameter in twin.parameters():
        if parameter.is_floating_point():
            # With gradients to keep, nn.MultiheadAttention takes its plain path.
            parameter.requires_grad_(True)


def device_of(module: Any) -> Any:
    """Where its parameters are."""
    first = next(iter(module.parameters()), None)
    first = first if first is not None else next(iter(module.buffers()), None)
    return torch.device("cpu") if first is None else first.device


def _plain_weights(part: Any) -> None:
    for key, hook in list(part._forward_pre_hooks.items()):
        reparametrises = type(hook).__module__.startswith("torch.nn.utils")
        if reparametrises and hasattr(hook, "remove"):
            hook.remove(part)
            del part._forward_pre_hooks[key]
    parametrize = torch.nn.utils.parametrize
    if parametrize.is_parametrized(part):
        for name in list(part.parametrizations):
            parametrize.remove_parametrizations(part, name, leave_parametrized=True)


def _by_hand(module: Any, known: dict[int, Any]) -> Any:
    """Copy the tree of modules and their tensors; share what cannot be copied."""
    if id(module) in known:
        return known[id(module)]
    twin = module.__class__.__new__(module.__class__)
    known[id(module)] = twin
    state = dict(module.__dict__)
    state["_parameters"] = OrderedDict(
        (name, _tensor(p, known)) for name, p in module._parameters.items()
    )
    state["_buffers"] = OrderedDict(
        (name, _tensor(b, known)) for name, b in module._buffers.items()
    )
    state["_modules"] = OrderedDict(
        (name, None if m is None else _by_hand(m, known))
        for name, m in module._modules.items()
    )
    for name, thing in module.__dict__.items():
        if name in ("_parameters", "_buffers", "_modules"):
            continue
        if isinstance(thing, torch.Tensor):
            state[name] = _tensor(thing, known)
        elif isinstance(thing, (list, dict, set, OrderedDict)):
            state[name] = copy.copy(thing)
        elif isinstance(thing, types.MethodType) and thing.__self__ is module:
            state[name] = types.MethodType(thing.__func__, twin)
    twin.__dict__.update(state)
    return twin


def _tensor(tensor: Any, known: dict[int, Any]) -> Any:
    if tensor is None:
        return None
    if id(tensor) not in known:
        twin = tensor.detach().clone()
        if isinstance(tensor, torch.nn.Parameter):
            twin = torch.nn.Parameter(twin, requires_grad=tensor.requires_grad)
        known[id(tensor)] = twin
    return known[id(tensor)]
