"""The privacy statement: units, relations, composition, and when nothing is claimed."""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.privacy.amplification import amplify, closed_form_epsilon, shuffled_epsilon
from hushcount.privacy.blanket import general_law
from hushcount.privacy.statement import statement
from hushcount.senders import Senders
from keys.directories import PublicFile, create
from pipelines.jobs.new_campaign import create_campaign
from tests.audits.guessers import KEYED, OBLIVIOUS

ALWAYS = {"unit", "per", "authentication", "relation", "plain", "sentences"}


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> PublicFile:
    return create(tmp_path_factory.mktemp("keys"), days=30, now=datetime.now(timezone.utc) - timedelta(days=1))


def campaign(
    keys: PublicFile, cap: int = 1, relation: str | None = "replace-one", epsilon: float = 2.0, mechanism: str = "gcms"
) -> Campaign:
    discovery = None if relation is None else {"epsilon": 0.5, "delta": 1e-7, "relation": relation}
    return create_campaign(
        "stated",
        keys,
        Path(),
        mechanism=mechanism,
        epsilon=epsilon,
        shuffle={"cap": cap, "minimum_batch": 5000, "delta": 1e-8},
        discovery=discovery,
    )


@pytest.fixture(scope="module")
def stated(keys: PublicFile) -> dict[str, Any]:
    """What is stated of 100,000 reports."""
    return statement(campaign(keys), 100_000, Senders("client-token")).data()


def test_one_report_among_many(keys: PublicFile, stated: dict[str, Any]) -> None:
    one = amplify(campaign(keys).require_frequency(), 100_000, 1e-8).epsilon
    assert stated["local"]["epsilon"] <= 2.0
    assert stated["shuffled"]["epsilon"] == stated["shuffled"]["epsilon_per_report"] == one
    assert stated["shuffled"]["delta"] == 1e-8
    assert stated["total"]["epsilon"] == one + 0.5
    assert stated["total"]["delta"] == 1e-8 + 1e-7
    assert {stated[name]["relation"] for name in ("local", "shuffled", "discovery", "total")} == {"replace-one"}


def test_the_smaller_of_two_bounds_is_stated_beside_the_closed_form(stated: dict[str, Any]) -> None:
    shuffled = stated["shuffled"]
    general = shuffled_epsilon(general_law(2.0), 100_000, 1e-8)
    assert shuffled["bound"] == "blanket"
    assert shuffled["epsilon"] < 0.75 * general
    assert shuffled["closed_form"] == pytest.approx(closed_form_epsilon(2.0, 100_000, 1e-8), rel=1e-9)
    assert general < shuffled["closed_form"]


def test_a_mechanism_of_bits_states_its_own_bound(keys: PublicFile) -> None:
    shuffled = statement(campaign(keys, mechanism="rappor"), 100_000, Senders("client-token")).data()["shuffled"]
    assert shuffled["bound"] == "blanket"
    assert shuffled["epsilon"] < 0.8 * shuffled_epsilon(general_law(2.0), 100_000, 1e-8)


def test_a_gain_may_be_stated_where_the_theorem_says_nothing(keys: PublicFile) -> None:
    shuffled = statement(campaign(keys, epsilon=7.0), 5000, Senders("client-token")).data()["shuffled"]
    assert shuffled["closed_form"] is None
    assert shuffled["epsilon"] < 6.5


def test_a_client_with_several_reports_pays_by_group_privacy(keys: PublicFile) -> None:
    stated = statement(campaign(keys, cap=3), 100_000, Senders("client-token")).data()
    one = stated["shuffled"]["epsilon_per_report"]
    assert stated["local"]["epsilon"] == 3 * stated["local"]["epsilon_per_report"]
    assert stated["shuffled"]["epsilon"] == 3 * one
    assert stated["shuffled"]["delta"] == pytest.approx(1e-8 * (1 + math.exp(one) + math.exp(2 * one)), rel=1e-12)
    assert "at most 3 reports" in stated["unit"]


def test_add_remove_counts_twice_in_a_total_under_replace_one(keys: PublicFile) -> None:
    stated = statement(campaign(keys, relation="add-remove"), 100_000, Senders("client-token")).data()
    assert stated["discovery"]["relation"] == "add-remove"
    assert stated["total"]["epsilon"] == stated["shuffled"]["epsilon"] + 2 * 0.5
    assert stated["total"]["delta"] == stated["shuffled"]["delta"] + 2 * 1e-7


