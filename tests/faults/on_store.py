"""Input and output in an object store over HTTP: the same results, and no half one when the connection is cut."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.collection import (
    SECONDS,
    Collection,
    assert_failed_in_one_sentence,
    finished,
    started,
)
from tests.faults.conftest import Note
from tests.faults.flink_faults import running
from tests.faults.store import BUCKET, Store, store

JOBS = ("shuffle", "analyze", "discover")
OUTAGES = ((0.1, 4.0), (0.5, 4.0), (0.9, 4.0), (0.97, 30.0))
"""When the connection is cut, as the part of an undisturbed run's bytes that have passed, and for how many seconds."""


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory, collection: Collection) -> Iterator[Store]:
    """A store with the input of every job."""
    with store(tmp_path_factory.mktemp("store")) as running_store:
        for job in JOBS:
            running_store.put(collection.source(job), f"input/{job}")
        yield running_store


@pytest.fixture(scope="module")
def bytes_of(there: Store, collection: Collection) -> dict[str, int]:
    """How many bytes pass in an undisturbed run of each job."""
    passed = {}
    for job in JOBS:
        before = there.connection.passed
        finished(*arguments(collection, job, "undisturbed"), "--", *there.options)
        passed[job] = there.connection.passed - before
    return passed


def arguments(collection: Collection, job: str, name: str) -> tuple[str, ...]:
    """Return the arguments of a job from the store to the store."""
    return collection.arguments(job, f"s3://{BUCKET}/{name}/{job}", f"s3://{BUCKET}/input/{job}")


def assert_same(there: Store, collection: Collection, job: str, name: str, tmp_path: Path) -> None:
    """Check a result in the store, and that nothing stands beside it that a local result does not have."""
    local = there.get(f"{name}/{job}", tmp_path / name)
    collection.assert_same(job, local)
    undisturbed = collection.undisturbed(job)
    expected = {_kind(str(path.relative_to(undisturbed))) for path in undisturbed.rglob("*") if path.is_file()}
    assert {_kind(one) for one in there.names(f"{name}/{job}")} == expected


def _kind(name: str) -> str:
    """Return a file's name without its number: where blocks go through the engine there are more, smaller shards."""
    return re.sub(r"part-\d+-of-\d+", "part", name)


@pytest.mark.parametrize("job", JOBS)
def test_a_job_from_the_store_to_the_store(
    collection: Collection, there: Store, bytes_of: dict[str, int], tmp_path: Path, note: Note, job: str
) -> None:
    assert bytes_of[job] > 1 << 20
    assert_same(there, collection, job, "undisturbed", tmp_path)
    note("none; input and output in s3://", job, "the same result")


@pytest.mark.parametrize(("part", "seconds"), OUTAGES)
@pytest.mark.parametrize("job", JOBS)
def test_an_outage(
    collection: Collection,
    there: Store,
    bytes_of: dict[str, int],
    tmp_path: Path,
    note: Note,
    job: str,
    part: float,
    seconds: float,
) -> None:
    """Outlasted, or told in one sentence with no result; then it runs again."""
    name = f"away-{part}-{seconds}"
    with started(*arguments(collection, job, name), "--", *there.options) as process:
        cut_after(there, part * bytes_of[job])
        # No mark of a result while the store is away, whatever comes of it.
        time.sleep(seconds)
        assert "summary.json" not in there.names(f"{name}/{job}")
        there.connection.restore()
        _, told = process.communicate(timeout=SECONDS)
    outcome = "outlasted; the same result"
    if process.returncode:
        assert_failed_in_one_sentence(process, told)
        assert there.names(f"{name}/{job}") == []
        finished(*arguments(collection, job, name), "--", *there.options)
        outcome = "status 1, nothing left; run again: the same result"
    assert_same(there, collection, job, name, tmp_path)
    note(f"store away for {seconds:.0f} s", job, outcome)


def cut_after(there: Store, passed: float) -> None:
    """Cut the connection when so many more bytes have passed."""
    before, end = there.connection.passed, time.monotonic() + SECONDS
    while there.connection.passed - before < passed:
        assert time.monotonic() < end
        time.sleep(0.001)
    there.connection.cut()


@pytest.mark.parametrize("job", JOBS)
def test_a_job_on_flink_from_the_store_to_the_store(
    collection: Collection, there: Store, fetched: Path, tmp_path: Path, note: Note, job: str
) -> None:
    """No worker reaches another's disk then: blocks meet through the engine."""
    with running(fetched, tmp_path / "flink", restarts=0) as (_, options):
        finished(*arguments(collection, job, "flink"), *options, *there.options)
    assert_same(there, collection, job, "flink", tmp_path)
    note("none; on Flink, input and output in s3://", job, "the same result")
