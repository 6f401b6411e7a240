"""The Python of a cell: what is IPython's alone (%time, !pip, name?) is taken out.

Nothing is run. Each line stays where it is, so that a traceback names the line that
the student sees. IPython's own finders say which lines are theirs.
"""

from __future__ import annotations

import ast
import contextlib
import re
import textwrap
import threading
import tokenize
import warnings
from collections.abc import Iterator
from typing import Any

# Magics that run the Python after them where the notebook's names are.
_RUN_HERE = {"time", "capture", "prun", "memit", "mprun", "lprun", "debug", "pdb"}
_TYPED_BARE = {"pip", "conda", "mamba", "cd", "ls", "pwd", "cat", "mkdir", "cp", "rm"}
_WORK = 300_000  # characters that may be looked at again and again
_ONE_BY_ONE = threading.Lock()  # what warnings are shown is one setting for all threads
_SIMPLE = re.compile(r"^([ \t]*)(?:[%!?].*|[\w.*%]+\?\??[ \t]*)$", re.MULTILINE)


@contextlib.contextmanager
def parsing() -> Iterator[None]:
    r"""No warnings of the compiler, say of `"\d"`, which a string may well hold.

    Raises:
        SyntaxError: Python does not take the source, or it is nested too deeply.
    """
    try:
        with _ONE_BY_ONE, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except (ValueError, RecursionError, MemoryError) as error:
        raise SyntaxError(f"{type(error).__name__} in the parser") from None


def parse(source: str) -> ast.Module:
    """The syntax tree of some source.

    Raises:
        SyntaxError: as in `parsing`.
    """
    with parsing():
        return ast.parse(source)


def plain(source: str) -> tuple[str, str]:
    """The Python of a cell, line for line, and a word on what is left out.

    Args:
        source: the text of a cell.

    Returns:
        The text without magics, which may still have syntax errors, and `""` or a
        sentence's end such as `begins with %%bash: unread.`
    """
    source = _without_prompts(source)  # `In [3]: x = 1` is Python, with a hint of types
    if _parses(source):
        return source, ""
    head = re.match(r"\s*%%(\w*)(?![^\n]*\?)[^\n]*", source)
    if head:
        if head.group(1) not in _RUN_HERE:
            return "", f"begins with %%{head.group(1)}, which defines no names; unread."
        source = "\n" * source.count("\n", 0, head.end()) + source[head.end() :]
    first = re.match(r"\s*(\w+)\b[^\n=(]*\s*$", source)
    if first and first.group(1) in _TYPED_BARE:  # `pip install numpy`, alone in a cell
        return "", ""
    source = _without_prompts(textwrap.dedent(source))
    for _ in range(max(2, min(50, _WORK // (len(source) + 1)))):
        if _parses(source):
            break
        changed = _without_commands(source)
        if changed == source:
            break
        source = changed
    return source, ""


def _parses(source: str) -> bool:
    try:
        parse(source)
    except SyntaxError:
        return False
    return True


def _without_prompts(source: str) -> str:
    """Without `>>>` and `In [3]:`, which come with code that was copied."""
    prompt = re.compile(r"^(?:>>> ?|\.\.\. ?|In \[\d+\]: ?| *\.{3,}: ?)", re.MULTILINE)
    if re.match(r"\s*(?:>>>|In \[\d+\]:)", source):
        return prompt.sub("", source)
    return source


def _without_commands(source: str) -> str:
    """With `pass` or None for the commands that are found in one reading."""
    lines = source.split("\n")
    try:
        found = list(_commands(lines))
    except ImportError:  # no IPython here
        return _SIMPLE.sub(r"\1pass", source)
    except (SyntaxError, tokenize.TokenError, IndexError):
        return source
    for row, column, last, word in found:
        command = " ".join(p.rstrip("\\") for p in lines[row : last + 1])[column:]
        python = re.sub(r"^%(time|prun)\b\s*(-\w+\s+)*", "", command)
        if python == command or not _parses(python.strip()) or not python.strip():
            python = word
        lines[row] = lines[row][:column] + python.strip()
        for later in range(row + 1, last + 1):
            lines[later] = ""
    return "\n".join(lines)


def _commands(lines: list[str]) -> Iterator[tuple[int, int, int, str]]:
    """Row, column and last row of each command, and what stands for it."""
    from IPython.core import inputtransformer2

    ipython: Any = inputtransformer2

    ended = [line + "\n" for line in lines]
    for tokens in ipython.make_tokens_by_line(ended):
        asked = ipython.HelpEnd.find([tokens])
        if asked:
            yield asked.start_line, asked.start_col, asked.q_line, "pass"
            continue
        for finder, word in (
            (ipython.MagicAssign, "None"),
            (ipython.SystemAssign, "None"),
            (ipython.EscapedCommand, "pass"),
        ):
            command = finder.find([tokens])
            if command:
                row = command.start_line
                last = ipython.find_end_of_continued_line(ended, row)
                yield row, command.start_col, min(last, len(lines) - 1), word
                break
