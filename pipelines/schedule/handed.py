"""Outputs of parties elsewhere: an output counts once its party's statement names it and that statement is believed.

A folder alone proves nothing: it may be older than a restore of its party's log, so that the party no longer knows it.
"""

from __future__ import annotations

from collections.abc import Mapping

from hushcount.errors import UsageError
from pipelines.deployment.campaigns import Epochs
from pipelines.deployment.settings import Deployment
from pipelines.files import storage
from pipelines.handover.hops import CHAIN, HopName, hop_names, output_of
from pipelines.handover.paths import Batch
from pipelines.handover.statements import Statement, keys_of, read
from pipelines.log.fold import Fold
from pipelines.outputs.staging import SUMMARY
from pipelines.outputs.summary import digest_of_json

Stated = Mapping[tuple[str, str], Statement]
"""Statements of parties elsewhere, by batch and hop."""


def stated_elsewhere(deployment: Deployment, epochs: Epochs, fold: Fold) -> tuple[Stated, list[str]]:
    """Return statements on batches that a hop here has not passed, and a sentence for each disbelieved statement."""
    parties, campaigns = deployment.file.parties, epochs.campaigns

    def wanted(name: str, _: str) -> bool:
        batch = Batch.named(fold.campaign, name)
        if batch is None:
            return False
        here = set(hop_names(campaigns[batch.file], parties)) if batch.file in campaigns else None
        return here is None or not fold.hops_of(name).keys() >= here

    found: dict[tuple[str, str], Statement] = {}
    problems = []
    inputs = {CHAIN[hop.input].party for hop in CHAIN.values() if hop.party in parties and hop.input is not None}
    for party in sorted(inputs - {*parties}):
        said, faults = read(deployment, "statement", party, fold.campaign, keys_of(deployment, party), wanted)
        # A party can speak of its own hops only.
        own = {hop.name for hop in CHAIN.values() if hop.party == party}
        found |= {(name, hop): one for (name, hop), one in said.items() if hop in own}
        problems += faults
    return found, problems


def shuffled_elsewhere(campaign: str, stated: Stated) -> list[Batch]:
    """Return the batches in statements of a shuffler elsewhere, oldest first."""
    named = (Batch.named(campaign, name) for name, hop in stated if hop == "shuffle")
    return sorted(batch for batch in named if batch is not None)


def is_there(deployment: Deployment, stated: Stated, hop: HopName, batch: Batch) -> bool:
    """Return whether the output of a hop is there; an output of a party elsewhere counts only with its statement.

    Raises:
        UsageError: the output is not the one that the statement names.
    """
    path = storage.join(output_of(deployment, hop, batch), SUMMARY)
    if CHAIN[hop].party in deployment.file.parties:
        return storage.exists(path)
    said = stated.get((batch.name, hop))
    if said is None or said.summary is None or not storage.exists(path):
        return False
    require_stated(stated, hop, batch, digest_of_json(storage.read_json(path)), path)
    return True


def require_stated(stated: Stated, hop: HopName, batch: Batch, digest: str | None, path: str) -> None:
    """Raise UsageError if there is a statement on this hop of the batch, and it names another digest of the summary."""
    said = stated.get((batch.name, hop))
    if said is not None and digest != said.summary:
        raise UsageError(
            f"{path} is not what the {said.party} states that {hop} wrote of this batch: it is an older copy, or was "
            "exchanged; fetch it again"
        )
