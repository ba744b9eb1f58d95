"""Two sentences for people: they say what holds for the case at hand, and no figure in them claims too much."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcount.campaigns.campaign import Campaign
from hushcount.maths.odds import Odds
from hushcount.privacy.guarantees import Local, Shuffled, Statement
from hushcount.privacy.statement import statement
from hushcount.privacy.unit import Unit, Units
from hushcount.privacy.words import in_one_line, plain_sentences
from hushcount.senders import Senders
from keys.directories import PublicFile, create
from pipelines.jobs.new_campaign import create_campaign
from tests.hushcount.campaigns.test_campaign_file import data

LOCAL = Local(epsilon_per_report=2.0, epsilon=2.0, epoch_epsilon=None, values=None, delta=0.0, unit="", against="")


def first_of(epsilon: float, chance: float = 1e-8) -> str:
    """Return the sentence about counts that changes of odds like these give."""
    odds = Odds(epsilon, chance)
    counts = Shuffled(
        epsilon_per_report=epsilon, epsilon=epsilon, delta=chance, odds=odds, unit="", reports=1, bound="general",
        closed_form=None, against="",
    )  # fmt: skip
    stated = Statement("", "client", "client-token", LOCAL, counts)
    return next(iter(plain_sentences(stated, Units(Unit(1, 1), Unit(1, 1)))))


def stated_factor(sentence: str) -> float:
    """Return by what factor a sentence says that odds change at most."""
    per_cent = re.search(r"by ([\d.]+) %", sentence)
    if per_cent:
        return 1.0 + float(per_cent[1]) / 100.0
    factor = re.search(r"a factor of ([\d.]+)", sentence)
    assert factor, sentence
    return float(factor[1])


@given(epsilon=st.floats(1e-6, 39.0), chance=st.floats(1e-15, 0.5))
def test_no_figure_claims_more_than_holds(epsilon: float, chance: float) -> None:
    first = first_of(epsilon, chance)
    assert math.exp(epsilon) <= stated_factor(first) * (1 + 1e-12)
    assert stated_factor(first) <= 1.0 + math.expm1(epsilon) * 1.11 + math.exp(epsilon) * 0.011
    said = re.search(r"a chance of 1 in ([\d,]+)", first)
    assert said
    assert chance * (1 - 1e-12) <= 1.0 / int(said[1].replace(",", "")) <= chance * 2.0


def test_nothing_is_claimed_for_a_sample_and_its_layer_is_named() -> None:
    campaign = Campaign.model_validate({**data(), "sample": {"layer": "shared", "buckets": [[0, 500]]}})
    everyone = Campaign.model_validate(data())
    told, plain = (statement(one, 10**6, Senders("client-token")) for one in (campaign, everyone))
    # The figures are those of a campaign that asks all clients.
    assert (told.local, told.shuffled, told.total) == (plain.local, plain.shuffled, plain.total)
    for said, before in ((told.plain, plain.plain), (told.sentences, plain.sentences)):
        assert said[:-1] == before
        assert "0.05" in said[-1]
        assert "shared" in said[-1]
        assert "nothing is gained" in said[-1]


@given(epsilon=st.floats(0.01, 5.0))
def test_more_loss_never_reads_as_less(epsilon: float) -> None:
    less, more = (stated_factor(first_of(value)) for value in (epsilon, 1.3 * epsilon))
    assert less <= more


def test_a_loss_without_a_number_is_said_without_one() -> None:
    assert "by any factor, except with a chance" in first_of(1000.0)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> PublicFile:
    return create(tmp_path_factory.mktemp("keys"), days=30)


def campaign(keys: PublicFile, frequency: bool, relation: str | None, cap: int = 1) -> Campaign:
    discovery = None if relation is None else {"epsilon": 0.5, "delta": 1e-7, "relation": relation}
    oracle: dict[str, Any] = {"mechanism": "ais", "epsilon": 2.0} if frequency else {}
    shuffle = {"minimum_batch": 5000, "cap": cap}
    return create_campaign("plain", keys, Path(), shuffle=shuffle, discovery=discovery, **oracle)


def test_every_sentence_about_odds_names_how_many_reports_a_person_sends(
    keys: PublicFile, subtests: pytest.Subtests
) -> None:
    for cap, reports in ((1, "at most 1 report "), (3, "at most 3 reports ")):
        with subtests.test(cap=cap, reports=reports):
            plain = statement(campaign(keys, True, "replace-one", cap), 1_000_000, Senders("client-token")).data()[
                "plain"
            ]
            assert len(plain) == 5
            assert all(reports in sentence for sentence in plain[:4])


def test_shuffled_counts_are_stated_with_what_is_left_of_broken_promises(keys: PublicFile) -> None:
    stated = statement(campaign(keys, True, None), 1_000_000, Senders("client-token")).data()
    first, second = stated["plain"]
    assert stated_factor(first) >= math.exp(stated["shuffled"]["odds"]["epsilon"])
    assert stated["shuffled"]["odds"]["epsilon"] > stated["shuffled"]["epsilon"]
    assert stated_factor(first) < 1.02
    assert "1 in 100,000,000" in first
    assert "randomised on the person's own device" in second


def test_too_few_reports_leave_the_local_guarantee_which_needs_nobody(keys: PublicFile) -> None:
    for reports in (100, None):
        (only,) = statement(campaign(keys, True, None), reports, Senders("client-token")).data()["plain"]
        assert stated_factor(only) == pytest.approx(math.exp(2.0), rel=0.01)
        assert "chance" not in only
        assert "Even if all parties broke their promises" in only


def test_both_streams_state_each_part_the_sum_and_what_would_be_open(keys: PublicFile) -> None:
    stated = statement(campaign(keys, True, "replace-one"), 1_000_000, Senders("client-token")).data()
    counts, found, both, local, opened = stated["plain"]
    parts = (stated["shuffled"]["odds"], stated["discovery"]["odds"])
    assert all(
        stated_factor(one) >= math.exp(part["epsilon"]) for one, part in zip((counts, found), parts, strict=True)
    )
    assert stated_factor(both) >= math.exp(stated["total"]["odds"]["epsilon"]) > stated_factor(found)
    assert stated["total"]["odds"]["chance"] == parts[0]["chance"] + parts[1]["chance"]
    assert "to be counted" in local
    assert "for discovery would be open" in opened


def test_discover_and_analyze_say_the_same_of_the_same_clients(keys: PublicFile) -> None:
    """Before, one said a factor of 20.1 and the other 2.86: it took the counts into what it had not released."""
    made = campaign(keys, True, "replace-one")
    discover = statement(made, None, Senders("client-token"), ["discovery"]).data()["plain"]
    analyze = statement(made, 1_000_000, Senders("client-token")).data()["plain"]
    assert discover == [analyze[1], analyze[4]]
    assert ": the values found change the odds" in discover[0]
    before = statement(made, None, Senders("client-token")).data()["plain"]
    assert before == [analyze[1], analyze[3], analyze[4]]


def test_discovery_alone_names_its_relation(keys: PublicFile, subtests: pytest.Subtests) -> None:
    for relation, words in (("replace-one", "one value rather than another"), ("add-remove", "took part")):
        with subtests.test(relation=relation, words=words):
            stated = statement(campaign(keys, False, relation), None, Senders("client-token")).data()
            first, second = stated["plain"]
            assert words in first
            assert f"about {stated['discovery']['clients_for_even_chance']}:" in first
            assert stated_factor(first) >= math.exp(0.5)
            assert "1 in 1,000,000" in first
            assert "not randomised" in second
            # Whoever knows of all others sees in the number of reports whether the person took part.
            assert ("exact numbers of reports" in first) == (relation == "add-remove")
            assert ("shows that a client was added or removed" in stated["sentences"][-1]) == (relation == "add-remove")


def test_one_line_has_the_figure_of_all_that_is_released(keys: PublicFile) -> None:
    both = statement(campaign(keys, True, "replace-one"), 1_000_000, Senders("client-token"))
    state, line = in_one_line(both)
    assert both.total is not None
    assert state == "person"
    assert math.exp(both.total.odds.epsilon) <= stated_factor(line) <= 1.01 * math.exp(both.total.odds.epsilon)
    assert "if the parties keep to their roles" in line
    assert line.startswith("One result ")
    # Few reports leave the local guarantee, which needs nobody's promise.
    state, line = in_one_line(statement(campaign(keys, True, None), 100, Senders("client-token")))
    assert state == "person"
    assert stated_factor(line) == pytest.approx(math.exp(2.0), rel=0.01)
    assert "even if all parties work together" in line
    state, line = in_one_line(statement(campaign(keys, True, None), 1_000_000, Senders("none")))
    assert state == "report"
    assert "nothing limits how many reports a person sends" in line
    _, line = in_one_line(statement(campaign(keys, False, "add-remove"), None, Senders("client-token")))
    assert "exact numbers of reports tell more" in line


def test_one_line_does_not_claim_a_guarantee_without_a_bound() -> None:
    open_to_all = Local(
        epsilon_per_report=900.0, epsilon=900.0, epoch_epsilon=None, values=None, delta=0.0, unit="", against=""
    )
    assert in_one_line(Statement("", "client", "client-token", open_to_all))[0] == "none"
    assert in_one_line(Statement("", "client", "client-token")) == ("none", "Nothing is guaranteed.")