@pytest.mark.parametrize(
    ("reports", "epsilon"),
    [(None, 2.0), (4999, 2.0), (5000, 30.0)],
    ids=["not yet opened", "below the minimum batch", "too few to gain"],
)
def test_no_gain_is_claimed_where_none_is_known(keys: PublicFile, reports: int | None, epsilon: float) -> None:
    stated = statement(campaign(keys, epsilon=epsilon), reports, Senders("client-token")).data()
    assert stated["shuffled"] is None
    # Before the counts are known there is nothing to add up.
    assert ("total" in stated) == (reports is not None)
    assert reports is None or stated["total"]["epsilon"] == stated["local"]["epsilon"] + 0.5
    assert not any("Mixed among" in sentence for sentence in stated["sentences"])


def test_the_minimum_batch_itself_may_be_claimed(keys: PublicFile) -> None:
    assert statement(campaign(keys), 5000, Senders("client-token")).data()["shuffled"]["reports"] == 5000


def test_only_what_the_campaign_carries_is_stated(keys: PublicFile) -> None:
    frequency = statement(campaign(keys, relation=None), 100_000, Senders("client-token")).data()
    assert set(frequency) == {*ALWAYS, "local", "shuffled"}
    only = create_campaign("found", keys, Path(), discovery={"epsilon": 1.0, "delta": 1e-8})
    stated = statement(only, None, Senders("client-token")).data()
    assert set(stated) == {*ALWAYS, "discovery"}
    assert len(stated["sentences"]) == 1


def test_a_delta_of_one_is_no_guarantee(keys: PublicFile) -> None:
    """A thousand reports of one client: its delta is 1e-8 times more than a float holds."""
    stated = statement(
        campaign(keys, cap=1000, relation=None, mechanism="rappor", epsilon=8.0), 1_000_000, Senders("client-token")
    ).data()
    assert stated["shuffled"] is None
    assert stated["local"]["epsilon"] == pytest.approx(8000.0, rel=1e-9)


def test_every_sentence_names_whom_it_relies_on(stated: dict[str, Any]) -> None:
    local, shuffled, discovery, total = stated["sentences"]
    assert "all parties together" in local
    assert "if the shuffler is honest and those reports are" in shuffled
    assert "if the shuffler and the auxiliary server are honest" in discovery
    assert "can test a value that it guesses" in discovery
    assert "pays for both" in total
    for party in ("shuffler", "auxiliary server"):
        assert party in stated["discovery"]["against"]


def test_counts_of_what_is_discovered_are_said_with_their_noise(keys: PublicFile) -> None:
    stated = {}
    for counts in (False, True):
        made = create_campaign("stated", keys, Path(), discovery={"epsilon": 1.0, "delta": 1e-8, "counts": counts})
        stated[counts] = statement(made, None, Senders("client-token"), ["discovery"]).data()
    plain, counted = stated[False]["discovery"], stated[True]["discovery"]
    assert (plain["epsilon"], plain["delta"]) == (counted["epsilon"], counted["delta"]) == (1.0, 1e-8)
    assert plain["count_deviation"] is None
    assert counted["count_deviation"] == pytest.approx(2.977, abs=5e-4)
    assert counted["clients_for_even_chance"] == 30
    said = "and the number of them with noise of standard deviation 2.978, which is (1, 1e-08)-private"
    assert said in stated[True]["sentences"][0]
    assert "noise" not in stated[False]["sentences"][0]
    assert stated[True]["plain"][0].startswith("A value is shown, with a rough count, only when enough people sent it")
    assert ": the values found and their counts change the odds" in stated[True]["plain"][0]


def test_who_can_test_a_guess_is_said_by_how_values_are_named() -> None:
    for campaign in (KEYED, OBLIVIOUS):
        (sentence,) = statement(campaign, None, Senders("client-token"), ["discovery"]).sentences
        assert ("can test a value that it guesses;" in sentence.replace(".", ";")) == (campaign is KEYED)
        assert ("only together with the evaluator, or by an evaluation" in sentence) == (campaign is OBLIVIOUS)
        # Who asked about a value keeps the answer when the key is gone.
        assert ("it can test only guesses that somebody had evaluated before." in sentence) == (campaign is OBLIVIOUS)


def test_no_sentence_claims_more_than_its_figure(keys: PublicFile) -> None:
    stated = statement(campaign(keys), 123_457, Senders("client-token")).data()
    for name, sentence in (("shuffled", stated["sentences"][1]), ("total", stated["sentences"][3])):
        epsilon, delta = _printed_pair(sentence)
        figure: dict[str, Any] = stated[name]
        assert figure["epsilon"] <= epsilon < figure["epsilon"] * 1.001
        assert figure["delta"] <= delta < figure["delta"] * 1.001
    assert _printed_pair(stated["sentences"][2]) == (0.5, 1e-7)


def _printed_pair(sentence: str) -> tuple[float, float]:
    pair = next(part.split(")")[0] for part in sentence.split("(") if ", " in part and part[0].isdigit())
    epsilon, delta = pair.split(", ")[:2]
    return float(epsilon), float(delta)
