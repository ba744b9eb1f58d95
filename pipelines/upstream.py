"""A job's input must be the whole output of the hop before it: its summary is there, and its counts are met."""

from __future__ import annotations

from hushcount.campaign import Campaign
from hushcount.errors import UsageError
from pipelines import storage
from pipelines.block_io import BlockFile, total_records
from pipelines.staging import SUMMARY
from pipelines.summary import Summary


def read_upstream(directory: str, hop: str, campaign: Campaign) -> Summary:
    """Read the summary of the hop before.

    Raises:
        UsageError: the directory is no complete output of that hop for this campaign.
    """
    path = storage.join(directory, SUMMARY)
    if not storage.exists(path):
        raise UsageError(f"input directory {directory} is no complete output of hushcount {hop}: it has no {SUMMARY}")
    summary = storage.read_json(path)
    if summary.get("hop") != hop:
        raise UsageError(f"input directory {directory} was written by hushcount {summary.get('hop')}, must be of {hop}")
    if summary.get("fingerprint") != campaign.fingerprint.hex():
        raise UsageError(
            f"input directory {directory} is of campaign {summary.get('campaign')} with fingerprint "
            f"{summary.get('fingerprint')}, the campaign file has {campaign.fingerprint.hex()}: give the file it "
            "was made with"
        )
    return summary


def check_complete(upstream: Summary, stream: str, files: list[BlockFile], directory: str) -> None:
    """Check that the files hold as many records as the hop before forwarded.

    Raises:
        UsageError: a file is missing or foreign.
    """
    forwarded, found = upstream["streams"].get(stream, {}).get("accepted", 0), total_records(files)
    if forwarded != found:
        raise UsageError(f"{storage.join(directory, stream)} holds {found} records, its summary says {forwarded}")
