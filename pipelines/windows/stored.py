"""List the files that collectors stored in the folder of segments, for all campaigns or only of open windows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

from hushcount.collection.manifests import SUFFIX
from hushcount.collection.windows import Window
from pipelines.deployment.settings import Deployment, WindowsPart
from pipelines.files import storage
from pipelines.handover.paths import SegmentPath
from pipelines.log.fold import Fold

_MARGIN = timedelta(days=1)
"""A listing begins this much before the oldest open window: clocks of collectors and of the store may differ."""
_IN_WINDOW = 4
"""The number of names in the path of a manifest: CAMPAIGN/EPOCH-FINGERPRINT/WINDOW/NAME."""


class StoredFile(NamedTuple):
    """A file in the folder of segments.

    Attributes:
        path: the file's path, relative to the folder of segments.
        written: when the store received the file, in seconds since 1970, by the store's clock.
    """

    path: str
    bytes: int
    written: float


Stored = Mapping[str, Sequence[StoredFile]]
"""The stored files of each campaign."""


def stored_files(deployment: Deployment, recent: Mapping[str, Fold] | None = None, campaign: str = "") -> Stored:
    """Return the files in the folder of segments, also those of unknown campaigns.

    Call this function after reading the logs.

    Args:
        campaign: the campaign to list; empty: all campaigns are listed.
        recent: the folds of some campaigns; windows of these campaigns that no manifest can join in time are left out.
    """
    root, found = deployment.folder("segments"), defaultdict[str, list[StoredFile]](list)
    first = {campaign: oldest_open(fold, deployment.windows) for campaign, fold in (recent or {}).items()}
    place, depth = (storage.join(root, campaign), 1) if campaign else (root, 2)
    for path, size, written in storage.list_from(place, depth, lambda below: first.get(below.partition("/")[0], "")):
        relative = storage.relative(path, root)
        found[relative.partition("/")[0]].append(StoredFile(relative, size, written))
    return found


def oldest_open(fold: Fold, windows: WindowsPart) -> str:
    """Return the name of the oldest window that a manifest can still join in time; empty if every window can be joined.

    No segment of an older window waits, or is in a batch that is not shuffled. A new manifest for an older window is
    too late, so it is enough that the next listing of all windows finds it.
    """
    if fold.closed is None:
        return ""
    lengths = [*(one.window.length for one in fold.windows.values()), *(one.tiling.longest for one in fold.times)]
    longest = max([windows.tiling.longest, *lengths])
    grace = max([windows.grace, *(one.grace for one in fold.times)])
    needed = [segment.window.start for segment in fold.waiting.values()]
    needed += [one.oldest for name, one in fold.batches.items() if fold.is_undone(name)]
    oldest = min([fold.closed - longest - grace, *needed]) - _MARGIN
    name = Window(oldest, oldest).name
    # If a campaign has no older window, the whole campaign is listed.
    return name if any(known < name for known in fold.windows) else ""


def manifests_in(files: Sequence[StoredFile]) -> list[StoredFile]:
    """Return the manifests among a campaign's files, sorted by path."""
    return sorted(one for one in files if one.path.endswith(SUFFIX) and len(one.path.split("/")) == _IN_WINDOW)


def segments_in(files: Sequence[StoredFile]) -> dict[SegmentPath, int]:
    """Return the size in bytes of each segment among a campaign's files, sorted by path."""
    return {segment: one.bytes for one in sorted(files) if (segment := SegmentPath.parse(one.path)) is not None}
