"""Hand on to a recipient its own folder of every batch, and nothing else: what a party writes stays with it.

    python -m hand_on --config deployment.toml --hand shuffled/discovery=gs://example-shuffler-to-aux-server/shuffled \
                      --hand shuffled/reports=gs://example-shuffler-to-analyzer/shuffled \
                      --hand stated=gs://example-shuffler-to-aux-server/stated \
                      --hand stated=gs://example-shuffler-to-analyzer/stated \
                      --fetch receipts/aux-server=gs://example-aux-server-receipts/receipts/aux-server \
                      --fetch receipts/analyzer=gs://example-analyzer-receipts/receipts/analyzer

The jobs of a recipient read the folder of their stream and the summary. The other stream's folder and the dead letters
lie beside these, and no mount and no bucket's policy can part them: so each recipient gets copies in a place of its
own. What was deleted where it was written is deleted there too. A copy or a deletion that did not come to its end is
done again by the next call, and so is a copy that is not as it was made. A batch whose files hold another number of
records than its summary says, or are not those that it lists, is not handed on.

A recipient reads an output once it has the statement that names it: `stated` hands on what the parties here state, into
WHERE/PARTY. It leaves receipts in a place of its own, from which `--fetch` copies them into the store here: retention
waits for these. Both stay when the outputs are deleted.
"""

from __future__ import annotations

import argparse
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

FOLDERS = {"shuffled": ("reports", "discovery"), "released": ("bins",)}
"""What of an output is for the next party; all else stays."""
STATED = SAID["statement"]
_KINDS = {"reports": SEALED["reports"], "discovery": SEALED["discovery"], "bins": blocks.Kind.RELEASED}
_SUMMARY_SIGNATURE = f"{SUMMARY}.sig"
_FAILURES = (HushcountError, OSError)


@dataclass(frozen=True)
class Hand:
    """One folder of every batch for one recipient, or what is stated.

    Attributes:
        output: folder of the store in which the batches lie, or `stated`.
        folder: of each batch; what is handed on with its summary. Empty: statements are.
        target: where the recipient finds the batches, or the folder of each party's statements.
    """

    output: str
    folder: str
    target: str


@dataclass(frozen=True)
class Fetch:
    """What a party elsewhere says: statements or receipts, which it leaves in `source`."""

    kind: Kind
    party: Party
    source: str


def main(arguments: Sequence[str]) -> None:
    """Hand on what is not there yet, once or again and again."""
    parser = argparse.ArgumentParser(prog="hand_on", description="Hand on to each recipient its own folder.")
    parser.add_argument("--config", type=Path, required=True, help="Deployment file of the party that hands on.")
    parser.add_argument(
        "--hand", action="append", default=[], help="OUTPUT/FOLDER=WHERE, or stated=WHERE; once for each recipient."
    )
    parser.add_argument(
        "--fetch", action="append", default=[], help="receipts/PARTY=FROM, or stated/PARTY=FROM; once for each party."
    )
    parser.add_argument("--every", type=float, help="Seconds between two looks; one look if not given.")
    parser.add_argument(
        "--looked", type=Path, help="File that each look without a problem makes anew: its age is told."
    )
    asked = parser.parse_args(arguments)
    hands, fetches = [_parsed(text) for text in asked.hand], [_fetch(text) for text in asked.fetch]
    if not hands and not fetches:
        raise UsageError("neither --hand nor --fetch is given: there is nothing to do")
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
            # A store that is away: the next look may find it.
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
    """Copy what is not there yet, fetch what others say, and delete what is gone from where it was written.

    Returns:
        A line for each thing that was done, and a sentence for each that failed, a place that cannot be listed among
        them; the next call goes on with these, also where this one was killed.

    Raises:
        UsageError: the outputs are not where this deployment has its store, two hands have one place, or what is to be
            fetched is said by a party that runs here.
    """
    for fetch in fetches:
        if fetch.party in deployment.file.parties:
            raise UsageError(
                f"option --fetch names {fetch.party}, whose own folder is here: what it says is not fetched"
            )
    places = [hand.target.rstrip("/") for hand in hands]
    for place in places:
        if places.count(place) > 1:
            # The summary of the one would mark the other's copy as complete.
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
                f"{source} is no directory: nothing was handed on and nothing deleted; mount it, or make it"
            )
        _hand_outputs(hand, source, done, problems)
    return done, problems


