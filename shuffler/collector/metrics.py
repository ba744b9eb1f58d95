"""What the collector tells Prometheus: numbers by campaign, stream and reason, never anything of a sender."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.process_collector import ProcessCollector

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """All metrics of one collector, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        prefix, registry = "hushcount_collector_", self.registry
        self.reports = Counter(
            f"{prefix}reports", "Reports acknowledged.", ("campaign", "epoch", "stream"), registry=registry
        )
        self.refused = Counter(
            f"{prefix}requests_refused", "Requests refused, by reason.", ("reason",), registry=registry
        )
        self.incomplete = Counter(
            f"{prefix}requests_incomplete",
            "Requests that were never complete.",
            registry=registry,
        )
        self.waiting = Gauge(f"{prefix}reports_waiting", "Reports that wait for the journal.", registry=registry)
        self.incoming = Gauge(f"{prefix}incoming_bytes", "Bytes of bodies that are not complete.", registry=registry)
        self.commit_seconds = Histogram(
            f"{prefix}commit_seconds", "Time to write and sync a group.", buckets=_SECONDS, registry=registry
        )
        self.journal_failures = Counter(
            f"{prefix}journal_failures", "Writes to journals that failed.", registry=registry
        )
        self.segments = Counter(f"{prefix}segments", "Segments in the store.", registry=registry)
        self.manifests = Counter(f"{prefix}manifests", "Manifests in the store.", registry=registry)
        self.pending_uploads = Gauge(
            f"{prefix}pending_uploads", "Journals and windows that wait for their upload.", registry=registry
        )
        self.store_failures = Counter(
            f"{prefix}store_failures", "Writes to the store, and looks at it, that failed.", registry=registry
        )
        self.local_upload_failures = Counter(
            f"{prefix}local_upload_failures",
            "Uploads that failed on the journal's disk; each is tried again.",
            registry=registry,
        )
        self.damaged = Counter(
            f"{prefix}damaged_reports", "Reports in damaged frames of journals, as far as known.", registry=registry
        )
        self.damaged_frames = Counter(
            f"{prefix}damaged_frames", "Frames or stretches of journals that were damaged.", registry=registry
        )
        self.damaged_counts = Counter(
            f"{prefix}damaged_counts", "Files of counts of refusals that were damaged.", registry=registry
        )
        self.free_bytes = Gauge(f"{prefix}free_bytes", "Room on the journal's disk.", registry=registry)
        self.ready = Gauge(f"{prefix}ready", "1 if ready, else 0.", registry=registry)
        ProcessCollector(registry=registry)
