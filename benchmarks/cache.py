"""Decoding with the KV cache: against computing all again, and what a token costs.

One layer, d_model 512, 8 heads of 64 in float32, one text. `--quick` decodes a few
tokens and aims at nothing; a full run writes benchmarks/results/cache.json.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from memory import peak
from ratios import Row, compare, row, threads
from tables import Tables
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention as sdpa

from attnlib.nn import KVCache, MultiHeadAttention, scaled_dot_product

RESULTS = Path(__file__).resolve().parent / "results" / "cache.json"
HEADS, D, D_MODEL = 8, 64, 512


def layer(n_kv_heads: int, dtype: torch.dtype = torch.float32) -> MultiHeadAttention:
    generator = torch.Generator().manual_seed(0)
    made = MultiHeadAttention(
        D_MODEL, HEADS, n_kv_heads=n_kv_heads, generator=generator, dtype=dtype
    )
    return made.eval()


def normal(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(*shape, generator=generator, dtype=dtype)


def decoded(attention: MultiHeadAttention, x: Tensor, **how: int) -> Tensor:
    """Token by token, with a cache."""
    cache = KVCache(**how)
    steps = x.split(1, dim=-2)
    return torch.cat([attention(s, causal=True, cache=cache) for s in steps], dim=-2)


def with_sdpa(attention: MultiHeadAttention, x: Tensor) -> Tensor:
    """The same layer at once, without a cache, as fast as torch has it."""
    heads = [x.unflatten(-1, (-1, D)).transpose(-3, -2) for x in _qkv(attention, x)]
    mixed = sdpa(*heads, is_causal=True, enable_gqa=True)
    out: Tensor = attention.W_o(mixed.transpose(-3, -2).flatten(-2))
    return out


def _qkv(attention: MultiHeadAttention, x: Tensor) -> list[Tensor]:
    return [W(x) for W in (attention.W_q, attention.W_k, attention.W_v)]


def against_none(n: int, every: int, rounds: int, aim: float | None) -> list[Row]:
    """All again for each token: at every so-manieth length, that is, times as many."""
    attention, x = layer(HEADS), normal(1, n, D_MODEL)
    lengths = range(every // 2, n, every)

    def again() -> None:
        for last in lengths:
            attention(x[:, : last + 1], causal=True)

    def again_sdpa() -> None:
        for last in lengths:
            with_sdpa(attention, x[:, : last + 1])

    runs = {
        "cached": lambda: decoded(attention, x),
        "module": again,
        "SDPA": again_sdpa,
    }
    rows = []
    for name in ("module", "SDPA"):
        pair = {key: runs[key] for key in ("cached", name)}
        found = compare(pair, name, rounds=rounds)
        times, slow = every / found["cached"].ratio, found[name].seconds * every
        detail = f"{found['cached'].seconds:.2f} s, without a cache {slow:.1f} s"
        label = f"{n} tokens, times faster than all again by {name}"
        own = aim if name == "module" else None  # SDPA is shown, no aim was set
        rows.append(Row(label, times, own, True, detail))
    exact, x = layer(2, torch.float64), x.double()
    error = (decoded(exact, x) - exact(x, causal=True)).abs().max()
    rows.append(
        Row(
            "  1e10 times the difference to all at once",
            1e10 * float(error),
            1,
            detail=f"largest difference in float64: {error:.1e}",
        )
    )
    return rows


def step(n_kv_heads: int, n: int) -> tuple[Callable[[], object], KVCache]:
    """One more token after n; the same one each time, so that n stays."""
    attention, x = layer(n_kv_heads), normal(1, 1, D_MODEL)
    cache = KVCache(capacity=n + 1)
    cache.append(*(normal(1, n_kv_heads, n, D) for _ in range(2)))
    k, v = cache.k, cache.v

    def call() -> None:
        cache.k, cache.v = k, v
        if cache._room is not None:
            cache._room.filled = n
        attention(x, causal=True, cache=cache)

    return call, cache


def bare(n_kv_heads: int, n: int) -> Callable[[], object]:
    """The least a token needs: four products, and SDPA on a cache that is there."""
    attention, x = layer(n_kv_heads), normal(1, 1, D_MODEL)
    k, v = (normal(1, n_kv_heads, n, D) for _ in range(2))

    def call() -> object:
        q = _qkv(attention, x)[0].view(1, HEADS, 1, D)
        return attention.W_o(sdpa(q, k, v, enable_gqa=True).view(1, 1, D_MODEL))

    return call


def per_token(n_kv_heads: int, lengths: list[int], rounds: int) -> list[Row]:
    """What a token costs more after a long text, beside the least it could."""
    rows, short = [], lengths[0]
    for n in lengths[1:]:
        runs = {
            "bare": bare(n_kv_heads, n),
            "token": step(n_kv_heads, n)[0],
            "short": step(n_kv_heads, short)[0],
            "bare short": bare(n_kv_heads, short),
        }
        found = compare(runs, "bare", rounds=rounds)
        ms = {name: 1000 * ratio.seconds for name, ratio in found.items()}
        more = found["token"].ratio - found["short"].ratio
        least = 1 - found["bare short"].ratio
        detail = (
            f"{ms['token']:.2f} ms, after {short}: {ms['short']:.2f}; at least "
            f"{ms['bare']:.2f}, after {short}: {ms['bare short']:.2f}"
        )
        label = f"{n_kv_heads} KV heads, a token after {n}: what is more / the least"
        rows.append(Row(label, more / least, 1.25, detail=detail))
    return rows


def grouped(n: int, rounds: int) -> list[Row]:
    """One query against a cache of few heads, three ways."""
    rows = []
    for n_kv_heads in (2, 1):
        q, k = normal(1, HEADS, 1, D), normal(1, n_kv_heads, n, D)
        v, group = k.clone(), HEADS // n_kv_heads

        def ours(q: Tensor = q, k: Tensor = k, v: Tensor = v) -> object:
            return scaled_dot_product(q, k, v, grouped=True)

        def theirs(q: Tensor = q, k: Tensor = k, v: Tensor = v) -> object:
            return sdpa(q, k, v, enable_gqa=True)

        def repeated(
            q: Tensor = q, k: Tensor = k, v: Tensor = v, group: int = group
        ) -> object:
            return sdpa(q, *(x.repeat_interleave(group, 1) for x in (k, v)))

        runs = {"ours": ours, "sdpa": theirs, "repeated": repeated}
        found = compare(runs, "sdpa", rounds=rounds)
        title = f"{n_kv_heads} KV heads, one query, {n} keys: "
        rows.append(row(title + "ours / SDPA", found, "ours", 0.85))
        rows.append(row("  keys repeated / SDPA", found, "repeated"))
    return rows


def prepare(n_kv_heads: int, n: int) -> Callable[[], object]:
    torch.set_grad_enabled(False)
    call, _ = step(n_kv_heads, n)
    call()
    return call


def memory(n: int) -> list[Row]:
    """A step of 2 KV heads needs less than their keys: it repeats nothing."""
    keys = 2 * n * D * 4 / 1e6
    mb = peak(prepare, 2, n)
    detail = f"{mb:.1f} MB; the keys of 2 heads {keys:.1f}, repeated {4 * keys:.1f}"
    return [Row(f"a token after {n}: memory / keys", mb / keys, 1, detail=detail)]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="tiny sizes, no aims")
    parser.add_argument("--out", type=Path, help="write the numbers there as JSON")
    given = parser.parse_args(arguments)
    quick = given.quick
    rounds = 1 if quick else 7
    lengths = [16, 64] if quick else [64, 4096, 16384]
    tables = Tables(aims=not quick)
    with torch.no_grad():
        for number in (1,) if quick else (1, 2):
            with threads(number):
                rows = against_none(32 if quick else 256, 8, min(rounds, 3), None)
                if not quick:
                    rows += against_none(1024, 32, 3, 40)
                for n_kv_heads in (8, 2):
                    rows += per_token(n_kv_heads, lengths, rounds)
                rows += grouped(lengths[-1], rounds)
                title = f"{number} thread{'s' * (number > 1)}"
                tables.show(title, rows, counts=number == 1)
    tables.show("peak memory", memory(lengths[-1]))
    return tables.write(given.out or (None if quick else RESULTS))


if __name__ == "__main__":
    raise SystemExit(main())
