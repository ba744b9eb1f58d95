"""From clients to counts: reports sent over HTTP are shuffled and analyzed as those of `hushcount job encode` are."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

from hushcount.campaigns.campaign import Campaign
from hushcount.many_clients import ManyClients
from tests.shuffler.collector.running import STREAM, make_site, running, wait_for
from tests.support import patient
from tests.support.jobs import done

EACH = 60


def test_reports_sent_over_http_are_counted(tmp_path: Path) -> None:
    site = make_site(tmp_path / "site", window="1h", collector={"authentication": "client-token"})
    with running(site) as collector, patient.Client(base_url=collector.url) as http:
        # What a client does: get the campaign and its dictionary, make reports, send them.
        home = tmp_path / "client"
        home.mkdir()
        (home / "campaign.json").write_bytes(http.get("/v1/campaigns/words").content)
        campaign = Campaign.read(home / "campaign.json")
        assert campaign.dictionary is not None
        (home / campaign.dictionary.path).write_bytes(http.get("/v1/campaigns/words/dictionary").content)
        client = ManyClients(campaign)
        for number in range(2 * EACH):
            value = "word-3" if number < EACH else "unlisted"
            headers = {**STREAM, "client-token": f"client-number-{number:04d}"}
            sent = {"reports": client.report(value), "discovery": client.discovery_report(value)}
            for stream, body in sent.items():
                for _ in range(1 + (number == 0)):
                    # The first client retries with the same bytes.
                    answer = http.post(collector.path(stream), content=body, headers=headers)
                    assert answer.status_code == 202
        collector.pass_by(timedelta(hours=1))
        wait_for(
            lambda: (
                sum(
                    part.records
                    for manifest in site.manifests()
                    for parts in manifest.segments.values()
                    for part in parts
                )
                == 2 * (2 * EACH + 1)
            ),
            what="the manifests",
        )
        collector.stop()
    windows = site.windows()
    holding = [window for window in windows if list(window.glob("*/*.blocks"))]
    # Where a window ended in the middle, its segments are one batch with those of the next.
    first = holding[0]
    for window in holding[1:]:
        for path in window.glob("*/*.blocks"):
            target = first / path.parent.name / path.name
            target.parent.mkdir(exist_ok=True)
            path.rename(target)
    campaign = site.campaign_file()
    shuffled = tmp_path / "shuffled"
    summary = done("job", "shuffle", "--campaign", campaign, "--input", first, "--out", shuffled, "--json").json
    assert summary["streams"]["reports"]["received"] == 2 * EACH + 1
    assert summary["streams"]["reports"]["accepted"] == 2 * EACH
    assert summary["streams"]["reports"]["rejected"] == {"duplicate": 1}
    results = tmp_path / "results"
    done("job", "analyze", "--campaign", campaign, "--input", shuffled, "--keys", site.base / "keys", "--out", results)
    assert json.loads((results / "summary.json").read_text())["streams"]["reports"]["accepted"] == 2 * EACH
