"""OpenTelemetry metrics of what `hushcount run` did: reports by hop and outcome, seconds by hop, problems.

OpenTelemetry's own variables switch them on: OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_METRICS_ENDPOINT.
Attributes are the names of campaign, hop, stream and outcome; nothing here knows a report.
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
    """Instruments of one run; those that are None record nothing.

    Attributes:
        segments: collected reports by campaign, stream and state of their segment.
    """

    reports: Counter | None = None
    seconds: Histogram | None = None
    problems: Counter | None = None
    segments: Gauge | None = None

    def hop(self, campaign: str, counted: HopCounts, seconds: float) -> None:
        """Add what a job counted."""
        names = {"campaign": campaign, "hop": counted.hop}
        if self.seconds is not None:
            self.seconds.record(seconds, names)
        if self.reports is not None:
            for stream, counts in counted.streams.items():
                for outcome, number in {"accepted": counts.accepted, **counts.rejected}.items():
                    self.reports.add(number, {**names, "stream": stream, "outcome": outcome})

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

    Raises:
        UsageError: the environment names an endpoint, but OpenTelemetry is not installed.
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
