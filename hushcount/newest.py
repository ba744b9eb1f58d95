"""The newest epoch of each campaign that a client accepted; the client refuses older epochs and different histories.

Only the operator's own key can move a client to another history, by signing a restart whose serial is greater than all
serials that the client accepted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import Field

from hushcount.campaigns.campaign import GREATEST_EPOCH, Campaign
from hushcount.campaigns.delegation import CampaignSignature, Delegation
from hushcount.campaigns.log import MOST_EPOCHS, CampaignLog
from hushcount.campaigns.parts import Identifier
from hushcount.errors import HushcountError
from hushcount.formats.client_files import KeptValue
from hushcount.formats.models import Hex32, Part


class Untrusted(HushcountError):
    """The client may not report to this campaign, so no report was made."""


class _Head(Part):
    epoch: int = Field(ge=1, le=GREATEST_EPOCH)
    head: Hex32
    serial: int = Field(ge=0, le=GREATEST_EPOCH, description="the greatest that the operator's key signed")
    noise: bool = Field(default=False, description="whether the campaign has noise of the mixes")


class _Heads(Part):
    format: Literal[1] = 1
    campaigns: dict[Identifier, _Head] = Field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Newest:
    """Keeps the head of each campaign's log at the newest epoch that was accepted; threads may share this object.

    Args:
        path: file of mode 0600 that keeps the heads when the process ends. The first accepted campaign makes this file,
            and beside it a file `.lock`, if the system can lock files. None: the heads are lost when the process ends.
    """

    path: Path | None = None
    _kept: KeptValue[_Heads] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        cure = "restore it; without it, this client would accept an older epoch"
        object.__setattr__(self, "_kept", KeptValue(_Heads(), self.path, "newest epoch", cure))

    def keep(
        self, campaign: Campaign, log: CampaignLog | None = None, signature: CampaignSignature | None = None
    ) -> None:
        """Keep a campaign's head, durably if there is a path, before any report is made for the campaign.

        Args:
            campaign: the campaign file.
            log: the campaign's log, for a client that missed an epoch.
            signature: the campaign's signature, which the caller has verified. If the signature contains a restart with
                a greater serial than all accepted ones, the restart replaces the accepted history.

        Raises:
            Untrusted: the campaign file is of an older epoch; is another file of the same epoch; or is of a later epoch
                and does not continue the accepted history (if the client missed an epoch, `log` must connect the file
                to that history); or has noise of the mixes, and the accepted file has not, or the reverse. Untrusted is
                also raised if the operator replaced the publisher that signed the file,
                or if the publisher skipped more epochs than a log can have.
            FormatError, UsageError, HushcountError: the file of heads is damaged, or cannot be read or written.
        """
        self._kept.change(lambda heads: (_advanced(heads, campaign, log, signature), None))


def _advanced(kept: _Heads, campaign: Campaign, log: CampaignLog | None, signature: CampaignSignature | None) -> _Heads:
    """Return the heads, with the head of this campaign added or replaced."""
    last, serial = kept.campaigns.get(campaign.id), 0 if signature is None else signature.serial
    if last is not None and last.noise != (campaign.noise is not None):
        raise Untrusted(
            f"epoch {campaign.epoch} of campaign {campaign.id} has {'no noise' if last.noise else 'noise'} of the "
            f"mixes, unlike epoch {last.epoch}, which was accepted before: ask the operator for another campaign"
        )
    if last is not None and signature is not None:
        restart = signature.restart
        if restart is not None and restart.serial > last.serial:
            last = _Head(epoch=restart.epoch, head=restart.head, serial=restart.serial, noise=last.noise)
        if signature.delegation is not None:
            _require_publisher(campaign, signature.delegation, last)
    if last is not None:
        _require_continued(campaign, last, log)
        serial = max(serial, last.serial)
    head = _Head(epoch=campaign.epoch, head=campaign.head.hex(), serial=serial, noise=campaign.noise is not None)
    return _Heads(campaigns={**kept.campaigns, campaign.id: head})


def _require_publisher(campaign: Campaign, delegation: Delegation, last: _Head) -> None:
    name = f"epoch {campaign.epoch} of campaign {campaign.id}"
    if delegation.serial < last.serial:
        raise Untrusted(
            f"{name} was signed under the delegation {delegation.serial}, but the operator's newest serial is "
            f"{last.serial}: fetch the newest file"
        )
    if campaign.epoch - last.epoch > MOST_EPOCHS:
        raise Untrusted(
            f"{name} is more than {MOST_EPOCHS} epochs after epoch {last.epoch}, which was accepted before: the "
            "operator must sign it"
        )


def _require_continued(campaign: Campaign, last: _Head, log: CampaignLog | None) -> None:
    name = f"epoch {campaign.epoch} of campaign {campaign.id}"
    if campaign.epoch < last.epoch:
        raise Untrusted(f"{name} is older than epoch {last.epoch}, which was accepted before: fetch the newest file")
    if campaign.epoch == last.epoch and campaign.head.hex() != last.head:
        raise Untrusted(
            f"{name} is another file than the one that was accepted before: one of the two may have been made for a "
            "few clients only; ask the operator"
        )
    if campaign.epoch > last.epoch and campaign.previous not in _heads_from(last.head, log):
        raise Untrusted(
            f"{name} does not continue epoch {last.epoch}, which was accepted before: give the campaign's log; if the "
            "log does not connect the two epochs, ask the operator"
        )


def _heads_from(head: str, log: CampaignLog | None) -> list[str]:
    """Return the head `head`, and if the log has this head, also all later heads in the log."""
    heads = [] if log is None else [one.hex() for one in log.heads]
    return heads[heads.index(head) :] if head in heads else [head]
