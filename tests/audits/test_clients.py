"""Every mechanism, attacked through its client, loses no more than it states; clients with bugs are caught."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from hushcount.many_clients import ManyClients
from hushcount.oracles.catalogue import CATALOGUE
from tests.audits.auditor import Bound, audit, greatest_probability, least_probability
from tests.audits.campaigns import ANALYZER, DICTIONARY, EPSILON, VALUES, campaign_of
from tests.audits.looks import audited, drawn, lengths, opened, seen, wire_lengths
from tests.audits.planted import (
    BiasedSubset,
    FixedFunction,
    FloatingPoint,
    FunctionOfValue,
    Overspending,
    SeededByDay,
    unpadded_discovery,
    unpadded_frequency,
)
from tests.support.statistics import FAILURE, chi_square_p

EACH = FAILURE / len(CATALOGUE)
POWER = 0.8
"""The share of the stated epsilon that an audit must find, to show that it would have found more."""
REPORTS = 130_000
"""Of each input. The widest bound, that of grr, then misses POWER with probability below 1e-6."""
SEALED_REPORTS = 6_000


def one_oracle_or_the_others(test: Callable[..., None]) -> Callable[..., None]:
    others = [oracle for oracle in CATALOGUE if oracle != "grr"]
    marked = pytest.mark.parametrize("oracles", [["grr"], others], ids=["grr", "others"])(test)
    return pytest.mark.long(but=("grr",))(marked)


def bound_of(client: ManyClients, reports: int = REPORTS) -> Bound:
    """Audit so many reports of each of the two values."""
    first, second = audited(client, VALUES, reports)
    return audit(first, second, EACH)


# The auditor itself.


def test_clopper_pearson_is_the_exact_binomial_bound() -> None:
    for successes, draws in ((0, 10), (3, 10), (10, 10), (700, 1000)):
        low = float(least_probability(np.array(successes), draws, 1e-3))
        high = float(greatest_probability(np.array(successes), draws, 1e-3))
        assert low <= successes / draws <= high
        assert successes == 0 or stats.binom.sf(successes - 1, draws, low) == pytest.approx(1e-3, rel=1e-6)
        assert successes == draws or stats.binom.cdf(successes, draws, high) == pytest.approx(1e-3, rel=1e-6)


@pytest.mark.long
def test_the_bound_is_too_high_no_more_often_than_stated() -> None:
    """2,000 audits of one law of six labels against itself at failure 0.05: above 160 has probability 1e-8."""
    generator = np.random.default_rng(1)
    bounds = [
        audit({"label": generator.integers(6, size=400)}, {"label": generator.integers(6, size=400)}, 0.05).epsilon
        for _ in range(2000)
    ]
    assert stats.binom.sf(160, 2000, 0.05) < 1e-6
    assert sum(bound > 0.0 for bound in bounds) <= 160


# Every mechanism.


@one_oracle_or_the_others
def test_no_client_loses_more_than_stated_and_the_audit_nearly_finds_it(
    oracles: list[str], subtests: pytest.Subtests
) -> None:
    """The bound exceeds the true loss in one of the audits of all oracles with probability 1e-6 at most."""
    for oracle in oracles:
        with subtests.test(oracle):
            client = ManyClients(campaign_of(oracle), dictionary=DICTIONARY)
            assert client.campaign.require_frequency().epsilon <= EPSILON
            assert POWER * EPSILON < bound_of(client).epsilon <= EPSILON


@one_oracle_or_the_others
def test_a_client_at_one_point_three_epsilon_is_caught(oracles: list[str], subtests: pytest.Subtests) -> None:
    """An honest client gives such a bound with probability 1e-6 at most, over all oracles."""
    for oracle in oracles:
        with subtests.test(oracle):
            campaign = campaign_of(oracle)
            client = Overspending(campaign, dictionary=DICTIONARY)
            assert bound_of(client).epsilon > EPSILON


@pytest.mark.long
def test_what_the_analyzer_opens_loses_no_more_than_stated() -> None:
    """The whole way, sealed by the client and opened with the key; failure probability 1e-6 together.

    Fewer reports, so that a tenth of epsilon must be found, and that the client that is caught spends three times as
    much.
    """
    campaign = campaign_of("ais")
    for client, least, most in (
        (ManyClients(campaign, dictionary=DICTIONARY), 0.1 * EPSILON, EPSILON),
        (Overspending(campaign, dictionary=DICTIONARY, factor=3.0), EPSILON, 3.0 * EPSILON),
    ):
        looks = [seen(client, VALUES, opened(client, ANALYZER, value, SEALED_REPORTS)) for value in VALUES]
        assert least < audit(*looks, EACH).epsilon <= most


# Planted bugs. Each is shown beside the real client under the same audit.


def test_a_floating_point_client_is_caught_by_its_low_bits() -> None:
    """An open domain: 2**61 - 1 cells, more than a double tells apart; failure probability 1e-6."""
    campaign = campaign_of("ais", listed=False)
    assert bound_of(ManyClients(campaign)).epsilon <= EPSILON
    found = bound_of(FloatingPoint(campaign))
    assert found.look == "low bits"
    assert found.epsilon > 2.0 * EPSILON


def test_a_biased_subset_is_caught() -> None:
    """It holds its own cell with probability p + (1-p) s/m instead of p; failure probability 1e-6."""
    assert bound_of(BiasedSubset(campaign_of("ss"), dictionary=DICTIONARY)).epsilon > 1.2 * EPSILON


def test_a_function_drawn_from_the_value_is_caught() -> None:
    """Its slope alone tells the value, so no epsilon holds; failure probability 1e-6."""
    assert bound_of(FunctionOfValue(campaign_of("ais"), dictionary=DICTIONARY)).epsilon > 3.0 * EPSILON


def slope_p(client: ManyClients) -> float:
    """Return the p-value of the slopes of a value's reports, which must be uniform."""
    mechanism = client.campaign.require_frequency()
    slopes = mechanism.unpack(drawn(client, VALUES[0], 4000))[0]["slope"].astype(np.int64)
    return chi_square_p(np.bincount(slopes)[1:].astype(float), np.ones(mechanism.fields[0].values))


