"""List the dead letters of a job, which are the sealed reports that a hop did not pass on, and replay them once.

A replay first writes a file beside the letters, which claims them for the replay's output. If the letters are already
claimed for another output, the replay fails. So of two replays at the same time only one continues.
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
from hushcount.wire.blocks import Kind, read_header
from pipelines.files import storage
from pipelines.files.block_files import SUFFIX, find_files, read_records, write_file
from pipelines.outputs.counts import SEALED, StreamCounts
from pipelines.outputs.received_summary import folder_of
from pipelines.outputs.staging import SUMMARY, require_free, staged, write_summary
from pipelines.outputs.summary import HopSummary, make_summary

FOLDER = "dead_letter"
CURES: Mapping[Reason, str] = {
    "wrong_campaign": "made with another campaign file: replay the reports that were kept, with that file",
    "wrong_length": "not reports of this campaign: find out which clients send them",
    "not_opened": "sealed to another key, or altered: replay the reports that were kept, with the key they need",
    "malformed": "a field is out of its range: a client's bug, or an attack",
}
"""For each reason of a refusal, its cause and what an operator can do about it."""
_NAME = re.compile(r"(?P<reason>[a-z_]+)-(?P<length>[0-9]+)\.blocks")
_CLAIM = ".replayed.json"
_REPLAYED: tuple[Reason, ...] = ("wrong_campaign", "not_opened")


def kept_of(directory: str, streams: Mapping[Stream, StreamCounts]) -> dict[str, dict[str, dict[str, int]]]:
    """Return how many refused sealed reports a job kept, and how many it did not keep, by stream and reason."""
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
        campaign: fingerprint of the campaign file that the job used.
        not_kept: how many reports with this reason, of any length, are in no file. Reports that are in no file are
            counted, but cannot be replayed.
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
        UsageError: the directory is not a job's output, or a file is damaged.
    """
    path = storage.join(directory, SUMMARY)
    summary = validated(_Summary, storage.read_json(path), path, "is not the summary of a hop")
    found = []
    for stream in SEALED:
        for file in find_files(storage.join(folder_of(directory), FOLDER, stream), Kind.DEAD_LETTER):
            match = _NAME.fullmatch(file.path.rpartition("/")[2])
            reason = None if match is None else reason_of(match["reason"])
            if reason is None:
                raise UsageError(f"{file.path} is not a dead letter of a job: remove it")
            header, counts = file.header, summary.dead_letters.get(stream, {}).get(reason)
            lost, whose = 0 if counts is None else counts.not_kept, header.campaign.hex()
            found.append(
                DeadLetter(summary.hop, stream, reason, header.records, header.record_bytes, file.path, whose, lost)
            )
    return found


