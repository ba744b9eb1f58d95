"""What was published stays published: a campaigns directory that does not continue the kept log is refused."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from hushcount.campaigns.log import CampaignLog, parse_log
from shuffler.collector.campaigns import CollectedCampaign, read_campaigns
from tests.shuffler.collector.running import (
    LONG,
    TAKER,
    Site,
    add_campaign,
    make_site,
    make_started_site,
    running,
    wait_for,
    write_collection,
    write_config,
)

PAST, FUTURE = "2020-01-01T00:00:00Z", "2999-01-01T00:00:00Z"
FIRST = {"epoch": 1, "begins": PAST, "ends": "2021-01-01T00:00:00Z", "grace_ends": FUTURE}
SECOND = {"epoch": 2, "begins": "2021-01-01T00:00:00Z", "ends": "2022-01-01T00:00:00Z", "grace_ends": FUTURE}
THIRD = {"epoch": 3, "begins": "2022-01-01T00:00:00Z"}
OVER = {"grace_ends": "2021-01-01T00:00:00Z"}


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A site that published two epochs and is ready for a third one."""
    made = make_started_site(tmp_path_factory.mktemp("published") / "site")
    for epoch in (2, 3):
        add_campaign(made, "words", epoch)
    publish(made, FIRST, SECOND)
    assert looked_at(made).fault is None
    return made


def copied(published: Site, base: Path) -> Site:
    shutil.copytree(published.base, base)
    made = Site(base)
    write_config(made, LONG, {})
    return made


@pytest.fixture
def site(published: Site, tmp_path: Path) -> Site:
    return copied(published, tmp_path / "site")


def publish(site: Site, *epochs: dict[str, Any]) -> None:
    write_collection(site, "words", list(epochs))


def looked_at(site: Site) -> CollectedCampaign:
    """Return what a collector that is started now collects."""
    return read_campaigns(
        site.base / "campaigns",
        site.journal / "published",
        TAKER,
        {},
    )["words"]


def kept(site: Site) -> CampaignLog:
    return parse_log((site.journal / "published" / "words.json").read_bytes(), "log")


def replace_key(path: Path) -> None:
    """Let a campaign file differ in one key: a collector that serves it to one client knows its reports."""
    data = json.loads(path.read_text())
    data["discovery"]["hash_key"] = os.urandom(32).hex()
    path.write_text(json.dumps(data))


def test_the_log_is_on_the_disk_before_an_epoch_is_served(site: Site) -> None:
    assert [(entry.epoch, entry.fingerprint) for entry in kept(site).entries] == [
        (epoch, site.fingerprint(epoch=epoch)) for epoch in (1, 2)
    ]
    assert kept(site).heads[-1] == site.campaign(epoch=2).head
    publish(site, FIRST, SECOND, THIRD)
    record = site.journal / "published"
    record.rename(site.journal / "elsewhere")
    record.write_text("no folder")
    found = looked_at(site)
    assert found.fault is not None
    assert found.epochs == {}


def rewritten(site: Site) -> int:
    replace_key(site.campaign_file(epoch=2))
    return 2


def dropped(site: Site) -> int:
    publish(site, FIRST)
    return 2


def first_dropped(site: Site) -> int:
    publish(site, SECOND)
    return 1


def dropped_when_over(site: Site) -> int:
    publish(site, {**FIRST, **OVER}, SECOND)
    assert looked_at(site).fault is None
    publish(site, SECOND)
    return 1


def replaced_by_the_next(site: Site) -> int:
    publish(site, FIRST, THIRD)
    return 2


def put_between(site: Site) -> int:
    """Publish an epoch before one that was published, each of them after the one before."""
    path = site.campaign_file(epoch=3)
    data = json.loads(path.read_text())
    path.write_text(json.dumps({**data, "epoch": 5}))
    publish(site, FIRST, SECOND, {**THIRD, "epoch": 5, "file": path.name})
    assert looked_at(site).fault is None
    path.rename(path.with_name("epoch-000005.json"))
    path.write_text(json.dumps({**data, "epoch": 4}))
    between = {**THIRD, "epoch": 4, "file": path.name, "ends": "2023-01-01T00:00:00Z", "grace_ends": FUTURE}
    publish(site, FIRST, SECOND, between, {"epoch": 5, "begins": "2023-01-01T00:00:00Z"})
    return 4


def without_its_epoch_before(site: Site) -> int:
    data = json.loads(site.campaign_file(epoch=3).read_text())
    del data["previous"]
    site.campaign_file(epoch=3).write_text(json.dumps(data))
    publish(site, FIRST, SECOND, THIRD)
    return 3


def damaged_log(site: Site) -> str:
    (site.journal / "published" / "words.json").write_text("{")
    return "published/words.json"


BREAKS = [
    rewritten, dropped, first_dropped, dropped_when_over, replaced_by_the_next, put_between,
    without_its_epoch_before, damaged_log,
]  # fmt: skip


def test_a_directory_that_does_not_continue_the_log_is_refused(
    subtests: pytest.Subtests, published: Site, tmp_path: Path
) -> None:
    for change in BREAKS:
        with subtests.test(change=change.__name__):
            site = copied(published, tmp_path / change.__name__)
            names = change(site)
            before = (site.journal / "published" / "words.json").read_bytes()
            found = looked_at(site)
            assert found.fault is not None
            assert (f"epoch {names} " if isinstance(names, int) else str(names)) in found.fault
            # Nothing of it is served, and the log is as it was.
            assert found.epochs == {}
            assert (site.journal / "published" / "words.json").read_bytes() == before


def test_a_running_collector_serves_what_was_published_until_the_directory_is_whole_again(tmp_path: Path) -> None:
    site = make_site(tmp_path / "site")
    path = site.campaign_file()
    whole, body = path.read_bytes(), os.urandom(site.campaign().sealed_bytes("reports"))
    first = site.fingerprint()
    with running(site) as collector:
        replace_key(path)
        publish(site, {"epoch": 1, "begins": PAST})
        wait_for(lambda: collector.get("/readyz").status_code == 503)
        assert "epoch 1 of campaign words" in collector.get("/readyz").json()["faults"][0]
        assert collector.get("/v1/campaigns/words").content == whole
        refused = collector.post(body)
        assert (refused.status_code, refused.json()["type"]) == (409, "urn:hushcount:problem:unknown_fingerprint")
        assert collector.stop() == 0
    with running(site) as collector:
        answer = collector.get("/v1/campaigns/words")
        assert (answer.status_code, answer.json()["type"]) == (503, "urn:hushcount:problem:campaign_unreadable")
        path.write_bytes(whole)
        wait_for(lambda: collector.get("/readyz").status_code == 200)
        log = parse_log(collector.get("/v1/campaigns/words/log").content, "log")
        assert [entry.fingerprint for entry in log.entries] == [first]
        assert collector.post(body).status_code == 202
