"""Groups that a deployment names: an open domain without a sketch counts their items."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import items_of
from hushcount.errors import UsageError
from hushcount.questions.selecting import Choice
from pipelines.jobs.results import grouped_items, items_in_groups, read_tally
from pipelines.streaming.stream import KNOWN_STEPS
from tests.support.collecting import collect, window_name
from tests.support.jobs import done, write_lines
from tests.support.site import Site, values

GROUPS = """
[analyzer.groups]
both = {items = ["alpha", "beta"]}
listed = {file = "group.txt"}
all = {glob = "*"}
"""


class OpenSite(Site):
    mechanism, open_domain = "ais", True


def test_an_open_domain_counts_the_items_of_groups(tmp_path: Path) -> None:
    site = OpenSite(tmp_path, tail=GROUPS)
    write_lines(tmp_path / "group.txt", ["gamma", "alpha"])
    collect(site.store, site.campaign, values(200), day=0)
    assert site.run(1.1).problems == []
    campaign = Campaign.read(site.campaign)
    tally = read_tally(str(site.files("results", 0) / "tally.npz"), campaign)
    numbers = np.sort(items_of(campaign.require_frequency(), None, ["alpha", "beta", "gamma"]))
    assert np.array_equal(tally.items, numbers)
    # A job that stays up counts the same items.
    (steps,) = KNOWN_STEPS["analyze"](site.deployment, campaign)
    assert np.array_equal(steps.columns, numbers)
    asked = done("ask", "sum", "--group", "both", "--config", site.config, "--campaign", "words", "--json").json
    assert [(row["window"], row["items"]) for row in asked["rows"]] == [(window_name(0), 2)]


def test_groups_are_not_read_where_a_dictionary_says_what_is_counted(tmp_path: Path) -> None:
    site = Site(tmp_path, tail=GROUPS)
    assert grouped_items(site.deployment, Campaign.read(site.campaign)) == ()


def test_items_of_groups_come_once_each_and_a_bad_file_is_named(tmp_path: Path) -> None:
    write_lines(tmp_path / "list.txt", ["b", "cafe\u0301"])
    choices = {"a": Choice(items=("b", "a")), "f": Choice(file="list.txt"), "p": Choice(prefix="x")}
    assert items_in_groups(choices, tmp_path) == ("b", "a", "caf\u00e9")
    with pytest.raises(UsageError, match=r"group gone: cannot read .*gone\.txt"):
        items_in_groups({"gone": Choice(file="gone.txt")}, tmp_path)
