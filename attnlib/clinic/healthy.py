"""One line for a test suite: raise if an attention has a mistake."""

from __future__ import annotations

from attnlib.clinic.report import Report


class Unhealthy(AssertionError):
    """An attention has a mistake, or could not be examined; `.report` says which."""

    def __init__(self, report: Report) -> None:
        super().__init__(str(report))
        self.report = report


def assert_healthy(attention: object, **intent: object) -> Report:
    """Examine an attention, and raise with the whole report unless it is healthy.

    $$\\text{healthy} = \\text{examined, with no mistake and no broken law}$$

    Args:
        attention: a function (q, k, v, mask=None) or an nn.Module, as for `examine`.
        intent: what the attention is meant to do, as for `examine`: n_heads=4,
            mask="blocked", causal=True, ...

    Returns:
        The report, when healthy.

    Raises:
        Unhealthy: an AssertionError whose message is the report's text.

    Cost:
        That of `examine`: about a second.

    Source:
        The course's own; the catalogue is listed by `attnlib mistakes`.

    Lesson:
        10, the attention clinic.

    >>> from attnlib.attention import scaled_dot_product
    >>> def mine(q, k, v, mask=None):
    ...     return scaled_dot_product(q, k, v, mask).out
    >>> assert_healthy(mine).healthy  # doctest: +SKIP
    True
    """
    from attnlib.clinic import examine as clinic

    report = clinic.examine(attention, **intent)
    if not report.healthy:
        raise Unhealthy(report)
    return report
