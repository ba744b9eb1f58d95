"""What forgers could do to a difference: an attack on both sides reaches the stated figures, and none passes them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hushcount.arrays import FloatArray, Reports
from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.parts import SamplePart
from hushcount.oracles.simulation import SeededWords
from hushcount.oracles.tally import Tally
from hushcount.questions.counted import Counted, Group
from hushcount.questions.forging import forged_moves
from tests.support.attack import forged, forged_against
from tests.support.jobs import new_campaign, new_keys, write_lines

ITEMS = tuple(f"item {number:02d}" for number in range(20))
HONEST, FORGED = 3960, 40
GROUPS = (Group("one", ITEMS[:1]), Group("four", ITEMS[:4]))
COLUMNS = np.arange(21, dtype=np.uint64)


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    root = tmp_path_factory.mktemp("forging")
    keys, words = new_keys(root / "keys"), write_lines(root / "words.txt", ITEMS)
    path: Path = new_campaign(root / "campaign.json", keys, mechanism="ss", dictionary=words)
    return Campaign.read(path)


def counted(campaign: Campaign, reports: Reports) -> Counted:
    mechanism = campaign.require_frequency()
    tally = mechanism.new_tally(COLUMNS)
    mechanism.accumulate(tally, reports, COLUMNS)
    return Counted(campaign, Tally(tally, len(reports), COLUMNS))


def shares(one: Counted) -> FloatArray:
    return one.sums(GROUPS).count / one.reports


def test_one_in_a_hundred_moves_a_difference_by_what_is_stated(campaign: Campaign) -> None:
    mechanism = campaign.require_frequency()
    listed = campaign.read_dictionary()
    assert listed is not None
    target = np.array([listed.items.index(ITEMS[0])], dtype=np.uint64)
    honest = mechanism.encode(np.resize(COLUMNS, HONEST), SeededWords(1, 1))
    down, up = (forged_against, forged)
    poisoned = [
        counted(campaign, np.concatenate([honest, way(mechanism, target, FORGED, SeededWords(2, 1))]))
        for way in (down, up)
    ]
    held, (lower, higher) = shares(counted(campaign, honest)), map(shares, poisoned)
    stated_down, stated_up = forged_moves(poisoned[:1], poisoned[1:], GROUPS, held, held)
    # The first side is lowered and the second raised, and the other way round.
    assert (higher - lower)[0] == pytest.approx(stated_up[0], rel=1e-9)
    assert (lower - higher)[0] == pytest.approx(-stated_down[0], rel=1e-9)
    assert (np.abs(higher - lower) <= stated_up * (1 + 1e-9)).all()


def test_in_a_sample_forgers_are_more_of_the_reports(campaign: Campaign) -> None:
    sample = SamplePart(layer="settings", buckets=((0, 500),))
    asked = campaign.model_copy(update={"sample": sample})
    reports = campaign.require_frequency().encode(COLUMNS, SeededWords(3, 1))
    nobody = np.zeros(2)
    whole, part = (
        forged_moves([counted(one, reports)], [counted(one, reports)], GROUPS, nobody, nobody)
        for one in (campaign, asked)
    )
    for all_, some in zip(whole, part, strict=True):
        assert some == pytest.approx(20.0 * all_)
