"""Hand on to a recipient its own folder of every batch, and nothing else: what a party writes stays with it.

    python -m hand_on --config deployment.toml --hand shuffled/discovery=gs://example-shuffler-to-aux-server/shuffled \
                      --hand shuffled/reports=gs://example-shuffler-to-analyzer/shuffled

The jobs of a recipient read the folder of their stream and the summary. The other stream's folder and the dead letters
lie beside these, and no mount and no bucket's policy can part them: so each recipient gets copies in a place of its
own. What was deleted where it was written is deleted there too. A copy or a deletion that did not come to its end is
done again by the next call. A batch whose files hold another number of records than its summary says is not handed on.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hushcount.blocks import Kind
from hushcount.errors import HushcountError, UsageError
from pipelines import storage
from pipelines.batches import Batch
from pipelines.block_io import SUFFIX, find_files, total_records
from pipelines.deployment import Deployment
from pipelines.staging import SUMMARY
from pipelines.store_errors import cause, silent_clients
from pipelines.streams import SEALED

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


def main(arguments: Sequence[str]) -> None:
    """Hand on what is not there yet, once or again and again."""
    parser = argparse.ArgumentParser(prog="hand_on", description="Hand on to each recipient its own folder.")
    parser.add_argument("--config", type=Path, required=True, help="Deployment file of the party that hands on.")
    parser.add_argument("--hand", action="append", required=True, help="OUTPUT/FOLDER=WHERE; once for each recipient.")
    parser.add_argument("--every", type=float, help="Seconds between two looks; one look if not given.")
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
            held = there | _batches(hand.target, f"{hand.folder}/*")
        except _FAILURES as error:
            problems.append(f"{hand.output}/{hand.folder} was not handed on to {hand.target}: {cause(error)}")
            continue
        if held and not made and not _emptied(source, held):
            problems.append(
                f"{source} holds no batch, and {hand.target} copies of {len(held)}: none was deleted; mount what is "
                "to be there, or correct its path; if all of it was to be deleted, delete the copies too"
            )
            continue
        for batch in sorted((made - there) | (held - made)):
            name, target = f"{'/'.join(batch)} {hand.folder}", storage.join(hand.target, *batch)
            try:
                with silent_clients():
                    if batch not in made:
                        _delete(target)
                        done.append(f"deleted: {name}")
                    else:
                        _copy(storage.join(source, *batch), hand.folder, target)
                        done.append(f"handed on: {name}")
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
    summary = storage.join(source, SUMMARY)
    records = _records(summary, folder)
    storage.remove_directory(storage.join(target, folder))
    if records is not None:
        _require_whole(storage.join(source, folder), folder, records)
        for path, _ in storage.list_files(storage.join(source, folder), SUFFIX):
            storage.copy(path, storage.join(target, folder, path.rpartition("/")[2]))
        _require_whole(storage.join(target, folder), folder, records)
    if storage.exists(storage.join(source, _SIGNATURE)):
        storage.copy(storage.join(source, _SIGNATURE), storage.join(target, _SIGNATURE))
    storage.copy(summary, storage.join(target, SUMMARY))


def _records(path: str, folder: str) -> int | None:
    """Return how many records of a folder a summary promises; None if the batch has no such stream."""
    summary = storage.read_json(path)
    if folder == "bins":
        number = summary.get("released")
    else:
        streams = summary.get("streams")
        if isinstance(streams, dict) and folder not in streams:
            return None
        counts = streams[folder] if isinstance(streams, dict) else None
        number = counts.get("accepted") if isinstance(counts, dict) else None
    if not isinstance(number, int):
        raise UsageError(f"{path} does not say how many records {folder} holds: restore it")
    return number


def _require_whole(directory: str, folder: str, records: int) -> None:
    held = total_records(find_files(directory, _KINDS[folder]))
    if held != records:
        raise HushcountError(
            f"the files of {directory} hold {held} records, the batch's summary says {records}: it was not handed on; "
            "restore what is missing, or delete what was added"
        )


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
