"""Segments of a campaign that has no file here: run, status and doctor say how many wait, and what to do."""

from __future__ import annotations

import shutil
from pathlib import Path

from pipelines.audit.doctor import examine
from tests.support.collecting import collect
from tests.support.jobs import cli, done
from tests.support.site import Site, at, values


def test_segments_of_a_campaign_without_a_file_are_said(tmp_path: Path) -> None:
    site = Site(tmp_path, discovery=True)
    site.run(0.5)
    assert examine_segments(site) is None
    collect(site.store, site.campaign, values(100), day=0)
    home = site.store / "segments"
    (home / "words").rename(home / "strange")
    says = (
        f"strange: 2 segments wait in {home / 'strange'}, and no "
        f"run takes them: {site.root / 'campaigns' / 'strange'} has no collection.json; publish the campaign file"
    )
    (waits,) = site.run(1.1).waiting
    assert waits.startswith(says)
    status = cli("status", "--config", site.config)
    assert status.status == 1
    assert f"DIFFERENCE {says}" in status.out
    assert "error: 1 difference: see above" in status.err
    assert says in cli("status", "--config", site.config, "--json").out
    assert cli("status", "--config", site.config, "--campaign", "words").status == 0
    assert examine_segments(site) == ("warning", waits)
    # A campaign whose file is wrong is said so, and not that it has none.
    (site.root / "campaigns" / "strange").mkdir()
    (site.root / "campaigns" / "strange" / "collection.json").write_text("{}")
    assert site.run(1.2).waiting == []
    shutil.rmtree(site.root / "campaigns" / "strange")
    shutil.rmtree(home / "strange")
    done("status", "--config", site.config)


def examine_segments(site: Site) -> tuple[str, str] | None:
    found = [(one.verdict, one.says) for one in examine(site.deployment, at(1.2)) if one.name == "segments of strange"]
    return found[0] if found else None
