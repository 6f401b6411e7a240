"""Whatever cannot be examined is refused in a sentence, and nothing is ever raised."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from attention_modules import D, Fused, Separate
from torch import nn

from attnlib.clinic import tensors
from attnlib.clinic.subject import (
    FunctionSubject,
    ModuleSubject,
    Refusal,
    make_subject,
)
from attnlib.nn import MultiHeadAttention

HAND_IN = (
    "Hand in a function of q, k, v and a mask, such as "
    "`lambda q, k, v, mask=None: mine(q, k, v, mask)`, or an nn.Module."
)


def refused(thing, **options):
    """The sentence of the refusal."""
    found = make_subject(thing, **options)
    assert isinstance(found, Refusal), found
    assert found.sentence.endswith((".", "`."))
    return found.sentence


class Awkward:
    """Raises whatever it is asked."""

    def __getattr__(self, name):
        raise RuntimeError(name)

    def __call__(self, *args):
        raise RuntimeError("called")


def zero(q, k, v):
    return 1 / 0


def recursive(q, k, v):
    return recursive(q, k, v)


def leaves(q, k, v):
    sys.exit(3)


def asks(q, k, v):
    return input("?")


def generator(q, k, v):
    yield v


async def coroutine(q, k, v):
    return v


def nothing(q, k, v):
    q @ np.swapaxes(k, -1, -2) @ v


def not_a_number(q, k, v):
    return (q @ np.swapaxes(k, -1, -2) @ v) * np.nan


def text(q, k, v):
    return "attention"


def summed(q, k, v):
    return (q @ np.swapaxes(k, -1, -2) @ v).sum(-1)


class OfTokens:
    """A class of NumPy's, with weights of its own."""

    def __init__(self):
        self.W_q = np.eye(4)

    def __call__(self, x):
        return x @ self.W_q


@pytest.mark.parametrize(
    ("thing", "start"),
    [
        ("attention", "An object of class str was handed in, which cannot be called."),
        (None, "None was handed in, which cannot be called."),
        (np.eye(3), "An object of class ndarray was handed in"),
        (np, "An object of class module was handed in"),
        (OfTokens, "OfTokens is a class. Hand in an object of it, such as OfTokens("),
        (OfTokens(), "OfTokens takes (x), and not q, k and v. " + HAND_IN),
        (lambda: 1, "The function takes (nothing), and not q, k and v."),
        (lambda x: x, "The function takes (x), and not q, k and v."),
        (lambda q, k: q, "The function takes (q, k), and not q, k and v."),
        (
            lambda q, k, v, n_heads: v,
            "The function must be given n_heads besides q, k and v. Hand in a function "
            "that gives it, such as `lambda q, k, v, mask=None: mine(q, k, v, "
            "n_heads=...)`.",
        ),
        (zero, "zero raised ZeroDivisionError: division by zero, when it was given"),
        (recursive, "recursive raised RecursionError: maximum recursion depth"),
        (leaves, "leaves raised SystemExit: 3, when it was given"),
        (asks, "asks raised NoKeyboard"),
        (generator, "generator returned a generator without an array of numbers"),
        (coroutine, "coroutine returned a coroutine without an array of numbers"),
        (nothing, "nothing returned None (is a `return` missing?)"),
        (not_a_number, "not_a_number returned NaN everywhere for plain numbers"),
        (text, "text returned a text and not (2, 4, 6), when it was given arrays q ("),
        (summed, "summed returned shape (2, 4) and not (2, 4, 6), when it was given"),
        (Awkward(), "The object raised RuntimeError: called, when it was given arrays"),
        (print, "print returned None"),
        (asyncio.sleep, "sleep takes (delay, result), and not q, k and v."),
        (
            nn.Linear(4, 4),
            "The weights of Linear were not found: no weight for q, k, v",
        ),
        (nn.ReLU(), "ReLU has no weight matrices."),
        (nn.Module, "Module has no weight matrices."),
        (
            nn.MultiheadAttention(8, 2, device="meta"),
            "MultiheadAttention is on the meta device: it has no numbers.",
        ),
        (
            nn.TransformerEncoderLayer(16, 2, 32, batch_first=True),
            "TransformerEncoderLayer is more than an attention: it has linear1 "
            "besides. Hand in its part `self_attn`.",
        ),
    ],
    ids=lambda given: given[:40] if isinstance(given, str) else type(given).__name__,
)
def test_a_refusal_says_what_was_wrong(thing, start):
    assert refused(thing).startswith(start)


@pytest.mark.filterwarnings("ignore:.*never awaited")
def test_refusing_gives_an_example_to_copy():
    assert refused(zero).endswith(HAND_IN)


