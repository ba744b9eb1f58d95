"""The sum of a group has an error only where that is known: where the dictionary is in random order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import in_random_order
from hushcount.errors import UsageError
from hushcount.oracles.simulation import SeededWords
from hushcount.oracles.tally import Tally
from hushcount.questions.counted import Counted, Group
from tests.support.jobs import new_campaign, new_keys, write_lines

ITEMS = tuple(f"item {number:02d}" for number in range(20))


@pytest.fixture(scope="module")
def campaigns(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Campaigns of several mechanisms, made by the command; "sorted" ones are as made before it ordered items."""
    root = tmp_path_factory.mktemp("orders")
    keys, words = new_keys(root / "keys"), write_lines(root / "words.txt", ITEMS)
    paths = {}
    for mechanism in ("ais", "ocms", "ss"):
        for order in ("random", "sorted"):
            path = root / order / f"{mechanism}.json"
            path.parent.mkdir(exist_ok=True)
            paths[f"{mechanism} {order}"] = new_campaign(path, keys, mechanism=mechanism, dictionary=words)
    return paths


def counted(path: Path) -> Counted:
    """Return a result of a campaign; one in a sorted folder has its dictionary in that order."""
    campaign = Campaign.read(path)
    if path.parent.name == "sorted":
        dictionary = campaign.read_dictionary()
        assert dictionary is not None
        assert campaign.dictionary is not None
        part = campaign.dictionary.model_copy(update={"digest": type(dictionary)(ITEMS).digest, "path": "words.txt"})
        campaign = campaign.model_copy(update={"dictionary": part})
        campaign._path = path.parent.parent / "campaign.json"
    mechanism, columns = campaign.require_frequency(), np.arange(21, dtype=np.uint64)
    reports = mechanism.encode(np.repeat(columns, 50), SeededWords(1, 1))
    tally = mechanism.new_tally(columns)
    mechanism.accumulate(tally, reports, columns)
    return Counted(campaign, Tally(tally, len(reports), columns))


def test_a_sum_without_a_known_error_is_refused_with_the_cure(
    campaigns: dict[str, Path], subtests: pytest.Subtests
) -> None:
    for mechanism in ("ais", "ocms"):
        with subtests.test(mechanism=mechanism):
            first, second = Group("first", ITEMS[:5]), Group("second", ITEMS[3:12])
            in_order = counted(campaigns[f"{mechanism} random"])
            assert in_order.dictionary is not None
            assert in_order.dictionary.items == in_random_order(ITEMS)
            assert np.isfinite(in_order.sums([first, second]).standard_error).all()
            with pytest.raises(UsageError, match=r"sum of 5 items is unknown,.*hushcount campaign new"):
                counted(campaigns[f"{mechanism} sorted"]).sums([first, second])


def test_sums_that_need_no_order_are_answered_in_any(campaigns: dict[str, Path]) -> None:
    old = counted(campaigns["ais sorted"])
    single, everything = Group("single", ITEMS[3:4]), Group("everything", ITEMS)
    found = old.sums([single, everything])
    assert found.count[0] == old.estimate(ITEMS[3:4]).count[0]
    assert np.isfinite(found.standard_error).all()
    assert np.isfinite(counted(campaigns["ss sorted"]).sums([Group("some", ITEMS[:5])]).standard_error).all()
