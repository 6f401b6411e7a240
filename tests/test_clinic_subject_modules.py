"""Any module as a subject: it gives what its weights say, by our own formula."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from attention_modules import AROUND, MODULES, D, H, Innermost, NeverCalled, Separate
from torch import nn

from attnlib.attention import scaled_dot_product
from attnlib.clinic.subject import FunctionSubject, ModuleSubject, make_subject
from attnlib.heads import merge_heads, repeat_heads, split_heads
from attnlib.nn import MultiHeadAttention

CASES = [(name, *case) for name, case in MODULES.items()]
every_module = pytest.mark.parametrize(
    ("name", "make", "options", "expected"), CASES, ids=list(MODULES)
)


class Subjects(dict):
    """One subject for each module, made when it is first asked for."""

    def __missing__(self, name):
        make, options, _ = MODULES[name]
        torch.manual_seed(0)
        self[name] = make_subject(make(), **options)
        return self[name]


@pytest.fixture(scope="module")
def subjects():
    return Subjects()


def right(w, x, memory=None, mask=None, values=None):
    """The result by the formula, from the weights that the subject reports."""
    memory = x if memory is None else memory
    values = memory if values is None else values

    def heads(tokens, W, b, n):
        return split_heads(tokens @ W + (0 if b is None else b), n)

    q = heads(x, w.W_q, w.b_q, w.n_heads)
    k = repeat_heads(heads(memory, w.W_k, w.b_k, w.n_kv_heads), w.n_heads)
    v = repeat_heads(heads(values, w.W_v, w.b_v, w.n_kv_heads), w.n_heads)
    mask = mask[:, None] if mask is not None and mask.ndim == 3 else mask
    mixed = merge_heads(scaled_dot_product(q, k, v, mask).out)
    if w.W_o is None:
        return mixed
    return mixed @ w.W_o + (0 if w.b_o is None else w.b_o)


def texts(w, n_q=5, n_k=7, batch=3):
    """Tokens, a memory and what values are made of, as wide as the weights want."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(batch, n_q, w.d_model))
    memory = rng.normal(size=(batch, n_k, w.W_k.shape[0]))
    values = rng.normal(size=(batch, n_k, w.W_v.shape[0]))
    return x, memory, values if w.W_v.shape[0] != w.W_k.shape[0] else memory


def close(answer, expected):
    assert answer.error is None
    assert answer.sentence == ""
    assert answer.changed == ()
    np.testing.assert_allclose(answer.out, expected, rtol=1e-6, atol=1e-7)


@every_module
def test_a_module_gives_what_its_weights_say(subjects, name, make, options, expected):
    subject = subjects[name]
    assert isinstance(subject, ModuleSubject), subject
    w = subject.weights
    x, memory, values = texts(w)
    assert w.d_model == D
    assert (w.W_o is None) == ("no out" in expected)
    if subject.takes.no_self:
        close(subject.call(x, memory, values=values), right(w, x, memory, None, values))
    else:
        close(subject.call(x), right(w, x))


@every_module
def test_what_a_module_takes_is_found_out(subjects, name, make, options, expected):
    takes = subjects[name].takes
    assert takes.mask == ("mask" in expected)
    assert takes.padding == ("padding" in expected)
    assert takes.memory == ("memory" in expected)
    assert takes.causal == ("causal" in expected)
    assert not takes.batch_is_heads
    counted = (
        "n_heads was not given, and no attribute says it: 4 were counted, from what it "
        "does."
    )
    assert subjects[name].notes == ((counted,) if "counted" in expected else ())


@every_module
def test_masks_padding_and_memory_arrive(subjects, name, make, options, expected):
    subject = subjects[name]
    w = subject.weights
    x, memory, values = texts(w)
    rng = np.random.default_rng(6)
    if subject.takes.memory:
        close(subject.call(x, memory, values=values), right(w, x, memory, None, values))
    else:
        memory = values = None
    n_k = 7 if subject.takes.memory else 5
    if subject.takes.mask:
        mask = rng.random((5, n_k)) < 0.6
        mask[:, 0] = True
        answer = subject.call(x, memory, values=values, mask=mask)
        close(answer, right(w, x, memory, mask, values))
        assert subject.takes.item_masks
        mask = rng.random((3, 5, n_k)) < 0.6
        mask[..., 1] = True
        answer = subject.call(x, memory, values=values, mask=mask)
        close(answer, right(w, x, memory, mask, values))
    if subject.takes.padding:
        real = np.arange(n_k) < np.array([4, 5, 3])[:, None]
        answer = subject.call(x, memory, values=values, padding=real)
        close(answer, right(w, x, memory, real[:, None], values))
    if subject.takes.causal:
        close(subject.call(x, causal=True), right(w, x, None, np.tri(5, dtype=bool)))
        close(subject.call(x, causal=False), right(w, x))


