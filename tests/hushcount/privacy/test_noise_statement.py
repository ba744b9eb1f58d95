"""What the statement says of a campaign with noise: whom it trusts, what is open to whom, and the odds pointwise."""

from __future__ import annotations

import math
from collections.abc import Collection

import pytest

from hushcount.campaigns.campaign import Stream
from hushcount.maths.odds import Odds, odds_of_pair
from hushcount.privacy.guarantees import Statement
from hushcount.privacy.moved import Moved
from hushcount.privacy.statement import statement, window_of
from hushcount.privacy.words import in_one_line
from hushcount.senders import UNBOUND, Senders
from tests.support.noise_campaigns import noise_campaign

TOKEN = Senders("client-token")
COUNTS = {"counts": True, "epsilon": 0.5, "delta": 1e-9}


def stated(senders: Senders = TOKEN, streams: Collection[Stream] | None = None, **settings: object) -> Statement:
    return statement(noise_campaign(**settings), 1000, senders, streams)  # type: ignore[arg-type]


def test_the_guarantee_is_the_campaigns_and_holds_whatever_is_counted() -> None:
    for reports in (None, 0, 1, 10**6):
        found = statement(noise_campaign(), reports, TOKEN)
        assert found.noisy is not None
        assert (found.noisy.epsilon, found.noisy.delta, found.noisy.relation) == (1.0, 1e-8, "replace-one")
        assert found.noisy.odds == Odds(1.0, 1e-8)
        assert (found.local, found.shuffled, found.total) == (None, None, None)
        assert found.noisy.count_deviation == pytest.approx(4.210, abs=1e-3)
        data = found.data()
        assert data["noisy"]["local"] == "none: sealed, not randomised"
        assert "local" not in data
        assert "shuffled" not in data


def test_plain_words_name_the_pointwise_odds_and_whom_they_trust() -> None:
    first, second = stated().plain
    assert first == (
        "The counts change the odds that any one person who sends at most 1 report sent one value rather than another "
        "by a factor of 2.72 at most, except with a chance of 1 in 100,000,000, as long as one of shuffler and "
        "auxiliary server keeps to its role."
    )
    assert second == (
        "The reports are sealed, not randomised: the shuffler, the auxiliary server and the analyzer together, or one "
        "operator with their keys, read the value of every client; and the shuffler and the auxiliary server together, "
        "with this result, know every exact count."
    )
    (exact,) = stated().sentences
    assert "sealed, not randomised: there is no local guarantee" in exact
    assert "(1, 1e-08)-private" in exact
    assert "if the shuffler or the auxiliary server is honest" in exact


def test_the_headline_has_the_word_sealed(subtests: pytest.Subtests) -> None:
    for name, said in {"alone": stated(), "with discovery": stated(discovery={}), "unbound": stated(UNBOUND)}.items():
        with subtests.test(name):
            state, line = in_one_line(said)
            assert state == ("report" if name == "unbound" else "person")
            assert "sealed, not randomised" in line
            assert "randomised on" not in " ".join((line, *said.plain, *said.sentences))
    assert "as long as one of shuffler and auxiliary server keeps to its role" in in_one_line(stated())[1]
    # Discovery needs both.
    assert "if the parties keep to their roles" in in_one_line(stated(discovery={}))[1]


def test_a_client_with_several_allotments_pays_for_each(subtests: pytest.Subtests) -> None:
    for cap, collectors in ((1, 2), (1, 7), (2, 3)):
        with subtests.test(cap=cap, collectors=collectors):
            senders = Senders("client-token", collectors, 1)
            noisy, part = stated(senders, cap=cap).noisy, window_of(noise_campaign(cap=cap), senders, 5)
            assert noisy is not None
            assert isinstance(part, Moved)
            assert part.reports == cap * collectors
            assert noisy.epsilon == collectors
            assert noisy.delta == part.lost > 1e-8
            assert part.most <= noisy.epsilon * (1.0 + 1e-14)
            assert part.curve()(noisy.epsilon * (1.0 + 1e-14)) == noisy.delta
            assert noisy.odds == Odds(noisy.epsilon, noisy.delta)
            assert f"in each of {collectors} collector windows" in noisy.unit


def test_of_clients_that_are_not_told_apart_one_report_is_protected() -> None:
    noisy = stated(UNBOUND, cap=2).noisy
    assert noisy is not None
    assert (noisy.epsilon, noisy.delta, noisy.unit) == (0.5, 1e-8, "one report of a stream")
    assert window_of(noise_campaign(cap=2), UNBOUND, 5) is None


def test_nothing_is_guaranteed_for_more_reports_than_the_noise_hides() -> None:
    most = stated(Senders("client-token", 30, 1)).noisy
    assert most is not None
    assert 0.5 < most.delta < 0.6
    beyond = stated(Senders("client-token", 31, 1))
    assert beyond.noisy is None
    assert beyond.plain == ()
    assert "Counts are refused: a client may have 31 reports, which the noise does not hide." in beyond.sentences
    assert in_one_line(beyond) == ("none", "Nothing is guaranteed.")
    assert window_of(noise_campaign(), Senders("client-token", 31, 1), 5) is None


def test_discovery_beside_noise_costs_an_epsilon_of_its_own(subtests: pytest.Subtests) -> None:
    for name, part, found_odds in (
        ("counts", COUNTS, Odds(0.5, 1e-9)),
        ("no counts", COUNTS | {"counts": False}, odds_of_pair(0.5, 1e-9)),
        ("add-remove", COUNTS | {"relation": "add-remove"}, Odds(1.0, 2e-9)),
    ):
        with subtests.test(name):
            found = stated(discovery=part)
            assert found.total is not None
            sides = 2 if name == "add-remove" else 1
            assert found.total.epsilon == 1.0 + 0.5 * sides
            assert found.total.delta == pytest.approx(1e-8 + 1e-9 * sides)
            assert found.total.odds == Odds(1.0, 1e-8).with_other(found_odds)
            assert any("Counts and values found together" in sentence for sentence in found.plain)
            assert "sealed, not randomised" in found.plain[-1]
            alone = stated(streams={"discovery"}, discovery=part)
            assert (alone.noisy, alone.total) == (None, None)


def test_counts_of_discovered_values_have_pointwise_odds() -> None:
    """At (1, 1e-8) the sentence says 2.72 and not 3.14, and 1 in 100 million, not in 10."""
    part = {"counts": True, "epsilon": 1.0, "delta": 1e-8}
    found = stated(streams={"discovery"}, discovery=part)
    assert found.discovery is not None
    assert found.discovery.odds == Odds(1.0, 1e-8)
    assert "by a factor of 2.72 at most, except with a chance of 1 in 100,000,000" in found.plain[0]
    without = stated(streams={"discovery"}, discovery=part | {"counts": False}).discovery
    assert without is not None
    assert math.exp(without.odds.epsilon) == pytest.approx(3.13, abs=0.01)
    assert without.odds.chance == pytest.approx(1e-7)
