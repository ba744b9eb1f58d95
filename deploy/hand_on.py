"""Copies to each recipient, from every batch, the folder for this recipient, and the batch's summary.

A party's other outputs are not copied.

    python -m hand_on --config deployment.toml --hand shuffled/discovery=gs://example-shuffler-to-aux-server/shuffled \
                      --hand shuffled/reports=gs://example-shuffler-to-analyzer/shuffled \
                      --hand stated=gs://example-shuffler-to-aux-server/stated \
                      --hand stated=gs://example-shuffler-to-analyzer/stated \
                      --fetch receipts/aux-server=gs://example-aux-server-receipts/receipts/aux-server \
                      --fetch receipts/analyzer=gs://example-analyzer-receipts/receipts/analyzer

Without --config it reads the file that HUSHCOUNT_CONFIG names, else deployment.toml.

The jobs of a recipient read the folder of their stream and the summary. The other stream's folder and the dead letters
are in the same directory, and neither a mount nor a bucket's policy can give access to a part of the directory. So each
recipient gets copies in its own place. If an output is deleted, its copy is deleted too. The next call repeats a copy
or a deletion that was interrupted, and replaces a copy that was changed. A batch is not handed on if its number of
records or its files differ from its summary.

A recipient reads an output only after it has the statement that names the output. So `stated` copies the statements of
the parties of this deployment into WHERE/PARTY. The recipient writes receipts into its own place, and `--fetch` copies
these receipts into this deployment's store, because retention waits for receipts. Statements and receipts are not
deleted with the outputs.

`shuffled/discovery` names what the auxiliary server gets of `shuffled`, and `shuffled/reports` what the analyzer gets.
If a batch has noise of the mixes, the auxiliary server gets its reports too, and the analyzer nothing: it gets them
from `mixed`.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path

from hushcount.campaigns.signatures import SIGNATURE_BYTES
from hushcount.errors import FormatError, HushcountError, UsageError
from hushcount.formats.reading import SETTINGS_BYTES, parse_model
from hushcount.wire import blocks
from pipelines.deployment.settings import PARTIES, Deployment, Party
from pipelines.files import block_files, storage
from pipelines.files.storage_errors import cause, silent_clients
from pipelines.handover.file_list import all_files
from pipelines.handover.paths import Batch
from pipelines.handover.statements import FOLDERS as SAID
from pipelines.handover.statements import SIGNATURE, SUFFIX, Kind, Named, Statement
from pipelines.outputs.counts import SEALED
from pipelines.outputs.received_summary import folder_of, read_summary
from pipelines.outputs.staging import SUMMARY
from pipelines.outputs.summary import HopSummary

FOLDERS = {"shuffled": ("reports", "discovery"), "released": ("bins",), "mixed": ("reports",)}
"""The folders of each output that are for a next party; no other folder is handed on."""
STATED = SAID["statement"]
_KINDS = {"reports": SEALED["reports"], "discovery": SEALED["discovery"], "bins": blocks.Kind.RELEASED}
_SUMMARY_SIGNATURE = f"{SUMMARY}.sig"
_FAILURES = (HushcountError, OSError)


@dataclass(frozen=True)
class Hand:
    """One folder of every batch for one recipient, or the statements for this recipient.

    Attributes:
        output: folder of the store with the batches, or `stated`.
        folder: the folder of each batch that is handed on with its summary, unless the batch has noise of the mixes
            (`_folders`); empty for statements.
        target: where the recipient finds the batches, or a folder of statements for each party.
    """

    output: str
    folder: str
    target: str


@dataclass(frozen=True)
class Fetch:
    """Statements or receipts that a party in another deployment writes to `source`."""

    kind: Kind
    party: Party
    source: str


def main(arguments: Sequence[str]) -> None:
    """Hand on missing outputs and statements, once or repeatedly."""
    parser = argparse.ArgumentParser(prog="hand_on", description="Hand on to each recipient its own folder.")
    found = Path(os.environ.get("HUSHCOUNT_CONFIG", "deployment.toml"))
    parser.add_argument("--config", type=Path, default=found, help="Deployment file of the party that hands on.")
    parser.add_argument(
        "--hand", action="append", default=[], help="OUTPUT/FOLDER=WHERE, or stated=WHERE; once for each recipient."
    )
    parser.add_argument(
        "--fetch", action="append", default=[], help="receipts/PARTY=FROM, or stated/PARTY=FROM; once for each party."
    )
    parser.add_argument("--every", type=float, help="Seconds between two looks; without it there is one look.")
    parser.add_argument(
        "--looked", type=Path, help="File that each look without a problem touches; its age is the time since then."
    )
    asked = parser.parse_args(arguments)
    hands, fetches = [_parsed(text) for text in asked.hand], [_fetch(text) for text in asked.fetch]
    if not hands and not fetches:
        raise UsageError("options --hand and --fetch are both missing: set one of them at least")
    stop = threading.Event()
    if asked.every is not None:
        signal.signal(signal.SIGTERM, lambda _number, _frame: stop.set())
    while True:
        try:
            done, problems = hand_on(Deployment.read(asked.config), hands, fetches)
            for line in done:
                sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
            if problems:
                raise HushcountError("; ".join(problems))
            if asked.looked is not None:
                asked.looked.touch()
        except _FAILURES as error:
            if asked.every is None:
                raise
            # The store may be unreachable for a while, so the next turn of this loop tries again.
            sys.stderr.write(f"error: {cause(error)}\n")
        if asked.every is None or stop.wait(asked.every):
            return


def _parsed(text: str) -> Hand:
    path, _, target = text.partition("=")
    output, _, folder = path.partition("/")
    if not target or (path != STATED and folder not in FOLDERS.get(output, ())):
        allowed = [f"{output}/{folder}=WHERE" for output, folders in FOLDERS.items() for folder in folders]
        raise UsageError(f"option --hand is {text!r}, must be one of {', '.join((*allowed, f'{STATED}=WHERE'))}")
    return Hand(output, folder, target)


def _fetch(text: str) -> Fetch:
    path, _, source = text.partition("=")
    for kind, folder in SAID.items():
        for party in PARTIES:
            if path == f"{folder}/{party}" and source:
                return Fetch(kind, party, source)
    allowed = ", ".join(f"{folder}/{party}=FROM" for folder in SAID.values() for party in PARTIES)
    raise UsageError(f"option --fetch is {text!r}, must be one of {allowed}")


def hand_on(
    deployment: Deployment, hands: Sequence[Hand], fetches: Sequence[Fetch] = ()
) -> tuple[list[str], list[str]]:
    """Copy outputs that the target lacks, fetch statements and receipts, and delete copies of deleted outputs.

    Returns:
        A line for each copy and deletion that was done; and a sentence for each copy or deletion that failed, and for
        each place that cannot be listed. The next call tries again what failed, even if this call is killed.

    Raises:
        UsageError: the outputs are not in this deployment's store, two hands have the same place, or a fetch names a
            party that runs here.
    """
    for fetch in fetches:
        if fetch.party in deployment.file.parties:
            raise UsageError(
                f"option --fetch names {fetch.party}, which runs here and has its folder here: remove this --fetch"
            )
    places = [hand.target.rstrip("/") for hand in hands]
    for place in places:
        if places.count(place) > 1:
            # Both copies would have one summary, which would mark both copies as complete when only one copy is
            # complete.
            raise UsageError(f"option --hand has {place} for {places.count(place)} folders: give each its own place")
    done: list[str] = []
    problems: list[str] = []
    for fetch in fetches:
        _carry(fetch.kind, fetch.party, fetch.source, deployment.folder(SAID[fetch.kind], fetch.party), done, problems)
    for hand in (hand for hand in hands if hand.output == STATED):
        for party in deployment.file.parties:
            where = storage.join(hand.target, party)
            _carry("statement", party, deployment.folder(STATED, party), where, done, problems)
    for hand in (hand for hand in hands if hand.output != STATED):
        source = deployment.folder(hand.output)
        if not storage.is_remote(source) and not Path(source).is_dir():
            raise UsageError(
                f"{source} is no directory: nothing was handed on and nothing deleted; mount it, or create it"
            )
        _hand_outputs(hand, source, done, problems)
    return done, problems


def _hand_outputs(hand: Hand, source: str, done: list[str], problems: list[str]) -> None:
    try:
        made, there = _batches(source, SUMMARY), _batches(hand.target, SUMMARY)
        # `held` includes batches with an interrupted copy or deletion.
        patterns = [f"{run}{folder}/*" for run in ("", "*/") for folder in FOLDERS[hand.output]]
        held = there.union(*(_batches(hand.target, pattern) for pattern in patterns))
    except _FAILURES as error:
        problems.append(f"{hand.output}/{hand.folder} was not handed on to {hand.target}: {cause(error)}")
        return
    if held and not made and not _emptied(source, held):
        problems.append(
            f"{source} holds no batch, but {hand.target} holds copies of {len(held)}: no copy was deleted; mount the "
            "missing directory or correct its path; if you deleted all batches on purpose, delete the copies too"
        )
        return
    for batch in sorted(made | held):
        name, target = f"{'/'.join(batch)} {hand.folder}", storage.join(hand.target, *batch)
        try:
            with silent_clients():
                if batch not in made:
                    delete_copy(target)
                    done.append(f"deleted: {name}")
                    continue
                output = _read(storage.join(source, *batch))
                folders = _folders(hand, output)
                if folders and (batch not in there or not is_as_made(output, folders, target)):
                    copy_output(output, folders, target)
                    name = f"{'/'.join(batch)} {','.join(folders)}"
                    done.append(f"handed on{' again' if batch in there else ''}: {name}")
        except _FAILURES as error:
            # A failure does not stop the loop, so the other batches are still handled.
            problems.append(f"{name}: {cause(error)}")


def _carry(kind: Kind, party: Party, source: str, target: str, done: list[str], problems: list[str]) -> None:
    """Copy a party's statements that `target` lacks, each after its signature; no statement is ever deleted.

    Args:
        source, target: each has a folder for each campaign, with small files only.
        done: gets a line for each campaign with new statements.
        problems: gets a sentence for each statement that was not copied, and for a place that cannot be listed.
    """
    try:
        with silent_clients():
            here, there = _sizes(source), _sizes(target)
    except _FAILURES as error:
        problems.append(f"{SAID[kind]}/{party} was not copied from {source} to {target}: {cause(error)}")
        return
    copied: Counter[str] = Counter()
    for place in sorted(here):
        campaign, name = place.split("/")
        signed = place + SIGNATURE
        if Named.parse(name) is None or all(there.get(one) == here.get(one) for one in (place, signed)):
            continue
        path, copy = storage.join(source, place), storage.join(target, place)
        try:
            with silent_clients():
                data = storage.read_bytes(path, SETTINGS_BYTES)
                said = parse_model(Statement, data, path, f"is not a {kind} of a party")
                if (said.kind, said.party, said.campaign, said.name) != (kind, party, campaign, name):
                    raise FormatError(f"{path} is a {kind} that belongs in another place")
                if signed in here:
                    signature = storage.read_bytes(path + SIGNATURE, SIGNATURE_BYTES)
                    storage.write_whole(copy + SIGNATURE, [signature])
                storage.write_whole(copy, [data])
        except _FAILURES as error:
            problems.append(f"{SAID[kind]}/{party} {place} was not copied: {cause(error)}")
            continue
        copied[campaign] += 1
    done += [f"copied: {SAID[kind]}/{party} {campaign}, {number:,}" for campaign, number in copied.items()]


def _sizes(directory: str) -> dict[str, int]:
    found = [*storage.list_tree(directory, f"*/*{SUFFIX}"), *storage.list_tree(directory, f"*/*{SUFFIX}{SIGNATURE}")]
    return {storage.relative(path, directory): size for path, size in found}


def _batches(directory: str, pattern: str) -> set[tuple[str, str]]:
    """Return campaign and name of each batch with a file of this pattern; a batch with a summary is complete."""
    pattern = f"*/*/{pattern}"
    depth = len(pattern.split("/"))
    found = (tuple(path.split("/")[-depth:][:2]) for path, _ in storage.list_tree(directory, pattern))
    return {(campaign, name) for campaign, name in found if Batch.named(campaign, name) is not None}


def _emptied(source: str, there: set[tuple[str, str]]) -> bool:
    """Return whether all batches of `source` were deleted: a deleted batch's campaign folder is still there.

    False for a remote store: it has no folders, so its prefix may also be wrong.
    """
    return not storage.is_remote(source) and any((Path(source) / campaign).is_dir() for campaign, _ in there)


@dataclass(frozen=True)
class _Made:
    """An output that is to be handed on.

    Attributes:
        path: path of the output's summary.
        files: directory of the output's files.
        summary: the summary itself.
    """

    path: str
    files: str
    summary: HopSummary


def _folders(hand: Hand, made: _Made) -> tuple[str, ...]:
    """Return the folders of a batch that are for a recipient; empty: nothing of the batch is, not even its summary."""
    if hand.output == "shuffled" and made.summary.dummies is not None:
        return FOLDERS["shuffled"] if hand.folder == "discovery" else ()
    return (hand.folder,)


def copy_output(made: _Made, folders: Sequence[str], target: str) -> None:
    """Copy folders and then the summary, which marks the copy as complete.

    If a batch lacks a stream, only the batch's summary is handed on, which tells the recipient that no reports will
    come. The files of an earlier try are deleted first, because they may differ from the output's files.
    """
    wanted = {folder: _wanted(made, folder) for folder in folders}
    for folder, files in wanted.items():
        _require_whole(made, folder, files)
    delete_copy(target)
    # The copy keeps the name of the run's folder, because the signature covers it.
    here, there = made.files, folder_of(target, made.summary)
    for folder, name, (_, digest) in ((folder, *file) for folder, files in wanted.items() for file in files.items()):
        path, copy = storage.join(here, folder, name), storage.join(there, folder, name)
        storage.copy(path, copy)
        if not storage.exists(copy) or _digest(copy) != (digest or _digest(path)):
            raise HushcountError(
                f"{copy} is not what {path} was when it was written: it was not handed on; restore the file"
            )
    if storage.exists(storage.join(here, _SUMMARY_SIGNATURE)):
        storage.copy(storage.join(here, _SUMMARY_SIGNATURE), storage.join(there, _SUMMARY_SIGNATURE))
    storage.copy(made.path, storage.join(target, SUMMARY))


def is_as_made(made: _Made, folders: Sequence[str], target: str) -> bool:
    """Return whether a copy is unchanged: its summary, its files' names and lengths, and the digests of newer files.

    The copy's summary was written last. So a file that is newer than the summary may have been changed, and only the
    digests of such files are compared.
    """
    if _bytes(made.path) != _bytes(storage.join(target, SUMMARY)):
        return False
    here, there = made.files, folder_of(target, made.summary)
    if _bytes(storage.join(here, _SUMMARY_SIGNATURE)) != _bytes(storage.join(there, _SUMMARY_SIGNATURE)):
        return False
    ((_, _, marked),) = storage.list_dated(target, SUMMARY)
    return all(_is_folder_as_made(made, folder, storage.join(there, folder), marked) for folder in folders)


def _is_folder_as_made(made: _Made, folder: str, beside: str, marked: float) -> bool:
    """Return whether a folder's copy is unchanged, whose summary was written at `marked`."""
    wanted = _wanted(made, folder)
    written = {path: moment for path, _, moment in storage.list_dated(beside, "*")}
    held = {path.rpartition("/")[2]: (path, size) for path, size in all_files(beside)}
    if {name: size for name, (_, size) in held.items()} != {name: size for name, (size, _) in wanted.items()}:
        return False
    newer = [name for name, (path, _) in held.items() if written.get(path, inf) > marked]
    return all(
        _digest(held[name][0]) == (wanted[name][1] or _digest(storage.join(made.files, folder, name))) for name in newer
    )


