"""What is said when something cannot be examined: what was wrong, and what to do."""

from __future__ import annotations

HAND_IN = (
    "Hand in a function of q, k, v and a mask, such as "
    "`lambda q, k, v, mask=None: mine(q, k, v, mask)`, or an nn.Module."
)
PLAIN = 160  # characters of an error that are shown


def raised(error: BaseException) -> str:
    """An error in one line."""
    text = " ".join(str(error).split())
    text = text if len(text) <= PLAIN else text[:PLAIN].rstrip() + " ..."
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def listed(shapes: dict[str, tuple[int, ...]]) -> str:
    """q (2, 3), k (4, 3) and v (4, 5)."""
    said = [f"{name} {shape}" for name, shape in shapes.items()]
    return f"{', '.join(said[:-1])} and {said[-1]}" if len(said) > 1 else said[0]
