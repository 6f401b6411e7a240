"""What `triton_attention` asks for and says, with triton and without it.

What its kernel computes is in test_nn_triton_kernel.py.
"""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch_tools import normal

import attnlib.nn
from attnlib.nn import triton_attention
from attnlib.nn.triton_flash import DTYPES, _check_interpreter, sizes, width
from attnlib.shapes import ShapeError

ROOT = Path(__file__).resolve().parent.parent
BENCHMARK = ROOT / "benchmarks" / "triton_flash.py"


def inputs(n_q, n_k, d_k, d_v, batch=(), dtype=torch.float32):
    shapes = ((2, n_q, d_k), (2, n_k, d_k), (2, n_k, d_v))
    return [normal(*batch, *s, seed=i).to(dtype) for i, s in enumerate(shapes)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("widest", [16, 32, 64, 128, 256])
def test_tiles_are_powers_of_2_from_16_up(dtype, widest):
    for side in sizes(dtype, widest, False)[:2]:
        assert side >= 16
        assert side & (side - 1) == 0


@pytest.fixture
def has_triton(monkeypatch):
    """Say whether triton is installed, and with what it was imported."""

    def say(there, variable=None, interpreted=False):
        fake = SimpleNamespace(INTERPRETED=interpreted)
        monkeypatch.setattr(attnlib.nn, "triton_kernel", fake, raising=False)
        monkeypatch.setattr(
            importlib.util, "find_spec", lambda name: object() if there else None
        )
        monkeypatch.delenv("TRITON_INTERPRET", raising=False)
        if variable is not None:
            monkeypatch.setenv("TRITON_INTERPRET", variable)

    return say


def said(error, *given, **options):
    with pytest.raises(error) as caught:
        triton_attention(*given, **options)
    return str(caught.value)


def test_where_triton_is_missing_the_error_says_how_to_get_it(has_triton):
    has_triton(False, "1")
    assert said(ImportError, *inputs(2, 3, 4, 5)) == (
        "triton_attention needs the package triton, and it is not installed: "
        "`python -m pip install triton` brings it (about 1 GB, for Linux)."
    )


@pytest.mark.parametrize("variable", [None, "0", ""])
def test_a_cpu_needs_the_interpreter(has_triton, variable):
    has_triton(True, variable)
    assert said(RuntimeError, *inputs(2, 3, 4, 5)) == (
        "Triton compiles for a GPU, and these tensors lie on the CPU: to run the "
        "kernel there in Triton's interpreter, set the environment variable "
        "TRITON_INTERPRET to 1 before triton is first imported."
    )


def test_the_variable_was_set_too_late(has_triton):
    has_triton(True, "1", interpreted=False)
    assert said(RuntimeError, *inputs(2, 3, 4, 5)) == (
        "TRITON_INTERPRET was set after triton had been imported, which reads it "
        "once: start Python afresh and set it first."
    )


@pytest.mark.parametrize("numpy", ["2.4.0", "2.10.1", "3.0.0"])
def test_an_interpreter_that_stops_in_the_middle_is_not_started(numpy):
    with pytest.raises(ImportError) as error:
        _check_interpreter("3.6.0", numpy)
    assert str(error.value) == (
        f"The interpreter of triton 3.6.0 does not work with NumPy {numpy}: it needs "
        "triton 3.7 or later."
    )
    for triton in ("3.7.0", "3.10.0", "4.0.0+git1"):
        _check_interpreter(triton, numpy)
    _check_interpreter("3.6.0", "2.3.5")


@pytest.mark.parametrize("name", ["q", "k", "v"])
def test_there_is_no_gradient(name):
    given = dict(zip("qkv", inputs(2, 3, 4, 5), strict=True))
    given[name].requires_grad_()
    assert said(RuntimeError, *given.values()) == (
        f"triton_attention has no gradient, and {name} requires one: call it under "
        "torch.no_grad(), or call nn.flash_attention."
    )


def test_float64_is_refused():
    given = inputs(2, 3, 4, 5, dtype=torch.float64)
    assert said(TypeError, *given) == (
        "triton_attention takes float32, float16 and bfloat16, but the dtype of q is "
        "float64; nn.flash_attention takes it."
    )


@pytest.mark.parametrize(("name", "d_k", "d_v"), [("d_k", 257, 3), ("d_v", 3, 257)])
def test_rows_that_are_too_wide_are_refused(name, d_k, d_v):
    assert said(ShapeError, *inputs(2, 3, d_k, d_v)) == (
        f"triton_attention keeps whole rows on the chip, {name} of at most 256, but "
        f"{name}=257; nn.flash_attention takes any."
    )


@pytest.mark.parametrize("shape", [(4, 1, 2, 3), (4, 2, 1, 3), (2, 3)])
def test_other_masks_are_refused(shape):
    mask = torch.ones(shape, dtype=torch.bool)
    assert said(ShapeError, *inputs(2, 3, 4, 5, batch=(4,)), mask=mask) == (
        "triton_attention takes a padding mask, (batch, 1, 1, n_k) with n_k=3, but "
        "this one differs between heads or queries; nn.flash_attention takes any."
    )


def test_what_flash_attention_says_of_sizes_is_said_here():
    q, k, v = inputs(2, 3, 4, 5)
    assert said(ShapeError, q, k, v[:, :2]).endswith("k and v must agree in n_k.")
    assert said(TypeError, q, k, v.half()) == (
        "q, k and v must have one dtype, but they have float32, float32 and float16."
    )


def test_triton_is_not_loaded_before_it_is_asked_for():
    code = "import sys, attnlib.nn; print('attnlib.nn.triton_kernel' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


def test_rows_get_room_for_a_power_of_2_from_16_up():
    found = {d: width(d) for d in (0, 1, 16, 17, 64, 65, 256)}
    assert found == {0: 16, 1: 16, 16: 16, 17: 32, 64: 64, 65: 128, 256: 256}


# The benchmark.


def test_the_benchmark_says_in_one_sentence_that_it_needs_a_gpu():
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device here")
    done = subprocess.run(
        [sys.executable, BENCHMARK], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "There is no CUDA device here: this benchmark needs one.\n"
