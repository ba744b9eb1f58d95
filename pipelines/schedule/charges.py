"""Charges that the ledger lacks, though the log says that their releases were made: the ledger was restored, or lost.

A `done` entry repeats the charge of its release, so that the ledger can be brought up to date from the log.
"""

from __future__ import annotations

from dataclasses import dataclass

from hushcount.errors import HushcountError
from pipelines.deployment.campaigns import Epochs
from pipelines.deployment.settings import Deployment
from pipelines.files.storage_errors import told
from pipelines.handover.names import Batch
from pipelines.ledger.proofs import Proof, by_time, charged_keys, key_in, proof_of, put_back
from pipelines.ledger.records import Limit
from pipelines.log.fold import Fold


@dataclass(frozen=True)
class Lacking:
    """What a ledger lacks of one campaign.

    Attributes:
        proofs: of the charges.
        batches: names of the batches that were released.
        faults: a sentence for each release of which it is not known how it is to be charged.
    """

    proofs: tuple[Proof, ...] = ()
    batches: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def says(self) -> str:
        """How many charges of which batches the ledger lacks."""
        first, last = min(self.batches), max(self.batches)
        of = f"batch {first}" if first == last else f"{len(set(self.batches)):,} batches from {first} to {last}"
        return f"{len(self.proofs):,} charges, of {of}"


def lacking(deployment: Deployment, epochs: Epochs, fold: Fold) -> Lacking:
    """Return what the ledger lacks of what the log says; raises HushcountError, OSError: the ledger cannot be read."""
    charged = [
        (name, hop, done)
        for name, hops in sorted(fold.done.items())
        for hop, done in hops.items()
        if done.charge is not None
    ]
    if deployment.ledger is None or not charged:
        return Lacking()
    known = charged_keys(deployment.ledger, epochs.campaign)
    proofs: dict[str, tuple[Proof, str]] = {}
    faults = []
    for name, hop, done in charged:
        where = f"entry {done.number} of the log, {hop} of {epochs.campaign}/{name}"
        try:
            note, batch = done.charge, Batch.named(epochs.campaign, name)
            if note is None or batch is None or key_in(note) in known:
                continue
            if batch.file not in epochs.files:
                raise HushcountError(f"{where} is of a campaign file that is not in {epochs.directory}: publish it")
            proof = proof_of(note, epochs.campaigns[batch.file], where)
            proof.require_complete(where)
            proofs[proof.charge.key] = proof, name
        except (HushcountError, OSError) as error:
            faults.append(told(error))
    found = proofs.values()
    return Lacking(tuple(proof for proof, _ in found), tuple(name for _, name in found), tuple(faults))


def charge_lacking(deployment: Deployment, epochs: Epochs, fold: Fold) -> list[str]:
    """Charge what the ledger lacks, and return a sentence for whatever the operator should know.

    Call it before anything is released; raises HushcountError, OSError: the ledger cannot be used.
    """
    found = lacking(deployment, epochs, fold)
    says = list(found.faults)
    if found.proofs and deployment.ledger is not None:
        then = by_time(found.proofs)[-1].limit
        had = put_back(deployment.ledger, epochs.campaign, found.proofs)
        says.append(
            f"{epochs.campaign}: {deployment.ledger} lacked {found.says}; they are charged now{_of_limit(had, then)}"
        )
    return says


def _of_limit(had: Limit | None, then: Limit | None) -> str:
    """Return what to add on the limit that a ledger had, if another one was in force at the newest release."""
    if then is None or (had is not None and _terms(had) == _terms(then)):
        return ""
    if had is None:
        return f", and its limit is ({then.epsilon:g}, {then.delta:g}) again"
    return (
        f"; its limit is ({had.epsilon:g}, {had.delta:g}), and was ({then.epsilon:g}, {then.delta:g}) at the last of "
        "these releases: hushcount ledger set if it is to be that"
    )


def _terms(limit: Limit) -> tuple[float, float, int | None, str]:
    return limit.epsilon, limit.delta, limit.renew_days, limit.composition
