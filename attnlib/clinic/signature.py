"""Read off a signature what each argument is for: queries, a mask, a causal flag.

People call the same thing by many names. What no name tells is found by position; what
is optional and has no role is left alone.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

ROLES = {
    "q": "q query queries xq q_in query_states query_layer q_input inputs_q input_q "
    "query_input q_x x_q que",
    "k": "k key keys xk k_in key_states key_layer k_input inputs_k input_k "
    "x_k key_input",
    "v": "v value values val vals xv v_in value_states value_layer v_input inputs_v "
    "input_v x_v value_input",
    "x": "x input inputs hidden_states hidden_state hidden tokens emb embeddings seq "
    "inp x_in src tgt target h z features sequence input_tensor token_embeddings "
    "input_embeddings embedded",
    "memory": "memory mem context ctx cond encoder_hidden_states encoder_output "
    "encoder_outputs enc_out enc_output enc_outputs encoder_out kv kv_states "
    "key_value_states key_value x_kv xkv kv_input inputs_kv kv_in y cross source "
    "x_cross x2 encoder_states other xa source_states enc enc_x encoder_x kv_x "
    "x_context cross_input cross_states",
    "mask": "mask attn_mask attention_mask att_mask src_mask tgt_mask allowed visible "
    "may_look keep score_mask additive_mask self_attn_mask attn_masks masks m "
    "mask_tensor attention_masks bool_mask look",
    "bias": "bias attn_bias attention_bias score_bias rel_bias position_bias",
    "padding": "key_padding_mask padding_mask pad_mask src_key_padding_mask key_mask "
    "memory_key_padding_mask padding pad valid kv_mask context_mask tgt_padding_mask "
    "src_padding_mask padding_masks token_mask",
    "lengths": "valid_lens valid_len lengths valid_length lens seq_lens valid_lengths "
    "key_lengths",
    "causal": "causal is_causal use_causal_mask causal_mask masked apply_causal_mask "
    "autoregressive use_causal apply_causal is_masked look_ahead_mask",
    "cache": "cache kv_cache past_key_value past_key_values layer_past past_kv past "
    "layer_cache",
    "need_weights": "need_weights",
    "enable_gqa": "enable_gqa",
    "dropout": "dropout dropout_p p_drop attn_dropout drop dropout_layer dropout_rate "
    "attention_dropout",
    "d_k": "d_k dk d dim head_dim d_head depth",
    "training": "training train deterministic",
    "start": "start_pos start input_pos offset position_offset",
    "positions": "position_ids positions pos position",
    "angles": "position_embeddings rotary_pos_emb rotary_emb",
    "freqs": "freqs_cis freqs rope_freqs",
}
ROLE_OF = {name: role for role, names in ROLES.items() for name in names.split()}


@dataclass(frozen=True)
class Parameter:
    """One argument of the attention."""

    name: str
    role: str  # a key of ROLES, or ""
    required: bool
    by_name: bool  # keyword-only
    position: int  # among those that have a place
    default: object = None


@dataclass(frozen=True)
class Signature:
    """The arguments of an attention, with their roles."""

    parameters: tuple[Parameter, ...]
    takes_more: bool = False  # *args
    takes_any_name: bool = False  # **kwargs
    known: bool = True

    def of(self, role: str) -> Parameter | None:
        """The argument with this role; the first one if there are several."""
        return next((p for p in self.parameters if p.role == role), None)

    @property
    def places(self) -> tuple[Parameter, ...]:
        """Those that can be given by position."""
        return tuple(p for p in self.parameters if not p.by_name)


@dataclass
class Given:
    """What is handed in: by position as far as needed, by name beyond."""

    args: list[Any] = field(default_factory=list)
    named: dict[str, Any] = field(default_factory=dict)


def plain(name: str) -> str:
    """W_Q, w_q and wQ are one name."""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip("_"))
    return name.lower().strip("_")


SDPA = "query key value attn_mask=None dropout_p=0.0 is_causal=False *"
SDPA += " scale=None enable_gqa=False"


def read_signature(function: Callable[..., object]) -> Signature:
    """The arguments of `function`; unknown for some that are written in C."""
    try:
        found = inspect.signature(function)
    except (ValueError, TypeError):
        if getattr(function, "__name__", "") == "scaled_dot_product_attention":
            return _sdpa()
        return Signature((), takes_more=True, known=False)
    except Exception:  # an object that raises whatever it is asked
        return Signature((), takes_more=True, known=False)
    parameters, place, more, any_name = [], 0, False, False
    for name, p in found.parameters.items():
        if p.kind is p.VAR_POSITIONAL:
            more = True
        elif p.kind is p.VAR_KEYWORD:
            any_name = True
        else:
            by_name = p.kind is p.KEYWORD_ONLY
            required = p.default is p.empty
            default = None if required else p.default
            role = _role(name, default)
            parameters.append(
                Parameter(
                    name, role, required, by_name, -1 if by_name else place, default
                )
            )
            place += not by_name
    return Signature(_first_of_each(parameters), more, any_name)


def _role(name: str, default: object) -> str:
    role = ROLE_OF.get(plain(name), "")
    if not role:
        role = ROLE_OF.get(plain(name).removesuffix("s"), "")
    if isinstance(default, bool):  # mask=False is a switch, not a mask
        return "causal" if role in ("mask", "causal") else _switch(role)
    return "mask" if role == "causal" and plain(name).endswith("mask") else role


def _switch(role: str) -> str:
    return role if role in ("need_weights", "enable_gqa", "training") else ""


def _first_of_each(parameters: list[Parameter]) -> tuple[Parameter, ...]:
    """A role is given once; d_k and d both may stand for the width."""
    seen: set[str] = set()
    kept = []
    for p in parameters:
        if p.role in seen and p.role not in ("dropout", "d_k"):
            p = Parameter(p.name, "", p.required, p.by_name, p.position, p.default)
        seen.add(p.role)
        kept.append(p)
    return tuple(kept)


def _sdpa() -> Signature:
    parameters, by_name = [], False
    for place, text in enumerate(SDPA.split()):
        name, _, default = text.partition("=")
        if name == "*":
            by_name = True
            continue
        value = {"False": False, "0.0": 0.0}.get(default)
        parameters.append(
            Parameter(
                name, _role(name, value), not default, by_name, -1 if by_name else place
            )
        )
    return Signature(tuple(parameters))


def arrange(signature: Signature, given: dict[str, object]) -> Given:
    """Put values, by the names of their arguments, into a call.

    Arguments without a default before the last one given go by position; the others
    by name, so that what was left out keeps its default.
    """
    call = Given()
    for p in signature.parameters:
        if p.name not in given:
            continue
        if not p.by_name and p.position == len(call.args):
            call.args.append(given[p.name])
        else:
            call.named[p.name] = given[p.name]
    return call
