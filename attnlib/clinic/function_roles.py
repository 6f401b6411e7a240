"""Which argument of a function is q, k, v or the mask, and what else must be given."""

from __future__ import annotations

from dataclasses import replace

from attnlib.clinic.function_call import FunctionCall
from attnlib.clinic.signature import Parameter, Signature
from attnlib.clinic.subject import Refusal
from attnlib.clinic.words_refused import HAND_IN

OPTIONAL = {"mask", "causal", "enable_gqa"}


# Arguments without a default that have a value which changes nothing.
NEUTRAL: dict[str, tuple[object, ...]] = {
    "dropout": (None, 0.0),
    "training": (False,),
    "cache": (None,),
    "bias": (None,),
    "padding": (None,),
    "need_weights": (True,),
    "start": (0,),
}


def find_roles(
    signature: Signature, name: str, meaning: str
) -> tuple[Signature, dict[str, str]] | Refusal:
    """Which argument is q, which k, which v, and which the mask."""
    if signature.takes_more or signature.takes_any_name:
        have = [p.name for p in signature.places]
        more = [n for n in ("q", "k", "v") if n not in have][: max(0, 3 - len(have))]
        places = list(signature.parameters)
        if signature.takes_more:
            places += [
                Parameter(n, n, True, False, len(have) + i) for i, n in enumerate(more)
            ]
        if not any(p.role == "mask" for p in places):
            by_name = not signature.takes_more or not signature.known
            place = -1 if by_name else 3
            word = "attn_mask" if not signature.known else "mask"
            places.append(Parameter(word, "mask", False, by_name, place))
        signature = replace(signature, parameters=tuple(places))
    named = {r: p.name for r in ("q", "k", "v") if (p := signature.of(r))}
    places3 = [p for p in signature.places if p.role not in OPTIONAL][:3]
    if len(named) < 3:
        asks = [
            p for p in places3 if p.role in ("", "q", "k", "v", "x", "memory", "d_k")
        ]
        if len(asks) < 3:
            return Refusal(_too_few(signature, name))
        named = dict(zip("qkv", (p.name for p in asks), strict=True))
    taken = set(named.values())
    left = [p for p in signature.parameters if p.name not in taken]
    for role in ("mask", "causal", "enable_gqa", "d_k"):
        one = next((p for p in left if p.role == role), None)
        if one and (role != "d_k" or one.required):
            named[role] = one.name
    if "mask" not in named:
        other = next((p for p in left if _may_be_mask(p, meaning)), None)
        if other:
            named["mask"] = other.name
    return signature, named


def _may_be_mask(p: Parameter, meaning: str) -> bool:
    """A fourth argument without a known name, a bias of 0 and -inf, key padding."""
    if p.role == "padding":
        return True
    if p.role == "bias":
        return meaning == "added"
    fourth = p.position == 3 and p.default is None and p.role == ""
    words = ("mask", "block", "hid", "allow", "visible", "keep", "look")
    return fourth and any(word in p.name.lower() for word in words)


def _too_few(signature: Signature, name: str) -> str:
    names = ", ".join(p.name for p in signature.parameters) or "nothing"
    return f"{name} takes ({names}), and not q, k and v. {HAND_IN}"


def fill_in(call: FunctionCall, name: str) -> str:
    """Give a neutral value to what must be given; or say what is missing."""
    taken = set(call.roles.values())
    for p in call.signature.parameters:
        if not p.required or p.name in taken:
            continue
        if p.role in NEUTRAL:
            call.filled[p.name] = NEUTRAL[p.role][0]
        elif p.role == "causal":
            call.filled[p.name] = False
        else:
            return (
                f"{name} must be given {p.name} besides q, k and v. Hand in a function "
                f"that gives it, such as `lambda q, k, v, mask=None: mine(q, k, v, "
                f"{p.name}=...)`."
            )
    return ""
