"""The running evaluator is what docs/evaluator-openapi.json says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import schemathesis
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from evaluator import refusals
from tests.evaluator.running import TOKEN, ask, evaluating, make_asked_site, some
from tests.shuffler.collector.running import Running
from tests.support.documented import SHORT, documented_refusals, reasons_of

ROOT = Path(__file__).parents[2]
STORED = json.loads((ROOT / "docs" / "evaluator-openapi.json").read_text(encoding="utf-8"))
schema = schemathesis.openapi.from_dict(STORED)


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with evaluating(make_asked_site(tmp_path_factory.mktemp("site"))) as started:
        yield started


def test_every_refusal_is_documented_with_its_status_and_nothing_else() -> None:
    assert documented_refusals(STORED) == {
        (reason.status, reason.title, reason.name) for reason in reasons_of(refusals)
    }


@schema.parametrize()
@SHORT
def test_the_evaluator_answers_as_documented(evaluator: Running, case: schemathesis.Case) -> None:
    """Whatever is asked; and the same of a campaign that there is."""
    case.validate_response(case.call(base_url=evaluator.url))
    if not case.path_parameters:
        return
    case.path_parameters["id"] = "words"
    if case.query and "fingerprint" in case.query:
        case.query["fingerprint"] = evaluator.site.fingerprint("words", 1)
    answer = case.call(base_url=evaluator.url)
    case.validate_response(answer, excluded_checks=[negative_data_rejection, positive_data_acceptance])


def test_an_answer_is_as_documented(evaluator: Running) -> None:
    answered = STORED["paths"]["/v1/campaigns/{id}/evaluations"]["post"]["responses"]["200"]["content"]
    answer = ask(evaluator, some(2), TOKEN)
    shape = answered[answer.headers["content-type"]]["schema"]
    assert shape["minLength"] <= len(answer.content) <= shape["maxLength"]
