"""How much one exercise may use."""

from __future__ import annotations

from dataclasses import asdict, dataclass

MB = 1 << 20


@dataclass(frozen=True)
class Limits:
    """Limits of one exercise.

    Attributes:
        memory: bytes, beyond what NumPy and torch take.
        cpu: seconds of the processor, all calls together: the last resort; each call
            has a limit of its own.
        processes: processes and threads.
        file: bytes of a file, should there be a place to write.
        files: open files.
        printed: bytes that may be printed; nobody reads them.
    """

    memory: int = 2048 * MB
    cpu: int = 600
    processes: int = 64
    file: int = 8 * MB
    files: int = 128
    printed: int = 1024 * MB

    def settings(self) -> dict[str, int]:
        """As the supervisor takes them."""
        return asdict(self)
