"""The minimum batch where reports are opened. The shuffler counts junk, which it cannot tell from reports.

What stays below it is counted, to the last report, and nothing else: no estimate, tally, kept bin or dead letter. Its
reports are spent: they were shuffled and handed on, and no later batch takes them up (docs/adr/0003).
"""

from __future__ import annotations

from typing import Any

import apache_beam as beam
from apache_beam.pvalue import AsSingleton, PCollection

from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.errors import TooFewOpened
from hushcount.reasons import Reason
from pipelines.outputs.summary import StreamCounts, Summary, make_summary

REASON: Reason = "below_minimum"
Hop = str


def enough(labelled: PCollection, stream: Stream, campaign: Campaign) -> Any:
    """Return a side input: whether a job accepted the minimum batch of a stream, by its labelled counts."""
    return AsSingleton(
        labelled
        | "sum for the minimum" >> beam.CombinePerKey(sum)
        | "sums for the minimum" >> beam.combiners.ToDict()
        | "minimum of opened" >> beam.Map(_reaches, f"{stream}:accepted", campaign.shuffle.minimum_batch)
    )


def _reaches(sums: dict[str, int], name: str, floor: int) -> bool:
    return sums.get(name, 0) >= floor


def require_minimum(hop: Hop, campaign: Campaign, stream: Stream, counts: StreamCounts, upstream: Summary) -> None:
    """Refuse to make a result of fewer accepted reports than the minimum batch.

    Raises:
        TooFewOpened: with the summary that counts them all.
    """
    if counts.accepted >= campaign.shuffle.minimum_batch:
        return
    summary = withheld_summary(hop, campaign, stream, counts, upstream)
    raise TooFewOpened(f"{sentence(campaign, summary)}; nothing was written or charged", summary)


def withheld_summary(
    hop: Hop, campaign: Campaign, stream: Stream, counts: StreamCounts, upstream: Summary | None
) -> Summary:
    """Return a summary that counts what was accepted as below_minimum, and holds no result."""
    rejected = {**counts.rejected, REASON: counts.accepted}
    summary = make_summary(hop, campaign, {stream: StreamCounts(counts.received, 0, rejected)}, None, upstream)
    if hop == "release":
        summary["released"] = 0
    return summary


def pass_on_withheld(campaign: Campaign, released: Summary) -> None:
    """Stop the analyzer's half of a discovery that the auxiliary server released nothing of.

    Raises:
        TooFewOpened: it released nothing; with the analyzer's summary, of the same counts.
    """
    if is_withheld(released):
        pairs = StreamCounts(**released["streams"]["discovery"])
        summary = make_summary("discover", campaign, {"discovery": pairs}, None, released)
        summary["bins"] = {"kept": 0, "found": 0, "rejected": {}}
        raise TooFewOpened(f"{sentence(campaign, released)}; nothing was written or charged", summary)


def is_withheld(summary: Summary) -> bool:
    """Return whether a hop made no result because too few reports were accepted."""
    return any(REASON in counts["rejected"] for counts in summary["streams"].values())


def sentence(campaign: Campaign, summary: Summary) -> str:
    """Say of a withheld summary what came and why there is no result."""
    (stream, counts) = next((name, part) for name, part in summary["streams"].items() if REASON in part["rejected"])
    reasons = ", ".join(f"{reason} {number}" for reason, number in counts["rejected"].items() if reason != REASON)
    return (
        f"{counts['rejected'][REASON]} of {counts['received']} {stream} could be opened and accepted "
        f"({reasons or 'no other came'}), fewer than the minimum batch, {campaign.shuffle.minimum_batch}: there is no "
        "result, and they join no other batch"
    )
