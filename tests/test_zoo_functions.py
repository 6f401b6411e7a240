"""Every wrong function of the zoo is wrong, in just the way its code says."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from zoo_fingerprints import FINGERPRINTS
from zoo_probes import PROBES, Patient, fails, patient, right

FILES = (
    *("numpy", "softmax", "torch", "masks", "masks_torch", "causal", "padding"),
    *("tiles", "extras", "half", "calls"),
)
ZOO = "benchmarks.zoo"
SINGLES = [s for name in FILES for s in import_module(f"{ZOO}.wrong_{name}").SPECIMENS]
pytestmark = pytest.mark.filterwarnings("ignore")  # what wrong code warns of


def test_there_are_enough_of_them_and_each_code_has_several_styles():
    assert len(SINGLES) >= 120
    assert len({s.name for s in SINGLES}) == len(SINGLES)
    styles: dict[str, set[str]] = {}
    for specimen in SINGLES:
        for code in specimen.codes:
            styles.setdefault(code, set()).add(specimen.style)
    assert styles.keys() == FINGERPRINTS.keys()
    assert {code for code, found in styles.items() if len(found) < 2} == set()


def examined(specimen, dtype="float64", seed=1):
    function = specimen.make(np.random.default_rng(seed), dtype)
    if "dtype" in specimen.intent:
        tensors = "torch" in str(getattr(function, "__globals__", {}).get("F", ""))
        found = Patient(function, specimen.intent, 4)
        found.tensors = tensors or not works_on_arrays(function)
        return found
    return patient(function, specimen.intent)


def works_on_arrays(function):
    try:
        function(*np.ones((3, 1, 1, 2, 2), np.float16))
    except Exception:
        return False
    return True


@pytest.mark.parametrize("specimen", SINGLES, ids=lambda s: s.name)
def test_a_wrong_function_shows_the_fingerprint_of_its_code(specimen):
    p = examined(specimen)
    for code in specimen.codes:
        assert FINGERPRINTS[code](p, np.random.default_rng(5)), code


@pytest.mark.parametrize("specimen", SINGLES, ids=lambda s: s.name)
def test_a_wrong_function_is_wrong_in_float32_and_with_other_numbers(specimen):
    if "dtype" in specimen.intent or specimen.codes & {"M14", "M45"}:
        pytest.skip("its fingerprint says it all")
    for seed in range(3):
        p = examined(specimen, "float32", seed)
        wrong = [n for n in PROBES if fails(p, n, np.random.default_rng(seed), 3e-4)]
        assert wrong, seed


@pytest.mark.parametrize("code", FINGERPRINTS)
def test_a_right_function_has_no_fingerprint(code):
    intent = {
        "M32": {"window": 3},
        "M35": {"dtype": "float16"},
        "M37": {"softcap": 2.0},
        "M38": {"qk_norm": True},
    }.get(code, {"causal": True} if code in ("M16", "M18", "M19") else {})
    p = Patient(lambda *qkvm: judge(intent, *qkvm), intent, 4, masks=True)
    assert not FINGERPRINTS[code](p, np.random.default_rng(5))


def judge(intent, q, k, v, mask=None):
    return right(q, k, v, mask, intent)


def test_another_layout_is_right_in_that_layout():
    """M24: attention of (batch, n, heads, d), handed (batch, heads, n, d)."""
    specimens = import_module(f"{ZOO}.wrong_axes").SPECIMENS
    layouts = [s for s in specimens if s.codes == {"M24"}]
    assert len({s.style for s in layouts}) >= 2
    rng = np.random.default_rng(3)
    q, k, v = (rng.normal(size=(2, 3, 5, 4)) for _ in "qkv")
    turned = [np.swapaxes(x, 1, 2).copy() for x in (q, k, v)]
    for specimen in layouts:
        call = patient(specimen.make(rng, "float64"), specimen.intent)
        wanted = right(q, k, v, None, {})
        assert np.allclose(np.swapaxes(call(*turned), 1, 2), wanted), specimen.name
        assert not np.allclose(call(q, k, v), wanted), specimen.name
