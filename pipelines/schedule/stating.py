"""Say to other parties what was done: a statement of each hop that writes for them, a receipt of each output read.

Whoever finds one missing writes it: a run may be killed between an entry and what follows from it.
"""

from __future__ import annotations

from dataclasses import dataclass

from hushcount.campaigns.public_keys import VerifyKeyPart
from keys.roles import SigningRole
from pipelines.deployment.settings import PARTIES, Deployment, Party
from pipelines.handover.parties import signer_of, verified_by
from pipelines.handover.statements import Kind, NamedEntry, Statement, put, put_already, read
from pipelines.log.fold import Fold, Hopped
from pipelines.log.hops import CHAIN, HopName
from pipelines.log.log import Log

SIGNERS: dict[Party, SigningRole] = {
    "shuffler": "shuffler",
    "aux-server": "aux_signer",
    "analyzer": "analyzer_signer",
}
"""Whose key signs what a party says."""


def keys_of(deployment: Deployment, party: Party) -> tuple[VerifyKeyPart, ...]:
    """Return the public keys one of which must have signed what a party says; empty: signatures are not checked."""
    known = {
        "shuffler": deployment.shuffler_keys,
        "aux-server": deployment.aux_server_keys,
        "analyzer": deployment.analyzer_keys,
    }
    return verified_by(known[party], SIGNERS[party])


def recipients_of(deployment: Deployment, hop: HopName, done: Hopped) -> tuple[Party, ...]:
    """Return the parties elsewhere that read what a hop here handed on."""
    readers = (one for one in CHAIN.values() if one.input == hop and one.stream in done.counts.streams)
    return tuple(one.party for one in readers if one.party not in deployment.file.parties)


def others(deployment: Deployment) -> tuple[Party, ...]:
    """Return the parties that run elsewhere."""
    return tuple(party for party in PARTIES if party not in deployment.file.parties)


def state(deployment: Deployment, log: Log) -> None:
    """Write what a party has not said yet of what is done by its log. Call it after outputs are published."""
    if not others(deployment):
        return
    said = _said_of(deployment, log)
    there = {kind: put_already(deployment, kind, log.party, log.campaign) for kind in {one.kind for one in said}}
    missing = [one for one in said if one.name not in there[one.kind]]
    if missing:
        signer = signer_of(deployment.sign_with, SIGNERS[log.party])
        for one in missing:
            put(deployment, one, signer)


def _said_of(deployment: Deployment, log: Log) -> list[Statement]:
    found = []
    for name, hops in log.fold.done.items():
        for hop, done in hops.items():
            if CHAIN[hop].party != log.party:
                continue
            if CHAIN[hop].signer is not None and not log.fold.is_deleting(CHAIN[hop].folder, name):
                found.append(_statement(log, name, hop, done, "statement", done.summary))
            source = CHAIN[hop].input
            if source is not None and CHAIN[source].party not in deployment.file.parties and done.made_from is not None:
                found.append(_statement(log, name, source, done, "receipt", done.made_from))
    return found


def _statement(log: Log, batch: str, hop: HopName, done: Hopped, kind: Kind, summary: str | None) -> Statement:
    return Statement(
        kind=kind,
        party=log.party,
        campaign=log.campaign,
        batch=batch,
        hop=hop,
        at=done.at,
        summary=summary,
        streams=dict(done.counts.streams) if kind == "statement" else {},
        taken=done.counts.received if kind == "receipt" else None,
        after=NamedEntry(generation=done.entry.generation, number=done.entry.number, entry=done.entry.digest or ""),
    )


@dataclass(frozen=True)
class HandOver:
    """An output that parties elsewhere read.

    Attributes:
        missing: recipients that left no receipt of it.
    """

    batch: str
    hop: HopName
    done: Hopped
    missing: tuple[Party, ...]


def hand_overs(deployment: Deployment, fold: Fold) -> tuple[list[HandOver], list[str]]:
    """Return what was handed on to parties elsewhere, and a sentence for each receipt that is not believed."""
    received: set[tuple[Party, str, str, str | None]] = set()
    problems: list[str] = []
    for party in others(deployment):
        found, faults = read(deployment, "receipt", party, fold.campaign, keys_of(deployment, party))
        received |= {(party, batch, hop, said.summary) for (batch, hop), said in found.items()}
        problems += faults
    handed = []
    for name, hops in sorted(fold.done.items()):
        for hop, done in hops.items():
            if recipients := recipients_of(deployment, hop, done):
                left = (one for one in recipients if (one, name, hop, done.summary) not in received)
                handed.append(HandOver(name, hop, done, tuple(left)))
    return handed, problems
