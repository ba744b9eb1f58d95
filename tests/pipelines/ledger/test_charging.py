"""The ledger: charged once whatever happens, refused before data is read, and never overwritten."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.clock import MACHINE
from hushcount.errors import HushcountError
from hushcount.maths.odds import Odds
from hushcount.privacy.composition import Loss
from hushcount.privacy.guarantees import Discovery
from hushcount.privacy.statement import statement
from hushcount.senders import Authentication, Senders, told_in
from hushcount.wire.blocks import HEADER_BYTES
from pipelines.ledger.balance import OverLimit, balance, require_room
from pipelines.ledger.charges import Charge, Limit, charge_key, stamp
from pipelines.ledger.charging import charging, cost_of
from pipelines.ledger.draws import draw_path
from pipelines.ledger.file import VERSION, LedgerError, opened, put, read_charges, writing
from pipelines.ledger.overview import WholeLedger, check, describe, set_limit
from pipelines.outputs.account import Charged
from pipelines.outputs.counts import StreamCounts
from pipelines.outputs.summary import HopSummary
from tests.pipelines.conftest import World
from tests.support.jobs import (
    ALPHA,
    Chain,
    done,
    estimates,
    files_under,
    found,
    new_campaign,
    read_csv,
    refused,
    summary,
    values_of,
    write_lines,
)

FORWARDED = 100_000
NOW = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)


# Runs without an engine: what a job does to the ledger, on input of any bytes.


@pytest.fixture(scope="session")
def campaign_path(world: World) -> Path:
    return new_campaign(world.root / "small.json", world.keys, mechanism="gcms", min_batch=5000)


@pytest.fixture
def campaign(campaign_path: Path) -> Campaign:
    return Campaign.read(campaign_path)


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


def batch(tmp_path: Path, name: str, content: bytes | None = None) -> str:
    """A directory with one block file, by its name only."""
    directory = tmp_path / name
    directory.mkdir(exist_ok=True)
    (directory / "00000.blocks").write_bytes(content or name.encode())
    return str(directory)


def upstream(reports: int = FORWARDED, way: Authentication = "client-token") -> HopSummary:
    return HopSummary(
        "shuffle", reports, reports, {}, {"reports": StreamCounts(reports, reports, {})}, campaign="small",
        fingerprint="0" * 64, upstream=(), senders=Senders(way),
    )  # fmt: skip


def release(ledger: Path, campaign: Campaign, folder: str, accepted: int = FORWARDED) -> dict[str, Any]:
    """What analyze does between its reservation and its output; return the summary's part about the ledger."""
    with charging(ledger, campaign, "analyze", upstream(), folder) as charge:
        made = charge.commit(cost_of(statement(campaign, accepted, Senders("client-token")), "analyze"), accepted)
        assert isinstance(made, Charged)
        return made.data()


def charges(ledger: Path) -> list[Charge]:
    with opened(ledger) as connection:
        return read_charges(connection)


def shuffled_cost(campaign: Campaign) -> float:
    return cost_of(statement(campaign, FORWARDED, Senders("client-token")), "analyze").epsilon


_LISTENERS: list[list[str]] = []


@pytest.fixture(scope="module", autouse=True)
def _audit() -> None:
    """Audit hooks stay for good, so that there is one, which listens when it is told to."""
    sys.addaudithook(lambda event, arguments: _heard(arguments[0]) if event == "open" else None)


def _heard(path: object) -> None:
    for listener in _LISTENERS:
        listener.append(str(path))


@contextmanager
def listening() -> Iterator[list[str]]:
    """Note the path of every file that this process opens."""
    _LISTENERS.append([])
    try:
        yield _LISTENERS[-1]
    finally:
        _LISTENERS.pop()


def test_charges_of_one_second_stand_as_they_were_made(tmp_path: Path, campaign: Campaign, ledger: Path) -> None:
    """Their keys are drawn, so that eight of them stand in that order by chance once in 40,320 times."""
    released = [release(ledger, campaign, batch(tmp_path, f"batch-{one}"))["charged"]["key"] for one in range(8)]
    with opened(ledger) as connection, writing(connection):
        for charge in read_charges(connection):
            put(connection, replace(charge, reserved_at=stamp(NOW), committed_at=stamp(NOW)))
    assert [charge.key for charge in charges(ledger)] == released


def test_a_release_is_charged_once(tmp_path: Path, campaign: Campaign, ledger: Path) -> None:
    """Not again for the same files under other names and in another order; again for other files of equal sizes."""
    first, second = batch(tmp_path, "first", b"one"), batch(tmp_path, "second", b"two")
    (Path(first) / "00001.blocks").write_bytes(b"more")
    one = release(ledger, campaign, first)
    assert one["charged"]["new"]
    assert one["spent"]["releases"] == 1
    assert one["limit"] is one["remaining"] is one["renews"] is None
    (Path(first) / "00000.blocks").rename(Path(first) / "00002.blocks")
    assert release(ledger, campaign, first) == {**one, "charged": {**one["charged"], "new": False}}
    shutil.rmtree(first)
    shutil.copytree(second, first)
    (Path(first) / "00001.blocks").write_bytes(b"else")
    two = release(ledger, campaign, first)
    assert two["charged"]["new"]
    assert two["charged"]["key"] != one["charged"]["key"]
    assert two["spent"]["epsilon"] == pytest.approx(2 * shuffled_cost(campaign))
    assert len(charges(ledger)) == 2
    assert ledger.stat().st_mode & 0o777 == 0o600


