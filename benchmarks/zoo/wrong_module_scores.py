"""Modules with a wrong scale, softmax, dropout, softcap or norm: one change each."""

from __future__ import annotations

from dataclasses import replace

from .module_bands import CAPPED, ONE_KEY
from .module_eyes import CROSS, STUDENT, VIT
from .module_gpt import GPT2, HEADS, NANO, NEOX
from .module_hub import BERT, BLOOM, LLAMA, MISTRAL
from .module_norms import GEMMA, QWEN, VISION
from .module_papers import ANNOTATED, HEAD_MAJOR, SPLIT_CONCAT
from .module_raw import IN_PROJ, KERNEL, LENS, MATRICES, TILED

SCALE = (
    SPLIT_CONCAT.wrong(
        "M01", "not scaled", ("        score = score / math.sqrt(d_tensor)\n", "")
    ),
    ANNOTATED.wrong("M01", "not scaled", (" / math.sqrt(d_k)", "")),
    NANO.wrong("M01", "not scaled", (" * (1.0 / math.sqrt(k.size(-1)))", "")),
    HEADS.wrong("M01", "not scaled", (" * k.shape[-1] ** -0.5", "")),
    KERNEL.wrong("M01", "scale=1.0", ("p=dropout)", "p=dropout, scale=1.0)")),
    VIT.wrong("M01", "scale never used", ("        q = q * self.scale\n", "")),
    LLAMA.wrong("M01", "not scaled", (" / math.sqrt(self.head_dim)", "")),
    HEADS.wrong("M02", "square root of C", ("k.shape[-1] ** -0.5", "_C**-0.5")),
    VIT.wrong("M02", "dim ** -0.5", ("self.head_dim**-0.5", "dim**-0.5")),
    CROSS.wrong("M02", "dim ** -0.5", ("(dim // heads) ** -0.5", "dim**-0.5")),
    NANO.wrong("M02", "square root of C", ("math.sqrt(k.size(-1))", "C**0.5")),
    IN_PROJ.wrong(
        "M02", "embed_dim", ("(self.embed_dim // h) ** -0.5", "self.embed_dim**-0.5")
    ),
    BERT.wrong(
        "M02",
        "all_head_size",
        ("math.sqrt(self.attention_head_size)", "math.sqrt(self.all_head_size)"),
    ),
    KERNEL.wrong(
        "M03",
        "scaled before SDPA",
        ("(q, k, v, attn", "(q / q.size(-1)**0.5, k, v, attn"),
    ),
    VIT.wrong("M03", "both scaled", ("@ k.transpose(-2, -1)", "@ k.mT * self.scale")),
    MATRICES.wrong("M03", "divided by d_k", ("self.d_k**0.5", "self.d_k")),
    GPT2.wrong("M03", "divided by head_dim", ("self.head_dim**0.5", "self.head_dim")),
    HEAD_MAJOR.wrong(
        "M03", "temperature twice", ("bmm(q, k", "bmm(q / self.temperature, k")
    ),
)

