"""What equal answers tell: the analyzer links the reports of a client that remembers, and shuffling hides nothing."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from scipy import stats

from hushcount.arrays import Reports
from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import items_of
from hushcount.client import Client
from hushcount.memory import ClientMemory
from hushcount.oracles.catalogue import build
from hushcount.oracles.estimates import Estimate
from hushcount.oracles.tally import Tally
from hushcount.policy import Policy
from hushcount.privacy.statement import statement
from hushcount.randomness import SystemWords, permutation
from hushcount.senders import Senders
from tests.hushcount.campaigns.test_campaign_file import data
from tests.hushcount.test_client import ANALYZER
from tests.support.statistics import FAILURE

OTHERS, RUNS, CAP = 1000, 300, 2
HELD, OTHER = "one", "another"


def campaign(memory: bool, cap: int = CAP, values: int = 1) -> Campaign:
    """Return a campaign of affine intervals over an open domain: of two reports none shares its slope by chance."""
    size = round((1 << 61) / (1 + math.exp(2.0)))
    made = {
        **data(),
        "mechanism": {"name": "ais", "epsilon": 2.0, "parameters": {"s": str(size)}},
        "dictionary": None,
        "discovery": None,
        "shuffle": {"cap": cap, "minimum_batch": 100, "delta": 1e-8},
        "memory": memory,
        "memory_values": values,
    }
    return Campaign.model_validate(made)


def opened(client: Client, values: list[str]) -> Reports:
    """Return what the analyzer gets of a client's reports."""
    plain = [ANALYZER.open(sealed.tobytes()) for sealed in client.reports(values)]
    octets = np.frombuffer(b"".join(each[16:] for each in plain if each is not None), dtype=np.uint8)
    reports, valid = client.campaign.require_frequency().unpack(octets.reshape(len(values), -1))
    assert valid.all()
    return reports


def linked(reports: Reports) -> Reports:
    """Return the reports that are not the only one of their slope."""
    _, place, seen = np.unique(reports["slope"], return_inverse=True, return_counts=True)
    return reports[seen[place] > 1]


def guesses() -> int:
    """Return in how many batches the linked reports support the value that is held and not the other."""
    made = campaign(memory=True)
    mechanism = made.require_frequency()
    held_item, other_item = items_of(mechanism, None, [HELD, OTHER])
    others = items_of(mechanism, None, [f"word {number}" for number in range(OTHERS)])
    policy, named = Policy.trusting(), 0
    for _ in range(RUNS):
        client = Client(made, policy=policy, dictionary=None, memory=ClientMemory())
        batch = np.concatenate([mechanism.encode(others, SystemWords()), opened(client, [HELD] * CAP)])
        batch = linked(batch[permutation(len(batch), SystemWords())])
        assert len(batch) == CAP
        for_held, for_other = (mechanism.supports(batch, np.full(CAP, item)).all() for item in (held_item, other_item))
        named += bool(for_held and not for_other)
    return named


def test_equal_answers_show_more_than_shuffling_would_allow_and_none_is_claimed() -> None:
    """Fails with probability below 1e-6: the rate is bounded by Clopper and Pearson; of whoever holds the other value
    it is known from the law.

    The gain that one report among so many has, twice, is what was stated before: it is exceeded beyond its delta.
    """
    mechanism = campaign(memory=True).require_frequency()
    size, cells = mechanism.responder.size, mechanism.encoder.buckets
    seen, most = guesses(), (1.0 - mechanism.p_star) * size / (cells - 1)
    least = stats.beta.ppf(FAILURE / 2, seen, RUNS - seen + 1)
    claimed = statement(campaign(memory=False), OTHERS + CAP, Senders("client-token")).data()["shuffled"]
    assert least > math.exp(claimed["epsilon"]) * most + claimed["delta"]
    # Nobody holds a client to the cap where none is told from another, and two reports of it are linked all the same.
    for way in ("none", "bearer"):
        stated = statement(campaign(memory=True, cap=1), OTHERS + CAP, Senders(way)).data()
        assert stated["shuffled"] is None, way
        assert statement(campaign(memory=False, cap=1), OTHERS + CAP, Senders(way)).data()["shuffled"]
    stated = statement(campaign(memory=True), OTHERS + CAP, Senders("client-token")).data()
    assert stated["shuffled"] is None
    # One answer, however often it is sent: the local epsilon of one report, of which the attack keeps below.
    assert stated["local"]["epsilon"] == stated["local"]["epoch_epsilon"] == stated["local"]["epsilon_per_report"]
    assert stats.beta.ppf(FAILURE, seen, RUNS - seen + 1) <= math.exp(stated["local"]["epsilon"]) * most


