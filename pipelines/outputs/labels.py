"""Names of streams in a job's counts, and the kinds of their files."""

from __future__ import annotations

from collections.abc import Mapping

from hushcount.campaigns.campaign import Stream
from hushcount.wire.blocks import Kind
from pipelines.outputs.counts import StreamCounts

SEALED: dict[Stream, Kind] = {"reports": Kind.SEALED_REPORTS, "discovery": Kind.SEALED_DISCOVERY}


def label(count: tuple[str, int], stream: str) -> tuple[str, int]:
    """Name the stream of a count."""
    return f"{stream}:{count[0]}", count[1]


def counts_of(sums: Mapping[str, int], streams: tuple[Stream, ...]) -> dict[Stream, StreamCounts]:
    """Return each stream's counts from the labelled sums of a job."""
    return {
        stream: StreamCounts.of(
            {name.partition(":")[2]: number for name, number in sums.items() if name.startswith(f"{stream}:")}
        )
        for stream in streams
    }
