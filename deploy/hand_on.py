"""Hand on to a recipient its own folder of every batch, and nothing else: what a party writes stays with it.

    python -m hand_on --config deployment.toml --hand shuffled/discovery=gs://example-shuffler-to-aux-server/shuffled \
                      --hand shuffled/reports=gs://example-shuffler-to-analyzer/shuffled

The jobs of a recipient read the folder of their stream and the summary. The other stream's folder and the dead letters
lie beside these, and no mount and no bucket's policy can part them: so each recipient gets copies in a place of its
own. What was deleted where it was written is deleted there too. A copy or a deletion that did not come to its end is
done again by the next call, and so is a copy that is not as it was made. A batch whose files hold another number of
records than its summary says, or are not those that it lists, is not handed on.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path

from hushcount.errors import FormatError, HushcountError, UsageError
from hushcount.wire.blocks import Kind
from pipelines.deployment.settings import Deployment
from pipelines.files import storage
from pipelines.files.block_files import SUFFIX, find_files, total_records
from pipelines.files.storage_errors import cause, silent_clients
from pipelines.handover.file_list import all_files
from pipelines.handover.names import Batch
from pipelines.outputs.counts import SEALED
from pipelines.outputs.received_summary import folder_of, read_summary
from pipelines.outputs.staging import SUMMARY
from pipelines.outputs.summary import HopSummary

FOLDERS = {"shuffled": ("reports", "discovery"), "released": ("bins",)}
"""What of an output is for the next party; all else stays."""
_KINDS = {**SEALED, "bins": Kind.RELEASED}
_SIGNATURE = f"{SUMMARY}.sig"
_FAILURES = (HushcountError, OSError)


@dataclass(frozen=True)
class Hand:
    """One folder of every batch for one recipient.

    Attributes:
        output: folder of the store in which the batches lie.
        folder: of each batch; what is handed on with its summary.
        target: where the recipient finds the batches.
    """

    output: str
    folder: str
    target: str


@dataclass(frozen=True)
class _Made:
    """What is to be handed on.

    Attributes:
        path: of its summary.
        files: the directory in which its files lie.
        summary: as it was read.
    """

    path: str
    files: str
    summary: HopSummary


def main(arguments: Sequence[str]) -> None:
    """Hand on what is not there yet, once or again and again."""
    parser = argparse.ArgumentParser(prog="hand_on", description="Hand on to each recipient its own folder.")
    parser.add_argument("--config", type=Path, required=True, help="Deployment file of the party that hands on.")
    parser.add_argument("--hand", action="append", required=True, help="OUTPUT/FOLDER=WHERE; once for each recipient.")
    parser.add_argument("--every", type=float, help="Seconds between two looks; one look if not given.")
    parser.add_argument(
        "--looked", type=Path, help="File that each look without a problem makes anew: its age is told."
    )
    asked = parser.parse_args(arguments)
    hands = [_parsed(text) for text in asked.hand]
    stop = threading.Event()
    if asked.every is not None:
        signal.signal(signal.SIGTERM, lambda _number, _frame: stop.set())
    while True:
        try:
            done, problems = hand_on(Deployment.read(asked.config), hands)
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
            # A store that is away: the next look may find it.
            sys.stderr.write(f"error: {cause(error)}\n")
        if asked.every is None or stop.wait(asked.every):
            return


def _parsed(text: str) -> Hand:
    path, _, target = text.partition("=")
    output, _, folder = path.partition("/")
    if folder not in FOLDERS.get(output, ()) or not target:
        allowed = ", ".join(f"{output}/{folder}=WHERE" for output, folders in FOLDERS.items() for folder in folders)
        raise UsageError(f"option --hand is {text!r}, must be one of {allowed}")
    return Hand(output, folder, target)


def hand_on(deployment: Deployment, hands: Sequence[Hand]) -> tuple[list[str], list[str]]:
    """Copy what is not there yet, and delete what is gone from where it was written.

    Returns:
        A line for each thing that was done, and a sentence for each that failed, a place that cannot be listed among
        them; the next call goes on with these, also where this one was killed.

    Raises:
        UsageError: the outputs are not where this deployment has its store, or two hands have one place.
    """
    places = [hand.target.rstrip("/") for hand in hands]
    for place in places:
        if places.count(place) > 1:
            # The summary of the one would mark the other's copy as complete.
            raise UsageError(f"option --hand has {place} for {places.count(place)} folders: give each its own place")
    done: list[str] = []
    problems: list[str] = []
    for hand in hands:
        source = deployment.folder(hand.output)
        if not storage.is_remote(source) and not Path(source).is_dir():
            raise UsageError(
                f"{source} is no directory: nothing was handed on and nothing deleted; mount it, or make it"
            )
        try:
            made, there = _batches(source, SUMMARY), _batches(hand.target, SUMMARY)
            # Of copies and deletions that did not come to their end, too.
            held = there.union(*(_batches(hand.target, f"{run}{hand.folder}/*") for run in ("", "*/")))
        except _FAILURES as error:
            problems.append(f"{hand.output}/{hand.folder} was not handed on to {hand.target}: {cause(error)}")
            continue
        if held and not made and not _emptied(source, held):
            problems.append(
                f"{source} holds no batch, and {hand.target} copies of {len(held)}: none was deleted; mount what is "
                "to be there, or correct its path; if all of it was to be deleted, delete the copies too"
            )
            continue
        for batch in sorted(made | held):
            name, target = f"{'/'.join(batch)} {hand.folder}", storage.join(hand.target, *batch)
            try:
                with silent_clients():
                    if batch not in made:
                        _delete(target)
                        done.append(f"deleted: {name}")
                    elif batch not in there or not _is_as_made(storage.join(source, *batch), hand.folder, target):
                        _copy(storage.join(source, *batch), hand.folder, target)
                        done.append(f"handed on{' again' if batch in there else ''}: {name}")
            except _FAILURES as error:
                # The others go on.
                problems.append(f"{name}: {cause(error)}")
    return done, problems


def _batches(directory: str, pattern: str) -> set[tuple[str, str]]:
    """Return campaign and name of the batches that have a file of this pattern; by its summary one is complete."""
    pattern = f"*/*/{pattern}"
    depth = len(pattern.split("/"))
    found = (tuple(path.split("/")[-depth:][:2]) for path, _ in storage.list_tree(directory, pattern))
    return {(campaign, name) for campaign, name in found if Batch.named(campaign, name) is not None}


def _emptied(source: str, there: set[tuple[str, str]]) -> bool:
    """Return whether a directory without batches is the right one: what deletes a batch leaves its campaign's folder.

    A store has no folders: its prefix may as well be wrong.
    """
    return not storage.is_remote(source) and any((Path(source) / campaign).is_dir() for campaign, _ in there)


def _copy(source: str, folder: str, target: str) -> None:
    """Copy a folder and then the summary, which marks the copy as complete.

    A batch that does not have the stream is handed on as its summary alone: it says that there is nothing to wait for.
    What an earlier try left is deleted first: it may have had other files.
    """
    made = _read(source)
    wanted = _wanted(made, folder)
    _require_whole(made, folder, wanted)
    _delete(target)
    # The copy has the folder of a run too: it is in what was signed.
    here, there = made.files, folder_of(target, made.summary)
    for name, (_, digest) in wanted.items():
        path, copy = storage.join(here, folder, name), storage.join(there, folder, name)
        storage.copy(path, copy)
        if not storage.exists(copy) or _digest(copy) != (digest or _digest(path)):
            raise HushcountError(f"{copy} is not what {path} was when it was written: it was not handed on; restore it")
    if storage.exists(storage.join(here, _SIGNATURE)):
        storage.copy(storage.join(here, _SIGNATURE), storage.join(there, _SIGNATURE))
    storage.copy(made.path, storage.join(target, SUMMARY))


def _is_as_made(source: str, folder: str, target: str) -> bool:
    """Return whether a copy is what was handed on: its summary, names and lengths, and what was changed since.

    The summary was written last: a file that is newer than it was written by somebody else, and is read.
    """
    if _bytes(storage.join(source, SUMMARY)) != _bytes(storage.join(target, SUMMARY)):
        return False
    made = _read(source)
    here, there = made.files, folder_of(target, made.summary)
    if _bytes(storage.join(here, _SIGNATURE)) != _bytes(storage.join(there, _SIGNATURE)):
        return False
    wanted, beside = _wanted(made, folder), storage.join(there, folder)
    ((_, _, marked),) = storage.list_dated(target, SUMMARY)
    written = {path: moment for path, _, moment in storage.list_dated(beside, "*")}
    held = {path.rpartition("/")[2]: (path, size) for path, size in all_files(beside)}
    if {name: size for name, (_, size) in held.items()} != {name: size for name, (size, _) in wanted.items()}:
        return False
    newer = [name for name, (path, _) in held.items() if written.get(path, inf) > marked]
    return all(
        _digest(held[name][0]) == (wanted[name][1] or _digest(storage.join(here, folder, name))) for name in newer
    )


def _digest(path: str) -> str:
    return storage.digest_of(path)[1]


def _bytes(path: str) -> bytes | None:
    """Return what is in a small file, or None: it is missing, or nobody of ours wrote one of that length."""
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

    As the summary lists them; where it lists none, as they are, without a digest.
    """
    listed = (made.summary.files or {}).get(folder)
    if listed is not None:
        return {file.name: (file.bytes, file.digest) for file in listed}
    return {name: (size, None) for name, size in _held(made, folder).items()}