def test_every_part_of_the_key_counts() -> None:
    parts = ("ab", 1, "analyze", "cd")
    others = [("ac", 1, "analyze", "cd"), ("ab", 2, "analyze", "cd"), ("ab", 1, "discover", "cd"), (*parts[:3], "ce")]
    assert charge_key(*parts) == charge_key(*parts)
    assert len({charge_key(*other) for other in [parts, *others]}) == 5


def test_a_run_that_fails_costs_nothing(tmp_path: Path, campaign: Campaign, ledger: Path) -> None:
    folder = batch(tmp_path, "in")
    for error in (HushcountError("no"), KeyboardInterrupt()):
        with pytest.raises(type(error)), charging(ledger, campaign, "analyze", upstream(), folder):
            assert [charge.state for charge in charges(ledger)] == ["reserved"]
            raise error
        assert charges(ledger) == []


def test_a_release_over_the_limit_is_refused_before_data_is_read(
    tmp_path: Path, campaign: Campaign, ledger: Path
) -> None:
    cost = shuffled_cost(campaign)
    set_limit(ledger, "small", 1.5 * cost, 1e-6, 30)
    release(ledger, campaign, batch(tmp_path, "one"))
    other = batch(tmp_path, "other", b"not the length of the first")
    before = files_under(tmp_path)
    with listening() as opens, pytest.raises(OverLimit) as refusal:
        release(ledger, campaign, other)
    assert not [path for path in opens if path.endswith(".blocks")]
    assert files_under(tmp_path) == before
    text = str(refusal.value)
    renews = stamp(MACHINE.now() + timedelta(days=30))[:10]
    said = (
        f"({1.5 * cost:.6g}, 1e-06)",
        "spent are (",
        f"cost ({cost:.6g}, 1e-08)",
        "at most (2, 0)",
        "remain",
        renews,
    )
    for part in said:
        assert part in text, part
    # What was released may be released again, also when there is no room.
    with listening() as opens:
        assert not release(ledger, campaign, batch(tmp_path, "one"))["charged"]["new"]
    assert [path for path in opens if path.endswith(".blocks")]


def test_a_release_that_comes_out_too_dear_is_not_made(tmp_path: Path, campaign: Campaign, ledger: Path) -> None:
    """Forwarded were enough for the shuffled guarantee, accepted only for the local one."""
    set_limit(ledger, "small", 1.0, 1e-6, None)
    folder = batch(tmp_path, "in")
    with pytest.raises(OverLimit, match=r"\(2, 0\)"):
        release(ledger, campaign, folder, accepted=4999)
    assert charges(ledger) == []
    assert release(ledger, campaign, folder)["charged"]["epsilon"] == shuffled_cost(campaign)


def test_a_retry_that_comes_out_dearer_is_raised_to_that(tmp_path: Path, campaign: Campaign, ledger: Path) -> None:
    folder = batch(tmp_path, "in")
    cheap = release(ledger, campaign, folder)
    dear = release(ledger, campaign, folder, accepted=10_000)
    again = release(ledger, campaign, folder)
    assert cheap["charged"]["epsilon"] < dear["charged"]["epsilon"] == again["charged"]["epsilon"]
    assert (cheap["charged"]["new"], dear["charged"]["new"]) == (True, False)
    assert cheap["charged"]["committed_at"] == dear["charged"]["committed_at"]
    assert again["spent"]["releases"] == 1


def test_a_living_reservation_holds_room_and_a_dead_one_does_not(
    tmp_path: Path, campaign: Campaign, ledger: Path
) -> None:
    set_limit(ledger, "small", 1.5 * shuffled_cost(campaign), 1e-6, None)
    first, second = batch(tmp_path, "first"), batch(tmp_path, "second")
    with charging(ledger, campaign, "analyze", upstream(), first):
        (held,) = charges(ledger)
        with pytest.raises(OverLimit, match="reserved"):
            release(ledger, campaign, second)
        # Days ago, whatever holds its lock.
        long_ago = replace(held, reserved_at=stamp(NOW))
    # The run that was killed had the name of this machine and the number of this process, as in a container that starts
    # again.
    for dead in (held, replace(held, host="elsewhere", pid=1), long_ago):
        with opened(ledger) as connection, writing(connection):
            put(connection, dead)
        assert [charge["stale"] for charge in describe(ledger).data()["charges"]] == [True]
        release(ledger, campaign, second)
        with opened(ledger) as connection, writing(connection):
            connection.execute("DELETE FROM charges WHERE state = 'committed'")
        # A run for the same key takes it over.
        release(ledger, campaign, first)
        assert [charge.state for charge in charges(ledger)] == ["committed"]
        with opened(ledger) as connection, writing(connection):
            connection.execute("DELETE FROM charges")


