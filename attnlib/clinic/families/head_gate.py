"""A gate for each token and head, with every mistake built in."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from attnlib.clinic.case import RIGHT, Family, Faults

Float = npt.NDArray[np.floating]


def causal_gate(
    x: Float, mixed: Float, W_g: Float, b_g: Float, *, faults: Faults = RIGHT
) -> Float:
    """mixed_h[t] times sigmoid(x[t] W_g + b_g)[h]."""
    gates = _gates(_asks(x, faults), W_g, b_g, faults)  # (batch, n, n_heads)
    n_heads, n = mixed.shape[1:3]
    if "gate_reshaped" in faults:
        each = gates.reshape(len(gates), n_heads, -1)
    else:
        each = gates.swapaxes(1, 2)
    if "gate_heads_reversed" in faults:
        each = each[:, ::-1]
    each = np.broadcast_to(each, (len(mixed), n_heads, n))[..., None]
    if "gate_alone" in faults:
        return np.asarray(each + np.zeros_like(mixed))
    if "gate_added" in faults:
        return np.asarray(mixed + each)
    if "gate_residual" in faults:
        return np.asarray(mixed + mixed * each)
    if "gate_closed" in faults:
        return np.asarray(mixed * (1 - each))
    if "gate_doubled" in faults:
        return np.asarray(2 * mixed * each)
    if "gate_divides" in faults:
        return np.asarray(mixed / each)
    found = np.asarray(mixed * each)
    if "gate_heads_summed" in faults:
        return np.asarray(found.sum(axis=1))
    if "gate_heads_summed_kept" in faults:
        return np.broadcast_to(found.sum(axis=1, keepdims=True), found.shape)
    if "gate_merged" in faults:
        return found.swapaxes(1, 2).reshape(len(found), n, -1)
    return found


def _asks(x: Float, faults: Faults) -> Float:
    """What stands in the place of x: the right one is x itself."""
    n = x.shape[1]
    if "gate_of_text" in faults:
        return np.broadcast_to(x.mean(axis=1, keepdims=True), x.shape)
    if "gate_of_past" in faults:
        return np.asarray(x.cumsum(axis=1) / np.arange(1, n + 1)[:, None])
    if "gate_of_last" in faults:
        return np.broadcast_to(x[:, -1:], x.shape)
    if "gate_of_first" in faults:
        return np.broadcast_to(x[:, :1], x.shape)
    if "gate_of_next" in faults:
        return np.roll(x, -1, axis=1)
    if "gate_of_previous" in faults:
        return np.roll(x, 1, axis=1)
    if "gate_of_reversed" in faults:
        return x[:, ::-1]
    if "gate_of_first_text" in faults:
        return np.broadcast_to(x[:1], x.shape)
    if "gate_of_batch" in faults:
        return np.broadcast_to(x.mean(axis=0, keepdims=True), x.shape)
    return x


def _gates(x: Float, W_g: Float, b_g: Float, faults: Faults) -> Float:
    z = x @ W_g
    if "gate_scaled" in faults:
        z = z / x.shape[-1] ** 0.5
    if "gate_bias_missing" not in faults and "gate_bias_outside" not in faults:
        z = z - b_g if "gate_bias_subtracted" in faults else z + b_g
    if "gate_bias_scaled" in faults:
        z = z / x.shape[-1] ** 0.5
    gates = _squashed(z, faults)
    if "gate_bias_outside" in faults:
        gates = gates + b_g
    if "gate_mean_after" in faults:
        gates = gates.mean(axis=1, keepdims=True)
    if "gate_one_for_all" in faults:
        gates = np.broadcast_to(gates.mean(axis=2, keepdims=True), gates.shape)
    if "gate_normed" in faults:
        gates = gates / gates.sum(axis=2, keepdims=True)
    if "gate_mean_of_one" in faults:
        gates = gates / gates.mean(axis=2, keepdims=True)
    if "gate_of_head_0" in faults:
        gates = np.broadcast_to(gates[..., :1], gates.shape)
    return np.asarray(gates)


def _squashed(z: Float, faults: Faults) -> Float:
    if "gate_open_ended" in faults:
        return z
    if "gate_tanh" in faults:
        return np.tanh(z)
    if "gate_relu" in faults:
        return np.maximum(z, 0)
    if "gate_hard" in faults:
        return (z > 0).astype(z.dtype)
    if "gate_softmax_heads" in faults:
        e = np.exp(z - z.max(axis=2, keepdims=True))
        return np.asarray(e / e.sum(axis=2, keepdims=True))
    if "gate_softmax_tokens" in faults:
        e = np.exp(z - z.max(axis=1, keepdims=True))
        return np.asarray(e / e.sum(axis=1, keepdims=True))
    if "gate_exp" in faults:
        return np.asarray(np.exp(z))
    gates = 1 / (1 + np.exp(-z))
    if "gate_squared" in faults:
        return np.asarray(gates**2)
    if "gate_twice" in faults:
        return np.asarray(1 / (1 + np.exp(-gates)))
    if "gate_silu" in faults:
        return np.asarray(z * gates)
    return np.asarray(gates)


HEAD_GATE = Family(
    "causal_gate",
    causal_gate,
    {
        "asks": (
            "gate_of_text",
            "gate_of_past",
            "gate_of_last",
            "gate_of_first",
            "gate_of_next",
            "gate_of_previous",
            "gate_of_reversed",
            "gate_of_first_text",
            "gate_of_batch",
        ),
        "bias": (
            "gate_bias_missing",
            "gate_bias_outside",
            "gate_bias_subtracted",
            "gate_scaled",
            "gate_bias_scaled",
        ),
        "squash": (
            "gate_open_ended",
            "gate_tanh",
            "gate_relu",
            "gate_hard",
            "gate_softmax_heads",
            "gate_softmax_tokens",
            "gate_twice",
            "gate_silu",
            "gate_exp",
            "gate_squared",
        ),
        "mean": (
            "gate_mean_after",
            "gate_one_for_all",
            "gate_normed",
            "gate_mean_of_one",
            "gate_of_head_0",
        ),
        "axes": ("gate_reshaped", "gate_heads_reversed"),
        "applied": (
            "gate_alone",
            "gate_added",
            "gate_residual",
            "gate_closed",
            "gate_doubled",
            "gate_divides",
            "gate_heads_summed",
            "gate_heads_summed_kept",
            "gate_merged",
        ),
    },
)
