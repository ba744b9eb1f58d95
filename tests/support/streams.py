"""Streams for tests: a collector's store, the batch jobs on its segments, and scripts for an engine that streams."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from hashlib import blake2b
from pathlib import Path
from typing import Any, cast

import apache_beam as beam
import numpy as np
from apache_beam.coders import BytesCoder
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing import test_stream as scripted
from apache_beam.transforms.window import TimestampedValue

from hushcount.campaigns.campaign import Stream
from hushcount.campaigns.dictionary import tally_items
from hushcount.client import Client
from hushcount.collection.epochs import epoch_folder
from hushcount.collection.manifests import Manifest, SegmentPart, manifest_name
from hushcount.collection.windows import Window, window_at
from hushcount.policy import Policy
from keys.store import campaign_key
from pipelines.jobs import results
from pipelines.outputs.summary import digest_of_json
from pipelines.streaming.graph import Analysis, run_windows
from pipelines.streaming.watch import Found, Watched, found_between, look
from pipelines.streaming.windows import StreamFolders, StreamJob, StreamWindows
from tests.support.jobs import Chain, done, new_campaign, new_keys, summary, write_lines
from tests.support.records import as_set, envelopes, read_file, read_rows, rows_of, write_envelopes

LISTED = ("alpha", "beta", "gamma")
HOUR = StreamWindows(timedelta(hours=1), timedelta(minutes=10))
FIRST = window_at(datetime(2021, 3, 1, 12, tzinfo=timezone.utc), HOUR.length)
FLOOR = 50


@dataclass(frozen=True)
class Collected:
    """A campaign of both streams and the store of its collector.

    Attributes:
        chain: the campaign file and the keys.
        store: where the segments are.
        made: reports and discovery reports of clients, taken one after the other.
    """

    chain: Chain
    store: Path
    made: dict[str, Any]

    def segment(
        self, window: Window, name: str, first: int, number: int, collector: str = "one", *, closed: bool = True
    ) -> list[str]:
        """Write a segment of each stream, of `number` clients from `first` on, and return their names.

        The collector has closed the window and written a manifest of the segments, unless it has not `closed` it.
        """
        named = []
        for stream_name, rows in self.made.items():
            clients = [f"client {index}" for index in range(first, first + number)]
            there = envelopes(self.chain.campaign, rows[first : first + number], clients)
            write_envelopes(self.store / window.name, self.chain.campaign, stream_name, there, name)
            named.append(f"{window.name}/{stream_name}/{name}.blocks")
        if closed:
            self.close(window, name, named, collector)
        return named

    def close(self, window: Window, name: str, segments: Sequence[str], collector: str = "one") -> Path:
        """Write a collector's manifest of segments of a window, and return its path; `name` is of nothing else."""
        parts: dict[Stream, tuple[SegmentPart, ...]] = {}
        for segment in segments:
            _, stream, file = segment.split("/")
            content = (self.store / segment).read_bytes()
            records, digest = len(read_file(self.store / segment)[1]), blake2b(content, digest_size=32).hexdigest()
            part = SegmentPart(name=file, records=records, bytes=len(content), digest=digest)
            parts[cast(Stream, stream)] = (*parts.get(cast(Stream, stream), ()), part)
        campaign = self.chain.campaign
        manifest = Manifest(
            collector=collector,
            campaign=campaign.id,
            epoch=campaign.epoch,
            fingerprint=campaign.fingerprint.hex(),
            window=window.name,
            seconds=int(window.length.total_seconds()),
            authentication="client-token",
            segments=parts,
        )
        path = self.store / window.name / manifest_of(name, collector)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(manifest.model_dump_json())
        return path

    def arguments(self, out: Path | str, *options: object) -> tuple[object, ...]:
        """Return the command that streams all windows there are."""
        paths = ("--segments", self.store, "--keys", self.chain.keys, "--out", out)
        windows = ("--window", "1h", "--lateness", "10m")
        return ("stream", "--campaign", self.chain.campaign_path, *paths, *windows, *options)

    def batch(self, source: Path, out: Path) -> Path:
        """Shuffle and analyze a directory of segments as a batch."""
        common = ("--campaign", self.chain.campaign_path)
        done("shuffle", *common, "--input", source, "--out", out / "shuffled")
        paths = ("--input", out / "shuffled", "--keys", self.chain.keys, "--out", out / "results")
        done("analyze", *common, *paths)
        return out


def manifest_of(name: str, collector: str = "one") -> str:
    """Return the name of the manifest that lists a segment of that name."""
    return manifest_name(collector, blake2b(name.encode(), digest_size=8).hexdigest())


def collect(root: Path, mechanism: str = "grr") -> Collected:
    """Make a campaign and what its clients send."""
    keys = new_keys(root / "keys")
    dictionary = write_lines(root / "dictionary.txt", LISTED)
    options: dict[str, Any] = {"mechanism": mechanism, "discovery": 1.0, "min_batch": FLOOR}
    path = new_campaign(root / "c.json", keys, dictionary=dictionary, **options)
    chain = Chain(path, keys)
    client = Client(chain.campaign, policy=Policy.trusting(), uncapped=True)
    values = [LISTED[index * index % 3] for index in range(600)]
    made = {
        "reports": rows_of([client.report(value) for value in values]),
        "discovery": rows_of([client.discovery_report("unlisted") for _ in values]),
    }
    return Collected(chain, root / "store", made)


