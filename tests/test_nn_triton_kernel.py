"""The Triton kernel gives what SDPA gives, run by Triton's interpreter on a CPU.

Without triton all of this is skipped with one sentence.
"""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa
from torch_tools import normal, one_thread  # noqa: F401

from attnlib import masks
from attnlib.nn import Flash, flash_attention, triton_attention

if importlib.util.find_spec("triton") is None:  # not imported: see `interpreter`
    said = "the package triton is not installed: `python -m pip install triton`"
    pytest.skip(said, allow_module_level=True)

NEAR = {torch.float32: 2e-6, torch.float16: 2e-3, torch.bfloat16: 2e-2}


@pytest.fixture(scope="module")
def interpreter():
    """The variable is read when triton is imported, so it is set before."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")
        from attnlib.nn import triton_kernel

        if not triton_kernel.INTERPRETED:
            pytest.skip("another test has imported triton without its interpreter")
        yield


def inputs(n_q, n_k, d_k, d_v, heads=(2, 2), batch=(), dtype=torch.float32):
    n_heads, n_kv = heads
    shapes = ((n_heads, n_q, d_k), (n_kv, n_k, d_k), (n_kv, n_k, d_v))
    return [normal(*batch, *s, seed=i).to(dtype) for i, s in enumerate(shapes)]


def reference(q, k, v, look, scale=None):
    """SDPA and the log-sum-exp in float64, with a dense mask; empty rows are zeros."""
    q, k, v = (x.double() for x in (q, k, v))
    k, v = (x.repeat_interleave(q.shape[-3] // k.shape[-3], -3) for x in (k, v))
    look = torch.as_tensor(look).expand(*q.shape[:-1], k.shape[-2])
    empty = ~look.any(-1, keepdim=True)
    out = sdpa(q, k, v, attn_mask=look | empty, scale=scale).masked_fill(empty, 0)
    scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    return out, scores.masked_fill(~look, -torch.inf).logsumexp(-1)


def same(found, q, k, v, look, scale=None):
    out, log_sum_exp = reference(q, k, v, look, scale)
    near = NEAR[q.dtype]
    assert found.out.dtype == q.dtype
    assert found.log_sum_exp.dtype == torch.float32
    torch.testing.assert_close(found.out.double(), out, rtol=0, atol=near)
    torch.testing.assert_close(
        found.log_sum_exp.double(), log_sum_exp, rtol=0, atol=2e-6
    )


def run(q, k, v, **options):
    return triton_attention(q, k, v, return_log_sum_exp=True, **options)


@pytest.mark.parametrize("dtype", NEAR)
@pytest.mark.parametrize("causal", [False, True])
def test_values_are_those_of_sdpa(interpreter, dtype, causal):
    q, k, v = inputs(70, 100, 20, 24, dtype=dtype)  # tiles are 32: all are ragged
    look = masks.causal(70, 100) if causal else True
    same(run(q, k, v, causal=causal), q, k, v, look)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("n_q", "n_k", "d_k", "d_v"),
    [(1, 1, 1, 1), (32, 64, 16, 32), (33, 1, 3, 40), (1, 65, 17, 16), (90, 40, 8, 4)],
)
def test_whatever_the_sizes(interpreter, n_q, n_k, d_k, d_v, causal):
    """More queries than keys, too: the first of them see nothing, if causal."""
    q, k, v = inputs(n_q, n_k, d_k, d_v, heads=(1, 1))
    look = masks.causal(n_q, n_k) if causal else True
    same(run(q, k, v, causal=causal), q, k, v, look)


def test_256_tokens(interpreter):
    q, k, v = inputs(256, 256, 64, 64, heads=(1, 1))
    same(run(q, k, v, causal=True), q, k, v, masks.causal(256, 256))


@pytest.mark.parametrize("causal", [False, True])
def test_padding_with_a_sequence_of_nothing_else_and_grouped_heads(interpreter, causal):
    q, k, v = inputs(40, 50, 8, 6, heads=(4, 2), batch=(3,))
    padding = masks.padding([50, 33, 0], 50)
    look = padding & masks.causal(40, 50) if causal else padding
    found = run(q, k, v, mask=padding, causal=causal)
    same(found, q, k, v, look)
    assert (found.out[2] == 0).all()
    assert (found.log_sum_exp[2] == -torch.inf).all()


def test_gaps_between_real_keys(interpreter):
    q, k, v = inputs(5, 70, 4, 4, batch=(2,))
    kept = torch.from_numpy(np.random.default_rng(3).random((2, 1, 1, 70)) < 0.3)
    kept[0, ..., :40] = False  # the first tile, and a part of the second
    same(run(q, k, v, mask=kept), q, k, v, kept)


def test_one_mask_for_all_sequences(interpreter):
    q, k, v = inputs(5, 9, 4, 4, batch=(2,))
    kept = torch.arange(9) % 2 == 0
    same(run(q, k, v, mask=kept), q, k, v, kept)


def test_a_mask_that_hides_whole_sequences(interpreter):
    q, k, v = inputs(5, 40, 4, 4, batch=(2,))
    kept = torch.tensor([True, False])[:, None, None, None]
    same(run(q, k, v, mask=kept), q, k, v, kept)


def test_grouped_heads_of_several_sequences(interpreter):
    q, k, v = inputs(7, 40, 4, 3, heads=(6, 2), batch=(2, 2))
    same(run(q, k, v), q, k, v, True)


def test_large_scores_that_rise_neither_overflow_nor_vanish(interpreter):
    q, k, v = inputs(3, 100, 4, 4)
    k = k + torch.linspace(-50, 50, 100)[:, None]
    found = run(q, k, v, scale=3.0)
    out, log_sum_exp = reference(q, k, v, True, 3.0)
    torch.testing.assert_close(found.out.double(), out, rtol=0, atol=5e-4)
    torch.testing.assert_close(
        found.log_sum_exp.double(), log_sum_exp, rtol=1e-6, atol=0
    )


def test_scores_that_are_all_far_below_zero(interpreter):
    q, k, v = inputs(3, 50, 4, 4)
    k = k - 1000 * q.mean((0, 1))
    q = q.mean((0, 1)).expand_as(q)
    found = run(q, k, v)
    out, log_sum_exp = reference(q, k, v, True)
    assert (log_sum_exp < -80).all()
    torch.testing.assert_close(found.out.double(), out, rtol=0, atol=5e-4)
    torch.testing.assert_close(
        found.log_sum_exp.double(), log_sum_exp, rtol=1e-6, atol=0
    )


def test_axes_in_another_order_in_memory(interpreter):
    q, k, v = (x.mT.contiguous().mT for x in inputs(10, 12, 4, 4))
    same(run(q, k, v), q, k, v, True)


@pytest.mark.parametrize(("n_q", "n_k", "d"), [(0, 3, 2), (3, 0, 2), (3, 4, 0)])
def test_nothing_to_compute(interpreter, n_q, n_k, d):
    q, k, v = inputs(n_q, n_k, d, 2)
    found = run(q, k, v)
    theirs = flash_attention(q, k, v, return_log_sum_exp=True)
    torch.testing.assert_close(found.out, theirs.out)
    torch.testing.assert_close(found.log_sum_exp, theirs.log_sum_exp)


def test_what_is_returned(interpreter):
    q, k, v = (x[0] for x in inputs(4, 5, 3, 2))
    out = triton_attention(q, k, v)
    assert out.shape == (4, 2)
    found = run(q, k, v)
    assert isinstance(found, Flash)
    assert found.log_sum_exp.shape == (4,)
    assert torch.equal(found.out, out)


def test_without_gradients_a_parameter_is_a_tensor_like_others(interpreter):
    q, k, v = (x.requires_grad_() for x in inputs(4, 5, 3, 2))
    with torch.no_grad():
        assert not triton_attention(q, k, v).requires_grad


# Compiled, for GPUs that need not be there.

COMPILE = """
import torch
from triton import compile
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from attnlib.nn import triton_kernel
from attnlib.nn.triton_flash import _product, sizes, width

