"""One line for a test suite: raise if an attention has a mistake."""

from __future__ import annotations

from typing import Any

from attnlib.clinic.report import Report


class Unhealthy(AssertionError):
    """An attention has a mistake, or could not be examined; `.report` says which."""

    def __init__(self, report: Report) -> None:
        super().__init__(str(report))
        self.report = report


def assert_healthy(attention: object, **intent: Any) -> Report:
    """Examine an attention, and raise with the whole report unless it is healthy.

    healthy = examined, no mistake found, no law broken

    Args:
        attention: a function (q, k, v, mask=None) or an nn.Module, as for `examine`.
        intent: what it is meant to do, as for `examine`, such as n_heads=4.

    Returns:
        The report, when healthy; it may hold cautions.

    Raises:
        Unhealthy: an AssertionError whose message is the report, and whose `.report`
            is the Report.

    Cost: that of `examine`.
    Source: the course's own; `attnlib mistakes` lists what is looked for.
    Lesson: 10.

    >>> from attnlib.attention import scaled_dot_product
    >>> def mine(q, k, v, mask=None):
    ...     return scaled_dot_product(q, k, v, mask).out
    >>> assert_healthy(mine).healthy
    True
    """
    from attnlib.clinic.examine import examine

    report: Report = examine(attention, **intent)
    if not report.healthy:
        raise Unhealthy(report)
    return report
