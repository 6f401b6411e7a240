"""Modules that read a mask, or make one, in the wrong way: one change each."""

from __future__ import annotations

from .module_bands import BAND, ONE_KEY
from .module_eyes import COAT, CROSS, STUDENT
from .module_gpt import GPT2, HEADS, NANO, NEOX
from .module_hub import BERT, BLOOM, LLAMA, MISTRAL
from .module_kit import NO_SQUARE
from .module_norms import CACHED, GEMMA, QWEN
from .module_papers import ANNOTATED, BATCH_MAJOR, HEAD_MAJOR, SPLIT_CONCAT
from .module_past import CAUSAL_KERNEL, GPT2_PAST, LLAMA_PAST
from .module_raw import IN_PROJ, KERNEL, LENS, MATRICES, TILED

POLARITY_AND_ARITHMETIC = (
    ANNOTATED.wrong("M07", "True is blocked", ("mask == 0", "mask == 1")),
    KERNEL.wrong(
        "M07",
        "mask turned round for SDPA",
        ("attn_mask=mask,", "attn_mask=None if mask is None else ~mask,"),
    ),
    SPLIT_CONCAT.wrong("M07", "True is blocked", ("mask == 0", "mask != 0")),
    COAT.wrong(
        "M07",
        "real tokens given as padding",
        (
            "=key_padding_mask,",
            "=None if key_padding_mask is None else ~key_padding_mask,",
        ),
    ),
    HEADS.wrong("M07", "the past is blocked", ("[:T, :T] == 0", "[:T, :T] == 1")),
    LENS.wrong("M07", "the past is blocked", ("tril().bool()", "triu(1).bool()")),
    MATRICES.wrong("M08", "mask added", ("masked_fill(~mask, -math.inf)", "add(mask)")),
    KERNEL.wrong(
        "M08",
        "mask.float() to SDPA",
        ("attn_mask=mask,", "attn_mask=None if mask is None else mask.to(q),"),
    ),
    HEAD_MAJOR.wrong(
        "M08", "mask added", ("attn.masked_fill(~mask, -torch.inf)", "attn + mask")
    ),
    LLAMA.wrong(
        "M08",
        "padding added as 0 and 1",
        (
            "            allowed = allowed & attention_mask[:, None, None, :].bool()\n",
            "            scores = scores + attention_mask[:, None, None, :]\n",
        ),
    ),
    SPLIT_CONCAT.wrong(
        "M09",
        "multiplied",
        ('score.masked_fill(mask == 0, float("-inf"))', "score * mask"),
    ),
    ANNOTATED.wrong("M09", "1e-9 for -1e9", ("-1e9", "1e-9")),
    NANO.wrong(
        "M09",
        "multiplied",
        (
            'att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))',
            "att * self.bias[:, :, :T, :T]",
        ),
    ),
    MISTRAL.wrong(
        "M09",
        "multiplied",
        ('scores.masked_fill(~seen, float("-inf"))', "scores * seen"),
    ),
    GEMMA.wrong(
        "M09", "filled with zero", ('(hidden, float("-inf"))', "(hidden, 0.0)")
    ),
    NANO.wrong(
        "M10",
        "after the softmax",
        (
            "        att = att.masked_fill(self.bias[:, :, :T, :T] == 0,"
            ' float("-inf"))\n',
            "",
        ),
        ("self.attn_dropout(att)", "att * self.bias[:, :, :T, :T]"),
    ),
    MATRICES.wrong(
        "M10",
        "after the softmax",
        ("            scores = scores.masked_fill(~mask, -math.inf)\n", ""),
        (
            "masked_fill(empty, 0.0)\n        mixed",
            "masked_fill(~mask, 0.0)\n        mixed",
        ),
    ),
    CROSS.wrong(
        "M10",
        "after the softmax",
        ("        sim = sim - sim", "        raw = sim\n        sim = sim - sim"),
        ("            sim = sim.masked_fill(~keep, -torch.finfo(sim.dtype).max)\n", ""),
        (
            "attn = sim.softmax(dim=-1)\n",
            "attn = raw.softmax(dim=-1)\n"
            "        if context_mask is not None:\n"
            "            attn = attn * keep\n",
        ),
    ),
    HEAD_MAJOR.wrong("M11", "filled with -10", ("-torch.inf)", "-10.0)")),
    ANNOTATED.wrong("M11", "filled with -100", ("-1e9", "-100.0")),
    NANO.wrong("M11", "filled with -1e4", ('float("-inf")', "-1e4")),
    LLAMA.wrong("M11", "filled with -1e4", ("torch.finfo(scores.dtype).min", "-1e4")),
    CROSS.wrong("M11", "filled with -1e3", ("-torch.finfo(sim.dtype).max", "-1e3")),
    NANO.wrong(
        "M12",
        "filled before scaling",
        (" * (1.0 / math.sqrt(k.size(-1)))", ""),
        (
            ' == 0, float("-inf"))',
            " == 0, -50.0)\n        att = att / math.sqrt(k.size(-1))",
        ),
        sizes=NO_SQUARE,
    ),
    SPLIT_CONCAT.wrong(
        "M12",
        "filled before scaling",
        ("        score = score / math.sqrt(d_tensor)\n", ""),
        ('float("-inf"))\n', "-100.0)\n        score = score / math.sqrt(d_tensor)\n"),
        sizes=NO_SQUARE,
    ),
    MATRICES.wrong(
        "M12",
        "filled before scaling",
        ("q @ k.mT / self.d_k**0.5", "q @ k.mT"),
        ("(~mask, -math.inf)", "(~mask, -20.0)"),
        (
            "        scores = scores - ",
            "        scores = scores / self.d_k**0.5\n        scores = scores - ",
        ),
        sizes=NO_SQUARE,
    ),
)

