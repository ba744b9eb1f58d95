"""The log of a campaign: every epoch ever published, in a hash chain; the newest head is a hash of all epochs."""

from __future__ import annotations

from functools import cached_property
from io import BytesIO
from typing import Literal

from pydantic import Field, model_validator

from hushcount.campaigns.campaign import GREATEST_EPOCH, Campaign, head_of
from hushcount.campaigns.delegation import CampaignSignature
from hushcount.campaigns.parts import Identifier, SamplePart
from hushcount.errors import UsageError
from hushcount.formats.models import Hex32, Part
from hushcount.formats.reading import parse_model, take

MOST_EPOCHS = 4096
"""The most epochs in a log: eleven years with one epoch a day."""
LOG_BYTES = 1 << 23
"""The most bytes in a log's file; a log of MOST_EPOCHS epochs with the longest signatures has fewer."""


class LogEntry(Part):
    """One published epoch of a campaign."""

    epoch: int = Field(ge=1, le=GREATEST_EPOCH)
    fingerprint: Hex32
    signature: CampaignSignature | None = None


class CampaignLog(Part):
    """All epochs of a campaign, the oldest first.

    A log without a signed campaign file proves only that its entries form a chain.

    The signature of the newest campaign file covers every entry, because each campaign file names the head of the log
    before its epoch (`Campaign.previous`).
    """

    format: Literal[1] = 1
    campaign: Identifier
    entries: tuple[LogEntry, ...] = Field(default=(), max_length=MOST_EPOCHS)

    @model_validator(mode="after")
    def _check(self) -> CampaignLog:
        for earlier, later in zip(self.entries, self.entries[1:], strict=False):
            if later.epoch <= earlier.epoch:
                raise ValueError(f"entries: epoch {later.epoch} follows {earlier.epoch}, epochs must ascend")
        return self

    @cached_property
    def heads(self) -> tuple[bytes, ...]:
        """For each entry, the head of the log after this entry."""
        heads: list[bytes] = []
        for entry in self.entries:
            heads.append(head_of(heads[-1] if heads else None, bytes.fromhex(entry.fingerprint)))
        return tuple(heads)

    def text(self) -> str:
        """Return the content of the log's file."""
        return self.model_dump_json(exclude_none=True) + "\n"


def require_follows(campaign: Campaign, before: Campaign | None) -> None:
    """Check that a campaign file names the head of the log at the epoch `before`, which is None for the first epoch.

    Raises:
        UsageError: the file names another head, so clients would refuse the file; or its sample is not at least that of
            the epoch before; or only one of the two has noise of the mixes.
    """
    wanted = None if before is None else before.head.hex()
    if campaign.previous != wanted:
        raise UsageError(
            f"previous of epoch {campaign.epoch} of campaign {campaign.id} is {campaign.previous or 'absent'}, must be "
            f"{wanted or 'absent'}, the head of the log before this epoch: make the file with hushcount campaign new "
            "--after NEWEST, the newest published file"
        )
    if before is not None and (campaign.noise is None) != (before.noise is None):
        raise UsageError(
            f"epoch {campaign.epoch} of campaign {campaign.id} has {'no noise' if campaign.noise is None else 'noise'} "
            f"of the mixes, unlike epoch {before.epoch}: all epochs have it or none, so make another campaign"
        )
    if before is not None and not _widens(campaign.sample, before.sample):
        raise UsageError(
            f"sample of epoch {campaign.epoch} of campaign {campaign.id} lacks clients of epoch {before.epoch}: "
            "an epoch keeps the layer, and asks all that were asked before, or more"
        )


def _widens(sample: SamplePart | None, before: SamplePart | None) -> bool:
    return sample is before if sample is None or before is None else sample.widens(before)


def parse_log(raw: bytes, name: str) -> CampaignLog:
    """Return the log in a file's bytes; FormatError, which names the file: it is no log, or longer than LOG_BYTES."""
    return parse_model(CampaignLog, take(BytesIO(raw), LOG_BYTES, name), name)
