"""What a right attention may do besides: found out or told, and never blamed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from attnlib.clinic.black_box.added import Bias, Extra
from attnlib.clinic.black_box.without_softmax import Kernel

NORMS = {
    "rms": "RMS-normed queries and keys",
    "l2": "queries and keys of length 1",
    "layer": "layer-normed queries and keys",
}
# One norm over the features of all heads, before they are split, as in OLMo 2.
WIDE_NORMS = {f"wide {norm}": f"{said}, over all heads" for norm, said in NORMS.items()}


@dataclass(frozen=True)
class Traits:
    """The kind of attention that is right for a subject."""

    causal: bool = False  # whatever it is called with
    window: int | None = None  # keys a query sees, its own position counted
    both_sides: bool = False  # the window reaches into the future as well
    softcap: float | None = None
    qk_norm: str = ""  # a key of NORMS or WIDE_NORMS
    scale: float | None = None  # the factor on the scores; 1 / sqrt(d_k) if None
    rope: str = ""  # "interleaved" or "half"
    rope_base: float = 10000.0
    rope_width: int | None = None  # features of a head that are turned; all if None
    alibi: bool = False
    bias: Bias | None = None  # learned, read off the outputs
    extra: Extra | None = None  # a sink, or a learned key and value
    kernel: Kernel | None = None  # in place of the softmax

    @property
    def other(self) -> bool:
        """Whether its own numbers were read off the outputs, or it has no softmax."""
        return (self.bias or self.extra or self.kernel) is not None

    def words(self) -> tuple[str, ...]:
        """Each trait as a person would say it."""
        said: list[str] = []
        if self.causal:
            said.append("causal by itself")
        if self.window is not None:
            sides = " on both sides" if self.both_sides else ""
            keys = "1 key" if self.window == 1 else f"{self.window} keys"
            said.append(f"a window of {keys}{sides}")
        if self.softcap is not None:
            said.append(f"scores capped at {self.softcap:g}")
        if self.qk_norm:
            said.append((NORMS | WIDE_NORMS)[self.qk_norm])
        if self.scale is not None:
            said.append(f"scores multiplied by {self.scale:.4g}")
        if self.rope:
            base = "" if self.rope_base == 10000 else f", base {self.rope_base:g}"
            width = f" of {self.rope_width} features" if self.rope_width else ""
            said.append(f"RoPE{width}, {self.rope} layout{base}")
        if self.alibi:
            said.append("ALiBi")
        for other in (self.bias, self.extra, self.kernel):
            if other is not None:
                said.append(other.word())
        return tuple(said)


PLAIN = Traits()
Found = Mapping[str, float]  # numbers read off the outputs, for faults that need one
NOTHING: Found = {}

__all__ = ["NORMS", "NOTHING", "PLAIN", "WIDE_NORMS", "Found", "Traits"]
