"""The collector's metrics for Prometheus: numbers by campaign, stream and reason, and nothing about a sender."""

from __future__ import annotations

from prometheus_client import Histogram

from service.metrics import ServiceMetrics

_PREFIX = "hushcount_collector_"
_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics(ServiceMetrics):
    """All metrics of one collector, in a registry of its own."""

    def __init__(self) -> None:
        super().__init__(_PREFIX)
        self.reports = self.counter("reports", "Reports acknowledged.", "campaign", "epoch", "stream")
        self.waiting = self.gauge("reports_waiting", "Reports that wait for their write to the journal.")
        self.commit_seconds = Histogram(
            f"{_PREFIX}commit_seconds",
            "Seconds to write and sync a group of reports.",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.journal_failures = self.counter("journal_failures", "Failed writes to journals.")
        self.segments = self.counter("segments", "Segments written to the store.")
        self.manifests = self.counter("manifests", "Manifests written to the store.")
        self.pending_uploads = self.gauge("pending_uploads", "Journals and windows that wait for their upload.")
        self.store_failures = self.counter("store_failures", "Failed writes to the store and failed probes of it.")
        self.local_upload_failures = self.counter(
            "local_upload_failures", "Uploads that failed on the journal's disk; the collector tries each again."
        )
        self.damaged = self.counter("damaged_reports", "Reports in damaged frames of journals, as far as is known.")
        self.damaged_frames = self.counter("damaged_frames", "Damaged frames or stretches of journals.")
        self.damaged_counts = self.counter("damaged_counts", "Damaged files of refusal counts.")
        self.free_bytes = self.gauge("free_bytes", "Free bytes on the journal's disk.")
