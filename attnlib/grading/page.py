"""A page that needs nothing but itself: no script, no picture, no font from elsewhere.

It is light or dark as the reader's device is, and as narrow as a phone. Whatever came
from a student is escaped here, and its control characters are made visible.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

LONGEST = 6000  # characters of one text

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
h2.part{margin:2.2rem 0 .4rem}
p{margin:.45rem 0}
section{background:var(--card);border:1px solid var(--line);border-radius:.6rem;
padding:.9rem 1rem;margin:1rem 0}
.top{display:flex;flex-wrap:wrap;gap:.2rem 1rem;justify-content:space-between;
align-items:baseline}
.points{white-space:nowrap;font-variant-numeric:tabular-nums;color:var(--soft)}
.points b{color:var(--ink)}
.state{font-weight:600}
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
td.n,th.n{text-align:right;white-space:nowrap}
td.name{overflow-wrap:break-word;max-width:16rem;min-width:6rem}
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
    """Sentences as HTML: a paragraph a line; what is indented is a table, as it is."""
    if len(text) > LONGEST:
        text = text[:LONGEST] + " …"
    found: list[str] = []
    block: list[str] = []
    for line in [*text.split("\n"), ""]:
        if line.startswith(("  ", "\t")):
            block.append(line)
            continue
        if block:
            found.append(f"<pre>{safe(chr(10).join(block))}</pre>")
            block = []
        if line.strip():
            found.append(f"<p>{inline(line)}</p>")
    return "\n".join(found)


def inline(text: str) -> str:
    """One line; what stands in backticks is code."""
    return re.sub(r"`([^`\n]+)`", r"<code>\1</code>", safe(text))


def rows(
    head: Iterable[str], body: Iterable[Iterable[str]], numbers: Iterable[int] = ()
) -> str:
    """A table; a wide one is moved sideways by itself.

    Args:
        head: as text.
        body: as text.
        numbers: the columns that stand at the right.
    """
    right = set(numbers)

    def row(cells: Iterable[str], tag: str) -> str:
        kind = {0: ' class="name"'} if tag == "td" else {}
        kind |= dict.fromkeys(right, ' class="n"')
        inner = "".join(
            f"<{tag}{kind.get(place, '')}>{inline(cell)}</{tag}>"
            for place, cell in enumerate(cells)
        )
        return f"<tr>{inner}</tr>"

    lines = "\n".join(row(cells, "td") for cells in body)
    return (
        f'<div class="wide"><table>\n<thead>{row(head, "th")}</thead>\n'
        f"<tbody>\n{lines}\n</tbody></table></div>"
    )
