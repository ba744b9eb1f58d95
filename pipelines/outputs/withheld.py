"""Withhold a result if too few reports were accepted: check this during a job, and make a summary without a result.

If a batch is below the minimum batch, every report is counted, but no estimate, tally, kept bin or dead letter is
written. Reports that were opened cannot be used again: they left the shuffler, and no later batch contains them
(docs/adr/0003).
"""

from __future__ import annotations

from dataclasses import replace
from operator import itemgetter
from typing import Any

import apache_beam as beam
from apache_beam.pvalue import AsSingleton, PCollection

from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.errors import TooFewOpened
from hushcount.reasons import Reason
from pipelines.outputs.counting import Sums
from pipelines.outputs.counts import BinCounts, HopCounts, Opening, StreamCounts
from pipelines.outputs.summary import HopSummary, make_summary

REASON: Reason = "below_minimum"


class Withheld(TooFewOpened):
    """Fewer reports were accepted than the minimum batch. `summary` counts the reports, and is not written yet."""

    def __init__(self, message: str, summary: HopSummary) -> None:
        super().__init__(message)
        self.summary = summary


def enough(counts: PCollection, stream: Stream, campaign: Campaign) -> Any:
    """Return a side input that is true if a stream's accepted reports reach the minimum batch.

    Args:
        counts: elements (number of the order, count with the stream in its name).
    """
    return AsSingleton(
        counts
        | f"counts of {stream} for the minimum" >> beam.Map(itemgetter(1))
        | f"sums of {stream} for the minimum" >> beam.CombineGlobally(Sums())
        | f"minimum of {stream}" >> beam.Map(_reaches, f"{stream}:accepted", campaign)
    )


def _reaches(sums: dict[str, int], name: str, campaign: Campaign) -> bool:
    return campaign.reaches_minimum(sums.get(name, 0))


def require_minimum(
    hop: str, campaign: Campaign, stream: Stream, counts: StreamCounts, upstream: HopSummary, opening: Opening
) -> None:
    """Raise Withheld if fewer reports were accepted than the minimum batch."""
    if campaign.reaches_minimum(counts.accepted):
        return
    summary = withheld_summary(hop, campaign, stream, counts, upstream, opening)
    raise Withheld(f"{sentence(campaign, summary)}; nothing was written or charged", summary)


def withheld_summary(
    hop: str,
    campaign: Campaign,
    stream: Stream,
    counts: StreamCounts,
    upstream: HopSummary | None,
    opening: Opening | None = None,
) -> HopSummary:
    """Return a summary without a result, which counts accepted reports as below_minimum."""
    rejected = {**counts.rejected, REASON: counts.accepted}
    streams: dict[Stream, StreamCounts] = {stream: StreamCounts(counts.received, 0, rejected)}
    summary = make_summary(hop, campaign, streams, None, upstream, opening=opening)
    return replace(summary, released=0) if hop == "release" else summary


def pass_on_withheld(campaign: Campaign, released: HopSummary) -> None:
    """Raise Withheld if the auxiliary server withheld its release; the error's summary has the release's counts."""
    if is_withheld(released):
        pairs: dict[Stream, StreamCounts] = {"discovery": released.streams["discovery"]}
        summary = replace(make_summary("discover", campaign, pairs, None, released), bins=BinCounts(0, 0, {}))
        raise Withheld(f"{sentence(campaign, released)}; nothing was written or charged", summary)


def is_withheld(counted: HopCounts) -> bool:
    """Return whether a hop made no result because it accepted too few reports."""
    return any(REASON in counts.rejected for counts in counted.streams.values())


def sentence(campaign: Campaign, withheld: HopCounts) -> str:
    """Return a sentence with the counts of a hop that made no result, and why it made none."""
    (stream, counts) = next((name, part) for name, part in withheld.streams.items() if REASON in part.rejected)
    reasons = ", ".join(f"{reason} {number}" for reason, number in counts.rejected.items() if reason != REASON)
    return (
        f"{counts.rejected[REASON]} of {counts.received} {stream} could be opened and accepted "
        f"({reasons or 'none rejected'}), fewer than the minimum batch, {campaign.shuffle.minimum_batch}: there is no "
        "result, and the reports join no other batch"
    )
