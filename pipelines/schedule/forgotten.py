"""Charges that the ledger lacks, though the store or the state shows that their releases were made.

So it is if somebody lost the ledger or restored an older copy. The summary of a release states its charge. The state
notes what it states, so that each summary is read once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection
from sqlalchemy import Engine as Database

from hushcount.errors import HushcountError
from pipelines.batches import rows
from pipelines.batches.hops import CHAIN, hop_names, output_of
from pipelines.batches.rebuild import outputs
from pipelines.deployment.campaigns import Epochs
from pipelines.deployment.settings import Deployment
from pipelines.files import storage
from pipelines.files.storage_errors import told
from pipelines.handover.names import Batch
from pipelines.ledger.proofs import Proof, by_time, charged_keys, key_in, noted, proof_of, put_back
from pipelines.ledger.records import Limit
from pipelines.outputs.staging import SUMMARY

_CHARGING = ("release", "discover", "analyze")
Note = Mapping[str, Any] | None
"""What a summary states of its charge; None: nothing was charged."""
Notes = Mapping[tuple[str, str], Note]
"""By batch and hop."""


@dataclass
class Forgotten:
    """What a ledger lacks of one campaign.

    Attributes:
        proofs: of the charges, by key.
        batches: names of the batches that were released.
        read: what the state has no note of yet, by batch and hop.
        faults: a sentence for each release of which it is not known whether, or how, it is to be charged.
    """

    proofs: dict[str, Proof] = field(default_factory=dict)
    batches: set[str] = field(default_factory=set)
    read: dict[tuple[Batch, str], Note] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    @property
    def says(self) -> str:
        """How many charges of which batches the ledger lacks."""
        first, last = min(self.batches), max(self.batches)
        of = f"batch {first}" if first == last else f"{len(self.batches):,} batches from {first} to {last}"
        return f"{len(self.proofs):,} charges, of {of}"


def notes_of(connection: Connection, campaign: str) -> Notes:
    """Return what the state notes of charges; what retention deleted cannot be looked at any more."""
    gone = rows.deleted_folders(connection, campaign)
    passed = {(batch, hop): None for folder, batch in gone for hop in _CHARGING if CHAIN[hop].folder == folder}
    return passed | rows.noted_charges(connection, campaign)


def look(notes: Notes, batches: Iterable[Batch] | None, where: Deployment, epochs: Epochs) -> Forgotten:
    """Look for what the ledger lacks.

    Args:
        notes: as `notes_of` returns them.
        batches: to look for in the store, if there are no notes of them; None: all that are there.

    Raises:
        HushcountError, OSError: the ledger cannot be read, or the store cannot be listed.
    """
    found = Forgotten()
    if where.ledger is None or not {CHAIN[hop].party for hop in _CHARGING} & set(where.file.parties):
        return found
    known = charged_keys(where.ledger, epochs.campaign)
    # All but the newest, in a campaign of years: no more is asked of them.
    settled = {named for named, note in notes.items() if note is None or key_in(note) in known}
    listed = ((Batch.named(epochs.campaign, name), hop) for name, hop in notes.keys() - settled)
    wanted = {(batch, hop) for batch, hop in listed if batch is not None}
    if batches is None:
        wanted |= set(_in_store(where, epochs))
    else:
        wanted |= {(batch, hop) for batch in batches for hop in _hops(where, epochs, batch)}
    for batch, hop in sorted(wanted):
        if (batch.name, hop) in settled:
            continue
        at = storage.join(output_of(where, hop, batch), SUMMARY)
        try:
            if (batch.name, hop) in notes:
                note = notes[batch.name, hop]
            else:
                if not storage.exists(at):
                    continue
                note = found.read[batch, hop] = noted(storage.read_json(at))
            if note is None:
                continue
            if batch.file not in epochs.files:
                raise HushcountError(f"{at} is of a campaign file that is not in {epochs.directory}: publish it")
            proof = proof_of(note, epochs.campaigns[batch.file], at)
            if proof.charge.key not in known:
                proof.require_complete(at)
                found.proofs[proof.charge.key] = proof
                found.batches.add(batch.name)
        except (HushcountError, OSError) as error:
            found.faults.append(f"{epochs.campaign}/{batch.name}: {told(error)}")
    return found


def charge_forgotten(state: Database, where: Deployment, epochs: Epochs, batches: Iterable[Batch]) -> list[str]:
    """Charge what the ledger lacks, and return a sentence for whatever the operator should know.

    Call it before anything is released.

    Raises:
        HushcountError, OSError: the ledger cannot be used, or the store cannot be listed.
    """
    with state.begin() as connection:
        notes = notes_of(connection, epochs.campaign)
    # A state that knows of no charge may be new.
    found = look(notes, batches if any(notes.values()) else None, where, epochs)
    says = found.faults
    if found.proofs and where.ledger is not None:
        then = by_time(found.proofs.values())[-1].limit
        had = put_back(where.ledger, epochs.campaign, found.proofs.values())
        says.append(
            f"{epochs.campaign}: {where.ledger} lacked {found.says}; they are charged now{_of_limit(had, then)}"
        )
    if found.read:
        with state.begin() as connection:
            for (batch, hop), note in found.read.items():
                rows.note_charge(connection, batch, hop, note)
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


def _hops(where: Deployment, epochs: Epochs, batch: Batch) -> list[str]:
    campaign = epochs.campaigns.get(batch.file)
    names = () if campaign is None else hop_names(campaign, where.file.parties)
    return [name for name in names if name in _CHARGING]


def _in_store(where: Deployment, epochs: Epochs) -> Iterator[tuple[Batch, str]]:
    for hop in (CHAIN[name] for name in _CHARGING if CHAIN[name].party in where.file.parties):
        for batch, _ in outputs(where, hop.folder, epochs.campaign):
            yield batch, hop.name
