"""A run that lost its lock: another one works, and the first changes nothing any more."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import psycopg
import pytest
from sqlalchemy import create_engine, delete, text, update

from hushcount.errors import HushcountError, LostLock, UsageError
from pipelines.batches.lock import alone, prove, run_of
from pipelines.batches.state import HOPS, RUNS, VERSIONS, _make, opened, snapshot
from pipelines.jobs import job as job_module
from pipelines.schedule.report import Done
from tests.shuffler.collector.running import wait_for
from tests.support.collecting import collect
from tests.support.lost_lock import cut_lock
from tests.support.postgres import postgresql
from tests.support.site import Site, account_at, values

WAIT = 120.0


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgresql() as address:
        yield address


@pytest.fixture
def database(server: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """Yield the address of an empty database."""
    name = f"t{abs(hash(request.node.name))}"
    outside = create_engine(server.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT")
    with outside.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    yield server.replace("/postgres?", f"/{name}?")
    outside.dispose()


def during_shuffle(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Do something in the middle of the first shuffle."""
    real, told = job_module.take_counts, []

    def take_counts(directory: str) -> dict[str, int]:
        if not told:
            told.append(directory)
            act()
        return real(directory)

    monkeypatch.setattr(job_module, "take_counts", take_counts)


@pytest.mark.long
def test_a_run_whose_connection_was_cut_records_nothing_when_another_took_over(
    tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(tmp_path, settings=f'state = "{database}"')
    collect(site.store, site.campaign, values(100), day=0)
    second: list[Done] = []

    def take_over() -> None:
        with opened(database) as state:
            cut_lock(state)
        second.append(site.run(1.1))

    during_shuffle(monkeypatch, take_over)
    with pytest.raises(LostLock, match="another run took over"):
        site.run(1.1)
    assert second[0].hops == [f"words/{site.batch(0)} shuffle", f"words/{site.batch(0)} analyze"]
    assert second[0].problems == []
    assert site.result(0)["accepted"] == 100
    assert account_at(site, 1.2).differences == []
    assert [counts.received for counts in account_at(site, 1.2).windows] == [100]


@pytest.mark.long
def test_a_run_whose_connection_was_cut_goes_on_while_no_other_took_over(
    tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    site = Site(tmp_path, settings=f'state = "{database}"')
    collect(site.store, site.campaign, values(100), day=0)

    def cut() -> None:
        with opened(database) as state:
            cut_lock(state)

    during_shuffle(monkeypatch, cut)
    assert site.run(1.1).problems == []
    assert site.result(0)["accepted"] == 100
    assert not [line for line in caplog.records if line.levelname == "ERROR"]


def test_who_takes_the_lock_waits_for_the_transactions_of_who_lost_it(database: str) -> None:
    """Else a transaction that was proved before could end after the next run has begun."""
    with opened(database) as state, alone(state, database, wait=False) as first, opened(database) as other:
        order = []

        def take_over() -> None:
            with alone(other, database, wait=False):
                order.append("taken")

        taker = Thread(target=take_over)
        with first.begin() as connection:
            cut_lock(state)
            taker.start()
            blocked = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
            with state.connect() as outside:
                wait_for(lambda: outside.execute(blocked).scalar_one() == 1, WAIT)
            connection.execute(HOPS.insert().values(campaign="x", batch="x", hop="x", counts="{}", finished_at="x"))
            order.append("written")
        taker.join()
        assert order == ["written", "taken"]
        with pytest.raises(LostLock):
            prove(first)
        with pytest.raises(LostLock), snapshot(first):
            pass


def test_each_run_has_a_greater_token(tmp_path: Path) -> None:
    address = str(tmp_path / "state.db")
    with opened(address) as state:
        taken = []
        for _ in range(2):
            with alone(state, address, wait=False) as mine:
                prove(mine)
                taken.append(run_of(mine))
    assert [run.token for run in taken] == [1, 2]
    assert taken[0].owner != taken[1].owner


def test_a_state_that_is_exchanged_under_a_run_is_not_written_to(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for restored in ["moved", "written over", "of the same token"]:
        with subtests.test(restored=restored):
            address, copy = tmp_path / f"{restored}.db", tmp_path / f"copy for {restored}.db"
            with opened(str(address)) as state:
                shutil.copy(address, copy)
                with alone(state, str(address), wait=False) as mine:
                    prove(mine)
                    if restored == "of the same token":
                        with opened(str(copy)) as other, other.begin() as connection:
                            connection.execute(update(RUNS).values(token=1, owner="0" * 16))
                    content = copy.read_bytes()
                    if restored == "moved":
                        copy.replace(address)
                    else:
                        address.write_bytes(content)
                    with pytest.raises(LostLock), mine.begin() as connection:
                        connection.execute(
                            HOPS.insert().values(campaign="x", batch="x", hop="x", counts="{}", finished_at="x")
                        )
            assert address.read_bytes() == content


def test_a_state_that_is_gone_is_not_made_anew_under_a_run(tmp_path: Path) -> None:
    state = tmp_path / "state.db"
    lost = pytest.raises(HushcountError, match="cannot be used: unable to open")
    with lost, opened(str(state)) as database, alone(database, str(state), wait=False) as mine:
        state.unlink()
        prove(mine)
    assert not state.exists()


def test_a_run_ends_where_its_state_is_exchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(tmp_path)
    collect(site.store, site.campaign, values(100), day=0)
    state = Path(site.deployment.state)
    with opened(str(state)):
        shutil.copy(state, tmp_path / "yesterday.db")
    during_shuffle(monkeypatch, lambda: (tmp_path / "yesterday.db").replace(state) and None)
    with pytest.raises(LostLock, match="exchanged"):
        site.run(1.1)


def test_client_and_server_both_ask_for_a_peer_that_a_network_took_away(database: str) -> None:
    """Else a dead session holds the lock for hours, and each further run finds another one at work."""
    with opened(f"{database}&keepalives_idle=7") as state, state.connect() as connection:
        driver = connection.connection.driver_connection
        assert isinstance(driver, psycopg.Connection)
        asked = driver.info.get_parameters()
        assert {name: asked[name] for name in ("connect_timeout", "keepalives_interval", "tcp_user_timeout")} == {
            "connect_timeout": "10",
            "keepalives_interval": "10",
            "tcp_user_timeout": "60000",
        }
        # What the operator writes into the URL counts.
        assert asked["keepalives_idle"] == "7"
        source = text("SELECT source FROM pg_settings WHERE name LIKE 'tcp\\_%'")
        assert connection.execute(source).scalars().all() == ["session"] * 4


def test_first_runs_at_once_make_one_state_on_a_server(database: str) -> None:
    """The tables are made in a transaction, and PostgreSQL lets two make the same one."""
    made: list[BaseException | None] = []

    def open_too() -> None:
        try:
            with opened(database):
                made.append(None)
        except BaseException as error:
            made.append(error)

    engine = create_engine(database.replace("postgresql:", "postgresql+psycopg:"))
    others = [Thread(target=open_too) for _ in range(3)]
    with engine.connect() as outside, engine.begin() as connection:
        _make(connection, database)
        for other in others:
            other.start()
        blocked = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
        wait_for(lambda: outside.execute(blocked).scalar_one() == 3, WAIT)
    for other in others:
        other.join()
    assert made == [None, None, None]
    with opened(database) as state, state.begin() as connection:
        assert connection.execute(text("SELECT count(*) FROM hushcount_state")).scalar_one() == 1
    engine.dispose()


def test_a_state_without_its_row_or_with_two_is_refused_in_a_sentence(tmp_path: Path) -> None:
    for table in [VERSIONS, RUNS]:
        for rows in [0, 2]:
            address = str(tmp_path / f"{table.name}-{rows}.db")
            another = (
                VERSIONS.insert().values(version=1) if table is VERSIONS else RUNS.insert().values(token=1, owner="")
            )
            with opened(address) as state, state.begin() as connection:
                connection.execute(delete(table) if rows == 0 else another)
            with pytest.raises(UsageError, match=rf"table {table.name} has {rows} rows"), opened(address):
                pass
