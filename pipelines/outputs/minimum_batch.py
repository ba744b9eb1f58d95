"""The minimum batch where reports are opened. The shuffler counts junk, which it cannot tell from reports.

What stays below it is counted, to the last report, and nothing else: no estimate, tally, kept bin or dead letter. Its
reports are spent: they were shuffled and handed on, and no later batch takes them up (docs/adr/0003).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import apache_beam as beam
from apache_beam.pvalue import AsSingleton, PCollection

from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.reasons import Reason
from pipelines.outputs.counts import BinCounts, HopCounts, StreamCounts
from pipelines.outputs.no_result import Withheld
from pipelines.outputs.summary import HopSummary, make_summary

REASON: Reason = "below_minimum"
Hop = str


def enough(labelled: PCollection, stream: Stream, campaign: Campaign) -> Any:
    """Return a side input: whether a job accepted the minimum batch of a stream, by its labelled counts."""
    return AsSingleton(
        labelled
        | f"sum {stream} for the minimum" >> beam.CombinePerKey(sum)
        | f"sums of {stream} for the minimum" >> beam.combiners.ToDict()
        | f"minimum of {stream}" >> beam.Map(_reaches, f"{stream}:accepted", campaign.shuffle.minimum_batch)
    )


def _reaches(sums: dict[str, int], name: str, floor: int) -> bool:
    return sums.get(name, 0) >= floor


def require_minimum(hop: Hop, campaign: Campaign, stream: Stream, counts: StreamCounts, upstream: HopSummary) -> None:
    """Refuse to make a result of fewer accepted reports than the minimum batch.

    Raises:
        Withheld: with the summary that counts them all.
    """
    if counts.accepted >= campaign.shuffle.minimum_batch:
        return
    summary = withheld_summary(hop, campaign, stream, counts, upstream)
    raise Withheld(f"{sentence(campaign, summary)}; nothing was written or charged", summary)


def withheld_summary(
    hop: Hop, campaign: Campaign, stream: Stream, counts: StreamCounts, upstream: HopSummary | None
) -> HopSummary:
    """Return a summary that counts what was accepted as below_minimum, and holds no result."""
    rejected = {**counts.rejected, REASON: counts.accepted}
    summary = make_summary(hop, campaign, {stream: StreamCounts(counts.received, 0, rejected)}, None, upstream)
    return replace(summary, released=0) if hop == "release" else summary


def pass_on_withheld(campaign: Campaign, released: HopSummary) -> None:
    """Stop the analyzer's half of a discovery that the auxiliary server released nothing of.

    Raises:
        Withheld: it released nothing; with the analyzer's summary, of the same counts.
    """
    if is_withheld(released):
        pairs: dict[Stream, StreamCounts] = {"discovery": released.streams["discovery"]}
        summary = replace(make_summary("discover", campaign, pairs, None, released), bins=BinCounts(0, 0, {}))
        raise Withheld(f"{sentence(campaign, released)}; nothing was written or charged", summary)


def is_withheld(counted: HopCounts) -> bool:
    """Return whether a hop made no result because too few reports were accepted."""
    return any(REASON in counts.rejected for counts in counted.streams.values())


def sentence(campaign: Campaign, withheld: HopCounts) -> str:
    """Say of a withheld summary what came and why there is no result."""
    (stream, counts) = next((name, part) for name, part in withheld.streams.items() if REASON in part.rejected)
    reasons = ", ".join(f"{reason} {number}" for reason, number in counts.rejected.items() if reason != REASON)
    return (
        f"{counts.rejected[REASON]} of {counts.received} {stream} could be opened and accepted "
        f"({reasons or 'no other came'}), fewer than the minimum batch, {campaign.shuffle.minimum_batch}: there is no "
        "result, and they join no other batch"
    )
