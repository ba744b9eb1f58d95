"""summary.json: what a hop received, accepted and rejected, by reason, with the privacy statement."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.errors import HushcountError
from hushcount.oracles.influence import influence, influence_sentence
from hushcount.oracles.mechanism import Mechanism
from hushcount.privacy.statement import statement
from hushcount.reasons import REASONS
from hushcount.senders import Senders, told_in

Summary = dict[str, Any]
MADE_FROM = "made_from"
"""Digest of the summary of the hop before, as it was read: two outputs of one name have another."""


@dataclass(frozen=True)
class StreamCounts:
    """One stream's counts at one hop; `received = accepted + sum of rejected` or it cannot be made.

    Attributes:
        received: records read.
        accepted: records that went on.
        rejected: number by reason.
    """

    received: int
    accepted: int
    rejected: Mapping[str, int]

    def __post_init__(self) -> None:
        if self.received != self.accepted + sum(self.rejected.values()):
            raise HushcountError(
                f"counts do not add up: received {self.received}, accepted {self.accepted}, rejected {self.rejected}; "
                "nothing was released, please report this as a bug"
            )

    @classmethod
    def of(cls, sums: dict[str, int]) -> StreamCounts:
        """Make counts from the sums that a pipeline wrote."""
        rejected = {name: number for name, number in sorted(sums.items()) if name not in ("received", "accepted")}
        if unknown := rejected.keys() - set(REASONS):
            raise HushcountError(f"a job counted by {min(unknown)!r}, which is no reason: please report this as a bug")
        return cls(sums.get("received", 0), sums.get("accepted", 0), rejected)

    def data(self) -> dict[str, Any]:
        """Return them as they stand in summaries."""
        return {"received": self.received, "accepted": self.accepted, "rejected": {**self.rejected}}


def make_summary(
    hop: str,
    campaign: Campaign,
    streams: Mapping[Stream, StreamCounts],
    reports: int | None,
    upstream: Summary | None = None,
    senders: Senders | None = None,
) -> Summary:
    """Return a hop's summary: totals over its streams, each stream, the statement, and the hops before it.

    Args:
        reports: frequency reports that were accepted, where their number is the result's; None elsewhere. With it goes
            how far forged ones among them can move a count.
        senders: whose reports these are; None: as the hop before says, or UNBOUND if there is none.
    """
    whose = senders or told_in(upstream or {})
    rejected: dict[str, int] = {}
    for counts in streams.values():
        for reason, number in counts.rejected.items():
            rejected[reason] = rejected.get(reason, 0) + number
    summary: Summary = {
        "hop": hop,
        "campaign": campaign.id,
        "epoch": campaign.epoch,
        "fingerprint": campaign.fingerprint.hex(),
        "received": sum(counts.received for counts in streams.values()),
        "accepted": sum(counts.accepted for counts in streams.values()),
        "rejected": rejected,
        "streams": {name: counts.data() for name, counts in streams.items()},
        **whose.data(),
        "cap": campaign.shuffle.cap,
        # Who reads counts reads of both streams: a client that sends both pays for both.
        "privacy": statement(campaign, reports, whose, streams if reports is None else None),
        "upstream": [] if upstream is None else [*upstream["upstream"], brief(upstream)],
        MADE_FROM: None if upstream is None else digest_of_json(upstream),
    }
    if reports is not None and campaign.frequency is not None:
        _add_influence(summary, campaign.frequency)
    return summary


def _add_influence(summary: Summary, mechanism: Mechanism) -> None:
    """Add the bound, and its sentence to those that every reader is shown: the statement counts on honest reports."""
    bound = influence(mechanism)
    summary["influence"] = {"users_per_forged_report_up": bound.up, "users_per_forged_report_down": bound.down}
    summary["privacy"]["sentences"].append(influence_sentence(bound))


def digest_of_json(data: Mapping[str, Any]) -> str:
    """Return the BLAKE2b-256 of what a JSON object says, however it is written, in hexadecimal digits."""
    return hashlib.blake2b(json.dumps(data, sort_keys=True).encode(), digest_size=32).hexdigest()


def brief(summary: Summary) -> Summary:
    """Return what a hop counted, without its statement and its result."""
    return {key: summary[key] for key in ("hop", "received", "accepted", "rejected", "streams")}