TENTH = Loss(0.1, 1e-9)


def made(
    number: int, committed: datetime, cost: Loss = TENTH, local: float | None = None, most: float | None = None
) -> Charge:
    key = charge_key("ff", 1, "analyze", str(number))
    return Charge(
        key, "small", "ff", 1, "analyze", str(number), "00", "committed", cost.epsilon, cost.delta, local, most,
        "client", 10,
        stamp(committed), stamp(committed), "here", 1, "run",
    )  # fmt: skip


def test_the_budget_renews() -> None:
    limit = Limit("small", 0.3, 1e-6, 30, stamp(NOW))
    spent = [made(number, NOW + timedelta(days=number)) for number in range(3)]
    one, wanted = Loss(0.1, 0.0), made(9, NOW, Loss(0.11, 0.0))
    last, renewed = NOW + timedelta(days=30, seconds=-1), NOW + timedelta(days=30)
    assert balance(limit, spent, last).renews == stamp(renewed)
    assert balance(limit, spent, last).spent.epsilon == pytest.approx(0.3, abs=1e-4)
    with pytest.raises(OverLimit, match=r"2026-03-31T12:00:00"):
        require_room(limit, spent, wanted, one, last)
    require_room(limit, spent, wanted, one, renewed)
    assert balance(limit, spent, renewed).remaining == Loss(0.3, 1e-6)
    assert balance(limit, spent, renewed).renews == stamp(NOW + timedelta(days=60))
    never = replace(limit, renew_days=None)
    with pytest.raises(OverLimit, match="does not renew"):
        require_room(never, spent, wanted, one, renewed)
    # A clock that was set back does not give the budget back.
    assert balance(limit, spent, NOW - timedelta(days=90)).spent.epsilon == pytest.approx(0.3, abs=1e-4)


def test_a_limit_is_met_exactly_and_composed_numerically() -> None:
    exact = Limit("small", 0.3, 0.0, None, stamp(NOW))
    pure = [made(number, NOW, Loss(0.1, 0.0)) for number in range(3)]
    require_room(exact, pure[:2], made(9, NOW, Loss(0.1, 0.0)), Loss(2.0, 0.0), NOW)
    with pytest.raises(OverLimit):
        require_room(exact, pure, made(9, NOW, Loss(1e-9, 0.0)), Loss(2.0, 0.0), NOW)
    many = [made(number, NOW, Loss(0.05, 1e-10)) for number in range(100)]
    tight = Limit("small", 2.5, 1e-6, None, stamp(NOW), "joint")
    wanted = made(999, NOW, Loss(0.05, 1e-10))
    require_room(tight, many, wanted, Loss(2.0, 0.0), NOW)
    assert balance(tight, many, NOW).spent.composition == "joint"
    with pytest.raises(OverLimit):
        require_room(replace(tight, delta=1e-9), many, wanted, Loss(2.0, 0.0), NOW)
    with pytest.raises(OverLimit):
        require_room(replace(tight, composition="basic"), many, wanted, Loss(2.0, 0.0), NOW)


def test_an_epoch_of_clients_that_remember_is_charged_once() -> None:
    """The only batch costs its shuffled epsilon; two are linked, and cost their local ones, up to the epoch's."""
    limit = Limit("small", 5.0, 1e-6, None, stamp(NOW))
    days = [made(number, NOW + timedelta(days=number), TENTH, 1.0, 2.0) for number in range(5)]
    spent = [balance(limit, days[:number], NOW).spent.epsilon for number in range(1, 6)]
    assert spent == [0.1, 2.0, 2.0, 2.0, 2.0]
    assert balance(limit, days, NOW).spent.releases == 5
    # As independent releases, as they were charged before, five would come to 0.5.
    fresh = [replace(one, local=None, epoch_epsilon=None) for one in days]
    assert balance(limit, fresh, NOW).spent.epsilon == pytest.approx(0.5, rel=0.05)
    # Another epoch is another fingerprint, and one value more or less does not link them.
    other = replace(days[0], fingerprint="ee")
    assert balance(limit, [*days, other], NOW).spent.epsilon == pytest.approx(2.1)


def test_a_batch_of_an_earlier_period_links_too() -> None:
    limit = Limit("small", 5.0, 1e-6, 30, stamp(NOW))
    days = [made(number, NOW + timedelta(days=31 * number), TENTH, 1.0, 2.0) for number in range(2)]
    later = NOW + timedelta(days=40)
    assert balance(limit, days, later).spent.epsilon == 1.0
    assert balance(limit, days[1:], later).spent.epsilon == 0.1


