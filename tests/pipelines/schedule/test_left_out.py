"""A stream that is too small once copies are gone: the other one goes on, and its segments join the next batch."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.log.log import Logs
from tests.support.plain_jobs import COPIES, PlainJobs, leave
from tests.support.site import Site, account_at


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> PlainJobs:
    monkeypatch.setattr("pipelines.schedule.attempts.require_keys", lambda *_: None)
    return PlainJobs(monkeypatch)


@pytest.mark.parametrize("stream", ["reports", "discovery"])
def test_a_stream_that_is_left_out_waits_and_joins_the_next_batch(tmp_path: Path, jobs: PlainJobs, stream: str) -> None:
    site = Site(tmp_path, discovery=True)
    first = leave(site.store, site.campaign, 0, {"reports": 70, "discovery": 70})
    for segment in first:
        path = site.store / "segments" / segment
        if path.parent.name == stream:
            # Of this stream there are 30 in the window, and 40 copies.
            leave(site.store, site.campaign, 1, {stream: 30})  # type: ignore[dict-item]
            leave(site.store, site.campaign, 1, {stream: 40}, COPIES)  # type: ignore[dict-item]
    other = "discovery" if stream == "reports" else "reports"
    leave(site.store, site.campaign, 1, {other: 60}, "two")  # type: ignore[dict-item]
    assert site.run(2.1).problems == []
    fold = Logs(site.deployment).read("words")
    assert fold.batches[site.batch(1)].collected == {other: 60}
    assert fold.streams_of(site.batch(1)) == {other}
    assert {segment.stream for segment in fold.waiting.values()} == {stream}
    assert sum(segment.records for segment in fold.waiting.values()) == 70
    # Who reads the stream that was left out has passed the batch, with nothing.
    passed = fold.hops_of(site.batch(1))["analyze" if stream == "reports" else "release"]
    assert (passed.folder, passed.counts.accepted) == (None, 0)
    leave(site.store, site.campaign, 2, {stream: 50})  # type: ignore[dict-item]
    assert site.run(3.1).problems == []
    after = Logs(site.deployment).read("words")
    assert after.batches[site.batch(2)].collected == {stream: 120}
    assert not after.waiting
    assert account_at(site, 3.2).differences == []
    released = [path for (of, _), paths in jobs.released.items() if of == stream for path in paths]
    assert len(set(released)) == len(released) == 4
