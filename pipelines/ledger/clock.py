"""How far the clock is ahead of all else that tells the time: what is final is not done by one that is far ahead.

A deployment leaves stamps: the ends of the windows that collectors closed, the charges of the ledger, the last run.
Each says that it was that late at least, if the clock that wrote it was right. None is believed alone. From the last
run that was trusted on they must follow each other with no gap longer than the bound; what lies beyond a gap was
written by a clock that jumped, or nothing happened for as long: only the operator knows which.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

_LEAST_BOUND = timedelta(days=2)
_TIME = "%Y-%m-%d %H:%M UTC"


@dataclass(frozen=True)
class Witness:
    """Something that tells the time.

    Attributes:
        name: as in a sentence: "the newest manifest".
        stamps: moments that had come when they were written, in any order; of any time zone.
    """

    name: str
    stamps: tuple[datetime, ...]


@dataclass(frozen=True)
class Clock:
    """The present as the clock gives it, beside everything else that tells the time.

    Attributes:
        now: what the clock says.
        bound: by how much it may be ahead of everything else; `usual_bound` of a deployment.
        trusted: the last moment that a run trusted; None: there was no such run, and the oldest stamp is the first.
        witnesses: what else tells the time.
        store: what the store's own clock says at this moment; it decides alone. None: it has none, or was not asked.
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
        stamps = sorted(stamp for witness in self.witnesses for stamp in witness.stamps)
        reach = self.trusted
        for stamp in stamps:
            if reach is not None and stamp > reach + self.bound:
                break
            reach = stamp if reach is None else max(reach, stamp)
        return reach

    @property
    def ahead(self) -> timedelta:
        """By how much the clock is ahead of all else; negative: by how much behind; zero where nothing else tells."""
        reach = self.reach
        return timedelta() if reach is None else self.now - reach

    @property
    def is_far(self) -> bool:
        """Whether the clock is so far ahead that nothing final may be done by it."""
        return self.ahead > self.bound

    def present(self, patience: timedelta = timedelta()) -> datetime:
        """Return the moment to work by: the clock's, or if that is far ahead, the latest that is known to have come.

        Args:
            patience: how long after that moment things still wait that came before it.
        """
        reach = self.reach
        return self.now if reach is None or not self.is_far else reach + patience

    def says(self) -> str:
        """Return what the clock says, by how much it is ahead of all else or behind it, and what that is."""
        reach = self.reach
        if reach is None:
            return f"the clock says {shown(self.now)}, and nothing else tells the time"
        told: list[str] = []
        beyond: list[str] = []
        for witness in (*self.witnesses, Witness("the last run", () if self.trusted is None else (self.trusted,))):
            for stamps, place in zip(_divided(witness.stamps, reach), (told, beyond), strict=True):
                if stamps:
                    place.append(f"{witness.name} {shown(max(stamps))}")
        told += [] if self.store is None else [f"the store's own clock {shown(self.store)}"]
        said = "ahead of" if self.ahead >= timedelta() else "behind"
        gap = f"; after a gap, so that it proves nothing: {', '.join(beyond)}" if beyond else ""
        return (
            f"the clock says {shown(self.now)}, {span(self.ahead)} {said} all else that tells the time: "
            f"{', '.join(told)}{gap}"
        )


def usual_bound(length: timedelta, grace: timedelta, patience: timedelta) -> timedelta:
    """Return by how much a clock that is right may be ahead of all that a working deployment leaves behind.

    The newest manifest is of the window before the present one, or of the one before that while patience lasts, and may
    come a grace period late. Two days at least: a nightly schedule may miss a night. So much too early something
    final may be done, and no more.

    Args:
        length: of a window.
        grace: how long after its window a segment still counts.
        patience: how long after a window's end its manifests are waited for.
    """
    return max(_LEAST_BOUND, 2 * length + patience + grace)


def _divided(stamps: tuple[datetime, ...], reach: datetime) -> tuple[list[datetime], list[datetime]]:
    return [stamp for stamp in stamps if stamp <= reach], [stamp for stamp in stamps if stamp > reach]


def shown(moment: datetime) -> str:
    """Return a moment as a sentence says it, to the minute."""
    return moment.astimezone(timezone.utc).strftime(_TIME)


def span(length: timedelta) -> str:
    """Return how long something is in words, without its sign: 398 d 2 h, 2 h 5 min, 3 s."""
    seconds = int(abs(length).total_seconds())
    units = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
    parts = []
    for unit, size in units:
        number, seconds = divmod(seconds, size)
        if number:
            parts.append(f"{number} {unit}")
    return " ".join(parts[:2]) or "0 s"
