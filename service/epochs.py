"""The campaign files that a request may name: the epochs of a campaign, and when their reports are accepted."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar

from hushcount.collection.epochs import EpochPart
from service.refusals import (
    CAMPAIGN_UNREADABLE,
    EPOCH_CLOSED,
    EPOCH_NOT_BEGUN,
    UNKNOWN_CAMPAIGN,
    UNKNOWN_FINGERPRINT,
    Refused,
    try_again,
)


@dataclass(frozen=True)
class EpochTimes:
    """One epoch of a campaign: when its reports are accepted."""

    epoch: int
    begins: float  # seconds since 1970; the next two may be infinity
    ends: float  # when clients stop making reports for the epoch
    grace_ends: float  # when the epoch's reports are no longer accepted

    def accepts(self, now: float) -> bool:
        return self.begins <= now < self.grace_ends

    def is_current(self, now: float) -> bool:
        return self.begins <= now < self.ends


Epoch_co = TypeVar("Epoch_co", bound=EpochTimes, covariant=True)


class ServedCampaign(Protocol[Epoch_co]):
    """The facts that a service has about a campaign."""

    @property
    def epochs(self) -> Mapping[str, Epoch_co]:
        """The epochs by fingerprint, including epochs that have not begun; empty if the files were never readable."""

    @property
    def numbers(self) -> Container[str]:
        """The fingerprints of all epochs that were ever published."""

    @property
    def fault(self) -> str | None:
        """The fault of the present file, in one sentence; None: it has no fault."""


Served = TypeVar("Served", bound=ServedCampaign[EpochTimes])


def times_of(part: EpochPart) -> tuple[int, float, float, float]:
    """Return the fields of EpochTimes for an epoch of a collection file."""
    return part.epoch, part.begins.timestamp(), seconds(part.ends), seconds(part.grace_ends)


def seconds(moment: datetime | None) -> float:
    """Return a moment in seconds since 1970; infinity if it is None."""
    return float("inf") if moment is None else moment.timestamp()


def current(campaign: ServedCampaign[Epoch_co], now: float) -> Epoch_co | None:
    """Return the epoch for which clients make reports, or None."""
    return next((epoch for epoch in campaign.epochs.values() if epoch.is_current(now)), None)


def served_campaign(campaigns: Mapping[str, Served], name: str) -> Served:
    """Return the campaign that a request names; else raise Refused."""
    campaign = campaigns.get(name)
    if campaign is None:
        raise Refused(UNKNOWN_CAMPAIGN, "Check the campaign's id in the path.")
    if not campaign.epochs and campaign.fault is not None:
        raise try_again(CAMPAIGN_UNREADABLE)
    return campaign


def accepted(campaign: ServedCampaign[Epoch_co], fingerprint: str, now: float) -> Epoch_co:
    """Return the epoch of a campaign file if its reports are accepted now; else raise Refused."""
    epoch = campaign.epochs.get(fingerprint)
    if epoch is not None and epoch.accepts(now):
        return epoch
    present = current(campaign, now)
    if fingerprint not in campaign.numbers:
        reason = UNKNOWN_FINGERPRINT
    else:
        reason = EPOCH_CLOSED if epoch is None or epoch.begins <= now else EPOCH_NOT_BEGUN
    raise Refused(
        reason,
        "Get the current campaign file, make a new report with it, and send that with its fingerprint."
        if present is not None
        else "No epoch is current: wait until one begins.",
        current_epoch=None if present is None else present.epoch,
    )