def test_options_are_checked():
    assert refused(zero, mask="?") == (
        'mask=\'?\' is none of "may look", "blocked", "added".'
    )
    assert refused(zero, dtype="int8") == (
        "dtype='int8' is none of float16, bfloat16, float32, float64."
    )


def forever(q, k, v):
    while True:
        pass


def sleeps(q, k, v):
    time.sleep(100)


@pytest.mark.parametrize("function", [forever, sleeps])
def test_what_never_ends_is_stopped(function):
    start = time.monotonic()
    sentence = refused(function, seconds=0.3)
    assert sentence.startswith(f"{function.__name__} did not come to an end in time")
    assert time.monotonic() - start < 30


def test_what_is_noisy_or_random_is_no_reason_to_refuse(capsys):
    def noisy(q, k, v):
        print("x" * 1000)
        return F.scaled_dot_product_attention(q, k, v) + torch.rand(v.shape[-1])

    subject = make_subject(noisy)
    assert isinstance(subject, FunctionSubject)
    q = np.ones((2, 3))
    first = subject.call(q, q, q).out
    assert (subject.call(q, q, q).out == first).all()  # the dice are put back
    tensors.draw()
    assert (subject.call(q, q, q).out != first).any()
    assert capsys.readouterr().out == ""


# --- modules -------------------------------------------------------------------------
class Raises(Separate):
    def forward(self, x, mask=None):
        raise RuntimeError("not done yet")


class Endless(Separate):
    def forward(self, x, mask=None):
        while True:
            pass


class Empty(Separate):
    def forward(self, x, mask=None):
        return super().forward(x, mask) * torch.nan


class Silent(Separate):
    def forward(self, x, mask=None):
        super().forward(x, mask)


class TokenByToken(Separate):
    """No token looks at another."""

    def forward(self, x, mask=None):
        return self.W_o(self.W_v(self.W_k(self.W_q(x))))


class Asks(Separate):
    def forward(self, x, rotation, temperature):
        return super().forward(x)


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Separate(), Separate()

    def forward(self, x):
        return self.second(self.first(x))