def compiled(arch, dtype, short, d, real):
    tiles, near = sizes(dtype, width(d), False), "*" + short
    types = dict.fromkeys(("q", "k", "v", "out"), near) | {
        "real": "*i8", "log_sum_exp": "*fp32", "scale": "fp32"}
    types |= dict.fromkeys(("n_q", "n_k", "group", "n_heads"), "i32")
    fixed = {"D_K": d, "D_V": d, "WIDTH_K": width(d), "WIDTH_V": width(d),
             "BLOCK_Q": tiles.block_q, "BLOCK_K": tiles.block_k, "CAUSAL": True,
             "PRODUCT": _product(triton_kernel, dtype)}
    fixed |= {} if real else {"real": None}
    types |= dict.fromkeys(fixed, "constexpr")
    found = compile(ASTSource(triton_kernel.flash_kernel, types, fixed),
                    target=GPUTarget("cuda", arch, 32),
                    options={"num_warps": tiles.warps, "num_stages": 2})
    print(found.metadata.shared <= 65536, "mma" in found.asm["ptx"])

compiled(80, torch.float32, "fp32", 64, True)
compiled(80, torch.float16, "fp16", 3, True)
compiled(80, torch.bfloat16, "bf16", 64, True)
compiled(90, torch.float16, "fp16", 128, False)
"""


def test_the_same_kernel_compiles_for_gpus_and_fits_on_them(tmp_path):
    """Half precision is multiplied by tensor cores; float32 is not rounded for them."""
    variables = os.environ | {"TRITON_CACHE_DIR": str(tmp_path)}
    variables.pop("TRITON_INTERPRET", None)
    done = subprocess.run(
        [sys.executable, "-c", COMPILE],
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "True False\n" + 3 * "True True\n"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("dtype", NEAR)
@pytest.mark.parametrize("d", [20, 64, 128, 256])
@pytest.mark.parametrize("causal", [False, True])
def test_values_on_a_gpu(dtype, d, causal):
    given = inputs(300, 333, d, d, heads=(4, 2), batch=(2,), dtype=dtype)
    padding = torch.from_numpy(masks.padding([333, 120], 333))
    moved = [x.cuda() for x in given]
    out = triton_attention(*moved, mask=padding, causal=causal).cpu()
    look = padding & torch.from_numpy(masks.causal(300, 333)) if causal else padding
    theirs, _ = reference(*given, look)
    near = 2 * NEAR[dtype]
    torch.testing.assert_close(out.double(), theirs, rtol=near, atol=near)


# The benchmark, with a CPU in place of the GPU: its numbers mean nothing, but it runs.

QUICK = """
import sys
sys.path.insert(0, sys.argv[1])
import triton_flash
triton_flash.missing = lambda: None
sys.exit(triton_flash.main(["--quick", "--out", sys.argv[2]]))
"""


def test_the_benchmark_runs_and_compares_before_it_times(tmp_path):
    out = tmp_path / "found.json"
    benchmarks = Path(__file__).resolve().parent.parent / "benchmarks"
    done = subprocess.run(
        [sys.executable, "-c", QUICK, benchmarks, out],
        env=os.environ | {"TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    tables = json.loads(out.read_text())
    assert len(tables) == 6
    for title, rows in tables.items():
        assert f"{title}\n" in done.stdout
        if "error" in title:
            assert all(row["reached"] < 5 for row in rows.values())
