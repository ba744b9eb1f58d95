"""What parties elsewhere handed on: an output counts once a statement of its party that is believed names it.

A folder alone says nothing: it may be a copy of before a log was restored, of which its party knows nothing any more.
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
"""What parties elsewhere state, by batch and hop."""


def stated_elsewhere(deployment: Deployment, epochs: Epochs, fold: Fold) -> tuple[Stated, list[str]]:
    """Return what is stated of batches that a hop here has not passed, and a sentence for each that is not believed."""
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
    """Return the batches that a shuffler elsewhere states, oldest first."""
    named = (Batch.named(campaign, name) for name, hop in stated if hop == "shuffle")
    return sorted(batch for batch in named if batch is not None)


def is_there(deployment: Deployment, stated: Stated, hop: HopName, batch: Batch) -> bool:
    """Return whether the output of a hop is there; one of a party elsewhere is not before its statement is.

    Raises:
        UsageError: it is another than the statement names.
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
    """Raise UsageError if a summary with this digest is not the one that the statement of its party names, if any."""
    said = stated.get((batch.name, hop))
    if said is not None and digest != said.summary:
        raise UsageError(
            f"{path} is not what the {said.party} states that {hop} wrote of this batch: it is an older copy, or was "
            "exchanged; fetch it again"
        )