def test_a_statement_of_clients_that_remember_counts_answers(subtests: pytest.Subtests) -> None:
    for cap, values, answers in [(1, 1, 1), (3, 1, 1), (3, 2, 2), (2, 5, 2)]:
        with subtests.test(cap=cap, values=values):
            stated = statement(campaign(True, cap, values), 100_000, Senders("client-token")).data()
            one = stated["local"]["epsilon_per_report"]
            assert stated["local"]["epsilon"] == answers * one
            assert stated["local"]["epoch_epsilon"] == values * one
            # Shuffling gains for the only batch of the epoch, of one report a client; the headline is the epoch's.
            assert (stated["shuffled"] is not None) == (cap == 1)
            (plain,) = stated["plain"]
            assert "All counts of the epoch together, however often a person reports" in plain
            factor = re.search(r"by a factor of ([\d.]+) at most", plain)
            assert factor
            assert math.exp(values * one) <= float(factor[1]) < math.exp(values * one) * 1.01
            assert ("when a value changed is not hidden" in plain) == (values > 1)
            mixed = [sentence for sentence in stated["sentences"] if "Mixed among" in sentence]
            assert all(
                "as long as it gets no other batch of the epoch, counted or not" in sentence for sentence in mixed
            )
            assert len(mixed) == (cap == 1)


# Errors: l equal answers of one client, and windows that repeat them.

ITEMS, CLIENTS, DRAWS = 12, 600, 1500
CHI2 = stats.chi2.ppf(FAILURE / 2, DRAWS), stats.chi2.isf(FAILURE / 2, DRAWS)
ORACLE = build("grr", 1.0, ITEMS, {})
WORDS = np.arange(CLIENTS, dtype=np.uint64) % ITEMS
ASKED = np.array([3], dtype=np.uint64)


def estimated(reports: Reports) -> Estimate:
    counts = ORACLE.new_tally(ASKED)
    ORACLE.accumulate(counts, reports, ASKED)
    return ORACLE.estimate(Tally(counts, len(reports), ASKED), ASKED)


def test_the_error_of_repeated_answers_is_stated_and_that_of_fresh_ones_is_rejected() -> None:
    """Fails with probability below 1e-6, by the chi-square law of the sum of squares of normal errors."""
    cap, fresh, stated = 4, 0.0, 0.0
    truth = cap * float(np.count_nonzero(ASKED[0] == WORDS))
    for _ in range(DRAWS):
        plain = estimated(np.repeat(ORACLE.encode(WORDS, SystemWords()), cap))
        fresh += float((plain.count[0] - truth) / plain.standard_error[0]) ** 2
        stated += float((plain.count[0] - truth) / plain.repeated(cap).standard_error[0]) ** 2
    assert CHI2[0] < stated < CHI2[1] < fresh


def test_windows_of_clients_that_remember_differ_by_less_and_average_to_no_less() -> None:
    """Fails with probability below 1e-6, by the same law: half of the clients of the second window were in the first.

    Of two windows the difference has no more error than if they were independent, which is what a reader may take from
    theirs; the mean has more than that, and no less than one window if all clients were in both.
    """
    differences, means, same = 0.0, 0.0, 0.0
    truth = float(np.count_nonzero(ASKED[0] == WORDS))
    for _ in range(DRAWS):
        first, fresh = (ORACLE.encode(WORDS, SystemWords()) for _ in range(2))
        one, two = estimated(first), estimated(np.concatenate([first[: CLIENTS // 2], fresh[CLIENTS // 2 :]]))
        both = float(np.hypot(one.standard_error, two.standard_error)[0])
        differences += float((one.count[0] - two.count[0]) / both) ** 2
        means += float((one.count[0] + two.count[0] - 2.0 * truth) / both) ** 2
        same += float((one.count[0] - truth) / one.standard_error[0]) ** 2
    assert differences < CHI2[0] < CHI2[1] < means
    assert CHI2[0] < same < CHI2[1]
