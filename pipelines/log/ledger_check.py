"""Check that the log names this ledger, and that the ledger has all charges of the log.

An entry that says that a hop is done repeats the charge of the hop's release. From these entries, a ledger that was
restored or lost gets its charges back before each release of the campaign. A limit belongs to one campaign, so charges
of other campaigns do not count against it. An entry that states a charge is put only while that charge is in the
ledger.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from hushcount.clock import Clock
from hushcount.errors import HushcountError
from pipelines.deployment.campaigns import Epochs
from pipelines.deployment.settings import Deployment
from pipelines.files.storage_errors import told
from pipelines.handover.paths import Batch
from pipelines.ledger.charges import Limit
from pipelines.ledger.file import Followed, follow, id_of
from pipelines.ledger.stated_charges import Proof, by_time, charged_keys, key_in, noted, proof_of, put_back
from pipelines.log.entries import Charging
from pipelines.log.fold import Fold
from pipelines.log.log import Log, Logs


@dataclass(frozen=True)
class Lacking:
    """The charges of one campaign that a ledger lacks.

    Attributes:
        proofs: of the charges.
        batches: names of the batches that were released.
        faults: a sentence for each release whose charge cannot be read.
    """

    proofs: tuple[Proof, ...] = ()
    batches: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def says(self) -> str:
        """A phrase with the number of charges that the ledger lacks, and their batches."""
        first, last = min(self.batches), max(self.batches)
        of = f"batch {first}" if first == last else f"{len(set(self.batches)):,} batches from {first} to {last}"
        return f"{len(self.proofs):,} charges, of {of}"


def lacking(deployment: Deployment, epochs: Epochs, fold: Fold) -> Lacking:
    """Return the log's charges that the ledger lacks; raises HushcountError, OSError if the ledger cannot be read."""
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
        where = f"entry {done.entry.number} of the log, {hop} of {epochs.campaign}/{name}"
        try:
            note, batch = done.charge, Batch.named(epochs.campaign, name)
            if note is None or batch is None or key_in(note) in known:
                continue
            if batch.file not in epochs.files:
                raise HushcountError(f"{where} names a campaign file that is not in {epochs.directory}: publish it")
            proof = proof_of(note, epochs.campaigns[batch.file], where)
            proofs[proof.charge.key] = proof, name
        except (HushcountError, OSError) as error:
            faults.append(told(error))
    found = proofs.values()
    return Lacking(tuple(proof for proof, _ in found), tuple(name for _, name in found), tuple(faults))


def require_named(deployment: Deployment, fold: Fold) -> None:
    """Raise HushcountError if the log of a party names another ledger than the deployment does, or a missing ledger."""
    if fold.ledger is None:
        return
    if deployment.ledger is None:
        raise HushcountError(
            f"releases are charged in ledger {fold.ledger}, and the deployment file names no ledger: name that one"
        )
    id = id_of(deployment.ledger) if deployment.ledger.exists() else None
    if id != fold.ledger:
        raise HushcountError(
            f"releases are charged in ledger {fold.ledger}, and {deployment.ledger} is {id or 'missing'}: name the "
            "first ledger, or restore it; if it is lost, hushcount run --ledger-was-lost enters all charges of the log "
            "into the second one"
        )


def name_ledger(deployment: Deployment, log: Log, now: datetime, *, was_lost: bool = False) -> None:
    """Put a log entry that names the ledger into the log of a party, before that party charges in this ledger.

    Args:
        was_lost: whether the operator says that the ledger that the log names is lost, and that this ledger replaces
            it.

    Raises:
        HushcountError: the log names another ledger, and runs that charge in two ledgers could exceed the limit.
    """
    if deployment.ledger is None:
        return
    if not was_lost:
        require_named(deployment, log.read())
    log.decide(partial(_naming, deployment, id_of(deployment.ledger, create=True), was_lost), now)


def _naming(deployment: Deployment, id: str, was_lost: bool, fold: Fold) -> Charging | None:
    if not was_lost:
        # Meanwhile another deployment may have put its own ledger into the log.
        require_named(deployment, fold)
    return None if fold.ledger == id else Charging(ledger=id)


def require_charged(deployment: Deployment, fold: Fold, summary: Mapping[str, Any]) -> None:
    """Raise HushcountError unless the charge that a summary states is in the ledger that the log names."""
    # The ledger is checked even if this deployment has no ledger, because another deployment may have put its ledger
    # into the log.
    require_named(deployment, fold)
    note = noted(summary)
    if deployment.ledger is None or note is None or (key := key_in(note)) is None:
        return
    if key not in charged_keys(deployment.ledger, fold.campaign):
        raise HushcountError(
            f"ledger {deployment.ledger} was restored while {fold.campaign} was released: nothing was handed out; run "
            "again"
        )


def follow_logs(deployment: Deployment, logs: Logs, campaign: str) -> None:
    """Note in the ledger the newest entry of each log here, so that an older copy of a log is noticed later.

    The shuffler's log is noted too, although it has no charges, because an older copy of it could release segments
    again.
    """
    if deployment.ledger is not None:
        entries = dict[str, Followed]()
        for party in deployment.file.parties:
            head = logs.of(party, campaign).head
            if head.digest is not None:
                entries[party] = Followed(head.generation, head.number, head.digest)
        follow(deployment.ledger, campaign, entries)


def charge_lacking(deployment: Deployment, epochs: Epochs, fold: Fold, clock: Clock) -> list[str]:
    """Enter the charges that the ledger lacks, and return sentences that the operator should read.

    Call this function before each release; raises HushcountError, OSError if the ledger cannot be used.
    """
    found = lacking(deployment, epochs, fold)
    says = list(found.faults)
    if found.proofs and deployment.ledger is not None:
        then = by_time(found.proofs)[-1].limit
        had = put_back(deployment.ledger, epochs.campaign, found.proofs, clock)
        says.append(
            f"{epochs.campaign}: {deployment.ledger} lacked {found.says}; they are charged now{_of_limit(had, then)}"
        )
    return says


def _of_limit(had: Limit | None, then: Limit | None) -> str:
    """Return an addition to a sentence on the ledger, if the campaign's limit was another one at the newest release."""
    if then is None or (had is not None and _terms(had) == _terms(then)):
        return ""
    if had is None:
        return f", and its limit is ({then.epsilon:g}, {then.delta:g}) again"
    return (
        f"; its limit is ({had.epsilon:g}, {had.delta:g}), and was ({then.epsilon:g}, {then.delta:g}) at the last of "
        "these releases: to restore that limit, run hushcount ledger set"
    )


def _terms(limit: Limit) -> tuple[float, float, int | None, str]:
    return limit.epsilon, limit.delta, limit.renew_days, limit.composition
