"""The windows of a question, as options choose them: the newest, one window, a range, or a month."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo

from hushcount.collection.periods import ALWAYS, Period, period_of
from hushcount.collection.windows import is_window, window_names, window_start
from hushcount.errors import UsageError
from pipelines.console.options import MOST_WINDOWS
from pipelines.console.tables import stamp
from pipelines.questions.sources import Source, in_zone

_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Span:
    """A choice of windows.

    Attributes:
        last: number of newest windows; None: the question's own number.
        window: the only window, as `named` reads it.
        first, end: months, days or parts of a day: all windows that begin from `first` to `end`, inclusive. None: from
            the oldest window, or to the newest.
        month: all windows that begin in it.

    Raises:
        UsageError: windows are chosen in two ways, or a text is no time.
    """

    last: int | None = None
    window: str | None = None
    first: str | None = None
    end: str | None = None
    month: str | None = None

    def __post_init__(self) -> None:
        named = {"--window": self.window, "--month": self.month, "--from or --to": self.first or self.end}
        given = [name for name, value in {"--last": self.last, **named}.items() if value is not None]
        if len(given) > 1:
            raise UsageError(f"{' and '.join(given)} choose windows in two ways: give one of them")
        self.period()

    def __str__(self) -> str:
        if self.window is not None:
            return f"window {self.window}"
        if self.month is not None or (self.first and self.first == self.end):
            return f"the windows that begin in {self._range}"
        if self.first or self.end:
            return f"the windows that begin {self._range}"
        return "the newest window" if self.last == 1 else f"the newest {self.last:,} windows at most"

    @property
    def _range(self) -> str:
        if self.first == self.end:
            return self.month or self.first or ""
        sides = (f"from {self.first}" if self.first else "", f"to {self.end}" if self.end else "")
        return " ".join(filter(None, sides))

    @property
    def is_named(self) -> bool:
        """Whether the windows are chosen by time, which result folders do not have."""
        return self.window is not None or self.period() is not None

    def period(self, zone: tzinfo = timezone.utc) -> Period | None:
        """Return the range or the month, as a zone has it; None: the windows are not chosen so."""
        if self.month is not None:
            month = period_of(self.month, zone)
            if month is None or not _is_month(month):
                raise UsageError(f"--month is {self.month!a}, must be a month, as 2026-12")
            return month
        if self.first is None and self.end is None:
            return None
        first, end = (
            ALWAYS if text is None else _read(name, text, zone)
            for name, text in (("--from", self.first), ("--to", self.end))
        )
        return Period(first.start, end.end)

    def chosen(
        self,
        windows: Sequence[str],
        usual: int | None = None,
        zone: tzinfo = timezone.utc,
        ends: Mapping[str, datetime] | None = None,
    ) -> list[str]:
        """Return the chosen ones of windows, the oldest first.

        Args:
            windows: names of windows, the oldest first; of result folders: the folders.
            usual: number of newest windows if nothing is chosen; None: all.
            zone: that of days and months.
            ends: when each window ends, if it is known.

        Raises:
            UsageError: the text of a window means none of the windows, or several; or the range has none, or is the
                wrong way round.
        """
        if not windows:
            return []
        if self.window is not None:
            return [named(self.window, windows, zone, ends)]
        if (period := self.period(zone)) is None:
            last = self.last or usual
            return list(windows if last is None else windows[-last:])
        if period.start >= period.end:
            raise UsageError(f"--from {self.first} is later than --to {self.end}: exchange them")
        if chosen := [*filter(period.begins, windows)]:
            return chosen
        raise UsageError(f"{self} have no results: choose {_range(windows, zone)}")

    def of(self, source: Source, usual: int | None = None) -> Source:
        """Return a source with the chosen windows only, and sentences on how they fill the range.

        Raises:
            UsageError: for the same reasons as in `chosen`.
        """
        ends = None if self.window is None else source.ends
        chosen = self.chosen(source.windows, usual, source.zone, ends)
        return source.of(chosen, [*self._fits(source, chosen)])

    def _fits(self, source: Source, chosen: Sequence[str]) -> Iterator[str]:
        if self.window is not None:
            within = period_of(self.window, source.zone)
            if within is not None and not within.begins(chosen[0]):
                yield f"{self.window} lies in window {source.names(source.windows)[chosen[0]]}"
        if (period := self.period(source.zone)) is None:
            return
        if self.month is not None:
            yield self._seen(source, chosen, period)
        for window, short in source.names(source.windows).items():
            end, name = source.ends[window], f"window {short}"
            if window in chosen and end > period.end:
                yield f"{name} ends at {stamp(end)}, and all of it counts in the range {self._range}"
            elif window_start(window) < period.start < end:
                yield f"{name} ends at {stamp(end)}, and nothing of it counts in the range {self._range}"

    def _seen(self, source: Source, chosen: Sequence[str], month: Period) -> str:
        of, many = f"{self.month}{in_zone(source.zone)}", f"{len(chosen):,} windows"
        if source.has_days:
            days = {window_start(window).astimezone(source.zone).date() for window in chosen}
            many = f"{len(days)} of the {round((month.end - month.start) / _DAY)} days"
            return f"{many} of {of} {'has' if len(days) == 1 else 'have'} a result"
        return f"1 window of {of} has a result" if len(chosen) == 1 else f"{many} of {of} have results"


NEWEST = Span()
"""The usual windows of a question."""


def month_before(month: str) -> str:
    """Return the month before one, as in 2026-11."""
    start = _read("--month", month, timezone.utc).start
    return f"{start - _DAY:%Y-%m}"


def against_of(text: str | None) -> int | Span | None:
    """Return what `--against` names: a number of windows, or the windows that begin in a month, day or hour.

    Raises:
        UsageError: the text is neither.
    """
    if text is None:
        return None
    if (period := period_of(text)) is not None:
        return Span(month=text) if _is_month(period) else Span(first=text, end=text)
    if not text.isdecimal() or not 1 <= int(text[:9]) <= MOST_WINDOWS:
        raise UsageError(
            f"--against is {text!a}, must be a number of windows from 1 to {MOST_WINDOWS:,}, or a time, as 2026-12 or "
            "2026-12-24"
        )
    return int(text)


def named(
    text: str, windows: Sequence[str], zone: tzinfo = timezone.utc, ends: Mapping[str, datetime] | None = None
) -> str:
    """Return the name of the window that a text means, such as 2026-11-22, 2026-11-22T13:00Z, or the name itself.

    A time in which no window begins means the window that contains it, if `ends` says when the windows end.

    Raises:
        UsageError: the text means none of the windows, or several.
    """
    if text in windows:
        return text
    period = period_of(text, zone)
    fits = [] if period is None else [one for one in windows if is_window(one) and period.begins(one)]
    if period is not None and not fits and ends:
        fits = [one for one, end in ends.items() if window_start(one) < period.start and period.end <= end]
    if len(fits) == 1:
        return fits[0]
    if fits:
        example = window_names(fits, zone)[fits[0]]
        raise UsageError(f"window {text!a} may mean {len(fits)} windows: give one, as {example}")
    raise UsageError(f"window is {text!a}, must be {_range(windows, zone)}")


def _read(option: str, text: str, zone: tzinfo) -> Period:
    period = period_of(text, zone)
    if period is None:
        raise UsageError(f"{option} is {text!a}, must be a time, as 2026-12, 2026-12-24 or 2026-12-24T13:00Z")
    return period


def _is_month(period: Period) -> bool:
    return period.end - period.start > 27 * _DAY


def _range(windows: Sequence[str], zone: tzinfo) -> str:
    first, *others = window_names(windows, zone).values()
    if not others:
        return f"{first}, the only one with results"
    return f"one of the {len(others) + 1:,} windows with results, {first} to {others[-1]}"
