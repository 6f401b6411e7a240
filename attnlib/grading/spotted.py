"""What a teacher may want to know of an answer, and no zero: what was taken ready-made.

And of a missing answer: where it may be instead.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

from attnlib.grading.statements import Program, Statement

_READY = {
    "scaled_dot_product_attention": "torch's scaled_dot_product_attention",
    r"_scaled_dot_product\w+": "what torch's scaled_dot_product_attention stands on",
    "MultiheadAttention": "torch's nn.MultiheadAttention",
    "multi_head_attention_forward": "torch's multi_head_attention_forward",
    "_native_multi_head_attention": "what torch's nn.MultiheadAttention stands on",
    r"Transformer(?:(?:En|De)coder(?:Layer)?)?": "torch's nn.Transformer",
    "flex_attention": "torch's flex_attention",
}
# By these a name can be made while the answer runs, that nobody reads.
_UNREAD = re.compile(
    r"(?<![.\w])(?:__import__|eval|exec|getattr|globals|vars)(?=\s*\()|"
    r"\b(?:__(?:builtins|dict|getattribute|globals|loader|wrapped)__|attrgetter|"
    r"import_module|methodcaller|sys\.modules)\b"
)


def taken(statements: list[Statement], name: str, solution: str) -> Iterator[str]:
    """What was taken ready-made, that the exercise's own solution does not take.

    Args:
        statements: what the answer is made of.
        name: of the exercise.
        solution: the source of its solution.
    """
    imports = [s for s in statements if s.kind in ("import", "star")]
    rest = "\n".join(s.source for s in statements if s not in imports)
    uses: dict[str, set[str]] = {}
    for use in re.findall(r"[^\W\d]\w*(?:\.\w+)*", rest):
        uses.setdefault(use.split(".")[0], set()).add(use)
    whole = "\n".join([rest, *(s.source for s in imports)])
    for word, spoken in _READY.items():
        if re.search(rf"\b{word}\b", whole) and not re.search(word, solution):
            yield f"It uses {spoken}."
    ways = {found[0] for found in _UNREAD.finditer(whole)}
    if ways:
        yield f"It may use what is not written in it: it has {_listed(ways)}."
    bound_so = any("attnlib" in statement.binds for statement in imports)
    if "attnlib" in uses and not bound_so:
        # An import in a function, or by its name.
        yield "It uses something of attnlib's own."
    for statement in imports:
        if not re.match(r"(?:from|import)\s+attnlib\b", statement.source):
            continue
        if statement.kind == "star":
            yield "It uses names that attnlib gives (import *)."
        for bound in sorted(statement.binds):
            fresh = sorted(u for u in uses.get(bound, set()) if u not in solution)
            if fresh or bound == name:
                yield f"It uses attnlib's own {', '.join(fresh[:3]) or name}."


def _listed(words: set[str]) -> str:
    return ", ".join(sorted(words)[:3])


def alike(program: Program, name: str) -> Iterator[str]:
    """Where a missing answer may be: under another name, or inside a function."""
    functions = [s for s in program.statements if s.kind == "def"][:2_000]
    defined = {n: s for s in functions for n in sorted(s.binds)}
    plain = {n.casefold().replace("_", ""): n for n in defined}
    close = difflib.get_close_matches(
        name.casefold().replace("_", ""), list(plain), n=1, cutoff=0.85
    )
    for found in close:
        there = plain[found]
        yield f"There is a function {there} in cell {defined[there].cell}."
    for statement in program.statements:
        inside = re.search(
            rf"^[ \t]+def {re.escape(name)}\b", statement.source, re.MULTILINE
        )
        if inside:
            yield f"{name} stands inside another block, in cell {statement.cell}."
            break
