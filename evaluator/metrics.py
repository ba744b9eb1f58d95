"""The evaluator's metrics for Prometheus: numbers by campaign and asker, and nothing about a sender."""

from __future__ import annotations

from prometheus_client import Histogram

from service.metrics import ServiceMetrics

_PREFIX = "hushcount_evaluator_"
_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class Metrics(ServiceMetrics):
    """All metrics of one evaluator, in a registry of its own."""

    def __init__(self) -> None:
        super().__init__(_PREFIX)
        self.evaluations = self.counter("evaluations", "Evaluations answered.", "campaign", "epoch", "asker")
        self.waiting = self.gauge("evaluations_waiting", "Evaluations that wait for their answer.")
        self.seconds = Histogram(
            f"{_PREFIX}evaluate_seconds",
            "Seconds to answer the evaluations of one request.",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.keys = self.gauge("keys", "Private keys that are open.")
        self.manifests = self.counter("manifests", "Manifests written to the store.")
        self.store_failures = self.counter("store_failures", "Failed writes to the store and failed probes of it.")
        self.failed_writes = self.counter("failed_writes", "Failed writes of counts to the local disk.")
