"""Mistakes beside a bias, a sink, or in an attention without softmax."""

from . import other_kinds as kinds
from .draw import built, sizes
from .made import drawn, fixed
from .specimen import Specimen


def _bias(codes, name, **slips):
    return drawn(
        codes,
        f"T5's bias, {name}",
        lambda rng: kinds.by_distance(rng, **slips),
        "numpy",
    )


def _place(codes, name, **slips):
    return drawn(
        codes,
        f"bias by place, {name}",
        lambda rng: kinds.by_place(rng, **slips),
        "numpy",
    )


def _sinks(codes, name, **slips):
    return drawn(
        codes, f"sinks, {name}", lambda rng: kinds.with_sinks(rng, **slips), "gpt-oss"
    )


def _module(codes, name, make, **intent):
    def whole(rng, dtype):
        d_model, n_heads = sizes(rng)
        return built(rng, dtype, lambda: make(d_model, n_heads))

    label = f"module, other kind, {codes.replace(' ', '+')}: {name}"
    return Specimen(label, frozenset(codes.split()), whole, intent, "torch")


SPECIMENS = (
    _bias("M01", "scale missing", scale=""),
    _bias("M02", "divided by the root of d_model", scale="d_model"),
    _bias("M07", "mask inverted", turned=True),
    _bias("M11", "hidden scores -1e4", fill=-1e4),
    _bias("M14", "hidden scores -1e9", fill=-1e9),
    _bias("M01 M07", "no scale, mask inverted", scale="", turned=True),
    _place("M01", "scale missing", scale=""),
    _place("M07", "mask inverted", turned=True),
    _sinks("M01", "scale missing", scale=""),
    _sinks("M06", "exp of huge scores", stable=False),
    _sinks("M07", "mask inverted", turned=True),
    _sinks("M09", "hidden scores 0", fill=0.0),
    _sinks("M10", "mask after softmax", zeroed=True),
    fixed("M01", "softmax off by one, no scale", kinds.off_by_one(scale=""), "numpy"),
    fixed("M07", "linear, mask inverted", kinds.linear_by_table(turned=True), "einsum"),
    fixed("M07", "sigmoid, mask inverted", kinds.sigmoid(turned=True), "numpy"),
    fixed("M01", "sigmoid, no scale", kinds.sigmoid(scale=""), "numpy"),
    _module("M01", "T5, scale not told", lambda d, h: kinds.T5(d, h, root=False)),
    _module("M07", "T5, inverted", lambda d, h: kinds.T5(d, h, turned=True)),
    _module("M18", "decoder, one too far", kinds.LateDecoder),
    _module("M01", "sinks, no scale", lambda d, h: kinds.Sinks(d, h, root=False)),
    _module("M07", "sinks, inverted", lambda d, h: kinds.Sinks(d, h, turned=True)),
)
