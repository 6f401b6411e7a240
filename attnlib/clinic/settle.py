"""Let a sibling of another size settle which of two mistakes a module has."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from attnlib.clinic.catalogue import get
from attnlib.clinic.module_sibling import siblings
from attnlib.clinic.report import Report
from attnlib.clinic.subject import FunctionSubject, ModuleSubject

DOUBT = "At these sizes it could as well be"
SAME = (
    "At its own sizes {} and {} look the same. Another one of its class, with "
    "d_model={} and n_heads={}, tells them apart{}."
)


def settled(
    report: Report,
    attention: object,
    subject: FunctionSubject | ModuleSubject,
    examine: Callable[[object], Report],
) -> Report:
    """The report without its doubt, if a sibling has one of the two mistakes alone."""
    doubt = next((note for note in report.untested if note.startswith(DOUBT)), None)
    if doubt is None or not isinstance(subject, ModuleSubject):
        return report
    fixed = get("scale_other").name  # a number that is 1/d_k at two sizes is 1/d_k
    others = set(re.findall(r"\bM\d\d\b", doubt))
    own = set(report.codes)
    for sibling, d_model, n_heads in siblings(attention, subject.weights):
        other = examine(sibling)
        codes = set(other.codes)
        if other.unknown is not None or other.refused:
            continue
        if any(n.startswith(DOUBT) and fixed not in n for n in other.untested):
            continue
        swapped = others <= codes <= own | others and len(codes) <= len(own)
        if codes != own and not swapped:
            continue
        notes = tuple(note for note in report.untested if note != doubt)
        said = SAME.format(
            " and ".join(sorted(own - others) or sorted(own)),
            " and ".join(sorted(others)),
            d_model,
            n_heads,
            "" if codes == own else ": the numbers here are of that one",
        )
        kept = report if codes == own else replace(other, subject=report.subject)
        return replace(kept, untested=(*notes, said))
    return report
