"""Who may read /metrics of a service: whoever shows the operator's token, from wherever and under whatever Host."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.deployment.settings import Deployment
from tests.evaluator.running import evaluating, make_asked_site, write_evaluator
from tests.shuffler.collector.running import LONG, METRICS_TOKEN, Running, make_site, running

READER = {"authorization": f"Bearer {METRICS_TOKEN}"}
REFUSED: list[dict[str, str]] = [
    {},
    {"host": "localhost"},
    {"host": "attacker.example"},
    {"authorization": "Bearer " + "w" * 32},
    {"authorization": f"Basic {METRICS_TOKEN}"},
    {"client-token": METRICS_TOKEN},
]


@pytest.fixture(scope="module", params=["collect", "evaluate"])
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    base = tmp_path_factory.mktemp("site")
    started = running(make_site(base)) if request.param == "collect" else evaluating(make_asked_site(base))
    with started as found:
        yield found


def test_whoever_shows_no_token_gets_no_metrics(service: Running, subtests: pytest.Subtests) -> None:
    for headers in REFUSED:
        with subtests.test(headers=headers):
            answer = service.get("/metrics", headers=headers)
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
            assert answer.json()["type"] == "urn:hushcount:problem:unauthorised"
            assert "hushcount_" not in answer.text
            assert METRICS_TOKEN not in answer.text


def test_whoever_shows_the_token_gets_them(service: Running) -> None:
    answer = service.get("/metrics", headers={**READER, "host": "collector:8080"})
    assert answer.status_code == 200
    assert "_ready 1.0" in answer.text


def test_a_token_of_senders_or_of_the_analyzer_reads_none(tmp_path: Path) -> None:
    with evaluating(make_asked_site(tmp_path)) as evaluator:
        assert evaluator.get("/metrics", headers={"authorization": "Bearer " + "v" * 32}).status_code == 401


def test_without_a_token_in_the_deployment_there_are_no_metrics(tmp_path: Path) -> None:
    site = make_asked_site(tmp_path)
    write_evaluator(site, LONG, {"metrics_token": None})
    settings = Deployment.read(site.config).file.evaluator
    assert settings is not None
    assert settings.metrics_token is None
    with evaluating(site) as evaluator:
        for headers in (*REFUSED, READER):
            assert evaluator.get("/metrics", headers=headers).status_code == 404
        assert evaluator.get("/readyz").status_code == 200
