"""The checks of one campaign: its files, and whether its reports will become results."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Literal

from hushcount.campaigns.delegation import read_campaign_signature
from hushcount.campaigns.dictionary import USUAL_BYTES
from hushcount.campaigns.signatures import signature_path
from hushcount.collection.epochs import epoch_folder
from hushcount.collection.manifests import SUFFIX, collector_of
from hushcount.collection.windows import duration_text
from hushcount.errors import HushcountError, UsageError
from hushcount.passes.slots import Role
from hushcount.senders import Authentication, weakest
from pipelines.audit.deployment_checks import SKEW, told_apart
from pipelines.audit.orphans import orphans
from pipelines.audit.outputs import missing
from pipelines.audit.reconcile import account_of, overdue, rescues, waiting_in
from pipelines.audit.view import LAST, Finding, Verdict, View
from pipelines.deployment.campaigns import unnamed_collectors
from pipelines.deployment.listed_windows import LEFT, listed_until
from pipelines.deployment.settings import Party
from pipelines.handover.paths import WindowPath
from pipelines.ledger.clock import shown
from pipelines.log.ledger_check import lacking, require_named
from pipelines.windows.rules import START_AGAIN, notes_of
from pipelines.windows.stored import manifests_in
from service.passes import PassTaker
from service.settings import ServicePart

_SOON = timedelta(days=14)
_LONG = timedelta(days=90)
_FEW = 3
"""The operator is warned if a publisher may sign fewer further epochs than this number."""
_ROLES: Mapping[Party, Literal["analyzer", "aux_server"]] = {"analyzer": "analyzer", "aux-server": "aux_server"}


def epoch(view: View) -> Iterator[Finding]:
    """Say which epoch is current."""
    name, current = f"epoch of {view.campaign}", view.epochs.collection.current(view.now)
    if current is None:
        yield Finding(name, "bad", "no epoch is current", view.deployment.command("campaign publish"))
    else:
        yield Finding(name, "good", f"{current.epoch} since {current.begins.isoformat()}")


def keys(view: View) -> Iterator[Finding]:
    """Check the dictionary and the keys of every epoch whose reports are still accepted."""
    collection, current = view.epochs.collection, view.epochs.collection.current(view.now)
    for (number, _), campaign in view.epochs.campaigns.items():
        if not collection.accepts(number, view.now):
            continue
        file = f"epoch {number} of {campaign.id}"
        try:
            if (dictionary := campaign.read_dictionary()) is not None:
                fits: Verdict = "good" if len(dictionary.text) <= USUAL_BYTES else "warning"
                cure = "raise max_dictionary_bytes in the policies of apps, or their clients refuse this dictionary"
                yield Finding(f"dictionary of {file}", fits, dictionary.sizes, cure)
        except HushcountError as error:
            yield Finding(f"dictionary of {file}", "bad", str(error))
        listed = dict(campaign.keys)
        for role, public in listed.items() if current is not None and current.epoch == number else ():
            for key in public:
                left = key.not_after - view.now
                verdict: Verdict = "good" if left > _SOON else "warning" if left > timedelta() else "bad"
                cure = "hushcount keys rotate, then publish an epoch with the new key"
                if role == "evaluator":
                    cure = "publish an epoch with a fresh evaluator key: after that time clients get no evaluations"
                yield Finding(f"{role} key of {file}", verdict, f"valid until {key.not_after.isoformat()}", cure)
        for party in view.deployment.file.parties:
            if (opens := _ROLES.get(party)) is None or not listed[opens]:
                continue
            # Imported only here, because a machine that runs only the shuffler lacks the package keys.
            from keys.directories import campaign_key

            name = f"private {party} key of {file}"
            try:
                campaign_key(view.deployment.keys, opens, listed[opens])
                yield Finding(name, "good", "opens")
            except HushcountError as error:
                yield Finding(name, "bad", str(error))


def passes(view: View) -> Iterator[Finding]:
    """Check that the services here can take passes of the newest epoch, and for how many days there are keys."""
    _, campaign = view.epochs.newest
    file, here = f"epoch {campaign.epoch} of {campaign.id}", view.deployment.file
    parts: Mapping[Role, ServicePart | None] = {
        "collector": view.deployment.collector,
        "evaluator": here.evaluator if campaign.is_oblivious else None,
    }
    for role, part in parts.items():
        try:
            if part is not None:
                taker = PassTaker(part.authentication, role, part.name, view.deployment.windows.tiling)
                taker.passes(view.epochs.directory, [campaign])
        except HushcountError as error:
            yield Finding(f"passes of {file} at the {role}", "bad", str(error))
    if campaign.passes is not None:
        end = campaign.passes.first + timedelta(days=len(campaign.passes.days))
        left = end - view.now.date()
        verdict: Verdict = "good" if left > _SOON else "warning" if left > timedelta() else "bad"
        cure = "add days with hushcount keys passes, then publish an epoch made with campaign new --after --passes"
        yield Finding(f"pass keys of {file}", verdict, f"the last day is {end - timedelta(days=1)}", cure)


def signature(view: View) -> Iterator[Finding]:
    """Check that the newest campaign file is signed if the previous file is: clients that verify need a signature."""
    parts = view.epochs.collection.epochs
    signed = [signature_path(view.epochs.directory / part.file).exists() for part in parts]
    if len(signed) > 1 and signed[-2] and not signed[-1]:
        yield Finding(
            f"signature of {view.campaign}",
            "bad",
            f"epoch {parts[-1].epoch} is unsigned, but the epoch before it is signed",
            "sign it by hushcount campaign sign, and publish the same file again: then collectors read the signature",
        )


def named(view: View) -> Iterator[Finding]:
    """Check that the newest campaign file names all collectors, because clients derive their tokens by these names."""
    if said := unnamed_collectors(view.deployment, view.epochs.newest[1]):
        cure = f"hushcount campaign new --config {view.deployment.path} --after FILE, then publish it"
        yield Finding(f"collectors named by {view.campaign}", "bad", said, cure)


def publisher(view: View) -> Iterator[Finding]:
    """Check that clients accept the publisher of the newest epoch, and for how long this publisher may still sign."""
    path = signature_path(view.epochs.directory / view.epochs.collection.epochs[-1].file)
    delegation = read_campaign_signature(path).delegation if path.exists() else None
    if delegation is None:
        return
    left, epochs = delegation.publisher.not_after - view.now, delegation.last_epoch - view.epochs.newest[1].epoch
    verdict: Verdict = "bad" if left <= timedelta() else "warning" if left <= _SOON or epochs < _FEW else "good"
    says = f"may sign {epochs} more epochs, and its key is valid until {delegation.publisher.not_after.isoformat()}"
    cure = "delegate anew, with the operator's key: hushcount campaign delegate"
    if left <= timedelta():
        cure = "clients refuse the campaign: hushcount campaign sign with another key, and replace collection.json"
    yield Finding(f"publisher of {view.campaign}", verdict, says, cure)


def windows(view: View) -> Iterator[Finding]:
    """Say when windows begin unless one begins at every midnight, announce changes, and check what clients know."""
    campaign, name = view.epochs.newest[1], f"windows that clients of {view.campaign} know"
    try:
        # An epoch that has not begun yet lists windows from its own begin on.
        begun = max(view.now, view.epochs.collection.epochs[-1].begins)
        until = None
        # A run has not applied a change of the deployment file yet, but clients will have to count by it.
        for tiling in dict.fromkeys((view.calendar.at(begun).tiling, view.deployment.windows.tiling)):
            until = listed_until(campaign, tiling, begun)
    except UsageError as error:
        yield Finding(name, "bad", str(error))
    else:
        if until is not None:
            verdict: Verdict = "good" if until - view.now > LEFT else "warning"
            yield Finding(name, verdict, f"are listed until {shown(until)}", "publish a next epoch, which lists more")
    if notes := notes_of(view.calendar, view.fold, view.now):
        yield Finding(f"windows of {view.campaign}", "good", "; ".join(notes))


def volume(view: View) -> Iterator[Finding]:
    """Check that one window, or at least all windows of a grace period, usually bring a minimum batch of a stream."""
    campaign, windows = view.epochs.newest[1], view.deployment.windows
    brought = {name: window.reports for name, window in view.fold.windows.items() if window.reports}
    latest = sorted(brought)[-LAST:]
    for stream in campaign.streams if latest else ():
        floor, within = campaign.shuffle.minimum_batch, 1 + windows.grace // windows.tiling.usual
        sizes = [brought[window].get(stream, 0) for window in latest]
        median, known = sorted(sizes)[len(sizes) // 2], min(within, len(sizes))
        # A report waits up to a grace period until a batch is full. If the log knows fewer windows than a grace period
        # has, the missing windows are taken to bring as many reports as the known windows.
        runs = (sizes[first : first + known] for first in range(len(sizes) - known + 1))
        lost = any(run[0] and sum(run) * within < floor * known for run in runs)
        verdict: Verdict = "bad" if lost else "good" if median >= 2 * floor else "warning"
        cure = "results may wait for several windows; lengthen the window"
        if verdict == "bad":
            cure = f"{within} windows do not fill a batch, so reports are dropped; lengthen the window, or its grace"
        says = f"{median:,} reports a window, the minimum batch is {floor:,}"
        yield Finding(f"volume of {view.campaign} {stream}", verdict, says, cure)


def waiting(view: View) -> Iterator[Finding]:
    """Say which acknowledged reports wait for a batch, and when the shuffler drops them."""
    found = waiting_in(view)
    for one in found:
        yield Finding(f"waiting {one.stream} of epoch {one.epoch} of {view.campaign}", one.verdict, one.says)
    if not found:
        yield Finding(f"waiting of {view.campaign}", "good", "no report waits for a later window")


def runs(view: View) -> Iterator[Finding]:
    """Say whether there is a window that a run should have closed by now, but that no run has closed."""
    late = overdue(view)
    says = "every window that is due is closed" if late is None else late
    yield Finding(f"runs of {view.campaign}", "good" if late is None else "bad", says)


def log(view: View) -> Iterator[Finding]:
    """Say whether a log here lacks entries that outputs, statements, receipts or the ledger name."""
    found = [*missing(view, True)]
    for says in found:
        yield Finding(f"log of {view.campaign}", "bad", says)
    if not found:
        yield Finding(f"log of {view.campaign}", "good", "no file names an entry that it lacks")


def collectors(view: View) -> Iterator[Finding]:
    """Say of each collector whether its clock is ahead, its window length differs, or it closes no more windows."""
    present = view.calendar.window_at(view.now)
    for collector, (name, _) in _last_of_collectors(view).items():
        window = view.windows[name]
        if window.end > view.now + SKEW:
            says = f"it closed {window.text}, which has not ended by this machine's clock"
            yield Finding(f"clock of {collector}", "bad", says, "set the clocks")
        elif not view.calendar.has(window):
            ended = f"{duration_text(window.length)}, {window.text}"
            says = f"it ended a window of {ended}, but the log has no such window"
            yield Finding(f"windows of {collector}", "warning", says, START_AGAIN)
        elif present.start - window.end > max(window.length, present.length):
            says, cure = f"the last is of {window.text}", "check that it still runs"
            yield Finding(f"manifests of {collector}", "warning", says, cure)
        else:
            yield Finding(f"clock of {collector}", "good", f"last closed {window.text}")


def _last_of_collectors(view: View) -> dict[str, tuple[str, Authentication]]:
    """Return each collector's last closed window, and the weakest way in which it told clients apart in that window."""
    ways: dict[str, dict[str, list[Authentication]]] = defaultdict(lambda: defaultdict(list))
    for name, window in view.fold.windows.items():
        for collector, way in window.collectors.items():
            ways[collector][name].append(way)
    for one in view.intake.listed:
        ways[one.manifest.collector][one.manifest.window].append(one.manifest.authentication)
    return {collector: (max(found), weakest(found[max(found)])) for collector, found in sorted(ways.items())}


