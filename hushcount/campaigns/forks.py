"""Forks of a campaign's history: two places saw different files of one epoch, or one place saw no file of it.

A party that shows each client a different campaign file can tell the clients' reports apart. Different files have
different heads, and each head is a hash of all files up to it, so two histories that differ once can never have the
same head again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.log import CampaignLog


@dataclass(frozen=True)
class Seen:
    """The part of a campaign's history that one place was shown.

    Attributes:
        place: name of the place.
        heads: for each epoch's number, the head of the log with this epoch.
        whole: whether `heads` has all epochs up to its newest epoch.
    """

    place: str
    heads: Mapping[int, bytes]
    whole: bool

    @property
    def newest(self) -> int:
        """The newest epoch that was shown; 0 if no epoch was shown."""
        return max(self.heads, default=0)


@dataclass(frozen=True)
class Fork:
    """The first epoch at which two places were shown different histories."""

    epoch: int
    places: tuple[str, str]

    def __str__(self) -> str:
        return f"epoch {self.epoch} of {self.places[0]} is not that of {self.places[1]}"


def seen_in_log(place: str, log: CampaignLog) -> Seen:
    """Return the epochs and heads that a log shows."""
    return Seen(place, {entry.epoch: head for entry, head in zip(log.entries, log.heads, strict=True)}, True)


def seen_in_file(place: str, campaign: Campaign) -> Seen:
    """Return what a campaign file shows: its own epoch, with a head that is a hash of all epochs up to this one."""
    return Seen(place, {campaign.epoch: campaign.head}, False)


def forks(seen: Sequence[Seen]) -> list[Fork]:
    """Return the forks between any two places. If a place has not yet seen the newest epochs, this alone is no fork."""
    found = (fork_of(one, other) for one, other in combinations(seen, 2))
    return [fork for fork in found if fork is not None]


def fork_of(one: Seen, other: Seen) -> Fork | None:
    """Return the first epoch in which two histories differ, or None."""
    for epoch in sorted({*one.heads, *other.heads}):
        heads = one.heads.get(epoch), other.heads.get(epoch)
        # A missing head proves that an epoch is missing only if the history is whole.
        lacks = any(
            head is None and seen.whole and epoch < seen.newest for head, seen in zip(heads, (one, other), strict=True)
        )
        if lacks or (None not in heads and heads[0] != heads[1]):
            return Fork(epoch, (one.place, other.place))
    return None
