"""What the arena says: the score in a line, what got away, checks that are none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnlib.clinic.bugs.bug import LAWS, Bug

if TYPE_CHECKING:
    from attnlib.clinic.arena import Score

HINTED = 5  # so many of what got away are explained; the others only named


def score(of: Score) -> str:
    """One line, and a line for each fault."""
    calls = sum(of.calls)
    line = (
        f"{len(of.caught)} of {len(of.bugs)} caught, {len(of.false_alarms)} of "
        f"{len(of.right)} right ones blamed: score {of.mutation_score:.2f}, "
        f"{calls} call{'' if calls == 1 else 's'}"
    )
    return "\n".join([line, *of.faults])


def got_away(bugs: tuple[Bug, ...]) -> str:
    """What got away: the first ones with a reason and a law, the others by name."""
    lines = []
    for bug in bugs[:HINTED]:
        lines.append(f"- {bug!r}. {bug.why}\n  Law: {LAWS[bug.law]}.")
    rest = ", ".join(map(repr, bugs[HINTED:]))
    if rest:
        lines.append(f"- {rest}")
    return "\n".join(lines)


def no_bool(name: str, value: object) -> str:
    """The answer of a check is no truth value."""
    if value is None:
        return f"`{name}` returned None: its `return` is missing, or not reached."
    kind = type(value).__name__
    an = "an" if kind[0] in "aeiou" or kind == "ndarray" else "a"
    said = f"`{name}` must give True or False, but gave {an} {kind}."
    if getattr(value, "ndim", 0) or isinstance(value, list):
        return f"{said} Is .any() or .all() missing?"
    if hasattr(value, "__float__") and not isinstance(value, bool):
        return f"{said} Compare it with a tolerance, or wrap it in bool()."
    return said


def illegal(name: str, error: str) -> str:
    """A check that calls the attention with what no attention takes."""
    return f"`{name}` calls the attention with what it cannot take: {error}"


def too_slow(name: str, seconds: float, done: int, of: int) -> str:
    """A check that does not end, or only late."""
    stopped = f"`{name}` was stopped after {seconds:g} seconds"
    if not done:
        return f"{stopped}. A loop that never ends?"
    return (
        f"{stopped}, when it had been asked {done} times of {of}: every attention is "
        "shown twice. Make fewer calls, or smaller arrays; or is there a loop that "
        "never ends?"
    )


def too_many_calls(name: str, most: int) -> str:
    """A check that calls without end."""
    return f"`{name}` called one attention more than {most} times."


def unsteady(name: str) -> str:
    """A check that changes its mind."""
    return (
        f"`{name}` answered otherwise when it saw the same attention a second time. "
        "Seed its numbers, and let it remember nothing."
    )