def _held(made: _Made, folder: str) -> dict[str, int]:
    listed = storage.list_files(storage.join(made.files, folder), SUFFIX)
    return {path.rpartition("/")[2]: size for path, size in listed}


def _require_whole(made: _Made, folder: str, wanted: dict[str, tuple[int, str | None]]) -> None:
    """Check that a batch has the records that its summary counts, in the files that it lists.

    Raises:
        HushcountError: it has not.
        UsageError: the summary counts no such thing.
    """
    directory = storage.join(made.files, folder)
    records = _records(made.summary, folder, made.path)
    held = total_records(find_files(directory, _KINDS[folder]))
    if held != records:
        raise HushcountError(
            f"the files of {directory} hold {held} records, the batch's summary says {records}: it was not handed on; "
            "restore what is missing, or delete what was added"
        )
    if _held(made, folder) != {name: size for name, (size, _) in wanted.items()}:
        raise HushcountError(f"the files of {directory} are not those that {made.path} lists: restore them")


def _records(summary: HopSummary, folder: str, path: str) -> int:
    """Return how many records of a folder a summary counts; 0 if the batch has no such stream."""
    if folder != "bins":
        return summary.accepted_of(folder)
    if summary.released is None:
        raise UsageError(f"{path} does not say how many bins were released: restore it")
    return summary.released


def _delete(directory: str) -> None:
    # Its mark first: nobody must find half of a batch. The reports last: by them the next call finds what is left.
    for name in (SUMMARY, _SIGNATURE):
        if storage.exists(storage.join(directory, name)):
            storage.remove(storage.join(directory, name))
    storage.remove_directory(directory)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except _FAILURES as error:
        sys.stderr.write(f"error: {cause(error)}\n")
        sys.exit(getattr(error, "exit_status", 1))
