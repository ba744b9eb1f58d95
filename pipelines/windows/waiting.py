"""Reports that wait in the store, and when they are dropped; run, status and doctor warn before reports are dropped."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from hushcount.campaigns.campaign import Stream
from hushcount.collection.epochs import COLLECTION_FILE, folder_name
from hushcount.formats.reading import MOST_SEGMENTS
from pipelines.deployment.settings import Deployment
from pipelines.ledger.clock import shown
from pipelines.log.fold import Fold
from pipelines.log.segments import File, Segment
from pipelines.windows.closing import Rule
from pipelines.windows.stored import Stored, segments_in

Verdict = Literal["warning", "bad"]


@dataclass(frozen=True)
class Waiting:
    """Acknowledged reports of one stream of a campaign file that no batch has taken, although their window has closed.

    Attributes:
        reports: the number of waiting reports, from all closed windows.
        window: the oldest window with waiting reports.
        oldest: the number of waiting reports from this oldest window.
        dropped: the time after which the reports of the oldest window are dropped as too_late, in ISO 8601.
        verdict: warning; or bad, if only the present window, or no window, can still take the reports.
        says: a sentence that states all these fields, and the cure.
    """

    epoch: int
    stream: str
    reports: int
    window: str
    oldest: int
    dropped: str
    verdict: Verdict
    says: str


def waiting_of(fold: Fold, rule: Rule, now: datetime) -> list[Waiting]:
    """Return the waiting reports of a campaign."""
    campaign = fold.campaign
    numbers: dict[tuple[File, Stream], list[Segment]] = defaultdict(list)
    for path, segment in fold.waiting.items():
        # A segment that is put aside waits until its file is restored, and not for a window.
        if path not in fold.aside:
            numbers[segment.file, segment.stream].append(segment)
    found = []
    for ((epoch, fingerprint), stream), segments in sorted(numbers.items()):
        first, total = min(one.window for one in segments), sum(one.records for one in segments)
        oldest = sum(one.records for one in segments if one.window == first)
        ends = rule.calendar.grace_ends(first)
        file = rule.files.get((epoch, fingerprint))
        taken = file is not None and stream in file.streams
        few = ""
        if file is None:
            why = f"their campaign file, {folder_name(epoch, fingerprint)}, is not published here: publish it"
        elif not taken:
            why = "their campaign file has no such stream: find out which collector stored them"
        else:
            floor = file.shuffle.minimum_batch
            if (missing := floor - total) > 0:
                few = f", too few for a result, which needs {floor:,}"
                unless = f"at least {missing:,} more come by then"
            else:
                unless = (
                    "a window that closes by then brings enough reports that can be forwarded, or takes the segments "
                    f"that a batch of {MOST_SEGMENTS:,} segments left"
                )
            why = f"unless {unless}; a longer windows.grace gives more time"
        # The last window that can take these segments is the first window that ends at or after the end of their grace.
        last = rule.calendar.window_at(ends - timedelta(seconds=1))
        verdict: Verdict = "warning" if taken and now < last.start else "bad"
        says = (
            f"{campaign} epoch {epoch}: {total:,} {stream} wait{few}; {oldest:,} of window {first.text} are "
            f"dropped as too_late after {shown(ends)}{',' if taken else ':'} {why}"
        )
        found.append(Waiting(epoch, stream, total, first.name, oldest, ends.isoformat(), verdict, says))
    return found


def unclaimed(deployment: Deployment, stored: Stored, campaigns: Container[str]) -> dict[str, str]:
    """Return a sentence, by campaign id, for each campaign with waiting segments but no file: no run takes them."""
    found = {campaign: len(segments_in(files)) for campaign, files in stored.items() if campaign not in campaigns}
    return {
        campaign: f"{campaign}: {number:,} segments wait in {deployment.folder('segments', campaign)}, and no run "
        f"takes them: {deployment.campaigns / campaign} has no {COLLECTION_FILE}; publish the campaign file there with "
        "hushcount campaign publish, or remove the segments if the campaign is not yours"
        for campaign, number in sorted(found.items())
        if number
    }
