"""What a look asks of a store, and what it finds there."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pipelines.log.fold import Fold
from pipelines.log.log import Logs
from pipelines.log.stored import oldest_open, stored_files
from pipelines.schedule.run import run
from tests.support.collecting import collect, window_name
from tests.support.jobs import cli, done, new_campaign
from tests.support.site import FLOOR, Site, at, values
from tests.support.stub_store import StubStore

STORE = "stub://bucket/store"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What the store is asked for from now on; one whole listing is one request."""
    StubStore.clear()
    requests: list[str] = []

    def noted(real: Callable[..., Any]) -> Callable[..., Any]:
        def ask(store: StubStore, path: str, *rest: Any, **named: Any) -> Any:
            requests.append(path)
            return real(store, path, *rest, **named)

        return ask

    for name in ("open", "exists", "_list"):
        monkeypatch.setattr(StubStore, name, noted(getattr(StubStore, name)))
    yield requests
    StubStore.clear()


def test_a_look_with_nothing_due_asks_for_no_folder_of_a_campaign(tmp_path: Path, asked: list[str]) -> None:
    """Of each log it asks for the newest entry, the next one, and the next generation: four requests of this store."""
    site = Site(tmp_path)
    other = site.root / "campaigns" / "other"
    other.mkdir()
    path = new_campaign(other / "other.json", site.keys, "--epoch", 1, min_batch=FLOOR, dictionary=site.words)
    path = path.rename(other / "epoch-000001.json")
    shutil.copy(site.root / "campaigns" / "words" / "collection.json", other)
    for campaign in (site.campaign, path):
        collect(site.store, campaign, values(60), day=0, streams=("reports",))
    site.config.write_text(site.config.read_text().replace('store = "store"', f'store = "{STORE}"'))
    for file in site.store.rglob("*"):
        if file.is_file():
            StubStore.put(f"{STORE}/{file.relative_to(site.store)}", file.read_bytes())
    logs = Logs(site.deployment)
    assert len(run(site.deployment, now=at(1.1), logs=logs).hops) == 4
    asked.clear()
    assert run(site.deployment, now=at(1.1), logs=logs).is_quiet
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
    every, recent = (
        stored_files(site.deployment, {"words": fold}, recent=is_recent)["words"] for is_recent in (False, True)
    )
    assert {one.path.split("/")[2] for one in every} == {window_name(day) for day in range(6)}
    assert {one.path.split("/")[2] for one in recent} == {window_name(day) for day in range(2, 6)}
    said = done("status", "--config", site.config).out
    assert f"late for windows before {first} were not looked for" in said
    whole = cli("status", "--digests", "--config", site.config).out
    assert "not looked for" not in whole
    assert "60 reports are stored" in whole
    collect(site.store, site.campaign, values(60), day=6)
    (dropped,) = site.run(7.1, sure=True).dropped
    assert "/late-000000.blocks: 60 reports are too late" in dropped


def test_without_a_closed_window_all_are_listed() -> None:
    assert oldest_open(Fold("words"), None) == ""  # type: ignore[arg-type]
