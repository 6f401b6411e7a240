"""`show`: one way for every figure of the course to reach the page."""

from __future__ import annotations

from typing import Protocol


class Showable(Protocol):
    """A figure: it has a sentence, and a bundle whose text/plain is that sentence."""

    @property
    def sentence(self) -> str:
        """What the figure shows, in one line."""

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> dict[str, object]: ...


def show(thing: Showable) -> None:
    """Print the sentence of a figure, then display the figure.

    The sentence is printed so that it stands in every reader of notebooks, with or
    without scripts and pictures, and so that nbval compares it.

    Args:
        thing: an Explorer, a Figure or a Workbench.

    Raises:
        TypeError: `thing` is no figure of the course.

    >>> show(3)
    Traceback (most recent call last):
        ...
    TypeError: show takes a figure of attnlib.explorers, attnlib.figures or \
attnlib.widgets, but got an int.
    """
    sentence = getattr(thing, "sentence", None)
    if not isinstance(sentence, str) or not hasattr(thing, "_repr_mimebundle_"):
        kind = type(thing).__name__
        article = "an" if kind[0].lower() in "aeiou" else "a"
        raise TypeError(
            "show takes a figure of attnlib.explorers, attnlib.figures or "
            f"attnlib.widgets, but got {article} {kind}."
        )
    from IPython.display import display

    print(sentence)
    bundle, place = thing._repr_mimebundle_(), getattr(thing, "display_id", None)
    display(bundle, raw=True, display_id=place)  # type: ignore[no-untyped-call]
