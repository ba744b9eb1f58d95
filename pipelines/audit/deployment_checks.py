"""The checks of a deployment as a whole: everything that its file names, its disks, and the clock."""

from __future__ import annotations

import shutil
import uuid
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from hushcount.errors import HushcountError
from hushcount.senders import Authentication, tells_clients_apart
from pipelines.audit.view import LAST, Finding, View
from pipelines.deployment.settings import PARTIES, Party
from pipelines.files import storage
from pipelines.files.storage_errors import cause
from pipelines.handover.statements import SIGNERS, others
from pipelines.ledger.clock import span
from pipelines.ledger.overview import check
from pipelines.log.probe import WRITERS, fault
from pipelines.schedule.clock_check import CONFIRM, told_time
from pipelines.schedule.last_look import last_look
from pipelines.windows.calendar import MOST_ENDED
from pipelines.windows.stored import stored_files
from pipelines.windows.waiting import unclaimed

if TYPE_CHECKING:
    from keys.roles import SigningRole

SKEW = timedelta(minutes=1)
_ROOM = 3.0
"""Number of windows that must fit on a disk, where a batch may lie three times: segments, attempt and output."""
_WITH_SUMMER = {"EST": "America/New_York", "MST": "America/Denver"}
"""Zones of a fixed offset, and the zones with summer time that are meant by their names."""
_WRITES: dict[Party, tuple[str, ...]] = {
    "shuffler": ("log", "attempts", "shuffled"),
    "aux-server": ("log", "attempts", "released"),
    "analyzer": ("log", "attempts", "found", "results", "estimates"),
}
_SAYS: dict[Party, tuple[str, ...]] = {
    "shuffler": ("stated",),
    "aux-server": ("stated", "receipts"),
    "analyzer": ("receipts",),
}
"""The folders of the statements and receipts that each party writes for the other parties."""


def sign_with(view: View) -> Iterator[Finding]:
    """Open the keys with which the parties here sign outputs, statements and receipts."""
    parties = view.deployment.file.parties
    signers: list[SigningRole] = ["shuffler"] if "shuffler" in parties else []
    if "analyzer" in parties and others(view.deployment):
        # If all parties run here, nobody reads the analyzer's receipts.
        signers.append("analyzer_signer")
    files = [campaign for epochs in view.campaigns for campaign in epochs.campaigns.values()]
    if "aux-server" in parties and any(campaign.discovery or campaign.noise for campaign in files):
        signers.append("aux_signer")
    if signers and (directory := view.deployment.sign_with) is not None:
        # Imported only here, because a party without keys lacks the package keys.
        from keys.directories import active_key

        # Open each key as its party does before it signs, because public.json may list a key whose file is missing.
        ids = ", ".join(f"{active_key(directory, role).read_signing().id} of the {role}" for role in signers)
        yield Finding("sign_with", "good", f"key {ids} signs")


def zone(view: View) -> Iterator[Finding]:
    """Say that a zone is a fixed offset, if its name is read as that of a zone with summer time."""
    if (other := _WITH_SUMMER.get(name := view.deployment.windows.zone or "UTC")) is not None:
        yield Finding("zone of windows", "warning", f"{name} is never on summer time, but {other} is", f"set {other}")


def keys_of_parties(view: View) -> Iterator[Finding]:
    """Read the public keys of each party; with one of them the party signs its outputs, statements and receipts."""
    deployment = view.deployment
    files = (deployment.shuffler_keys, deployment.aux_server_keys, deployment.analyzer_keys)
    for party, file in zip(PARTIES, files, strict=True):
        if file is not None:
            from keys.directories import verify_keys

            may = ", ".join(key.id for key in verify_keys(file, SIGNERS[party]))
            yield Finding(f"{party.replace('-', '_')}_keys", "good", f"{may} may sign")


def opening_engine(view: View) -> Iterator[Finding]:
    """Check that the engine that the environment names for opening reports can be used."""
    if {"aux-server", "analyzer"} & set(view.deployment.file.parties):
        from keys.opening_engines import VARIABLE, require_opening_engine

        require_opening_engine()
        yield Finding("opening_engine", "good", f"{VARIABLE} can be used")


def groups(view: View) -> Iterator[Finding]:
    """Read the files of the groups in the deployment file, because `analyze` and `ask` need these files."""
    choices = view.deployment.file.analyzer.groups
    if choices and "analyzer" in view.deployment.file.parties:
        from pipelines.jobs.results import items_in_groups

        items_in_groups(choices, view.deployment.base)
        yield Finding("groups", "good", f"{len(choices):,} named")


def ledger(view: View) -> Iterator[Finding]:
    """Check that the ledger is not damaged."""
    if (path := view.deployment.ledger) is not None:
        warnings = check(path, view.clock).warnings if path.exists() else []
        found = "is not damaged" if path.exists() else "is created by the first release"
        yield Finding("ledger", "warning" if warnings else "good", "; ".join([f"{path} {found}", *warnings]))


def authentication(view: View) -> Iterator[Finding]:
    """Check how the collector here tells clients apart, and that its keys and files for this task can be read."""
    if (collector := view.deployment.collector) is not None:
        from service.authentication import authenticator

        authenticator(collector, view.deployment.base)
        yield told_apart("authentication", collector.authentication)


def told_apart(name: str, way: Authentication) -> Finding:
    """Say whether the cap limits each client; if collectors cannot tell clients apart, the cap limits no client."""
    if tells_clients_apart(way):
        return Finding(name, "good", way)
    says = f"authentication {way} tells no client apart: the cap limits no client, and results protect one report only"
    return Finding(name, "bad", says, 'set authentication = "client-token" or "privacy-pass" under [collector]')


