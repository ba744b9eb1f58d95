"""What a run takes up of what is in the store already, and what it refuses. The jobs are plain ones: see PlainJobs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.plain_jobs import PlainJobs, leave
from tests.support.postgres import postgresql, tool
from tests.support.site import Site, account_at

KEEP = '[retention]\nshuffled = "7d"\nreleased = "6d"\ndead_letters = "7d"\n'


@pytest.fixture
def jobs() -> Iterator[PlainJobs]:
    with pytest.MonkeyPatch.context() as patch:
        yield PlainJobs(patch)


def forget(site: Site) -> None:
    Path(site.deployment.state).unlink()


def batch_file(site: Site, day: int) -> Path:
    return site.store / "batches" / "words" / f"{site.batch(day)}.batch.json"


@pytest.mark.parametrize("content", [b"{", b"{}", b"[" * 200_000, None])
@pytest.mark.long(but=("content2",))
def test_a_batch_file_that_cannot_be_used_stops_its_batch_and_no_other(
    tmp_path: Path, jobs: PlainJobs, content: bytes | None
) -> None:
    site = Site(tmp_path)
    first = leave(site.store, site.campaign, 0, {"reports": 100})
    site.run(1.1)
    second = leave(site.store, site.campaign, 1, {"reports": 100})
    site.run(2.1)
    right = batch_file(site, 0).read_bytes()
    batch_file(site, 0).write_bytes(batch_file(site, 1).read_bytes() if content is None else content)
    forget(site)
    late = leave(site.store, site.campaign, 0, {"reports": 70}, "two")
    third = leave(site.store, site.campaign, 2, {"reports": 100})
    problems = site.run(3.1).problems
    assert len(problems) == 1, problems
    (problem,) = problems
    assert problem.startswith(f"words/{site.batch(0)}: {batch_file(site, 0)} ")
    assert sorted(jobs.released.values()) == sorted([first, second, third])
    batch_file(site, 0).write_bytes(right)
    assert site.run(3.2).problems == []
    fourth = leave(site.store, site.campaign, 3, {"reports": 100})
    site.run(3.9)
    assert site.run(4.1).problems == []
    account = account_at(site, 4.1)
    # What came late has waited, and by now it is too late for it.
    assert {window.window: window.states for window in account.windows}[site.batch(0).partition("-")[0]] == {
        "batched": 100, "too_late": 70,
    }  # fmt: skip
    assert sorted(jobs.released.values()) == sorted([first, second, third, fourth])
    assert account.differences == []
    assert late[0] not in {path for listed in jobs.released.values() for path in listed}


@pytest.mark.parametrize("what", ["batch", "shuffled", "results"])
@pytest.mark.long(but=("shuffled",))
def test_an_output_that_was_made_from_something_else_is_not_taken_up(
    tmp_path: Path, jobs: PlainJobs, what: str
) -> None:
    site = Site(tmp_path)
    leave(site.store, site.campaign, 0, {"reports": 100})
    leave(site.store, site.campaign, 0, {"reports": 60}, "two")
    site.run(1.1)
    ran = list(jobs.ran)
    names = {folder: site.store / folder / "words" / site.batch(0) for folder in ("shuffled", "results")}
    if what == "batch":
        data = json.loads(batch_file(site, 0).read_text())
        data["segments"]["reports"].pop()
        batch_file(site, 0).write_text(json.dumps(data))
    else:
        data = json.loads((names[what] / "summary.json").read_text())
        data["made_from"] = "0" * 64
        (names[what] / "summary.json").write_text(json.dumps(data))
    forget(site)
    finished = site.run(1.2)
    (problem,) = finished.problems
    place = names["results" if what == "results" else "shuffled"]
    assert problem.startswith(f"words/{site.batch(0)}: {place} was not made from ")
    assert finished.hops == ([f"words/{site.batch(0)} shuffle"] if what == "results" else [])
    assert jobs.ran == ran


def test_an_output_of_another_batch_is_not_taken_up(tmp_path: Path, jobs: PlainJobs) -> None:
    site = Site(tmp_path)
    for day in (0, 1):
        leave(site.store, site.campaign, day, {"reports": 100})
    site.run(2.1)
    results = site.store / "results" / "words"
    shutil.rmtree(results / site.batch(1))
    shutil.copytree(results / site.batch(0), results / site.batch(1))
    forget(site)
    (problem,) = site.run(2.2).problems
    assert f"{site.batch(1)} does not hold what hushcount analyze made of batch {site.batch(1)}" in problem
    assert len(jobs.ran) == 4


def test_what_a_later_hop_was_made_from_is_not_made_again(tmp_path: Path, jobs: PlainJobs) -> None:
    """Somebody deleted by hand what was handed on, and the state is lost: found/ and results/ tell what it counted."""
    site = Site(tmp_path, discovery=True)
    leave(site.store, site.campaign, 0, {"reports": 100, "discovery": 100})
    site.run(1.1)
    ran = list(jobs.ran)
    for folder in ("shuffled", "released"):
        shutil.rmtree(site.store / folder)
    forget(site)
    assert site.run(1.2).problems == []
    assert jobs.ran == ran
    differences = account_at(site, 1.2).differences
    assert [said.partition(" is missing")[0].split("/")[-3] for said in differences] == ["released", "shuffled"]


@pytest.mark.parametrize("parties", [["shuffler"], ["aux-server"], ["analyzer"]])
@pytest.mark.long(but=("parties2",))
def test_each_party_alone_takes_up_its_own_after_retention(tmp_path: Path, jobs: PlainJobs, parties: list[str]) -> None:
    site = Site(tmp_path, discovery=True, tail=KEEP)
    leave(site.store, site.campaign, 0, {"reports": 100, "discovery": 100})
    whole = site.config.read_text()
    names = {"shuffler": "s", "aux-server": "x", "analyzer": "a"}
    for party, name in names.items():
        site.config.write_text(f'parties = ["{party}"]\nstate = "{name}.db"\n{whole}')
        site.run(1.1)
    ran = list(jobs.ran)
    assert len(ran) == 4
    site.config.write_text(f'parties = {json.dumps(parties)}\nstate = "{names[parties[0]]}.db"\n{whole}')
    site.run(7.5, sure=True)
    forget(site)
    for _ in range(2):
        assert site.run(7.6, sure=True).problems == []
    site.run(8.5, sure=True)
    forget(site)
    assert site.run(8.6, sure=True).problems == []
    assert jobs.ran == ran
    assert account_at(site, 8.7).differences == []


@pytest.mark.long
def test_a_postgresql_state_is_restored_from_a_dump(tmp_path: Path) -> None:
    """As deploy/README.md says: pg_dump of yesterday, psql, and the next run."""
    with postgresql() as server:
        site = Site(tmp_path, settings=f'state = "{server}"')
        jobs = pytest.MonkeyPatch()
        try:
            plain = PlainJobs(jobs)
            site.run(0.5)
            dump = tmp_path / "state.sql"
            tool("pg_dump", "--clean", "--if-exists", "--file", dump, server)
            made = leave(site.store, site.campaign, 0, {"reports": 200})
            site.run(1.1)
            tool("psql", "--single-transaction", "--set", "ON_ERROR_STOP=1", "--file", dump, server)
            late = leave(site.store, site.campaign, 0, {"reports": 70}, "two")
            assert site.run(1.2).problems == []
            late += leave(site.store, site.campaign, 1, {"reports": 60})
            assert site.run(2.1).problems == []
        finally:
            jobs.undo()
        assert sorted(plain.released.values()) == sorted([made, late])
        assert account_at(site, 2.1).differences == []
