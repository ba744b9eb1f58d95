"""Send the metrics of a look by OpenTelemetry's protocol, with the same names as in the text file.

OpenTelemetry's own environment variables switch sending on: OTEL_EXPORTER_OTLP_ENDPOINT or
OTEL_EXPORTER_OTLP_METRICS_ENDPOINT.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from prometheus_client.core import Metric

from hushcount.errors import UsageError

_VARIABLES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT")


def is_on() -> bool:
    """Return whether the environment names an endpoint."""
    return any(os.environ.get(name) for name in _VARIABLES)


def send(families: Sequence[Metric]) -> None:
    """Send metrics once; if the endpoint fails, OpenTelemetry logs the failure.

    Raises:
        UsageError: OpenTelemetry is not installed.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import Resource
    except ImportError:
        raise UsageError(
            f"{_VARIABLES[0]} is set, but OpenTelemetry is missing: pip install 'hushcount-server[telemetry]'"
        ) from None
    reader = PeriodicExportingMetricReader(OTLPMetricExporter())
    resource = Resource.create({"service.name": "hushcount"})
    provider = MeterProvider([reader], resource=resource, shutdown_on_exit=False)
    meter = provider.get_meter("hushcount")
    for family in families:
        described = {"name": family.name, "description": family.documentation}
        tell = meter.create_gauge(**described).set if family.type == "gauge" else meter.create_counter(**described).add
        for sample in family.samples:
            tell(sample.value, sample.labels)
    provider.shutdown()
