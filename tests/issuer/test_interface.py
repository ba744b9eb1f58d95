"""The running issuer is what docs/issuer-openapi.json says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import schemathesis
from schemathesis.specs.openapi.checks import ignored_auth, negative_data_rejection, positive_data_acceptance

from issuer import refusals
from service.refusals import (
    CAMPAIGN_UNREADABLE,
    EPOCH_CLOSED,
    EPOCH_NOT_BEGUN,
    MISSING_FINGERPRINT,
    UNKNOWN_FINGERPRINT,
    WRONG_SIGNATURE,
    WRONG_SLOT,
)
from tests.issuer.running import ask, authorization, day_from_now, issuing, make_issuer, requests
from tests.shuffler.collector.running import Running
from tests.support.documented import SHORT, documented_refusals, reasons_of

ROOT = Path(__file__).parents[2]
STORED = json.loads((ROOT / "docs" / "issuer-openapi.json").read_text(encoding="utf-8"))
NEVER = {
    MISSING_FINGERPRINT, WRONG_SLOT, WRONG_SIGNATURE, UNKNOWN_FINGERPRINT, EPOCH_NOT_BEGUN, EPOCH_CLOSED,
    CAMPAIGN_UNREADABLE,
}  # fmt: skip
"""An issuer has no campaign files, and takes no pass."""
schema = schemathesis.openapi.from_dict(STORED)


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with issuing(make_issuer(tmp_path_factory.mktemp("site") / "issuer")) as started:
        yield started


def test_every_refusal_is_documented_with_its_status_and_nothing_else() -> None:
    assert documented_refusals(STORED) == {
        (reason.status, reason.title, reason.name) for reason in set(reasons_of(refusals)) - NEVER
    }


@schema.parametrize()
@SHORT
def test_the_issuer_answers_as_documented(issuer: Running, case: schemathesis.Case) -> None:
    """Whatever is asked; and the same of a campaign and a day that there are, by an account."""
    unlike = [negative_data_rejection, positive_data_acceptance, ignored_auth]
    case.validate_response(case.call(base_url=issuer.url), excluded_checks=unlike)
    if case.path_parameters:
        case.path_parameters["id"] = "words"
        case.query = {**(case.query or {}), "day": f"{day_from_now(0):%Y%m%d}", "collector": "one"}
        case.headers["Authorization"] = authorization()
        case.validate_response(case.call(base_url=issuer.url), excluded_checks=unlike)


def test_an_answer_is_as_documented(issuer: Running) -> None:
    documented = STORED["paths"]["/v1/campaigns/{id}/passes"]["post"]
    body = requests(issuer.site)
    answer = ask(issuer, body)
    asked = documented["requestBody"]["content"]["application/octet-stream"]["schema"]
    assert asked["minLength"] <= len(body) <= asked["maxLength"]
    shape = documented["responses"]["200"]["content"][answer.headers["content-type"]]["schema"]
    assert (answer.status_code, shape["minLength"]) == (200, 256)
    assert len(answer.content) == 256 * len(body) // 259 <= shape["maxLength"]