def segments(view: View) -> Iterator[Finding]:
    """Check that every segment is in a manifest, and that no two collectors share a name."""
    if not view.deployment.shuffles:
        return
    found = orphans(view)
    says = f"{len(found)} segments, {sum(found.values()):,} bytes, are in no manifest" if found else "all are listed"
    yield Finding(
        f"segments of {view.campaign}", "bad" if found else "good", says, view.deployment.command("repair segments")
    )
    there = [path for path in view.fold.files | {one.path for one in view.intake.listed} if path.endswith(SUFFIX)]
    closed = Counter((collector_of(path.rpartition("/")[2]), WindowPath.of(path)) for path in there)
    twice = {str(collector): folder.window for (collector, folder), number in closed.items() if number > 1}
    cure = "if two collectors have this name, rename one: each collector counts a client's cap by itself"
    for collector, window in sorted(twice.items()):
        yield Finding(f"name of {collector}", "warning", f"two journals of that name closed {window}", cure)


def senders(view: View) -> Iterator[Finding]:
    """Check that each collector told clients apart in the last window that it closed."""
    for collector, (_, way) in _last_of_collectors(view).items():
        yield told_apart(f"senders of {view.campaign} at {collector}", way)


def campaign_files(view: View) -> Iterator[Finding]:
    """Check that collectors store only reports of campaign files that are published here."""
    known = {epoch_folder(campaign) for campaign in view.epochs.campaigns.values()}
    strange = sorted({WindowPath.of(one.path).file for one in manifests_in(view.files)} - known)
    says, cure = f"{strange[0]} is not one of its epochs" if strange else "as published", "publish that file here"
    yield Finding(f"campaign files of {view.campaign}", "bad" if strange else "good", says, cure)


