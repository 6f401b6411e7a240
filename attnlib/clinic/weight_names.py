"""Which weight a name stands for: W_q, q_proj, to_q, query; qkv, c_attn; out_proj."""

from __future__ import annotations

import re

from attnlib.clinic.signature import plain

WORDS = {
    "q": "q qs query queries que qry",
    "k": "k ks key keys",
    "v": "v vs value values val vals",
    "o": "o out output outputs final unify unifyheads merge combine concat post result "
    "res resid o1",
}
ROLE_OF = {word: role for role, words in WORDS.items() for word in words.split()}
_GENERIC = (
    "w ws to proj projection projections project projector projs linear linears lin "
    "fc layer layers weight weights matrix matrices mat in net map mapping dense "
    "transform kernel attn attention self sa mha param params s c head heads multihead "
    "multi l nn conv m and x h mix all full block module inner a input p r fn"
)
_OTHER = (
    "rel relative pos position positions bias table emb embed embedding embeddings "
    "gate gating norm ln mlp ffn ff up down expert experts router temperature rotary "
    "rope vocab lm logits logit scale pe time film lora token tokens"
)
GENERIC = set(_GENERIC.split())
OTHER = set(_OTHER.split())
GLUED = re.compile(
    r"^(?:w|to)?(qkv|kqv|vkq|qvk|kvq|vqk|kv|vk|qk|kq|q|k|v|o|out|query|queries|key|keys|"
    r"value|values|unifyheads)"
    r"(?:s|w|proj|projection|linear|lin|layer|fc|weight|weights|net|map|matrix)?$"
)
UNSURE = ("?",)


def roles_of(name: str) -> tuple[str, ...]:
    """("q",), ("q", "k", "v") for a fused one, ("?",) for any, () for none of them.

    >>> roles_of("W_query"), roles_of("Wqkv"), roles_of("to_out"), roles_of("c_attn")
    (('q',), ('q', 'k', 'v'), ('o',), ('?',))
    """
    found: list[str] = []
    sure = True
    for word in re.split(r"[_\d.]+", plain(name)):
        if not word:
            continue
        glued = GLUED.match(word)
        if word in ROLE_OF:
            found.append(ROLE_OF[word])
        elif word in OTHER:
            return ()
        elif glued:
            inner = glued.group(1)
            letters = inner if set(inner) <= set("qkv") else ROLE_OF[inner]
            found.extend(letters)
        elif word not in GENERIC:
            sure = False
    asks = [role for role in found if role != "o"]
    if asks:
        return tuple(dict.fromkeys(asks))
    if found:
        return ("o",)
    return UNSURE if sure else ()


def named_otherwise(path: str) -> bool:
    """Whether a name says what else a matrix is for: a gate, a norm, positions."""
    return bool(OTHER & set(re.split(r"[_\d.]+", plain(path))))


def bias_roles(name: str) -> tuple[str, ...]:
    """The same for a bias of its own: b_q, q_bias, in_proj_bias."""
    words = [w for w in plain(name).split("_") if w not in ("b", "bias", "biases")]
    if not words:
        return UNSURE
    glued = re.match(r"^b(qkv|kv|q|k|v|o)$", words[0])
    if glued:
        words[0] = glued.group(1)
    return roles_of("_".join(words))
