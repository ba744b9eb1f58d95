"""The graph of a stream: the transforms of shuffle and analyze, window by window.

Reports are read when their window closes and not before: until then the engine has nothing of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import apache_beam as beam
from apache_beam.pvalue import PCollection
from apache_beam.transforms.window import IntervalWindow

from analyzer.open_reports import OpenReports
from analyzer.tally_reports import Sums, TallyReports
from hushcount.arrays import UInt64Array
from hushcount.campaigns.campaign import Stream
from hushcount.collection.envelopes import envelope_dtype, sealed_offset
from hushcount.oracles.groups import NO_GROUPS, Groups
from keys.store import KeyReference
from pipelines.files.blocks import ReadFiles, WriteShards, in_window
from pipelines.jobs.analyze import WriteTallyPart
from pipelines.jobs.results import Wanted
from pipelines.outputs.counts import OPENING, SEALED, label
from pipelines.outputs.dead_letter_files import WriteDeadLetter, of_stream, of_stream_and_length
from pipelines.streaming.release import Release, WindowResults
from pipelines.streaming.segments import (
    CheckSegments,
    FindReleased,
    Judge,
    NoteTooLate,
    OpenManifests,
    count_fact,
    number_fact,
)
from pipelines.streaming.windows import FolderOf, StreamJob
from shuffler.shuffle import Shuffle


@dataclass(frozen=True)
class Analysis:
    """How released reports are analysed: with the analyzer's key, into these columns and the squares of `groups`."""

    key: KeyReference
    wanted: Wanted | None
    columns: UInt64Array
    groups: Groups = NO_GROUPS


def run_windows(found: PCollection, job: StreamJob, analysis: Analysis | None) -> None:
    """Shuffle every window that has closed, release it once, and analyse what was released.

    `found` holds a `Found` of each window at its time to the engine, before the watermark passes that.
    """
    streams, windows = job.campaign.streams, job.folders.windows.engine_windows()
    judged = found | "judge" >> beam.ParDo(Judge(job)).with_outputs("too_late", "released", main="closed")
    opened = (
        judged.closed
        | "windows" >> beam.WindowInto(windows)
        # A window that was seen twice is one.
        | "all that was found" >> beam.GroupByKey()
        | "open manifests" >> beam.ParDo(OpenManifests(job)).with_outputs("facts", "too_late", main="named")
    )
    checked = (
        opened.named
        | "spread" >> beam.Reshuffle()
        | "check segments" >> beam.ParDo(CheckSegments(job)).with_outputs("facts", *streams)
    )
    for name, late in (("too late", judged.too_late), ("in no manifest", opened.too_late)):
        late | f"note {name}" >> beam.ParDo(NoteTooLate(job))
    released = (
        [opened.facts, checked.facts, *_shuffled({stream: checked[stream] for stream in streams}, job)]
        | "all facts" >> beam.Flatten()
        | "of its window" >> beam.GroupByKey()
        | "release" >> beam.ParDo(Release(job))
    )
    if analysis is not None:
        before = (
            judged.released
            | "windows released before" >> beam.WindowInto(windows)
            | "find released" >> beam.ParDo(FindReleased(job))
        )
        _analyzed((released, before) | "all released" >> beam.Flatten(), job, analysis)


def _shuffled(files: dict[Stream, PCollection], job: StreamJob) -> list[PCollection]:
    """Shuffle each stream by itself into the window's directory; return what there is to know of it."""
    campaign, facts, dead = job.campaign, [], []
    shuffled = FolderOf(job.folders, (), handed_on=True)
    for stream, found in files.items():
        length = campaign.sealed_bytes(stream)
        read = found | f"read {stream}" >> ReadFiles(
            campaign.fingerprint, envelope_dtype(length).itemsize, sealed_offset(length), None
        )
        mixed = read["blocks"] | f"shuffle {stream}" >> Shuffle(length, campaign.shuffle.cap, job.places)
        where = FolderOf(job.folders, (stream,), handed_on=True)
        written = mixed["shards"] | f"write {stream}" >> WriteShards(
            where, SEALED[stream], campaign, length, job.places
        )
        counts = (read["counts"], mixed["counts"]) | f"counts of {stream}" >> beam.Flatten()
        facts += [
            counts | f"label {stream}" >> beam.Map(label, stream) | f"counts known of {stream}" >> beam.Map(count_fact),
            written | f"written known of {stream}" >> beam.Map(number_fact, "written", stream),
        ]
        dead.append(read["dead"] | f"stream of dead {stream}" >> beam.Map(of_stream, stream))
    for stream, part in zip(campaign.streams, dead, strict=True):
        kept = part | f"dead letter {stream}" >> WriteDeadLetter(shuffled, campaign)
        facts.append(kept | f"dead letter known {stream}" >> beam.Map(number_fact, "dead", "records"))
    return facts


def _analyzed(released: PCollection, job: StreamJob, analysis: Analysis) -> None:
    """Open, tally and estimate what was released of each window."""
    campaign, mechanism = job.campaign, job.campaign.require_frequency()
    length, where = campaign.sealed_bytes("reports"), FolderOf(job.folders, ("results",))
    read = released | "read released" >> ReadFiles(campaign.fingerprint, length, 0, None)
    opened = read["blocks"] | "open" >> beam.ParDo(
        OpenReports(analysis.key, mechanism, campaign.binding("reports"), length)
    ).with_outputs("counts", "opening", "dead", main="reports")
    tallied = (
        opened.reports
        | "tally" >> TallyReports(mechanism, analysis.columns, analysis.groups)
        | "write tally" >> beam.ParDo(WriteWindowTally(FolderOf(job.folders, ("results", ".tally"))))
    )
    counts = (read["counts"], opened.counts) | "counts of analysis" >> beam.Flatten()
    dead = (
        read["dead"] | "stream of dead" >> beam.Map(of_stream, "reports"),
        opened.dead | "length of dead" >> beam.Map(of_stream_and_length, "reports", length),
    )
    kept = dead | "dead letter of analysis" >> WriteDeadLetter(where, campaign)
    (
        (
            counts | "label" >> beam.Map(label, "reports") | "counts known" >> beam.Map(count_fact),
            opened.opening | "label opening" >> beam.Map(label, OPENING) | "opening known" >> beam.Map(count_fact),
            tallied | "tally known" >> beam.Map(number_fact, "tallied", "reports"),
            kept | "dead letter of analysis known" >> beam.Map(number_fact, "dead", "records"),
        )
        | "all facts of analysis" >> beam.Flatten()
        | "of its released window" >> beam.GroupByKey()
        | "results" >> beam.ParDo(WindowResults(job, analysis.wanted, analysis.columns, analysis.groups))
    )


class WriteWindowTally(beam.DoFn):
    """(block of rows, Sums) of a window to a file in its folder; how many reports they sum out."""

    def __init__(self, folder: FolderOf) -> None:
        self._folder = folder

    def process(self, element: tuple[int, Sums], window: IntervalWindow = beam.DoFn.WindowParam) -> Iterator[int]:
        WriteTallyPart(in_window(self._folder, window)).process(element)
        yield element[1].reports
