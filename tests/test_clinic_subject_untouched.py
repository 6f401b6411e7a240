"""A module that was examined is as it was before: compared in everything it has."""

from __future__ import annotations

import copy
import random
import threading
import warnings

import numpy as np
import pytest
import torch
from attention_modules import MODULES, D, H, Separate, weight_normed
from torch import nn

from attnlib.clinic.subject import ModuleSubject, Refusal, make_subject


def numbers(tensor):
    """All of a tensor that can be compared."""
    if tensor is None or torch.nn.parameter.is_lazy(tensor):
        return None
    grad = None if tensor.grad is None else tensor.grad.tolist()
    return (
        tensor.data_ptr(),
        tensor.dtype,
        tensor.device,
        tensor.requires_grad,
        tensor._version,
        tensor.detach().double().tolist(),
        grad,
    )


def everything(module):
    """What a module is made of, with the identity of its parts."""
    parts = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # gradients of tensors that are no leaves
        for path, part in module.named_modules():
            plain = {
                name: value
                for name, value in vars(part).items()
                if name not in ("_parameters", "_buffers", "_modules")
            }
            parts[path] = (
                id(part),
                type(part),
                part.training,
                {n: numbers(p) for n, p in part._parameters.items()},
                {n: numbers(b) for n, b in part._buffers.items()},
                {n: id(m) for n, m in part._modules.items()},
                {n: (id(v), copy.copy(v)) for n, v in plain.items() if _flat(v)},
            )
    return parts


def _flat(value):
    return isinstance(value, (int, float, str, bool, dict, list, tuple, type(None)))


def settings():
    """The state of everything that is there once for all."""
    return (
        torch.random.get_rng_state().tolist(),
        random.getstate(),
        str(np.random.get_state()),  # noqa: NPY002
        torch.get_default_dtype(),
        torch.is_grad_enabled(),
        torch.get_num_threads(),
        torch.are_deterministic_algorithms_enabled(),
        torch.backends.mha.get_fastpath_enabled(),
        np.geterr(),
        list(warnings.filters),
    )


def examine(module, **options):
    """Make a subject and call it in every way."""
    subject = make_subject(module, **options)
    assert isinstance(subject, ModuleSubject), subject
    w = subject.weights
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 5, w.d_model))
    memory = rng.normal(size=(2, 6, w.W_k.shape[0])) if subject.takes.memory else None
    subject.call(x, memory)
    subject.call(x, memory, train=True)
    subject.set(w)
    return subject


@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_as_it_was(name):
    make, options, _ = MODULES[name]
    module = make()
    before, around = everything(module), settings()
    examine(module, **options)
    assert everything(module) == before
    assert settings() == around


def test_gradients_and_modes_are_as_they_were():
    module = Separate().train()
    module.W_k.eval()
    module.W_v.weight.requires_grad_(False)
    module(torch.randn(2, 3, D)).sum().backward()
    module.register_buffer("seen", torch.ones(3))
    before = everything(module)
    examine(module)
    assert everything(module) == before
    assert module.W_q.weight.grad is not None


def test_hooks_of_the_user_do_not_run_and_stay():
    module = Separate()
    calls = []

    def hook(*args):
        calls.append(args)

    module.register_forward_hook(hook)
    module.register_forward_pre_hook(hook)
    module.W_q.register_forward_hook(hook)
    module.W_q.register_full_backward_hook(hook)
    before = everything(module)
    examine(module)
    assert everything(module) == before
    assert calls == []
    module(torch.randn(1, 2, D))
    assert len(calls) == 3


def test_a_hook_that_changes_the_result_is_left_out():
    module = Separate()
    module.register_forward_hook(lambda *args: torch.zeros(2, 5, D))
    subject = examine(module)
    assert subject.call(np.ones((2, 5, D))).out.any()


@pytest.mark.parametrize("old", [False, True])
def test_parametrisations_stay_on_the_module(old):
    if old:
        module = Separate()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            nn.utils.weight_norm(module.W_q)
            nn.utils.spectral_norm(module.W_v)
    else:
        module = weight_normed()
    names = [name for name, _ in module.named_parameters()]
    before = {n: t.clone() for n, t in module.state_dict().items()}
    examine(module)
    assert [name for name, _ in module.named_parameters()] == names
    for name, tensor in module.state_dict().items():
        assert torch.equal(tensor, before[name])


def test_what_cannot_be_copied_is_copied_as_far_as_can_be():
    module = Separate()
    module.lock = threading.Lock()
    module.W_k.weight = module.W_q.weight  # tied
    hidden = module.W_q.weight * 2
    module.last = hidden  # with a history: deepcopy refuses it
    with pytest.raises((TypeError, RuntimeError)):
        copy.deepcopy(module)
    before = everything(module)
    subject = examine(module)
    assert everything(module) == before
    assert module.last is hidden
    w = subject.weights
    assert (w.W_q == w.W_k).all()  # still tied in the copy


def test_a_module_that_changes_itself_changes_the_copy_only():
    class Counts(Separate):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(()))
            self.seen = []
            self.scale = nn.Parameter(torch.ones(()))

        def forward(self, x, mask=None):
            self.count += 1
            self.seen.append(x.shape)
            self.last = x
            self.scale.data.mul_(2)
            return super().forward(x, mask)

    module = Counts()
    before = everything(module)
    examine(module)
    assert everything(module) == before
    assert module.seen == []
    assert not hasattr(module, "last")


def test_a_module_that_turns_every_knob_turns_it_for_itself():
    class Rude(Separate):
        def forward(self, x, mask=None):
            torch.manual_seed(0)
            np.random.seed(0)  # noqa: NPY002
            random.seed(0)
            torch.set_default_dtype(torch.float16)
            torch.set_grad_enabled(False)
            torch.set_num_threads(3)
            torch.use_deterministic_algorithms(True)
            torch.backends.mha.set_fastpath_enabled(False)
            np.seterr(all="raise")
            warnings.simplefilter("error")
            torch.set_float32_matmul_precision("medium")
            torch.set_default_dtype(torch.float64)
            return super().forward(x, mask)

    module = Rude()
    around = settings()
    precision = torch.get_float32_matmul_precision()
    examine(module)
    assert settings() == around
    assert torch.get_float32_matmul_precision() == precision


def test_a_refused_module_is_as_it_was_too():
    class Raises(Separate):
        def forward(self, x, mask=None):
            self.W_q.weight.data.zero_()
            raise RuntimeError

    module = Raises()
    before, around = everything(module), settings()
    assert isinstance(make_subject(module), Refusal)
    assert everything(module) == before
    assert settings() == around


def test_a_bfloat16_module_keeps_its_type():
    module = nn.MultiheadAttention(D, H, batch_first=True).to(torch.bfloat16)
    subject = examine(module)
    assert module.in_proj_weight.dtype == torch.bfloat16
    assert subject.call(np.ones((1, 2, D))).dtype == "float64"


def test_a_wide_module_is_done_in_few_calls():
    """Wide in the number of features only: the texts stay short."""
    sizes = []

    class Wide(Separate):
        def forward(self, x, mask=None):
            sizes.append(x.shape[0] * x.shape[1])
            return super().forward(x, mask)

    examine(Wide())
    assert max(sizes) < 100
    assert len(sizes) < 60


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_module_on_a_gpu_is_examined_there():
    module = Separate().cuda()
    state = torch.cuda.get_rng_state()
    before = everything(module)
    subject = examine(module)
    assert everything(module) == before
    assert torch.equal(torch.cuda.get_rng_state(), state)
    assert subject.call(np.ones((1, 2, D))).error is None
