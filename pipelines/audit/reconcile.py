"""What became of every report, by number, and every place where two numbers, or a number and a file, disagree."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import select

from hushcount.campaigns.campaign import Stream
from hushcount.campaigns.public_keys import VerifyKeyPart
from hushcount.collection.manifests import Manifest
from hushcount.collection.windows import is_window
from hushcount.errors import HushcountError
from hushcount.formats.reading import parse_object
from hushcount.reasons import DAMAGE
from pipelines.audit.view import StreamRow, View
from pipelines.batches.hops import CHAIN, READERS
from pipelines.batches.intake import new_manifests
from pipelines.batches.rows import deleted_folders, made_batches
from pipelines.batches.state import SEGMENTS
from pipelines.batches.waiting import Waiting, waiting_of
from pipelines.deployment.settings import Deployment
from pipelines.files import storage
from pipelines.files.block_files import find_files, total_records
from pipelines.files.storage_errors import cause, told
from pipelines.handover.parties import batch_name
from pipelines.outputs.counts import SEALED
from pipelines.outputs.received_summary import folder_of
from pipelines.outputs.staging import SUMMARY, named_folder

if TYPE_CHECKING:
    from keys.roles import SigningRole


@dataclass(frozen=True)
class WindowCounts:
    """The acknowledged reports of one window's stream, and their number by the state of their segment."""

    window: str
    stream: str
    received: int
    states: dict[str, int]


@dataclass(frozen=True)
class Account:
    """The reports of one campaign, by number.

    Attributes:
        campaign: id.
        windows: what was collected.
        hops: what the jobs counted.
        refused: what collectors refused at the door, by window and reason.
        waiting: what no batch has taken yet though its window has closed, and when it is dropped.
        differences: a sentence for each place where the numbers, or the files, disagree; it names the file.
    """

    campaign: str
    windows: list[WindowCounts] = field(default_factory=list)
    hops: list[StreamRow] = field(default_factory=list)
    refused: dict[str, dict[str, int]] = field(default_factory=dict)
    waiting: list[Waiting] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)


def account_of(view: View, *, digests: bool = False) -> Account:
    """Return the account of a campaign.

    Args:
        view: of the campaign.
        digests: whether to compare everything that was handed on with its signature; otherwise only new files.
    """
    places: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for row in sorted(view.sums, key=lambda row: row.state):
        places[row.window, row.stream][row.state] += int(row.records)
    refused: dict[str, Counter[str]] = defaultdict(Counter)
    for row in view.manifests:
        if reasons := parse_object(row.refused.encode(), "state"):
            refused[row.window].update(reasons)
    return Account(
        view.campaign,
        [WindowCounts(*place, states.total(), dict(states)) for place, states in sorted(places.items())],
        _hops(view),
        {window: dict(reasons) for window, reasons in refused.items()},
        waiting_in(view),
        [
            *_hop_differences(view),
            *rescues(view),
            *(chain(_manifest_differences(view), _segment_differences(view)) if view.shuffles else ()),
            *_output_differences(view, digests),
        ],
    )


def waiting_in(view: View) -> list[Waiting]:
    """Return what waits; nothing if the shuffler does not run here."""
    files = view.epochs.campaigns
    return waiting_of(view.state, view.campaign, files, view.deployment.windows, view.now) if view.shuffles else []


def rescues(view: View) -> Iterator[str]:
    """Yield a sentence for each hop that in its newest batch opened reports by libsodium after the lanes had not."""
    for batch, hop, number in view.rescued:
        yield (
            f"{batch} {hop}: the lanes did not open {number:,} reports that libsodium then opened, so that nothing was "
            "lost: set HUSHCOUNT_OPENING=libsodium, and report this as a bug"
        )


def _hops(view: View) -> list[StreamRow]:
    return [row for hops in view.counts.values() for hop in CHAIN for row in hops.get(hop, {}).values()]


def _hop_differences(view: View) -> Iterator[str]:
    """Yield a sentence for every loss of a hop, and for every two numbers of a batch that disagree."""
    for one in _hops(view):
        rejected, at = sum(one.rejected.values()), f"{one.batch} {one.hop}: "
        if lost := sum(one.rejected.get(reason, 0) for reason in DAMAGE):
            yield f"{at}{lost:,} {one.stream} were lost in damaged blocks or cut files"
        if one.received != one.accepted + rejected:
            sums = f"accepted {one.accepted:,} and rejected {rejected:,}"
            yield f"{at}{one.stream} received {one.received:,} is not {sums}"
    collected: dict[str, Counter[Stream]] = defaultdict(Counter)
    for row in view.sums:
        if row.state == "batched":
            collected[row.batch][row.stream] += int(row.records)
    # A party without a state of segments knows only the hops.
    for batch in (batch.name for batch in made_batches(view.state, view.campaign)):
        hops = view.counts.get(batch, {})
        if (shuffled := hops.get("shuffle")) is None:
            continue
        for stream in sorted(shuffled.keys() | collected[batch].keys()):
            received = shuffled[stream].received if stream in shuffled else 0
            if received != (stored := collected[batch][stream]):
                yield f"{batch}: {stream} shuffled: {received:,} received, {stored:,} collected"
        for stream, hop in READERS.items():
            if stream in hops.get(hop, {}) and stream in shuffled:
                received, forwarded = hops[hop][stream].received, shuffled[stream].accepted
                if received != forwarded:
                    yield f"{batch}: {stream} of {hop}: {received:,} received, {forwarded:,} forwarded"


