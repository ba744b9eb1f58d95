"""hushcount job shuffle: turn envelopes into permuted sealed reports; write nothing if the batch is too small."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import apache_beam as beam
from apache_beam.pvalue import PCollection

from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.collection.envelopes import ENVELOPES, envelope_dtype, sealed_offset
from hushcount.collection.windows import window_start
from hushcount.draws import Draw
from hushcount.errors import HushcountError, NotYet, UsageError
from hushcount.reasons import DUMMIES
from hushcount.senders import Senders
from pipelines.engine.group_through_files import GroupThroughFiles
from pipelines.files import storage
from pipelines.files.block_files import BlockFile, find_files, read_records, total_records, write_file
from pipelines.files.blocks import WriteShards
from pipelines.files.orders import MOST_TOGETHER
from pipelines.handover.batch_file import BatchFile, batch_files, collected, released_files
from pipelines.handover.upstream import check_complete, read_upstream, senders_of
from pipelines.jobs.dead_letters import FOLDER as DEAD_LETTERS
from pipelines.jobs.dead_letters import kept_of
from pipelines.jobs.dummies import MixDraw, add_dummies, form_of, noise_context
from pipelines.jobs.job import Finished, Place
from pipelines.jobs.together import BatchJob, Lost, Steps, Where
from pipelines.ledger.charging import Charging
from pipelines.ledger.draws import manifest_of
from pipelines.outputs.counting import require_read_once
from pipelines.outputs.counts import SEALED, counts_of
from pipelines.outputs.dead_letter_files import Dead, WriteDeadLetter, of_stream
from pipelines.outputs.received_summary import folder_of
from pipelines.outputs.staging import BY_HAND, SUMMARY, Output, Writer, require_free
from pipelines.outputs.summary import Atom, HopSummary, make_summary
from pipelines.outputs.withheld import enough
from shuffler.atoms import in_atoms, partition
from shuffler.mix import IN_STRATUM, LOST_TO
from shuffler.separate import Report
from shuffler.shuffle import Shuffle

if TYPE_CHECKING:
    from keys.directories import KeyReference

_SHARD_RECORDS = 1 << 17
Files = dict[Stream, list[BlockFile]]
_Input = tuple[Files, Files, HopSummary | None]
"""The input files by stream, the files that earlier batches released by stream, and the summary of the hop before."""


@dataclass(frozen=True, kw_only=True)
class ShuffleSteps(Steps):
    """Shuffle each stream by itself, without copies of reports that earlier batches released."""

    mix: MixDraw | None = None

    @property
    def follows_from(self) -> tuple[bytes, ...]:
        # A batch with noise has a graph of its own.
        return () if self.mix is None else (self.mix.draw.context,)

    @property
    def inputs(self) -> tuple[str, ...]:
        return (*self.campaign.streams, *map(_released, self.campaign.streams))

    def add(self, files: Mapping[str, PCollection], where: Where) -> PCollection:
        campaign = self.campaign
        counts, dead, shards = list[PCollection](), list[PCollection](), dict[Stream, PCollection]()
        numbers: dict[Stream, int] = {}
        for stream in (one for one in campaign.streams if one in files):
            length, again = campaign.sealed_bytes(stream), _released(stream)
            read = files[stream] | f"read {stream}" >> where.read(
                campaign, envelope_dtype(length).itemsize, sealed_offset(length)
            )
            mix = self.mix if stream == "reports" else None
            report, grouping = report_of(campaign, stream, mix), GroupThroughFiles(where.spill)
            blocks = {"envelopes": read["blocks"]}
            if again in files:
                before = files[again] | f"read {again}" >> where.read(campaign, report.kept_bytes)
                blocks["released"] = before["blocks"]
                counts.append(where.counted(before["counts"], again))
            if mix is not None:
                blocks["dummies"] = add_dummies(files[stream].pipeline, form_of(campaign, mix.begins), mix.draw)
            numbers[stream] = where.places_of(_SHARD_RECORDS, stream, again)
            mixed = blocks | f"shuffle {stream}" >> Shuffle(
                report,
                campaign.shuffle.cap,
                numbers[stream],
                grouping,
                where.meets,
                None if mix is None else mix.words,
            )
            shards[stream] = mixed["shards"]
            both = (read["counts"], mixed["counts"]) | f"counts of {stream}" >> beam.Flatten()
            counts += [where.counted(both, stream), where.labelled(mixed["mixed"], stream)]
            dead.append(
                read["dead"] | f"stream of dead {stream}" >> beam.Map(of_stream, stream).with_output_types(Dead)
            )
        summed, written = counts | "all counts" >> beam.Flatten(), list[PCollection]()
        for (stream, found), part in zip(shards.items(), dead, strict=True):
            allowed = enough(summed, stream, campaign) if where.open else None
            letter = part | f"dead letter {stream}" >> WriteDeadLetter(where.folder(), campaign, allowed)
            kept = found | f"write {stream}" >> WriteShards(
                where.folder(stream),
                SEALED[stream],
                campaign,
                report_of(campaign, stream, self.mix).kept_bytes,
                numbers[stream],
                allowed,
            )
            written += where.written(letter, f"dead {stream}"), where.written(kept, stream)
        return [summed, *written] | "all that is known" >> beam.Flatten()


@dataclass(frozen=True, kw_only=True)
class ShuffleJob(BatchJob):
    """Shuffle each stream by itself, without copies of reports that earlier batches released.

    If one stream is below the minimum batch, the other is still shuffled: the small stream is left out, and counted in
    `left_out`.
    """

    name: ClassVar[str] = "shuffle"
    files: Files
    released: Files
    upstream: HopSummary | None
    senders: Senders

    @property
    def inputs(self) -> Mapping[str, list[BlockFile]]:
        return dict(self.files) | {_released(stream): found for stream, found in self.released.items()}

    @property
    def records(self) -> int:
        return sum(total_records(found) for found in self.files.values())

    def after(self, jobs: Sequence[BatchJob]) -> BatchJob:
        # Only one job of a graph reads each file of earlier batches, because the graph compares this file with all the
        # graph's batches.
        read = {file.path for job in jobs for files in job.inputs.values() for file in files}
        left = {stream: [one for one in files if one.path not in read] for stream, files in self.released.items()}
        return replace(self, released=left)

    def lost(self, sums: Mapping[str, int]) -> Lost:
        return frozenset(
            (stream, int(name.removeprefix(start)) % MOST_TOGETHER)
            for stream in self.files
            for name in sums
            if name.startswith(start := f"{stream}:{LOST_TO}")
        )

    def finish(self, place: Place, sums: Mapping[str, int], charge: Charging) -> Finished:
        directory, campaign = place.directory, self.campaign
        in_strata = _in_strata(sums)
        # Leave out the counts of copies by earlier batch, because these copies are also counted as duplicates, and
        # those of strata, because their reports are also counted as accepted.
        further = LOST_TO, IN_STRATUM, DUMMIES
        dummies = sums.get(f"reports:{DUMMIES}")
        sums = {name: number for name, number in sums.items() if not name.partition(":")[2].startswith(further)}
        counts = counts_of(sums, tuple(self.files))
        for stream, counted in counts.items():
            require_read_once(stream, counted.received, total_records(self.files[stream]))
        _require_released(sums, self.released)
        left_out = {name: one for name, one in counts.items() if not campaign.reaches_minimum(one.accepted)}
        if len(left_out) == len(counts):
            floor = campaign.shuffle.minimum_batch
            have = ", ".join(f"{stream} {counted.accepted:,}" for stream, counted in counts.items())
            raise NotYet(
                f"reports that can be forwarded: {have}; the minimum batch is {floor:,} for each stream: nothing was "
                "released and the input is unchanged; run again when more reports have arrived",
                tuple(left_out),
            )
        for stream in left_out:
            del counts[stream]
            for folder in (stream, f"{DEAD_LETTERS}/{stream}"):
                storage.remove_directory(storage.join(directory, folder))
        for stream, counted in counts.items():
            written = total_records(find_files(storage.join(directory, stream), SEALED[stream]))
            wanted = counted.accepted + (dummies or 0 if stream == "reports" else 0)
            if written != wanted:
                # The numbers differ if the engine lost grouped data, or ran a step a second time on other input.
                raise HushcountError(f"{stream}: {written} of {wanted} reports were written: run again")
        atoms: tuple[Atom, ...] = ()
        if "reports" in counts and campaign.stratum_bytes("reports"):
            atoms = _told_by_atom(campaign, storage.join(directory, "reports"), in_strata)
            counts["reports"] = counts["reports"].rejecting("small_atom", sum(atom.reports for atom in atoms))
        summary = make_summary("shuffle", campaign, counts, None, self.upstream, self.senders)
        summary = replace(summary, atoms=atoms, dummies=dummies if "reports" in counts else None)
        return Finished(replace(summary, dead_letters=kept_of(directory, counts), left_out=left_out), tuple(counts))


def plan_shuffle(
    campaign_path: Path,
    source: str | BatchFile,
    out: str,
    *,
    signer: KeyReference | None = None,
    overwrite: bool = False,
    writer: Writer = BY_HAND,
) -> ShuffleJob:
    """Plan to shuffle every stream of the input, and to write sealed reports to `reports/` and `discovery/`.

    Args:
        source: directory with `reports/` and `discovery/` of envelopes, as hushcount job encode or a collector wrote
            them; or a batch of hushcount run, which may lack streams of the campaign.
        signer: the shuffler's signing key; None: the output is not signed.

    Raises:
        UsageError: a file is missing or invalid, or `out` is taken.
        NotYet: the batch has no segment.
    """
    campaign = Campaign.read(campaign_path)
    if campaign.stratum_bytes("reports") and storage.is_remote(out) and not writer.private:
        raise UsageError(
            f"out is {out}, must be a local directory: until the reports of each public stratum are counted, others "
            "may not see the files"
        )
    directory = source if isinstance(source, str) else None
    require_free(out, overwrite, ("shuffle",), (directory, campaign_path))
    if signer is not None:
        # Read the signing key now, so that a key which cannot be used is reported before any work.
        signer.read_signing()
    files, released, upstream = (
        _batch_input(source, campaign) if isinstance(source, BatchFile) else _directory_input(source, campaign)
    )
    if upstream is None:
        paths = [file.path for found in files.values() for file in found]
        senders = senders_of(str(source), [storage.relative(path, str(source)) for path in paths])
    else:
        senders = upstream.senders
    return ShuffleJob(
        campaign=campaign,
        to=Output(out, overwrite, writer, signer),
        steps=ShuffleSteps(campaign=campaign, mix=_mix(campaign, source, signer, files)),
        files=files,
        released=released,
        upstream=upstream,
        senders=senders,
    )


def _mix(campaign: Campaign, source: str | BatchFile, key: KeyReference | None, files: Files) -> MixDraw | None:
    """Return what the shuffler adds to a batch; None: the campaign has no noise.

    Raises:
        UsageError: the shuffler has no key, or the input is no batch of `hushcount run`, whose log has each batch once.
    """
    if campaign.noise is None:
        return None
    if not isinstance(source, BatchFile):
        raise UsageError(
            f"campaign {campaign.id} has noise: run hushcount run, whose log makes each batch once; a batch that is "
            "made again from other reports would show which reports are dummies"
        )
    if key is None:
        raise UsageError(
            f"campaign {campaign.id} has noise, and the shuffler no key to draw it with: make one with hushcount keys "
            "new --role handing-on, and name it in sign_with"
        )
    begins = int(window_start(source.window).timestamp())
    # Of these files alone: what earlier batches released of discovery is in another order after a repetition.
    read = manifest_of([file.path for file in files.get("reports", ())])
    return MixDraw(Draw(key, noise_context(campaign, "shuffle", begins, read)), begins)


def _in_strata(sums: Mapping[str, int]) -> dict[int, int]:
    """Return the accepted reports of each public stratum from a job's sums."""
    start = f"reports:{IN_STRATUM}"
    return {int(name.removeprefix(start)): number for name, number in sums.items() if name.startswith(start)}


