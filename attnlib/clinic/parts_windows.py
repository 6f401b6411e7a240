"""A sliding window as a part: a width, or the keys before the query; any sides."""

from __future__ import annotations

import numpy as np

from attnlib.clinic.case import Case
from attnlib.clinic.families.windows import WINDOW
from attnlib.clinic.part import Complete, Form, Meant, Options, Part, Takes, whole
from attnlib.clinic.parts_masks import MASK, meanings, sizes_of, squeezed

Rng = np.random.Generator


def _window(options: Options, takes: Takes) -> tuple[Form, ...]:
    fixed = options.get("window")
    counts = "width" if fixed else options.get("counts") or _counts(takes)
    two_sided = options.get("causal") is False
    meant: list[Meant] = []
    for said, note in (
        ("width", "the width counts the query's own key"),
        ("left", "the width counts the keys before the query"),
    ):
        if counts not in (None, said):
            continue
        feature = "" if counts else note
        for sides in (0, 1) if options.get("causal") is None else (int(two_sided),):
            seen = "a window to both sides" if sides else ""
            words = ", ".join(w for w in (feature, seen) if w)
            one = Meant(
                WINDOW, words, _complete(said == "width", sides, fixed), squeezed
            )
            meant += meanings(one, options)
    key = takes.named("left") if counts == "left" else ""
    by_name = key in takes.by_keyword

    def rectangles(rng: Rng) -> tuple[Case, ...]:
        sizes = ((4, 4, 2), (3, 6, 3), (1, 7, 3), (6, 6, 4), (7, 7, 1), (5, 9, 6))
        return tuple(
            Case(f"{sizes_of(q, k)}, width {w}", (q, k, w)) for q, k, w in sizes
        )

    def squares(rng: Rng) -> tuple[Case, ...]:
        sizes = ((4, 2), (6, 3), (7, 1), (8, 5))
        return tuple(Case(f"{n} tokens, width {w}", (n, w)) for n, w in sizes)

    if fixed:
        return _fixed(whole(fixed), tuple(meant), takes)
    name = key or takes.named("width", "window", "size", "left") or "width"
    keywords = (name,) if by_name else ()
    forms = []
    if takes.fits(3) or (by_name and takes.fits(2)):
        call = f"window(n_q, n_k, {name})"
        forms.append(Form(call, rectangles, tuple(meant), keywords))
    if (takes.fits(2) and not by_name) or (by_name and takes.fits(1)):
        only_square = "more keys than queries (M19): it takes one size only."
        call = f"window(n, {name})"
        forms.append(
            Form(call, squares, tuple(meant), keywords, untested=(only_square,))
        )
    return tuple(forms)


def _fixed(width: int, meant: tuple[Meant, ...], takes: Takes) -> tuple[Form, ...]:
    """A window whose width is built in."""
    sizes = ((width + 2, width + 2), (3, width + 4), (1, width + 3), (2, 2))

    def rectangles(rng: Rng) -> tuple[Case, ...]:
        return tuple(Case(sizes_of(q, k), (q, k)) for q, k in sizes)

    def squares(rng: Rng) -> tuple[Case, ...]:
        return tuple(Case(f"{n} tokens", (n,)) for n in (width + 2, 1, width + 5))

    forms = []
    if takes.fits(2):
        forms.append(Form("window(n_q, n_k)", rectangles, meant))
    if takes.fits(1):
        only_square = "more keys than queries (M19): it takes one size only."
        forms.append(Form("window(n)", squares, meant, untested=(only_square,)))
    return tuple(forms)


def _counts(takes: Takes) -> str | None:
    """What the name of the argument says: the keys before the query, or all."""
    if takes.named("left", "before", "back"):
        return "left"
    return "width" if takes.named("width", "window", "size") else None


def _complete(width: bool, both: int, fixed: object) -> Complete:
    def complete(case: Case) -> Case:
        *sizes, w = (whole(a) for a in (*case.args, *([fixed] if fixed else [])))
        left = w - 1 if width else w
        n_q, n_k = (sizes[0], sizes[0]) if len(sizes) == 1 else sizes
        return Case(case.name, (n_q, n_k, left, left if both else 0))

    return complete


WINDOWS = (
    Part(
        "window",
        "window(n_q, n_k, width)",
        "a mask (n_q, n_k)",
        "A causal mask that ends: with `width` keys in all, or `left` keys before the "
        "query. Which one is meant is read from the name of the argument, or from "
        "`counts`.",
        _window,
        "M32",
        {
            "mask": MASK,
            "counts": "'left' | 'width'",
            "causal": "True or False",
            "window": "a number",
        },
    ),
)