EMPTY_ROWS = (
    SPLIT_CONCAT.wrong("M14", "NaN", without=("empty_rows",)),
    ANNOTATED.wrong("M14", "looks everywhere", without=("empty_rows",)),
    HEAD_MAJOR.wrong("M14", "NaN", without=("empty_rows",)),
    BERT.wrong("M14", "looks everywhere", without=("empty_rows",)),
    TILED.wrong("M14", "looks everywhere", without=("empty_rows",)),
    MATRICES.wrong(
        "M14",
        "NaN",
        ("            scores = scores.masked_fill(empty, 0.0)\n", ""),
        (
            "            weights = weights.masked_fill(empty, 0.0)\n",
            "            pass\n",
        ),
    ),
    STUDENT.wrong(
        "M14", "NaN", ("torch.nan_to_num(weights, nan=0.0)", "weights * 1.0")
    ),
    IN_PROJ.wrong("M14", "NaN", (".masked_fill(blocked, 0.0)", "")),
    IN_PROJ.wrong(
        "M14",
        "looks everywhere",
        ('float("-inf")', "-1e9"),
        (".masked_fill(blocked, 0.0)", ""),
    ),
    GEMMA.wrong("M14", "NaN", without=("empty_rows",)),
)

SHAPES = (
    CROSS.wrong("M15", "on the queries", ("[:, None, None, :]", "[:, None, :, None]")),
    LLAMA.wrong("M15", "on the queries", ("[:, None, None, :]", "[:, None, :, None]")),
    IN_PROJ.wrong(
        "M15", "on the queries", (".view(bsz, 1, 1, src_len)", ".view(bsz, 1, -1, 1)")
    ),
    LLAMA.wrong(
        "M16",
        "causal or real",
        ("allowed = allowed & attention", "allowed = allowed | attention"),
    ),
    GEMMA.wrong(
        "M16",
        "hidden only if both say so",
        ("hidden = hidden | (", "hidden = hidden & ("),
    ),
    QWEN.wrong(
        "M16",
        "causal dropped when padded",
        ("allowed = allowed & attention", "allowed = attention"),
    ),
    CAUSAL_KERNEL.wrong(
        "M16",
        "padding dropped when causal",
        ("past if mask is None else mask & past", "past"),
    ),
    CAUSAL_KERNEL.wrong(
        "M16", "causal or mask", ("else mask & past", "else mask | past")
    ),
    LLAMA.wrong(
        "M16",
        "triangle of the padding",
        (
            "allowed & attention_mask[:, None, None, :].bool()",
            "attention_mask[:, None, None, :].bool().tril()",
        ),
    ),
    GPT2.wrong(
        "M16",
        "padding dropped when causal",
        (
            "if attention_mask is not None:",
            "if attention_mask is not None and n_q < n_k:",
        ),
    ),
    HEAD_MAJOR.wrong(
        "M17",
        "repeat_interleave",
        (".repeat(self.n_head, 1, 1)", ".repeat_interleave(self.n_head, 0)"),
    ),
    BATCH_MAJOR.wrong(
        "M17",
        "repeat",
        (
            "torch.repeat_interleave(mask, self.num_heads, dim=0)",
            "mask.repeat(self.num_heads, 1, 1)",
        ),
    ),
    MATRICES.wrong(
        "M17",
        "batch axis on the heads",
        (
            "mask = mask[:, None] if mask.dim() == 3 else mask",
            "mask = mask.reshape(-1, *mask.shape[-2:]).expand(len(x), -1, -1)\n"
            "            mask = mask.repeat(self.n_heads, 1, 1)\n"
            "            mask = mask.unflatten(0, (-1, self.n_heads))",
        ),
    ),
)

