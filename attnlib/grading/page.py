"""A page that needs nothing but itself: no script, no picture, no font from elsewhere.

It is light or dark as the reader's device is, and as narrow as a phone. Whatever came
from a student is escaped here, and its control characters are made visible.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from urllib.parse import quote

LONGEST = 6000  # characters of one text
WIDE, HIGH, RIGHT = 480, 46, 64  # of a chart, in its own units

STYLE = """\
:root{color-scheme:light dark;--ink:#1c2330;--soft:#566072;--paper:#fbfaf7;
--card:#fff;--line:#dcdad3;--good:#1d6f42;--some:#8a5a00;--none:#8d3b2f;--bar:#4f7fc4}
@media (prefers-color-scheme:dark){:root{--ink:#e8e6e1;--soft:#a9b0bd;--paper:#16191f;
--card:#1f242d;--line:#39404c;--good:#7fcf9f;--some:#e3b566;--none:#eba08f;
--bar:#7da7e3}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1.2rem 1rem 3rem;max-width:46rem;background:var(--paper);
color:var(--ink);font:1rem/1.55 system-ui,-apple-system,"Segoe UI",sans-serif;
overflow-wrap:anywhere}
h1{font-size:1.5rem;line-height:1.25;margin:.4rem 0}
h2{font-size:1.15rem;line-height:1.3;margin:0}
h3{font-size:1.05rem;line-height:1.3;margin:0}
h2.part{margin:2.2rem 0 .4rem}
p{margin:.45rem 0}
section{background:var(--card);border:1px solid var(--line);border-radius:.6rem;
padding:.9rem 1rem;margin:1rem 0}
.top{display:flex;flex-wrap:wrap;gap:.2rem 1rem;justify-content:space-between;
align-items:baseline}
.points{white-space:nowrap;font-variant-numeric:tabular-nums;color:var(--soft)}
.points b{color:var(--ink)}
.state{font-weight:600}.state .soft{font-weight:400}
.good{color:var(--good)}.some{color:var(--some)}.none{color:var(--none)}
.soft{color:var(--soft)}
.hint{border-left:.25rem solid var(--bar);padding-left:.7rem;margin:.7rem 0 .2rem}
code,pre{font:.9em/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
pre{overflow-x:auto;overflow-wrap:normal;margin:.5rem 0;padding:.5rem .6rem;
background:var(--paper);border:1px solid var(--line);border-radius:.3rem}
.wide{overflow-x:auto;margin:.5rem 0}
table{border-collapse:collapse;font-size:.92rem;font-variant-numeric:tabular-nums;
overflow-wrap:normal}
th,td{padding:.28rem .7rem .28rem 0;text-align:left;vertical-align:top;
border-bottom:1px solid var(--line)}
th{font-weight:600;color:var(--soft)}
td{min-width:5rem}
td.n,th.n{text-align:right;white-space:nowrap;min-width:0}
td.name{overflow-wrap:break-word;max-width:16rem;min-width:6rem}
a{color:inherit}
@media (max-width:34rem){table{font-size:.85rem}th,td{padding-right:.4rem}
td,td.name{overflow-wrap:anywhere;min-width:4.8rem}
td.n,th.n{overflow-wrap:normal;white-space:normal;min-width:0}}
svg{display:block;max-width:100%;height:auto;margin:.6rem 0}
svg text{fill:var(--ink);font:14px system-ui,sans-serif}
svg .bar{fill:var(--bar)}svg .rest{fill:var(--line)}
ul{margin:.4rem 0;padding-left:1.2rem}
"""
PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; \
style-src 'unsafe-inline'">
<meta name="referrer" content="no-referrer">
<meta name="robots" content="noindex">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
{body}
</body>
</html>
"""

# Values as `check` shows them, at the left edge: `X =`, `[[1. 2.]`, ` [3. 4.]]`,
# `yours[0] = 3`.
_VALUE = re.compile(r"\w+(?:\[[\d, ]*\])? =(?: .*)?$")
_ROW = re.compile(r" {0,3}\[.*[\]…]$")
_PARTS = re.compile(r"`([^`\n]+)`|(?<![\w*])\*(\w[\w ]*)\*(?![\w*])")


@dataclass(frozen=True)
class Link:
    """A cell of a table that leads to a file beside the page."""

    text: str
    file: str


def page(title: str, body: Iterable[str]) -> bytes:
    """A whole page.

    Args:
        title: as text.
        body: pieces of HTML, each escaped already.
    """
    text = PAGE.format(title=safe(title), style=STYLE, body="\n".join(body))
    return text.encode("utf-8", "replace")


def safe(text: str) -> str:
    """Text as HTML: escaped; what cannot be seen, or turns a line round, is marked."""
    shown = "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text)
    return escape(shown)


def prose(text: str) -> str:
    """Sentences as HTML: a paragraph a line; values and tables stay as they are."""
    if len(text) > LONGEST:
        text = text[:LONGEST] + " …"
    found: list[str] = []
    block: list[str] = []
    for line in [*text.split("\n"), ""]:
        if line.startswith(("  ", "\t")) or _VALUE.match(line) or _ROW.match(line):
            block.append(line)
            continue
        if block:
            found.append(f"<pre>{safe(chr(10).join(block))}</pre>")
            block = []
        if line.strip():
            found.append(f"<p>{inline(line)}</p>")
    return "\n".join(found)


def inline(text: str) -> str:
    """One line; what stands in backticks is code, and `*word*` outside is stressed."""
    return _PARTS.sub(_marked, safe(text))


def _marked(found: re.Match[str]) -> str:
    code, stressed = found.groups()
    return f"<code>{code}</code>" if code else f"<em>{stressed}</em>"


def _cell(content: str | Link) -> str:
    if isinstance(content, str):
        return inline(content)
    return f'<a href="{safe(quote(content.file))}">{inline(content.text)}</a>'


def rows(
    head: Iterable[str],
    body: Iterable[Iterable[str | Link]],
    numbers: Iterable[int] = (),
) -> str:
    """A table; a wide one is moved sideways by itself.

    Args:
        head: as text.
        body: as text, or links.
        numbers: the columns that stand at the right.
    """
    right = set(numbers)

    def row(cells: Iterable[str | Link], tag: str) -> str:
        kind = {0: ' class="name"'} if tag == "td" else {}
        kind |= dict.fromkeys(right, ' class="n"')
        inner = "".join(
            f"<{tag}{kind.get(place, '')}>{_cell(cell)}</{tag}>"
            for place, cell in enumerate(cells)
        )
        return f"<tr>{inner}</tr>"

    lines = "\n".join(row(cells, "td") for cells in body)
    return (
        f'<div class="wide"><table>\n<thead>{row(head, "th")}</thead>\n'
        f"<tbody>\n{lines}\n</tbody></table></div>"
    )


def chart(bars: Sequence[tuple[str, float, str]], whole: float, title: str) -> str:
    """Bars as SVG: the name above its bar, the number behind it.

    Args:
        bars: a name, a length, and the number as it is written.
        whole: the length of a full bar.
        title: what it shows.
    """
    room = WIDE - RIGHT
    lines = []
    for place, (name, length, number) in enumerate(bars):
        top = place * HIGH
        width = room * length / whole if whole else 0.0
        short = name if len(name) <= 64 else name[:63] + "…"
        lines.append(
            f'<text x="0" y="{top + 16}">{safe(short)}</text>'
            f'<rect class="rest" x="0" y="{top + 23}" width="{room}" height="14" '
            f'rx="3"/><rect class="bar" x="0" y="{top + 23}" width="{width:.1f}" '
            f'height="14" rx="3"/>'
            f'<text x="{room + 8}" y="{top + 35}">{safe(number)}</text>'
        )
    box = f"0 0 {WIDE} {len(bars) * HIGH}"
    return (
        f'<p class="soft">{safe(title)}:</p>\n<svg width="{WIDE}" viewBox="{box}" '
        f'role="img" aria-label="{safe(title)}">{"".join(lines)}</svg>'
    )
