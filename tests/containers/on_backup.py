"""docs/backup.md with Docker Compose: copied, gone on with for a window, all volumes lost, and put back."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.containers.deployment import ROOT, Site, documented, lay_out

PAGE = ROOT / "docs" / "backup.md"
CLIENTS = 120
PATIENCE = 600.0


@pytest.fixture
def site(tmp_path: Path, images: Mapping[str, str]) -> Iterator[Site]:
    del images
    campaign = ("--min-batch", "20")
    with lay_out(
        tmp_path / "site", "hushcount-backup", length="10s", every="1", campaign=campaign
    ).running() as running:
        yield running


def typed(site: Site, commands: str) -> None:
    """Run what the page says in the deployment's directory; `deployment.paste` would leave `docker compose up` out."""
    ran = subprocess.run(  # noqa: S603  # the page's own lines
        ["sh", "-ec", commands],  # noqa: S607
        cwd=site.directory, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, f"{commands}\n{ran.stdout}\n{ran.stderr}\n{site.logs()}"


def charges(site: Site, party: str) -> set[str]:
    """Return the keys of a party's charges; its ledger must be whole."""
    site.hushcount(party, "ledger", "check")
    shown = json.loads(site.hushcount(party, "ledger", "show", "--json").stdout)
    return {charge["key"] for charge in shown["charges"] if charge["state"] == "committed"}


def values(number: int) -> list[str]:
    return [("item-1", "item-2", "unknown")[place % 3] for place in range(number)]


def counted(site: Site) -> dict[str, int]:
    """Return how many reports each hop of all parties accepted; no two numbers of a party may differ."""
    accepted: dict[str, int] = {}
    for party in ("shuffler", "aux-server", "analyzer"):
        status = site.status(party)
        assert status["differences"] == []
        for hop in status["hops"]:
            place = f"{hop['hop']} {hop['stream']}"
            accepted[place] = accepted.get(place, 0) + hop["accepted"]
    return accepted


@pytest.mark.long
def test_all_volumes_come_back_as_they_were_copied(site: Site) -> None:
    site.post(values(CLIENTS))
    site.wait_until_counted(PATIENCE)
    charged = {party: charges(site, party) for party in ("aux-server", "analyzer")}
    # Acknowledged, and in no result yet.
    site.post(values(CLIENTS))
    in_copy = dict(site.acknowledged)
    typed(site, documented("> volumes.tar", PAGE).replace("sudo ", ""))
    site.post(values(CLIENTS))
    site.wait_until_counted(PATIENCE)
    typed(site, documented("< volumes.tar", PAGE).replace("sudo ", "").replace("compose exec", "compose exec -T"))
    site.acknowledged = in_copy
    site.wait_until_counted(PATIENCE)
    site.wait_until(
        lambda: counted(site)["discover discovery"] == in_copy["discovery"], "discovery of what was copied", PATIENCE
    )
    assert counted(site) == {
        "shuffle reports": in_copy["reports"], "shuffle discovery": in_copy["discovery"],
        "release discovery": in_copy["discovery"], "discover discovery": in_copy["discovery"],
        "analyze reports": in_copy["reports"],
    }  # fmt: skip
    for party, before in charged.items():
        now, (campaign) = charges(site, party), site.status(party)
        assert before < now
        batches = {hop["batch"] for hop in campaign["hops"]}
        # The analyzer charges what it opens and what it counts; each batch once.
        assert len(now) == (2 if party == "analyzer" else 1) * len(batches)
        assert [check for check in site.doctor(party) if check["verdict"] == "bad"] == []
