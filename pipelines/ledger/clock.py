"""How far the clock is ahead of all else that tells the time: no run does anything final by a clock that is far ahead.

The clock of a store of objects is another one, and decides: the present is the earlier of the two. On a disk a
deployment's stamps tell the time: when entries of its logs and manifests were written, and the ledger's time. Each says
that it was that late at least, if the clock that wrote it was right. No stamp is believed alone: from the newest entry
on, which is put at a trusted moment, they must follow each other without a gap longer than the bound. Stamps beyond a
gap come from a clock that jumped, however many they are, or nothing happened for so long: only the operator knows.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

_LEAST_BOUND = timedelta(days=2)
_AGREES = timedelta(minutes=5)
"""So far a clock may be ahead of the store's before it is called wrong."""
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
class Reading:
    """The present by the clock, beside everything else that tells the time.

    Attributes:
        now: what the clock says.
        bound: so far ahead of everything else it may be without a store's clock; `usual_bound` of a deployment.
        trusted: when the newest entry of the logs was put; None: there is none, and the oldest stamp is the first.
        witnesses: what else tells the time.
        store: what the store's own clock says now; it decides alone. None: it has none, or did not answer.
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
        return self.ahead > (self.bound if self.store is None else _AGREES)

    @property
    def present(self) -> datetime:
        """The moment to work by, which has certainly come: nothing is final that would begin later.

        It is not after the store's clock, nor, if the clock is far ahead, after the latest moment known to have come.
        """
        reach = self.reach
        return min(self.now, reach) if reach is not None and (self.is_far or self.store is not None) else self.now

    def says(self) -> str:
        """Return what the clock says, how far it is ahead of all else or behind it, and what that is."""
        reach, said = self.reach, "ahead of" if self.ahead >= timedelta() else "behind"
        off = f"the clock says {shown(self.now)}, {span(self.ahead)} {said}"
        if reach is None:
            return f"the clock says {shown(self.now)}, and nothing else tells the time"
        if self.store is not None:
            return f"{off} the store's own clock, {shown(self.store)}"
        told: list[str] = []
        beyond: list[str] = []
        for witness in (*self.witnesses, Witness("the log", () if self.trusted is None else (self.trusted,))):
            if near := [stamp for stamp in witness.stamps if stamp <= reach]:
                told.append(f"{witness.name} {shown(max(near))}")
            if far := [stamp for stamp in witness.stamps if stamp > reach]:
                beyond.append(f"{witness.name} {shown(max(far))}")
        gap = f"; after a gap, so that it proves nothing: {', '.join(beyond)}" if beyond else ""
        return f"{off} all else that tells the time: {', '.join(told)}{gap}"


def usual_bound(length: timedelta, grace: timedelta, patience: timedelta) -> timedelta:
    """Return how far a right clock may be ahead of all that a working deployment leaves behind.

    The newest manifest is of the window before the present one, or of the one before that during `patience`, and may
    come `grace` late. Two days at least: a nightly schedule may miss a night. So much too early, and no more, something
    final may be done on a disk.
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
