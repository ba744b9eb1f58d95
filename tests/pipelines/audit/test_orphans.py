"""Segments that no manifest lists are seen, and counted once they are listed again."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from pathlib import Path

import pytest

from pipelines.audit.doctor import examine
from service import window_folders
from tests.shuffler.collector.running import make_site
from tests.shuffler.collector.test_windows import NOON, collect_at, target_of
from tests.support.collecting import collect, window_name
from tests.support.jobs import done, refused
from tests.support.site import Site, account_at, at, values

HOUR = 3600


def test_two_journals_of_one_name_write_over_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two collectors of one name, or one that lost its disk; and one that was killed writes its own again."""
    site = make_site(tmp_path / "site")
    reports = [os.urandom(target_of(site).sealed_bytes) for _ in range(2)]
    for report in reports:
        with monkeypatch.context() as killed:
            killed.setattr(window_folders, "remove_window", stop)
            asyncio.run(collect_at(site, [NOON, NOON + HOUR], report))
        asyncio.run(collect_at(site, [NOON + HOUR], b"", keep=False))
        shutil.rmtree(site.journal)
    assert set(site.sealed()) == set(reports)
    first, second = (manifest for manifest in site.manifests() if manifest.window == "20261121T120000Z")
    assert {part.records for manifest in (first, second) for part in manifest.segments["reports"]} == {1}
    assert first.collector == second.collector == "one"
    assert first.segments != second.segments


def stop(*_: object) -> None:
    """Stand for the end of a process after its manifests are written."""
    raise OSError


def found(site: Site, day: float) -> dict[str, tuple[str, str]]:
    return {check.name: (check.verdict, check.says) for check in examine(site.deployment, at(day))}


def test_what_no_manifest_lists_is_seen_and_counted_once_it_is_listed_again(tmp_path: Path) -> None:
    site = Site(tmp_path)
    # Days ago: the command goes by the real clock.
    collect(site.store, site.campaign, values(100), day=-3)
    (lost,) = collect(site.store, site.campaign, values(60), day=-2, collector="two-2")
    lost = lost.rename(lost.with_name(f"two-2-000001-0123abcd-client-token-{'4' * 16}.blocks"))
    (lost.parents[1] / "two-2.manifest.json").unlink()
    site.run(-1.8)
    assert lost.name in account_at(site, -0.5).differences[0]
    assert "hushcount repair segments" in account_at(site, -0.5).differences[0]
    assert found(site, -0.5)["segments of words"][0] == "bad"
    (torn,) = collect(site.store, site.campaign, values(60), day=-2, collector="torn")
    torn.write_bytes(torn.read_bytes()[:-1])
    (torn.parents[1] / "torn.manifest.json").unlink()
    told = refused(
        "repair", "segments", "--config", site.config, status=1, says=[f"{torn} is not a complete segment", "1 could"]
    )
    assert f"listed again: {lost.relative_to(site.store / 'segments')}, 60 reports" in told.out
    assert "warning" not in told.out
    torn.unlink()
    assert "every segment" in done("repair", "segments", "--config", site.config).out
    site.run(-0.5)
    assert site.result(-2)["received"] == 60
    # Its name says how its senders were told apart, so that the batch still speaks of a client.
    assert site.result(-2)["privacy"]["per"] == "client"  # type: ignore[index]
    assert account_at(site, -0.4).differences == []
    assert found(site, -0.4)["segments of words"][0] == "good"


def test_two_manifests_of_one_collector_are_warned_of(tmp_path: Path) -> None:
    site = Site(tmp_path)
    collect(site.store, site.campaign, values(20), day=0)
    manifest = next(site.store.glob("segments/words/*/*/one.manifest.json"))
    shutil.copy(manifest, manifest.with_name(f"one-{'a' * 16}.manifest.json"))
    text = manifest.with_name(f"one-{'a' * 16}.manifest.json")
    text.write_text(text.read_text().replace("one-000000", "one-000009"))
    site.run(0.5)
    assert found(site, 0.6)["name of one"][0] == "warning"


def test_where_nothing_says_how_the_senders_of_an_orphan_were_told_apart_none_counts_and_it_is_said(
    tmp_path: Path,
) -> None:
    site = Site(tmp_path)
    # A window that ended today may be open still: its collectors are waited for.
    (strange,) = collect(site.store, site.campaign, values(60), day=-3, collector="two")
    (bearer,) = collect(site.store, site.campaign, values(60), day=-2, collector="two")
    bearer = bearer.rename(bearer.with_name(f"two-000001-0123abcd-bearer-{'5' * 16}.blocks"))
    for segment in (strange, bearer):
        (segment.parents[1] / "two.manifest.json").unlink()
    told = done("repair", "segments", "--config", site.config).out
    name = strange.relative_to(site.store / "segments")
    assert f"the name of {name} does not say how clients were told apart: it counts as authentication none" in told
    assert told.count("warning") == 1
    said = {path.parent.name: json.loads(path.read_text())["authentication"] for path in manifests(site)}
    assert said == {window_name(-3): "none", window_name(-2): "bearer"}


def manifests(site: Site) -> list[Path]:
    return list(site.store.glob("segments/words/*/*/*.manifest.json"))
