"""Counts of a hop for each stream: received, accepted, and rejected by reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Annotated, Any

from pydantic import ConfigDict, Field, StringConstraints

from hushcount.campaigns.campaign import Stream
from hushcount.errors import HushcountError
from hushcount.formats.models import text_of
from hushcount.reasons import REASONS, Reason
from hushcount.wire.blocks import Kind

Count = Annotated[int, Field(ge=0, le=1 << 40)]
Rejected = Annotated[
    Mapping[Annotated[str, text_of(r"^[a-z_]{1,40}$", "must be the name of a reason")], Count], Field(max_length=64)
]
"""Number of rejected records by reason.

Another party may run a newer version with new reasons, so only the form of a reason is checked.
"""

SEALED: dict[Stream, Kind] = {"reports": Kind.SEALED_REPORTS, "discovery": Kind.SEALED_DISCOVERY}


class CountsError(HushcountError, ValueError):
    """The counts of a hop do not add up."""


@dataclass(frozen=True)
class StreamCounts:
    """One stream's counts at one hop; raises CountsError unless `received` is `accepted` plus the sum of `rejected`."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    received: Count
    accepted: Count
    rejected: Rejected

    def __post_init__(self) -> None:
        if self.received != self.accepted + sum(self.rejected.values()):
            raise CountsError(
                f"counts do not add up: received {self.received}, accepted {self.accepted}, rejected "
                f"{sum(self.rejected.values())}; nothing was released, please report this as a bug"
            )

    def rejecting(self, reason: Reason, kept: int) -> StreamCounts:
        """Return the counts if only `kept` of the accepted reports are accepted, and the others rejected."""
        further = self.accepted - kept
        rejected: dict[str, int] = {**self.rejected}
        if further:
            rejected[reason] = further
        return StreamCounts(self.received, kept, dict(sorted(rejected.items())))

    def without(self, dummies: int) -> StreamCounts:
        """Return the counts of clients' reports: of the accepted records, so many are dummies of mixes before."""
        if dummies > self.accepted:
            raise CountsError(f"{dummies} dummies were handed on, and only {self.accepted} records could be opened")
        return StreamCounts(self.received - dummies, self.accepted - dummies, self.rejected)


@dataclass(frozen=True)
class Opening:
    """How many sealed boxes each engine tried first, and how many libsodium opened after the lanes refused them."""

    lanes: Count = 0
    libsodium: Count = 0
    rescued: Count = 0


OPENING = "opening"
"""Prefix of an `Opening`'s counts in a job's sums, where the prefix of a stream's counts is the stream."""


def label(count: tuple[str, int], stream: str) -> tuple[str, int]:
    """Put the name of a stream before the name of a count."""
    return f"{stream}:{count[0]}", count[1]


WRITTEN = "written"
"""Prefix of the counts of records written to each kind of file. Once these counts are known, the order is complete."""


def counts_of(sums: Mapping[str, int], streams: tuple[Stream, ...]) -> dict[Stream, StreamCounts]:
    """Return each stream's counts, from those sums of a job whose names begin with the stream."""
    counts = {}
    for stream in streams:
        mine = {name.partition(":")[2]: number for name, number in sums.items() if name.startswith(f"{stream}:")}
        received, accepted = mine.pop("received", 0), mine.pop("accepted", 0)
        if unknown := mine.keys() - set(REASONS):
            raise HushcountError(f"a job counted the unknown reason {min(unknown)!r}: please report this as a bug")
        counts[stream] = StreamCounts(received, accepted, dict(sorted(mine.items())))
    return counts


def opening_of(sums: Mapping[str, int], counts: StreamCounts) -> Opening:
    """Return how many boxes each engine opened, from those sums of a job whose names begin with OPENING.

    Raises:
        CountsError: there are fewer boxes than accepted reports, or more boxes than received records. Records that
            cannot be read or belong to another campaign are counted as received, but not as boxes.
    """
    mine = {name.partition(":")[2]: number for name, number in sums.items() if name.startswith(f"{OPENING}:")}
    if unknown := mine.keys() - {one.name for one in fields(Opening)}:
        raise HushcountError(f"a job counted boxes of the unknown engine {min(unknown)!r}: please report this bug")
    opening = Opening(**mine)
    if not counts.accepted <= (boxes := opening.lanes + opening.libsodium) <= counts.received:
        raise CountsError(
            f"{boxes} boxes were opened, must be {counts.accepted} to {counts.received}: please report this as a bug"
        )
    if opening.rescued > opening.lanes:
        raise CountsError(f"rescued is {opening.rescued}, must be at most lanes, {opening.lanes}: report this as a bug")
    return opening


@dataclass(frozen=True)
class BinCounts:
    """Counts of the bins that the auxiliary server kept; `found` is the number of bins with an accepted value."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    kept: Count
    found: Count
    rejected: Rejected


@dataclass(frozen=True)
class HopCounts:
    """Counts of a hop, for all streams together and for each stream that the hop read.

    Attributes:
        opening: how many boxes each engine opened; None: the hop opens no reports, or its summary lacks the field.
        dummies: number of dummies among the records that the hop wrote or tallied, of all mixes; the counts are without
            them. None: without noise.
    """

    hop: Annotated[str, StringConstraints(pattern=r"^[a-z]{1,16}$")]
    received: Count
    accepted: Count
    rejected: Rejected
    streams: Mapping[Stream, StreamCounts]
    opening: Opening | None = field(default=None, kw_only=True)
    dummies: Count | None = field(default=None, kw_only=True)

    @classmethod
    def of(cls, hop: str, streams: Mapping[Stream, StreamCounts], opening: Opening | None = None) -> HopCounts:
        """Add up the counts of a hop's streams."""
        rejected: dict[str, int] = {}
        for counts in streams.values():
            for reason, number in counts.rejected.items():
                rejected[reason] = rejected.get(reason, 0) + number
        received, accepted = (sum(getattr(one, name) for one in streams.values()) for name in ("received", "accepted"))
        return HopCounts(hop, received, accepted, rejected, streams, opening=opening)

    @property
    def counts(self) -> HopCounts:
        """The counts of this hop, without the other fields of a summary."""
        return HopCounts(
            self.hop,
            self.received,
            self.accepted,
            self.rejected,
            self.streams,
            opening=self.opening,
            dummies=self.dummies,
        )

    def data(self) -> dict[str, Any]:
        """Return the counts as JSON data."""
        return {name: value for name, value in asdict(self.counts).items() if value is not None}

    def accepted_of(self, stream: str) -> int:
        """Return how many records of a stream were accepted; 0 if the hop did not read the stream."""
        return sum(counts.accepted for name, counts in self.streams.items() if name == stream)
