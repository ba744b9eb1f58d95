"""What speaks of entries of a log beside the log itself: if it lacks one, it was lost or is an older copy.

Outputs, statements and the ledger each name the entry that they follow. A run that went on with an older copy would
count reports again that others have read, so nothing is done before the log is back, or is replaced.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.deployment.settings import Deployment
from pipelines.handover.statements import FOLDERS, last_named
from pipelines.ledger.following import followed
from pipelines.log.fold import Head
from pipelines.log.hops import CHAIN, HopName
from pipelines.log.log import Log
from pipelines.log.outputs import outputs


@dataclass(frozen=True)
class Missing:
    """What a log lacks, though something speaks of it.

    Attributes:
        outputs: batches with an output of a hop that is not done by the log.
        entries: each with who speaks of it.
    """

    outputs: tuple[tuple[HopName, str], ...] = ()
    entries: tuple[tuple[str, Head], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.outputs or self.entries)

    def says(self, log: Log) -> str:
        """Return a sentence on what is missing, and the cure."""
        by = [f"{who} follows its entry {entry.number}" for who, entry in self.entries]
        by += [f"{len(self.outputs):,} outputs are of batches that it does not know"] if self.outputs else []
        return (
            f"the log of {log.party} was lost, or is an older copy: {'; '.join(by)}. Nothing is done "
            "before the newer log is back; if it is lost, hushcount run --log-was-restored begins a new one"
        )


def missing_of(deployment: Deployment, log: Log, there: dict[HopName, set[str]]) -> Missing:
    """Return what speaks of entries that a log lacks.

    Args:
        there: names of the batches with an output of each hop of the party in the store.
    """
    # The log after the listing: another run may have published meanwhile.
    done = log.read().done
    strange = [(hop, name) for hop, names in there.items() for name in sorted(names) if hop not in done.get(name, {})]
    spoken = []
    for kind, folder in FOLDERS.items():
        if (entry := last_named(deployment, kind, log.party, log.campaign)) is not None:
            spoken.append((f"{folder}/{log.party}", Head(entry.generation, entry.number, entry.entry)))
    if deployment.ledger is not None and (row := followed(deployment.ledger, log.campaign, log.party)) is not None:
        spoken.append((f"ledger {deployment.ledger}", Head(row.generation, row.number, row.entry)))
    return Missing(tuple(strange), tuple((who, entry) for who, entry in spoken if not log.has(entry)))


def outputs_there(deployment: Deployment, log: Log) -> dict[HopName, set[str]]:
    """Return the names of the batches with an output of each hop of a party in the store."""
    return {
        hop.name: {batch.name for batch, _ in outputs(deployment, hop.folder, log.campaign)}
        for hop in CHAIN.values()
        if hop.party == log.party
    }