@every_module
def test_other_weights_can_be_put_in(subjects, name, make, options, expected):
    subject = subjects[name]
    rng = np.random.default_rng(7)
    before = subject.weights
    drawn = {
        field: None if array is None else rng.normal(size=array.shape) / 3
        for field, array in dataclasses.asdict(before).items()
        if field[1] == "_" and field[0] in "Wb"
    }
    subject.set(dataclasses.replace(before, **drawn))
    try:
        after = subject.weights
        for field, array in drawn.items():
            if array is not None:
                np.testing.assert_allclose(getattr(after, field), array, rtol=1e-12)
        x, memory, values = texts(after)
        if not subject.takes.no_self:
            memory = values = None
        answer = subject.call(x, memory, values=values)
        close(answer, right(after, x, memory, None, values))
    finally:
        subject.set(before)


@every_module
def test_the_drawn_weights_make_mistakes_visible(
    subjects, name, make, options, expected
):
    w = subjects[name].weights
    x, memory, _ = texts(w, 40, 40)
    q = split_heads(x @ w.W_q, w.n_heads)
    k = repeat_heads(split_heads(memory @ w.W_k, w.n_kv_heads), w.n_heads)
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    assert 0.7 < scores.std() < 2.5
    for array in (w.W_q, w.W_k, w.W_v, w.W_o, w.b_q, w.b_k, w.b_v, w.b_o):
        if array is not None:
            assert (array == array.astype(np.float32)).all()
    assert w.b_q is None or (w.b_q != 0).any()


def test_two_seeds_draw_two_sets_of_weights():
    module = Separate()
    first, again, other = (make_subject(module, seed=s).weights for s in (0, 0, 1))
    assert (first.W_q == again.W_q).all()
    assert (first.W_q != other.W_q).any()


