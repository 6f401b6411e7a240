"""The time that all calls of one examination may take together."""

from __future__ import annotations

LIMIT = 3.0  # seconds for one call
LEAST = 0.05  # seconds that a call has when the whole time is spent


class Budget:
    """Counts down from `seconds` by what each call has taken."""

    def __init__(self, seconds: float) -> None:
        self._left = seconds

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return max(0.0, self._left)

    @property
    def for_one(self) -> float:
        """Seconds for the next call."""
        return min(LIMIT, max(LEAST, self.left))

    def spend(self, seconds: float) -> None:
        """A call has taken so long."""
        self._left -= seconds
