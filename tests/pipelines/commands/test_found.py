"""What a command needs is found: the deployment of the working directory, its campaign, and its ledger."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.collecting import collect
from tests.support.jobs import cli, done, refused
from tests.support.site import Site, values

COMMANDS = (
    ("status",),
    ("ask", "top"),
    ("ask", "item", "--item", "alpha"),
    ("campaign", "show"),
    ("campaign", "review"),
    ("ledger", "show"),
    ("ledger", "check"),
    ("ledger", "export", "--out", "charges.csv"),
    ("ledger", "set", "--epsilon", 100, "--delta", 0.1),
    ("repair", "segments"),
    ("dashboard", "--out", "page.html"),
)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    site = Site(tmp_path / "here")
    collect(site.store, site.campaign, values(200), day=0)
    monkeypatch.chdir(site.root)
    monkeypatch.delenv("HUSHCOUNT_CONFIG", raising=False)
    done("ledger", "set", "--campaign", "words", "--ledger", "ledger.db", "--epsilon", 100, "--delta", 0.1)
    site.run(1.1)
    return site


def test_the_deployment_of_the_working_directory_is_found_and_its_only_campaign(site: Site) -> None:
    for command in COMMANDS:
        done(*command)
    assert done("ask", "top", "--json").json["campaigns"] == ["words"]
    assert "words" in done("ledger", "show").out


def test_the_variable_names_another_deployment_and_the_option_a_third_one(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused("status", says=["deployment file deployment.toml", "-c FILE", "HUSHCOUNT_CONFIG"])
    monkeypatch.setenv("HUSHCOUNT_CONFIG", str(site.config))
    for command in COMMANDS:
        done(*command)
    refused("status", "-c", "third.toml", says=["third.toml"])
    # What is to be pasted names the deployment where it would not be found.
    shutil.rmtree(site.store / "results")
    assert f"hushcount run -c {site.config} closes it by" in cli("ask", "top").err
    monkeypatch.chdir(site.root)
    monkeypatch.delenv("HUSHCOUNT_CONFIG")
    assert "hushcount run closes it by" in cli("ask", "top").err


def test_of_several_campaigns_one_must_be_named_and_a_ledger_where_the_deployment_has_none(site: Site) -> None:
    shutil.copytree(site.campaign.parent, site.campaign.parent.with_name("others"))
    for command in (("ask", "top"), ("campaign", "review"), ("ledger", "set", "--epsilon", 1, "--delta", 0)):
        refused(*command, says=["2 campaigns", "--campaign others or words"])
    done("ask", "top", "--campaign", "words")
    site.config.write_text(site.config.read_text().replace('ledger = "ledger.db"\n', ""))
    refused("ledger", "show", says=["deployment.toml", "--ledger"])
    done("ledger", "show", "--ledger", "ledger.db")
