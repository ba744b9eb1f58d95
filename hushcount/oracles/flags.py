"""Flags of poisoning: what in a batch honest clients do not explain, as values. A flag drops no report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, model_validator

from hushcount.formats.models import Part

Verdict = Literal["flagged", "not flagged", "cannot tell"]


class Flag(Part):
    """One flag of one batch.

    Attributes:
        verdict: "cannot tell" if not even 1 % of all clients would be flagged, if all of them forged in the way that
            this flag finds best.
        found: what was counted; None: nothing was.
        low, high: what honest clients explain; None: no bound.
        number: how many reports or items are above `high`.
    """

    verdict: Verdict = "cannot tell"
    found: float | None = None
    low: float | None = None
    high: float | None = None
    number: Annotated[int, Field(ge=0, le=1 << 62)] = 0


NOTHING = Flag()
"""Nothing was counted, so nothing can be told."""


class Flags(Part):
    """The flags of one batch.

    Attributes:
        repeated: how often one report came; finds forgers that send equal reports.
        totals: how much a report adds to all items together, on average; finds reports that support too many.
        counts: the largest count of an item, in users; finds counts above the number of reports.
    """

    format: Literal[1] = 1
    repeated: Flag = NOTHING
    totals: Flag = NOTHING
    counts: Flag = NOTHING

    @model_validator(mode="after")
    def _check(self) -> Flags:
        for name, flag in (("repeated", self.repeated), ("totals", self.totals), ("counts", self.counts)):
            bounds = (flag.found, flag.high, *((flag.low,) if name == "totals" else ()))
            if flag.verdict == "flagged" and None in bounds:
                raise ValueError(f"{name}: is flagged without what was found and its bounds, must state both")
        return self

    @property
    def raised(self) -> tuple[str, ...]:
        """Sentences, one for each raised flag."""
        return tuple(_sentences(self))


UNFLAGGED = Flags()
"""The flags of a tally that was not made from reports, but from other tallies."""


def _sentences(flags: Flags) -> Iterator[str]:
    repeats, total, count = flags.repeated, flags.totals, flags.counts
    if repeats.verdict == "flagged":
        yield (
            f"FLAG equal reports: one came {repeats.found:,.0f} times, honest clients explain {repeats.high:,.0f}; "
            f"{repeats.number:,} {'is' if repeats.number == 1 else 'are'} above that"
        )
    if total.verdict == "flagged":
        yield (
            f"FLAG supports: a report adds {total.found:,.4g} to all items together on average, honest reports "
            f"{total.low:,.4g} to {total.high:,.4g}"
        )
    if count.verdict == "flagged":
        yield (
            f"FLAG counts: the largest is {count.found:,.0f} users, noise explains {count.high:,.0f}; {count.number:,} "
            f"{'is' if count.number == 1 else 'are'} above that"
        )
