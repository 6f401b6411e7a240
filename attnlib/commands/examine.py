"""`attnlib examine`: name the mistakes of an attention in a file or a module."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import warnings
from collections.abc import Callable
from html import escape
from pathlib import Path

import numpy as np

from attnlib.clinic.report import Finding, Report
from attnlib.commands.load import LoadError, last_line, load
from attnlib.commands.parser import number, seed, size

HEALTHY, UNHEALTHY, REFUSED = 0, 1, 2

DESCRIPTION = """\
Examine an attention as a black box and name its mistakes.

WHAT is a function (q, k, v, mask=None) on NumPy arrays or torch tensors, an
nn.Module, or a class of modules: package.module:name, or path/to/file.py:name.
A class is made with the sizes that it asks for by name (d_model=32, n_heads=4),
or with --make. The code of the file runs, as `python file.py` would run it.

The options say what the attention is meant to do. What is left out is found out.
The exit status is 0 if it is healthy, 1 if not, and 2 if it could not be examined.
"""
EXAMPLES = """\
examples:
  attnlib examine model.py:attention
  attnlib examine model.py:SelfAttention --d-model 64 --n-heads 8 --causal
  attnlib examine model.py --make "SelfAttention(64, 8, dropout=0.1)"
  attnlib examine package.layers:attention --mask blocked --json
"""
PAGE = """\
<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark"></head>
<body style="font-family:system-ui,sans-serif;margin:2em">
{body}
</body></html>
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Tell argparse what the command takes."""
    parser = commands.add_parser(
        "examine",
        help="name the mistakes of an attention in a file or a module",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    yes_or_no = argparse.BooleanOptionalAction
    parser.add_argument("what", metavar="WHAT", help="module:name or file.py:name")
    parser.add_argument("--make", help="a Python expression that makes the attention")
    parser.add_argument("--d-model", type=size, help="handed to a class; 32")
    intent = parser.add_argument_group("what it is meant to do")
    intent.add_argument("--n-heads", type=size, help="of a class: 4")
    intent.add_argument("--n-kv-heads", type=size)
    intent.add_argument("--scale", type=number, help="the factor; 1/sqrt(d_k)")
    intent.add_argument(
        "--mask",
        type=lambda text: text.replace(" ", "-"),
        choices=("may-look", "blocked", "added"),
        help="what True means in its mask, or that the mask is added to the scores",
    )
    intent.add_argument("--causal", action=yes_or_no, help="always, by itself")
    intent.add_argument("--window", type=size, help="how many keys a query sees")
    intent.add_argument("--softcap", type=number)
    intent.add_argument("--qk-norm", action=yes_or_no)
    intent.add_argument("--rope", choices=("interleaved", "half"))
    intent.add_argument("--rope-base", type=number)
    intent.add_argument("--alibi", action=yes_or_no)
    intent.add_argument(
        "--empty-rows", action=yes_or_no, help="a query may look at nothing"
    )
    intent.add_argument(
        "--dtype",
        choices=("float16", "bfloat16", "float32", "float64"),
        help="it must work in this type",
    )
    intent.add_argument(
        "--part",
        type=lambda text: text.replace("-", "_"),
        help="examine a part, such as alibi_slopes",
    )
    how = parser.add_argument_group("how")
    how.add_argument("--seed", type=seed, help="draws the probes; 0")
    how.add_argument("--seconds", type=number, help="at most, for all of it; 20")
    how.add_argument("--json", action="store_true", help="print JSON, not text")
    how.add_argument("--html", type=Path, metavar="FILE", help="also write a page")
    parser.set_defaults(run=run)


INTENT = (
    *("n_kv_heads", "scale", "causal", "window", "softcap", "qk_norm"),
    *("rope", "rope_base", "alibi", "empty_rows", "dtype", "part", "seed", "seconds"),
)


def run(given: argparse.Namespace) -> int:
    """Load, examine, print. Returns the exit status."""
    from attnlib.clinic.examine import examine

    try:
        # What the user's code prints must not stand between the lines of the report.
        with contextlib.redirect_stdout(sys.stderr):
            attention, n_heads = load(
                given.what,
                make=given.make,
                d_model=given.d_model,
                n_heads=given.n_heads,
                n_kv_heads=given.n_kv_heads,
            )
            report = _examined(examine, attention, _intent(given, n_heads))
    except LoadError as error:
        print(error, file=sys.stderr)
        return REFUSED
    if given.html is not None:
        page = PAGE.format(title=escape(report.verdict), body=report._repr_html_())
        try:
            given.html.write_text(page, encoding="utf-8")
        except OSError as error:
            print(f"{given.html} could not be written: {error}.", file=sys.stderr)
            return REFUSED
    print(json.dumps(as_json(report), indent=2) if given.json else report)
    if report.refused:
        return REFUSED
    return HEALTHY if report.healthy else UNHEALTHY


def _examined(
    examine: Callable[..., Report], attention: object, intent: dict[str, object]
) -> Report:
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # it is asked about huge scores and NaN
            return examine(attention, **intent)
    except ValueError as error:  # an option that the clinic does not know
        raise LoadError(str(error)) from None
    except Exception as error:  # must not end with 1, which means: not healthy
        raise LoadError(f"The clinic itself failed: {last_line(error)}") from error


def _intent(given: argparse.Namespace, n_heads: int | None) -> dict[str, object]:
    """The keywords for `examine`: only what was said, and the heads of a class."""
    said = {name: getattr(given, name) for name in INTENT}
    said["n_heads"] = n_heads
    said["mask"] = given.mask.replace("-", " ") if given.mask else None
    return {name: value for name, value in said.items() if value is not None}


def as_json(report: Report) -> dict[str, object]:
    """The report as plain lists, numbers and strings; NaN and infinity are strings."""
    unknown = report.unknown
    return {
        "subject": report.subject,
        "healthy": report.healthy,
        "codes": list(report.codes),
        "mistakes": [_finding(mistake) for mistake in report.mistakes],
        "cautions": [_finding(caution) for caution in report.cautions],
        "unknown": unknown and dict(vars(unknown)),
        "untested": list(report.untested),
        "features": list(report.features),
        "weights": _plain(report.weights),
        "right_weights": _plain(report.right_weights),
        "refused": report.refused,
        "meant": list(report.meant),
    }


def _finding(finding: Finding) -> dict[str, object]:
    return vars(finding) | {
        "measured": _plain(finding.measured),
        "expected": _plain(finding.expected),
        "reports": list(finding.reports),
    }


def _plain(value: object) -> object:
    """JSON knows no NaN: such a number becomes "nan", "inf" or "-inf"."""
    if value is None:
        return None
    if isinstance(value, np.ndarray):
        return [_plain(part) for part in value]
    number = float(value)  # type: ignore[arg-type]
    return number if np.isfinite(number) else str(number)
