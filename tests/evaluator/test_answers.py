"""What the evaluator answers over real sockets, and what it refuses."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from hushcount.discovery.oblivious import ELEMENT_BYTES, PROOF_BYTES, Unanswered
from keys.directories import KeyReference
from keys.evaluating import EvaluatorKey
from tests.evaluator.running import (
    TOKEN,
    VERIFIER,
    add_keyed,
    ask,
    asked,
    evaluating,
    keys_of,
    make_asked_site,
    public_key,
    reason,
    some,
)
from tests.shuffler.collector.running import Running, Site
from tests.support import patient


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    site = make_asked_site(tmp_path_factory.mktemp("site"), evaluator={"most_evaluations_a_client": 10_000})
    add_keyed(site)
    return site


@pytest.fixture(scope="module")
def evaluator(site: Site) -> Iterator[Running]:
    with evaluating(site) as started:
        yield started


def test_an_answer_gives_the_output_of_each_value_and_proves_the_key(evaluator: Running, site: Site) -> None:
    values = [f"value {number}" for number in range(300)]
    evaluations = asked(*values)
    answer = ask(evaluator, evaluations.blinded)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["cache-control"] == "no-store"
    assert len(answer.content) == 300 * ELEMENT_BYTES + PROOF_BYTES
    (key,) = site.campaign().keys.evaluator
    held = KeyReference(str(keys_of(site)), "evaluator", key.id).read_evaluator()
    outputs = held.outputs([value.encode() for value in values])
    assert evaluations.finish(answer.content, public_key(site)) == outputs
    with pytest.raises(Unanswered):
        evaluations.finish(answer.content, EvaluatorKey(os.urandom(32)).public_key)


def test_a_wrong_body_is_refused(subtests: pytest.Subtests, evaluator: Running) -> None:
    for body, status, name in [
        (b"", 400, "wrong_evaluations"),
        (b"x" * 31, 400, "wrong_evaluations"),
        (b"x" * 33, 400, "wrong_evaluations"),
        (bytes(ELEMENT_BYTES), 400, "bad_element"),
        (b"\xff" * ELEMENT_BYTES, 400, "bad_element"),
        (bytes(ELEMENT_BYTES * 301), 413, "too_long"),
        (bytes(1 << 20), 413, "too_long"),
    ]:
        with subtests.test(name=name, length=len(body)):
            assert reason(ask(evaluator, body)) == (status, name)


def test_one_bad_element_refuses_its_batch_and_costs_nothing(tmp_path: Path) -> None:
    site = make_asked_site(tmp_path, evaluator={"most_evaluations_a_client": 20})
    with evaluating(site) as evaluator:
        for _ in range(3):
            assert reason(ask(evaluator, some(19) + bytes(ELEMENT_BYTES))) == (400, "bad_element")
        assert ask(evaluator, some(20)).status_code == 200


def test_chunks_are_read_as_one_body_and_a_long_one_is_refused(evaluator: Running) -> None:
    def chunks(number: int) -> Iterator[bytes]:
        yield from (some(1) for _ in range(number))

    url = evaluator.url + evaluator.path("evaluations")
    headers = {"content-type": "application/octet-stream", **TOKEN}
    assert patient.post(url, content=chunks(5), headers=headers).status_code == 200
    assert reason(patient.post(url, content=chunks(301), headers=headers)) == (413, "too_long")


def test_each_part_of_a_request_is_checked(evaluator: Running, site: Site) -> None:
    body = some(1)
    headers = {"content-type": "application/octet-stream", **TOKEN}
    assert reason(evaluator.get(evaluator.path("evaluations"))) == (405, "wrong_method")
    url = f"{evaluator.url}/v1/campaigns/words/evaluations"
    assert reason(patient.post(url, content=body, headers=headers)) == (400, "missing_fingerprint")
    unknown = patient.post(f"{url}?fingerprint={'0' * 64}", content=body, headers=headers)
    assert reason(unknown) == (409, "unknown_fingerprint")
    assert unknown.json()["current_epoch"] == 1
    assert reason(ask(evaluator, body, campaign="missing")) == (404, "unknown_campaign")
    assert reason(ask(evaluator, body, campaign="asks-nobody")) == (404, "no_evaluator")
    assert reason(evaluator.post(body, "reports", headers=TOKEN)) == (404, "not_found")
    assert reason(ask(evaluator, body, {})) == (401, "unauthorised")
    assert reason(ask(evaluator, body, {"authorization": "Bearer " + "w" * 32})) == (401, "unauthorised")
    assert reason(ask(evaluator, body, {**TOKEN, "content-type": "text/plain"})) == (415, "wrong_type")
    assert ask(evaluator, body, VERIFIER).status_code == 200


def test_apps_show_their_token_and_the_analyzer_its_own(tmp_path: Path) -> None:
    token = secrets.token_urlsafe(32)
    tokens = tmp_path / "tokens"
    tokens.write_text(f"app sha256:{hashlib.sha256(token.encode()).hexdigest()}\n")
    tokens.chmod(0o600)
    site = make_asked_site(tmp_path, evaluator={"authentication": "bearer", "tokens": "tokens"})
    with evaluating(site) as evaluator:
        assert ask(evaluator, some(30), {"authorization": f"Bearer {token}"}).status_code == 200
        assert ask(evaluator, some(30), VERIFIER).status_code == 200
        assert reason(ask(evaluator, some(1))) == (401, "unauthorised")
        text = evaluator.get("/metrics").text
        assert 'hushcount_evaluator_evaluations_total{asker="clients",campaign="words",epoch="1"} 30.0' in text
        assert 'hushcount_evaluator_evaluations_total{asker="verifier",campaign="words",epoch="1"} 30.0' in text


def test_pages_of_named_origins_may_ask(tmp_path: Path) -> None:
    site = make_asked_site(tmp_path, evaluator={"origins": ["https://example.com"]})
    with evaluating(site) as evaluator:
        origin = {"origin": "https://example.com"}
        asks = httpx.options(evaluator.url + evaluator.path("evaluations"), headers=origin)
        assert asks.status_code == 204
        assert "POST" in asks.headers["access-control-allow-methods"]
        answer = ask(evaluator, some(1), {**TOKEN, **origin})
        assert answer.headers["access-control-allow-origin"] == "https://example.com"


def test_it_tells_whether_it_is_ready(evaluator: Running) -> None:
    assert evaluator.get("/healthz").json() == {"alive": True}
    assert evaluator.get("/readyz").json() == {"ready": True, "faults": []}
    assert "hushcount_evaluator_ready 1.0" in evaluator.get("/metrics").text
    assert "hushcount_evaluator_keys 1.0" in evaluator.get("/metrics").text
