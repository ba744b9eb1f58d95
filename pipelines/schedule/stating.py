"""Tell other parties what was done: a statement on each hop that writes for them, a receipt for each output read here.

Any run writes missing statements and receipts, because a run may be killed right after it put an entry.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from pipelines.deployment.campaigns import Epochs
from pipelines.deployment.settings import Deployment, Party
from pipelines.handover.hops import CHAIN, HANDED_ON, Hop, HopName, hop_names, input_of, readers_of
from pipelines.handover.parties import signer_of
from pipelines.handover.statements import SIGNERS, Kind, NamedEntry, Statement, keys_of, names, put, read
from pipelines.ledger.clock import shown
from pipelines.log.entries import Decision, Received
from pipelines.log.facts import Hopped
from pipelines.log.fold import Fold
from pipelines.log.log import Log


def recipients_of(deployment: Deployment, hop: HopName, done: Hopped) -> tuple[Party, ...]:
    """Return the parties elsewhere that read the output of a hop that runs here."""
    readers = readers_of(hop, done.counts.streams, done.counts.dummies is not None)
    return tuple(dict.fromkeys(one.party for one in readers if one.party not in deployment.file.parties))


def state(deployment: Deployment, epochs: Epochs, log: Log, there: Mapping[Kind, Container[str]] | None = None) -> None:
    """Write the statements and receipts that are missing for the done hops of a log.

    Call this function after publishing outputs. Statements and receipts are written even if no other party reads them:
    retention does not delete them, so after outputs are deleted, they still show whether the log was lost.

    Args:
        there: the names of existing statements and receipts; None: the function lists them.
    """
    said = _said_of(deployment, epochs, log)
    if there is None:
        there = {kind: names(deployment, kind, log.party, log.campaign) for kind in {one.kind for one in said}}
    missing = [one for one in said if one.name not in there[one.kind]]
    if missing:
        signer = signer_of(deployment.sign_with, SIGNERS[log.party])
        for one in missing:
            put(deployment, one, signer)


def _said_of(deployment: Deployment, epochs: Epochs, log: Log) -> list[Statement]:
    found = []
    for name, all_hops in log.fold.done.items():
        hops = {hop: done for hop, done in all_hops.items() if CHAIN[hop].party == log.party}
        for hop, done in hops.items():
            if CHAIN[hop].signer is not None and not log.fold.is_deleting(CHAIN[hop].folder, name):
                found.append(_statement(log, name, hop, done, "statement", done.summary))
        campaign = epochs.campaigns.get(log.fold.named(name).file)
        wanted = hops.keys() if campaign is None else hop_names(campaign, (log.party,))
        for source in HANDED_ON:
            readers = {hop for hop in wanted if input_of(hop, epochs.has_noise) == source}
            # With noise two hops of the auxiliary server read the shuffle, and it is needed until both have.
            read = [hops[hop] for hop in readers if hop in hops and hops[hop].made_from is not None]
            if read and CHAIN[source].party not in deployment.file.parties and hops.keys() >= readers:
                last = max(read, key=lambda done: (done.entry.generation, done.entry.number))
                taken = sum(done.counts.received for done in read)
                found.append(_statement(log, name, source, last, "receipt", last.made_from, taken))
    return found


def _statement(
    log: Log, batch: str, hop: HopName, done: Hopped, kind: Kind, summary: str | None, taken: int | None = None
) -> Statement:
    return Statement(
        kind=kind,
        party=log.party,
        campaign=log.campaign,
        batch=batch,
        hop=hop,
        at=done.at,
        summary=summary,
        streams=dict(done.counts.streams) if kind == "statement" else {},
        dummies=done.counts.dummies if kind == "statement" else None,
        taken=taken,
        after=NamedEntry(generation=done.entry.generation, number=done.entry.number, entry=done.entry.digest or ""),
    )


@dataclass(frozen=True)
class HandOver:
    """An output that parties elsewhere read, and that retention has not deleted.

    Attributes:
        recipients: the parties that read the output.
        missing: recipients that left no receipt of the output.
    """

    batch: str
    hop: HopName
    done: Hopped
    recipients: tuple[Party, ...]
    missing: tuple[Party, ...]


def handed_on(deployment: Deployment, fold: Fold) -> list[HandOver]:
    """Return the outputs for parties elsewhere that retention has not deleted, with the receipts that the log has."""
    received, found = set(fold.received), []
    for name, hops in sorted(fold.done.items()):
        for hop, done in hops.items():
            recipients = recipients_of(deployment, hop, done)
            if recipients and not fold.is_deleting(CHAIN[hop].folder, name):
                found.append(HandOver(name, hop, done, recipients, silent(recipients, hop, name, received)))
    return found


def silent(recipients: tuple[Party, ...], hop: HopName, batch: str, received: Container[str]) -> tuple[Party, ...]:
    """Return the recipients that left no receipt of an output; `received` has the form of `Fold.received`."""
    return tuple(party for party in recipients if f"{party} {hop} {batch}" not in received)


def hand_overs(deployment: Deployment, fold: Fold) -> tuple[list[HandOver], list[str]]:
    """Return the result of `handed_on`, but count also new receipts that are not in the log yet.

    Return also a sentence for each new receipt that is not believed.
    """
    handed = handed_on(deployment, fold)
    unreceived: dict[Party, dict[tuple[str, str], HandOver]] = defaultdict(dict)
    for one in handed:
        for party in one.missing:
            unreceived[party][one.batch, one.hop] = one
    received: set[tuple[Party, str, str]] = set()
    problems: list[str] = []
    for party, outputs in sorted(unreceived.items()):
        keys = keys_of(deployment, party)
        found, faults = read(deployment, "receipt", party, fold.campaign, keys, partial(_is_of, outputs))
        problems += faults
        for (batch, hop), said in found.items():
            if said.summary == outputs[batch, hop].done.summary:
                received.add((party, batch, hop))
            else:
                problems.append(
                    f"{fold.campaign}/{batch}: the receipt of {party} is of another output than {hop} wrote here: it "
                    "does not count"
                )
    return [
        HandOver(
            one.batch, one.hop, one.done, one.recipients,
            tuple(party for party in one.missing if (party, one.batch, one.hop) not in received),
        )
        for one in handed
    ], problems  # fmt: skip


def _is_of(outputs: Container[tuple[str, str]], batch: str, hop: str) -> bool:
    return (batch, hop) in outputs


def receive(deployment: Deployment, log: Log, at: datetime) -> list[str]:
    """Enter new receipts of a party's outputs into its log; return a sentence for each receipt that is not believed."""
    known = set(log.fold.received)
    handed, problems = hand_overs(deployment, log.fold)
    fresh: dict[tuple[Party, HopName], list[str]] = defaultdict(list)
    for one in handed:
        for party in one.recipients:
            if party not in one.missing and f"{party} {one.hop} {one.batch}" not in known:
                fresh[party, one.hop].append(one.batch)
    for (party, hop), batches in sorted(fresh.items()):
        log.decide(partial(_new, Received(party=party, hop=hop, batches=tuple(batches))), at)
    return problems


