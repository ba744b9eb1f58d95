"""A campaign file names the collectors of its deployment; whoever forgets one is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from hushcount.campaigns.campaign import Campaign
from pipelines.audit.doctor import examine
from tests.support.jobs import done, new_campaign
from tests.support.site import Site, at


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return Site(tmp_path_factory.mktemp("names"), settings='collectors = ["north", "one"]')


def test_a_new_campaign_has_the_names_of_the_deployment_and_keeps_them(site: Site, tmp_path: Path) -> None:
    named = new_campaign(tmp_path / "named.json", site.keys, "--config", site.config, dictionary=site.words)
    assert Campaign.read(named).collectors == ("north", "one")
    assert done("campaign", "show", "--campaign", named, "--json").json["collectors"] == "north, one"
    after = tmp_path / "after.json"
    done("campaign", "new", "--after", named, "--keys", site.keys, "--out", after)
    assert Campaign.read(after).collectors == ("north", "one")
    published = done("campaign", "publish", "--config", site.config, "--campaign", named)
    assert "lacks" not in published.err
    alone = new_campaign(tmp_path / "alone.json", site.keys, dictionary=site.words)
    assert Campaign.read(alone).collectors == ("one",)
    assert Campaign.read(alone).terms != Campaign.read(named).terms
    assert "campaign alone lacks north" in done("campaign", "publish", "--config", site.config, "--campaign", alone).err


def test_doctor_names_a_collector_that_a_campaign_lacks(site: Site) -> None:
    (found,) = (check for check in examine(site.deployment, at(0.5)) if check.name == "collectors named by words")
    assert found.verdict == "bad"
    assert "campaign words lacks north of the deployment's collectors" in found.says
    assert "hushcount campaign new --config" in (found.cure or "")


def test_the_only_collector_may_have_another_name(tmp_path: Path) -> None:
    only = Site(tmp_path, settings='collectors = ["front"]')
    assert Campaign.read(only.campaign).collectors == ("one",)
    assert not [check for check in examine(only.deployment, at(0.5)) if check.name.startswith("collectors named")]
