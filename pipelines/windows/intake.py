"""List the manifests that collectors stored, and make batches of their segments when a window closes."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone

from hushcount.collection.envelopes import ENVELOPES
from hushcount.collection.epochs import folder_name
from hushcount.collection.manifests import Manifest
from hushcount.errors import FormatError, UsageError
from hushcount.formats.reading import LISTING_BYTES
from pipelines.deployment.settings import Deployment
from pipelines.files import storage
from pipelines.files.block_files import header_of
from pipelines.files.storage_errors import told
from pipelines.handover.file_list import fault_of
from pipelines.handover.paths import WindowPath
from pipelines.handover.upstream import placed_manifest
from pipelines.log.entries import Closed, TakenManifest
from pipelines.log.fold import Fold
from pipelines.log.segments import Segment
from pipelines.windows.closing import Listed, Rule, closing_of, next_window
from pipelines.windows.stored import StoredFile, manifests_in


@dataclass(frozen=True)
class Intake:
    """The manifests in the store that no closed window has taken.

    Attributes:
        problems: a sentence for each manifest that cannot be taken.
    """

    listed: tuple[Listed, ...]
    problems: tuple[str, ...]


def _new_manifests(
    deployment: Deployment, files: Sequence[StoredFile], known: Container[str]
) -> Iterator[tuple[str, float, Manifest | Exception]]:
    """Yield each manifest that no closed window has taken, or the error on reading it.

    Each manifest comes with its path in the folder of segments, and the time when the store received it.
    """
    root = deployment.folder("segments")
    for relative, _, written in manifests_in(files):
        if relative not in known:
            path = storage.join(root, relative)
            try:
                data = storage.read_bytes(path, LISTING_BYTES)
                manifest: Manifest | Exception = placed_manifest(data, path, WindowPath.of(relative))
            except Exception as error:
                manifest = error
            yield relative, written, manifest


def intake_of(deployment: Deployment, fold: Fold, files: Sequence[StoredFile]) -> Intake:
    """Return the manifests among a campaign's files that no closed window has taken yet."""
    listed: list[Listed] = []
    problems = []
    known = fold.files
    for relative, written, manifest in _new_manifests(deployment, files, known):
        if not isinstance(manifest, Manifest):
            problems.append(f"{relative}: {told(manifest)}")
            continue
        one = Listed(relative, datetime.fromtimestamp(written, timezone.utc).replace(microsecond=0), manifest)
        paths = {segment.path for segment in one.segments}
        if known & paths:
            problems.append(
                f"{relative}: names a segment of another manifest: remove the wrong manifest of the two, then write "
                "one for the segments that no manifest lists, with hushcount repair segments"
            )
            continue
        known |= paths
        listed.append(one)
    return Intake(tuple(listed), tuple(problems))


def closed_next(
    deployment: Deployment,
    fold: Fold,
    listed: Sequence[Listed],
    rule: Rule,
    now: datetime,
    before: datetime | None = None,
) -> tuple[Closed, list[str]] | None:
    """Return the entry that closes the next window, and a sentence for each segment that the entry newly sets aside.

    Return None if no window is due, or if the window does not end before the time `before`.

    Every segment that a batch would take is compared with its manifest; a segment that differs waits, or is dropped.
    """
    window = next_window(fold.closed, fold.waiting.values(), listed, rule, now)
    if window is None or (before is not None and window.end >= before):
        return None
    good: set[str] = set()
    faults: dict[str, str] = {}
    for path, reason in fold.aside.items():
        fault: str | None = reason
        # A segment that cannot be read now is still put aside, and does not keep the window open.
        with suppress(UsageError):
            fault = fault_in(deployment, fold.waiting[path])
        if fault is not None:
            faults[path] = fault
    while True:
        closing = closing_of(window, fold.closed, fold.waiting.values(), listed, rule, faults, now, fold.restored)
        taken = [one for streams in closing.batches.values() for segments in streams.values() for one in segments]
        unseen = [segment for segment in taken if segment.path not in good]
        if not unseen:
            break
        for segment in unseen:
            if (fault := fault_in(deployment, segment)) is None:
                good.add(segment.path)
            else:
                faults[segment.path] = fault
    dropped = {segment.path: reason for segment, reason in closing.dropped.items()}
    aside = {path: reason for path, reason in faults.items() if path not in dropped}
    entry = Closed(
        window=window.name,
        seconds=int(window.length.total_seconds()),
        manifests=tuple(taken_in(one) for one in closing.manifests),
        batches={
            folder_name(*file): {stream: tuple(one.path for one in segments) for stream, segments in streams.items()}
            for file, streams in closing.batches.items()
        },
        aside=aside,
        dropped=dropped,
    )
    return entry, said_aside({path: reason for path, reason in aside.items() if path not in fold.aside})


def said_aside(aside: dict[str, str]) -> list[str]:
    """Return a sentence for each segment that is put aside: it waits until its file is restored."""
    said = "the segment was put aside, and other segments do not wait for it; restore its file"
    return [f"{path} {reason}: {said}" for path, reason in sorted(aside.items())]


def fault_in(deployment: Deployment, segment: Segment) -> str | None:
    """Return how the file of a segment differs from its manifest, or None if the file does not differ."""
    path = deployment.folder("segments", *segment.path.split("/"))
    try:
        if (fault := fault_of(path, segment.bytes, segment.digest)) is not None:
            return fault
        header = header_of(path)
    except FormatError:
        return "is no segment"
    except (UsageError, FileNotFoundError):
        if storage.exists(path):
            raise
        return "is missing"
    # A shuffle refuses a segment that differs from its manifest, and refuses the whole batch because of it.
    if (header.kind, header.records, header.file_bytes) != (ENVELOPES[segment.stream], segment.records, segment.bytes):
        return "is another segment than its manifest says"
    return None


def taken_in(one: Listed) -> TakenManifest:
    """Return a manifest in the form of a log entry."""
    manifest = one.manifest
    fields = {name: getattr(manifest, name) for name in TakenManifest.model_fields if name not in ("path", "written")}
    return TakenManifest(path=one.path, written=one.written, **fields)
