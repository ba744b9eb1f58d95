"""The Prometheus metrics that every service has; no metric is about a single sender."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.process_collector import ProcessCollector


class ServiceMetrics:
    """Metrics of one service, in a registry of its own; their names have the same prefix."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.registry = CollectorRegistry()
        self.refused = self.counter("requests_refused", "Requests refused, by reason.", "reason")
        self.incomplete = self.counter("requests_incomplete", "Requests that never became complete.")
        self.incoming = self.gauge("incoming_bytes", "Bytes of incomplete bodies.")
        self.ready = self.gauge("ready", "1 if ready, else 0.")
        ProcessCollector(registry=self.registry)

    def counter(self, name: str, text: str, *labels: str) -> Counter:
        """Return a new counter."""
        return Counter(self.prefix + name, text, labels, registry=self.registry)

    def gauge(self, name: str, text: str) -> Gauge:
        """Return a new gauge."""
        return Gauge(self.prefix + name, text, registry=self.registry)
