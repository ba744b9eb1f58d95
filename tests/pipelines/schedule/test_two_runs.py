"""Two runs at once on one store, without the lease: each batch is done once, and both say the same of it."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from pipelines.ledger.stated_charges import key_in
from pipelines.log.fold import Fold
from pipelines.log.log import Logs
from pipelines.schedule import publishing
from tests.pipelines.schedule.test_killed import counts_of, jobs, left, prepared, undisturbed
from tests.support.collecting import collect
from tests.support.jobs import done, files_under
from tests.support.plain_jobs import PlainJobs
from tests.support.site import Site, account_at, at, values
from tests.support.writes import Killed, acting_at, anywhere, kill

WAIT = 120.0
RUN = """
import sys
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path
from hushcount.clock import Clock
from pipelines.deployment.settings import Deployment
from pipelines.schedule import run

run.leased = lambda *_: nullcontext()
deployment, now = Deployment.read(Path(sys.argv[1])), datetime.fromisoformat(sys.argv[2])
import pipelines.jobs.analyze, pipelines.jobs.discover, pipelines.jobs.shuffle
print("ready", flush=True)
sys.stdin.readline()
done = run.run(deployment, clock=Clock(now.timestamp), say=print)
print(*done.hops, sep="\\n")
print("problems", done.problems)
"""
__all__ = ["jobs"]


@anywhere
@pytest.mark.long(but=("11",))
def test_a_run_that_slept_anywhere_while_another_worked_does_no_harm(
    tmp_path: Path, jobs: PlainJobs, first: int, every: int
) -> None:
    site = prepared(tmp_path / "site")
    expected = undisturbed(site, tmp_path)
    for number in count(first, every):
        twin = site.copied(tmp_path / str(number))
        others = []
        with acting_at(number, lambda: others.append(twin.run(7.1, sure=True))) as writes:  # noqa: B023  # called here
            finished = twin.run(7.1, sure=True)
        assert [one.problems for one in (finished, *others)] == [[]] * (1 + len(others)), writes.names
        assert counts_of(twin) == expected, writes.names
        hops = [name for one in (finished, *others) for name in one.hops]
        assert len(set(hops)) == len(hops), writes.names
        assert twin.run(7.2, sure=True).is_quiet, writes.names
        assert left(twin) == [], writes.names
        assert account_at(twin, 7.2).differences == [], writes.names
        if not writes.is_over:
            break
    assert number > 100


@anywhere
@pytest.mark.long(but=("11",))
def test_a_run_goes_on_where_another_died_before_it_published(
    tmp_path: Path, jobs: PlainJobs, first: int, every: int
) -> None:
    """Also if it began before: then it shuffles batches that are compared with one whose files are not there yet."""
    site = prepared(tmp_path / "site")
    expected, deaths = undisturbed(site, tmp_path), list[int]()
    for number in count(first, every):
        twin = site.copied(tmp_path / str(number))

        def die(*_: object) -> None:
            deaths.append(number)  # noqa: B023  # called here
            kill()

        def run_and_die() -> None:
            with pytest.MonkeyPatch.context() as patch, suppress(Killed):
                patch.setattr(publishing, "move_directory", die)
                twin.run(7.1, sure=True)  # noqa: B023  # called here

        with acting_at(number, run_and_die) as writes:
            assert twin.run(7.1, sure=True).problems == [], writes.names
        assert twin.run(7.1, sure=True).problems == [], writes.names
        assert counts_of(twin) == expected, writes.names
        assert left(twin) == [], writes.names
        if not writes.is_over:
            break
    assert number > 100
    assert len(deaths) > number / (4 * every)


def two_at_once(site: Site, day: float) -> list[str]:
    """Let two processes run the same at the same time; return what each printed."""
    arguments = [sys.executable, "-c", RUN, str(site.config), at(day).isoformat()]
    pipe = subprocess.PIPE
    both = [
        subprocess.Popen(arguments, stdin=pipe, stdout=pipe, stderr=pipe, text=True)  # noqa: S603  # our own
        for _ in range(2)
    ]
    try:
        for one in both:
            assert one.stdout is not None
            assert one.stdout.readline() == "ready\n"
        for one in both:
            assert one.stdin is not None
            one.stdin.write("\n")
            one.stdin.flush()
        said = [one.communicate(timeout=WAIT) for one in both]
    finally:
        for one in both:
            one.kill()
    assert [one.returncode for one in both] == [0, 0], said
    return [out for out, _ in said]


@pytest.mark.parametrize("days", [1, 4])
@pytest.mark.long(but=("1",))
def test_two_processes_at_once_do_each_batch_once_and_charge_once(tmp_path: Path, days: int) -> None:
    site = Site(tmp_path, discovery=True)
    for day in range(days):
        collect(site.store, site.campaign, values(100 + day), day=day, came=day + 1)
    said = two_at_once(site, days + 0.1)
    assert all("problems []" in one for one in said), said
    expected = sorted(
        f"words/{site.batch(day)} {hop}" for day in range(days) for hop in ("shuffle", "release", "discover", "analyze")
    )
    # Who lost says of no hop that it did it.
    hops = [line for one in said for line in one.splitlines() if line in expected]
    assert sorted(hops) == expected, said
    assert site.run(days + 0.1).is_quiet
    assert [site.result(day)["received"] for day in range(days)] == [100 + day for day in range(days)]
    shown = done("ledger", "show", "--ledger", site.root / "ledger.db", "--json").json
    assert len(shown["charges"]) == 2 * days
    fold: Fold = Logs(site.deployment).read("words")
    notes = [hop.charge for hops in fold.done.values() for hop in hops.values() if hop.charge is not None]
    assert {key_in(note) for note in notes} == {row["key"] for row in shown["charges"]}
    assert not [name for name in files_under(site.store) if name.startswith("attempts/")]
    assert "all numbers agree" in done("status", "--config", site.config).out


def test_runs_of_two_deployments_on_one_store_do_each_batch_once(tmp_path: Path) -> None:
    """As when a second operator sets up what runs already: both read and write the same logs, and charge one ledger."""
    site = Site(tmp_path / "one")
    other = site.copied(tmp_path / "two")
    mine = other.config.read_text().replace('store = "store"', f'store = "{site.store}"')
    other.config.write_text(mine.replace('"ledger.db"', f'"{site.root / "ledger.db"}"'))
    for day, (runs, sleeps) in enumerate(((site, other), (other, site))):
        collect(site.store, site.campaign, values(100), day=day)
        assert len(runs.run(day + 1.1).hops) == 2
        assert sleeps.run(day + 1.2).hops == []
    assert [site.result(day)["received"] for day in (0, 1)] == [100, 100]
    # With a ledger of its own it would spend the budget again.
    other.config.write_text(mine)
    collect(site.store, site.campaign, values(100), day=2)
    refused = other.run(3.1)
    (problem,) = refused.problems
    assert (refused.closed, refused.hops) == ([], [])
    assert "--ledger-was-lost" in problem
    assert len(site.run(3.2).hops) == 2
