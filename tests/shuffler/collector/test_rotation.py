"""An epoch is published while a real collector runs and clients post: every report is counted once."""

from __future__ import annotations

import json
import time
from collections import Counter
from datetime import datetime, timedelta, timezone
from pathlib import Path
from secrets import token_hex

import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.collection.epochs import read_collection
from hushcount.many_clients import ManyClients
from pipelines.deployment.settings import Deployment
from pipelines.schedule.run import run
from tests.shuffler.collector.running import STREAM, Running, Site, add_campaign, make_site, running, wait_for
from tests.support import patient
from tests.support.clocks import stopped
from tests.support.jobs import done, summary, write_lines

WINDOW, GRACE, PAUSE = 8, 12, 0.2
TAKEN, OVER = 202, 409
"""What a collector answers: it has the report; or, the grace of its epoch is over."""


class Apps:
    """Clients with what they fetched of a collector; `taken` counts their different reports by epoch."""

    def __init__(self, collector: Running, home: Path) -> None:
        self.collector, self.home = collector, home
        self.http = patient.Client(base_url=collector.url)
        self.taken: Counter[int] = Counter()

    def fetch(self) -> ManyClients:
        """Return a client of the campaign file that is served now."""
        path = self.home / "campaign.json"
        path.write_bytes(self.http.get("/v1/campaigns/words").content)
        campaign = Campaign.read(path)
        assert campaign.dictionary is not None
        (self.home / campaign.dictionary.path).write_bytes(self.http.get("/v1/campaigns/words/dictionary").content)
        return ManyClients(campaign)

    def post(self, client: ManyClients, body: bytes, token: str) -> int:
        path = self.collector.path(epoch=client.campaign.epoch)
        return self.http.post(path, content=body, headers={**STREAM, "client-token": token}).status_code

    def send(self, client: ManyClients) -> int:
        """Post a new report of a client of its own."""
        answer = self.post(client, client.report("word-3"), token_hex(16))
        self.taken[client.campaign.epoch] += answer == TAKEN
        return answer


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A deployment of short windows, and the campaign file of its next epoch, which is not published."""
    made = make_site(tmp_path / "site", window=f"{WINDOW}s", collector={"authentication": "client-token"})
    made.config.write_text(made.config.read_text().replace('grace = "1h"', f'grace = "{GRACE}s"\npatience = "1s"'))
    made.campaign_file().unlink()
    add_campaign(made, "words", 1, discovery=False)
    for_few(made.campaign_file())
    (tmp_path / "next").mkdir()
    words = write_lines(tmp_path / "next" / "words.txt", [f"word-{number}" for number in range(21)])
    done(
        *("campaign", "new", "--id", "words", "--after", made.campaign_file(), "--mechanism", "ais", "--epsilon", 4),
        *("--dictionary", words, "--keys", made.base / "keys", "--out", tmp_path / "next" / "words.json"),
    )
    for_few(tmp_path / "next" / "words.json")
    return made


def for_few(path: Path) -> None:
    """Let a campaign file have a batch of few reports: few clients post in a window of seconds."""
    data = json.loads(path.read_text())
    data["shuffle"]["minimum_batch"] = 1
    path.write_text(json.dumps(data))


def stored(site: Site) -> int:
    """Return how many reports the manifests of both epochs name, copies included."""
    manifests = site.manifests() + (site.manifests(epoch=2) if site.campaign_file(epoch=2).exists() else [])
    return sum(part.records for one in manifests for parts in one.segments.values() for part in parts)


def now() -> datetime:
    return datetime.now(timezone.utc)


@pytest.mark.long
def test_a_rotation_while_clients_post_loses_and_doubles_no_report(site: Site, tmp_path: Path) -> None:
    deployment, campaign = Deployment.read(site.config), tmp_path / "next" / "words.json"
    (tmp_path / "app").mkdir()
    with running(site) as collector:
        apps = Apps(collector, tmp_path / "app")
        old = apps.fetch()
        done("campaign", "publish", "--config", site.config, "--campaign", campaign)
        first, second = read_collection(site.base / "campaigns" / "words" / "collection.json").epochs
        assert first.ends == second.begins
        assert first.grace_ends is not None
        # With the same bytes from here to the end of the grace.
        body, token = old.report("word-3"), token_hex(16)
        apps.taken[1] += 1
        copies = new = 0
        while now() < second.begins:
            assert apps.send(old) == TAKEN
            time.sleep(PAUSE)
            copies += apps.post(old, body, token) == TAKEN
        wait_for(lambda: '"epoch": 2' in apps.http.get("/v1/campaigns/words").text, what="the second epoch")
        client = apps.fetch()
        while now() < first.grace_ends:
            answers = apps.send(old), apps.post(old, body, token), apps.send(client)
            time.sleep(PAUSE)
            copies, new = copies + (answers[1] == TAKEN), new + 1
            # The last ones may come when it is over.
            assert answers == (TAKEN, TAKEN, TAKEN) or now() > first.grace_ends
        assert apps.send(old) == OVER
        assert apps.send(client) == TAKEN
        wait_for(lambda: stored(site) == apps.taken.total() - 1 + copies, what="the last manifest")
        assert collector.stop() == 0
    assert copies > 1
    assert new
    run(deployment, clock=stopped(now() + timedelta(hours=1)))
    counted: Counter[int] = Counter()
    for path in (site.base / "store" / "results" / "words").iterdir():
        told = summary(path)
        counted[told["epoch"]] += told["accepted"]
    assert counted == apps.taken
