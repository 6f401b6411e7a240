"""M13, M23, M24, M34, M35, M43: PyTorch's own attention, called or typed wrongly.

PyTorch is imported by the runs, when one is asked for.
"""

from __future__ import annotations

import numpy as np

from attnlib.clinic.diseases.disease import Disease, Shown
from attnlib.clinic.diseases.measured import unseeded
from attnlib.clinic.families.half import half_scores


def _fill() -> Shown:
    import torch

    half = torch.float16
    scores, hidden = torch.zeros(3, dtype=half), torch.tensor([False, True, True])
    right = scores.masked_fill(hidden, -torch.inf)
    try:
        scores.masked_fill(hidden, -1e9)
        said = "no error"
    except RuntimeError as error:
        said = f"RuntimeError: {error}"
    lowest = torch.full((3,), torch.finfo(half).min, dtype=half)
    return Shown(
        "Three scores in float16, two of them hidden. Then a row that is hidden by "
        "two masks of the lowest number of float16, added up, and its softmax.",
        (
            ("filled with -inf, and with -1e9", right.float().numpy(), said),
            (
                "softmax of the lowest number, once and twice",
                lowest.softmax(-1).float().numpy(),
                (lowest + lowest).softmax(-1).float().numpy(),
            ),
        ),
    )


def _batch_first() -> Shown:
    import torch

    def moved(batch_first: bool) -> float:
        heads = torch.nn.MultiheadAttention(8, 2, batch_first=batch_first)
        x = torch.randn(2, 3, 8)
        other = x.clone()
        other[0] += 1
        outs = [heads(a, a, a, need_weights=False)[0][1] for a in (x, other)]
        return float((outs[0] - outs[1]).abs().max())

    with unseeded(), torch.no_grad():
        right, wrong = moved(True), moved(False)
    return Shown(
        "x of shape (batch 2, n 3, d_model 8) goes into nn.MultiheadAttention with "
        "batch_first=True, and without. Item 0 is changed.",
        (("how far item 1 moves", right, wrong),),
    )


def _layout() -> Shown:
    import torch

    with unseeded():
        q, k, v = (torch.randn(2, 1, 4, 3) for _ in range(3))  # (batch, n, heads, d)
        attend = torch.nn.functional.scaled_dot_product_attention
        wrong = attend(q, k, v)
        turned_q, turned_k, turned_v = (a.transpose(1, 2) for a in (q, k, v))
        right = attend(turned_q, turned_k, turned_v).transpose(1, 2)
    return Shown(
        "A single token with four heads, in the layout of flash-attn, (batch, n, "
        "n_heads, d), goes into PyTorch's scaled_dot_product_attention. With one "
        "token the output must be v.",
        (
            (
                "how far the output is from v",
                float((right - v).abs().max()),
                float((wrong - v).abs().max()),
            ),
        ),
    )


def _dropout() -> Shown:
    import torch

    attend = torch.nn.functional.scaled_dot_product_attention
    with unseeded():
        q, k = torch.randn(1, 5, 4), torch.randn(1, 5, 4)
        eye = torch.eye(5)[None]  # as values: then out is the weights
        right = [attend(q, k, eye) for _ in range(2)]
        wrong = [attend(q, k, eye, dropout_p=0.5) for _ in range(2)]
    return Shown(
        "Five tokens, twice the same call, outside training: dropout_p=0, and "
        "dropout_p=0.5.",
        (
            (
                "largest difference of the two calls",
                float((right[0] - right[1]).abs().max()),
                float((wrong[0] - wrong[1]).abs().max()),
            ),
            (
                "sum of each row of weights",
                right[0][0].sum(-1).numpy().round(6),
                wrong[0][0].sum(-1).numpy().round(6),
            ),
        ),
    )


def _overflow() -> Shown:
    d_k = 128
    q, k = np.full((1, d_k), 23.0), np.full((1, d_k), 23.0)
    mask = np.ones((1, 1), dtype=bool)
    late = frozenset(["raw_overflow"])
    return Shown(
        "q and k are 23 throughout, d_k = 128, in float16, whose largest number is "
        "65504. Right: scaled before it is stored. Wrong: q·k is stored first.",
        (
            ("q·k, exactly", "", float((q @ k.T)[0, 0])),
            (
                "score",
                float(half_scores(q, k, mask)[0, 0]),
                float(half_scores(q, k, mask, faults=late)[0, 0]),
            ),
        ),
    )


