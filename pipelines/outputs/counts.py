"""What a hop counted, of each of its streams: what arrived, what went on, and why the rest did not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from pydantic import ConfigDict, Field, StringConstraints

from hushcount.campaigns.campaign import Stream
from hushcount.errors import HushcountError
from hushcount.formats.models import text_of
from hushcount.reasons import REASONS

Count = Annotated[int, Field(ge=0, le=1 << 40)]
Rejected = Annotated[
    Mapping[Annotated[str, text_of(r"^[a-z_]{1,40}$", "must be the name of a reason")], Count], Field(max_length=64)
]
"""Number by reason. Another party may be of a later release: its reasons may be new, but not long."""


class CountsError(HushcountError, ValueError):
    """Numbers that must add up do not."""


@dataclass(frozen=True)
class StreamCounts:
    """One stream's counts at one hop; `received = accepted + sum of rejected` or it cannot be made.

    Attributes:
        received: records read.
        accepted: records that went on.
        rejected: number by reason.
    """

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

    @classmethod
    def of(cls, sums: dict[str, int]) -> StreamCounts:
        """Make counts from the sums that a pipeline wrote."""
        rejected = {name: number for name, number in sorted(sums.items()) if name not in ("received", "accepted")}
        if unknown := rejected.keys() - set(REASONS):
            raise HushcountError(f"a job counted by {min(unknown)!r}, which is no reason: please report this as a bug")
        return cls(sums.get("received", 0), sums.get("accepted", 0), rejected)


@dataclass(frozen=True)
class BinCounts:
    """What became of the bins that the auxiliary server kept; `found` of them hold a value."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    kept: Count
    found: Count
    rejected: Rejected


@dataclass(frozen=True)
class HopCounts:
    """What a hop counted: over all its streams, and of each.

    Attributes:
        hop: its name.
        received, accepted, rejected: as of a stream.
        streams: those that it read.
    """

    hop: Annotated[str, StringConstraints(pattern=r"^[a-z]{1,16}$")]
    received: Count
    accepted: Count
    rejected: Rejected
    streams: Mapping[Stream, StreamCounts]

    @classmethod
    def of(cls, hop: str, streams: Mapping[Stream, StreamCounts]) -> HopCounts:
        """Return what a hop counted of these streams, added up."""
        rejected: dict[str, int] = {}
        for counts in streams.values():
            for reason, number in counts.rejected.items():
                rejected[reason] = rejected.get(reason, 0) + number
        received, accepted = (sum(getattr(one, name) for one in streams.values()) for name in ("received", "accepted"))
        return HopCounts(hop, received, accepted, rejected, streams)

    @property
    def counts(self) -> HopCounts:
        """What the hop counted, without its statement and its result."""
        return HopCounts(self.hop, self.received, self.accepted, self.rejected, self.streams)

    def data(self) -> dict[str, Any]:
        """Return it as it stands in files."""
        return asdict(self.counts)

    def accepted_of(self, stream: str) -> int:
        """Return how many records of a stream went on; 0 where the hop did not read it."""
        return sum(counts.accepted for name, counts in self.streams.items() if name == stream)
