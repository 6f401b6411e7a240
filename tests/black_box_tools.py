"""Benches without a subject: what each variant would answer, and how it is told."""

from __future__ import annotations

from functools import cache

import numpy as np

from attnlib.clinic.black_box.bench import FunctionBench
from attnlib.clinic.black_box.exam import Exam
from attnlib.clinic.black_box.module_bench import ModuleBench
from attnlib.clinic.black_box.traits import NOTHING, PLAIN, Traits
from attnlib.clinic.subject import FunctionSubject, ModuleSubject, Takes, Weights

KINDS = {
    "plain": PLAIN,
    "causal": Traits(causal=True),
    "window": Traits(window=3, causal=True),
    "window on both sides": Traits(window=3, both_sides=True),
    "cap": Traits(softcap=2.0),
    "l2": Traits(qk_norm="l2"),
    "rms": Traits(qk_norm="rms", scale=1.0),
    "layer": Traits(qk_norm="layer"),
    "rope, half": Traits(rope="half"),
    "rope, interleaved": Traits(rope="interleaved", causal=True),
    "alibi": Traits(alibi=True),
}
ALL = Takes(
    mask=True,
    padding=True,
    causal=True,
    memory=True,
    cache=False,
    values=True,
    dims=(4,),
    grouped=True,
    mask_dims=(2, 4),
    item_masks=True,
)


def nothing(*args, **kwargs):
    raise AssertionError("no subject is asked here")


def weights(n_heads=4, n_kv=2, d_k=6, biases=True, seed=9, d_model=None):
    rng = np.random.default_rng(seed)
    d_model = d_model or n_heads * d_k

    def table(*shape):
        return rng.normal(size=shape) / shape[0] ** 0.5

    def b(n):
        return rng.normal(size=n) if biases else None

    return Weights(
        table(d_model, n_heads * d_k),
        table(d_model, n_kv * d_k),
        table(d_model, n_kv * d_k),
        table(n_heads * d_k, d_model),
        b(n_heads * d_k),
        b(n_kv * d_k),
        b(n_kv * d_k),
        b(d_model),
        n_heads,
        n_kv,
        d_model,
    )


def function_bench(takes=ALL, seed=0):
    return FunctionBench(FunctionSubject("f", takes, False, nothing), seed)


def module_bench(w, takes=ALL, seed=0):
    subject = ModuleSubject("m", takes, nothing, lambda: w, lambda _: None)
    return ModuleBench(subject, seed)


# An n_kv that differs from n_heads shows grouping; an equal one makes W_k square.
BENCHES = {
    "function": lambda seed: function_bench(seed=seed),
    "grouped module": lambda seed: module_bench(weights(), seed=seed),
    "square module": lambda seed: module_bench(weights(3, 3), seed=seed),
}


@cache
def variants(bench, kind, seed=0):
    """All variants of one kind of attention on a bench's questions."""
    exam = Exam(BENCHES[bench](seed), KINDS[kind])
    found = exam.variants(KINDS[kind], NOTHING, exam.bench.questions)
    return found, len(exam.bench.questions)


def answers(bench, kind, *faults, seed=0):
    """What a subject with these mistakes would give on every question."""
    found, count = variants(bench, kind, seed)
    return [found.out(i, frozenset(faults)) for i in range(count)]


def keys(bench, kind):
    """All mistakes of this kind, in the order of the slots."""
    return [key for slot in variants(bench, kind)[0].slots.values() for key in slot]