def _fast_path() -> Shown:
    import torch

    mha = torch.backends.mha
    before = mha.get_fastpath_enabled()
    with unseeded():
        heads = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval()
        x = torch.randn(2, 3, 8)
    padding = torch.tensor([[False, False, False], [True, True, True]])

    def broken(fast: bool) -> int:
        mha.set_fastpath_enabled(fast)
        out = heads(x, x, x, key_padding_mask=padding, need_weights=False)[0]
        return int(out.isnan().sum())

    try:
        with torch.no_grad():
            right, wrong = broken(False), broken(True)
    finally:
        mha.set_fastpath_enabled(before)
    return Shown(
        "nn.MultiheadAttention in eval mode without gradients. The second sentence is "
        "padding throughout. Right: without the fast path. Wrong: with it.",
        (("NaN in the output, of 48 numbers", right, wrong),),
    )


DISEASES = (
    Disease(
        "M13",
        "The fill does not fit into float16, or is added twice",
        "library",
        "An error about overflow as soon as the model is made half; or NaN.",
        "The fill -1e9 in float16, and two masks of the lowest number added up.",
        "float16 ends at 65504. -inf fits into every type. The lowest number of the "
        "type fits too, but twice of it is -inf, and a row of -inf gives NaN.",
        (
            "What is the lowest number of float16?",
            "What is the sum of two masks that each hold it?",
            "Fill with -inf, or join the masks as truth values and fill once.",
        ),
        _fill,
    ),
    Disease(
        "M23",
        "The batch is taken for the sequence: batch_first is missing",
        "library",
        "It trains. The outputs of an item depend on who else is in the batch.",
        "Item 0 of a batch is changed. Item 1 should not move. Here it does.",
        "`nn.MultiheadAttention` expects (n, batch, d_model) unless it is made with "
        "batch_first=True. Otherwise it attends over the items of the batch.",
        (
            "Which axis of your input counts the tokens, and which does the module "
            "take for it?",
            "Change one item of the batch. What else changes?",
            "Make the module with batch_first=True.",
        ),
        _batch_first,
    ),
    Disease(
        "M24",
        "The axes of heads and tokens are exchanged between two libraries",
        "library",
        "The shapes fit, the output is wrong, and attention runs across heads.",
        "A single token. Its output should be its value. Here it mixes heads.",
        "flash-attn takes (batch, n, n_heads, d), and PyTorch's "
        "scaled_dot_product_attention takes (batch, n_heads, n, d).",
        (
            "With one token, what must come out?",
            "Which axis does the function that you call attend over?",
            "Swap axes 1 and 2 before the call, and swap them back behind it.",
        ),
        _layout,
    ),
    Disease(
        "M34",
        "Dropout goes on in evaluation",
        "module",
        "The same input gives another output each time, in eval mode too.",
        "Two calls in eval mode. They should be equal, and the rows should sum to 1.",
        "scaled_dot_product_attention is a function and knows no eval mode: it drops "
        "with whatever dropout_p it is handed.",
        (
            "Call it twice after .eval(). Is it the same?",
            "How does a function learn that the module is in eval mode?",
            "dropout_p=self.dropout if self.training else 0.0.",
        ),
        _dropout,
    ),
    Disease(
        "M35",
        "The scores overflow float16",
        "function",
        "inf or NaN in float16, while float32 is fine.",
        "Large q and k. q·k divided by √d_k fits. Here q·k is stored before that, "
        "and is infinite.",
        "float16 ends at 65504, and q·k grows with d_k. Scaling q first keeps the "
        "product small. The softmax is better taken in float32.",
        (
            "What is the largest number in float16?",
            "At which step is the number largest?",
            "Scale q before the product.",
        ),
        _overflow,
    ),
    Disease(
        "M43",
        "Training and evaluation take different paths inside PyTorch",
        "module",
        "NaN or other shapes in evaluation, where training was fine.",
        "The same module with its fast path on and off. The count of NaN should agree.",
        "In eval mode without gradients, `nn.MultiheadAttention` and the encoder "
        "layers may take a faster path with rules of its own for rows that are hidden "
        "throughout.",
        (
            "Does it happen with gradients switched on?",
            "What does torch.backends.mha.set_fastpath_enabled(False) change?",
            "Avoid rows that are hidden throughout, or switch the fast path off.",
        ),
        _fast_path,
    ),
)
