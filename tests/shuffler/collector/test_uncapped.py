"""One client that sends an unlisted value again and again, through a real collector and a real run."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

from hushcount.many_clients import ManyClients
from hushcount.senders import KEY
from pipelines.deployment.settings import Deployment
from pipelines.schedule.done import Done
from pipelines.schedule.run import run
from tests.shuffler.collector.running import Site, make_site, running, wait_for
from tests.support.clocks import stopped
from tests.support.jobs import cli, found, refused, summary

OTHERS, AGAIN = 60, 60
"""Clients with nothing to discover, and reports of the one that has a value which no list holds."""
VALUE = "only mine"


def collected(base: Path, authentication: str) -> Site:
    """Let a collector take all reports, each with its client's token."""
    site = make_site(base, window="1h", collector={KEY: authentication} if authentication else {})
    if not authentication:
        site.config.write_text(site.config.read_text().replace(f'{KEY} = "none"\n', ""))
    client = ManyClients(site.campaign())
    again = client.discovery_reports([VALUE] * AGAIN).tobytes()
    others = {"discovery": client.discovery_reports([None] * OTHERS), "reports": client.reports(["word-1"] * OTHERS)}
    with running(site) as collector:
        taken = [collector.post(again, "discovery", headers={"client-token": "the-one-client-again"})]
        for stream, sealed in others.items():
            for number, report in enumerate(sealed):
                token = {"client-token": f"client-number-{number:04d}"}
                taken.append(collector.post(report.tobytes(), stream, headers=token))
        assert {answer.status_code for answer in taken} == {202}
        collector.pass_by(timedelta(hours=1))
        wait_for(lambda: stored(site) == AGAIN + 2 * OTHERS, what="the manifests")
    return site


def stored(site: Site) -> int:
    return sum(part.records for one in site.manifests() for parts in one.segments.values() for part in parts)


def ran(site: Site) -> Done:
    return run(Deployment.read(site.config), clock=stopped(datetime.now(timezone.utc) + timedelta(hours=1, minutes=20)))


def output(site: Site, folder: str) -> Path:
    """Return the output of the batch that holds the value's reports; a window may have ended before the others came."""
    batches = sorted((site.base / "store" / folder / "words").iterdir())
    holds = [
        path for path in batches if summary(path)["streams"].get("discovery", {"received": 0})["received"] >= AGAIN
    ]
    return (holds or batches)[0]


def test_it_reveals_its_value_only_where_the_operator_wants_no_cap_and_then_nothing_speaks_of_a_client(
    tmp_path: Path,
) -> None:
    site = collected(tmp_path / "site", "none")
    done = ran(site)
    assert not {"release", "discover"} & {hop.rpartition(" ")[2] for hop in done.hops}
    assert any("a single client could reveal a value" in problem for problem in done.problems)
    shuffled = output(site, "shuffled")
    assert summary(shuffled)[KEY] == "none"
    arguments = ("--campaign", site.campaign_file(), "--input", shuffled, "--keys", site.base / "keys")
    refused(
        "job", "discover", *arguments, "--out", tmp_path / "found", says=["'none'", "--uncapped", "uncapped_discovery"]
    )
    assert not (tmp_path / "found").exists()
    assert "limits no client" in cli("doctor", "--config", site.config).out.replace("\n", " ")

    site.config.write_text(f"uncapped_discovery = true\n{site.config.read_text()}")
    assert ran(site).problems == []
    assert found(output(site, "found")) == [VALUE]
    for folder in ("shuffled", "released", "found", "results"):
        stated = summary(output(site, folder))["privacy"]
        assert stated["per"] == "report"
        units = [part["unit"] for part in stated.values() if isinstance(part, dict)] + [stated["unit"]]
        assert all(unit.startswith("one report") for unit in units)
        assert "the cap bound nobody" in stated["sentences"][0]
        assert any("(nothing enforces this limit)" in said for said in stated["plain"])
        assert not any("one client" in said for said in stated["sentences"] + stated["plain"])


def test_by_default_clients_are_told_apart_and_it_reveals_nothing(tmp_path: Path) -> None:
    site = collected(tmp_path / "site", "")
    assert ran(site).problems == []
    assert found(output(site, "found")) == []
    counted = summary(output(site, "shuffled"))
    assert counted["streams"]["discovery"]["rejected"] == {"over_cap": AGAIN - 1}
    assert counted[KEY] == "client-token"
    result = summary(output(site, "results"))
    # Other windows may have begun before the others came.
    stated, windows = result["privacy"], result["allotments"]["reports"]
    assert stated["unit"].startswith("one client that sends at most")
    assert stated["local"]["epsilon"] == windows * stated["local"]["epsilon_per_report"]
