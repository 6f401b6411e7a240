"""What check prints, in short lines: JupyterLab breaks long ones within a word."""

from __future__ import annotations

import re
import textwrap

GLUE = "\x00"  # a space at which no line may end
WIDTH = 79  # as wide as a code cell of a lesson


def wrapped(text: str, width: int = WIDTH) -> str:
    """Sentences in lines of at most `width` characters.

    Numbers in rows stay as they are, and so does what stands in backticks.

    >>> print(wrapped("Hidden keys: write `scores = -inf` there.", 20))
    Hidden keys: write
    `scores = -inf`
    there.
    """
    lines: list[str] = []
    for line in text.split("\n"):
        if len(line) <= width or line.startswith((" ", "[")):
            lines.append(line)
            continue
        code = re.sub(r"`[^`]+`", lambda found: found[0].replace(" ", GLUE), line)
        short = textwrap.wrap(
            code, width, break_long_words=False, break_on_hyphens=False
        )
        lines += [one.replace(GLUE, " ") for one in short]
    return "\n".join(lines)
