"""What every part of the page of a campaign reads: its results, and how windows are named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from hushcount.errors import UsageError
from hushcount.privacy.guarantees import Statement
from hushcount.privacy.statement import statement
from hushcount.questions.counted import Counted, Group
from pipelines.asking.sources import Source
from pipelines.console.tables import window_names


@dataclass(frozen=True, eq=False)
class Shown:
    """A campaign with results, on a page.

    Attributes:
        source: its results.
        key: distinguishes it on the page.
    """

    source: Source
    key: str

    @property
    def name(self) -> str:
        """The campaign's id."""
        return self.source.name

    @cached_property
    def windows(self) -> Mapping[str, str]:
        """A short name of each window."""
        return window_names(self.source.windows)

    def results(self, windows: Sequence[str]) -> tuple[Counted, ...]:
        """Return the results of windows: several of one window if its reports are of two epochs."""
        return tuple(one for one in self.source.counted if one.window in set(windows))

    @cached_property
    def newest(self) -> tuple[Counted, ...]:
        """The results of the newest window."""
        return self.results(self.source.windows[-1:])

    @cached_property
    def stated(self) -> Statement:
        """What the newest result says about one person."""
        newest = self.source.counted[-1]
        return statement(newest.campaign, newest.reports, newest.tally.senders)


def asked_of_all(campaigns: Sequence[Shown], results: Sequence[Counted]) -> tuple[Group, ...]:
    """Return a group of each item that all campaigns follow and all results counted; UsageError if there is none."""
    first, *others = (one.source.followed for one in campaigns)
    lacking = {item for one in results for item in one.lacks(first)}
    common = set(first).difference(lacking).intersection(*others)
    if not common:
        raise UsageError("No item was counted in all of these results")
    return tuple(Group(item, (item,)) for item in first if item in common)
