"""Reports of campaigns whose mixes add the noise: sealed in two layers, each charged with a part of a window's cost."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from hushcount.allowance import OverCap
from hushcount.budget import Budget
from hushcount.campaigns.campaign import Campaign
from hushcount.client import Client
from hushcount.newest import Untrusted
from hushcount.policy import Policy
from hushcount.spent import StreamSpent
from tests.hushcount.campaigns.test_campaign_file import WORDS
from tests.hushcount.delivery import fake_collector
from tests.hushcount.test_client import ANALYZER, AUX_SERVER
from tests.support.clocks import stopped

NOON = datetime(2026, 11, 24, 12, tzinfo=timezone.utc)
DAY = timedelta(days=1)


def campaign(seconds: int = 86_400) -> Campaign:
    """Return one with a cap of 2, without a mechanism."""
    noise = {"epsilon": 1.0, "delta": 1e-8, "seconds": seconds}
    return fake_collector.campaign(noise=noise, mechanism=None, shuffle={"cap": 2, "minimum_batch": 1, "delta": 1e-8})


def client_of(**options: Any) -> Client:
    return Client(campaign(), policy=Policy.trusting(), dictionary=WORDS, clock=stopped(NOON), **options)


def test_each_party_finds_in_its_layer_what_is_for_it() -> None:
    client = client_of()
    binding = client.campaign.binding("reports")
    for due, begins in ((None, NOON - DAY / 2), (NOON + DAY / 2, NOON + DAY / 2)):
        window = int(begins.timestamp()).to_bytes(8, "little")
        for value, item in (("two", 1), ("no item of the list", 3)):
            report = client.report(value, due=due)
            assert len(report) == client.campaign.sealed_bytes("reports")
            assert report[:8] == window
            layer = AUX_SERVER.open(report[8:])
            assert layer is not None
            assert layer[:24] == binding + window
            assert ANALYZER.open(layer[24:]) == binding + bytes([item])
        with pytest.raises(OverCap, match="window that began"):
            client.report("one", due=due)


def test_a_report_costs_its_part_under_a_kind_of_its_own() -> None:
    client = client_of(budget=Budget(lifetime=1.4))
    for due in (NOON, NOON, NOON + DAY):
        client.report("one", due=due)
    spent = client.spent()
    assert spent.streams == (StreamSpent("words", "sealed", 2, 1, 1.0, 1e-8),)
    told, blank, odds, *_ = spent.words()
    assert "2 sealed reports, not randomised, to count values, for epsilon 1 and delta 1e-08" in told
    assert "1 report to count values told nothing" in blank
    assert odds.endswith("as long as one of the two parties that mix them keeps to its role.")


def test_a_client_whose_budget_is_spent_reports_other() -> None:
    client = client_of(budget=Budget(lifetime=0.4))
    layer = AUX_SERVER.open(client.report("one")[8:])
    assert layer is not None
    assert ANALYZER.open(layer[24:]) == client.campaign.binding("reports") + bytes([len(WORDS.items)])


def test_windows_that_are_shorter_than_the_app_allows_are_refused() -> None:
    with pytest.raises(Untrusted, match="the app allows none below"):
        Client(campaign(3600), policy=Policy.trusting(), dictionary=WORDS)
