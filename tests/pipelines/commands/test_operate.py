"""What a watch keeps between two looks: what it has read of the logs, as long as the deployment file stays the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.collecting import collect
from tests.support.jobs import done
from tests.support.site import Site, values


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