def _new(received: Received, fold: Fold) -> Decision | None:
    known = set(fold.received)
    new = (name for name in received.batches if f"{received.party} {received.hop} {name}" not in known)
    batches = tuple(name for name in new if received.hop in fold.hops_of(name))
    return received.model_copy(update={"batches": batches}) if batches else None


def overdue(
    deployment: Deployment, fold: Fold, handed: Iterable[HandOver], stated: Iterable[Statement], now: datetime
) -> list[str]:
    """Return a sentence for each overdue hand-over; a hand-over may take a window's length and grace.

    Args:
        handed: outputs from here. An output that retention deleted without a receipt counts as lost, not as overdue.
        stated: the statements of parties elsewhere on their hops.
    """
    before = now - deployment.windows.tiling.longest - deployment.windows.grace
    unreceived = [
        f"{fold.campaign}/{one.batch}: {party} has left no receipt of {CHAIN[one.hop].folder} since "
        f"{shown(one.done.at)}: check that hand_on and the hushcount run of {party} are at work"
        for one in handed
        for party in one.missing
        if one.done.at < before
    ]
    return unreceived + [
        f"{fold.campaign}/{one.batch}: {one.party} stated {one.hop} at {shown(one.at)}, and no {reader.name} has read "
        f"it here since: check that hand_on of {one.party} is at work; if {one.party} has deleted the output, nobody "
        "counts it"
        for one in sorted(stated, key=lambda one: (one.batch, one.hop))
        for reader in _unread_by(deployment, fold, one)
        if one.at < before and one.summary is not None
    ]


def _unread_by(deployment: Deployment, fold: Fold, stated: Statement) -> list[Hop]:
    """Return the hops here that should read the output that a statement names, and have not read it."""
    return [
        hop
        for hop in readers_of(stated.hop, stated.streams, stated.dummies is not None)
        if hop.party in deployment.file.parties and hop.name not in fold.hops_of(stated.batch)
    ]