def replay(
    campaign_path: Path, directory: str, stream: Stream, reason: str, out: str, *, overwrite: bool = False
) -> HopSummary:
    """Write the kept reports of one reason as a shuffler's output, which analyze or discover can read.

    The output is a batch of its own, and the release of this batch is charged separately. However often the letters of
    one reason and one campaign file are replayed, only one batch is made of these letters.

    Args:
        campaign_path: the campaign file that the reports were made with.
        directory: output of the analyze or discover job that refused the reports.
        stream: reports or discovery.
        reason: wrong_campaign or not_opened.

    Raises:
        UsageError: no letter has this reason and the campaign's length, the shuffler wrote the letters, or the letters
            were replayed into another output.
        HushcountError: the letters are fewer than the minimum batch.
    """
    campaign = Campaign.read(campaign_path)
    if stream not in campaign.streams:
        raise UsageError(f"stream is {stream}, campaign {campaign.id} has {', '.join(campaign.streams)}")
    if campaign.stratum_bytes(stream):
        raise UsageError(f"campaign {campaign.id} has public axes: its dead letters do not tell their stratum any more")
    if stream == "reports" and campaign.noise is not None:
        raise UsageError(f"campaign {campaign.id} has noise: a batch without the mixes' dummies would show its reports")
    if reason not in _REPLAYED:
        raise UsageError(f"reason is {reason!r}, must be one of {', '.join(_REPLAYED)}: others cannot be cured")
    require_free(out, overwrite, ("shuffle",), (directory, campaign_path))
    all_letters = list_dead_letters(directory)
    if any(letter.hop == "shuffle" for letter in all_letters):
        raise UsageError(
            f"{directory} was written by hushcount job shuffle: its dead letters have no client token, so the cap "
            "cannot be enforced; shuffle the input again with the campaign file that its reports were made with"
        )
    length = campaign.sealed_bytes(stream)
    letters = [letter for letter in all_letters if (letter.stream, letter.reason) == (stream, reason)]
    fitting = [letter for letter in letters if letter.record_bytes == length]
    if not fitting:
        lengths = ", ".join(str(letter.record_bytes) for letter in letters) or "none"
        raise UsageError(
            f"{directory} holds no {stream} refused as {reason} with {length} bytes, the length in campaign "
            f"{campaign.id} (lengths there: {lengths}): give the campaign file that the reports were made with"
        )
    folder, paths = storage.join(folder_of(directory), FOLDER, stream), {letter.path for letter in fitting}
    records = b"".join(read_records(file) for file in find_files(folder, Kind.DEAD_LETTER) if file.path in paths)
    number = len(records) // length
    # `np.unique` also sorts the reports, so that their order does not reveal the order of arrival.
    distinct = np.unique(np.frombuffer(records, dtype=np.uint8).reshape(number, length), axis=0)
    kept = len(distinct)
    if not campaign.reaches_minimum(kept):
        raise HushcountError(
            f"{kept:,} dead letters are fewer than the minimum batch, {campaign.shuffle.minimum_batch:,}: nothing was "
            "replayed"
        )
    claim(folder, campaign.fingerprint, distinct.tobytes(), out)
    rejected = {"duplicate": number - kept} if kept < number else {}
    with staged(out, overwrite) as target:
        path = storage.join(target, stream, f"part-00000-of-00001{SUFFIX}")
        write_file(path, SEALED[stream], length, distinct.tobytes(), campaign.fingerprint, campaign.id)
        nothing = {other: StreamCounts(0, 0, {}) for other in campaign.streams}
        counts = nothing | {stream: StreamCounts(number, kept, rejected)}
        refused = storage.read_json(storage.join(directory, SUMMARY))
        # The reports passed the cap of the batch that refused them, and that cap may be larger than this campaign's
        # cap.
        senders = recapped(told_in(refused), refused.get("cap"), campaign.shuffle.cap)
        summary = make_summary("shuffle", campaign, counts, None, senders=senders)
        return write_summary(target, replace(summary, replayed=reason))


def claim(folder: str, fingerprint: bytes, letters: bytes, out: str) -> None:
    """Claim letters for a replay into `out`, and into no other output; a second claim for `out` changes nothing.

    Args:
        folder: folder of the letters.
        fingerprint: fingerprint of the replay's campaign file; a claim for one campaign file does not block a claim of
            the same letters for another.
        letters: all letters, distinct and sorted.
        out: the output directory.

    Raises:
        UsageError: the letters were claimed for another output, which the message names.
    """
    place = out.rstrip("/") if storage.is_remote(out) else str(Path(out).resolve())
    which = hashlib.blake2b(letters, key=fingerprint, digest_size=16, person=b"replayed").hexdigest()
    path = storage.join(folder, f"{which}{_CLAIM}")
    if storage.put_absent(path, storage.json_bytes(_Claim(out=place).model_dump())):
        return
    other = validated(_Claim, storage.read_json(path), path, "is not the claim of a replay").out
    if other == place:
        return
    raise UsageError(
        f"these dead letters were replayed into {other} and would be counted twice: use that output, or replay into it "
        "again with --overwrite"
    )
