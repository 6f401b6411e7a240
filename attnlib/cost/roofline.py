"""The roofline: whether the arithmetic or the memory sets the time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Roofline:
    """The least time that a computation can take on a machine."""

    intensity: float  # FLOPs for each byte moved
    ridge: float  #     the intensity at which the machine does both at full speed
    seconds: float  #   the larger of the two times
    bound: Literal["compute", "memory"]  # which of the two it is
    share: float  #     of the machine's FLOPs a second that can be reached at best


def roofline(
    flops: float,
    bytes_moved: float,
    *,
    flops_per_second: float,
    bytes_per_second: float,
) -> Roofline:
    """Say how fast a computation can be at best, and what holds it back.

    seconds = max(flops / flops_per_second, bytes_moved / bytes_per_second)

    Args:
        flops: what is computed.
        bytes_moved: between the memory and the place of computing.
        flops_per_second: of the machine, at its best.
        bytes_per_second: of its memory.

    Returns:
        Intensity, ridge, time and what sets it; there is no array, hence no shape.

    Raises:
        ValueError: a number is not larger than 0.

    Cost: none worth counting.
    Source: Williams, Waterman and Patterson 2009.
    Lesson: 11.

    >>> decode = roofline(4.0, 4.0, flops_per_second=312e12, bytes_per_second=1.555e12)
    >>> decode.bound, round(decode.ridge), round(decode.share, 3)
    ('memory', 201, 0.005)
    """
    for name, value in (
        ("flops", flops),
        ("bytes_moved", bytes_moved),
        ("flops_per_second", flops_per_second),
        ("bytes_per_second", bytes_per_second),
    ):
        if not value > 0:
            raise ValueError(f"{name} must be larger than 0, but it is {value}.")
    computing, moving = flops / flops_per_second, bytes_moved / bytes_per_second
    return Roofline(
        intensity=flops / bytes_moved,
        ridge=flops_per_second / bytes_per_second,
        seconds=max(computing, moving),
        bound="compute" if computing >= moving else "memory",
        share=min(1.0, computing / moving),
    )