SOFTMAX = (
    SPLIT_CONCAT.wrong(
        "M04", "over the queries", ("Softmax(dim=-1)", "Softmax(dim=2)")
    ),
    HEAD_MAJOR.wrong("M04", "over the queries", ("(attn, dim=2)", "(attn, dim=1)")),
    HEAD_MAJOR.wrong("M04", "over batch and heads", ("(attn, dim=2)", "(attn, dim=0)")),
    HEADS.wrong("M04", "over the queries", ("(wei, dim=-1)", "(wei, dim=1)")),
    VIT.wrong("M04", "over the heads", ("softmax(dim=-1)", "softmax(dim=1)")),
    BERT.wrong(
        "M04",
        "over the queries",
        ("(attention_scores, dim=-1)", "(attention_scores, dim=-2)"),
    ),
    MISTRAL.wrong("M04", "over the queries", ("softmax(-1)", "softmax(2)")),
    BERT.wrong(
        "M05",
        "over heads and keys",
        (
            "nn.functional.softmax(attention_scores, dim=-1)",
            "attention_scores.transpose(1, 2).flatten(2).softmax(-1).unflatten(\n"
            "            2, (self.num_attention_heads, -1)\n"
            "        ).transpose(1, 2)",
        ),
    ),
    IN_PROJ.wrong(
        "M05",
        "over heads and keys",
        (
            "torch.softmax(attn, dim=-1)",
            "F.softmax(attn.transpose(1, 2).flatten(2), -1).view(\n"
            "            bsz, tgt_len, h, src_len\n"
            "        ).transpose(1, 2)",
        ),
    ),
    MATRICES.wrong(
        "M05",
        "summed over heads",
        ("scores.max(-1, keepdim=True).values", "scores.amax((-3, -1), True)"),
        ("weights.sum(-1, k", "weights.sum((-3, -1), k"),
    ),
    NEOX.wrong(
        "M05",
        "over heads and keys",
        (
            "torch.softmax(scores, dim=-1)",
            "scores.permute(0, 2, 1, 3).reshape(b, n, -1).softmax(-1)\n"
            "        probs = probs.view(b, n, -1, n).permute(0, 2, 1, 3)",
        ),
    ),
    MATRICES.wrong(
        "M06",
        "bare exp",
        ("        scores = scores - scores.max(-1, keepdim=True).values\n", ""),
    ),
    CROSS.wrong(
        "M06",
        "bare exp",
        ("        sim = sim - sim.amax(dim=-1, keepdim=True)\n", ""),
        ("sim.softmax(dim=-1)", "sim.exp() / sim.exp().sum(dim=-1, keepdim=True)"),
    ),
    HEADS.wrong(
        "M06",
        "bare exp",
        ("F.softmax(wei, dim=-1)", "torch.exp(wei) / torch.exp(wei).sum(-1, True)"),
    ),
    LENS.wrong(
        "M06",
        "exp and sum by einsum",
        (
            "attn_scores.softmax(-1)",
            "attn_scores.exp()\n"
            '        pattern = pattern / torch.einsum("bnqk->bnq", pattern)[..., None]',
        ),
    ),
    ONE_KEY.wrong(
        "M06",
        "sums without a maximum",
        ("torch.maximum(top[:, j:], score)", "torch.zeros_like(score)"),
        ("torch.exp(top[:, j:] - higher)", "1.0"),
    ),
)

DROPOUT_AND_MODE = (
    KERNEL.wrong(
        "M34",
        "dropout_p always",
        ("self.dropout if self.training else 0.0", "self.dropout"),
    ),
    ANNOTATED.wrong(
        "M34", "F.dropout", ("dropout(p_attn)", "F.dropout(p_attn, p=0.1)")
    ),
    NANO.wrong("M34", "F.dropout", ("self.attn_dropout(att)", "F.dropout(att, 0.1)")),
    HEADS.wrong(
        "M34",
        "F.dropout of the result",
        ("self.dropout(self.proj(out))", "F.dropout(self.proj(out), 0.2)"),
    ),
    VIT.wrong(
        "M43",
        "scaled by dim in training",
        ("q = q * self.scale", "q = q * (C**-0.5 if self.training else self.scale)"),
    ),
    KERNEL.wrong(
        "M43",
        "mask forgotten in training",
        ("attn_mask=mask,", "attn_mask=None if self.training else mask,"),
    ),
    NANO.wrong(
        "M43",
        "the future seen in training",
        (
            "        att = att.masked_fill(",
            "        if not self.training:\n            att = att.masked_fill(",
        ),
    ),
    STUDENT.wrong(
        "M43",
        "not scaled in training",
        (
            "scores / self.d_head**0.5",
            "scores / (1 if self.training else self.d_head**0.5)",
        ),
    ),
    BLOOM.wrong(
        "M43",
        "softmax over the queries in training",
        ("scores.softmax(dim=-1)", "scores.softmax(dim=-2 if self.training else -1)"),
    ),
)


def halved(style, what, *changes):
    """A specimen that works in float16 from its weights on."""
    specimen = style.wrong("M35", what, *changes, intent={"dtype": "float16"})
    make = specimen.make
    return replace(specimen, make=lambda rng, dtype: make(rng, dtype).half())


