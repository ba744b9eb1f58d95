"""Dead letters: the sealed reports that a hop did not pass on. List them, look at why, and give them another chance."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from pydantic import BaseModel

from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.errors import HushcountError, UsageError
from hushcount.formats.models import Part
from hushcount.formats.reading import validated
from hushcount.reasons import Reason, reason_of
from hushcount.senders import recapped, told_in
from hushcount.wire.blocks import Kind, read_block, read_header
from pipelines.files import storage
from pipelines.files.block_files import SUFFIX, BlockFile, find_files, write_file
from pipelines.jobs.replayed import claim
from pipelines.outputs.counts import StreamCounts
from pipelines.outputs.folders import folder_of
from pipelines.outputs.labels import SEALED
from pipelines.outputs.staging import SUMMARY, require_free, staged, write_summary
from pipelines.outputs.summary import HopSummary, make_summary

FOLDER = "dead_letter"
CURES: Mapping[Reason, str] = {
    "wrong_campaign": "made under other parameters: replay those that were kept, with their own campaign file",
    "wrong_length": "no reports of this campaign: see which clients send them",
    "not_opened": "sealed to another key, or altered: replay those that were kept, with their own key",
    "malformed": "a field is out of its range: a client's bug, or an attack",
}
"""What became of the reports of each reason, and what can be done; a file holds only what was kept of them."""
_NAME = re.compile(r"(?P<reason>[a-z_]+)-(?P<length>[0-9]+)\.blocks")
_REPLAYED: tuple[Reason, ...] = ("wrong_campaign", "not_opened")
_STREAMS: tuple[Stream, ...] = ("reports", "discovery")


def kept_of(directory: str, streams: Mapping[Stream, StreamCounts]) -> dict[str, dict[str, dict[str, int]]]:
    """Return how many sealed reports a job kept, and how many it did not, by stream and reason, for its summary.

    Args:
        directory: where it wrote.
        streams: what it counted.
    """
    found: dict[str, dict[str, dict[str, int]]] = {}
    for stream, counts in streams.items():
        kept: dict[str, int] = {}
        for path, _ in storage.list_files(storage.join(directory, FOLDER, stream), SUFFIX):
            match = _NAME.fullmatch(path.rpartition("/")[2])
            if match is not None:
                with storage.open_read(path) as file:
                    kept[match["reason"]] = kept.get(match["reason"], 0) + read_header(file, path).records
        found[stream] = {
            reason: {"kept": kept.get(reason, 0), "not_kept": number - kept.get(reason, 0)}
            for reason, number in counts.rejected.items()
            if reason in CURES
        }
    return found


@dataclass(frozen=True)
class DeadLetter:
    """One file of sealed reports that were not passed on.

    Attributes:
        hop: who did not.
        stream: reports or discovery.
        reason: why.
        records: how many.
        record_bytes: length of each.
        path: of the file.
        campaign: fingerprint of the campaign file of the job.
        not_kept: how many of the reason, of any length, no file holds: they are counted, and cannot be replayed.
    """

    hop: str
    stream: Stream
    reason: Reason
    records: int
    record_bytes: int
    path: str
    campaign: str
    not_kept: int


class _Kept(Part):
    kept: int
    not_kept: int


class _Summary(BaseModel):
    """Of a hop's summary, what `kept_of` said; the rest is not needed."""

    hop: str
    dead_letters: dict[Stream, dict[str, _Kept]] = {}


def list_dead_letters(directory: str) -> list[DeadLetter]:
    """Return the dead letters of a job's output.

    Raises:
        UsageError: it is no output of a job, or a file is damaged.
    """
    path = storage.join(directory, SUMMARY)
    told = validated(_Summary, storage.read_json(path), path, "is no summary of a hop")
    found = []
    for stream in _STREAMS:
        for file in find_files(storage.join(folder_of(directory), FOLDER, stream), Kind.DEAD_LETTER):
            match = _NAME.fullmatch(file.path.rpartition("/")[2])
            reason = None if match is None else reason_of(match["reason"])
            if reason is None:
                raise UsageError(f"{file.path} is no dead letter that a job wrote: remove it")
            header = file.header
            counts = told.dead_letters.get(stream, {}).get(reason)
            found.append(
                DeadLetter(
                    hop=told.hop,
                    stream=stream,
                    reason=reason,
                    records=header.records,
                    record_bytes=header.record_bytes,
                    path=file.path,
                    campaign=header.campaign.hex(),
                    not_kept=0 if counts is None else counts.not_kept,
                )
            )
    return found


