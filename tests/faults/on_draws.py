"""With a ledger one draw of discover's noise is released for an input, wherever a job that draws is killed."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from tests.faults.collection import POPULAR, SECONDS, Collection, borderline, finished, started
from tests.faults.conftest import Note
from tests.faults.flink_faults import failures, kill_task_manager, running, wait_until_drawn, wait_until_working
from tests.support.jobs import done, found, summary
from tests.support.records import as_set, read_file, read_rows

TRIALS = 5


def new_ledger(collection: Collection, path: Path) -> tuple[str, ...]:
    """Make a ledger with room for one release, and return the options that charge it."""
    campaign = collection.chain.campaign
    done("ledger", "set", "--ledger", path, "--campaign", campaign.id, "--epsilon", 2.5, "--delta", 1e-6)
    return ("--ledger", str(path))


def draws(ledger: Path) -> dict[str, bytes]:
    """Return the draws that are kept beside a ledger; what a killed process left unfinished is none."""
    kept = ledger.with_name(f"{ledger.name}.draws").glob("[!.]*.blocks")
    return {path.name: path.read_bytes() for path in kept}


def released(directory: Path) -> bytes:
    """Return the one file of bins that the auxiliary server hands out."""
    (file,) = (directory / "bins").glob("*.blocks")
    return file.read_bytes()


def test_two_draws_of_these_reports_differ(collection: Collection, tmp_path: Path) -> None:
    """So that the tests below can fail: 60 bins are kept with a probability of 0.3 to 0.7 each; equal below 1e-14."""
    sets = []
    for name in ("one", "other"):
        finished(*collection.arguments("aux-server", tmp_path / name))
        sets.append(as_set(read_rows(tmp_path / name / "bins")))
    assert sets[0] != sets[1]


@pytest.mark.parametrize("job", ["discover", "aux-server"])
def test_wherever_a_command_is_killed_its_first_draw_is_the_only_one(
    collection: Collection, tmp_path: Path, note: Note, job: str
) -> None:
    """Killed at times spread over a whole run, and started again after each, until one ends by itself."""
    began = time.monotonic()
    finished(*collection.arguments(job, tmp_path / "undisturbed"))
    whole = time.monotonic() - began
    for trial in range(TRIALS):
        ledger = tmp_path / f"ledger-{trial}.db"
        charge = new_ledger(collection, ledger)
        out = tmp_path / f"out-{trial}"
        with started(*collection.arguments(job, out), *charge) as process:
            time.sleep(whole * (trial + 1) / TRIALS)
            process.kill()
            process.wait(SECONDS)
        first = draws(ledger)
        when = "after the draw was kept" if first else "before the draw was kept"
        when = "after the end" if process.returncode == 0 else when
        if process.returncode:
            assert not out.exists() or summary(out)
        for again in ("again", "and again"):
            finished(*collection.arguments(job, tmp_path / f"{again}-{trial}"), *charge)
            kept = draws(ledger)
            assert len(kept) == 1
            first = first or kept
            assert kept == first
        results = [
            path for path in (out, tmp_path / f"again-{trial}", tmp_path / f"and again-{trial}") if path.exists()
        ]
        if job == "aux-server":
            assert {released(path) for path in results} == set(first.values())
        assert len({frozenset(items(path, job)) for path in results}) == 1
        note("kill -9 the command, ledger", job, f"killed {when}: one draw")


def items(directory: Path, job: str) -> set[object]:
    """Return what a result tells of the draw."""
    return set(found(directory)) if job == "discover" else set(as_set(read_rows(directory / "bins")))


def test_a_command_that_is_killed_the_moment_its_draw_is_kept(
    collection: Collection, tmp_path: Path, note: Note
) -> None:
    """Between the draw and the release: the next run hands out that draw, and the charge is one."""
    ledger = tmp_path / "ledger.db"
    charge = new_ledger(collection, ledger)
    with started(*collection.arguments("discover", tmp_path / "out"), *charge) as process:
        end = time.monotonic() + SECONDS
        while not draws(ledger) and time.monotonic() < end:
            time.sleep(0.001)
        process.kill()
        process.wait(SECONDS)
    assert process.returncode == -signal.SIGKILL
    assert not (tmp_path / "out").exists()
    (first,) = draws(ledger).values()
    finished(*collection.arguments("aux-server", tmp_path / "released"), *charge)
    finished(*collection.arguments("discover", tmp_path / "found"), *charge)
    assert released(tmp_path / "released") == first
    assert list(draws(ledger).values()) == [first]
    assert len(found(tmp_path / "found")) == summary(tmp_path / "released")["released"]
    note("kill -9 the command when the draw is kept", "discover", "one draw, one charge")


@pytest.mark.parametrize("when", ["at the start", "after the draw"])
@pytest.mark.parametrize("restarts", [0, 5])
def test_a_task_manager_that_drew_is_killed_and_one_draw_is_released(
    collection: Collection, fetched: Path, tmp_path: Path, note: Note, when: str, restarts: int
) -> None:
    ledger, out = tmp_path / "ledger.db", tmp_path / "out"
    charge = new_ledger(collection, ledger)
    arguments = (*collection.arguments("aux-server", out), *charge)
    with running(fetched, tmp_path / "flink", restarts) as (cluster, options):
        with started(*arguments, *options) as process:
            job, victim = wait_until_working(cluster) if when == "at the start" else wait_until_drawn(cluster)
            kill_task_manager(cluster, victim)
            _, told = process.communicate(timeout=SECONDS)
        lost = failures(cluster, job)
        assert process.returncode == 0 or not restarts, told
        if process.returncode:
            assert not out.exists()
            assert draws(ledger) == {}
            finished(*arguments, *options)
        first = released(out)
        finished(*collection.arguments("aux-server", tmp_path / "again"), *charge, *options)
    assert released(tmp_path / "again") == first
    assert list(draws(ledger).values()) == [first]
    header, rows = read_file(next((out / "bins").glob("*.blocks")))
    # No bin twice, whichever steps were run again.
    assert len(as_set(rows)) == header.records == summary(out)["released"]
    assert len(POPULAR) < header.records < len(POPULAR) + len(borderline())
    collection.assert_same("aux-server", out)
    note(f"kill -9 a TaskManager {when}, restarts={restarts}", "aux-server", f"work lost {lost}: one draw")
