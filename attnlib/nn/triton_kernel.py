"""The kernel of `triton_attention`: flash attention, forward, in the language Triton.

`@triton.jit` reads this file, so triton is imported here and nowhere else. Each run
of the kernel takes one block of queries of one head, and lets all its keys and values
pass by. It is `attnlib.nn.flash.forward` once more; only here a tile lies where that
says "near": in the registers and the SRAM of a GPU.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import triton
import triton.language as tl

# Lower than any score, but not as low as what is hidden: no inf - inf.
LOW = tl.constexpr(-1.7e38)
HIDDEN = tl.constexpr(float("-inf"))
LOG_2 = tl.constexpr(0.6931471805599453)


@triton.jit
def flash_kernel(
    q,  # (n_kv_heads * group, n_q, D_K), a pointer like all of these
    k,  # (n_kv_heads, n_k, D_K), where the heads of all sequences stand in a row
    v,  # (n_kv_heads, n_k, D_V)
    real,  # (batch, n_k), or None: which keys are no padding
    out,  # (n_kv_heads * group, n_q, D_V)
    log_sum_exp,  # (n_kv_heads * group, n_q)
    scale,  # times log2(e): exp(x) = exp2(x * log2(e)), and exp2 is the faster one
    n_q,
    n_k,
    group,  # query heads that share a KV head
    n_heads,  # query heads of a sequence
    D_K: tl.constexpr,
    D_V: tl.constexpr,
    WIDTH_K: tl.constexpr,  # D_K and D_V, rounded up to a power of 2
    WIDTH_V: tl.constexpr,
    BLOCK_Q: tl.constexpr,
    BLOCK_K: tl.constexpr,
    CAUSAL: tl.constexpr,
    PRODUCT: tl.constexpr,  # the dtype of what is multiplied; sums are float32
):
    n_blocks = tl.cdiv(n_q, BLOCK_Q)
    head = (tl.program_id(0) // n_blocks).to(tl.int64)  # all numbers may exceed 2^31
    first_q = tl.program_id(0) % n_blocks * BLOCK_Q
    i = first_q + tl.arange(0, BLOCK_Q)
    at_k, at_v = tl.arange(0, WIDTH_K), tl.arange(0, WIDTH_V)
    q += head * n_q * D_K
    k += head // group * n_k * D_K
    v += head // group * n_k * D_V
    # What lies behind an end is loaded as 0, and not stored.
    q_here = (i < n_q)[:, None] & (at_k < D_K)[None, :]
    q_i = tl.load(q + i[:, None] * D_K + at_k[None, :], q_here, 0.0).to(PRODUCT)

    largest = tl.full([BLOCK_Q], LOW, tl.float32)
    total = tl.zeros([BLOCK_Q], tl.float32)
    mixed = tl.zeros([BLOCK_Q, WIDTH_V], tl.float32)
    ahead = n_k - n_q  # query i stands at key i + ahead
    last = n_k
    if CAUSAL:
        last = tl.minimum(n_k, first_q + BLOCK_Q + ahead)
    for first_k in range(0, last, BLOCK_K):
        j = first_k + tl.arange(0, BLOCK_K)
        k_here = (j < n_k)[:, None] & (at_k < D_K)[None, :]
        v_here = (j < n_k)[:, None] & (at_v < D_V)[None, :]
        k_j = tl.load(k + j[:, None] * D_K + at_k[None, :], k_here, 0.0).to(PRODUCT)
        v_j = tl.load(v + j[:, None] * D_V + at_v[None, :], v_here, 0.0).to(PRODUCT)
        look = (j < n_k)[None, :]
        if CAUSAL:
            look = look & (j[None, :] <= i[:, None] + ahead)
        if real is not None:
            kept = tl.load(real + head // n_heads * n_k + j, j < n_k, 0)
            look = look & (kept != 0)[None, :]
        scores = tl.dot(q_i, tl.trans(k_j), input_precision="ieee") * scale
        scores = tl.where(look, scores, HIDDEN)
        before = largest
        largest = tl.maximum(before, tl.max(scores, 1))
        weights = tl.exp2(scores - largest[:, None])
        shrink = tl.exp2(before - largest)
        total = total * shrink + tl.sum(weights, 1)
        mixed = mixed * shrink[:, None]
        mixed += tl.dot(weights.to(PRODUCT), v_j, input_precision="ieee")

    # The largest score alone adds 1 to a sum. Where nothing was seen: 0 / 1.
    seen, total = total > 0, tl.maximum(total, 1.0)
    mixed = mixed / total[:, None]
    log = tl.where(seen, (largest + tl.log2(total)) * LOG_2, HIDDEN)
    out += head * n_q * D_V
    out_here = (i < n_q)[:, None] & (at_v < D_V)[None, :]
    tl.store(out + i[:, None] * D_V + at_v[None, :], mixed, out_here)
    tl.store(log_sum_exp + head * n_q + i, log, i < n_q)


# Whether TRITON_INTERPRET was set when triton was imported, and when this was: each
# reads it once, and a kernel that calls the other kind does not run.
INTERPRETED = not any(isinstance(f, triton.JITFunction) for f in (flash_kernel, tl.max))
VERSION: str = triton.__version__