def age_of_segments(view: View) -> Iterator[Finding]:
    """Warn of segments older than 90 days if the deployment file sets no retention for them."""
    if not view.deployment.shuffles or view.deployment.file.retention.segments is not None:
        return
    over = {name for name, window in view.fold.known_windows.items() if view.now - window.end > _LONG}
    old = [size for segment, size in view.stored.items() if segment.window in over]
    says = f"{sum(old) / 1e9:,.1f} GB are older than {_LONG.days} days" if old else "young"
    cure = "set segments under [retention]"
    yield Finding(f"age of segments of {view.campaign}", "warning" if old else "good", says, cure)


def opening(view: View) -> Iterator[Finding]:
    """Check that libsodium opened no report of the newest batches that the lanes had failed to open."""
    for says in rescues(view):
        yield Finding(f"opening of {view.campaign}", "bad", says)


def numbers(view: View) -> Iterator[Finding]:
    """Say how many differences of numbers or files the account of all windows has."""
    found = len(account_of(view, past=True).differences)
    says = f"{found} do not agree" if found else "agree"
    cure = view.deployment.command("status --digests")
    yield Finding(f"numbers of {view.campaign}", "bad" if found else "good", says, cure)


def charges(view: View) -> Iterator[Finding]:
    """Say which releases the ledger has no charge for, because it was lost or restored from an older copy."""
    name = f"charges of {view.campaign}"
    try:
        require_named(view.deployment, view.fold)
    except HushcountError as error:
        yield Finding(name, "bad", str(error))
        return
    found = lacking(view.deployment, view.epochs, view.fold)
    for fault in found.faults:
        yield Finding(name, "bad", fault)
    if found.proofs:
        cure = "restore a newer copy, or let the next hushcount run charge them"
        yield Finding(name, "bad", f"{view.deployment.ledger} lacks {found.says}", cure)
