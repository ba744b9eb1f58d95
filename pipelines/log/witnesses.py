"""Files beside a log that name its entries: if the log lacks such an entry, the log was lost or is an older copy.

Outputs, statements and the ledger each name the log entry that they follow; receipts of other parties name the outputs
that those parties read. A run that continued with an older copy of a log would count again reports in results that
others have read. So no run works on the campaign before its log is restored or replaced.
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
"""The batches with an output in the store, for each hop of a party."""
Receipts: TypeAlias = dict[tuple[HopName, str], str]
"""The digests of the summaries that other parties read, by hop and batch."""


@dataclass(frozen=True)
class Beside:
    """The files that name entries of the log of a party and campaign.

    Attributes:
        said: the names of the party's statements and receipts, each with the log entry that it names.
        followed: the newest log entry that the ledger notes, or None.
    """

    outputs: There
    said: Mapping[Kind, Mapping[str, Named]]
    followed: Followed | None


@dataclass(frozen=True)
class Missing:
    """Entries and outputs that a log lacks, although another file names them.

    Attributes:
        outputs: hop and batch of each output in the store that the log does not know.
        held: digest of the summary of each output that is not here, but of which others left a receipt.
        entries: the missing entries, each with the file or ledger that names it.
    """

    outputs: tuple[tuple[HopName, str], ...] = ()
    held: Mapping[tuple[HopName, str], str] = field(default_factory=dict)
    entries: tuple[tuple[str, Head], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.outputs or self.held or self.entries)

    def says(self, log: Log) -> str:
        """Return a sentence that says which entries and outputs are missing, and the cure."""
        by = [f"{who} follows its entry {entry.number}" for who, entry in self.entries]
        by += [f"{len(self.outputs):,} outputs are of batches that it does not know"] if self.outputs else []
        by += [f"others have {len(self.held):,} outputs that it does not know"] if self.held else []
        return (
            f"the log of {log.party} was lost, or is an older copy: {'; '.join(by)}. Nothing is done "
            "before the newer log is back; if it is lost, hushcount run --log-was-restored begins a new one"
        )


def missing_of(deployment: Deployment, log: Log, beside: Beside) -> Missing:
    """Return the entries and outputs that a log lacks, although another file names them.

    Args:
        beside: the files that name entries of the log.
    """
    spoken, there = [], beside.outputs
    for kind, folder in FOLDERS.items():
        said = beside.said[kind].values()
        newest = max((one.order for one in said), default=None)
        # Two entries may have the newest number: a run that was at work when the log was restored put another entry
        # with this number.
        heads = [Head(one.generation, one.number, one.entry) for one in said if one.order == newest]
        spoken += [(f"{folder}/{log.party}", head) for head in heads]
    if (row := beside.followed) is not None:
        spoken.append((f"ledger {deployment.ledger}", Head(row.generation, row.number, row.entry)))
    receipts = _receipts(deployment, log, there)
    if found := _lacking(log, there, receipts, spoken):
        # Another run may have put the missing entries since the log was read here, so the log is read again.
        log.read()
        found = _lacking(log, there, receipts, spoken)
    return found


def _lacking(log: Log, there: There, receipts: Receipts, spoken: Sequence[tuple[str, Head]]) -> Missing:
    known = log.fold.hops_of
    strange = [(hop, name) for hop, names in there.items() for name in sorted(names) if hop not in known(name)]
    held = {(hop, name): digest for (hop, name), digest in receipts.items() if hop not in known(name)}
    return Missing(tuple(strange), held, tuple((who, entry) for who, entry in spoken if not log.has(entry)))


def _receipts(deployment: Deployment, log: Log, there: There) -> Receipts:
    """Return the digests in others' receipts of outputs that are neither in the party's log nor in the store."""
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
    """Return the files beside the logs of a party, by campaign, from one listing of each folder."""
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
    """Return the newest entry of a log that the ledger notes, or None."""
    return None if deployment.ledger is None else followed(deployment.ledger, log.party).get(log.campaign)
