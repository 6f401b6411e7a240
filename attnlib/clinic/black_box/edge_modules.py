"""At the edge of modules: the last tokens with a cache of the first."""

from __future__ import annotations

from dataclasses import replace

from attnlib.clinic.black_box.edge_tools import Edge

CACHED = (
    "aligned_top_left",
    "rope_chunk_from_zero",
    "rope_q_from_zero",
    "rope_k_turned_twice",
    "rope_cache_turned_twice",
    "alibi_from_zero",
    "window_top_left",
    "causal_missing",
)


def cached(edge: Edge) -> None:
    """The last tokens give the same with a cache of the first as in one go."""
    asked = edge.exam.bench.in_two_parts()
    if asked is None or asked[1].out is None:
        return
    question, answer = asked
    if edge.fits(answer.out, edge.out(question), edge.out(question, "guarded")):
        return
    told = edge.exam.bench.takes.causal  # its flag told it to hide the future
    if not edge.known.traits.causal and not told:  # nothing says that it does
        free = replace(question, causal=False)
        if edge.fits(answer.out, edge.out(free), edge.out(free, "guarded")):
            return
    for key in CACHED:
        if edge.fits(
            answer.out, edge.out(question, key), edge.out(question, key, "guarded")
        ):
            edge.mistake(key, asked)
            return
    edge.law("a cache changes nothing: in two parts as in one", asked)
