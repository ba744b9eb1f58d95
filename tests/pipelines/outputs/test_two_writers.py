"""Two writers of one output in a store: neither harms what the other wrote, and the mark names one whole result."""

from __future__ import annotations

import pytest

from hushcount.errors import HushcountError, UsageError
from pipelines.files import storage
from pipelines.outputs.counts import HopCounts
from pipelines.outputs.received_summary import file_of, folder_of
from pipelines.outputs.staging import new_folder, require_free, staged, write_summary
from pipelines.outputs.summary import HopSummary
from tests.support.stub_store import StubStore

OUT = "stub://bucket/store/shuffled/words/batch"
pytestmark = pytest.mark.usefixtures("store")


def put(directory: str, content: bytes) -> None:
    """Write what a job would."""
    storage.write_whole(storage.join(directory, "reports", "part.blocks"), [content])
    counts = HopCounts.of("shuffle", {})
    summary = HopSummary(**vars(counts), campaign="words", fingerprint="0" * 64, upstream=())
    write_summary(directory, summary)


def read() -> bytes:
    return StubStore.objects[storage.join(folder_of(OUT), "reports", "part.blocks")]


def test_what_a_failing_writer_wrote_goes_and_nothing_else() -> None:
    folders = []
    with staged(OUT, False) as second, pytest.raises(HushcountError, match="too few"), staged(OUT, False) as first:
        folders.append(first)
        put(second, b"second")
        put(first, b"first")
        raise HushcountError("too few")
    assert read() == b"second"
    assert not [path for path in StubStore.objects if path.startswith(folders[0])]


def test_by_hand_nothing_is_written_beside_what_may_still_be_written() -> None:
    storage.write_whole(storage.join(OUT, new_folder(), "reports", "part.blocks"), [b"half"])
    with pytest.raises(UsageError, match="check that no job still writes there"):
        require_free(OUT, False)


def test_a_result_that_is_replaced_is_whole_at_every_moment() -> None:
    with staged(OUT, False) as old:
        put(old, b"old")
    other = storage.join(OUT, new_folder())
    storage.write_whole(storage.join(other, "reports", "part.blocks"), [b"of a third writer"])
    with staged(OUT, True) as new:
        put(new, b"new")
        assert read() == b"old"
    assert read() == b"new"
    assert not [path for path in StubStore.objects if path.startswith(old)]
    assert [path for path in StubStore.objects if path.startswith(other)]


def test_a_mark_keeps_what_it_names_where_only_the_stores_answer_was_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    real = StubStore.delete

    def cut(store: StubStore, paths: list[str]) -> None:
        """Rename is a copy and a deletion: the first is done, and of the second nothing is heard."""
        if paths[0].endswith("/summary.json"):
            raise ConnectionError("connection reset")
        real(store, paths)

    monkeypatch.setattr(StubStore, "delete", cut)
    with pytest.raises(ConnectionError), staged(OUT, False) as directory:
        put(directory, b"mine")
    assert read() == b"mine"


def test_a_folder_that_another_party_names_is_one_of_a_run(subtests: pytest.Subtests) -> None:
    for folder in ["../other", f"{'0' * 16}/..", "", 7, f"{'0' * 16}\n", "0" * 15, "A" * 16]:
        with subtests.test(folder=folder):
            storage.write_json(storage.join(OUT, "summary.json"), {"folder": folder})
            with pytest.raises(UsageError, match="does not name the folder of a run"):
                folder_of(OUT)


def test_a_file_of_an_output_is_found_under_the_name_that_it_would_have_beside_the_summary() -> None:
    with staged(OUT, False) as directory:
        put(directory, b"mine")
        storage.write_whole(storage.join(directory, "tally.npz"), [b"tally"])
    assert file_of(f"{OUT}/tally.npz") == file_of(f"{directory}/tally.npz") == f"{directory}/tally.npz"
    assert file_of("tally.npz") == "tally.npz"
