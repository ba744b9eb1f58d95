"""What waits after its window has closed, and when it is dropped: said before it happens, by run, status and doctor."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Literal

from sqlalchemy import Connection, and_, func, select

from hushcount.campaigns.campaign import Campaign
from hushcount.collection.epochs import folder_name
from hushcount.collection.windows import window_at
from hushcount.formats.reading import MOST_SEGMENTS
from pipelines.batches.closing import full
from pipelines.batches.rows import closed_windows, known_windows
from pipelines.batches.state import SEGMENTS
from pipelines.deployment.settings import WindowsPart

_TIME = "%Y-%m-%d %H:%M UTC"
Verdict = Literal["warning", "bad"]


@dataclass(frozen=True)
class Waiting:
    """Acknowledged reports of one stream of one campaign file that no batch has taken though their window has closed.

    Attributes:
        epoch: of the campaign file.
        stream: reports or discovery.
        reports: how many, of all windows.
        window: the oldest one's name.
        oldest: how many are of that window.
        dropped: after when these are counted as too_late, in ISO 8601.
        verdict: warning; bad, if only the present window can still take them, or none can.
        says: a sentence with all of this, and what would prevent it.
    """

    epoch: int
    stream: str
    reports: int
    window: str
    oldest: int
    dropped: str
    verdict: Verdict
    says: str


def waiting_of(
    connection: Connection,
    campaign: str,
    files: Mapping[tuple[int, str], Campaign],
    windows: WindowsPart,
    now: datetime,
) -> list[Waiting]:
    """Return what waits of a campaign.

    Args:
        connection: to the state.
        campaign: id.
        files: campaign files by epoch and the digits of the fingerprint.
        windows: length and grace period.
        now: the present.
    """
    known, closed = known_windows(connection, campaign), closed_windows(connection, campaign)
    by = (SEGMENTS.c.epoch, SEGMENTS.c.fingerprint, SEGMENTS.c.stream, SEGMENTS.c.window)
    mine = and_(SEGMENTS.c.campaign == campaign, SEGMENTS.c.state == "waiting")
    numbers: dict[tuple[int, str, str], dict[str, int]] = defaultdict(dict)
    sums = select(*by, func.sum(SEGMENTS.c.records)).where(mine).group_by(*by)
    for epoch, fingerprint, stream, window, records in connection.execute(sums):
        numbers[epoch, fingerprint, stream][window] = int(records)
    found = []
    for (epoch, fingerprint, stream), by_window in sorted(numbers.items()):
        # What has come of a window that is not closed yet does not wait: it may be taken when that closes.
        left = {window: number for window, number in by_window.items() if window in closed}
        if not left:
            continue
        oldest = min(left, key=lambda name: known[name].end)
        ends = known[oldest].end + windows.grace
        file = files.get((epoch, fingerprint))
        taken = file is not None and stream in file.streams
        if file is None:
            why = f"their campaign file, {folder_name(epoch, fingerprint)}, is not published here: publish it"
        elif not taken:
            why = "their campaign file has no such stream: see which collector stored them"
        else:
            floor = file.shuffle.minimum_batch
            if (missing := floor - sum(by_window.values())) > 0:
                unless = f"at least {missing:,} more come by then"
            elif full(connection, campaign, epoch, fingerprint, stream):
                unless = (
                    "a window that closes by then takes them: the last batch took all the segments that it can, "
                    f"{MOST_SEGMENTS:,}, so that collectors need a greater segment_bytes"
                )
            else:
                unless = "a window that closes by then brings enough that can be forwarded"
            why = f"unless {unless}; the minimum batch is {floor:,}, a longer windows.grace gives them time"
        # Of the windows that end in time the last one.
        last = window_at(ends, windows.length)
        verdict: Verdict = "warning" if taken and now < last.start - windows.length else "bad"
        total = sum(left.values())
        says = (
            f"{campaign} epoch {epoch}: {total:,} {stream} wait; {left[oldest]:,} of window {oldest} are dropped as "
            f"too_late after {ends.astimezone(timezone.utc):{_TIME}}{',' if taken else ':'} {why}"
        )
        found.append(Waiting(epoch, stream, total, oldest, left[oldest], ends.isoformat(), verdict, says))
    return found


def dropped(connection: Connection, campaign: str) -> dict[str, tuple[int, str]]:
    """Return how many reports of each segment are too late, and why, by its path."""
    mine = and_(SEGMENTS.c.campaign == campaign, SEGMENTS.c.state == "too_late")
    return {row.path: (row.records, row.reason) for row in connection.execute(select(SEGMENTS).where(mine))}