def test_a_limit_that_is_set_later_or_again_forgets_nothing(tmp_path: Path, campaign: Campaign, ledger: Path) -> None:
    release(ledger, campaign, batch(tmp_path, "in"))
    with opened(ledger) as connection, writing(connection):
        old = replace(read_charges(connection)[0], committed_at=stamp(NOW))
        put(connection, old)
    first = set_limit(ledger, "small", 1.0, 1e-6, 36500)
    assert first.limit is not None
    assert first.limit.since == stamp(NOW)
    assert first.spent.releases == 1
    assert set_limit(ledger, "small", 2.0, 1e-6, 36500).limit == replace(first.limit, epsilon=2.0)
    assert set_limit(ledger, "small", 1e-6, 1e-6, None).remaining == Loss(0.0, 0.0)
    assert check(ledger).over == ["small"]
    with opened(ledger) as connection, writing(connection):
        put(connection, Limit("idle", 1.0, 0.0, 30, stamp(NOW)))
    idle = set_limit(ledger, "idle", 2.0, 0.0, 10).limit
    assert idle is not None
    assert idle.since == stamp(NOW)
    # At this delta no epsilon states what was spent.
    assert set_limit(ledger, "small", 1.0, 1e-9, None).spent.epsilon is None
    assert "no bound" in done("ledger", "show", "--ledger", ledger).out


def test_what_a_charge_costs(campaign: Campaign) -> None:
    unopened, accepted = (statement(campaign, reports, Senders("client-token")) for reports in (None, FORWARDED))
    assert cost_of(unopened, "analyze") == Loss(unopened.local.epsilon, 0.0)
    assert cost_of(accepted, "analyze") == Loss(accepted.shuffled.epsilon, accepted.shuffled.delta)
    part = Discovery(
        epsilon=0.5, delta=1e-7, odds=Odds(0.5, 1e-6), unit="", rule="optimal", clients_for_even_chance=1,
        clients_for_95_percent=1, against="",
    )  # fmt: skip
    for deviation in (None, 3.0):
        counted = replace(part, count_deviation=deviation)
        assert cost_of(replace(accepted, discovery=counted), "discover") == Loss(0.5, 1e-7)
    added = replace(part, relation="add-remove")
    assert cost_of(replace(accepted, discovery=added), "discover") == Loss(1.0, 2e-7)


# Processes: killed at every point, and two at a time.

RUN = """
import json, os, signal, sys
from pathlib import Path
from hushcount.campaigns.campaign import Campaign
from hushcount.errors import HushcountError
from hushcount.privacy.statement import statement
from hushcount.senders import Senders
from pipelines.ledger.charging import charging, cost_of
from pipelines.outputs import staging
from pipelines.outputs.counts import StreamCounts
from pipelines.outputs.staging import staged
from pipelines.outputs.summary import HopSummary

ledger, path, out, point, *folders = sys.argv[1:]
campaign = Campaign.read(path)
upstream = HopSummary(
    "shuffle", 100_000, 100_000, {}, {"reports": StreamCounts(100_000, 100_000, {})}, campaign="small",
    fingerprint="0" * 64, upstream=(),
)

def here(name):
    if name == point:
        os.kill(os.getpid(), signal.SIGKILL)

put = staging._put
def renamed(*arguments):
    here("before the rename")
    put(*arguments)
    here("after the rename")
staging._put = renamed

print("ready", flush=True)
sys.stdin.readline()
for number, folder in enumerate(folders):
    try:
        with charging(Path(ledger), campaign, "analyze", upstream, folder) as charge:
            here("reserved")
            with staged(out + str(number), False) as directory:
                stated = statement(campaign, 100_000, Senders("client-token"))
                here("before the commit")
                ledger_part = charge.commit(cost_of(stated, "analyze"), 100_000).data()
                here("committed")
                summary = {"hop": "analyze", "accepted": 100_000, "privacy": stated.data(), "ledger": ledger_part}
                (Path(directory) / "summary.json").write_text(json.dumps(summary))
        print("released", flush=True)
    except HushcountError as error:
        print(type(error).__name__, flush=True)
"""