def test_a_client_that_draws_no_function_is_caught_though_it_keeps_its_epsilon() -> None:
    """Its reports are as private and its counts wrong, so the law is audited as well; failure probability 1e-6."""
    campaign = campaign_of("ais")
    assert slope_p(ManyClients(campaign, dictionary=DICTIONARY)) > FAILURE
    assert slope_p(SeededByDay(campaign, dictionary=DICTIONARY)) > FAILURE
    fixed = drawn(FixedFunction(campaign, dictionary=DICTIONARY), VALUES[0], 4000)
    assert np.unique(campaign.require_frequency().unpack(fixed)[0]["slope"]).tolist() == [1]
    assert bound_of(FixedFunction(campaign, dictionary=DICTIONARY)).epsilon <= EPSILON


def repetition_p(client: ManyClients) -> float:
    """Return the probability that as many of 400 reports as do equal those of a second call, at most.

    Two independent reports of a value are equal with probability `sum Pr^2`, at most the greatest probability.
    """
    first, second = (opened(client, ANALYZER, VALUES[0], 400) for _ in range(2))
    equal = int((first == second).all(axis=1).sum())
    mechanism = client.campaign.require_frequency()
    likeliest = math.exp(mechanism.log_prob(mechanism.unpack(first)[0], 2).max())
    return float(stats.binom.sf(equal - 1, 400, likeliest))


def test_a_client_that_repeats_its_random_numbers_is_caught() -> None:
    """Failure probability 1e-6; its epsilon looks right, since every call by itself follows the law."""
    campaign = campaign_of("ais")
    assert repetition_p(ManyClients(campaign, dictionary=DICTIONARY)) > FAILURE
    assert repetition_p(SeededByDay(campaign, dictionary=DICTIONARY)) < FAILURE


# Lengths, all that the shuffler sees of a report: they must say nothing, so the stated loss is 0.

LENGTHS_SEEN = 200


def test_lengths_of_reports_say_nothing_and_unpadded_ones_are_caught() -> None:
    """Discovery: values of different lengths. Frequency: every mechanism, and one that leaves zeros away.

    No failure on right code; that the planted bug of the frequency report escapes has probability below 1e-6.
    """
    client = ManyClients(campaign_of("grr"), dictionary=DICTIONARY)
    values = ("a", "a longer value")
    real = [lengths([client.discovery_report(value) for _ in range(LENGTHS_SEEN)]) for value in values]
    assert audit(*real, FAILURE).epsilon <= 0.0
    bare = [lengths([unpadded_discovery(client, value)] * LENGTHS_SEEN) for value in values]
    assert audit(*bare, FAILURE).epsilon > 1.0
    for oracle in CATALOGUE:
        client = ManyClients(campaign_of(oracle), dictionary=DICTIONARY)
        sent = [lengths([row.tobytes() for row in client.reports([value] * 8)]) for value in VALUES]
        assert audit(*sent, FAILURE).epsilon <= 0.0
    client = ManyClients(campaign_of("grr"), dictionary=DICTIONARY)
    rows = [unpadded_frequency(drawn(client, value, 20_000)) for value in ("item 0", "item 1")]
    assert audit(*map(wire_lengths, rows), FAILURE).epsilon > 0.5