def test_heads_that_lie_innermost_are_seen_as_they_lie():
    """Then the columns of a head are no neighbours: for the examination to say."""
    w = make_subject(Innermost()).weights
    x = np.random.default_rng(0).normal(size=(2, 5, D))
    assert w.W_o is None
    turned = {
        name: getattr(w, name).reshape(D, D // H, H).swapaxes(1, 2).reshape(D, D)
        for name in ("W_q", "W_k", "W_v")
    }
    subject = make_subject(Innermost())
    close(subject.call(x), right(dataclasses.replace(w, **turned), x))


def test_an_out_projection_that_is_never_called_is_found():
    subject = make_subject(NeverCalled())
    w = subject.weights
    x, _, _ = texts(w)
    assert w.W_o is not None
    close(subject.call(x), right(dataclasses.replace(w, W_o=None), x))


def test_weights_are_read_besides_the_result():
    subject = make_subject(MODULES["a dataclass"][0]())
    w = subject.weights
    x, _, _ = texts(w)
    q, k = split_heads(x @ w.W_q + w.b_q, H), split_heads(x @ w.W_k + w.b_k, H)
    expected = scaled_dot_product(q, k, k).weights
    np.testing.assert_allclose(subject.call(x).weights, expected, atol=1e-7)


def test_our_own_module_is_a_subject():
    subject = make_subject(MultiHeadAttention(D, 6, n_kv_heads=2))
    w = subject.weights
    assert (w.n_heads, w.n_kv_heads) == (6, 2)
    assert subject.takes.mask
    assert subject.takes.causal
    assert subject.takes.memory
    assert subject.takes.cache
    x, memory, _ = texts(w)
    close(subject.call(x, memory), right(w, x, memory))


def test_dropout_works_in_training_only():
    subject = make_subject(nn.MultiheadAttention(D, H, dropout=0.5, batch_first=True))
    x, _, _ = texts(subject.weights)
    still = subject.call(x).out
    assert (subject.call(x).out == still).all()
    assert (subject.call(x, train=True).out != still).any()
    assert (subject.call(x).out == still).all()


def test_a_module_can_be_asked_for_in_another_type():
    subject = make_subject(Separate(), dtype="float16")
    x, _, _ = texts(subject.weights)
    answer = subject.call(x)
    assert answer.dtype == "float16"
    np.testing.assert_allclose(answer.out, right(subject.weights, x), atol=0.05)


def test_a_class_is_made_with_plain_sizes():
    subject = make_subject(nn.MultiheadAttention)
    assert isinstance(subject, ModuleSubject)
    assert subject.weights.n_heads == 4


def test_a_module_without_weights_is_a_function():
    class Scaled(nn.Module):
        def __init__(self, d_k):
            super().__init__()
            self.d_k = d_k
            self.dropout = nn.Dropout(0.5)

        def forward(self, q, k, v):
            weights = torch.softmax(q @ k.transpose(-1, -2) / self.d_k**0.5, -1)
            return self.dropout(weights) @ v

    subject = make_subject(Scaled(8))
    assert isinstance(subject, FunctionSubject)
    assert subject.takes.d_k == 8
    q = np.random.default_rng(0).normal(size=(2, 5, 8))
    out = subject.call(q, q, q).out
    np.testing.assert_allclose(out, scaled_dot_product(q, q, q).out)


def test_what_a_module_cannot_be_given_is_said():
    subject = make_subject(MODULES["qkv"][0]())
    x, memory, _ = texts(subject.weights)
    mask = np.ones((5, 5), dtype=bool)
    assert subject.call(x, mask=mask).sentence == "it takes no mask"
    assert subject.call(x, padding=mask[:3]).sentence == "it takes no padding mask"
    assert subject.call(x, memory).sentence == "it takes no memory"


def test_an_error_in_one_call_comes_back_as_a_value():
    class Short(Separate):
        def forward(self, x, mask=None):
            if x.shape[1] > 8:
                raise ValueError("at most 8 tokens")
            return super().forward(x, mask)

    subject = make_subject(Short())
    answer = subject.call(np.zeros((1, 9, D)))
    assert str(answer.error) == "at most 8 tokens"


def test_a_layer_that_is_the_wrong_way_round_stays_so():
    class Turned(nn.Linear):
        def forward(self, x):
            return x @ self.weight + self.bias

    module = Separate()
    module.W_q = Turned(D, D)
    subject = make_subject(module)
    w = subject.weights
    x, _, _ = texts(w)
    close(subject.call(x), right(dataclasses.replace(w, W_q=w.W_q.T), x))


@pytest.mark.parametrize(("make", "notes"), AROUND.values(), ids=list(AROUND))
def test_what_is_around_an_attention_is_taken_off(make, notes):
    module = make()
    parts = [type(part) for part in module.modules()]
    subject = make_subject(module)
    assert isinstance(subject, ModuleSubject), subject
    assert subject.notes == notes
    w = subject.weights
    x, memory, _ = texts(w)
    close(subject.call(x), right(w, x))
    if subject.takes.memory:
        close(subject.call(x, memory), right(w, x, memory))
    if subject.takes.mask:
        mask = np.tri(5, dtype=bool)
        close(subject.call(x, mask=mask), right(w, x, None, mask))
    rng = np.random.default_rng(9)
    drawn = {name: rng.normal(size=getattr(w, name).shape) for name in ("W_q", "W_v")}
    other = dataclasses.replace(w, **drawn)
    subject.set(other)
    close(subject.call(x), right(other, x))
    assert parts == [type(part) for part in module.modules()]


def test_norms_of_queries_and_keys_stay():
    class Normed(Separate):
        def __init__(self):
            super().__init__()
            self.q_norm, self.k_norm = nn.LayerNorm(D), nn.LayerNorm(D)

        def forward(self, x):
            b, n, _ = x.shape
            q, k = self.q_norm(self.W_q(x)), self.k_norm(self.W_k(x))
            q, k, v = (t.view(b, n, H, -1).mT.mT for t in (q, k, self.W_v(x)))
            q, k, v = (t.transpose(1, 2) for t in (q, k, v))
            out = nn.functional.scaled_dot_product_attention(q, k, v)
            return self.W_o(out.transpose(1, 2).reshape(b, n, D))

    subject = make_subject(Normed())
    assert subject.notes == ()
    x, _, _ = texts(subject.weights)
    before = subject.call(x).out
    w = subject.weights
    subject.set(dataclasses.replace(w, W_q=w.W_q * 10, b_q=w.b_q * 10))
    np.testing.assert_allclose(subject.call(x).out, before, rtol=1e-3, atol=1e-4)


def test_a_mask_that_fits_in_a_form_that_is_not_meant_is_not_handed_in_so():
    class ByItem(Separate):
        """Takes (batch, n_q, n_k); of a mask (n_q, n_k) it would read single rows."""

        def forward(self, x, mask=None):
            one = super().forward
            items = range(len(x))
            return torch.cat(
                [one(x[i : i + 1], None if mask is None else mask[i]) for i in items]
            )

    subject = make_subject(ByItem())
    assert 3 in subject.takes.mask_dims
    assert 2 not in subject.takes.mask_dims
    x, _, _ = texts(subject.weights)
    mask = np.tri(5, dtype=bool)
    close(subject.call(x, mask=mask), right(subject.weights, x, None, mask))