def _told_by_atom(campaign: Campaign, folder: str, in_strata: Mapping[int, int]) -> tuple[Atom, ...]:
    """Put the number of its atom in place of each report's stratum, in all files of a folder; return the atoms.

    Reports of no atom are left out.

    Nobody else reads the folder yet. The files are written anew here, and not by the engine, because the atoms are
    known only once all reports are counted, and a stream never ends.
    """
    report = report_of(campaign, "reports")
    atoms = partition(in_strata, campaign.require_axes().public, campaign.shuffle.minimum_batch)
    for file in find_files(folder, SEALED["reports"]):
        records = in_atoms(read_records(file), report, atoms)
        write_file(file.path, file.header.kind, report.bytes, records, campaign.fingerprint, campaign.id)
    return tuple(Atom(one, sum(in_strata.get(stratum, 0) for stratum in one)) for one in atoms)


def report_of(campaign: Campaign, stream: Stream, mix: MixDraw | None = None) -> Report:
    """Return the form of a stream's reports, as the shuffler sees them."""
    strata = campaign.public_strata if campaign.stratum_bytes(stream) else 1
    begins = mix.begins if mix is not None and stream == "reports" else None
    return Report(campaign.sealed_bytes(stream), strata, begins)


def _require_released(sums: Mapping[str, int], released: Files) -> None:
    """Raise HushcountError if reports of earlier batches were not read, because copies of them would be released."""
    for stream, files in released.items():
        name = _released(stream)
        read = {of.removeprefix(f"{name}:"): number for of, number in sums.items() if of.startswith(f"{name}:")}
        require_read_once(f"{stream} of earlier batches", read.pop("received", 0), total_records(files))
        if read:
            reasons = ", ".join(f"{reason} {number}" for reason, number in sorted(read.items()))
            raise HushcountError(
                f"{stream} of earlier batches: {reasons}; nothing was released, because the shuffler would forward "
                "copies of these reports: restore the earlier batches' files"
            )


