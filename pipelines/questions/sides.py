"""The two sides of a change or a comparison: windows of one campaign, windows of two campaigns, or two results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hushcount.collection.windows import window_text
from hushcount.errors import NotYet, UsageError
from pipelines.deployment.settings import Deployment
from pipelines.questions.answer_tables import short_names
from pipelines.questions.sources import Source, from_folders, from_store

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


def of_windows(
    source: Source, before: str | None = None, after: str | None = None, last: int = 1, against: int | None = None
) -> Sides:
    """Return two sides of one campaign: two named windows, or the last windows and the windows before them.

    Args:
        before, after: names of windows, as `Source.named` reads them. By default `after` is the newest window, and
            `before` the window before `after`.
        last, against: if no window is named, the numbers of windows on the side after and on the side before; the
            default of `against` is `last`.

    Raises:
        UsageError: a window has no results or is on both sides.
        NotYet: there are too few windows.
    """
    windows = source.windows
    if before is not None or after is not None:
        if last != 1 or against is not None:
            raise UsageError(
                "--from and --to name windows, --last and --against count windows: give either names or numbers"
            )
        end = windows[-1] if after is None else source.named(after)
        place = windows.index(end)
        if before is None and not place:
            raise UsageError(f"window {window_text(end)} is the first with results: give another window by --from")
        begin = windows[place - 1] if before is None else source.named(before)
        if begin == end:
            raise UsageError(
                f"window {window_text(end)} is on both sides, must be on one: give another one by --from or --to"
            )
        sides = [begin], [end]
    else:
        many = last if against is None else against
        if len(windows) < last + many:
            smaller = ", or give a smaller --last or --against" if last + many > 2 else ""
            wait = f"wait for the next window's result{smaller}"
            raise NotYet(
                f"{source.name} has results of {len(windows)} window{'s' if len(windows) > 1 else ''}, a change needs "
                f"{last + many}, {last} after and {many} before: {wait}"
            )
        sides = list(windows[-last - many : -last]), list(windows[-last:])
    first, second = (_named(side, windows) for side in sides)
    return Sides(source.of(sides[0]), source.of(sides[1]), (first, second))


def of_campaigns(deployment: Deployment, campaigns: Sequence[str], last: int = 1, window: str | None = None) -> Sides:
    """Return two campaigns as sides, in the last windows in which both have results, or in the window `window`.

    Raises:
        UsageError: `campaigns` are not two, or too few windows have results of both campaigns.
    """
    if len(campaigns) != 2 or len(set(campaigns)) != 2:
        raise UsageError(
            f"--campaign is {' and '.join(map(ascii, campaigns)) or 'not given'}, must be given for two campaigns"
        )
    first, second = (from_store(deployment, campaign) for campaign in campaigns)
    names = (first.name, second.name)
    if window is not None:
        sides = [one.of([one.named(window)]) for one in (first, second)]
        return Sides(sides[0], sides[1], names, names, _named(sides[0].windows, sides[0].windows))
    common = [one for one in first.windows if one in set(second.windows)]
    if len(common) < last:
        raise UsageError(
            f"{first.name} and {second.name} have {len(common)} windows in common, must have at least {last}: give "
            "a smaller --last, or wait for more"
        )
    return Sides(first.of(common[-last:]), second.of(common[-last:]), names, names, _named(common[-last:], common))


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


def _named(side: Sequence[str], windows: Sequence[str]) -> str:
    short = short_names(windows)
    first, last = short[side[0]], short[side[-1]]
    return first if len(side) == 1 else f"{first} to {last}"