DIAGONALS = (
    NANO.wrong(
        "M18",
        "diagonal=-1",
        (
            "torch.tril(torch.ones(block_size, block_size))",
            "torch.tril(torch.ones(block_size, block_size), diagonal=-1)",
        ),
    ),
    LENS.wrong("M18", "one key ahead", (".tril()", ".tril(1)")),
    NEOX.wrong("M18", "triu(0)", ("triu(1)", "triu(0)")),
    LLAMA.wrong("M18", "one key ahead", (".tril(past)", ".tril(past + 1)")),
    BLOOM.wrong("M18", "not itself", ("distance > 0", "distance >= 0")),
    ONE_KEY.wrong(
        "M18",
        "one key ahead",
        ("range(n):", "range(n):\n            i = max(j - 1, 0)"),
        ("(q[:, j:] *", "(q[:, i:] *"),
        ("maximum(top[:, j:],", "maximum(top[:, i:],"),
        ("exp(top[:, j:] -", "exp(top[:, i:] -"),
        ("norm[:, j:] *", "norm[:, i:] *"),
        ("mixed[:, j:] *", "mixed[:, i:] *"),
        ("norm[:, :j]", "norm[:, :i]"),
        ("mixed[:, :j]", "mixed[:, :i]"),
        ("top[:, :j]", "top[:, :i]"),
    ),
    CAUSAL_KERNEL.wrong("M19", "aligned top-left", (".tril(n_k - n_q)", ".tril()")),
    GPT2_PAST.wrong("M19", "aligned top-left", ("[n_k - n_q : n_k]", "[:n_q]")),
    LLAMA_PAST.wrong("M19", "aligned top-left", (".tril(past)", ".tril()")),
    CACHED.wrong("M19", "aligned top-left", (".tril(past)", ".tril()")),
    MISTRAL.wrong("M32", "one key more", ("behind < self", "behind <= self")),
    MISTRAL.wrong(
        "M32",
        "one key less",
        ("(behind < self.sliding_window)", "(behind < self.sliding_window - 1)"),
    ),
    BAND.wrong("M32", "one key more", ("1 - self.window", "-self.window")),
    BAND.wrong("M32", "one key less", ("1 - self.window", "2 - self.window")),
)

SPECIMENS = (*POLARITY_AND_ARITHMETIC, *EMPTY_ROWS, *SHAPES, *DIAGONALS)