def _digest(path: str) -> str:
    return storage.digest_of(path)[1]


def _bytes(path: str) -> bytes | None:
    """Return the contents of a small file; None: it is missing, or longer than any file that Hushcount writes."""
    try:
        return storage.read_bytes(path) if storage.exists(path) else None
    except FormatError:
        return None


def _read(source: str) -> _Made:
    path = storage.join(source, SUMMARY)
    summary = read_summary(path)
    return _Made(path, folder_of(source, summary), summary)


def _wanted(made: _Made, folder: str) -> dict[str, tuple[int, str | None]]:
    """Return bytes and digest of each file that is to be handed on, by name.

    Names, bytes and digests are from the summary's list. If there is no list, names and bytes are those of the files,
    and the digest is None.
    """
    listed = (made.summary.files or {}).get(folder)
    if listed is not None:
        return {file.name: (file.bytes, file.digest) for file in listed}
    return {name: (size, None) for name, size in _held(made, folder).items()}


def _held(made: _Made, folder: str) -> dict[str, int]:
    listed = storage.list_files(storage.join(made.files, folder), block_files.SUFFIX)
    return {path.rpartition("/")[2]: size for path, size in listed}


def _require_whole(made: _Made, folder: str, wanted: dict[str, tuple[int, str | None]]) -> None:
    """Check that a batch has the records that its summary counts, in the files that the summary lists.

    Raises:
        HushcountError: records or files differ.
        UsageError: the summary does not count these records.
    """
    directory = storage.join(made.files, folder)
    records = _records(made.summary, folder, made.path)
    held = block_files.total_records(block_files.find_files(directory, _KINDS[folder]))
    if held != records:
        raise HushcountError(
            f"the files of {directory} hold {held} records, but the batch's summary says {records}: the batch was not "
            "handed on; restore the missing files, or delete the added ones"
        )
    if _held(made, folder) != {name: size for name, (size, _) in wanted.items()}:
        raise HushcountError(f"the files of {directory} differ from the list in {made.path}: restore them")


def _records(summary: HopSummary, folder: str, path: str) -> int:
    """Return how many records of a folder a summary counts; 0 if the batch has no such stream."""
    if folder != "bins":
        return summary.accepted_of(folder) + (summary.dummies or 0 if folder == "reports" else 0)
    if summary.released is None:
        raise UsageError(f"{path} does not say how many bins were released: restore it")
    return summary.released


def delete_copy(directory: str) -> None:
    """Delete a copy, even if the copy is incomplete."""
    # The summary is deleted first, so that no recipient reads a partly deleted batch as complete. Reports are deleted
    # last, so that the next call finds a batch that is partly deleted.
    for name in (SUMMARY, _SUMMARY_SIGNATURE):
        if storage.exists(storage.join(directory, name)):
            storage.remove(storage.join(directory, name))
    storage.remove_directory(directory)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except _FAILURES as error:
        sys.stderr.write(f"error: {cause(error)}\n")
        sys.exit(getattr(error, "exit_status", 1))
