"""hushcount stream: watch a collector's segments, and shuffle and analyze each window once, when it closes."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import apache_beam as beam

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import tally_items
from hushcount.collection.epochs import epoch_folder
from hushcount.errors import UsageError
from keys.opening_engines import require_opening_engine
from keys.store import KeyReference, campaign_key
from pipelines.engine.runner import Engine
from pipelines.files import storage
from pipelines.files.block_files import SUFFIX
from pipelines.jobs import results
from pipelines.jobs.groups import NamedGroups, kept_groups, with_columns
from pipelines.streaming.graph import Analysis, run_windows
from pipelines.streaming.output import claimed
from pipelines.streaming.watch import WatchSegments, list_names
from pipelines.streaming.windows import StreamFolders, StreamJob, StreamWindows

_SEGMENTS = "the collector's directory of windows, STORE/segments/CAMPAIGN/EPOCH-FINGERPRINT"
_FINGERPRINTED = re.compile(r"[0-9]{6}-([0-9a-f]{16})")


def stream(
    campaign_path: Path,
    segments: str,
    out: str,
    windows: StreamWindows,
    *,
    keys: Path | str | None = None,
    items: Path | None = None,
    groups: NamedGroups | None = None,
    places: int = 16,
    every: float = 30.0,
    until: float | None = None,
    without: tuple[str, ...] = (),
    signer: KeyReference | None = None,
    engine: Engine | None = None,
) -> None:
    """Settle each window when it closes: WINDOW/window.json, with WINDOW/shuffled and WINDOW/results if it is released.

    Args:
        campaign_path: the campaign file.
        segments: where the collector puts the segments of this campaign file; WINDOW/STREAM/FILE lie in it.
        out: output directory; an earlier stream of this campaign file may have written to it.
        windows: the collector's windows, and how long after its end each stays open.
        keys: directory with the analyzer's private key, or env:NAME; None: another party analyses what is in
            WINDOW/shuffled/WINDOW-EPOCH-FINGERPRINT.
        items: items to estimate, as for hushcount analyze; None: the whole dictionary.
        groups: items whose sums get exact errors, as for hushcount analyze.
        places: over how many places a window's reports are spread; each must fit into a worker's memory.
        every: seconds from one look at the segments to the next.
        until: when the last look is, in seconds since 1970; windows that are open then stay for the next run.
        without: segments and manifests that are lost, WINDOW/STREAM/FILE or WINDOW/FILE: their windows are settled
            without them.
        signer: the key by which the shuffler signs what it hands on, which workers open; None: unsigned.
        engine: which engine; Beam's embedded one works only when the last look was.

    Raises:
        UsageError: a file or key is missing or invalid, `out` is another's, or the engine has no streams.
        StorageError: the job failed. Windows that were settled stay so.
        HushcountError: another stream has begun to write to `out`.

    Privacy: each window is one release; its minimum batch and its cap are its own. A copy of a report in another
        window is not noticed.
    """
    campaign = Campaign.read(campaign_path)
    engine = engine or Engine()
    if engine.embedded and until is None:
        raise UsageError(
            f"runner {engine.runner} gives no result before its input ends: give --for, or --runner PrismRunner or "
            "FlinkRunner"
        )
    if signer is not None:
        # Before any work: it may be a key that cannot be used.
        signer.read_signing()
    segments, out = absolute(segments), absolute(out)
    _require_segments(segments, campaign, windows)
    analysis = None if keys is None else _analysis(campaign, keys, items, groups or NamedGroups())
    with claimed(out, campaign, windows, (segments, campaign_path)) as work:
        folders = StreamFolders(segments, out, work, windows, epoch_folder(campaign))
        # Set here, because without it Flink takes the source for one that ends.
        streaming = engine if engine.embedded else replace(engine, options=(*engine.options, "--streaming"))
        with streaming.pipeline("stream") as pipeline:
            watch = WatchSegments(segments, campaign.streams, windows, every, until)
            found = pipeline | "begin" >> beam.Create([None], reshuffle=False) | "watch" >> beam.ParDo(watch)
            job = StreamJob(campaign, folders, places, analysis is not None, frozenset(without), signer)
            run_windows(found, job, analysis)


def _analysis(campaign: Campaign, keys: Path | str, items: Path | None, groups: NamedGroups) -> Analysis:
    require_opening_engine()
    mechanism = campaign.require_frequency()
    key = campaign_key(keys, "analyzer", campaign.keys.analyzer)
    names = results.read_names(items) if items else None
    dictionary = campaign.read_dictionary()
    wanted, kept = results.wanted_items(mechanism, dictionary, names), kept_groups(mechanism, dictionary, groups)
    columns = tally_items(mechanism, with_columns(None if wanted is None else wanted.items, kept))
    return Analysis(key, wanted, columns, kept)


def absolute(path: str) -> str:
    """Return a path that workers in other directories understand."""
    return path if storage.is_remote(path) else str(Path(path).absolute())


def _require_segments(segments: str, campaign: Campaign, windows: StreamWindows) -> None:
    """Refuse what cannot be the segments of this campaign file in these windows."""
    named = _FINGERPRINTED.fullmatch(segments.rstrip("/").rpartition("/")[2])
    fingerprint = campaign.fingerprint.hex()
    if named and not fingerprint.startswith(named[1]):
        raise UsageError(
            f"segments {segments} are of the campaign file with fingerprint {named[1]}..., {campaign.id} has "
            f"{fingerprint[:16]}...: give the file they were collected for"
        )
    # A store has no directories that could be missing.
    if not storage.is_remote(segments) and not Path(segments).is_dir():
        fault = "is a file" if Path(segments).exists() else "does not exist"
        raise UsageError(f"segments {segments} {fault}, must be {_SEGMENTS}")
    found = list_names(segments, campaign.streams)
    strays = [path for stream in campaign.streams for path, _ in storage.list_tree(segments, f"{stream}/*{SUFFIX}")]
    if not found:
        strays += [path for path in storage.list_objects(segments) if path.endswith(SUFFIX)]
    if strays:
        raise UsageError(f"segments {segments} holds {strays[0]}, which lies in no window of it: give {_SEGMENTS}")
    for name in found:
        windows.of_name(name)