def _manifest_differences(view: View) -> Iterator[str]:
    """Yield a sentence for every manifest that cannot be read, and for every one whose collector lost something."""
    for relative, manifest in new_manifests(view.deployment, view.campaign, {row.path for row in view.manifests}):
        if not isinstance(manifest, Manifest):
            yield f"{view.deployment.folder('segments', *relative.split('/'))}: {cause(manifest)}"
    for row in view.manifests:
        if row.damaged > 0:
            yield (
                f"{view.deployment.folder('segments', *row.path.split('/'))}: {row.damaged:,} stretches of the "
                "collector's journal were damaged, and acknowledged reports may have been: look into damaged/ beside "
                "its journal"
            )


def _segment_differences(view: View) -> Iterator[str]:
    """Yield a sentence for every segment that is not as its manifest says, is in none, or was put aside.

    A segment that was put aside can be restored until its grace period ends. After that its reports are lost, and only
    its column says so.
    """
    root, grace = view.deployment.folder("segments"), view.deployment.windows.grace
    sizes = {str(segment): size for segment, size in view.stored.items()}
    for row in view.rows(select(SEGMENTS).order_by(SEGMENTS.c.path), SEGMENTS):
        path, size = storage.join(root, row.path), sizes.get(row.path)
        if row.state == "quarantined":
            if view.windows[row.window].end + grace >= view.now:
                yield f"{path} {row.reason}: it was put aside, the rest went on; restore it"
        elif row.state == "waiting" or (row.state == "batched" and "shuffle" not in view.counts.get(row.batch, ())):
            if size is None:
                yield f"{path} is missing: restore it"
            elif size != row.bytes:
                yield f"{path} has {size} bytes, was written with {row.bytes}: restore it"
    for segment in view.unlisted:
        path = storage.join(root, str(segment))
        if not is_window(segment.window):
            yield f"{path} lies in no window: remove it"
        elif view.is_over(segment.window):
            cure = "see whether its collector runs; if it does not come back, hushcount segments relist"
            yield f"{path} is in no manifest, though its window is over: {cure}"


def _output_differences(view: View, digests: bool) -> Iterator[str]:
    """Yield a sentence for every output that is missing or is not what was counted."""
    deleted = deleted_folders(view.state, view.campaign)
    there: dict[str, set[str]] = defaultdict(set)
    for one in CHAIN.values():
        found = storage.list_tree(view.deployment.folder(one.folder, view.campaign), f"*/{SUMMARY}")
        there[one.folder] = {path.split("/")[-2] for path, _ in found}
    here = {hop.name for hop in CHAIN.values() if hop.party in view.deployment.file.parties}
    wrote = {(row.batch, row.hop): row.folder for row in view.hops}
    keys: dict[str, Sequence[VerifyKeyPart]] = {}
    for name, hops in view.counts.items():
        for hop in sorted(here & hops.keys()):
            folder, signer = CHAIN[hop].folder, CHAIN[hop].signer
            # A hop that reads no stream of the batch writes nothing.
            if (folder, name) in deleted or not hops[hop]:
                continue
            directory = view.deployment.folder(folder, view.campaign, name)
            if name not in there[folder]:
                yield f"{directory} is missing, though hushcount {hop} wrote it: restore it"
            elif (run := wrote[name, hop]) is not None and named_folder(directory) != run:
                yield (
                    f"{storage.join(directory, SUMMARY)} does not name {run}, which hushcount {hop} wrote: a run that "
                    "had lost its lock put its own in the place; see which of both was read, and restore that one"
                )
            elif signer is not None:
                if hop not in keys:
                    keys[hop] = _keys(view.deployment, signer)
                readers = [("bins", "discover")] if hop == "release" else [*READERS.items()]
                unread = {folder for folder, reader in readers if reader in here - hops.keys()}
                yield from _handed_on(directory, hops[hop], keys[hop], None if digests else unread)


def _keys(deployment: Deployment, role: SigningRole) -> tuple[VerifyKeyPart, ...]:
    """Return a party's public keys, retired ones too: what they signed once is still theirs; empty: unsigned."""
    source = (deployment.shuffler_keys if role == "shuffler" else deployment.aux_server_keys) or deployment.sign_with
    if not isinstance(source, Path):
        return ()
    from keys.store import verify_keys

    return verify_keys(source, role, retired=True)


def _handed_on(
    directory: str, rows: Mapping[Stream, StreamRow], keys: Sequence[VerifyKeyPart], read: Container[str] | None
) -> Iterator[str]:
    """Yield what is wrong with the files that were handed on; digests only in the folders of `read`, None: in all."""
    for name, row in rows.items():
        folder = "bins" if row.hop == "release" else name
        try:
            where = storage.join(folder_of(directory), folder)
            files = [] if row.hop == "release" else find_files(where, SEALED[name])
            if keys:
                from pipelines.handover.signed import read_signed, require_files

                summary = read_signed(directory, keys)
                if summary.batch != batch_name(directory):
                    yield f"{directory} holds what was signed for another batch: it lies in the wrong place; restore it"
                    return
                require_files(directory, folder, summary, digests=read is None or folder in read)
        except (HushcountError, OSError) as error:
            yield told(error)
            continue
        if row.hop != "release" and (held := total_records(files)) != row.accepted:
            yield f"{where} holds {held:,} reports, the shuffler forwarded {row.accepted:,}"
