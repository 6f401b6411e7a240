"""The time that all calls of one examination may take together."""

from __future__ import annotations

import time

LIMIT = 3.0  # seconds for one call
LEAST = 0.05  # seconds that a call has when the whole time is spent


class Budget:
    """Counts down from `seconds`."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return max(0.0, self._end - time.monotonic())

    @property
    def for_one(self) -> float:
        """Seconds for the next call."""
        return min(LIMIT, max(LEAST, self.left))
