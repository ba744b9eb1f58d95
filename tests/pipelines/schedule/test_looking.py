"""What a look asks of a store, and what it finds there."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from hushcount.collection.windows import window_text
from pipelines.deployment.settings import WindowsPart
from pipelines.log.fold import Fold
from pipelines.log.log import Logs
from pipelines.schedule.run import run
from pipelines.windows.stored import oldest_open, stored_files
from tests.support.clocks import stopped
from tests.support.collecting import collect, window_name
from tests.support.jobs import cli, done
from tests.support.site import FLOOR, Site, at, values
from tests.support.stub_store import StubStore


@pytest.fixture
def asked(store: type[StubStore], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the store is asked for from now on; one whole listing is one request."""
    requests: list[str] = []

    def noted(real: Callable[..., Any]) -> Callable[..., Any]:
        def ask(system: StubStore, path: str, *rest: Any, **named: Any) -> Any:
            requests.append(path)
            return real(system, path, *rest, **named)

        return ask

    for name in ("open", "exists", "_list"):
        monkeypatch.setattr(store, name, noted(getattr(store, name)))
    return requests


def test_a_look_with_nothing_due_asks_for_no_folder_of_a_campaign(tmp_path: Path, asked: list[str]) -> None:
    """Of each log it asks for the newest entry, the next one, and the next generation: four requests of this store."""
    site = Site(tmp_path)
    path = site.add("other", min_batch=FLOOR, dictionary=site.words)
    for campaign in (site.campaign, path):
        collect(site.store, campaign, values(60), day=0, streams=("reports",))
    site.move_to_objects()
    logs = Logs(site.deployment)
    assert len(run(site.deployment, clock=stopped(at(1.1)), logs=logs).hops) == 4
    asked.clear()
    assert run(site.deployment, clock=stopped(at(1.1)), logs=logs).is_quiet
    others = [path for path in asked if "/other/" in path]
    assert {path.split("/")[4] for path in others} == {"log"}
    assert len(others) <= 3 * 4
    # And of all campaigns together, however many there are.
    assert len([path for path in asked if "/words/" not in path and "/other/" not in path]) <= 24


def test_a_manifest_of_a_finished_window_is_found_by_the_next_run_and_status_says_what_it_did_not_look_at(
    tmp_path: Path,
) -> None:
    site = Site(tmp_path)
    for day in range(6):
        collect(site.store, site.campaign, values(60), day=day)
    assert site.run(6.1, sure=True).problems == []
    fold = Logs(site.deployment).read("words")
    first = oldest_open(fold, site.deployment.windows)
    assert first == window_name(2)
    collect(site.store, site.campaign, values(60), day=0, collector="late", came=6)
    every, recent = (stored_files(site.deployment, recent)["words"] for recent in (None, {"words": fold}))
    assert {one.path.split("/")[2] for one in every} == {window_name(day) for day in range(6)}
    assert {one.path.split("/")[2] for one in recent} == {window_name(day) for day in range(2, 6)}
    said = done("status", "--config", site.config).out
    assert f"late files of windows before {window_text(first)} were not looked for" in said
    whole = cli("status", "--digests", "--config", site.config).out
    assert "not looked for" not in whole
    assert "60 reports are stored" in whole
    collect(site.store, site.campaign, values(60), day=6)
    (dropped,) = site.run(7.1, sure=True).dropped
    assert "/late-000000.blocks: 60 reports are too late" in dropped


def test_without_a_closed_window_all_are_listed() -> None:
    assert oldest_open(Fold("words"), WindowsPart(length=timedelta(days=1), grace=timedelta(days=2))) == ""


def test_what_a_young_campaign_has_of_older_windows_is_listed_too(tmp_path: Path) -> None:
    site = Site(tmp_path)
    for day in (6, 7):
        collect(site.store, site.campaign, values(60), day=day)
    assert site.run(8.1, sure=True).problems == []
    collect(site.store, site.campaign, values(60), day=0, collector="late", came=8)
    shown = cli("status", "--config", site.config)
    assert "not looked for" not in shown.out
    assert "60 reports are stored" in shown.out


@pytest.mark.parametrize("place", ["loop", "words/loop"])
def test_a_link_that_leads_nowhere_hides_no_segment(tmp_path: Path, place: str) -> None:
    site = Site(tmp_path)
    collect(site.store, site.campaign, values(60), day=0)
    (site.store / "segments" / place).symlink_to("loop")
    assert len(site.run(1.1).hops) == 2


def test_a_second_statement_of_one_number_is_a_witness_too(tmp_path: Path) -> None:
    """A run that was up when the log was restored left it, beside the one that the log has now."""
    site = Site(tmp_path)
    collect(site.store, site.campaign, values(60), day=0)
    site.run(1.1)
    (said,) = (site.store / "stated" / "shuffler" / "words").glob("*.json")
    for digit in "0f":
        twin = shutil.copy(said, said.with_name(f"{said.name[:-21]}{digit * 16}.json"))
        assert "the log of shuffler was lost" in site.run(1.2).problems[0]
        Path(twin).unlink()
    assert site.run(1.3).problems == []
