"""Forks of a campaign's history: two places saw different files of one epoch, or one place saw no file of it.

A party that shows each client a different campaign file can tell the clients' reports apart. Different files have
different heads, and each head is a hash of all files up to it, so two histories that differ once can never have the
same head again. A restart in a signature lets clients continue from another epoch, so restarts are compared too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.delegation import CampaignSignature, Restart
from hushcount.campaigns.log import CampaignLog


@dataclass(frozen=True)
class Seen:
    """The part of a campaign's history that one place was shown.

    Attributes:
        place: name of the place.
        heads: for each epoch's number, the head of the log with this epoch.
        whole: whether `heads` has all epochs up to its newest epoch.
        restarts: for each epoch with a signature, the restart in it; None: a signature without a restart.
    """

    place: str
    heads: Mapping[int, bytes]
    whole: bool
    restarts: Mapping[int, Restart | None] = field(default_factory=dict)

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


@dataclass(frozen=True)
class OtherRestart:
    """The first epoch whose signatures have different restarts at two places.

    Clients that saw only one of the two signatures continue from different epochs.

    Attributes:
        serials: the serial of the restart at each place; None: the signature has no restart.
    """

    epoch: int
    places: tuple[str, str]
    serials: tuple[int | None, int | None]

    def __str__(self) -> str:
        one, other = ("no restart" if serial is None else f"restart {serial}" for serial in self.serials)
        if self.serials[0] == self.serials[1]:
            other = f"another {other}"
        return f"epoch {self.epoch} is signed with {one} at {self.places[0]}, and with {other} at {self.places[1]}"


def seen_in_log(place: str, log: CampaignLog) -> Seen:
    """Return the epochs, heads and restarts that a log shows."""
    heads = {entry.epoch: head for entry, head in zip(log.entries, log.heads, strict=True)}
    signed = {entry.epoch: entry.signature.restart for entry in log.entries if entry.signature is not None}
    return Seen(place, heads, True, signed)


def seen_in_file(place: str, campaign: Campaign, signature: CampaignSignature | None = None) -> Seen:
    """Return what a campaign file shows: its own epoch, with a head that is a hash of all epochs up to this one."""
    signed = {} if signature is None else {campaign.epoch: signature.restart}
    return Seen(place, {campaign.epoch: campaign.head}, False, signed)


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


def other_restarts(seen: Sequence[Seen]) -> list[OtherRestart]:
    """Return where any two places show different restarts for one epoch; a place without a signature shows nothing."""
    found = (_other_restart(one, other) for one, other in combinations(seen, 2))
    return [one for one in found if one is not None]


def _other_restart(one: Seen, other: Seen) -> OtherRestart | None:
    for epoch in sorted(one.restarts.keys() & other.restarts.keys()):
        mine, theirs = one.restarts[epoch], other.restarts[epoch]
        # The signed terms are compared, because two of the operator's keys may sign the same restart.
        if (None if mine is None else mine.signed()) != (None if theirs is None else theirs.signed()):
            serials = (None if mine is None else mine.serial, None if theirs is None else theirs.serial)
            return OtherRestart(epoch, (one.place, other.place), serials)
    return None
