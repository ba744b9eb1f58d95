"""The newest epoch of each campaign that a client accepted: an older one, or another history, is refused for good."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import Field

from hushcount.campaigns.campaign import GREATEST_EPOCH, Campaign
from hushcount.campaigns.log import CampaignLog
from hushcount.campaigns.parts import Identifier
from hushcount.errors import HushcountError
from hushcount.formats.client_files import KeptValue
from hushcount.formats.models import Hex32, Part


class Untrusted(HushcountError):
    """The campaign is not one that this client may report to; nothing was made for it."""


class _Head(Part):
    epoch: int = Field(ge=1, le=GREATEST_EPOCH)
    head: Hex32


class _Heads(Part):
    format: Literal[1] = 1
    campaigns: dict[Identifier, _Head] = Field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Newest:
    """Keeps the head of each campaign's log as of the newest epoch that was accepted; many threads may use it.

    Args:
        path: file of mode 0600 in which the heads outlive the process, made with the first campaign; beside it a file
            `.lock`, if the system can lock files. None: they end with the process.
    """

    path: Path | None = None
    _kept: KeptValue[_Heads] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        cure = "restore it; without it, this client would accept an older epoch"
        object.__setattr__(self, "_kept", KeptValue(_Heads(), self.path, "newest epoch", cure))

    def keep(self, campaign: Campaign, log: CampaignLog | None = None) -> None:
        """Keep a campaign's head, durably if there is a path, before anything is reported under it.

        Raises:
            Untrusted: it is of an older epoch, another file of the same one, or a later one whose history does not
                continue what was accepted: `log` must lead there if an epoch was missed.
            FormatError, UsageError, HushcountError: the file is damaged, or cannot be read or written.
        """
        self._kept.change(lambda heads: (_advanced(heads, campaign, log), None))


def _advanced(kept: _Heads, campaign: Campaign, log: CampaignLog | None) -> _Heads:
    """Return the heads with that of a campaign."""
    last, name = kept.campaigns.get(campaign.id), f"epoch {campaign.epoch} of campaign {campaign.id}"
    if last is not None:
        if campaign.epoch < last.epoch:
            raise Untrusted(f"{name} is older than epoch {last.epoch}, which was accepted before: fetch the newest")
        if campaign.epoch == last.epoch and campaign.head.hex() != last.head:
            raise Untrusted(
                f"{name} is another file than the one that was accepted before: one of the two was made for a few "
                "clients only, ask the operator"
            )
        if campaign.epoch > last.epoch and campaign.previous not in _heads_from(last.head, log):
            raise Untrusted(
                f"{name} does not continue epoch {last.epoch}, which was accepted before: give the campaign's log, and "
                "if it does not lead from there, ask the operator"
            )
    head = _Head(epoch=campaign.epoch, head=campaign.head.hex())
    return _Heads(campaigns={**kept.campaigns, campaign.id: head})


def _heads_from(head: str, log: CampaignLog | None) -> list[str]:
    """Return a head and those that follow it in the log, if the log has it."""
    heads = [] if log is None else [one.hex() for one in log.heads]
    return heads[heads.index(head) :] if head in heads else [head]
