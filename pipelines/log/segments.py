"""The segments that manifests list, in the form that logs and windows use."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from hushcount.campaigns.campaign import Stream
from hushcount.collection.epochs import FINGERPRINT_DIGITS
from hushcount.collection.manifests import Manifest
from hushcount.collection.windows import Window, window_start
from hushcount.senders import Authentication
from pipelines.handover.paths import WindowPath
from pipelines.log.entries import TakenManifest

File = tuple[int, str]
"""A campaign file's epoch, and the first digits of the file's fingerprint."""
GIVEN_UP = "its log was lost: whether it was counted is not known, so that it is given up"
"""The reason why segments of a restored log are dropped."""


@dataclass(frozen=True)
class Segment:
    """A segment that a manifest lists.

    Attributes:
        path: relative to the folder of segments.
        window: the window in which the segment's reports arrived.
        records, bytes, digest: of the segment's file.
    """

    path: str
    file: File
    window: Window
    stream: Stream
    records: int
    bytes: int
    digest: str
    authentication: Authentication


def window_of(manifest: Manifest | TakenManifest) -> Window:
    """Return the window of a manifest, with the end that the manifest's collector used."""
    start = window_start(manifest.window)
    return Window(start, start + timedelta(seconds=manifest.seconds))


def segments_of(path: str, manifest: Manifest | TakenManifest) -> tuple[Segment, ...]:
    """Return the segments that a manifest lists; `path` is the manifest's path, relative to the folder of segments."""
    folder, window, way = WindowPath.of(path), window_of(manifest), manifest.authentication
    file = (manifest.epoch, manifest.fingerprint[:FINGERPRINT_DIGITS])
    return tuple(
        Segment(f"{folder}/{stream}/{part.name}", file, window, stream, part.records, part.bytes, part.digest, way)
        for stream, parts in manifest.segments.items()
        for part in parts
    )
