"""Outputs of parties elsewhere: an output counts once a statement of its party names it, and the statement is believed.

An output's folder alone proves nothing, because the folder may be older than a restore of its party's log, so that the
party no longer knows the output.
"""

from __future__ import annotations

from collections.abc import Mapping

from hushcount.errors import UsageError
from pipelines.deployment.campaigns import Epochs
from pipelines.deployment.settings import Deployment
from pipelines.files import storage
from pipelines.handover.hops import CHAIN, HopName, hop_names, input_of, output_of
from pipelines.handover.paths import Batch
from pipelines.handover.statements import Statement, keys_of, read
from pipelines.log.fold import Fold
from pipelines.outputs.staging import SUMMARY
from pipelines.outputs.summary import digest_of_json

Stated = Mapping[tuple[str, str], Statement]
"""Statements of parties elsewhere, by batch and hop."""


def stated_elsewhere(deployment: Deployment, epochs: Epochs, fold: Fold) -> tuple[Stated, list[str]]:
    """Return statements on batches that have not passed every hop here, and a sentence for each one disbelieved."""
    parties, campaigns = deployment.file.parties, epochs.campaigns

    def wanted(name: str, _: str) -> bool:
        batch = Batch.named(fold.campaign, name)
        if batch is None:
            return False
        here = set(hop_names(campaigns[batch.file], parties)) if batch.file in campaigns else None
        return here is None or not fold.hops_of(name).keys() >= here

    found: dict[tuple[str, str], Statement] = {}
    problems = []
    here = [hop for hop in CHAIN if CHAIN[hop].party in parties]
    # The shuffler's statements also say which batches there are.
    sources = {"shuffle", *(input_of(hop, epochs.has_noise) for hop in here)}
    inputs = {hop.party for hop in CHAIN.values() if hop.name in sources}
    for party in sorted(inputs - {*parties}):
        said, faults = read(deployment, "statement", party, fold.campaign, keys_of(deployment, party), wanted)
        # A party's statements count only for its own hops.
        own = {hop.name for hop in CHAIN.values() if hop.party == party}
        found |= {(name, hop): one for (name, hop), one in said.items() if hop in own}
        problems += faults
    return found, problems


def shuffled_elsewhere(campaign: str, stated: Stated) -> list[Batch]:
    """Return the batches in statements of a shuffler elsewhere, oldest first."""
    named = (Batch.named(campaign, name) for name, hop in stated if hop == "shuffle")
    return sorted(batch for batch in named if batch is not None)


def is_there(deployment: Deployment, stated: Stated, hop: HopName, batch: Batch) -> bool:
    """Return whether a hop's output is in the store; an output of a party elsewhere counts only with its statement.

    Raises:
        UsageError: the output is not the output that the statement names.
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
    """Raise UsageError if a statement on this hop of the batch names another digest of the summary than `digest`."""
    said = stated.get((batch.name, hop))
    if said is not None and digest != said.summary:
        raise UsageError(
            f"{path} is not what the {said.party} states that {hop} wrote of this batch: it is an older copy, or was "
            "exchanged; fetch it again"
        )