def replay(
    campaign_path: Path, directory: str, stream: Stream, reason: str, out: str, *, overwrite: bool = False
) -> HopSummary:
    """Make of what was kept of one reason what the shuffler would hand on, for analyze or discover to read.

    They are a batch of their own: what is released from it is another release, and charged as one. The letters of one
    reason make one such batch, with one campaign file, however often they are replayed.

    Args:
        campaign_path: the campaign file that they were made with.
        directory: output of the analyze or discover that refused them.
        stream: reports or discovery.
        reason: wrong_campaign or not_opened.
        out: output directory.
        overwrite: whether a result there may be replaced.

    Raises:
        UsageError: there are none of this reason, they are of another length, they are the shuffler's, or they were
            replayed into another output.
        HushcountError: they are fewer than the minimum batch, which holds for them too.
    """
    campaign = Campaign.read(campaign_path)
    if stream not in campaign.streams:
        raise UsageError(f"stream is {stream}, campaign {campaign.id} has {', '.join(campaign.streams)}")
    if reason not in _REPLAYED:
        raise UsageError(f"reason is {reason!r}, must be one of {', '.join(_REPLAYED)}: others cannot be cured")
    require_free(out, overwrite, ("shuffle",), (directory, campaign_path))
    all_letters = list_dead_letters(directory)
    if any(letter.hop == "shuffle" for letter in all_letters):
        raise UsageError(
            f"{directory} was written by hushcount shuffle: its dead letters have no client token, so no cap could "
            "hold; shuffle their input again with the campaign file that it was made with"
        )
    length = campaign.sealed_bytes(stream)
    letters = [letter for letter in all_letters if (letter.stream, letter.reason) == (stream, reason)]
    fitting = [letter for letter in letters if letter.record_bytes == length]
    if not fitting:
        lengths = ", ".join(str(letter.record_bytes) for letter in letters) or "none"
        raise UsageError(
            f"{directory} holds no {stream} refused as {reason} of {length} bytes, as campaign {campaign.id} has them "
            f"(lengths: {lengths})"
        )
    records = b"".join(_read(file) for letter in fitting for file in _files(directory, letter))
    number = len(records) // length
    # Sorted: their order says nothing of how they came.
    distinct = np.unique(np.frombuffer(records, dtype=np.uint8).reshape(number, length), axis=0)
    kept = len(distinct)
    if kept < campaign.shuffle.minimum_batch:
        raise HushcountError(
            f"{kept:,} dead letters are fewer than the minimum batch, {campaign.shuffle.minimum_batch:,}: they stay"
        )
    claim(storage.join(folder_of(directory), FOLDER, stream), campaign.fingerprint, distinct.tobytes(), out)
    rejected = {"duplicate": number - kept} if kept < number else {}
    with staged(out, overwrite) as target:
        path = storage.join(target, stream, f"part-00000-of-00001{SUFFIX}")
        write_file(path, SEALED[stream], length, distinct.tobytes(), campaign.fingerprint, campaign.id)
        counts = {stream: StreamCounts(number, kept, rejected)}
        for other in campaign.streams:
            counts.setdefault(other, StreamCounts(0, 0, {}))
        refused = storage.read_json(storage.join(directory, SUMMARY))
        # They came through under the cap of the campaign that refused them, which may have been larger.
        senders = recapped(told_in(refused), refused.get("cap"), campaign.shuffle.cap)
        summary = make_summary("shuffle", campaign, counts, None, senders=senders)
        return write_summary(target, replace(summary, replayed=reason))


def _files(directory: str, letter: DeadLetter) -> list[BlockFile]:
    files = find_files(storage.join(folder_of(directory), FOLDER, letter.stream), Kind.DEAD_LETTER)
    return [file for file in files if file.path == letter.path]


def _read(file: BlockFile) -> bytes:
    with storage.open_read(file.path) as stream:
        blocks = [read_block(stream, file.header, index) for index in range(file.header.blocks)]
    if None in blocks:
        raise UsageError(f"{file.path} is damaged: restore it")
    return b"".join(block for block in blocks if block is not None)
