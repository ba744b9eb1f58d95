"""The checks of each key, file, folder, disk and collector that the deployment file names."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, func, select

from hushcount.errors import HushcountError
from hushcount.senders import Authentication, tells_clients_apart
from pipelines.audit.view import Finding
from pipelines.batches.state import MANIFESTS, SEGMENTS
from pipelines.deployment.campaigns import Epochs
from pipelines.deployment.settings import Deployment, Party
from pipelines.files import storage
from pipelines.files.storage_errors import cause
from pipelines.ledger.clock import span
from pipelines.schedule.witnesses import CONFIRM, beside_ledger, beside_store, clock_of

if TYPE_CHECKING:
    from keys.roles import SigningRole

_SKEW = timedelta(minutes=1)
_WINDOWS = 7
_ROOM = 3.0
"""Windows that must fit on a disk: a batch is there as segments, in the shuffler's hand, and as what it wrote."""
_WRITES: dict[Party, tuple[str, ...]] = {
    "shuffler": ("batches", "shuffled"),
    "aux-server": ("released",),
    "analyzer": ("found", "results"),
}


def _signs(deployment: Deployment, campaigns: list[Epochs]) -> Iterator[Finding]:
    """Open the keys that sign what the parties here hand on."""
    parties = deployment.file.parties
    signers: list[SigningRole] = ["shuffler"] if "shuffler" in parties else []
    files = [campaign for epochs in campaigns for campaign in epochs.campaigns.values()]
    if "aux-server" in parties and any(campaign.discovery is not None for campaign in files):
        signers.append("aux_signer")
    if signers and (directory := deployment.sign_with) is not None:
        # Packages of other parties are not everywhere, so that they are imported when they are needed.
        from keys.store import active_key

        # Opened, as the party will: a listing may outlive its key.
        ids = ", ".join(f"{active_key(directory, role).read_signing().id} of the {role}" for role in signers)
        yield Finding("sign_with", "good", f"key {ids} signs")


def _trusts(name: str, role: SigningRole, deployment: Deployment, _: list[Epochs]) -> Iterator[Finding]:
    file: Path | None = getattr(deployment, name)
    if file is not None:
        from keys.store import verify_keys

        yield Finding(name, "good", f"{', '.join(key.id for key in verify_keys(file, role))} may sign")


def _charges(deployment: Deployment, _: list[Epochs]) -> Iterator[Finding]:
    if (ledger := deployment.ledger) is not None:
        from pipelines.ledger.report import check

        said = check(ledger).warnings if ledger.exists() else []
        found = "is whole" if ledger.exists() else "comes with the first release"
        yield Finding("ledger", "warning" if said else "good", "; ".join([f"{ledger} {found}", *said]))


def _authenticates(deployment: Deployment, _: list[Epochs]) -> Iterator[Finding]:
    if (collector := deployment.collector) is not None:
        from shuffler.collector.admission.authentication import authenticator

        authenticator(collector, deployment.base)
        yield told_apart("authentication", collector.authentication)


OF_SETTINGS: Mapping[str, Callable[[Deployment, list[Epochs]], Iterator[Finding]]] = {
    "sign_with": _signs,
    "shuffler_keys": partial(_trusts, "shuffler_keys", "shuffler"),
    "aux_server_keys": partial(_trusts, "aux_server_keys", "aux_signer"),
    "ledger": _charges,
    "authentication": _authenticates,
}
"""The checks of single settings, by the name of the setting."""


def told_apart(name: str, way: Authentication) -> Finding:
    """Say whether the cap binds clients, by how they are told apart."""
    if tells_clients_apart(way):
        return Finding(name, "good", way)
    says = f"{way} tells no client from another, so that the cap binds nobody, and results speak of one report"
    return Finding(name, "bad", says, 'set authentication = "client-token" under [collector]')


def silent(deployment: Deployment, state: Connection) -> Iterator[Finding]:
    """Say which of the collectors that are waited for have never been heard of, once one has."""
    heard = set(state.execute(select(MANIFESTS.c.collector).distinct()).scalars())
    if heard and "shuffler" in deployment.file.parties:
        for name in sorted(set(deployment.file.collectors) - heard):
            cure = "start it, or take it out of collectors"
            yield Finding(f"collector {name}", "warning", "closed no window yet", cure)


def store(deployment: Deployment) -> Iterator[Finding]:
    """Write a file to each folder of the store that the parties here write to, and remove it."""
    for name in (name for party in deployment.file.parties for name in _WRITES[party]):
        folder = deployment.folder(name)
        probe = storage.join(folder, f"probe-{uuid.uuid4().hex}")
        try:
            storage.write_whole(probe, [b"probe"])
            storage.remove(probe)
            yield Finding(f"write to {name}", "good", folder)
        except (OSError, HushcountError) as error:
            yield Finding(f"write to {name}", "bad", f"{folder}: {cause(error)}", "let this user write there")


def disk(deployment: Deployment, state: Connection) -> Iterator[Finding]:
    """Check that each local disk has room for what the largest of the last windows brought."""
    sums = select(SEGMENTS.c.window, func.sum(SEGMENTS.c.bytes)).group_by(SEGMENTS.c.window)
    latest = sorted((window, int(size)) for window, size in state.execute(sums))[-_WINDOWS:]
    usual = _ROOM * max((size for _, size in latest), default=0)
    places = {"store": (deployment.store, usual), "state": (str(Path(deployment.state).parent), usual)}
    if (collector := deployment.collector) is not None:
        # With less than that the collector refuses reports.
        places["journal"] = (str(deployment.base / collector.journal), usual + collector.least_free_bytes)
    for name, (place, needed) in places.items():
        if "://" not in place and Path(place).exists():
            free = shutil.disk_usage(place).free
            cure = f"{needed / 1e9:,.1f} GB are needed; make room"
            yield Finding(f"disk of {name}", "good" if free > needed else "bad", f"{free / 1e9:,.1f} GB free", cure)


def clock(deployment: Deployment, state: Connection, now: datetime) -> Iterator[Finding]:
    """Say whether the clock is far ahead, and by how much it is off each thing that tells the time."""
    held = beside_store(beside_ledger(clock_of(state, deployment, now), deployment), deployment)
    yield Finding("clock", "bad" if held.is_far else "good", held.says(), CONFIRM)
    told = {witness.name: max(witness.stamps) for witness in held.witnesses if witness.stamps}
    told |= {} if held.trusted is None else {"the last run": held.trusted}
    told |= {} if held.store is None else {"the store": held.store}
    for name, moment in told.items():
        off = now - moment
        # The store's own clock tells the present, all else what had come when it was written.
        wrong = off < -_SKEW or (name == "the store" and off > _SKEW)
        says = f"{span(off)} {'behind' if off < timedelta() else 'ahead of'} it"
        cure = "set the clocks; if this one is right, that was written by one that was ahead"
        yield Finding(f"clock beside {name}", "bad" if wrong else "good", says, cure)
