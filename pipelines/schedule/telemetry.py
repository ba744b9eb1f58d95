"""OpenTelemetry metrics of what `hushcount run` did: reports by hop and outcome, seconds by hop, problems.

Switched on by the variables that OpenTelemetry itself uses: OTEL_EXPORTER_OTLP_ENDPOINT or
OTEL_EXPORTER_OTLP_METRICS_ENDPOINT. Attributes are the names of campaign, hop, stream and outcome; nothing of a report
is known here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hushcount.errors import UsageError
from pipelines.outputs.counts import HopCounts

if TYPE_CHECKING:
    from opentelemetry.metrics import Counter, Histogram
    from opentelemetry.metrics import _Gauge as Gauge
    from opentelemetry.sdk.metrics.export import MetricReader

_VARIABLES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT")


@dataclass(frozen=True)
class Telemetry:
    """Instruments of one run; without any, all of it does nothing.

    Attributes:
        reports: counter of reports by campaign, hop, stream and outcome: accepted, or the reason of the rejection.
        seconds: histogram of how long a hop took.
        problems: counter of what failed, by campaign.
        segments: gauge of the collected reports by campaign, stream and where they are: batched, waiting, too_late or
            quarantined.
    """

    reports: Counter | None = None
    seconds: Histogram | None = None
    problems: Counter | None = None
    segments: Gauge | None = None

    def hop(self, campaign: str, counted: HopCounts, seconds: float) -> None:
        """Add what a job counted."""
        hop = counted.hop
        if self.seconds is not None:
            self.seconds.record(seconds, {"campaign": campaign, "hop": hop})
        if self.reports is None:
            return
        for stream, counts in counted.streams.items():
            for outcome, number in {"accepted": counts.accepted, **counts.rejected}.items():
                names = {"campaign": campaign, "hop": hop, "stream": stream, "outcome": outcome}
                self.reports.add(number, names)

    def collected(self, campaign: str, numbers: Mapping[tuple[str, str], int]) -> None:
        """Set how many collected reports are where, by stream and state."""
        if self.segments is not None:
            for (stream, state), number in numbers.items():
                self.segments.set(number, {"campaign": campaign, "stream": stream, "state": state})

    def add_problems(self, campaign: str, number: int) -> None:
        """Add failures."""
        if self.problems is not None:
            self.problems.add(number, {"campaign": campaign})


@contextmanager
def telemetry(reader: MetricReader | None = None) -> Iterator[Telemetry]:
    """Yield the instruments of a run, and send what they counted when the block ends.

    Args:
        reader: where to; an OTLP exporter, if the environment names an endpoint, when not given.

    Raises:
        UsageError: an endpoint is named, but OpenTelemetry is not installed.
    """
    if reader is None and not any(os.environ.get(name) for name in _VARIABLES):
        yield Telemetry()
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import Resource
    except ImportError:
        raise UsageError(
            f"{_VARIABLES[0]} is set, but OpenTelemetry is missing: pip install 'hushcount-server[telemetry]'"
        ) from None
    sink = reader or PeriodicExportingMetricReader(OTLPMetricExporter())
    provider = MeterProvider([sink], resource=Resource.create({"service.name": "hushcount"}), shutdown_on_exit=False)
    meter = provider.get_meter("hushcount")
    try:
        yield Telemetry(
            meter.create_counter("hushcount.reports", "{report}", "Reports by hop and outcome."),
            meter.create_histogram("hushcount.hop.duration", "s", "How long a hop took."),
            meter.create_counter("hushcount.problems", "{problem}", "What a run could not do."),
            meter.create_gauge("hushcount.collected", "{report}", "Collected reports by where they are."),
        )
    finally:
        provider.shutdown()
