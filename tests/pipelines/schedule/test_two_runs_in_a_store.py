"""Two runs at once in a store of objects: the one that is slower changes nothing any more."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from threading import Event, Thread, current_thread

import pytest
from apache_beam.pvalue import PCollection

from pipelines.jobs import shuffle as shuffle_module
from pipelines.jobs import together
from pipelines.jobs.analyze import AnalyzeSteps
from pipelines.jobs.together import Where
from pipelines.outputs.received_summary import folder_of
from pipelines.schedule.done import Done
from tests.support.collecting import collect
from tests.support.site import OBJECTS, Site, account_at, values
from tests.support.stub_store import StubStore

WAIT = 60.0


@pytest.mark.parametrize("writes", ["in the middle of the shards", "behind all shards"])
def test_of_two_runs_that_shuffle_one_batch_one_is_the_output(
    tmp_path: Path, store: type[StubStore], monkeypatch: pytest.MonkeyPatch, writes: str
) -> None:
    """The first goes on with its shards while the second reads its own: of 800 reports 800 are counted, and once."""
    site = Site(tmp_path)
    collect(site.store, site.campaign, values(800), day=0)
    site.move_to_objects()
    monkeypatch.setattr(shuffle_module, "_SHARD_RECORDS", 100)
    halfway, resume, written = Event(), Event(), Event()
    real_put, real_steps, real_take = store.put, AnalyzeSteps.add, together.take_counts
    shards: list[str] = []
    done: list[Done] = []

    def stop() -> None:
        halfway.set()
        assert resume.wait(WAIT)

    def slow_put(path: str, content: bytes) -> None:
        """Stop the first run after two of its eight shards."""
        if "/attempts/" in path and path.endswith(".blocks") and not halfway.is_set():
            shards.append(path)
            if len(shards) == 3 and writes == "in the middle of the shards":
                stop()
        real_put(path, content)

    def take_counts(directory: str) -> dict[str, int]:
        if current_thread() is first:
            if not halfway.is_set():
                stop()
            written.set()
        return real_take(directory)

    def steps_after_the_first_run(steps: AnalyzeSteps, files: Mapping[str, PCollection], where: Where) -> PCollection:
        """The second run has looked at the shards that it is about to read; now the first one writes the rest."""
        resume.set()
        assert written.wait(WAIT)
        return real_steps(steps, files, where)

    def run_first() -> None:
        done.append(site.run(1.1))

    monkeypatch.setattr(store, "put", staticmethod(slow_put))
    monkeypatch.setattr(AnalyzeSteps, "add", steps_after_the_first_run)
    monkeypatch.setattr(together, "take_counts", take_counts)
    first = Thread(target=run_first)
    first.start()
    assert halfway.wait(WAIT)
    for lease in [path for path in store.objects if path.endswith(".lease.json")]:
        del store.objects[lease]
    second = site.run(1.1)
    first.join(WAIT)
    assert [one.problems for one in (*done, second)] == [[], []]
    (shuffled, analyzed) = account_at(site, 1.2).hops
    assert (shuffled.accepted, analyzed.accepted, analyzed.rejected) == (800, 800, {})
    assert account_at(site, 1.2).differences == []
    # Of the first run nothing stays.
    out = f"{OBJECTS}/shuffled/words/{site.batch(0)}"
    left = {path.removeprefix(f"{out}/").partition("/")[0] for path in store.objects if path.startswith(f"{out}/")}
    assert left == {"summary.json", folder_of(out).rpartition("/")[2]}
    assert not [path for path in store.objects if "/attempts/" in path]
