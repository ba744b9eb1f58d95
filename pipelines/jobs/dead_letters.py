"""Dead letters, the sealed reports that a hop did not pass on: list them, and replay them once.

Who replays puts a claim beside the letters, unless there is one. So of two at once one continues.
"""

from __future__ import annotations

import hashlib
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
from pipelines.outputs.counts import SEALED, StreamCounts
from pipelines.outputs.received_summary import folder_of
from pipelines.outputs.staging import SUMMARY, require_free, staged, write_summary
from pipelines.outputs.summary import HopSummary, make_summary

FOLDER = "dead_letter"
CURES: Mapping[Reason, str] = {
    "wrong_campaign": "made under other parameters: replay those that were kept, with their own campaign file",
    "wrong_length": "no reports of this campaign: see which clients send them",
    "not_opened": "sealed to another key, or altered: replay those that were kept, with their own key",
    "malformed": "a field is out of its range: a client's bug, or an attack",
}
"""What happened to the reports of each reason, and what an operator can do."""
_NAME = re.compile(r"(?P<reason>[a-z_]+)-(?P<length>[0-9]+)\.blocks")
_CLAIM = ".replayed.json"
_REPLAYED: tuple[Reason, ...] = ("wrong_campaign", "not_opened")


def kept_of(directory: str, streams: Mapping[Stream, StreamCounts]) -> dict[str, dict[str, dict[str, int]]]:
    """Return how many of the sealed reports that a job counted it kept, and how many not, by stream and reason."""
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
    """One file of `records` sealed reports.

    Attributes:
        campaign: fingerprint of the campaign file of the job.
        not_kept: how many of the reason, of any length, are in no file: they are counted, and cannot be replayed.
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


class _Claim(Part):
    out: str


class _Summary(BaseModel):
    hop: str
    dead_letters: dict[Stream, dict[str, _Kept]] = {}


def list_dead_letters(directory: str) -> list[DeadLetter]:
    """Return the dead letters of a job's output.

    Raises:
        UsageError: it is no output of a job, or a file is damaged.
    """
    path = storage.join(directory, SUMMARY)
    summary = validated(_Summary, storage.read_json(path), path, "is no summary of a hop")
    found = []
    for stream in SEALED:
        for file in find_files(storage.join(folder_of(directory), FOLDER, stream), Kind.DEAD_LETTER):
            match = _NAME.fullmatch(file.path.rpartition("/")[2])
            reason = None if match is None else reason_of(match["reason"])
            if reason is None:
                raise UsageError(f"{file.path} is no dead letter that a job wrote: remove it")
            header, counts = file.header, summary.dead_letters.get(stream, {}).get(reason)
            lost, whose = 0 if counts is None else counts.not_kept, header.campaign.hex()
            found.append(
                DeadLetter(summary.hop, stream, reason, header.records, header.record_bytes, file.path, whose, lost)
            )
    return found


def replay(
    campaign_path: Path, directory: str, stream: Stream, reason: str, out: str, *, overwrite: bool = False
) -> HopSummary:
    """Make a shuffler's output of the kept reports of one reason, for analyze or discover to read.

    It is a batch of its own, and its release is charged as another one. The letters of one reason make one such batch
    with one campaign file, however often they are replayed.

    Args:
        campaign_path: the campaign file that they were made with.
        directory: output of the analyze or discover that refused them.
        stream: reports or discovery.
        reason: wrong_campaign or not_opened.

    Raises:
        UsageError: no letter has this reason and length, the shuffler wrote them, or another output has them already.
        HushcountError: they are fewer than the minimum batch.
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
            f"{directory} was written by hushcount job shuffle: its dead letters have no client token, so no cap could "
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
    folder, paths = storage.join(folder_of(directory), FOLDER, stream), {letter.path for letter in fitting}
    records = b"".join(_read(file) for file in find_files(folder, Kind.DEAD_LETTER) if file.path in paths)
    number = len(records) // length
    # Sorted, so that the order says nothing of how they arrived.
    distinct = np.unique(np.frombuffer(records, dtype=np.uint8).reshape(number, length), axis=0)
    kept = len(distinct)
    if not campaign.reaches_minimum(kept):
        raise HushcountError(
            f"{kept:,} dead letters are fewer than the minimum batch, {campaign.shuffle.minimum_batch:,}: they stay"
        )
    claim(folder, campaign.fingerprint, distinct.tobytes(), out)
    rejected = {"duplicate": number - kept} if kept < number else {}
    with staged(out, overwrite) as target:
        path = storage.join(target, stream, f"part-00000-of-00001{SUFFIX}")
        write_file(path, SEALED[stream], length, distinct.tobytes(), campaign.fingerprint, campaign.id)
        nothing = {other: StreamCounts(0, 0, {}) for other in campaign.streams}
        counts = nothing | {stream: StreamCounts(number, kept, rejected)}
        refused = storage.read_json(storage.join(directory, SUMMARY))
        # They passed the cap of the campaign that refused them, which may have been larger.
        senders = recapped(told_in(refused), refused.get("cap"), campaign.shuffle.cap)
        summary = make_summary("shuffle", campaign, counts, None, senders=senders)
        return write_summary(target, replace(summary, replayed=reason))


def _read(file: BlockFile) -> bytes:
    with storage.open_read(file.path) as stream:
        blocks = [read_block(stream, file.header, index) for index in range(file.header.blocks)]
    if None in blocks:
        raise UsageError(f"{file.path} is damaged: restore it")
    return b"".join(block for block in blocks if block is not None)


def claim(folder: str, fingerprint: bytes, letters: bytes, out: str) -> None:
    """Note that these letters are replayed into `out` and nowhere else; for the same output again, nothing changes.

    Args:
        folder: of the letters.
        fingerprint: of the campaign file of the replay; with another one they are other reports.
        letters: all of them, distinct and in order.
        out: the output directory.

    Raises:
        UsageError: they were replayed into another output, or another process is about to; it is named.
    """
    place = out.rstrip("/") if storage.is_remote(out) else str(Path(out).resolve())
    which = hashlib.blake2b(letters, key=fingerprint, digest_size=16, person=b"replayed").hexdigest()
    path = storage.join(folder, f"{which}{_CLAIM}")
    if storage.put_absent(path, storage.json_bytes(_Claim(out=place).model_dump())):
        return
    other = validated(_Claim, storage.read_json(path), path, "is no note of a replay").out
    if other == place:
        return
    raise UsageError(
        f"these dead letters were replayed into {other}, and would be counted twice: read that, or replay them into it "
        "again with --overwrite"
    )
