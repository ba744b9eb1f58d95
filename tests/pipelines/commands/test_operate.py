"""What a watch keeps between two looks: the logs that it has read, and an alert that reached nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.clocks import Hands, machine_shows
from tests.support.collecting import collect
from tests.support.jobs import done
from tests.support.site import Site, at, values


def test_a_watch_follows_its_deployment_file_to_another_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site, looks = Site(tmp_path), [0]
    moved = tmp_path / "moved"

    def stopped(*_: object) -> bool:
        looks[0] += 1
        if looks[0] == 1:
            site.store.rename(moved)
            collect(moved, site.campaign, values(100), day=-2)
            site.config.write_text(site.config.read_text().replace('"store"', f'"{moved.name}"'))
        return looks[0] == 2

    monkeypatch.setattr("pipelines.commands.operate._stopped_within", stopped)
    watched = done("run", "--config", site.config, "--watch")
    assert not site.store.exists()
    assert watched.out.count("closed: ") == 1
    assert len([*(moved / "results" / "words").glob("*/summary.json")]) == 1
    assert done("status", "--config", site.config, "--json").json[0]["differences"] == []


def test_a_watch_tells_at_its_next_look_what_reached_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tail = '[alerts]\ncommand = ["sh", "-c", "cat >> told.txt; test -e there"]\nfalse_alarms = 1e-6\n'
    site, looks = Site(tmp_path, tail=tail), [0]
    collect(site.store, site.campaign, values(600), day=-3)
    collect(site.store, site.campaign, ["alpha"] * 400, day=-2)

    def stopped(*_: object) -> bool:
        looks[0] += 1
        tmp_path.joinpath("there").touch()
        return looks[0] == 3

    monkeypatch.setattr("pipelines.commands.operate._stopped_within", stopped)
    # In the first hour of a day the window of the day before still waits for its patience.
    machine_shows(monkeypatch, Hands(at(0.5).timestamp()))
    watched = done("run", "--config", site.config, "--watch")
    assert watched.err.count("an alert reached nobody") == 1
    first, id, *again = (tmp_path / "told.txt").read_text().splitlines()
    assert again == [first, id]