def tally(directory: Path) -> dict[str, np.ndarray]:
    with np.load(directory / "tally.npz") as file:
        return {name: file[name] for name in file.files}


def require_equal(window: Path, batch: Path) -> None:
    """A window's result must be that of the batch job on the same segments: all but what is drawn."""
    expected, got = tally(batch / "results"), tally(window / "results")
    assert expected.keys() == got.keys()
    assert all((expected[name] == got[name]).all() for name in expected)
    # A window's folder names it; a batch's is named in what is handed on.
    place = {name: summary(batch / "shuffled")[name] for name in ("batch", "window")}
    (shuffled,) = (window / "shuffled").iterdir()
    assert {**summary(shuffled), **place} == summary(batch / "shuffled")
    assert summary(window / "results")["made_from"] == digest_of_json(summary(shuffled))
    place = {name: summary(batch / "results")[name] for name in ("batch", "window", "made_from")}
    assert {**summary(window / "results"), **place} == summary(batch / "results")
    for stream_name in ("reports", "discovery"):
        rows = read_rows(shuffled / stream_name)
        assert as_set(rows) == as_set(read_rows(batch / "shuffled" / stream_name))
    for name in ("estimates.csv", "estimates.parquet"):
        assert (window / "results" / name).read_bytes() == (batch / "results" / name).read_bytes()


def record(out: Path, window: Window) -> dict[str, Any]:
    return json.loads((out / window.name / "window.json").read_text())


def require_added_up(out: Path, window: Window, segments: Sequence[str], collected: Collected) -> None:
    """All records of a window's segments are accepted, rejected for a reason, or too late."""
    stored = sum(len(read_file(collected.store / name)[1]) for name in segments)
    counts = record(out, window)["streams"].values()
    late = sum(json.loads(path.read_text())["too_late"] for path in (out / "too_late" / window.name).glob("*/*.json"))
    assert stored == late + sum(one["accepted"] + sum(one["rejected"].values()) for one in counts)
    assert sum(one["received"] for one in counts) == stored - late


def job_of(collected: Collected, out: Path) -> tuple[StreamJob, Analysis]:
    """Return the job of the command's graph."""
    campaign = collected.chain.campaign
    mechanism = campaign.require_frequency()
    wanted = results.wanted_items(mechanism, campaign.read_dictionary(), None)
    key = campaign_key(collected.chain.keys, "analyzer", campaign.keys.analyzer)
    work = out / ".work.partial"
    work.mkdir(parents=True)
    folders = StreamFolders(str(collected.store), str(out), str(work), HOUR, epoch_folder(campaign))
    return StreamJob(campaign, folders, 3, True), Analysis(key, wanted, tally_items(mechanism, wanted.items))


def play(job: StreamJob, analysis: Analysis, events: Sequence[Any], *options: str) -> None:
    """Run the graph on a script: seconds after FIRST's start at which it looks, and names that are there by then.

    With the segments come the manifests that name them.
    """
    began, windows = FIRST.start.timestamp(), job.folders.windows
    # Flink reads the script in Java, which knows bytes.
    script: Any = scripted.TestStream(coder=BytesCoder())
    watched, there = Watched(), set()
    for event in events:
        if not isinstance(event, (int, float)):
            manifests = {
                f"{one.split('/')[0]}/{manifest_of(one.split('/')[2].removesuffix('.blocks'))}" for one in event
            }
            there |= {*event, *manifests}
            continue
        known = look(watched, there, began + event, 1.0, windows)
        for found in found_between(watched, known, windows):
            time = known.closed if found.late else windows.event_time(windows.of_name(found.window))
            content = json.dumps((found.window, found.names, found.late)).encode()
            script = script.add_elements([TimestampedValue(content, time)])
        if known.closed is not None:
            script = script.advance_watermark_to(known.closed)
        watched = known
    with beam.Pipeline(options=PipelineOptions(["--streaming", *options])) as pipeline:
        script = script.advance_watermark_to_infinity().with_output_types(bytes)
        run_windows(pipeline | "script" >> script | beam.Map(found_in), job, analysis)


def found_in(element: bytes) -> Found:
    window, names, late = json.loads(element)
    return Found(window, tuple(names), late)


def play_a_day(collected: Collected, root: Path, *options: str) -> None:
    """Play two windows with late segments, and require of each what the batch jobs give and that all is counted."""
    out = root / "out"
    before = collected.segment(FIRST, "one-1", 0, 100)
    within = collected.segment(FIRST, "one-2", 100, 80)
    other = collected.segment(FIRST.next, "one-3", 180, 90)
    batches = [collected.batch(collected.store / w.name, root / w.name) for w in (FIRST, FIRST.next)]
    late = collected.segment(FIRST, "two-1", 270, 60)
    # A window of an hour closes ten minutes after its end.
    play(
        *job_of(collected, out),
        [0, before, 3600, 4100, within, 4199, 4200, late, 5000, other, 7199, late, 7801],
        *options,
    )
    for window, batch in zip((FIRST, FIRST.next), batches, strict=True):
        require_equal(out / window.name, batch)
    require_added_up(out, FIRST, [*before, *within, *late], collected)
    require_added_up(out, FIRST.next, other, collected)
    assert {path.name for path in (out / "too_late").glob("*/reports/*")} == {"two-1.blocks.json"}
