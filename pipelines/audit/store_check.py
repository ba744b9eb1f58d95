"""Whether what the state says lies in the store does lie there, as it was written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from hushcount.campaigns.campaign import Stream
from hushcount.campaigns.public_keys import VerifyKeyPart
from hushcount.collection.manifests import Manifest
from hushcount.errors import HushcountError
from pipelines.audit.view import View
from pipelines.batches.hops import CHAIN, READERS
from pipelines.batches.intake import new_manifests
from pipelines.batches.rows import deleted_folders
from pipelines.batches.state import HOPS, SEGMENTS
from pipelines.deployment.settings import Deployment
from pipelines.files import storage
from pipelines.files.block_files import find_files, total_records
from pipelines.files.storage_errors import cause, told
from pipelines.handover.parties import batch_name
from pipelines.outputs.folders import folder_of
from pipelines.outputs.labels import SEALED
from pipelines.outputs.staging import SUMMARY, named_folder

if TYPE_CHECKING:
    from keys.roles import SigningRole


def segment_differences(view: View) -> Iterator[str]:
    """Yield a sentence for every segment that is not as its manifest says, is in none, or was put aside.

    A segment that was put aside can be restored until its grace period ends. After that its reports are lost, and only
    its column says so.
    """
    if not view.shuffles:
        return
    root, grace = view.deployment.folder("segments"), view.deployment.windows.grace
    mine = SEGMENTS.c.campaign == view.campaign
    for row in view.state.execute(select(SEGMENTS).where(mine).order_by(SEGMENTS.c.path)):
        path, size = storage.join(root, *row.path.split("/")), view.stored.get(row.path)
        if row.state == "quarantined":
            if view.windows[row.window].end + grace >= view.now:
                yield f"{path} {row.reason}: it was put aside, the rest went on; restore it"
        elif row.state == "waiting" or (row.state == "batched" and "shuffle" not in view.counts.get(row.batch, ())):
            if size is None:
                yield f"{path} is missing: restore it"
            elif size != row.bytes:
                yield f"{path} has {size} bytes, was written with {row.bytes}: restore it"
    for relative in view.unlisted:
        path = storage.join(root, *relative.split("/"))
        try:
            over = view.is_over(relative.split("/")[2])
        except ValueError:
            yield f"{path} lies in no window: remove it"
            continue
        if over:
            cure = "see whether its collector runs; if it does not come back, hushcount segments relist"
            yield f"{path} is in no manifest, though its window is over: {cure}"


def manifest_differences(view: View) -> Iterator[str]:
    """Yield a sentence for every manifest that cannot be read, and for every one whose collector lost something."""
    if not view.shuffles:
        return
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


def output_differences(view: View, *, digests: bool = False) -> Iterator[str]:
    """Yield a sentence for every output that is missing or is not what was counted.

    Args:
        view: of the campaign.
        digests: whether all that was handed on is read; otherwise only what a party here has still to read.
    """
    deleted = deleted_folders(view.state, view.campaign)
    there: dict[str, set[str]] = defaultdict(set)
    for one in CHAIN.values():
        found = storage.list_tree(view.deployment.folder(one.folder, view.campaign), f"*/{SUMMARY}")
        there[one.folder] = {path.split("/")[-2] for path, _ in found}
    here = {hop.name for hop in CHAIN.values() if hop.party in view.deployment.file.parties}
    noted = select(HOPS.c.batch, HOPS.c.hop, HOPS.c.folder).where(HOPS.c.campaign == view.campaign)
    wrote = {(batch, hop): run for batch, hop, run in view.state.execute(noted)}
    keys: dict[str, Sequence[VerifyKeyPart]] = {}
    for name, hops in view.counts.items():
        for hop in sorted(here & hops.keys()):
            folder, signer = CHAIN[hop].folder, CHAIN[hop].signer
            # Nothing is written by a hop that has none of the batch's streams to read.
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
                readers: Mapping[Any, str] = {"bins": "discover"} if hop == "release" else READERS
                unread = {folder for folder, reader in readers.items() if reader in here - hops.keys()}
                yield from _handed_on(directory, hop, hops[hop], keys[hop], None if digests else unread)


def _keys(deployment: Deployment, role: SigningRole) -> tuple[VerifyKeyPart, ...]:
    """Return a party's public keys, retired ones too: what they signed once is still theirs; empty: unsigned."""
    given = deployment.shuffler_keys if role == "shuffler" else deployment.aux_server_keys
    source = given or deployment.sign_with
    if not isinstance(source, Path):
        return ()
    from keys.store import verify_keys

    return verify_keys(source, role, retired=True)


def _handed_on(
    directory: str,
    hop: str,
    streams: Mapping[Stream, Any],
    keys: Sequence[VerifyKeyPart],
    read: Container[str] | None,
) -> Iterator[str]:
    """Yield what is wrong with what was handed on; the files of the folders in `read` are read, or of all."""
    for name, counts in streams.items():
        folder = "bins" if hop == "release" else name
        try:
            where = storage.join(folder_of(directory), folder)
            files = [] if hop == "release" else find_files(where, SEALED[name])
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
        held, forwarded = total_records(files), counts["accepted"]
        if hop != "release" and held != forwarded:
            yield f"{where} holds {held:,} reports, the shuffler forwarded {forwarded:,}"