class Model(nn.Module):
    """A language model: it takes whole numbers."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(20, D)
        self.layers = nn.ModuleList(
            [nn.TransformerEncoderLayer(D, 2, 32, batch_first=True)]
        )
        self.head = nn.Linear(D, 20)

    def forward(self, ids):
        return self.head(self.layers[0](self.tokens(ids)))


class Deep(Model):
    """The same with two layers."""

    def __init__(self):
        super().__init__()
        self.layers.append(nn.TransformerEncoderLayer(D, 2, 32, batch_first=True))


class OneFile(nn.Module):
    """It embeds and attends without a part for each."""

    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(20, D)
        self.q, self.k, self.v = (nn.Linear(D, D) for _ in range(3))

    def forward(self, ids):
        x = self.emb(ids)
        return F.scaled_dot_product_attention(self.q(x), self.k(x), self.v(x))


class OfImages(nn.Module):
    """Patches first, then attention."""

    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, D, 4, 4)
        self.mix = nn.MultiheadAttention(D, 2, batch_first=True)

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2)
        return self.mix(x, x, x)[0]


class OfDicts(nn.Module):
    """It takes a batch by name."""

    def __init__(self):
        super().__init__()
        self.a = nn.MultiheadAttention(D, 2, batch_first=True)

    def forward(self, batch):
        return self.a(batch["x"], batch["x"], batch["x"])[0]


class FusedAttn(Fused):
    """A class whose name says what it is."""


class NoForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.W_q = nn.Linear(4, 4)


class Odd(Fused):
    """Its heads do not divide its features."""

    def __init__(self):
        super().__init__()
        self.num_heads = 4
        self.heads = 5


class NeedsConfig(nn.Module):
    def __init__(self, config):
        super().__init__()


class Fails(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        raise ValueError("no such thing")


@pytest.mark.parametrize(
    ("module", "start"),
    [
        (Raises(), "Raises raised RuntimeError: not done yet, when it was given"),
        (Empty(), "Empty returned NaN everywhere for plain tokens"),
        (Silent(), "Silent returned None (is a `return` missing?), when it was given"),
        (
            TokenByToken(),
            "TokenByToken is no attention: what it gives for a token depends on no "
            "other token.",
        ),
        (Asks(), "Asks must be given temperature besides its tokens."),
        (Two(), "Two holds several attentions (first, second): hand in one of them."),
        (
            Model(),
            "Model takes whole numbers, which `tokens` turns into tokens, and an "
            "attention takes the tokens themselves. Hand in the attention within: "
            "`model.layers[0].self_attn`.",
        ),
        (
            Deep(),
            "Deep takes whole numbers, which `tokens` turns into tokens, and an "
            "attention takes the tokens themselves. Hand in one of the 2 attentions "
            "within, such as `model.layers[0].self_attn`.",
        ),
        (
            OneFile(),
            "OneFile takes whole numbers, which `emb` turns into tokens, and an "
            "attention takes the tokens themselves. No part of it has a name like an "
            "attention's: hand in the part that is called with tokens",
        ),
        (OfImages(), "OfImages raised RuntimeError: Given groups=1"),
        (
            nn.Sequential(FusedAttn(), FusedAttn()),
            "Sequential holds several attentions. Hand in one of the 2 attentions "
            "within, such as `model[0]`.",
        ),
        (NoForward(), "NoForward raised NotImplementedError"),
        (
            NeedsConfig,
            "NeedsConfig is a class, and what its config should be is not known. "
            "Hand in an object of it, such as NeedsConfig(config=...).",
        ),
        (
            Fails,
            "Fails is a class, and Fails(d_model=32, n_heads=4) raised ValueError: no "
            "such thing. Hand in an object",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_module_that_cannot_be_examined_is_refused(module, start):
    assert refused(module).startswith(start)


def test_a_module_that_never_ends_is_stopped():
    assert refused(Endless(), seconds=0.3).startswith(
        "Endless did not come to an end in time, for 5 tokens of 24 numbers."
    )


def test_heads_that_do_not_fit_are_said():
    nameless = Separate()
    del nameless.n_heads
    sentence = refused(nameless, n_heads=5)
    assert "n_heads=5 does not divide its 24 query features" in sentence
    sentence = refused(Fused(), n_heads=7)
    assert sentence.startswith(
        "n_heads=7 was given, but Fused says of itself num_heads=4."
    )
    nameless = Fused()
    del nameless.num_heads
    sentence = refused(nameless, n_heads=7)
    assert "Fused has not the heads that were said: its qkv of shape (24, 72)" in (
        sentence
    )


@pytest.mark.parametrize(
    ("module", "told", "said"),
    [
        (Separate(), {"n_heads": 3}, "n_heads=4"),
        (nn.MultiheadAttention(D, 6, batch_first=True), {"n_heads": 3}, "num_heads=6"),
        (MultiHeadAttention(D, 4, n_kv_heads=2), {"n_kv_heads": 4}, "n_kv_heads=2"),
    ],
)
def test_two_numbers_of_heads_are_a_contradiction(module, told, said):
    (name, number), *_ = told.items()
    assert refused(module, **told) == (
        f"{name}={number} was given, but {type(module).__name__} says of itself "
        f"{said}. Leave {name} out, or mend the one that is wrong."
    )
    right = {name: int(said.partition("=")[2])}
    assert isinstance(make_subject(module, **right), ModuleSubject)


def test_fewer_keys_than_the_matrices_hold_are_said():
    sentence = refused(Fused(), n_kv_heads=2)
    assert sentence.startswith(
        "Fused has not the heads that were said: its W_o takes 24 features, and 36 "
        "would come from n_heads=4 and n_kv_heads=2."
    )


def test_no_torch_is_needed_to_refuse():
    code = (
        "import sys\n"
        "sys.modules['torch'] = None\n"
        "from attnlib.clinic.subject import make_subject\n"
        "def wants(q, k, v):\n"
        "    import torch\n"
        "    return torch.softmax(q @ k.mT, -1) @ v\n"
        "print(make_subject(wants).sentence)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.startswith("wants raised ModuleNotFoundError: import of torch")


@pytest.mark.parametrize(
    ("module", "end"),
    [
        (
            OfImages(),
            "It seems to take images, and tokens are wanted. Hand in the attention "
            "within: `model.mix`.",
        ),
        (OfDicts(), "Hand in the attention within: `model.a`."),
        (
            nn.ModuleList([FusedAttn(), FusedAttn()]),
            "Hand in one of the 2 attentions within, such as `model[0]`.",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_refusal_names_the_attention_within(module, end):
    assert refused(module).endswith(end)


def test_too_little_time_is_said():
    assert refused(Separate(), seconds=1e-9).endswith(
        "Give it more with seconds=..., or hand in one that is faster."
    )


def test_a_method_of_a_module_asks_for_the_module():
    assert refused(Separate().forward) == (
        "forward is a method of the module Separate. Hand in the module itself."
    )


def test_numpy_has_no_bfloat16():
    def attention(q, k, v):
        return np.einsum("...qk,...kd->...qd", q @ np.swapaxes(k, -1, -2), v)

    assert refused(attention, dtype="bfloat16") == (
        "attention takes NumPy arrays, and NumPy has no bfloat16. Leave dtype out, or "
        "say float16."
    )


def test_heads_that_a_function_has_no_use_for_are_said():
    subject = make_subject(F.scaled_dot_product_attention, n_heads=4)
    assert isinstance(subject, FunctionSubject)
    assert subject.notes[-1].startswith("n_heads=4 was given, but a function of q, k")
