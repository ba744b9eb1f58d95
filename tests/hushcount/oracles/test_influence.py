"""The influence of forged reports: no report moves a count further than stated, and some move it as far."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hushcount.arrays import Reports, UInt64Array
from hushcount.campaigns.campaign import Campaign
from hushcount.oracles.catalogue import build
from hushcount.oracles.influence import influence, influence_sentence
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.tally import Tally
from pipelines.outputs.counts import StreamCounts
from pipelines.outputs.summary import make_summary
from tests.hushcount.campaigns.test_campaign_file import data
from tests.hushcount.oracles.cases import SMALL, Case, each
from tests.support.attack import forged, forged_against
from tests.support.enumeration import all_reports, scores
from tests.support.words import SeededWords


def counted(mechanism: Mechanism, reports: Reports, items: UInt64Array) -> np.ndarray:
    """Return the estimated count of every item, by the analyzer's own way: tally, then estimator."""
    tally = mechanism.new_tally(items)
    mechanism.accumulate(tally, reports, items)
    return mechanism.counts(Tally(tally, len(reports), items), items)


@each(SMALL)
def test_of_all_reports_none_moves_a_count_further_and_some_as_far(case: Case) -> None:
    """Every report there is, added to the same honest ones, for every item."""
    mechanism, items = case.mechanism, case.items
    honest = mechanism.encode(np.resize(items, 30), SeededWords(1))
    before = counted(mechanism, honest, items)
    moved = np.stack(
        [counted(mechanism, np.append(honest, report), items) - before for report in all_reports(mechanism)]
    )
    bound = influence(mechanism)
    assert moved.max(axis=0) == pytest.approx(bound.up, rel=1e-9)
    assert moved.min(axis=0) == pytest.approx(-bound.down, rel=1e-9)


def test_the_bound_is_that_of_the_paper_for_one_target(subtests: pytest.Subtests) -> None:
    """Cao, Jia, Gong 2021, Table 1, gains for r = 1 and beta = 1 in counts: 1 + (d-1)/(e-1) and 2 + 2/(e-1)."""
    for epsilon, domain in ((0.5, 5), (1.0, 60), (3.0, 1000)):
        with subtests.test(epsilon=epsilon, domain=domain):
            e = math.exp(epsilon)
            grr, oue = (influence(build(name, epsilon, domain, {})) for name in ("grr", "oue"))
            assert grr.up == pytest.approx(1.0 + (domain - 1) / (e - 1.0), rel=1e-9)
            assert oue.up == pytest.approx(2.0 + 2.0 / (e - 1.0), rel=1e-9)


def test_blocks_let_a_report_oppose_as_far_as_it_supports() -> None:
    bound = influence(build("rhr", 1.0, 100, {"b": 3}))
    assert bound.up == bound.down
    assert bound.up == pytest.approx((math.e + 7.0) / (math.e - 1.0), rel=1e-9)


def test_shares_move_by_exactly_what_the_bound_says(subtests: pytest.Subtests) -> None:
    for case in [case for case in SMALL if case.oracle in ("grr", "ais", "rhr", "hcms")]:
        for number in (1, 13):
            with subtests.test(case=case.name, number=number):
                mechanism, items = case.mechanism, case.items
                target = items[:1]
                honest = mechanism.encode(np.resize(items, 40), SeededWords(2))
                share = float(counted(mechanism, honest, items)[0]) / 40
                bound, part = influence(mechanism), number / (40 + number)
                # Forged reports are among those that the count is divided by: the share moves by `(f/n) (x - share)`.
                low, high = part * (-bound.down - share), part * (bound.up - share)
                for attack, wanted in ((forged, high), (forged_against, low)):
                    reports = np.concatenate([honest, attack(mechanism, target, number, SeededWords(3))])
                    after = float(counted(mechanism, reports, items)[0])
                    assert after / (40 + number) - share == pytest.approx(wanted, rel=1e-9, abs=1e-12)


def test_every_frequency_result_carries_the_bound_and_no_other_hop_does() -> None:
    campaign = Campaign.model_validate(data())
    counts = StreamCounts(500, 500, {})
    result = make_summary("analyze", campaign, {"reports": counts}, 500).data()
    bound = influence(campaign.require_frequency())
    assert result["influence"] == {
        "users_per_forged_report_up": bound.up,
        "users_per_forged_report_down": bound.down,
        "items_per_forged_report": bound.items,
        "share_of_items_per_forged_report": bound.share,
        "forgers": {
            "share_of_clients": 0.01,
            "share_of_reports": 0.01,
            "users_up": 5.0 * bound.up,
            "users_down": 5.0 * bound.down,
        },
    }
    assert result["privacy"]["sentences"][-1] == influence_sentence(bound, way=result["authentication"])
    assert f"{bound.up:.4g} users" in influence_sentence(bound)
    for hop in ("encode", "shuffle", "release"):
        assert "influence" not in make_summary(hop, campaign, {"reports": counts}, None).data()


def test_forgers_are_a_larger_part_of_a_sample() -> None:
    """Forgers choose ids inside the sample: of 5 %, they are 20 times as many."""
    part = {"sample": {"layer": "settings", "buckets": [[0, 500]]}}
    campaign = Campaign.model_validate(data() | part)
    result = make_summary("analyze", campaign, {"reports": StreamCounts(500, 500, {})}, 500).data()
    bound = influence(campaign.require_frequency())
    assert result["influence"]["forgers"]["share_of_reports"] == pytest.approx(0.2)
    assert result["influence"]["forgers"]["users_up"] == pytest.approx(100.0 * bound.up)
    assert "1 % of all clients send 20 % of its reports" in result["privacy"]["sentences"][-1]


def test_of_all_reports_none_moves_a_group_further(subtests: pytest.Subtests) -> None:
    for case in (case for case in SMALL if case.domain is not None):
        with subtests.test(case=case.name):
            mechanism, items, size = case.mechanism, case.items, min(3, len(case.items))
            law = mechanism.law
            every = scores(mechanism, all_reports(mechanism), items[:size]).sum(axis=1)
            moved = (every - size * float(law.other)) / float(law.gain)
            bound = influence(mechanism, size)
            assert moved.max() <= bound.up * (1 + 1e-9)
            assert moved.min() >= -bound.down * (1 + 1e-9)
