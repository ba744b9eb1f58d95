"""Check that each output in the log is in the store, unchanged, and that the log lacks no output's entry."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from hushcount import results
from hushcount.campaigns.campaign import Stream
from hushcount.campaigns.public_keys import VerifyKeyPart
from hushcount.errors import HushcountError
from hushcount.formats.reading import TABLE_BYTES
from pipelines.audit.view import StreamRow, View
from pipelines.deployment.settings import Deployment, Party
from pipelines.files import storage
from pipelines.files.block_files import find_files, total_records
from pipelines.files.storage_errors import told
from pipelines.handover.hops import CHAIN, HopName, hop_names, readers_of, table_of
from pipelines.handover.paths import Batch
from pipelines.handover.statements import FOLDERS, names_from
from pipelines.log.facts import Hopped
from pipelines.log.witnesses import Beside, There, beside_logs, followed_by, missing_of
from pipelines.outputs.counts import SEALED
from pipelines.outputs.staging import SUMMARY
from pipelines.outputs.summary import digest_of_json
from pipelines.windows.stored import oldest_open

if TYPE_CHECKING:
    from keys.roles import SigningRole


def output_differences(view: View, past: bool, digests: bool) -> Iterator[str]:
    """Yield a sentence for every output that is missing, or differs from its summary or its entry in the log.

    Args:
        past: whether to check the outputs of all windows; if false, only the latest windows and unfinished batches.
        digests: whether to read every table and every signed file that was handed on; if false, no table is read, and
            only those signed files that no hop here has read.
    """
    parties = view.deployment.file.parties
    here = {name: hop for name, hop in CHAIN.items() if hop.party in parties}
    keys: dict[str, Sequence[VerifyKeyPart]] = {}
    for name, hops in sorted(view.fold.done.items()):
        if not past and _is_past(view, name, hops):
            continue
        for hop, done in sorted(hops.items()):
            folder, signer = CHAIN[hop].folder, CHAIN[hop].signer
            # A hop writes no output if it reads no stream of the batch.
            if done.folder is None or view.fold.is_deleting(folder, name):
                continue
            directory = view.deployment.folder(folder, view.campaign, name)
            if (fault := _fault_in(directory, done.folder, done)) is not None:
                deleted = ", and no retention deleted it" if done.gone else ""
                yield f"{fault}, though hushcount job {hop} wrote it{deleted}: restore it"
            elif hop == "analyze" and done.counts.accepted:
                yield from _table(table_of(view.deployment, view.fold.named(name)), read=digests)
            elif signer is not None:
                if hop not in keys:
                    keys[hop] = _keys(view.deployment, signer)
                readers = readers_of(hop, get_args(Stream), view.epochs.has_noise)
                waiting = [one for one in readers if one.name in here.keys() - hops.keys()]
                unread = {"bins" if hop == "release" else one.stream for one in waiting}
                where = storage.join(directory, done.folder)
                if not past and not unread and all(one.party in parties for one in readers):
                    # All readers of the output run here and have compared the output with its summary.
                    continue
                read, dummies = None if digests else unread, done.counts.dummies or 0
                yield from _handed_on(directory, where, view.counts[name][hop], dummies, keys[hop], read)


def missing(view: View, past: bool) -> Iterator[str]:
    """Yield a sentence for each log here that lacks entries which other files name, as a lost log or an old copy does.

    Args:
        past: whether to look at outputs of all windows; if false, only at outputs of the latest windows.
    """
    for party in view.deployment.file.parties:
        log = view.log_of(party)
        try:
            if missing_of(view.deployment, log, _beside(view, party, past)):
                # A run may have written the missing entry after this process read the log, so read the log again.
                log.read()
                if found := missing_of(view.deployment, log, _beside(view, party, past)):
                    yield found.says(log)
        except (HushcountError, OSError) as error:
            yield f"{view.campaign}: cannot check that the log of {party} is complete: {told(error)}"


def _beside(view: View, party: Party, past: bool) -> Beside:
    """Return the files in the store that name entries of a party's log; `past`: whether to take all windows."""
    log = view.log_of(party)
    if past:
        return beside_logs(view.deployment, party, (view.campaign,))[view.campaign]
    new = {(one.window.name, segment.file) for one in view.intake.listed for segment in one.segments}
    names = {Batch(view.campaign, window, *file).name for window, file in new} | view.fold.batches.keys()
    recent = [name for name in sorted(names) if name.partition("-")[0] in view.latest]
    marks = {hop.name: hop.folder for hop in CHAIN.values() if hop.party == party}
    outputs: There = {
        hop: {
            name
            for name in recent
            if hop not in log.fold.hops_of(name)
            and storage.exists(view.deployment.folder(folder, view.campaign, name, SUMMARY))
        }
        for hop, folder in marks.items()
    }
    # If the log is an older copy, the missing entries are on windows that in this copy are not closed or not shuffled.
    first = oldest_open(view.fold, view.deployment.windows)
    said = {kind: names_from(view.deployment, kind, party, view.campaign, first) for kind in FOLDERS}
    return Beside(outputs, said, followed_by(view.deployment, log))


