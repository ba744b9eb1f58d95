"""Two writers of one output in a store: neither harms what the other wrote, and the mark names one whole result."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread, current_thread

import apache_beam as beam
import pytest

from hushcount.errors import HushcountError, LostLock, UsageError
from pipelines.batches.state import opened
from pipelines.files import storage
from pipelines.jobs import job as job_module
from pipelines.jobs import shuffle as shuffle_module
from pipelines.jobs.analyze import AnalyzeJob
from pipelines.jobs.job import Place
from pipelines.outputs.counts import HopCounts
from pipelines.outputs.received_summary import file_of, folder_of
from pipelines.outputs.staging import BY_HAND, Writer, require_free, staged, sweep, write_summary
from pipelines.outputs.summary import HopSummary
from tests.support.collecting import collect
from tests.support.lost_lock import cut_lock
from tests.support.postgres import postgresql
from tests.support.site import Site, account_at, values
from tests.support.stub_store import StubStore

OUT = "stub://bucket/store/shuffled/words/batch"
RUN = "0000000001-0000000000000001"
WAIT = 120.0


@pytest.fixture(autouse=True)
def store() -> Iterator[type[StubStore]]:
    StubStore.clear()
    yield StubStore
    StubStore.clear()


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgresql() as address:
        yield address


def put(directory: str, content: bytes) -> None:
    """Write what a job would."""
    storage.write_whole(storage.join(directory, "reports", "part.blocks"), [content])
    counts = HopCounts.of("shuffle", {})
    summary = HopSummary(**vars(counts), campaign="words", fingerprint="0" * 64, upstream=())
    write_summary(directory, summary)


def read() -> bytes:
    return StubStore.objects[storage.join(folder_of(OUT), "reports", "part.blocks")]


def fail() -> None:
    raise LostLock("another run took over")


@pytest.mark.long
def test_a_run_that_lost_its_lock_in_the_middle_of_a_hop_leaves_the_result_of_the_next_one(
    tmp_path: Path, server: str, store: type[StubStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes on with its shards while the next run reads its own: of 800 reports 800 are counted, and once."""
    site = Site(tmp_path, settings=f'state = "{server}"')
    folder = "stub://bucket/store"
    site.config.write_text(site.config.read_text().replace('store = "store"', f'store = "{folder}"'))
    collect(site.store, site.campaign, values(800), day=0)
    for path in sorted(path for path in site.store.rglob("*") if path.is_file()):
        store.put(f"{folder}/{path.relative_to(site.store)}", path.read_bytes())
    monkeypatch.setattr(shuffle_module, "_SHARD_RECORDS", 100)
    halfway, resume, written, finish = Event(), Event(), Event(), Event()
    real_put, real_graph, real_take = store.put, AnalyzeJob.graph, job_module.take_counts
    shards: list[str] = []
    ended: list[HushcountError] = []

    def slow_put(path: str, content: bytes) -> None:
        """Stop the first run after two of its eight shards."""
        if "/shuffled/" in path and path.endswith(".blocks") and not halfway.is_set():
            shards.append(path)
            if len(shards) == 3:
                halfway.set()
                assert resume.wait(WAIT)
        real_put(path, content)

    def graph_after_the_first_run(job: AnalyzeJob, pipeline: beam.Pipeline, place: Place) -> None:
        """The next run has looked at the shards that it is about to read; now the first one writes the rest."""
        resume.set()
        assert written.wait(WAIT)
        real_graph(job, pipeline, place)

    def take_counts(directory: str) -> dict[str, int]:
        if current_thread() is first:
            written.set()
            assert finish.wait(WAIT)
        return real_take(directory)

    def run_first() -> None:
        try:
            site.run(1.1)
        except HushcountError as error:
            ended.append(error)

    monkeypatch.setattr(store, "put", staticmethod(slow_put))
    monkeypatch.setattr(AnalyzeJob, "graph", graph_after_the_first_run)
    monkeypatch.setattr(job_module, "take_counts", take_counts)
    first = Thread(target=run_first)
    first.start()
    assert halfway.wait(WAIT)
    with opened(server) as state:
        cut_lock(state)
    second = site.run(1.1)
    finish.set()
    first.join(WAIT)
    assert second.problems == []
    assert [type(error) for error in ended] == [LostLock]
    (shuffled, analyzed) = account_at(site, 1.2).hops
    assert (shuffled.accepted, analyzed.accepted, analyzed.rejected) == (800, 800, {})
    assert account_at(site, 1.2).differences == []
    # Of the first run nothing stays.
    runs = {path.split("/")[7] for path in store.objects if "/shuffled/words/" in path}
    assert runs == {"summary.json", folder_of(f"{folder}/shuffled/words/{site.batch(0)}").rpartition("/")[2]}