def run(view: View) -> Iterator[Finding]:
    """Say when a run here last looked; warn if since then a window's end and its patience have passed."""
    last, begun = last_look(view.deployment), [one.epochs.collection.epochs[0].begins for one in view.each()]
    since = min(begun, default=view.now) if last is None else last
    ended, due = (
        max((one.calendar.ended(since, moment) for one in view.each()), default=0)
        for moment in (view.now, view.now - view.deployment.windows.patience)
    )
    number = f"{ended:,} or more windows" if ended == MOST_ENDED else f"{ended:,} window{'' if ended == 1 else 's'}"
    looked = "never looked" if last is None else f"last looked {span(view.now - last)} ago"
    cure = f"start {view.deployment.command('run --watch')}, or the service that runs it, and read its messages"
    yield Finding("run", "warning" if due else "good", f"{looked}, {number} ended since", cure)


def collectors(view: View) -> Iterator[Finding]:
    """Warn of each collector in `collectors` that has closed no window, if another collector has closed one."""
    heard = {name for one in view.each() for window in one.fold.windows.values() for name in window.collectors}
    heard |= {listed.manifest.collector for one in view.each() for listed in one.intake.listed}
    if heard and view.deployment.shuffles:
        for name in sorted(set(view.deployment.file.collectors) - heard):
            cure = "start it, or take it out of collectors"
            yield Finding(f"collector {name}", "warning", "has closed no window yet", cure)


def segments(view: View) -> Iterator[Finding]:
    """Warn of segments of campaigns that have no campaign file; if no campaign could be read, yield no finding."""
    known = {epochs.campaign for epochs in view.campaigns} | view.faults.keys()
    if not known or "shuffler" not in view.deployment.file.parties:
        return
    for name, says in unclaimed(view.deployment, stored_files(view.deployment), known).items():
        yield Finding(f"segments of {name}", "warning", says)


def store(view: View) -> Iterator[Finding]:
    """Write a file to each folder of the store that the parties here write to, and remove the file."""
    parties = view.deployment.file.parties
    wanted: list[tuple[str, ...]] = [(name,) for party in parties for name in _WRITES[party]]
    if "aux-server" in parties and any(epochs.has_noise for epochs in view.campaigns):
        wanted.append(("mixed",))
    if others(view.deployment):
        wanted += [(name, party) for party in parties for name in _SAYS[party]]
    for names in dict.fromkeys(wanted):
        name, folder = "/".join(names), view.deployment.folder(*names)
        probe = storage.join(folder, f"probe-{uuid.uuid4().hex}")
        try:
            storage.write_whole(probe, [b"probe"])
            storage.remove(probe)
            yield Finding(f"write to {name}", "good", folder)
        except (OSError, HushcountError) as error:
            yield Finding(f"write to {name}", "bad", f"{folder}: {cause(error)}", "let this user write there")


def puts(view: View) -> Iterator[Finding]:
    """Check that in the log folders of the parties here only one of many writers can create a file."""
    folders = [view.deployment.folder("log", party) for party in view.deployment.file.parties]
    faults = [f"{folder}: {said}" for folder in folders if (said := fault(folder))]
    says = "; ".join(faults) or f"of {WRITERS} writers that create one file at once, one succeeds"
    yield Finding("puts", "bad" if faults else "good", says, "put the store on another file system or service")


def disk(view: View) -> Iterator[Finding]:
    """Check that each local disk has enough free space for three windows as large as the largest recent window."""
    brought: Counter[str] = Counter()
    for name, window in (item for one in view.each() for item in one.fold.windows.items()):
        brought[name] += window.bytes
    usual = _ROOM * max((brought[name] for name in sorted(brought)[-LAST:]), default=0)
    places = {"store": (view.deployment.store, usual)}
    if (collector := view.deployment.collector) is not None:
        # If the disk has fewer free bytes than least_free_bytes, the collector refuses reports.
        places["journal"] = (str(view.deployment.base / collector.journal), usual + collector.least_free_bytes)
    for name, (place, needed) in places.items():
        if "://" not in place and Path(place).exists():
            free = shutil.disk_usage(place).free
            cure = f"{needed / 1e9:,.1f} GB are needed; free some space"
            yield Finding(f"disk of {name}", "good" if free > needed else "bad", f"{free / 1e9:,.1f} GB free", cure)


def clock(view: View) -> Iterator[Finding]:
    """Say whether this machine's clock is far ahead, and how far it is from every other source of the time."""
    listed = [one for each in view.each() for one in each.intake.listed]
    time = told_time(view.deployment, [one.fold for one in view.each()], listed, view.now)
    held = time.clock
    yield Finding("clock", "bad" if held.is_far else "good", held.says(), CONFIRM)
    yield from (Finding("clock", "bad", problem) for problem in time.problems)
    told = {witness.name: max(witness.stamps) for witness in held.witnesses if witness.stamps}
    told |= {} if held.trusted is None else {"the log": held.trusted}
    told |= {} if held.store is None else {"the store": held.store}
    for name, moment in told.items():
        off = view.now - moment
        # The store's own clock tells the present. Every other source names a past moment, so this machine's clock is
        # normally ahead of that source.
        wrong = off < -SKEW or (name == "the store" and off > SKEW)
        says = f"{span(off)} {'behind' if off < timedelta() else 'ahead of'} it"
        cure = "set the clocks; if this machine's clock is right, the machine that wrote the later time was ahead"
        yield Finding(f"clock beside {name}", "bad" if wrong else "good", says, cure)
