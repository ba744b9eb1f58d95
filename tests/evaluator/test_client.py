"""What a client makes where an evaluator answers for the names of values."""

from __future__ import annotations

import dataclasses
import secrets
from typing import Any

import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.client import Client
from hushcount.discovery.making import finish_all
from hushcount.discovery.oblivious import Unanswered
from hushcount.discovery.pairs import name_of
from hushcount.errors import UsageError
from hushcount.policy import Policy
from keys.evaluating import EvaluatorKey
from tests.hushcount.campaigns.test_campaign_file import WORDS, data, evaluator
from tests.hushcount.delivery.evaluating import read
from tests.hushcount.test_client import AUX_SERVER
from tests.support.allowances import Boundless

EVALUATOR = EvaluatorKey(bytes([5]) * 32)


def oblivious(**changes: Any) -> Campaign:
    plain = data() | changes
    plain["discovery"] |= {"hash": "oblivious"}
    del plain["discovery"]["hash_key"]
    plain["keys"] |= {"evaluator": [evaluator(5)]}
    return Campaign.model_validate(plain)


class Asked:
    """Answers, and remembers how many elements came in each exchange."""

    def __init__(self, key: EvaluatorKey = EVALUATOR) -> None:
        self.key, self.exchanges = key, list[int]()

    def __call__(self, blinded: bytes) -> bytes:
        self.exchanges.append(len(blinded) // 32)
        return self.key.evaluate(blinded)


def client(ask: Asked | None) -> Client:
    return Client(oblivious(), policy=Policy.trusting(), dictionary=WORDS, ask=ask, allowance=Boundless())


def opened(report: bytes) -> tuple[bytes, str | None]:
    return read(report, oblivious())


def test_equal_values_have_one_pair_whose_name_is_the_functions_output() -> None:
    form = oblivious().discovery_format
    pairs = [AUX_SERVER.open(one.tobytes()) for one in client(Asked()).discovery_reports(["new", "new", "other"])]
    assert pairs[0] == pairs[1] != pairs[2]
    (output,) = EVALUATOR.outputs([form.input("new")])
    assert opened(client(Asked()).discovery_report("new")) == (name_of(output).hash, "new")


def test_every_value_is_one_evaluation_also_where_there_is_nothing_to_discover() -> None:
    ask = Asked()
    reports = client(ask).discovery_reports([None, "one", "new", "", *["x"] * 597])
    assert ask.exchanges == [300, 300, 1]
    assert [opened(report.tobytes())[1] for report in reports[:5]] == [None, None, "new", None, "x"]


def test_without_an_answer_reports_are_blank_of_the_same_length_and_number() -> None:
    def silent(_blinded: bytes) -> bytes:
        raise Unanswered("the evaluator does not answer")

    for ask in (silent, Asked(EvaluatorKey(secrets.token_bytes(32)))):
        reports = dataclasses.replace(client(None), ask=ask).discovery_reports(["new", "new"])
        hashes = {opened(report.tobytes())[0] for report in reports}
        assert len(hashes) == 2
        assert {opened(report.tobytes())[1] for report in reports} == {None}
        assert reports.shape == (2, oblivious().sealed_bytes("discovery"))


def test_pending_reports_are_finished_by_one_answer_and_blank_until_then() -> None:
    pending = [client(None).pending_discovery(value) for value in ("new", None, "newer")]
    answer = EVALUATOR.evaluate(b"".join(one.evaluation for one in pending))
    assert [opened(one)[1] for one in finish_all(pending, answer)] == ["new", None, "newer"]
    assert [opened(one.blank)[1] for one in pending] == [None] * 3
    assert len({len(one) for one in [*finish_all(pending, answer), *(one.blank for one in pending)]}) == 1
    with pytest.raises(Unanswered):
        pending[0].finish(answer)
    assert "new" not in repr(pending[0])


def test_who_has_no_way_to_ask_is_told_before_anything_is_counted() -> None:
    with pytest.raises(UsageError, match="pending_discovery"):
        client(None).discovery_report("new")
    keyed = Client(Campaign.model_validate(data()), policy=Policy.trusting(), dictionary=WORDS)
    with pytest.raises(UsageError, match="evaluator"):
        keyed.pending_discovery("new")
