"""Segments that no manifest lists: of a collector that lost its disk, or whose manifest was lost; list them again.

An acknowledged report counts only if a manifest names its segment. An orphan is found by its file and checked, and a
manifest of its own names it; then it is like any segment that came late. Its name, which the collector gave it, says
how its senders were told apart; if it does not, they count as not told apart.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import cast

from pydantic import ValidationError
from sqlalchemy import Engine as Database

from hushcount.campaigns.campaign import Stream
from hushcount.collection.envelopes import ENVELOPES
from hushcount.collection.manifests import Manifest, SegmentPart, divided, manifest_name
from hushcount.collection.segment_names import SegmentName, segment_named
from hushcount.collection.windows import is_window
from hushcount.errors import HushcountError, UsageError
from hushcount.formats.models import explain
from hushcount.formats.reading import LISTING_BYTES
from hushcount.senders import WEAKEST
from hushcount.wire.blocks import read_header
from pipelines.audit.view import View
from pipelines.batches.intake import register_new
from pipelines.deployment.campaigns import Epochs
from pipelines.deployment.settings import Deployment
from pipelines.files import storage
from pipelines.files.storage_errors import told
from pipelines.schedule.witnesses import told_time

_UNNAMED = SegmentName("relisted", WEAKEST, "")
"""Of a segment whose name does not say whose it is."""


@dataclass
class Relisted:
    """What was done with orphans.

    Attributes:
        segments: the reports of each that is in a manifest now, by its path in the folder of segments.
        unsaid: those whose name does not say how their senders were told apart: they count as not told apart.
        problems: a sentence for each that cannot be listed.
    """

    segments: dict[str, int] = field(default_factory=dict)
    unsaid: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def orphans(view: View) -> dict[str, int]:
    """Return the bytes of each segment that no registered manifest lists though its window is over, by its path."""
    found = {}
    for path, size in view.unlisted.items():
        _, _, window, stream, _ = path.split("/")
        # status says so of a segment that lies in no window.
        if stream in ENVELOPES and is_window(window) and view.is_over(window):
            found[path] = size
    return found


def relist(state: Database, deployment: Deployment, epochs: Epochs, now: datetime | None = None) -> Relisted:
    """Write manifests that list a campaign's orphans, and register them; the next run counts them.

    Args:
        state: the database; no run may be at work on it.
        deployment: whose.
        epochs: of the campaign.
        now: the present; the clock's by default.
    """
    made = Relisted(problems=register_new(state, deployment, epochs.campaign))
    time = told_time(state, deployment, now or datetime.now(timezone.utc))
    made.problems += time.problems
    if time.clock.is_far:
        made.problems.append(time.says)
    with state.begin() as connection:
        view = View(deployment, time.present, connection=connection, one=epochs)
        found, windows = orphans(view), view.windows
    manifests: dict[tuple[str, SegmentName, str], dict[Stream, list[SegmentPart]]] = defaultdict(dict)
    for path, size in found.items():
        folder, stream, name = path.rsplit("/", 2)
        try:
            part, fingerprint = _looked_through(deployment, path, size)
        except (HushcountError, OSError) as error:
            made.problems.append(told(error))
            continue
        named = segment_named(name)
        if named is None:
            made.unsaid.append(path)
        manifests[folder, named or _UNNAMED, fingerprint].setdefault(cast(Stream, stream), []).append(part)
        made.segments[path] = part.records
    for (folder, whose, fingerprint), segments in manifests.items():
        _, epoch, window = folder.split("/")
        length = windows[window].length if window in windows else deployment.windows.length
        for id, listed in divided(segments, secrets.token_hex(8)):
            manifest = Manifest(
                collector=whose.collector,
                campaign=epochs.campaign,
                epoch=int(epoch.partition("-")[0]),
                fingerprint=fingerprint,
                window=window,
                seconds=int(length.total_seconds()),
                authentication=whose.way,
                segments=listed,
            )
            target = deployment.folder("segments", *folder.split("/"), manifest_name(whose.collector, id))
            storage.write_json(target, manifest.model_dump(mode="json"), LISTING_BYTES)
    made.problems += register_new(state, deployment, epochs.campaign)
    return made


def _looked_through(deployment: Deployment, relative: str, size: int) -> tuple[SegmentPart, str]:
    """Return what a manifest says of an orphan, and the fingerprint of its campaign file.

    Raises:
        UsageError: it is no whole segment of the folder that it lies in.
    """
    campaign, epoch, _, stream, name = relative.split("/")
    path = deployment.folder("segments", *relative.split("/"))
    with storage.open_read(path) as stream_of_bytes:
        header = read_header(stream_of_bytes, path)
    fingerprint = header.campaign.hex()
    right = header.kind == ENVELOPES[cast(Stream, stream)] and epoch.endswith(f"-{fingerprint[:16]}")
    if not right or header.file_bytes != size:
        raise UsageError(f"{path} is no whole segment of {campaign}/{epoch} {stream}: restore it, or remove it")
    try:
        digest = storage.digest_of(path)[1]
        return SegmentPart(name=name, records=header.records, bytes=size, digest=digest), fingerprint
    except ValidationError as error:
        raise UsageError(f"{path} cannot be listed: {explain(error)}") from None