def _hand_outputs(hand: Hand, source: str, done: list[str], problems: list[str]) -> None:
    try:
        made, there = _batches(source, SUMMARY), _batches(hand.target, SUMMARY)
        # Of copies and deletions that did not come to their end, too.
        held = there.union(*(_batches(hand.target, f"{run}{hand.folder}/*") for run in ("", "*/")))
    except _FAILURES as error:
        problems.append(f"{hand.output}/{hand.folder} was not handed on to {hand.target}: {cause(error)}")
        return
    if held and not made and not _emptied(source, held):
        problems.append(
            f"{source} holds no batch, and {hand.target} copies of {len(held)}: none was deleted; mount what is "
            "to be there, or correct its path; if all of it was to be deleted, delete the copies too"
        )
        return
    for batch in sorted(made | held):
        name, target = f"{'/'.join(batch)} {hand.folder}", storage.join(hand.target, *batch)
        try:
            with silent_clients():
                if batch not in made:
                    delete_copy(target)
                    done.append(f"deleted: {name}")
                elif batch not in there or not is_as_made(storage.join(source, *batch), hand.folder, target):
                    copy_output(storage.join(source, *batch), hand.folder, target)
                    done.append(f"handed on{' again' if batch in there else ''}: {name}")
        except _FAILURES as error:
            # The others go on.
            problems.append(f"{name}: {cause(error)}")


def _carry(kind: Kind, party: Party, source: str, target: str, done: list[str], problems: list[str]) -> None:
    """Copy a party's statements that are not there yet, each after its signature. None is ever deleted: they are small.

    Args:
        source, target: each has a folder for each campaign.
        done: gets a line for each campaign with new ones.
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
                said = parse_model(Statement, data, path, f"is no {kind} of a party")
                if (said.kind, said.party, said.campaign, said.name) != (kind, party, campaign, name):
                    raise FormatError(f"{path} is another {kind} than its place says")
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


def copy_output(source: str, folder: str, target: str) -> None:
    """Copy a folder and then the summary, which marks the copy as complete.

    A batch that does not have the stream is handed on as its summary alone: it says that there is nothing to wait for.
    What an earlier try left is deleted first: it may have had other files.
    """
    made = _read(source)
    wanted = _wanted(made, folder)
    _require_whole(made, folder, wanted)
    delete_copy(target)
    # The copy has the folder of a run too: it is in what was signed.
    here, there = made.files, folder_of(target, made.summary)
    for name, (_, digest) in wanted.items():
        path, copy = storage.join(here, folder, name), storage.join(there, folder, name)
        storage.copy(path, copy)
        if not storage.exists(copy) or _digest(copy) != (digest or _digest(path)):
            raise HushcountError(f"{copy} is not what {path} was when it was written: it was not handed on; restore it")
    if storage.exists(storage.join(here, _SUMMARY_SIGNATURE)):
        storage.copy(storage.join(here, _SUMMARY_SIGNATURE), storage.join(there, _SUMMARY_SIGNATURE))
    storage.copy(made.path, storage.join(target, SUMMARY))


def is_as_made(source: str, folder: str, target: str) -> bool:
    """Return whether a copy is what was handed on: its summary, names and lengths, and what was changed since.

    The summary was written last: a file that is newer than it was written by somebody else, and is read.
    """
    if _bytes(storage.join(source, SUMMARY)) != _bytes(storage.join(target, SUMMARY)):
        return False
    made = _read(source)
    here, there = made.files, folder_of(target, made.summary)
    if _bytes(storage.join(here, _SUMMARY_SIGNATURE)) != _bytes(storage.join(there, _SUMMARY_SIGNATURE)):
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
    listed = storage.list_files(storage.join(made.files, folder), block_files.SUFFIX)
    return {path.rpartition("/")[2]: size for path, size in listed}


def _require_whole(made: _Made, folder: str, wanted: dict[str, tuple[int, str | None]]) -> None:
    """Check that a batch has the records that its summary counts, in the files that it lists.

    Raises:
        HushcountError: it has not.
        UsageError: the summary counts no such thing.
    """
    directory = storage.join(made.files, folder)
    records = _records(made.summary, folder, made.path)
    held = block_files.total_records(block_files.find_files(directory, _KINDS[folder]))
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


def delete_copy(directory: str) -> None:
    """Delete a copy, also half of one."""
    # Its mark first: nobody must find half of a batch. The reports last: by them the next call finds what is left.
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
