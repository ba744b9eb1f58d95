"""The running collector is what docs/openapi.json says."""

from __future__ import annotations

import json
from pathlib import Path

import schemathesis
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from shuffler.collector import refusals
from tests.shuffler.collector.running import Running, make_site, running
from tests.support.documented import SHORT, documented_refusals, reasons_of

ROOT = Path(__file__).parents[3]
STORED = json.loads((ROOT / "docs" / "openapi.json").read_text(encoding="utf-8"))
schema = schemathesis.openapi.from_dict(STORED)


def test_every_refusal_is_documented_with_its_status_and_nothing_else() -> None:
    assert documented_refusals(STORED) == {
        (reason.status, reason.title, reason.name) for reason in reasons_of(refusals)
    }


def test_campaign_files_and_dictionaries_are_of_the_types_that_are_documented(tmp_path: Path) -> None:
    with running(make_site(tmp_path / "site")) as collector:
        for path in ("", "/dictionary", "/log"):
            answer = collector.get(f"/v1/campaigns/words{path}")
            documented = STORED["paths"][f"/v1/campaigns/{{id}}{path}"]["get"]["responses"]["200"]["content"]
            assert answer.headers["content-type"].partition(";")[0] in documented
            if not path:
                assert answer.headers["content-type"] == "application/json"


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