def _released(stream: Stream) -> str:
    """Return the name of the input that holds the reports of a stream which earlier batches released."""
    return f"released {stream}"


def _batch_input(batch: BatchFile, campaign: Campaign) -> _Input:
    folders = (storage.join(batch.shuffled_folder, name) for name in batch.earlier)
    summaries = [read_upstream(folder, "shuffle", campaign) for folder in folders]
    streams = tuple(stream for stream in campaign.streams if batch.segments.get(stream))
    if not streams:
        raise NotYet(f"batch {batch.name} has no segment: nothing was released", campaign.streams)
    # With noise a report names its window, so no other batch holds a copy that could be forwarded.
    compared = [stream for stream in streams if stream != "reports" or campaign.noise is None]
    released = {stream: _released_files(batch, stream, summaries) for stream in compared if batch.earlier}
    return (
        {stream: batch_files(batch, stream) for stream in streams},
        released,
        collected(batch, campaign.noise is not None),
    )


def _directory_input(source: str, campaign: Campaign) -> _Input:
    _require_input(source)
    where = folder_of(source)
    files = {stream: find_files(storage.join(where, stream), ENVELOPES[stream]) for stream in campaign.streams}
    if not storage.exists(storage.join(source, SUMMARY)):
        return files, {}, None
    upstream = read_upstream(source, "encode", campaign)
    for stream, found in files.items():
        check_complete(upstream, campaign, stream, found, exact=False)
    return files, {}, upstream


def _released_files(batch: BatchFile, stream: Stream, summaries: list[HopSummary]) -> list[BlockFile]:
    """Return the files of a stream that earlier batches released; UsageError if these batches state other numbers."""
    found = released_files(batch, stream)
    forwarded = sum(summary.accepted_of(stream) for summary in summaries)
    present = total_records(found)
    if present != forwarded:
        raise UsageError(
            f"{stream} of earlier batches: the files below {batch.shuffled_folder} have {present} records, must have "
            f"{forwarded}: restore the files, or the shuffler would forward copies of these reports"
        )
    return found


def _require_input(directory: str) -> None:
    """Raise UsageError if a local directory is missing, or is not empty but has no folder of a stream."""
    if storage.is_remote(directory):
        return
    storage.require_directory(directory)
    path = Path(directory)
    if any(path.iterdir()) and not any((path / stream).is_dir() for stream in ENVELOPES):
        raise UsageError(f"input directory {directory} holds neither reports/ nor discovery/")
