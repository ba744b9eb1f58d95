"""A deployment whose store is an object store: every command of the operator works on it as on a directory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.audit.doctor import examine
from pipelines.outputs.received_summary import file_of
from tests.support.collecting import collect, window_name
from tests.support.jobs import done
from tests.support.site import Site, at, values
from tests.support.stub_store import StubStore

STORE = "stub://bucket/store"


@pytest.fixture
def store() -> Iterator[type[StubStore]]:
    StubStore.clear()
    yield StubStore
    StubStore.clear()


def upload(site: Site) -> None:
    """Put what collectors left into the store."""
    for path in sorted(site.store.rglob("*")):
        if path.is_file():
            StubStore.put(f"{STORE}/{path.relative_to(site.store)}", path.read_bytes())


def test_windows_are_closed_and_accounted_for_in_a_store(tmp_path: Path, store: type[StubStore]) -> None:
    site = Site(tmp_path, discovery=True)
    site.config.write_text(site.config.read_text().replace('store = "store"', f'store = "{STORE}"'))
    collect(site.store, site.campaign, [*values(300), *["newcomer"] * 200], day=0)
    upload(site)
    finished = site.run(1.1)
    assert finished.problems == []
    assert [name.rpartition(" ")[2] for name in finished.hops] == ["shuffle", "release", "discover", "analyze"]
    assert file_of(f"{STORE}/results/words/{site.batch(0)}/estimates.csv") in store.objects
    assert b"newcomer" in store.objects[file_of(f"{STORE}/found/words/{site.batch(0)}/found.csv")]
    assert site.run(1.1).hops == []
    assert "all numbers agree" in done("status", "--config", site.config).out
    rows = done("ask", "item", "--config", site.config, "--campaign", "words", "--json").json["rows"]
    assert {row["window"] for row in rows} == {window_name(0)}
    # The store's clock tells the same time as the test's.
    store.clock = at(1.1).timestamp
    assert {check.verdict for check in examine(site.deployment, at(1.1))} == {"good"}
    store.clock = at(0.1).timestamp
    (wrong,) = (check for check in examine(site.deployment, at(1.1)) if check.name == "clock beside the store")
    assert (wrong.verdict, wrong.says.partition(":")[0]) == ("bad", "1 d ahead of it")
    account = done("status", "--config", site.config, "--json").json
    site.config.write_text(site.config.read_text() + '[retention]\nsegments = "9d"\nshuffled = "9d"\nreleased = "9d"\n')
    assert site.run(9.9, sure=True).deleted == []
    kept = {name for name in store.objects if name.split("/")[4] in ("found", "results", "estimates", "log", "stated")}
    StubStore.put(f"{STORE}/segments/words/unknown", b"of somebody else")
    assert len(site.run(10.1, sure=True).deleted) == 3
    left = {name for name in store.objects if not name.startswith(f"{STORE}/log/")}
    assert left == {name for name in kept if not name.startswith(f"{STORE}/log/")} | {f"{STORE}/segments/words/unknown"}
    assert kept <= set(store.objects)
    (before,), (after,) = account, done("status", "--config", site.config, "--json").json
    assert {**after, "latest": before["latest"]} == before