def test_what_a_failing_writer_wrote_goes_and_nothing_else() -> None:
    with staged(OUT, False, Writer(2)) as second:
        put(second, b"second")
        with pytest.raises(LostLock), staged(OUT, False, Writer(1, fail)) as first:
            put(first, b"first")
    assert read() == b"second"
    assert not [path for path in StubStore.objects if path.startswith(first)]


def test_a_sweep_leaves_who_came_later_and_who_may_be_about_to_set_the_mark() -> None:
    """Whose token is smaller deletes nothing of whose is greater, and a whole result may become the mark any moment."""
    for folder in ("0000000001-0000000000000001", "0000000003-0000000000000003"):
        storage.write_whole(storage.join(OUT, folder, "reports", "part.blocks"), [b"half"])
    put(storage.join(OUT, "0000000001-0000000000000002"), b"whole")
    sweep(OUT, Writer(2))
    folders = {path.split("/")[7] for path in StubStore.objects}
    assert folders == {"0000000001-0000000000000002", "0000000003-0000000000000003"}
    with staged(OUT, False, Writer(2)) as mine:
        put(mine, b"mine")
    sweep(OUT, Writer(4))
    assert read() == b"mine"
    assert "0000000003-0000000000000003" not in {path.split("/")[7] for path in StubStore.objects}


def test_by_hand_nothing_is_written_beside_what_may_still_be_written() -> None:
    storage.write_whole(storage.join(OUT, "0000000003-0000000000000003", "reports", "part.blocks"), [b"half"])
    with pytest.raises(UsageError, match="see that no job still writes there"):
        require_free(OUT, False)
    require_free(OUT, False, writer=Writer(1))


def test_a_result_that_is_replaced_is_whole_at_every_moment() -> None:
    with staged(OUT, False) as old:
        put(old, b"old")
    with staged(OUT, True) as new:
        put(new, b"new")
        assert read() == b"old"
    assert read() == b"new"
    assert not [path for path in StubStore.objects if path.startswith(old)]


def test_a_mark_keeps_what_it_names_where_only_the_stores_answer_was_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    real = StubStore.delete

    def cut(store: StubStore, paths: list[str]) -> None:
        """Rename is a copy and a deletion: the first is done, and of the second nothing is heard."""
        if paths[0].endswith("/summary.json"):
            raise ConnectionError("connection reset")
        real(store, paths)

    monkeypatch.setattr(StubStore, "delete", cut)
    with pytest.raises(ConnectionError), staged(OUT, False, Writer(1)) as directory:
        put(directory, b"mine")
    assert read() == b"mine"


def test_a_folder_that_another_party_names_is_one_of_a_run(subtests: pytest.Subtests) -> None:
    for folder in ["../other", "0000000001-0000000000000001/..", "", 7, "0000000001-0000000000000001\n"]:
        with subtests.test(folder=folder):
            storage.write_json(storage.join(OUT, "summary.json"), {"folder": folder})
            with pytest.raises(UsageError, match="names no folder of a run"):
                folder_of(OUT)


def test_a_file_of_an_output_is_found_under_the_name_that_it_would_have_beside_the_summary() -> None:
    with staged(OUT, False, BY_HAND) as directory:
        put(directory, b"mine")
        storage.write_whole(storage.join(directory, "tally.npz"), [b"tally"])
    assert file_of(f"{OUT}/tally.npz") == file_of(f"{directory}/tally.npz") == f"{directory}/tally.npz"
    assert file_of("tally.npz") == "tally.npz"


def test_status_says_that_the_mark_is_of_a_run_that_lost_its_lock(tmp_path: Path, store: type[StubStore]) -> None:
    """It proved its lock, and lost it before its next step."""
    site = Site(tmp_path)
    folder = "stub://bucket/store"
    site.config.write_text(site.config.read_text().replace('store = "store"', f'store = "{folder}"'))
    collect(site.store, site.campaign, values(100), day=0)
    for path in sorted(path for path in site.store.rglob("*") if path.is_file()):
        store.put(f"{folder}/{path.relative_to(site.store)}", path.read_bytes())
    site.run(1.1)
    assert account_at(site, 1.2).differences == []
    mark = f"{folder}/shuffled/words/{site.batch(0)}/summary.json"
    mine = folder_of(mark.rpartition("/")[0]).rpartition("/")[2]
    other = "0000000000-00000000000000ff"
    for path in [path for path in store.objects if f"/{mine}/" in path]:
        store.objects[path.replace(mine, other)] = store.objects[path]
    store.objects[mark] = store.objects[mark].replace(mine.encode(), other.encode())
    (said,) = account_at(site, 1.2).differences
    assert said.startswith(f"{mark} does not name {mine}, which hushcount shuffle wrote")
