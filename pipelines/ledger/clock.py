"""How far the clock is ahead of all else that tells the time: no run does anything final by a clock that is far ahead.

A deployment leaves stamps: the ends of the windows that collectors closed, the charges of the ledger, the last run.
Each says that it was that late at least, if the clock that wrote it was right. No stamp is believed alone: from the
last trusted run on they must follow each other without a gap longer than the bound. Stamps beyond a gap come from a
clock that jumped, or nothing happened for so long: only the operator knows which.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

_LEAST_BOUND = timedelta(days=2)
_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


@dataclass(frozen=True)
class Witness:
    """Something that tells the time.

    Attributes:
        name: as in a sentence: "the newest manifest".
        stamps: moments that had come when they were written, in any order, of any time zone.
    """

    name: str
    stamps: tuple[datetime, ...]


@dataclass(frozen=True)
class Clock:
    """The present by the clock, beside everything else that tells the time.

    Attributes:
        now: what the clock says.
        bound: so far ahead of everything else it may be; `usual_bound` of a deployment.
        trusted: the last moment that a run trusted; None: no run did, and the oldest stamp is the first.
        witnesses: what else tells the time.
        store: what the store's own clock says now; it decides alone. None: it has none, or was not asked.
    """

    now: datetime
    bound: timedelta
    trusted: datetime | None = None
    witnesses: tuple[Witness, ...] = ()
    store: datetime | None = None

    @property
    def reach(self) -> datetime | None:
        """The latest moment that is known to have come; None: nothing but the clock tells the time."""
        if self.store is not None:
            return self.store
        reach = self.trusted
        for stamp in sorted(stamp for witness in self.witnesses for stamp in witness.stamps):
            if reach is not None and stamp > reach + self.bound:
                break
            reach = stamp if reach is None else max(reach, stamp)
        return reach

    @property
    def ahead(self) -> timedelta:
        """How far the clock is ahead of all else; negative: behind; zero if nothing else tells the time."""
        return timedelta() if self.reach is None else self.now - self.reach

    @property
    def is_far(self) -> bool:
        """Whether the clock is so far ahead that nothing final may be done by it."""
        return self.ahead > self.bound

    def present(self, patience: timedelta = timedelta()) -> datetime:
        """Return the moment to work by: the clock's, or if that is far ahead, `patience` after the latest known one."""
        reach = self.reach
        return self.now if reach is None or not self.is_far else reach + patience

    def says(self) -> str:
        """Return what the clock says, how far it is ahead of all else or behind it, and what that is."""
        reach = self.reach
        if reach is None:
            return f"the clock says {shown(self.now)}, and nothing else tells the time"
        told: list[str] = []
        beyond: list[str] = []
        for witness in (*self.witnesses, Witness("the last run", () if self.trusted is None else (self.trusted,))):
            if near := [stamp for stamp in witness.stamps if stamp <= reach]:
                told.append(f"{witness.name} {shown(max(near))}")
            if far := [stamp for stamp in witness.stamps if stamp > reach]:
                beyond.append(f"{witness.name} {shown(max(far))}")
        told += [] if self.store is None else [f"the store's own clock {shown(self.store)}"]
        said = "ahead of" if self.ahead >= timedelta() else "behind"
        gap = f"; after a gap, so that it proves nothing: {', '.join(beyond)}" if beyond else ""
        return (
            f"the clock says {shown(self.now)}, {span(self.ahead)} {said} all else that tells the time: "
            f"{', '.join(told)}{gap}"
        )


def usual_bound(length: timedelta, grace: timedelta, patience: timedelta) -> timedelta:
    """Return how far a right clock may be ahead of all that a working deployment leaves behind.

    The newest manifest is of the window before the present one, or of the one before that during `patience`, and may
    come `grace` late. Two days at least: a nightly schedule may miss a night. So much too early, and no more, something
    final may be done.
    """
    return max(_LEAST_BOUND, 2 * length + patience + grace)


def shown(moment: datetime) -> str:
    """Return a moment as a sentence says it, to the minute."""
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")


def span(length: timedelta) -> str:
    """Return a length of time in words, without its sign: 398 d 2 h, 2 h 5 min, 3 s."""
    seconds = int(abs(length).total_seconds())
    parts = []
    for unit, size in _UNITS:
        number, seconds = divmod(seconds, size)
        if number:
            parts.append(f"{number} {unit}")
    return " ".join(parts[:2]) or "0 s"
