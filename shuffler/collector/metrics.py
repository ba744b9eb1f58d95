"""The collector's metrics for Prometheus: numbers by campaign, stream and reason, and nothing about a sender."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.process_collector import ProcessCollector

_PREFIX = "hushcount_collector_"
_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """All metrics of one collector, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.reports = self._counter("reports", "Reports acknowledged.", "campaign", "epoch", "stream")
        self.refused = self._counter("requests_refused", "Requests refused, by reason.", "reason")
        self.incomplete = self._counter("requests_incomplete", "Requests that never became complete.")
        self.waiting = self._gauge("reports_waiting", "Reports that wait for their write to the journal.")
        self.incoming = self._gauge("incoming_bytes", "Bytes of incomplete bodies.")
        self.commit_seconds = Histogram(
            f"{_PREFIX}commit_seconds",
            "Seconds to write and sync a group of reports.",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.journal_failures = self._counter("journal_failures", "Failed writes to journals.")
        self.segments = self._counter("segments", "Segments written to the store.")
        self.manifests = self._counter("manifests", "Manifests written to the store.")
        self.pending_uploads = self._gauge("pending_uploads", "Journals and windows that wait for their upload.")
        self.store_failures = self._counter("store_failures", "Failed writes to the store and failed probes of it.")
        self.local_upload_failures = self._counter(
            "local_upload_failures", "Uploads that failed on the journal's disk; the collector tries each again."
        )
        self.damaged = self._counter("damaged_reports", "Reports in damaged frames of journals, as far as is known.")
        self.damaged_frames = self._counter("damaged_frames", "Damaged frames or stretches of journals.")
        self.damaged_counts = self._counter("damaged_counts", "Damaged files of refusal counts.")
        self.free_bytes = self._gauge("free_bytes", "Free bytes on the journal's disk.")
        self.ready = self._gauge("ready", "1 if ready, else 0.")
        ProcessCollector(registry=self.registry)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(_PREFIX + name, text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(_PREFIX + name, text, registry=self.registry)
