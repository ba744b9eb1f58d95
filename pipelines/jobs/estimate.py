"""hushcount job estimate: ask a stored tally again, for other items."""

from __future__ import annotations

from pathlib import Path

from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.oracles.estimates import Levels
from pipelines.jobs import results
from pipelines.outputs.counts import StreamCounts
from pipelines.outputs.received_summary import file_of
from pipelines.outputs.staging import require_free, staged, write_summary
from pipelines.outputs.summary import HopSummary, make_summary


def estimate(
    campaign_path: Path,
    tally_path: str,
    items: Path,
    out: str,
    *,
    levels: Levels | None = None,
    overwrite: bool = False,
) -> HopSummary:
    """Estimate items from a tally.npz; write estimates.parquet, estimates.csv, report.html and summary.json.

    Raises:
        UsageError: a file is missing or invalid, an item is not in the dictionary, or `out` is taken.
    """
    campaign = Campaign.read(campaign_path)
    mechanism = campaign.require_frequency()
    require_free(out, overwrite, ("estimate",), (tally_path, items, campaign_path))
    wanted = results.wanted_items(mechanism, campaign.read_dictionary(), results.read_names(items))
    tally = results.read_tally(file_of(tally_path), campaign)
    results.require_counted(mechanism, tally, wanted)
    counts: dict[Stream, StreamCounts] = {"reports": StreamCounts(tally.reports, tally.reports, {})}
    with staged(out, overwrite) as directory:
        summary = make_summary("estimate", campaign, counts, tally.reports, senders=tally.senders)
        summary = results.write_results(directory, campaign, tally, wanted, levels or Levels(), summary)
        return write_summary(directory, summary)