def started(ledger: Path, campaign_path: Path, out: Path, point: str, *folders: str) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", RUN, str(ledger), str(campaign_path), str(out), point, *folders]
    return subprocess.Popen(  # noqa: S603  # our own script
        arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def ended(process: subprocess.Popen[str]) -> list[str]:
    """Let a process go on, and return what it printed."""
    return process.communicate("go\n", timeout=120)[0].split()


@pytest.mark.parametrize(
    ("point", "after", "output"),
    [
        ("reserved", ["reserved"], False),
        ("before the commit", ["reserved"], False),
        ("committed", ["committed"], False),
        ("before the rename", ["committed"], False),
        ("after the rename", ["committed"], True),
    ],
)
@pytest.mark.long(but=("before the commit-after1-False",))
def test_a_process_that_is_killed(
    tmp_path: Path, campaign_path: Path, campaign: Campaign, ledger: Path, point: str, after: list[str], output: bool
) -> None:
    """No output without a charge, and the retry pays no second time, in a budget that has room for one."""
    set_limit(ledger, "small", 1.5 * shuffled_cost(campaign), 1e-6, None)
    folder = batch(tmp_path, "in")
    process = started(ledger, campaign_path, tmp_path / "out", point, folder)
    ended(process)
    assert process.returncode == -signal.SIGKILL
    assert [charge.state for charge in charges(ledger)] == after
    assert (tmp_path / "out0").exists() == output
    assert check(ledger).charges == after.count("committed")
    assert release(ledger, campaign, folder)["charged"]["new"] == (after == ["reserved"])
    assert [charge.state for charge in charges(ledger)] == ["committed"]
    with pytest.raises(OverLimit):
        release(ledger, campaign, batch(tmp_path, "other"))


def test_a_process_that_is_killed_within_the_transaction(tmp_path: Path, campaign: Campaign, ledger: Path) -> None:
    """SQLite's own journal takes it back."""
    before = release(ledger, campaign, batch(tmp_path, "in"))
    script = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom pipelines.ledger.file import opened, writing\n"
        "with opened(Path(sys.argv[1])) as connection, writing(connection):\n"
        "    connection.execute('PRAGMA cache_size = 0')\n"
        "    connection.execute('DELETE FROM charges')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    run = subprocess.run([sys.executable, "-c", script, str(ledger)], check=False)  # noqa: S603  # our own script
    assert run.returncode == -signal.SIGKILL
    assert check(ledger).charges == 1
    assert release(ledger, campaign, batch(tmp_path, "in")) == {
        **before,
        "charged": {**before["charged"], "new": False},
    }


@pytest.mark.long
def test_two_processes_at_a_time(tmp_path: Path, campaign_path: Path, campaign: Campaign, ledger: Path) -> None:
    """Both release the same six inputs, where there is room for four: four charges, whoever makes them."""
    set_limit(ledger, "small", 4.5 * shuffled_cost(campaign), 5e-8, None)
    folders = [batch(tmp_path, f"in{number}") for number in range(6)]
    processes = [started(ledger, campaign_path, tmp_path / f"{name}-", "none", *folders) for name in ("left", "right")]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    printed = [process.communicate(timeout=120)[0].split() for process in processes]
    assert {word for words in printed for word in words} <= {"released", "OverLimit"}
    there = charges(ledger)
    assert [charge.state for charge in there] == ["committed"] * 4
    assert len({charge.manifest for charge in there}) == 4
    assert check(ledger) == WholeLedger(charges=4, reservations=0, limits=1, over=[], warnings=[])
    for words, name in zip(printed, ("left", "right"), strict=True):
        assert words.count("released") == len(list(tmp_path.glob(f"{name}-*")))
        assert 1 <= words.count("released") <= 4


# Files that are no ledger.


SPOILING = {
    "newer": f"PRAGMA user_version = {VERSION + 1}",
    "older": "PRAGMA user_version = 0",
    "of another program": "PRAGMA application_id = 1",
    "other columns": "ALTER TABLE charges ADD COLUMN more TEXT",
    "a table less": "DROP TABLE limits",
    "an altered charge": "UPDATE charges SET epsilon = epsilon / 2",
    "an altered limit": "UPDATE limits SET epsilon = 2 * epsilon",
}


def spoil(path: Path, how: str) -> None:
    if how in SPOILING:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(SPOILING[how])
    if how == "not a database":
        path.write_bytes(b"spent: 0.3\n" * 1000)
    if how == "empty":
        path.write_bytes(b"")
    if how == "damaged pages":
        content = path.read_bytes()
        path.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
    if how == "cut":
        path.write_bytes(path.read_bytes()[:6000])


SPOILT = {
    "newer": f"version {VERSION + 1}",
    "older": "another schema",
    "of another program": "no ledger of Hushcount",
    "other columns": "another schema",
    "a table less": "another schema",
    "an altered charge": "was altered",
    "an altered limit": "was altered",
    "not a database": "damaged or no ledger",
    "empty": "no ledger of Hushcount",
    "damaged pages": "restore",
    "cut": "restore",
}


def test_what_is_no_sound_ledger_is_refused_and_left(
    subtests: pytest.Subtests, tmp_path: Path, campaign: Campaign, ledger: Path
) -> None:
    set_limit(ledger, "small", 5.0, 1e-6, None)
    folder = batch(tmp_path, "in")
    release(ledger, campaign, folder)
    for how, says in SPOILT.items():
        with subtests.test(how=how):
            (tmp_path / how).mkdir()
            spoilt = shutil.copy(ledger, tmp_path / how / "spoilt.db")
            spoil(spoilt, how)
            before = files_under(tmp_path)
            file = ("--ledger", spoilt)
            refused("ledger", "check", *file, says=[says])
            refused("ledger", "show", *file, says=[says])
            refused("ledger", "export", *file, "--out", tmp_path / "new.csv", says=[says])
            refused("ledger", "set", *file, "--campaign", "small", "--epsilon", 9, "--delta", 0, says=[says])
            with pytest.raises(HushcountError, match=says):
                release(spoilt, campaign, folder)
            assert files_under(tmp_path) == before


def test_check_finds_a_charge_that_was_wrong_when_it_was_written(ledger: Path) -> None:
    set_limit(ledger, "small", 5.0, 1e-6, None)
    for wrong in (
        replace(made(1, NOW), key="00"), replace(made(1, NOW), epoch=2), replace(made(1, NOW), committed_at=None),
        replace(made(1, NOW), epsilon=-1.0), replace(made(1, NOW), delta=1.0),
        replace(made(1, NOW), committed_at="yesterday"), replace(made(1, NOW), committed_at="2026-03-01T12:00:00"),
    ):  # fmt: skip
        with opened(ledger) as connection, writing(connection):
            connection.execute("DELETE FROM charges")
            put(connection, wrong)
        refused("ledger", "check", "--ledger", ledger, says=["restore"])
    with opened(ledger) as connection, writing(connection):
        connection.execute("DELETE FROM charges")
        put(connection, made(1, NOW))
    assert done("ledger", "check", "--ledger", ledger).out.startswith("whole: 1 charges, 0 reservations, 1 limits")


def test_a_ledger_in_use(tmp_path: Path, campaign: Campaign, ledger: Path) -> None:
    release(ledger, campaign, batch(tmp_path, "in"))
    with closing(sqlite3.connect(ledger, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        before = ledger.read_bytes()
        with (
            pytest.raises(LedgerError, match=r"in use.* 0\.2 s"),
            opened(ledger, busy_seconds=0.2) as connection,
        ):
            put(connection, made(1, NOW))
        assert ledger.read_bytes() == before
    assert len(charges(ledger)) == 1


def test_whole_numbers_are_read_as_they_were_written(ledger: Path) -> None:
    """A column of floats gives 5.0 for 5, which has another digest."""
    set_limit(ledger, "small", 5, 0, None)
    with opened(ledger) as connection, writing(connection):
        put(connection, made(1, NOW, Loss(2, 0)))
    assert check(ledger).charges == 1
    assert charges(ledger) == [made(1, NOW, Loss(2.0, 0.0))]


def test_where_no_ledger_can_be(tmp_path: Path) -> None:
    refused("ledger", "show", "--ledger", tmp_path / "none.db", says=["none.db"])
    refused("ledger", "show", "--ledger", tmp_path, says=[f"{tmp_path} is no file"])
    assert not (tmp_path / "none.db").exists()
    common = ("--campaign", "small", "--epsilon", 1, "--delta", 0)
    refused("ledger", "set", "--ledger", tmp_path / "none" / "x.db", *common, says=["x.db", "No such"])
    refused("ledger", "set", "--ledger", tmp_path / "x.db", "--campaign", "No Id", *common[2:], says=["is 'No Id'"])
    assert files_under(tmp_path) == {}


def test_export_round_trip(tmp_path: Path, campaign: Campaign, ledger: Path) -> None:
    set_limit(ledger, "small", 5.0, 1e-6, 30)
    for name in ("one", "two"):
        release(ledger, campaign, batch(tmp_path, name))
    with charging(ledger, campaign, "analyze", upstream(), batch(tmp_path, "three")):
        there = charges(ledger)
        assert done("ledger", "export", "--ledger", ledger, "--out", tmp_path / "a.csv").out.startswith("3 charges")
        done("ledger", "export", "--ledger", ledger, "--out", tmp_path / "a.json")
    data = json.loads((tmp_path / "a.json").read_text())
    assert [Charge(**row) for row in data["charges"]] == there
    assert [Limit(**row).epsilon for row in data["limits"]] == [5.0]
    rows = read_csv(tmp_path / "a.csv")
    assert rows == [{name: "" if value is None else str(value) for name, value in one.row().items()} for one in there]
    assert [float(row["epsilon"]) for row in rows] == [one.epsilon for one in there]
    refused("ledger", "export", "--ledger", ledger, "--out", tmp_path / "a.csv", says=["exists"])
    refused("ledger", "export", "--ledger", ledger, "--out", tmp_path / "a.txt", says=[".csv or .json"])
    shown = done("ledger", "show", "--ledger", ledger, "--json").json
    assert [{**one.row(), "stale": False} for one in charges(ledger)] == shown["charges"]
    assert done("ledger", "show", "--ledger", ledger, "--json", "--campaign", "none").json["campaigns"] == []


# The jobs themselves.


@pytest.fixture(scope="session")
def chain(world: World) -> Chain:
    """Both streams; of 60 unlisted values each is kept with a chance near one half."""
    path = new_campaign(world.root / "charged.json", world.keys, dictionary=world.dictionary, discovery=2.0)
    chain = Chain(path, world.keys)
    rule = chain.campaign.require_keep_rule()
    count = rule.count_for(0.5)
    chance = rule.keep_probability(count)
    assert (chance**2 + (1 - chance) ** 2) ** 60 < ALPHA
    values = {"alpha": 100, **{f"unlisted{number}": count for number in range(60)}}
    chain.encode(write_lines(world.root / "charged.txt", values_of(values)))
    chain.shuffle()
    return chain


@pytest.fixture
def clean(chain: Chain) -> Iterator[None]:
    yield
    for name in ("a", "b", "c", "d"):
        shutil.rmtree(chain.path(name), ignore_errors=True)


@pytest.mark.usefixtures("clean")
def test_analyze_with_a_ledger(chain: Chain, tmp_path: Path, ledger: Path) -> None:
    file = ("--ledger", ledger)
    limit = ("--campaign", chain.campaign.id, "--epsilon", 10, "--delta", "1e-6", "--renew-days", 7)
    done("ledger", "set", *file, *limit)
    first = summary(chain.analyze(*file, out="a"))
    cost = Loss(first["privacy"]["shuffled"]["epsilon"], first["privacy"]["shuffled"]["delta"])
    assert first["ledger"]["charged"]["new"]
    assert Loss(first["ledger"]["charged"]["epsilon"], first["ledger"]["charged"]["delta"]) == cost
    assert first["ledger"]["spent"]["epsilon"] == cost.epsilon
    assert first["ledger"]["remaining"]["epsilon"] == pytest.approx(10 - cost.epsilon)
    assert first["ledger"]["renews"] > stamp(MACHINE.now())
    items = write_lines(tmp_path / "items.txt", ["alpha"])
    run = done(*chain.analyze_arguments(out="b"), *file, "--items", items)
    assert "in an earlier run, not again" in run.out
    assert set(estimates(chain.path("b"))) == {"alpha"}
    assert summary(chain.path("b"))["ledger"]["spent"] == first["ledger"]["spent"]
    tally = ("--tally", chain.path("a") / "tally.npz", "--items", items, "--out", chain.path("c"))
    done("job", "estimate", "--campaign", chain.campaign_path, *tally)
    assert summary(chain.analyze(out="d"))["ledger"] is None
    (charge,) = charges(ledger)
    assert (charge.campaign, charge.epoch, charge.hop) == (chain.campaign.id, 1, "analyze")
    assert charge.reports == first["accepted"]
    text = ledger.read_bytes() + (chain.path("a") / "summary.json").read_bytes()
    assert b"unlisted" not in text


@pytest.mark.usefixtures("clean")
def test_a_wrong_claim_of_the_hop_before_is_charged_nothing_and_refuses_nobody_who_has_room(
    chain: Chain, tmp_path: Path, ledger: Path
) -> None:
    """What is reserved follows from the claim, before files are opened; what is charged, from what was accepted."""
    source = tmp_path / chain.path("shuffled").name
    shutil.copytree(chain.path("shuffled"), source)
    true = summary(source)
    forwarded = true["streams"]["reports"]["accepted"]
    cost = cost_of(statement(chain.campaign, forwarded, told_in(true)), "analyze")
    terms = ("--ledger", ledger, "--campaign", chain.campaign.id, "--delta", "1e-6")
    done("ledger", "set", *terms, "--epsilon", 1.0001 * cost.epsilon)
    common = ("--campaign", chain.campaign_path, "--keys", chain.keys, "--out", chain.path("a"), "--ledger", ledger)
    for claimed, reason in ((10**12, "a file is missing"), (forwarded - 1, "a file was added")):
        said = json.loads(json.dumps(true))
        for counts in (said, said["streams"]["reports"]):
            counts["received"] += claimed - forwarded
            counts["accepted"] += claimed - forwarded
        (source / "summary.json").write_text(json.dumps(said))
        refused("job", "analyze", *common, "--input", source, says=[reason])
        assert charges(ledger) == []
    (source / "summary.json").write_text(json.dumps(true))
    charged = done("job", "analyze", *common, "--input", source, "--json").json["ledger"]["charged"]
    assert (charged["epsilon"], charged["delta"]) == (cost.epsilon, cost.delta)


@pytest.mark.usefixtures("clean")
def test_the_jobs_refuse_before_they_read(chain: Chain, tmp_path: Path, ledger: Path) -> None:
    """The input is garbage: within the limit that is what is found; over it nothing looks behind headers."""
    shutil.copytree(chain.path("shuffled"), tmp_path / "garbage")
    for stream in ("reports", "discovery"):
        for path in (tmp_path / "garbage" / stream).glob("*.blocks"):
            path.write_bytes(b"garbage")
    common = ("--campaign", chain.campaign_path, "--keys", chain.keys, "--out", chain.path("a"), "--ledger", ledger)
    for job in ("analyze", "discover"):
        refused("job", job, *common, "--input", tmp_path / "garbage", says=["block file"])
        assert not ledger.exists() or charges(ledger) == []
    for path in chain.path("shuffled").glob("*/*.blocks"):
        whole = path.read_bytes()
        garbage = whole[:HEADER_BYTES].ljust(len(whole), b"g")
        (tmp_path / "garbage" / path.parent.name / path.name).write_bytes(garbage)
    before = files_under(tmp_path / "garbage")
    done("ledger", "set", "--ledger", ledger, "--campaign", chain.campaign.id, "--epsilon", 0.01, "--delta", "1e-6")
    for job in ("analyze", "discover"):
        with listening() as opens:
            refused("job", job, *common, "--input", tmp_path / "garbage", status=1, says=["limit of campaign"])
        assert len([path for path in opens if path.endswith(".blocks")]) == 1
    assert charges(ledger) == []
    assert files_under(tmp_path / "garbage") == before
    assert not chain.path("a").exists()


@pytest.mark.usefixtures("clean")
def test_discover_draws_once(chain: Chain, ledger: Path) -> None:
    """A retried job draws the same again: with a second draw, bins would be drawn until they are kept."""
    chain.discover(out="a")
    chain.discover(out="b")
    assert found(chain.path("a")) == found(chain.path("b"))
    file = ("--ledger", ledger)
    chain.discover(*file, out="c")
    (charge,) = charges(ledger)
    assert (charge.hop, charge.reports) == ("discover", None)
    # Also by another name of the ledger.
    link = ledger.with_name("link.db")
    link.symlink_to(ledger)
    chain.discover("--ledger", link, "--party", "aux-server", out="d")
    shutil.rmtree(chain.path("b"))
    opened_again = ("--input", chain.path("d"), "--keys", chain.keys, "--party", "analyzer", "--out", chain.path("b"))
    done("job", "discover", "--campaign", chain.campaign_path, *opened_again, *file)
    assert found(chain.path("c")) == found(chain.path("b"))
    assert 0 < len(found(chain.path("c"))) < 60
    assert charges(ledger) == [charge]
    assert not summary(chain.path("b"))["ledger"]["charged"]["new"]
    # A ledger of the analyzer's own charges the same release under the same key.
    shutil.rmtree(chain.path("b"))
    own = ledger.with_name("own.db")
    done("job", "discover", "--campaign", chain.campaign_path, *opened_again, "--ledger", own)
    assert [one.key for one in charges(own)] == [charge.key]
    kept = draw_path(ledger, charge.key)
    assert (kept.stat().st_mode & 0o777, kept.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    shutil.rmtree(chain.path("d"))
    kept.unlink()
    chain.discover(*file, out="d")
    assert kept.exists()
    assert found(chain.path("d")) == found(chain.path("c"))
    assert charges(ledger) == [charge]


@pytest.mark.usefixtures("clean")
def test_another_release_under_the_name_of_one_that_was_charged_is_charged_too(chain: Chain, ledger: Path) -> None:
    """The analyzer is told by the auxiliary server which release it opens: one that lies would spend nothing.

    Fails on right code with probability ALPHA: that two draws of 60 even chances are alike. (see `chain`)
    """
    first, own = ledger.with_name("first.db"), ledger.with_name("own.db")
    released = chain.discover("--party", "aux-server", "--ledger", first, out="d")
    told = summary(released)["ledger"]
    opened = ("--campaign", chain.campaign_path, "--keys", chain.keys, "--party", "analyzer")
    for ledger_of, again in ((own, 1), (own, 1), (first, 1)):
        shutil.rmtree(chain.path("b"), ignore_errors=True)
        done("job", "discover", *opened, "--input", released, "--ledger", ledger_of, "--out", chain.path("b"))
        assert len(charges(ledger_of)) == again
    shutil.rmtree(released)
    # Shuffled again it is another input, and drawn anew.
    shutil.rmtree(chain.path("shuffled"))
    chain.shuffle()
    other = chain.discover("--party", "aux-server", out="d")
    forged = summary(other) | {"ledger": told}
    (other / "summary.json").write_text(json.dumps(forged))
    for ledger_of in (own, first):
        shutil.rmtree(chain.path("b"))
        done("job", "discover", *opened, "--input", other, "--ledger", ledger_of, "--out", chain.path("b"))
        assert summary(chain.path("b"))["ledger"]["charged"]["new"]
        assert len(charges(ledger_of)) == 2


def test_the_output_may_not_hold_the_ledger(chain: Chain, tmp_path: Path) -> None:
    inside = tmp_path / "out" / "ledger.db"
    inside.parent.mkdir()
    arguments = (*chain.analyze_arguments()[:-1], inside.parent, "--ledger", inside)
    refused(*arguments, says=["is or contains the input"])
    assert not inside.exists()
