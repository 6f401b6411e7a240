"""What can be seen in a module, before anything is computed.

How a module will be called cannot be seen: whether the batch comes first, whether
returned weights are read head by head, in which layout a kernel gets its arrays. What
can be seen is how it is built, and what stands in the source of its `forward`. Each
rule says what it saw; none of them is an accusation.
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

from attnlib.clinic.diseases.seen import SEEN
from attnlib.clinic.report import Finding

LOWEST_HALF = -65504.0
SHAPED = ("Transformer", "TransformerEncoderLayer", "TransformerDecoderLayer")


def library_rules(module: object) -> tuple[Finding, ...]:
    """Read a module's settings and sources for what often goes wrong with libraries.

    caution = a setting, or a call in the source of a class, that often goes wrong

    Args:
        module: an nn.Module; its parts are looked at, too. Nothing of it is called.

    Returns:
        Cautions, each with the number of the mistake that it may lead to (M13, M23,
        M34, M41, M42, M43); none if nothing was seen.

    Raises:
        TypeError: it is no nn.Module.

    Cost: the source of each class is parsed once; no array is touched.
    Source: the reports in `attnlib mistakes M13`, and of the other numbers.
    Lesson: 10.

    >>> import torch
    >>> [c.code for c in library_rules(torch.nn.MultiheadAttention(8, 2))]
    ['M23', 'M42']
    """
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(module, torch.nn.Module):
        kind = type(module).__name__
        raise TypeError(f"An nn.Module is wanted, and this is of type {kind}.")
    found: list[Finding] = []
    for name, part in module.named_modules():
        place = f"{name or 'it'} ({type(part).__name__})"
        found += _settings(torch, place, part)
    found += _sources(module)
    once = {(f.code, f.name): f for f in reversed(found)}
    return tuple(sorted(once.values(), key=lambda f: f.code))


def _settings(torch: Any, place: str, part: Any) -> Iterator[Finding]:
    """What the settings of PyTorch's own modules say."""
    nn = torch.nn
    attends = isinstance(part, nn.MultiheadAttention)
    first = getattr(part, "batch_first", None)
    if first is None and type(part).__name__ in SHAPED:  # it hands the flag on
        inner = [m for m in part.modules() if isinstance(m, nn.MultiheadAttention)]
        first = inner[0].batch_first if inner else None
    if first is False and (attends or type(part).__name__ in SHAPED):
        yield _caution(
            "M23",
            "Tokens come before the batch in PyTorch's attention",
            f"{place} has batch_first=False: it takes (n, batch, d_model).",
            "Handed (batch, n, d_model), the texts of a batch read one another.",
            "If your arrays begin with the batch, say batch_first=True.",
        )
    if attends:
        yield _caution(
            "M42",
            "Weights that are returned are the mean of all heads",
            f"{place} averages them, unless it is called with "
            "average_attn_weights=False.",
            "What single heads do is lost in the mean. Whether you read the weights "
            "cannot be seen here.",
            "average_attn_weights=False, if you read them.",
        )
    if isinstance(part, nn.TransformerEncoder) and part.use_nested_tensor:
        yield _caution(
            "M43",
            "Evaluation cuts off what is padding in every text",
            f"{place} has use_nested_tensor=True.",
            "In eval mode without gradients, with a padding mask, fillers give zeros, "
            "where training computes numbers.",
            "enable_nested_tensor=False gives both the same.",
        )
    call = getattr(part, "_gradient_checkpointing_func", None)
    said = getattr(call, "keywords", {})  # Transformers keep it as a partial
    set_up = call is not None and getattr(part, "gradient_checkpointing", False)
    if set_up and said.get("use_reentrant", True):
        yield _reentrant(f"{place} is set to a reentrant checkpoint.")


def _sources(module: Any) -> Iterator[Finding]:
    """What stands in the source of each class's forward, PyTorch's own left out."""
    kinds = {type(part) for part in module.modules()}
    for kind in sorted(kinds, key=lambda kind: kind.__qualname__):
        if kind.__module__.split(".")[0] == "torch":
            continue
        tree = _tree(kind)
        if tree is None:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                for rule in RULES:
                    finding = rule(kind.__name__, node)
                    if finding is not None:
                        yield finding


def _tree(kind: type) -> ast.AST | None:
    """The source of a class, as far as there is one."""
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(kind)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return None


def _checkpointed(kind: str, call: ast.Call) -> Finding | None:
    if _called(call) != "checkpoint":
        return None
    said = _keyword(call, "use_reentrant")
    if said is None:
        return _reentrant(
            f"{kind} calls checkpoint and does not say which kind; by default it is "
            "the reentrant one."
        )
    if isinstance(said, ast.Constant) and said.value is True:
        return _reentrant(f"{kind} calls checkpoint with use_reentrant=True.")
    return None


def _reentrant(evidence: str) -> Finding:
    return _caution(
        "M41",
        "A reentrant checkpoint",
        evidence,
        "If no input of the checkpointed part needs a gradient, its weights get none.",
        "use_reentrant=False.",
    )


def _dropped(kind: str, call: ast.Call) -> Finding | None:
    """Functions that drop whatever the mode of the module is."""
    name = _called(call)
    asks = any("training" in ast.unparse(a) for a in (*call.args, *call.keywords))
    functional = ast.unparse(call.func).split(".")[0] in ("F", "functional")
    dotted = "functional" in ast.unparse(call.func) or functional
    if name == "dropout" and dotted and not asks:
        return _dropping(f"{kind} calls dropout without training=self.training.")
    chance = _keyword(call, "dropout_p")
    if name == "scaled_dot_product_attention" and chance is not None:
        never = isinstance(chance, ast.Constant) and not chance.value
        if not asks and not never:
            what = ast.unparse(chance)
            return _dropping(f"{kind} hands dropout_p={what} to SDPA.")
    return None


def _dropping(evidence: str) -> Finding:
    return _caution(
        "M34",
        "Weights may be dropped in evaluation, too",
        evidence,
        "A function does not know the mode of the module that calls it.",
        "p if self.training else 0.0",
    )


def _filled(kind: str, call: ast.Call) -> Finding | None:
    """A number that float16 cannot hold, written over hidden scores."""
    if _called(call) not in ("masked_fill", "masked_fill_", "where", "full_like"):
        return None
    for value in call.args:
        number = _number(value)
        if number is not None and -float("inf") < number < LOWEST_HALF:
            return _caution(
                "M13",
                "A fill that float16 cannot hold",
                f"{kind} fills with {ast.unparse(value)}.",
                "float16 ends at -65504: in half precision this is an error.",
                'float("-inf"), and zeros for a row that is empty.',
            )
    return None


RULES: tuple[Callable[[str, ast.Call], Finding | None], ...] = (
    _checkpointed,
    _dropped,
    _filled,
)


def _called(call: ast.Call) -> str:
    return ast.unparse(call.func).split(".")[-1]


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((k.value for k in call.keywords if k.arg == name), None)


def _number(node: ast.expr) -> float | None:
    """A number that stands in the source: -1e9, or -(10 ** 9)."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _number(node.operand)
        return None if inner is None else -inner
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return float(node.value)
    return None


def _caution(code: str, name: str, evidence: str, sentence: str, mend: str) -> Finding:
    return Finding(
        code,
        f"library_{code.lower()}",
        name,
        sentence,
        evidence,
        mend=mend,
        reports=SEEN.get(code, ()),
    )
