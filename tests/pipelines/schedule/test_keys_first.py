"""No hop spends what a later one cannot use: keys are looked at before anything is released or charged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipelines.schedule.done import Done
from tests.support.collecting import collect
from tests.support.jobs import done, refused
from tests.support.site import Site, account_at, values


def charges(site: Site) -> Any:
    return done("ledger", "show", "--ledger", site.root / "ledger.db", "--json").json


@pytest.mark.parametrize("fault", ["retired", "damaged", "missing"])
@pytest.mark.long(but=("retired",))
def test_nothing_is_released_that_the_analyzer_cannot_open(tmp_path: Path, fault: str) -> None:
    site = Site(tmp_path, discovery=True)
    (key,) = site.keys.glob("analyzer-*.key")
    if fault == "retired":
        site.destroy("analyzer")
    elif fault == "damaged":
        key.write_bytes(key.read_bytes()[:-20])
    else:
        aside = key.rename(tmp_path / "aside.key")
    collect(site.store, site.campaign, values(200), day=0)
    finished = site.run(1.1)
    assert finished.problems
    assert not (site.root / "ledger.db").exists() or charges(site)["charges"] == []
    if fault == "retired":
        account = account_at(site, 1.1)
        assert account.differences == []
        accepted = {hop.hop: hop.accepted for hop in account.hops if hop.hop != "shuffle"}
        assert accepted == {"release": 0, "discover": 0, "analyze": 0}
        assert site.run(1.2) == Done()
    if fault == "missing":
        aside.rename(key)
        assert site.run(1.2).problems == []
        assert site.result(0)["accepted"] == 200


def test_a_key_by_hand_is_looked_at_before_anything_is_charged(tmp_path: Path) -> None:
    site = Site(tmp_path, discovery=True)
    (key,) = site.keys.glob("analyzer-*.key")
    key.write_bytes(key.read_bytes()[:-20])
    ledger, given = tmp_path / "ledger.db", ("--campaign", site.campaign, "--keys", site.keys, "--input", tmp_path)
    for job in ("discover", "analyze"):
        refused("job", job, *given, "--out", tmp_path / "out", "--ledger", ledger, says=[key.name])
    assert not ledger.exists()
