"""Metrics of a run: the numbers of its hops and nothing else, to a collector of OpenTelemetry that listens."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from pipelines.log.log import Logs
from pipelines.monitoring.run_metrics import Looks
from tests.support.collecting import collect
from tests.support.site import FLOOR, Site, at, values


@pytest.fixture
def received(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bytes]]:
    """An endpoint of the OTLP protocol over HTTP, as every collector of it has one."""
    bodies: list[bytes] = []

    class Endpoint(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            bodies.append(gzip.decompress(body) if self.headers.get("content-encoding") == "gzip" else body)
            self.send_response(200)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Endpoint) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        yield bodies
        server.shutdown()


def points(bodies: list[bytes], name: str) -> dict[tuple[tuple[str, str], ...], float]:
    found = {}
    for body in bodies:
        for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
            for scope in resource.scope_metrics:
                for metric in (metric for metric in scope.metrics if metric.name == name):
                    for point in (*metric.sum.data_points, *metric.gauge.data_points):
                        pairs = ((one.key, one.value.string_value) for one in point.attributes)
                        names = tuple(sorted(pair for pair in pairs if pair[0] != "run"))
                        found[names] = point.as_int or point.as_double
    return found


def looked(site: Site, day: float, looks: Looks | None = None, *, measures: bool = True) -> None:
    """Do what `hushcount run` does on a day."""
    found = site.run(day)
    (looks or Looks()).record(site.deployment, found, logs=Logs(site.deployment), now=at(day), measures=measures)


def test_the_numbers_of_a_look_are_sent_and_nothing_else(tmp_path: Path, received: list[bytes]) -> None:
    site = Site(tmp_path)
    collect(site.store, site.campaign, [*values(100), *["alpha"] * 50], day=0)
    looked(site, 1.1)
    reports = points(received, "hushcount_run_reports")
    assert {dict(names)["hop"]: number for names, number in reports.items() if ("outcome", "accepted") in names} == {
        "shuffle": 150,
        "analyze": 150,
    }
    assert {dict(names)["hop"] for names in points(received, "hushcount_run_hop_seconds")} == {"shuffle", "analyze"}
    assert points(received, "hushcount_run_problems") == {(): 0}
    assert where(received) == {"batched": 150, "waiting": 0, "too_late": 0, "given_up": 0, "quarantined": 0}
    sent = b"".join(received)
    assert b"alpha" not in sent
    assert str(site.root).encode() not in sent


def where(bodies: list[bytes]) -> dict[str, float]:
    """Return how many reports are in which state, as it was said last."""
    found = points(bodies, "hushcount_run_collected_reports").items()
    return {dict(names)["state"]: number for names, number in found if ("stream", "reports") in names}


def test_a_state_that_no_report_is_in_any_more_is_said_to_be_empty(tmp_path: Path, received: list[bytes]) -> None:
    site = Site(tmp_path)
    collect(site.store, site.campaign, values(FLOOR - 1), day=0)
    looked(site, 1.1)
    assert where(received)["waiting"] == FLOOR - 1
    collect(site.store, site.campaign, values(100), day=1)
    looked(site, 2.1)
    assert where(received) == {"batched": FLOOR + 99, "waiting": 0, "too_late": 0, "given_up": 0, "quarantined": 0}


def test_a_quiet_look_sends_the_numbers_of_the_last_one_without_a_file_between(
    tmp_path: Path, received: list[bytes]
) -> None:
    site, looks = Site(tmp_path), Looks()
    collect(site.store, site.campaign, values(150), day=0)
    looked(site, 1.1, looks)
    received.clear()
    looked(site, 1.2, looks, measures=False)
    assert where(received)["batched"] == 150
    assert points(received, "hushcount_run_last_look_timestamp_seconds") == {(): at(1.2).timestamp()}


def test_without_an_endpoint_nothing_is_sent(
    tmp_path: Path, received: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT")
    looked(Site(tmp_path), 1.1)
    assert received == []
