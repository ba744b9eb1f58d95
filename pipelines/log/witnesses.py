"""What speaks of entries of a log beside the log itself: if it lacks one, it was lost or is an older copy.

Outputs, statements and the ledger each name the entry that they follow; others' receipts name what they read. A run
that went on with an older copy would count reports again that others have read, so nothing is done before the log is
back, or is replaced.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from pipelines.deployment.settings import Deployment, Party
from pipelines.handover.hops import CHAIN, HopName, all_outputs
from pipelines.handover.statements import FOLDERS, Kind, Named, all_names, keys_of, others, read
from pipelines.ledger.file import Followed, followed
from pipelines.log.facts import Head
from pipelines.log.log import Log

There: TypeAlias = dict[HopName, set[str]]
"""The batches with an output of each hop of a party in the store."""
Receipts: TypeAlias = dict[tuple[HopName, str], str]
"""Digest of the summary that others read, by hop and batch."""


@dataclass(frozen=True)
class Beside:
    """What lies in the store beside the log of a party and campaign.

    Attributes:
        said: the names of its statements and receipts, each with what it says.
        followed: the newest entry that the ledger follows; None: there is none.
    """

    outputs: There
    said: Mapping[Kind, Mapping[str, Named]]
    followed: Followed | None


@dataclass(frozen=True)
class Missing:
    """What a log lacks, though something speaks of it.

    Attributes:
        outputs: batches with an output of a hop that is not done by the log.
        held: digest of the summary of those of which others left a receipt, and that are not here.
        entries: each with who speaks of it.
    """

    outputs: tuple[tuple[HopName, str], ...] = ()
    held: Mapping[tuple[HopName, str], str] = field(default_factory=dict)
    entries: tuple[tuple[str, Head], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.outputs or self.held or self.entries)

    def says(self, log: Log) -> str:
        """Return a sentence on what is missing, and the cure."""
        by = [f"{who} follows its entry {entry.number}" for who, entry in self.entries]
        by += [f"{len(self.outputs):,} outputs are of batches that it does not know"] if self.outputs else []
        by += [f"others have {len(self.held):,} outputs that it does not know"] if self.held else []
        return (
            f"the log of {log.party} was lost, or is an older copy: {'; '.join(by)}. Nothing is done "
            "before the newer log is back; if it is lost, hushcount run --log-was-restored begins a new one"
        )


def missing_of(deployment: Deployment, log: Log, beside: Beside) -> Missing:
    """Return what speaks of entries that a log lacks.

    Args:
        beside: what lies in the store beside the log.
    """
    spoken, there = [], beside.outputs
    for kind, folder in FOLDERS.items():
        said = beside.said[kind].values()
        newest = max((one.order for one in said), default=None)
        # There may be two: a run that was up when the log was restored put another entry of that number.
        heads = [Head(one.generation, one.number, one.entry) for one in said if one.order == newest]
        spoken += [(f"{folder}/{log.party}", head) for head in heads]
    if (row := beside.followed) is not None:
        spoken.append((f"ledger {deployment.ledger}", Head(row.generation, row.number, row.entry)))
    receipts = _receipts(deployment, log, there)
    if found := _lacking(log, there, receipts, spoken):
        # Another run may have put what it speaks of since the log was read here.
        log.read()
        found = _lacking(log, there, receipts, spoken)
    return found


def _lacking(log: Log, there: There, receipts: Receipts, spoken: Sequence[tuple[str, Head]]) -> Missing:
    known = log.fold.hops_of
    strange = [(hop, name) for hop, names in there.items() for name in sorted(names) if hop not in known(name)]
    held = {(hop, name): digest for (hop, name), digest in receipts.items() if hop not in known(name)}
    return Missing(tuple(strange), held, tuple((who, entry) for who, entry in spoken if not log.has(entry)))


def _receipts(deployment: Deployment, log: Log, there: There) -> Receipts:
    """Return the digests in others' receipts of what a party wrote and is neither in its log nor in the store."""
    found: Receipts = {}
    known = log.fold.hops_of

    def is_strange(batch: str, wrote: str) -> bool:
        return any(hop == wrote and hop not in known(batch) and batch not in names for hop, names in there.items())

    for party in others(deployment):
        said, _ = read(deployment, "receipt", party, log.campaign, keys_of(deployment, party), is_strange)
        for (batch, wrote), receipt in said.items():
            found |= {(hop, batch): receipt.summary for hop in there if hop == wrote and receipt.summary is not None}
    return found


def beside_logs(deployment: Deployment, party: Party, campaigns: Collection[str]) -> dict[str, Beside]:
    """Return what lies in the store beside the logs of a party, by campaign: one listing of each folder."""
    there = {hop.name: all_outputs(deployment, hop.folder) for hop in CHAIN.values() if hop.party == party}
    said = {kind: all_names(deployment, kind, party) for kind in FOLDERS}
    rows = {} if deployment.ledger is None else followed(deployment.ledger, party)
    return {
        campaign: Beside(
            {hop: {batch.name for batch in batches.get(campaign, ())} for hop, batches in there.items()},
            {kind: names.get(campaign, {}) for kind, names in said.items()},
            rows.get(campaign),
        )
        for campaign in campaigns
    }


def followed_by(deployment: Deployment, log: Log) -> Followed | None:
    """Return the newest entry of a log that the ledger follows; None: there is none."""
    return None if deployment.ledger is None else followed(deployment.ledger, log.party).get(log.campaign)
