"""Windows that wait go through one graph for each hop, and each batch is done, charged and published by itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pipelines.engine.runner import Engine
from pipelines.jobs import together
from pipelines.jobs.together import BatchJob
from pipelines.schedule import advancing
from tests.support.collecting import add_copies, collect
from tests.support.jobs import done, summary
from tests.support.site import Site, account_at, site_of, values

Graphs = list[tuple[str, int]]
"""The job of each graph that ran, and how many batches were in it."""


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> Graphs:
    real, ran = together._run_graph, Graphs()

    def run_graph(jobs: Sequence[BatchJob], engine: Engine, console: object) -> None:
        ran.append((jobs[0].to.out.split("/")[-2].rpartition(".")[2], len(jobs)))
        real(jobs, engine, None)

    monkeypatch.setattr(together, "_run_graph", run_graph)
    return ran


def shuffled(site: Site, day: int) -> tuple[object, object]:
    found = summary(site.store / "shuffled" / "words" / site.batch(day))
    return found["received"], found["rejected"]


def test_windows_that_wait_go_through_one_graph_for_each_hop(tmp_path: Path, graphs: Graphs) -> None:
    site = site_of(tmp_path, discovery=True)
    for day in range(4):
        collect(site.store, site.campaign, values(200 + day), day=day)
    finished = site.run(5.1, sure=True)
    assert finished.problems == []
    assert graphs == [("shuffle", 4), ("release", 4), ("discover", 4), ("analyze", 4)]
    assert len(finished.closed) == 4
    assert len(finished.hops) == 16
    assert [site.result(day)["received"] for day in range(4)] == [200, 201, 202, 203]
    assert len(done("ledger", "show", "--ledger", site.root / "ledger.db", "--json").json["charges"]) == 8
    assert account_at(site, 5.2).differences == []
    assert site.run(5.2, sure=True).hops == []


def test_copies_that_were_lost_to_a_batch_too_small_are_forwarded_by_the_next(tmp_path: Path, graphs: Graphs) -> None:
    """The second batch loses its copies to the first, keeps too few, and goes back; the third has copies of these."""
    site = site_of(tmp_path)
    first, second, third = (
        collect(site.store, site.campaign, values(number), day=day)[0] for day, number in enumerate((100, 20, 60))
    )
    add_copies(second, third)
    add_copies(first, second)
    assert site.run(4.1, sure=True).problems == []
    assert graphs == [("shuffle", 3), ("shuffle", 1), ("analyze", 2)]
    assert shuffled(site, 2) == (80, {})
    collect(site.store, site.campaign, values(60), day=4)
    site.run(5.1, sure=True)
    # Those of the second day came again: all of them are forwarded by now.
    assert shuffled(site, 4) == (180, {"duplicate": 120})
    assert account_at(site, 5.2).differences == []


def test_a_batch_that_fails_holds_up_no_other(tmp_path: Path, graphs: Graphs, monkeypatch: pytest.MonkeyPatch) -> None:
    site = site_of(tmp_path)
    for day in range(3):
        collect(site.store, site.campaign, values(100), day=day)
    counted = together._run_graph

    def run_graph(jobs: Sequence[BatchJob], engine: Engine, console: object) -> None:
        counted(jobs, engine, None)
        if any(job.to.writer.batch == site.batch(1) for job in jobs):
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(together, "_run_graph", run_graph)
        (problem,) = site.run(4.1, sure=True).problems
    assert site.batch(1) in problem
    assert graphs == [("shuffle", 3), ("shuffle", 1), ("shuffle", 1), ("shuffle", 1), ("analyze", 2)]
    assert [site.result(day)["received"] for day in (0, 2)] == [100, 100]
    assert site.run(4.2, sure=True).problems == []
    assert site.result(1)["received"] == 100
    # Nothing stays of what was tried.
    assert not [path for path in (site.store / "attempts").rglob("*") if path.is_file()]


def test_a_batch_that_is_too_small_only_by_what_it_lost_to_another_is_shuffled_anew(
    tmp_path: Path, graphs: Graphs
) -> None:
    """The first keeps 40 of 80, too few; the second has copies of these, and is enough by itself."""
    site = site_of(tmp_path)
    first, second = (
        collect(site.store, site.campaign, values(number), day=day)[0] for day, number in ((0, 40), (1, 45))
    )
    add_copies(first, first)
    add_copies(first, second)
    assert site.run(3.1, sure=True).problems == []
    assert graphs[:2] == [("shuffle", 2), ("shuffle", 1)]
    assert shuffled(site, 1) == (85, {})


@pytest.mark.parametrize("hop", ["shuffle", "analyze"])
def test_an_output_that_cannot_be_published_now_is_published_by_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hop: str
) -> None:
    """The log says that it is the output: its files stay."""
    site = site_of(tmp_path)
    for day in range(2):
        collect(site.store, site.campaign, values(100), day=day)
    real, failed = advancing.publish, list[str]()

    def publish(*given: Any) -> bool:
        if given[3] == hop and not failed:
            failed.append(hop)
            raise OSError(28, "No space left on device")
        return real(*given)

    with monkeypatch.context() as patch:
        patch.setattr(advancing, "publish", publish)
        assert any("No space left" in one for one in site.run(3.1, sure=True).problems)
    assert failed == [hop]
    assert site.run(3.2, sure=True).problems == []
    assert [site.result(day)["received"] for day in range(2)] == [100, 100]
    assert account_at(site, 3.3).differences == []
