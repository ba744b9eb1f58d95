"""List segments that no manifest names, because a collector lost its disk, or a manifest was lost.

An acknowledged report counts only if a manifest names its segment. `relist` checks each segment without a manifest (an
orphan) and writes a new manifest for it; after that, runs treat the orphan like any late segment. A segment's name says
how the collector told clients apart; if the name does not say it, the clients count as not told apart.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import cast

from pydantic import ValidationError

from hushcount.campaigns.campaign import Stream
from hushcount.collection.envelopes import ENVELOPES
from hushcount.collection.epochs import folder_name
from hushcount.collection.manifests import Manifest, SegmentPart, divided, manifest_name
from hushcount.collection.segment_names import SegmentName, segment_named
from hushcount.collection.windows import is_window
from hushcount.errors import HushcountError, UsageError
from hushcount.formats.models import explain
from hushcount.formats.reading import LISTING_BYTES
from hushcount.senders import WEAKEST
from pipelines.audit.view import View
from pipelines.deployment.settings import Deployment
from pipelines.files import storage
from pipelines.files.block_files import header_of
from pipelines.files.storage_errors import told
from pipelines.handover.paths import SegmentPath
from pipelines.schedule.clock_check import told_time

_UNNAMED = SegmentName("relisted", WEAKEST, "")
"""Used for a segment whose name does not name its collector."""


@dataclass
class Relisted:
    """The result of listing orphans again.

    Attributes:
        segments: the number of reports of each segment that a manifest now names, by the segment's path in the folder
            of segments.
        unsaid: paths of segments whose names do not say how clients were told apart, so that these clients count as
            not told apart.
        problems: a sentence for each segment that cannot be listed, and for each fault of the clock or a manifest.
    """

    segments: dict[str, int] = field(default_factory=dict)
    unsaid: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def orphans(view: View) -> dict[SegmentPath, int]:
    """Return the size in bytes of each segment of a past window that no manifest lists."""
    return {
        segment: size
        for segment, size in view.unlisted.items()
        # A segment outside every window is left out, because `hushcount status` reports it.
        if segment.stream in ENVELOPES and is_window(segment.window) and view.is_over(segment.window)
    }


def relist(view: View) -> Relisted:
    """Write manifests that list a campaign's orphans; the next run takes in these manifests like all others."""
    deployment, epochs = view.deployment, view.epochs
    time = told_time(deployment, [view.fold], view.intake.listed, view.now)
    made = Relisted(problems=[*view.intake.problems, *time.problems])
    if time.clock.is_far:
        made.problems.append(time.says)
    view = replace(view, now=time.present)
    found, windows = orphans(view), view.windows
    manifests: dict[tuple[str, str, SegmentName, str], dict[Stream, list[SegmentPart]]] = defaultdict(dict)
    for segment, size in found.items():
        try:
            part, fingerprint = _looked_through(deployment, segment, size)
        except (HushcountError, OSError) as error:
            made.problems.append(told(error))
            continue
        named = segment_named(segment.name)
        if named is None:
            made.unsaid.append(str(segment))
        key = (segment.file, segment.window, named or _UNNAMED, fingerprint)
        manifests[key].setdefault(cast(Stream, segment.stream), []).append(part)
        made.segments[str(segment)] = part.records
    for (file, window, whose, fingerprint), segments in manifests.items():
        length = windows.get(window, view.calendar.named(window)).length
        for id, listed in divided(segments, secrets.token_hex(8)):
            manifest = Manifest(
                collector=whose.collector,
                campaign=epochs.campaign,
                epoch=int(file.partition("-")[0]),
                fingerprint=fingerprint,
                window=window,
                seconds=int(length.total_seconds()),
                authentication=whose.way,
                segments=listed,
            )
            target = deployment.folder("segments", epochs.campaign, file, window, manifest_name(whose.collector, id))
            storage.write_json(target, manifest.model_dump(mode="json"), LISTING_BYTES)
    return made


def _looked_through(deployment: Deployment, segment: SegmentPath, size: int) -> tuple[SegmentPart, str]:
    """Return the entry of a manifest for an orphan, and the fingerprint of the orphan's campaign file.

    Raises:
        UsageError: the file is cut, or is not a segment of the campaign file and stream that its folder names.
    """
    path = deployment.folder("segments", str(segment))
    header = header_of(path)
    fingerprint = header.campaign.hex()
    epoch = segment.file.partition("-")[0]
    placed = epoch.isdecimal() and segment.file == folder_name(int(epoch), fingerprint)
    if not placed or header.kind != ENVELOPES[cast(Stream, segment.stream)] or header.file_bytes != size:
        of = f"{segment.campaign}/{segment.file} {segment.stream}"
        raise UsageError(f"{path} is not a complete segment of {of}: restore it, or remove it")
    try:
        digest = storage.digest_of(path)[1]
        return SegmentPart(name=segment.name, records=header.records, bytes=size, digest=digest), fingerprint
    except ValidationError as error:
        raise UsageError(f"{path} cannot be listed: {explain(error)}") from None
