"""The two sides of a change or a comparison: windows of one campaign, windows of two campaigns, or two results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hushcount.errors import NotYet, UsageError
from pipelines.deployment.settings import Deployment
from pipelines.questions.sources import Source, from_folders, from_store
from pipelines.questions.spans import NEWEST, Span, month_before

USUAL = 7
"""The page and the alerts compare the newest window with the sum of this number of windows before the newest."""


@dataclass(frozen=True, eq=False)
class Sides:
    """Two sides to compare, with their names; `windows` names the windows if both sides have the same windows."""

    before: Source
    after: Source
    names: tuple[str, str]
    heads: tuple[str, str] = ("before", "after")
    windows: str = ""

    @property
    def sources(self) -> tuple[Source, Source]:
        """Both sides."""
        return self.before, self.after


def of_windows(source: Source, span: Span = NEWEST, against: int | Span | None = None) -> Sides:
    """Return two sides of one campaign: the chosen windows, and windows before them.

    Args:
        source: all windows of the campaign.
        span: the windows of the side after; by default the newest.
        against: the windows of the side before, or their number. None: the month before a month, or else as many
            windows as on the side after.

    Raises:
        UsageError: a window has no results or is on both sides.
        NotYet: there are too few windows.
    """
    windows = source.windows
    after = span.of(source, usual=1)
    if against is None and span.month is not None:
        against = _month_before(source, span.month)
    if isinstance(against, Span):
        before = against.of(source)
        if both := [one for one in before.windows if one in after.windows]:
            raise UsageError(
                f"window {_named(source, both[:1])} is on both sides, must be on one: give another --against"
            )
    else:
        many, there = against or len(after.windows), windows.index(after.windows[0])
        if there < many:
            has = (
                f"{source.name} has results of {there} windows before {_named(source, after.windows[:1])}, a change "
                f"needs {many} there"
            )
            # More windows before a time never come, and more than there are may have been meant as a year.
            if span.is_named or many > len(windows):
                raise UsageError(f"{has}: give another --against, as 1 or 2026-12")
            raise NotYet(f"{has}: wait for the next window's result, or give a smaller --last or --against")
        before = source.of(windows[there - many : there])
    first, second = (_named(source, side.windows) for side in (before, after))
    return Sides(before, after, (first, second))


def of_campaigns(deployment: Deployment, campaigns: Sequence[str], span: Span = NEWEST) -> Sides:
    """Return two campaigns as sides, in those windows in which both have results; by default in the newest of them.

    Raises:
        UsageError: `campaigns` are not two, or have fewer windows in common than `span.last`; or as in `Span.chosen`.
    """
    if len(campaigns) != 2 or len(set(campaigns)) != 2:
        raise UsageError(
            f"--campaign is {' and '.join(map(ascii, campaigns)) or 'not given'}, must be given for two campaigns"
        )
    first, second = (from_store(deployment, campaign) for campaign in campaigns)
    names = (first.name, second.name)
    common = [one for one in first.windows if one in set(second.windows)]
    if len(common) < (span.last or 1):
        raise UsageError(
            f"{first.name} and {second.name} have {len(common)} windows in common, must have at least "
            f"{span.last or 1}: give a smaller --last, or wait for more"
        )
    sides = [span.of(one.of(common), usual=1) for one in (first, second)]
    return Sides(sides[0], sides[1], names, names, _named(first.of(common), sides[0].windows))


def of_folders(campaigns: Sequence[str] | None, directories: Sequence[str]) -> Sides:
    """Return two result folders as sides; the first is the side before.

    Raises:
        UsageError: `directories` are not two, or for the same reasons as in `from_folders`.
    """
    if len(directories) != 2:
        raise UsageError(f"--result is given {len(directories)} times, must be given twice: before and after")
    both = from_folders(campaigns, directories)
    sides = [both.of([directory]) for directory in directories]
    return Sides(sides[0], sides[1], (directories[0], directories[1]))


def _month_before(source: Source, month: str) -> Span:
    before = Span(month=month_before(month))
    try:
        before.chosen(source.windows, zone=source.zone)
    except UsageError:
        raise UsageError(
            f"{source.name} has no results of {before.month}, the month before {month}: give --against, as 1 or 2026-12"
        ) from None
    return before


def _named(of: Source, side: Sequence[str]) -> str:
    short = of.names(of.windows)
    first, last = short[side[0]], short[side[-1]]
    return first if len(side) == 1 else f"{first} to {last}"
