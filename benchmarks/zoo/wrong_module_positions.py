"""Modules that turn queries and keys by wrong positions, or lean the wrong way."""

from __future__ import annotations

from .module_bands import PRESS
from .module_hub import BLOOM, LLAMA
from .module_norms import CACHED, QWEN
from .module_past import LLAMA_PAST

Q_BY_HALVES = "        q = q * cos + rotate_half(q) * sin\n"
K_BY_HALVES = "        k = k * cos + rotate_half(k) * sin\n"
PAIRS = (
    "        half = self.head_dim // 2\n"
    "        cos, sin = (t[..., :half].repeat_interleave(2, -1) for t in (cos, sin))\n"
)
Q_BY_PAIRS = "        q = q * cos + rotate_pairs(q) * sin\n"
K_BY_PAIRS = "        k = k * cos + rotate_pairs(k) * sin\n"
BOTH = Q_BY_HALVES + K_BY_HALVES
IN_HALVES = (  # CACHED.rotate, with pairs (i, i + d_k / 2)
    ("x.double().unflatten(-1, (-1, 2))", "x.double().unflatten(-1, (2, -1)).mT"),
    (
        "torch.view_as_real(turned).flatten(-2)",
        "torch.view_as_real(turned).mT.flatten(-2)",
    ),
)

CONVENTION = (
    LLAMA.wrong("M26", "k by pairs", (K_BY_HALVES, PAIRS + K_BY_PAIRS)),
    LLAMA.wrong("M26", "pairs for halves", (BOTH, PAIRS + Q_BY_PAIRS + K_BY_PAIRS)),
    QWEN.wrong("M26", "k by pairs", (K_BY_HALVES, PAIRS + K_BY_PAIRS)),
    CACHED.wrong("M26", "halves for pairs", *IN_HALVES),
    CACHED.wrong(
        "M26",
        "k by halves",
        (
            "        k = self.rotate(k, positions)\n",
            "        half = k.unflatten(-1, (2, -1)).mT.flatten(-2)\n"
            "        half = self.rotate(half, positions)\n"
            "        k = half.unflatten(-1, (-1, 2)).mT.flatten(-2)\n",
        ),
    ),
)

OFFSETS = (
    LLAMA.wrong("M27", "only q turned", (K_BY_HALVES, "")),
    QWEN.wrong("M27", "only k turned", (Q_BY_HALVES, "")),
    LLAMA.wrong(
        "M27",
        "k one position ahead",
        (
            K_BY_HALVES,
            "        cos, sin = cos_and_sin(position_ids + 1, self.head_dim, q)\n"
            + K_BY_HALVES,
        ),
    ),
    LLAMA.wrong(
        "M27",
        "position of the batch item",
        (
            "torch.arange(past, past + n, device=q.device)",
            "torch.arange(b, device=q.device)[:, None, None]",
        ),
    ),
    QWEN.wrong(
        "M27",
        "position of the head",
        (
            BOTH,
            "        heads = torch.arange(q.shape[1], device=q.device)[:, None]\n"
            "        cos, sin = cos_and_sin(heads, self.head_dim, q)\n"
            + Q_BY_HALVES
            + "        cos, sin = cos[: k.shape[1]], sin[: k.shape[1]]\n"
            + K_BY_HALVES,
        ),
    ),
    CACHED.wrong(
        "M27",
        "position of the head",
        (
            "torch.arange(past, past + n, device=x.device)",
            "torch.arange(self.n_heads, device=x.device)",
        ),
        ("angle = positions[:, None]", "angle = positions[:, None, None]"),
    ),
    CACHED.wrong(
        "M27", "only k turned", ("        q = self.rotate(q, positions)\n", "")
    ),
    CACHED.wrong(
        "M27", "always from zero", ("torch.arange(past, past + n", "torch.arange(n")
    ),
    LLAMA_PAST.wrong(
        "M27", "always from zero", ("torch.arange(past, past + n", "torch.arange(n")
    ),
    CACHED.wrong(
        "M27",
        "cached keys turned again",
        (
            "            k = torch.cat([cache[0], k], dim=2)\n",
            "            old = torch.arange(past, device=x.device)\n"
            "            k = torch.cat([self.rotate(cache[0], old), k], dim=2)\n",
        ),
    ),
)

NOT_A_POWER = ((12, 3), (24, 3), (24, 6), (30, 3), (30, 6), (48, 6))
SLOPES = (
    BLOOM.wrong(
        "M31",
        "from 2^0",
        ("powers = torch.arange(1, closest + 1)", "powers = torch.arange(closest)"),
        sizes=((12, 2), (12, 4), (16, 8), (48, 4), (64, 8)),
    ),
    BLOOM.wrong(
        "M31",
        "one formula for all counts",
        ("closest = 2 ** math.floor(math.log2(n))", "closest = n"),
        sizes=NOT_A_POWER,
    ),
    BLOOM.wrong(
        "M31",
        "no odd ones out",
        ("torch.arange(1, 2 * closest, 2)", "torch.arange(1, 2 * closest)"),
        sizes=((24, 6), (30, 6), (48, 6), (60, 10)),
    ),
    BLOOM.wrong(
        "M31", "the far are favoured", ("self.slopes.to(q)", "-self.slopes.to(q)")
    ),
    PRESS.wrong(
        "M31",
        "evens first",
        ("[slopes[1::2], slopes[::2]]", "[slopes[::2], slopes[1::2]]"),
        sizes=NOT_A_POWER,
    ),
    PRESS.wrong(
        "M31",
        "not sorted at all",
        ("if _n_heads != n_heads:", "if _n_heads > 16:"),
        ("        return slopes\n", "        return slopes[:n_heads]\n"),
        sizes=NOT_A_POWER,
    ),
    PRESS.wrong(
        "M31",
        "h from zero",
        ("torch.arange(1, _n_heads + 1)", "torch.arange(_n_heads)"),
        sizes=((12, 2), (12, 4), (24, 8), (64, 4)),
    ),
    PRESS.wrong(
        "M31",
        "reversed",
        ("        return slopes\n", "        return slopes.flip(0)\n"),
    ),
)

SPECIMENS = (*CONVENTION, *OFFSETS, *SLOPES)
