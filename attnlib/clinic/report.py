"""What an examination found, and how it reads in a terminal.

`str(report)` is the text, `_repr_html_` shows the same in Jupyter with the weights
beside the right ones (`report_html`). Only what was measured is in it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from attnlib.clinic.words import capital, gave_away, not_the_first, one_line

Weights = npt.NDArray[np.floating]

WIDTH = 88
SHOWN = 4  # reports in one finding; `attnlib mistakes M14` has them all
COUNTS = ("no", "one", "two", "three", "four", "five", "six")


@dataclass(frozen=True)
class Finding:
    """One mistake, or one caution, with the number that gave it away."""

    code: str  # "M02"
    key: str  # "scale_d_model": which wrong version it is
    name: str  # what is wrong, as a short sentence without its full stop
    sentence: str  # what it means
    evidence: str  # the measured value beside the right one, as a sentence
    measured: float | None = None
    expected: float | None = None
    mend: str = ""
    reports: tuple[str, ...] = ()  # "owner/repo#number": where it was seen in public

    @property
    def seen(self) -> str:
        """Where it was seen in public, as a sentence; empty if nowhere."""
        if not self.reports:
            return ""
        shown = list(self.reports[:SHOWN])
        more = len(self.reports) - SHOWN
        return not_the_first([*shown, f"{more} more"] if more > 0 else shown)


@dataclass(frozen=True)
class Unknown:
    """What is wrong, but is no mistake that has a name: the law that it breaks."""

    law: str
    sentence: str
    example: str = ""  # the smallest input that shows it, as text


@dataclass(frozen=True, eq=False, repr=False)  # arrays cannot be compared with ==
class Report:
    """What `examine` found.

    `healthy` means that no mistake was found, named or not. Cautions are things to
    know, and no mistakes. `untested` says what was not looked at, and why. `features`
    were found in it; `meant` is what was said of it, true or not.
    """

    subject: str
    mistakes: tuple[Finding, ...] = ()
    cautions: tuple[Finding, ...] = ()
    unknown: Unknown | None = None
    untested: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    weights: Weights | None = None  # (n_q, n_k)
    right_weights: Weights | None = None  # (n_q, n_k)
    refused: str = ""  # why it could not be examined at all
    meant: tuple[str, ...] = ()  # what it is to be: by keywords, or by its attributes

    @property
    def healthy(self) -> bool:
        """Examined, and nothing wrong was found."""
        return not (self.mistakes or self.unknown or self.refused)

    @property
    def codes(self) -> tuple[str, ...]:
        """The numbers of the mistakes, each once."""
        return tuple(dict.fromkeys(mistake.code for mistake in self.mistakes))

    @property
    def evidence(self) -> dict[str, str]:
        """By number, the sentence with the value that gave the mistake away."""
        return {
            code: " ".join(
                self.begun(m.evidence) for m in self.mistakes if m.code == code
            )
            for code in self.codes
        }

    @property
    def verdict(self) -> str:
        """The first line: healthy or not, and how many mistakes."""
        name = one_line(self.subject)
        if self.refused:
            return f"{name} could not be examined."
        if self.healthy:
            return f"{name} is healthy."
        n = len(self.mistakes)
        if not n:
            return f"{name} is not healthy: something is wrong that has no name here."
        count = COUNTS[n] if n < len(COUNTS) else str(n)
        also = ", and something that has no name here" if self.unknown else ""
        things = "mistake" if n == 1 else "mistakes"
        return f"{name} is not healthy: {count} {things}{also}."

    @property
    def reason(self) -> str:
        """Why it could not be examined, without what the verdict has said."""
        said = self.verdict.removesuffix(".")
        return self.begun(self.refused.removeprefix(said).lstrip(" :."))

    def begun(self, sentence: str) -> str:
        """A sentence with a capital, if it does not begin with the subject's name."""
        named = sentence.startswith(f"{self.subject} ")
        return sentence if named else capital(sentence)

    def __str__(self) -> str:
        """The report as text."""
        return "\n".join(_lines(self)).rstrip()

    def __repr__(self) -> str:
        """The text: a prompt shows the report."""
        return str(self)

    def _repr_html_(self) -> str:
        from attnlib.clinic.report_html import html_of

        return html_of(self)


def _lines(report: Report) -> Iterator[str]:
    yield from _wrapped(report.verdict, "")
    if report.reason:
        yield ""
        yield from _wrapped(report.reason, "")
    several = len(report.mistakes) > 1
    for number, mistake in enumerate(report.mistakes, start=1):
        yield from _finding(mistake, f"{number}. " if several else "")
    if report.unknown is not None:
        yield from _unknown(report.unknown)
    for caution in report.cautions:
        yield from _finding(caution, "Caution, no mistake: ")
    if report.meant:
        yield ""
        yield from _wrapped(f"Meant to be: {'; '.join(report.meant)}.", "")
    if report.features:
        yield ""
        yield from _wrapped(f"Found out: {'; '.join(report.features)}.", "")
    if report.untested:
        yield ""
        yield "Not tested:"
        for sentence in report.untested:
            yield from _wrapped(f"- {report.begun(sentence)}", "  ")


def _finding(finding: Finding, before: str) -> Iterator[str]:
    yield ""
    yield from _wrapped(f"{before}{title(finding)}", "")
    for sentence in (
        finding.sentence,
        gave_away(finding.evidence) if finding.evidence else "",
        finding.mend,
        finding.seen,
    ):
        if sentence:
            yield from _wrapped(f"  {sentence}", "  ")


def title(finding: Finding) -> str:
    """The number and the name of a mistake.

    >>> title(Finding("M01", "scale_missing", "The scores are not scaled", "", ""))
    'M01 The scores are not scaled.'
    """
    return f"{finding.code} {finding.name}.".lstrip()


def _unknown(unknown: Unknown) -> Iterator[str]:
    yield ""
    yield from _wrapped(
        f"Wrong, but no mistake that is known here: {unknown.law.rstrip('.')}.", ""
    )
    yield from _wrapped(f"  {unknown.sentence}", "  ")
    if unknown.example:
        yield "  The smallest example:"
        yield from textwrap.indent(unknown.example, "    ").splitlines()


def _wrapped(sentence: str, indent: str) -> list[str]:
    """Lines of at most WIDTH characters; what stands in code is left as it is."""
    lines: list[str] = []
    for line in sentence.splitlines():
        lines += textwrap.wrap(
            line,
            WIDTH,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
    return lines
