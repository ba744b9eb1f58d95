"""A deployment whose store is an object store: every command of the operator works on it as on a directory."""

from __future__ import annotations

from pathlib import Path

from pipelines.audit.doctor import examine
from pipelines.outputs.received_summary import file_of
from tests.support.collecting import collect, window_name
from tests.support.jobs import done
from tests.support.site import OBJECTS, Site, at, values
from tests.support.stub_store import StubStore


def test_windows_are_closed_and_accounted_for_in_a_store(tmp_path: Path, store: type[StubStore]) -> None:
    site = Site(tmp_path, discovery=True)
    collect(site.store, site.campaign, [*values(300), *["newcomer"] * 200], day=0)
    site.move_to_objects()
    finished = site.run(1.1)
    assert finished.problems == []
    assert [name.rpartition(" ")[2] for name in finished.hops] == ["shuffle", "release", "discover", "analyze"]
    assert file_of(f"{OBJECTS}/results/words/{site.batch(0)}/estimates.csv") in store.objects
    assert b"newcomer" in store.objects[file_of(f"{OBJECTS}/found/words/{site.batch(0)}/found.csv")]
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
    StubStore.put(f"{OBJECTS}/segments/words/unknown", b"of somebody else")
    assert len(site.run(10.1, sure=True).deleted) == 3
    left = {name for name in store.objects if not name.startswith(f"{OBJECTS}/log/")}
    assert left == {name for name in kept if not name.startswith(f"{OBJECTS}/log/")} | {
        f"{OBJECTS}/segments/words/unknown"
    }
    assert kept <= set(store.objects)
    (before,), (after,) = account, done("status", "--config", site.config, "--json").json
    assert {**after, "latest": before["latest"]} == before
