"""hushcount campaign new --sample, and layers in which no client is asked by two campaigns."""

from __future__ import annotations

from pathlib import Path

import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.parts import BUCKETS, SamplePart
from hushcount.errors import UsageError
from pipelines.epochs.samples import widened
from tests.support.jobs import done, new_campaign, refused
from tests.support.site import Site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return Site(tmp_path_factory.mktemp("samples"))


def made(site: Site, name: str, *options: object) -> Path:
    (site.root / "made").mkdir(exist_ok=True)
    path = site.root / "made" / f"{name}.json"
    return new_campaign(path, site.keys, *options, dictionary=site.words)


def published(site: Site, path: Path, *options: object) -> None:
    done("campaign", "publish", "--config", site.config, "--campaign", path, *options)


def test_a_sample_takes_free_buckets_of_its_layer_and_widens_into_others(site: Site) -> None:
    where = ("--layer", "shared", "--config", site.config)
    first = made(site, "one", "--sample", "5%", *where)
    published(site, first)
    second = made(site, "two", "--sample", "0.1", *where)
    samples = [Campaign.read(path).sample for path in (first, second)]
    assert [one and one.buckets for one in samples] == [((0, 500),), ((500, 1500),)]
    # A file that was made without the deployment has the buckets of another.
    blind = made(site, "blind", "--sample", "1%", "--layer", "shared")
    refused("campaign", "publish", "--config", site.config, "--campaign", blind, says=["blind", "one", "shared"])
    published(site, second)
    wider = site.root / "made" / "wider.json"
    again = ("campaign", "new", "--after", first, "--keys", site.keys, "--config", site.config, "--out", wider)
    done(*again, "--sample", "7%")
    after = Campaign.read(wider)
    assert after.sample is not None
    assert after.sample.buckets == ((0, 500), (1500, 1700))
    published(site, wider)
    shown = done("campaign", "layers", "--config", site.config, "--json").json
    assert shown["shares"] == [
        {"layer": "shared", "campaign": "one", "share": 0.07, "ranges": "0-499, 1500-1699"},
        {"layer": "shared", "campaign": "two", "share": 0.1, "ranges": "500-1499"},
    ]
    # The site's own campaign asks all clients, and of the layer one of two campaigns asks a client.
    assert (shown["epsilon"], shown["discovery"]) == (2.0 + 2.0, 0.0)
    assert "83.00%" in done("campaign", "layers", "--config", site.config).out
    big = ("campaign", "new", "--after", second, "--keys", site.keys, "--config", site.config)
    refused(*big, "--out", site.root / "made" / "big.json", "--sample", "95%", says=["95.00%", "93.00%", "shared"])
    # What is not given is as before, and a publisher may not change it.
    same = site.root / "made" / "same.json"
    done(*big, "--out", same)
    assert Campaign.read(same).sample == Campaign.read(second).sample


def test_campaigns_of_a_layer_are_added_up_as_one(site: Site) -> None:
    where = ("--layer", "costs", "--config", site.config)
    paths = []
    for name, epsilon in (("cheap", 1), ("dear", 3), ("middle", 2)):
        paths.append(made(site, name, "--sample", "5%", *where, "--epsilon", epsilon))
        published(site, paths[-1])
    everyone = [made(site, name, "--epsilon", 1) for name in ("all-a", "all-b")]
    asked = [word for path in (*paths, *everyone) for word in ("--campaign", path)]
    told = done("privacy", *asked, "--json").json
    assert [(one["name"], one["layer"], one["epsilon"]) for one in told["campaigns"][:3]] == [
        ("cheap", "costs", 1.0), ("dear", "costs", 3.0), ("middle", "costs", 2.0)
    ]  # fmt: skip
    assert told["epsilon"] == 3.0 + 1.0 + 1.0
    assert "second device" in done("privacy", *asked).out
    refused("privacy", *asked, "--reports", 10, says=["--reports", "several --campaign"])
    refused("privacy", *asked[:2], *asked[:2], says=["cheap is given twice"])
    blind = made(site, "overlap", "--sample", "1%", "--layer", "costs")
    refused("privacy", *asked[:2], "--campaign", blind, says=["cheap and overlap", "costs"])


def test_what_is_no_sample_is_one_sentence(site: Site) -> None:
    for options, says in (
        (("--sample", "0"), "sample is '0'"),
        (("--sample", "101%"), "sample is '101%'"),
        (("--sample", "0.001%"), "0.01%"),
        (("--layer", "l"), "--sample"),
        (("--sample", "5%", "--layer", "No Layer"), "layer is 'No Layer'"),
    ):
        path = site.root / "made" / "none.json"
        command = ("campaign", "new", "--id", "none", "--mechanism", "grr", "--epsilon", 1, "--dictionary", site.words)
        refused(*command, "--keys", site.keys, "--out", path, *options, says=[says])
    asked_all = ("campaign", "new", "--after", site.campaign, "--keys", site.keys, "--out", path, "--sample", "5%")
    refused(*asked_all, says=["epoch 1 asks all clients"])


def test_an_epoch_that_asks_fewer_is_not_published(site: Site) -> None:
    path = made(site, "narrow", "--sample", "5%")
    published(site, path)
    before = Campaign.read(path)
    for changed in (None, {"layer": "narrow", "buckets": [[0, 400]]}, {"layer": "other", "buckets": [[0, 500]]}):
        data = {**before.model_dump(mode="json", exclude_none=True), "epoch": 2, "previous": before.head.hex()}
        data |= {"sample": changed}
        following = path.with_name("following.json")
        following.write_text(Campaign.model_validate(data).text())
        refused("campaign", "publish", "--config", site.config, "--campaign", following, says=["sample of epoch 2"])


def test_widening_keeps_what_was_and_takes_the_lowest_free_buckets() -> None:
    before = SamplePart(layer="l", buckets=((100, 200),))
    taken = [SamplePart(layer="l", buckets=((0, 50), (200, 300)))]
    assert widened(before, "l", 0.02, taken).buckets == ((50, 200), (300, 350))
    assert widened(before, "l", 0.01, taken) == before
    assert widened(None, "l", 1.0, []).buckets == ((0, BUCKETS),)
    for share, says in ((0.005, "asks as many"), (0.99, "is free"), (0.00015, "in steps")):
        with pytest.raises(UsageError, match=says):
            widened(before, "l", share, taken)
