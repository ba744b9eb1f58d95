"""How far this machine's clock is ahead of everything else that tells the time.

While the clock is far ahead, no run takes an action that cannot be undone. An object store has its own clock, so the
present is the earlier of this machine's time and the store's time. On a disk, the deployment's time stamps tell the
time: time stamps of log entries and manifests, and the ledger's time. Each time stamp proves that its moment has
passed, if the clock that wrote the stamp was right. A single time stamp is not believed: starting from the newest log
entry, a stamp counts only if it is at most the bound later than the stamp before it. Stamps after a longer gap come
from a clock that jumped, or nothing happened for that long; only the operator can know which of the two is true.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

_LEAST_BOUND = timedelta(days=2)
_AGREES = timedelta(minutes=5)
"""A clock that is ahead of the store's clock by more than this time is called wrong."""
_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


@dataclass(frozen=True)
class Witness:
    """Something that tells the time.

    Attributes:
        name: the name in a sentence, such as "the newest manifest".
        stamps: time stamps, each of a moment that had passed when it was written, in any order and any time zone.
    """

    name: str
    stamps: tuple[datetime, ...]


@dataclass(frozen=True)
class Reading:
    """The time by the clock, and by everything else that tells the time.

    Attributes:
        now: the time by the clock.
        bound: how far the clock may be ahead of everything else if the store has no clock; see `usual_bound`.
        trusted: when the newest log entry was put; None if there is no entry: then the oldest stamp is believed first.
        witnesses: everything else that tells the time, such as the newest manifest.
        store: the time by the store's own clock, which then decides alone; None if the store has no clock or did not
            answer.
    """

    now: datetime
    bound: timedelta
    trusted: datetime | None = None
    witnesses: tuple[Witness, ...] = ()
    store: datetime | None = None

    @property
    def reach(self) -> datetime | None:
        """The latest moment that has certainly passed; None if only the clock tells the time."""
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
        """How far the clock is ahead of all else; negative if the clock is behind, 0 if nothing else tells the time."""
        return timedelta() if self.reach is None else self.now - self.reach

    @property
    def is_far(self) -> bool:
        """Whether the clock is so far ahead that no action that cannot be undone may rely on it."""
        return self.ahead > (self.bound if self.store is None else _AGREES)

    @property
    def present(self) -> datetime:
        """The moment to work by, which has certainly passed; nothing irreversible is done for a later moment.

        This moment is not later than the store's clock and, if the clock is far ahead, not later than `reach`.
        """
        reach = self.reach
        return min(self.now, reach) if reach is not None and (self.is_far or self.store is not None) else self.now

    def says(self) -> str:
        """Return a sentence with the clock's time, how far it is ahead of or behind all else, and the other times."""
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
    """Return how far a right clock may be ahead of all time stamps that a working deployment writes.

    A working deployment's newest manifest is of the window before the present window or, during `patience`, of the
    window before that; a manifest may also come `grace` late. The bound is at least two days, because a nightly
    schedule may miss a night. On a disk, an action that cannot be undone may be too early by the bound, but not by
    more.
    """
    return max(_LEAST_BOUND, 2 * length + patience + grace)


def shown(moment: datetime) -> str:
    """Return a moment as messages show it, to the minute."""
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