def _is_past(view: View, name: str, hops: Mapping[HopName, Hopped]) -> bool:
    """Return whether a batch is finished and older than the latest windows, so that no run changes it again."""
    batch = view.fold.named(name)
    campaign = view.epochs.campaigns.get(batch.file)
    expected = () if campaign is None else hop_names(campaign, view.deployment.file.parties)
    return (
        batch.window not in view.latest and hops.keys() >= set(expected) and not any(hop.gone for hop in hops.values())
    )


def _fault_in(directory: str, folder: str, done: Hopped) -> str | None:
    """Return how an output differs from its entry in the log, as a sentence; None: it does not differ."""
    mark, files = storage.join(directory, SUMMARY), storage.join(directory, folder)
    if not storage.exists(mark):
        return f"{directory} is missing"
    if digest_of_json(storage.read_json(mark)) != done.summary:
        return f"{mark} is not what entry {done.entry.number} of the log says"
    return None if storage.exists(storage.join(files, SUMMARY)) else f"{files} is missing"


def _table(path: str, read: bool) -> Iterator[str]:
    """Yield a sentence if the table of a result is missing or damaged."""
    if not storage.exists(path):
        yield f"{path} is missing, though hushcount job analyze wrote it: restore it"
    elif read:
        try:
            results.parse(storage.read_bytes(path, TABLE_BYTES), path)
        except (HushcountError, OSError) as error:
            yield told(error)


def _keys(deployment: Deployment, role: SigningRole) -> tuple[VerifyKeyPart, ...]:
    """Return a party's public keys, also retired keys, because old signatures stay valid; empty: nothing is signed."""
    source = (deployment.shuffler_keys if role == "shuffler" else deployment.aux_server_keys) or deployment.sign_with
    if not isinstance(source, Path):
        return ()
    from keys.directories import verify_keys

    return verify_keys(source, role, retired=True)


def _handed_on(
    directory: str,
    run: str,
    rows: Mapping[Stream, StreamRow],
    dummies: int,
    keys: Sequence[VerifyKeyPart],
    read: Container[str | None] | None,
) -> Iterator[str]:
    """Yield the faults of files that a run handed on; compare digests in the folders `read` (None: in all folders)."""
    for name, row in rows.items():
        folder = "bins" if row.hop == "release" else name
        try:
            where = storage.join(run, folder)
            files = [] if row.hop == "release" else find_files(where, SEALED[name])
            if keys:
                from pipelines.handover.signed import read_signed, require_files

                digests = read is None or folder in read
                require_files(directory, folder, read_signed(directory, keys), digests=digests)
        except (HushcountError, OSError) as error:
            yield told(error)
            continue
        handed = row.accepted + (dummies if name == "reports" else 0)
        if row.hop != "release" and (held := total_records(files)) != handed:
            yield f"{where} holds {held:,} records, {row.hop} handed on {handed:,}"
