"""The OpenAPI document is current, and the running collector is what it says."""

from __future__ import annotations

import json
from pathlib import Path

import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from shuffler.collector.http.openapi import openapi
from shuffler.collector.refusals import REASONS
from tests.shuffler.collector.running import Running, make_site, running

ROOT = Path(__file__).parents[3]
STORED = json.loads((ROOT / "docs" / "openapi.json").read_text(encoding="utf-8"))
schema = schemathesis.openapi.from_dict(openapi())


def test_the_stored_document_is_current() -> None:
    assert openapi() == STORED, "run: python -m shuffler.collector.http.openapi > docs/openapi.json"


def test_a_collector_documents_the_one_header_that_it_wants(tmp_path: Path) -> None:
    with running(make_site(tmp_path / "site", collector={"authentication": "client-token"})) as collector:
        paths = collector.get("/openapi.json").json()["paths"]
        posted = [path["post"] for path in paths.values() if "post" in path]
        assert [post["security"] for post in posted] == [[{"client": []}]] * 2


def test_every_refusal_is_documented() -> None:
    text = json.dumps(STORED)
    assert all(f"({name})" in text for name in REASONS)


def test_campaign_files_and_dictionaries_are_of_the_types_that_are_documented(tmp_path: Path) -> None:
    with running(make_site(tmp_path / "site")) as collector:
        for path in ("", "/dictionary", "/log"):
            answer = collector.get(f"/v1/campaigns/words{path}")
            documented = STORED["paths"][f"/v1/campaigns/{{id}}{path}"]["get"]["responses"]["200"]["content"]
            assert answer.headers["content-type"].partition(";")[0] in documented
            if not path:
                assert answer.headers["content-type"] == "application/json"


SHORT = settings(
    max_examples=10,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@schema.parametrize()
@SHORT
def test_the_collector_answers_as_documented(collector: Running, case: schemathesis.Case) -> None:
    """Whatever is asked; and the same of a campaign that there is."""
    case.validate_response(case.call(base_url=collector.url))
    if not case.path_parameters:
        return
    case.path_parameters["id"] = "words"
    if case.query and "fingerprint" in case.query:
        case.query["fingerprint"] = collector.site.fingerprint("words", 1)
    answer = case.call(base_url=collector.url)
    case.validate_response(answer, excluded_checks=[negative_data_rejection, positive_data_acceptance])