HALF = (
    halved(NANO, "in float16"),
    halved(SPLIT_CONCAT, "in float16"),
    halved(BERT, "in float16"),
    halved(
        VIT,
        "scaled after the product, in float16",
        ("        q = q * self.scale\n", ""),
        ("k.transpose(-2, -1)", "k.mT * self.scale"),
    ),
    MATRICES.wrong(
        "M35", "product in float16", ("q @ k.mT", "(q.half() @ k.half().mT).to(q)")
    ),
    LENS.wrong(
        "M35",
        "product in float16",
        (
            'attn_scores = torch.einsum("bqnh,bknh->bnqk", q, k)',
            'attn_scores = torch.einsum("bqnh,bknh->bnqk", q.half(), k.half()).to(q)',
        ),
    ),
)

ONLINE = (
    TILED.wrong(
        "M36", "result not rescaled", ("acc = acc * alpha + p", "acc = acc + p")
    ),
    TILED.wrong(
        "M36", "sum not rescaled", ("total = total * alpha +", "total = total +")
    ),
    TILED.wrong(
        "M36",
        "maximum starts at -50",
        (
            "torch.full_like(q[..., :1], -torch.inf)",
            "torch.full_like(q[..., :1], -50.0)",
        ),
    ),
    TILED.wrong("M36", "empty block not guarded", (", -1e30)", ", -torch.inf)")),
    ONE_KEY.wrong(
        "M36", "result not rescaled", ("mixed[:, j:] * fade +", "mixed[:, j:] +")
    ),
    ONE_KEY.wrong("M36", "sum not rescaled", ("norm[:, j:] * fade +", "norm[:, j:] +")),
    ONE_KEY.wrong("M36", "maximum starts at zero", ('-float("inf"))', "0.0)")),
)

CAP_AND_NORM = (
    GEMMA.wrong(
        "M37",
        "cap missing",
        ("        scores = scores / self.attn_logit_softcapping\n", ""),
        ("        scores = torch.tanh(scores) * self.attn_logit_softcapping\n", ""),
    ),
    GEMMA.wrong(
        "M37",
        "cap after the mask",
        ("        scores = scores / self.attn_logit_softcapping\n", ""),
        ("        scores = torch.tanh(scores) * self.attn_logit_softcapping\n", ""),
        (
            '        scores = scores.masked_fill(hidden, float("-inf"))\n',
            '        scores = scores.masked_fill(hidden, float("-inf"))\n'
            "        cap = self.attn_logit_softcapping\n"
            "        scores = torch.tanh(scores / cap) * cap\n",
        ),
    ),
    CAPPED.wrong(
        "M37",
        "cap missing",
        ("        sim = self.softcap * torch.tanh(sim / self.softcap)\n", ""),
    ),
    CAPPED.wrong(
        "M37",
        "cap after the mask",
        ("        sim = self.softcap * torch.tanh(sim / self.softcap)\n", ""),
        (
            "        attn = sim.softmax(dim=-1)\n",
            "        sim = self.softcap * torch.tanh(sim / self.softcap)\n"
            "        attn = sim.softmax(dim=-1)\n",
        ),
    ),
    QWEN.wrong(
        "M38",
        "norms never called",
        ("self.q_norm(q).transpose", "q.transpose"),
        ("self.k_norm(k).transpose", "k.transpose"),
    ),
    QWEN.wrong(
        "M38", "q_norm never called", ("self.q_norm(q).transpose", "q.transpose")
    ),
    VISION.wrong(
        "M38",
        "norms never called",
        ("        q, k = self.q_norm(q), self.k_norm(k)\n", ""),
    ),
    VISION.wrong("M38", "k_norm never called", ("self.k_norm(k)\n", "k\n")),
    VISION.wrong(
        "M38",
        "over the tokens",
        (
            "        q, k = self.q_norm(q), self.k_norm(k)\n",
            "        q = (q - q.mean(2, True)) / q.std(2, keepdim=True, correction=0)\n"
            "        k = (k - k.mean(2, True)) / k.std(2, keepdim=True, correction=0)\n"
            "        q, k = q * self.q_norm.weight, k * self.k_norm.weight\n",
        ),
    ),
    QWEN.wrong("M38", "over the tokens", ("x.pow(2).mean(-1, ", "x.pow(2).mean(1, ")),
)

SPECIMENS = (*SCALE, *SOFTMAX, *DROPOUT_AND_MODE, *HALF, *ONLINE, *CAP_AND_NORM)
