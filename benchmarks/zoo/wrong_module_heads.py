"""Modules that split, merge, group or place their heads wrongly: one change each."""

from __future__ import annotations

from .module_bands import ONE_KEY
from .module_eyes import COAT, CROSS, STUDENT, VIT
from .module_gpt import GPT2, NANO
from .module_hub import BERT, LLAMA, MISTRAL
from .module_kit import GROUPED
from .module_norms import QWEN
from .module_papers import ANNOTATED, SPLIT_CONCAT
from .module_raw import IN_PROJ, LENS, MATRICES

SPLIT = (
    SPLIT_CONCAT.wrong(
        "M20",
        "view without transpose",
        (
            "(batch, length, self.n_head, d).transpose(1, 2)",
            "(batch, self.n_head, length, d)",
        ),
    ),
    ANNOTATED.wrong(
        "M20",
        "view without transpose",
        (
            "view(n, -1, self.h, self.d_k).transpose(1, 2)",
            "view(n, self.h, -1, self.d_k)",
        ),
    ),
    CROSS.wrong(
        "M20",
        "reshape without transpose",
        (
            "t.reshape(b, t.shape[1], h, -1).transpose(1, 2)",
            "t.reshape(b, h, t.shape[1], -1)",
        ),
    ),
    MATRICES.wrong(
        "M20",
        "view without transpose",
        (
            "x.unflatten(-1, (self.n_heads, self.d_k)).transpose(-3, -2)",
            "x.reshape(*x.shape[:-2], self.n_heads, x.shape[-2], self.d_k)",
        ),
    ),
    SPLIT_CONCAT.wrong(
        "M21",
        "view without transpose",
        (
            "tensor.transpose(1, 2).contiguous().view(batch, length, h",
            "tensor.contiguous().view(batch, length, h",
        ),
    ),
    ANNOTATED.wrong(
        "M21",
        "view without transpose",
        ("x = x.transpose(1, 2).contiguous()", "x = x.contiguous()"),
    ),
    NANO.wrong(
        "M21",
        "view without transpose",
        ("y.transpose(1, 2).contiguous()", "y.contiguous()"),
    ),
    VIT.wrong(
        "M21", "reshape without transpose", ("x.transpose(1, 2).reshape", "x.reshape")
    ),
    GPT2.wrong(
        "M21",
        "view without permute",
        (
            "        tensor = tensor.permute(0, 2, 1, 3).contiguous()\n"
            "        return tensor.view(*tensor.shape[:-2], self.embed_dim)",
            "        b, h, n, d = tensor.shape\n"
            "        return tensor.contiguous().view(b, n, self.embed_dim)",
        ),
    ),
    SPLIT_CONCAT.wrong(
        "M22",
        "interleaved going in",
        ("self.n_head, d).transpose(1, 2)", "d, self.n_head).permute(0, 3, 1, 2)"),
    ),
    SPLIT_CONCAT.wrong(
        "M22",
        "interleaved both ways",
        ("self.n_head, d).transpose(1, 2)", "d, self.n_head).permute(0, 3, 1, 2)"),
        (
            "tensor.transpose(1, 2).contiguous()",
            "tensor.permute(0, 2, 3, 1).contiguous()",
        ),
    ),
    STUDENT.wrong(
        "M22",
        "every n_heads-th feature",
        (
            "slice(h * self.d_head, (h + 1) * self.d_head)",
            "slice(h, None, self.n_heads)",
        ),
    ),
    STUDENT.wrong(
        "M22",
        "every n_heads-th feature, and back",
        (
            "slice(h * self.d_head, (h + 1) * self.d_head)",
            "slice(h, None, self.n_heads)",
        ),
        ("torch.cat(heads, dim=-1)", "torch.stack(heads, dim=-1).flatten(-2)"),
    ),
    BERT.wrong(
        "M22",
        "interleaved going in",
        (
            "heads = (self.num_attention_heads, self.attention_head_size)",
            "heads = (self.attention_head_size, self.num_attention_heads)",
        ),
        ("*heads).permute(0, 2, 1, 3)", "*heads).permute(0, 3, 1, 2)"),
    ),
    MISTRAL.wrong(
        "M22",
        "merged with the heads inside",
        ('"bhqk,bkhd->bqhd"', '"bhqk,bkhd->bqdh"'),
    ),
    COAT.wrong("M23", "batch_first forgotten", (", batch_first=True", "")),
    VIT.wrong(
        "M23",
        "attends over the batch",
        ("qkv.permute(2, 0, 3, 1, 4)", "qkv.permute(2, 1, 3, 0, 4)"),
        ("x.transpose(1, 2).reshape", "x.permute(2, 0, 1, 3).reshape"),
    ),
    IN_PROJ.wrong(
        "M23",
        "reads (n, batch, d)",
        (
            "        bsz, tgt_len, _ = query.shape\n",
            "        query, key, value = (t.transpose(0, 1) for t in (query,"
            " key, value))\n"
            "        bsz, tgt_len, _ = query.shape\n",
        ),
        (
            "return self.out_proj(out), attn",
            "return self.out_proj(out).transpose(0, 1), attn",
        ),
    ),
    LENS.wrong(
        "M23",
        "batch and positions swapped",
        (
            '        q = torch.einsum("bpm,nmh->bpnh"',
            "        resid = resid.transpose(0, 1)\n"
            '        q = torch.einsum("bpm,nmh->bpnh"',
        ),
        ('torch.einsum("bqnh,nhm->bqm", z', 'torch.einsum("bqnh,nhm->qbm", z'),
    ),
)

TILE = {"sizes": tuple(size for size in GROUPED if size[1] > 2)}
GROUPS = (
    LLAMA.wrong(
        "M33",
        "tiled",
        (
            "    hidden_states = hidden_states[:, :, None].expand(b, n_kv,"
            " n_rep, n, d)\n",
            "    hidden_states = hidden_states.repeat(1, n_rep, 1, 1)\n",
        ),
    ),
    QWEN.wrong(
        "M33",
        "concatenated",
        (
            "k = repeat_kv(k, self.num_heads // self.num_key_value_heads)",
            "k = torch.cat([k] * (self.num_heads // self.num_key_value_heads), 1)",
        ),
        (
            "v = repeat_kv(v, self.num_heads // self.num_key_value_heads)",
            "v = torch.cat([v] * (self.num_heads // self.num_key_value_heads), 1)",
        ),
    ),
    ONE_KEY.wrong(
        "M33",
        "groups on the wrong axis",
        (
            "q = self.W_q(x).view(b, n, self.n_kv_heads, group, self.d_k)",
            "q = self.W_q(x).view(b, n, group, self.n_kv_heads,"
            " self.d_k).transpose(2, 3)",
        ),
        ("(mixed / norm).reshape", "(mixed / norm).transpose(2, 3).reshape"),
        **TILE,
    ),
)

SPECIMENS = (*SPLIT, *GROUPS)
