"""What an attention is meant to do, as the keywords of `examine` say it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from attnlib.clinic.black_box import keywords
from attnlib.clinic.black_box.traits import NORMS, PLAIN, WIDE_NORMS, Traits
from attnlib.clinic.make_subject import DTYPES, MEANINGS

# Attributes of modules that say what is meant, as people name them.
ATTRIBUTES: dict[str, tuple[tuple[str, ...], tuple[type, ...]]] = {
    "window": (("window", "window_size", "sliding_window", "attention_window"), (int,)),
    "softcap": (
        ("softcap", "soft_cap", "logit_softcap", "attn_logit_softcapping", "logit_cap"),
        (int, float),
    ),
    "rope_base": (("rope_theta", "rope_base", "rotary_base", "theta"), (int, float)),
}

# A right RoPE with a base of 100 gives the same numbers as this slip: nothing tells the
# two apart but what was meant.
OF_SLIP = 100.0
OR_SLIP = (
    "its base of 100 is also what 10000 comes to with the exponent i/d in place of 2i/d"
)

# What each keyword says of a kind of attention.
TOLD = {
    "causal": ("causal",),
    "window": ("window", "both_sides"),
    "softcap": ("softcap",),
    "qk_norm": ("qk_norm",),
    "scale": ("scale",),
    "rope": ("rope", "rope_base", "rope_width"),
    "alibi": ("alibi",),
}

QK_NORMS = {
    *("q_norm", "k_norm", "qk_norm", "norm_q", "norm_k", "query_norm", "key_norm"),
    *("q_layernorm", "k_layernorm", "q_ln", "k_ln", "ln_q", "ln_k"),
}


@dataclass(frozen=True)
class Intent:
    """The keywords of `examine` that say what is right; None is to be found out."""

    scale: float | None = None
    causal: bool | None = None
    window: int | None = None
    softcap: float | None = None
    qk_norm: bool | None = None
    rope: str | None = None
    rope_base: float | None = None
    alibi: bool | None = None
    empty_rows: bool = True
    wide_norms: bool = False  # a norm of its own runs over all heads

    def check(
        self,
        mask: str,
        dtype: str | None,
        n_heads: int | None = None,
        n_kv_heads: int | None = None,
        seed: int = 0,
        seconds: float = 1.0,
    ) -> None:
        """Raise where a keyword has no such value."""
        keywords.one_of("mask", mask, MEANINGS)
        keywords.heads(n_heads, n_kv_heads)
        keywords.count("seed", seed, 0)
        keywords.positive("seconds", seconds)
        keywords.truth("empty_rows", self.empty_rows)
        if dtype is not None:
            keywords.one_of("dtype", dtype, DTYPES)
        if self.rope is not None:
            keywords.one_of("rope", self.rope, ("interleaved", "half"))
        if self.window is not None:
            keywords.count("window", self.window)
        for name in ("scale", "softcap", "rope_base"):
            if getattr(self, name) is not None:
                keywords.positive(name, getattr(self, name))
        for name in ("causal", "qk_norm", "alibi"):
            if getattr(self, name) is not None:
                keywords.truth(name, getattr(self, name))

    def told_and_found(self, kind: Traits) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The words for a kind of attention: those that were said, and the others."""
        said = {
            field: getattr(PLAIN, field)
            for name, fields in TOLD.items()
            if getattr(self, name) is not None
            for field in fields
        }
        found = replace(kind, **said).words()
        if kind.rope and kind.rope_base == OF_SLIP and self.rope_base is None:
            found += (OR_SLIP,)
        one_side = replace(kind, both_sides=False)  # nobody said on both
        return tuple(w for w in one_side.words() if w not in found), found

    def with_attributes(self, attention: object) -> Intent:
        """What the attention says of itself, where the keywords do not say it."""
        found: dict[str, object] = {}
        if isinstance(attention, type):
            return self
        for name, (words, kinds) in ATTRIBUTES.items():
            if getattr(self, name) is not None:
                continue
            for word in words:
                value: Any = getattr(attention, word, None)
                fits = isinstance(value, kinds) and not isinstance(value, bool)
                if fits and value > 0:
                    found[name] = value
                    break
        if self.qk_norm is None and _has_norms(attention):
            found["qk_norm"] = True
        found["wide_norms"] = _has_wide_norms(attention)
        return replace(self, **found)  # type: ignore[arg-type]

    def traits(self) -> Traits:
        """The kind of attention that is meant."""
        return Traits(
            causal=bool(self.causal),
            window=self.window,
            softcap=self.softcap,
            scale=self.scale,
            qk_norm="rms" if self.qk_norm else "",
            rope=self.rope or "",
            rope_base=self.rope_base or 10000.0,
            alibi=bool(self.alibi),
        )

    def guesses(self) -> tuple[Traits, ...]:
        """Other kinds that fit the same words."""
        first = self.traits()
        found: list[Traits] = []
        if self.window is not None and self.causal is None:
            found += [replace(first, causal=True), replace(first, both_sides=True)]
        if self.qk_norm:
            found += [
                replace(kind, qk_norm=norm, scale=scale)
                for kind in (first, *found)
                for norm in (*NORMS, *(WIDE_NORMS if self.wide_norms else ()))
                for scale in dict.fromkeys((self.scale, None, 1.0))
            ]
        return tuple(dict.fromkeys(found))


def _has_norms(attention: object) -> bool:
    """Whether a module holds norms for its queries or keys, used or not."""
    return bool(_norms(attention))


def _norms(attention: object) -> list[Any]:
    children = getattr(attention, "named_modules", None)
    return [
        child
        for name, child in (() if children is None else children())
        if name.rsplit(".", 1)[-1].lower() in QK_NORMS
        and type(child).__name__ != "Identity"
    ]


def _has_wide_norms(attention: object) -> bool:
    """Whether such a norm has as many gains as a projection has features."""
    gains = {
        weight.numel()
        for norm in _norms(attention)
        if (weight := getattr(norm, "weight", None)) is not None
    }
    modules: Any = getattr(attention, "modules", tuple)
    widths = {getattr(part, "out_features", 0) for part in modules()}
    return any(n in widths or 3 * n in widths for n in gains)
