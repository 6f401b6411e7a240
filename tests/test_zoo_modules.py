"""The zoo's modules: the right ones are right, and each wrong one is really wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from zoo_modules import (
    as_array,
    expected,
    features_of,
    heads_of,
    probes,
    with_good_weights,
)

from attnlib.heads import multi_head
from benchmarks.zoo import (
    right_module_styles,
    switchboard_module,
    wrong_module_heads,
    wrong_module_masks,
    wrong_module_positions,
    wrong_module_roles,
    wrong_module_scores,
)
from benchmarks.zoo.module_kit import ModuleSpecimen, Probe, Style, linears, seeded
from benchmarks.zoo.module_papers import SPLIT_CONCAT

FILES = (
    wrong_module_scores,
    wrong_module_heads,
    wrong_module_roles,
    wrong_module_masks,
    wrong_module_positions,
)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Many small products are fastest on one core."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


WRONG = [specimen for file in FILES for specimen in file.SPECIMENS]
STYLES = right_module_styles.STYLES


def asked(style: Style, module: Any, probe: Probe) -> Any:
    out = style.call(module, probe)
    return None if out is None else out.detach().double().numpy()


def policy(intent: Any, name: str) -> bool:
    """Whether the probe is about something that the module is meant to handle."""
    return not (name.startswith("empty") and intent.get("empty_rows") is False)


def close(a: Any, b: Any) -> bool:
    return a.shape == b.shape and np.allclose(a, b, atol=1e-8 * np.abs(b).max())


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_the_right_modules_are_right(style: Style) -> None:
    for size in (style.sizes[0], style.sizes[-1]):
        module = style.right(np.random.default_rng(0), "float64", size)
        module = with_good_weights(module, seed=1)
        n_heads = heads_of(module)
        told = 0
        for name, probe in probes(size[0], seed=2).items():
            out = asked(style, module, probe)
            if out is not None and policy(style.intent, name):
                known = features_of(style, module)
                right = expected(style.read(module), known, n_heads, probe)
                assert close(out, right), (size, name)
                told += 1
        assert told >= 3


def test_the_formula_of_these_tests_is_attnlib_s() -> None:
    module = SPLIT_CONCAT.right(np.random.default_rng(0), "float64", (24, 3))
    read = SPLIT_CONCAT.read(with_good_weights(module, seed=1))
    probe = probes(24, seed=2)["cross mask"]
    plain = {name: value for name, value in read.items() if name.startswith("W")}
    ours = expected(plain, {}, 3, probe)
    matrices = [as_array(plain[f"W_{name}"]) for name in "qkvo"]
    memory, mask = as_array(probe.memory), probe.mask.numpy()[:, None]
    theirs = multi_head(as_array(probe.x), *matrices, 3, memory=memory, mask=mask)
    assert close(ours, theirs.out)


@pytest.mark.parametrize("specimen", WRONG, ids=lambda specimen: specimen.name)
def test_every_wrong_module_is_wrong(specimen: ModuleSpecimen) -> None:
    if specimen.codes & {"M35"} and specimen.intent.get("dtype"):
        pytest.skip("tested in float16")
    style = specimen.of
    for size in (specimen.choice[0], specimen.choice[-1]):
        right = style.right(np.random.default_rng(0), "float64", size)
        right = with_good_weights(right, seed=1)
        rng = np.random.default_rng(0)
        wrong = seeded(
            lambda size=size: style.build(specimen.cls, *size), rng, "float64"
        )
        wrong.load_state_dict(dict(right.named_parameters()), strict=False)
        known = features_of(style, right)
        assert any(
            differs(style, right, wrong.train(mode), probe, known)
            for mode in ((True, False) if "M43" in specimen.codes else (False,))
            for name, probe in probes(size[0], seed=2).items()
            if policy(specimen.intent, name)
        ), size


def differs(style: Style, right: Any, wrong: Any, probe: Probe, known: Any) -> bool:
    reference = asked(style, right, probe)
    if reference is None:
        return False
    truth = expected(style.read(right), known, heads_of(right), probe)
    try:
        out = asked(style, wrong, probe)
    except (RuntimeError, ValueError, AssertionError):  # it refuses what it should take
        return True
    return not close(out, truth)


@pytest.mark.parametrize(
    "specimen",
    [s for s in WRONG if s.intent.get("dtype") == "float16"],
    ids=lambda specimen: specimen.name,
)
def test_the_half_ones_overflow_where_float16_could_hold_it(
    specimen: ModuleSpecimen,
) -> None:
    module = specimen.make(np.random.default_rng(0), "float32")
    assert next(module.parameters()).dtype == torch.float16
    with_good_weights(module, seed=1).half()
    d_model = next(w for w in module.parameters() if w.ndim == 2).shape[1]
    x = torch.randn(2, 5, d_model, generator=torch.Generator().manual_seed(0))
    out = specimen.of.call(module, Probe((200 * x).half()))
    assert not torch.isfinite(out).all()
    assert torch.isfinite(specimen.of.call(module, Probe(x.half()))).all()


def test_each_mistake_is_made_in_two_styles_at_least() -> None:
    names = Counter(specimen.name for specimen in WRONG)
    assert max(names.values()) == 1
    assert len(WRONG) >= 100
    styles: dict[str, set[str]] = {}
    for specimen in WRONG:
        (code,) = specimen.codes
        styles.setdefault(code, set()).add(specimen.style)
    assert all(len(found) >= 2 for found in styles.values())
    wanted = {*range(1, 13), *range(14, 24), 26, 27, *range(31, 39), 43, 46, 47}
    assert {int(code[1:]) for code in styles} == wanted


def test_a_specimen_is_drawn_from_its_generator_alone() -> None:
    for specimen in (*WRONG[::17], *switchboard_module.SPECIMENS[::60]):
        torch.manual_seed(3)
        before = torch.get_rng_state()
        one, two = (
            specimen.make(np.random.default_rng(5), "float64").state_dict()
            for _ in range(2)
        )
        assert torch.equal(before, torch.get_rng_state())
        assert all(torch.equal(one[name], two[name]) for name in one)


@pytest.mark.parametrize("board", switchboard_module.BOARDS)
def test_the_switched_module_at_rest_is_right(board: str) -> None:
    features = {k: v for k, v in switchboard_module.BOARDS[board].items() if v}
    for size in switchboard_module.CHOICES[board][::2]:
        module = with_good_weights(switchboard_module.built(board, size, {}), seed=1)
        if "qk_norm" in features:
            gains = {"q_gain": module.q_norm.weight, "k_gain": module.k_norm.weight}
            features |= {name: as_array(gain) for name, gain in gains.items()}
            features["norm"] = "rms"
        read = linears(module.q_lin, module.k_lin, module.v_lin, module.out_lin)
        for probe in probes(size[0], seed=2).values():
            if probe.memory is not None and board != "plain":
                continue
            out = module(probe.x, probe.memory, probe.mask, probe.padding)
            assert close(as_array(out), expected(read, features, size[1], probe))


def test_a_pair_tells_more_than_its_parts() -> None:
    assert switchboard_module.hidden() == switchboard_module.HIDDEN
    sizes = Counter(len(s.codes) for s in switchboard_module.SPECIMENS)
    assert sizes[2] >= 150
    assert max(Counter(s.name for s in switchboard_module.SPECIMENS).values()) == 1
