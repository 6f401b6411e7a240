"""Modules whose roles, matrices or last steps are mixed up: one change each."""

from __future__ import annotations

from .module_eyes import STUDENT, VIT
from .module_gpt import GPT2, HEADS, NANO, NEOX
from .module_hub import BERT
from .module_papers import ANNOTATED, BATCH_MAJOR, SPLIT_CONCAT
from .module_raw import IN_PROJ, KERNEL, LENS, MATRICES

ROLES = (
    LENS.wrong(
        "M46",
        "scores transposed",
        ('"bqnh,bknh->bnqk", q, k', '"bqnh,bknh->bnqk", k, q'),
    ),
    ANNOTATED.wrong(
        "M46",
        "key asks",
        (
            "torch.matmul(query, key.transpose(-2, -1))",
            "torch.matmul(key, query.transpose(-2, -1))",
        ),
    ),
    MATRICES.wrong("M46", "keys as values", ("(weights @ v)", "(weights @ k)")),
    KERNEL.wrong("M46", "keys as values", ("attention(q, k, v,", "attention(q, k, k,")),
    MATRICES.wrong(
        "M46", "values from W_k", ("v = memory @ self.W_v", "v = memory @ self.W_k")
    ),
    SPLIT_CONCAT.wrong(
        "M46",
        "values of the queries",
        ("self.w_k(k), self.w_v(v)", "self.w_k(k), self.w_v(q)"),
    ),
    STUDENT.wrong(
        "M46", "transposed weights", ("weights @ v[item]", "weights.T @ v[item]")
    ),
    BATCH_MAJOR.wrong(
        "M46",
        "transposed weights",
        ("torch.bmm(weights, values)", "torch.bmm(weights.transpose(1, 2), values)"),
    ),
    BERT.wrong(
        "M46",
        "query and key swapped",
        (
            "torch.matmul(query_layer, key_layer.transpose(-1, -2))",
            "torch.matmul(key_layer, query_layer.transpose(-1, -2))",
        ),
    ),
    HEADS.wrong(
        "M46", "value of the key matrix", ("v = self.value(x)", "v = self.key(x)")
    ),
    NEOX.wrong(
        "M46",
        "values as keys",
        ('"bhqd,bhkd->bhqk", query, key)', '"bhqd,bhkd->bhqk", query, value)'),
    ),
)

LAST_STEPS = (
    MATRICES.wrong(
        "M47",
        "softmax twice",
        (
            "weights = torch.exp(scores)\n",
            "weights = torch.exp(torch.softmax(scores, -1))\n",
        ),
    ),
    ANNOTATED.wrong(
        "M47",
        "softmax twice",
        ("F.softmax(scores, dim=-1)", "F.softmax(F.softmax(scores, dim=-1), dim=-1)"),
    ),
    NANO.wrong(
        "M47",
        "softmax twice",
        ("att = self.attn_dropout(att)", "att = F.softmax(att, dim=-1)"),
    ),
    VIT.wrong(
        "M47",
        "projection never called",
        ("self.proj_drop(self.proj(x))", "self.proj_drop(x)"),
    ),
    NANO.wrong("M47", "projection never called", ("return self.c_proj(y)", "return y")),
    HEADS.wrong(
        "M47",
        "projection never called",
        ("self.dropout(self.proj(out))", "self.dropout(out)"),
    ),
    SPLIT_CONCAT.wrong(
        "M47",
        "no output matrix",
        ("        self.w_concat = nn.Linear(d_model, d_model)\n", ""),
        ("self.w_concat(self.concat(out))", "self.concat(out)"),
    ),
    MATRICES.wrong(
        "M47", "W_o transposed", ("mixed @ self.W_o +", "mixed @ self.W_o.T +")
    ),
    GPT2.wrong(
        "M47",
        "c_proj transposed",
        (
            "self.c_proj(self._merge_heads(weights @ value))",
            "self._merge_heads(weights @ value) @ self.c_proj.weight.T +"
            " self.c_proj.bias",
        ),
    ),
    MATRICES.wrong(
        "M47", "W_v transposed", ("memory @ self.W_v +", "memory @ self.W_v.T +")
    ),
    MATRICES.wrong(
        "M47", "b_o forgotten", ("mixed @ self.W_o + self.b_o", "mixed @ self.W_o")
    ),
    IN_PROJ.wrong(
        "M47", "b_q forgotten", ("F.linear(query, w_q, b_q)", "F.linear(query, w_q)")
    ),
    KERNEL.wrong(
        "M47",
        "wv's bias forgotten",
        ("self.wv(memory)", "F.linear(memory, self.wv.weight)"),
    ),
    GPT2.wrong(
        "M47", "biases forgotten", ("x @ self.weight + self.bias", "x @ self.weight")
    ),
)

SPECIMENS = (*ROLES, *LAST_STEPS)
