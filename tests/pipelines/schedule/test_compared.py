"""Two runs shuffle two batches at once that hold copies of each other's reports: each report counts once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from pipelines.engine.runner import Engine
from pipelines.jobs import together
from pipelines.jobs.together import BatchJob
from pipelines.schedule import advancing
from pipelines.schedule.run import run
from tests.support.clocks import stopped
from tests.support.collecting import add_copies, collect
from tests.support.jobs import summary
from tests.support.site import Site, account_at, at, values
from tests.support.writes import Killed


def test_a_shuffle_that_was_not_compared_with_one_that_came_first_is_made_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(tmp_path)
    (first,) = collect(site.store, site.campaign, values(100), day=0)
    (second,) = collect(site.store, site.campaign, values(80), day=1)
    add_copies(first, second)
    real, ran = together._run_graph, list[int]()

    def run_graph(jobs: Sequence[BatchJob], engine: Engine, console: object) -> None:
        ran.append(len(jobs))
        if len(ran) < 3:
            # The first batch cannot be shuffled now, with the second or alone, and the run goes on with the second.
            raise OSError(28, "No space left on device")
        real(jobs, engine, None)
        if len(ran) == 3:
            # Before it has said so, another run shuffles the first, and is killed.
            (lease,) = (site.store / "log").glob("*.lease.json")
            lease.unlink()
            with pytest.raises(Killed), monkeypatch.context() as alone:
                alone.setattr(advancing, "MOST_TOGETHER", 1)
                run_the_first(site)

    monkeypatch.setattr(together, "_run_graph", run_graph)
    (problem,) = site.run(2.1).problems
    assert "No space left" in problem
    assert ran[:3] == [2, 1, 1]
    assert site.run(2.2).problems == []
    shuffled = [summary(site.store / "shuffled" / "words" / site.batch(day)) for day in (0, 1)]
    assert [(one["received"], one["rejected"]) for one in shuffled] == [(100, {}), (180, {"duplicate": 100})]
    assert account_at(site, 2.3).differences == []


def test_a_batch_that_is_shuffled_late_is_compared_with_late_reports_of_a_later_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They came within its grace, and waited until a window took them that began after it."""
    site = Site(tmp_path)
    (first,) = collect(site.store, site.campaign, values(40), day=0)
    collect(site.store, site.campaign, values(60), day=0, collector="two")
    (copies,) = collect(site.store, site.campaign, values(3), day=2)
    add_copies(first, copies)
    moment = at(3).timestamp()
    os.utime(copies.parents[1] / "one.manifest.json", (moment, moment))
    collect(site.store, site.campaign, values(100), day=4)
    real = together._run_graph

    def run_graph(jobs: Sequence[BatchJob], engine: Engine, console: object) -> None:
        if any(job.to.writer.batch == site.batch(0) for job in jobs):
            raise OSError(28, "No space left on device")
        real(jobs, engine, None)

    with monkeypatch.context() as patched:
        patched.setattr(together, "_run_graph", run_graph)
        for day in (1.1, 3.1, 5.1):
            assert len(site.run(day, sure=True).problems) == 1
    assert site.run(5.2, sure=True).problems == []
    shuffled = [summary(site.store / "shuffled" / "words" / site.batch(day)) for day in (0, 4)]
    assert [(one["received"], one["rejected"]) for one in shuffled] == [(100, {"duplicate": 40}), (143, {})]


def run_the_first(site: Site) -> None:
    """Run until the first batch is through."""

    def say(step: str) -> None:
        if site.batch(1) in step:
            raise Killed

    run(site.deployment, clock=stopped(at(2.1)), say=say)
