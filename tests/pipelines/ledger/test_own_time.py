"""The ledger's time: a clock that is wrong once frees nothing that was spent, whatever it says and whenever."""

from __future__ import annotations

import uuid
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from hushcount.campaigns.campaign import Campaign
from hushcount.clock import MACHINE
from hushcount.errors import UsageError
from hushcount.privacy.composition import Loss
from pipelines.ledger.balance import OverLimit
from pipelines.ledger.charges import Limit, stamp
from pipelines.ledger.charging import charging
from pipelines.ledger.file import opened, put, read_charges, read_limit, read_newest, writing
from pipelines.ledger.overview import check, describe, set_limit
from pipelines.ledger.own_time import FAR, LedgerClock, believed, confirm
from pipelines.outputs.account import Spent
from tests.pipelines.conftest import World
from tests.pipelines.ledger.test_charging import NOW, batch, release, upstream
from tests.support.jobs import done, new_campaign, refused

DAY = timedelta(days=1)
RENEWS = 30
COST = 2.0
"""Of a release of fewer reports than the minimum batch: the local guarantee."""
FEW = 4999
LIMIT = 2 * COST


@dataclass
class Clock:
    """What this machine's clock says."""

    now: datetime


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock(NOW)
    monkeypatch.setitem(vars(MACHINE), "seconds", lambda: clock.now.timestamp())  # noqa: PLW0108  # now changes
    return clock


@pytest.fixture(scope="module")
def campaign(world: World, tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    path = tmp_path_factory.mktemp("clock") / "small.json"
    return Campaign.read(new_campaign(path, world.keys, mechanism="gcms", min_batch=5000))


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / f"{uuid.uuid4().hex}.db"


def released(ledger: Path, campaign: Campaign, folder: str, known: datetime | None = None) -> bool:
    """Release an input that costs COST, and return whether it fitted."""
    try:
        with charging(ledger, campaign, "analyze", upstream(FEW), folder, clock=LedgerClock(known=known)) as charge:
            charge.commit(Loss(COST, 0.0), FEW)
    except OverLimit:
        return False
    return True


def limited(ledger: Path) -> None:
    set_limit(ledger, "small", LIMIT, 0.0, RENEWS)


def fitting(ledger: Path, campaign: Campaign, tmp_path: Path, name: str, tries: int = 4) -> int:
    """Return how many of so many new inputs fitted."""
    return sum(released(ledger, campaign, batch(tmp_path, f"{name}-{number}")) for number in range(tries))


# The ledger's time.


def test_the_ledgers_time() -> None:
    for clock, newest, known, time in (
        (0.0, None, None, 0.0),
        (5.0, 4.0, None, 5.0),
        (4.0, 5.0, None, 5.0),
        (-400.0, 5.0, None, 5.0),
        (7.0, 5.0, None, 7.0),
        (7.1, 5.0, None, 5.0),
        (400.0, 5.0, None, 5.0),
        (400.0, 5.0, 399.0, 400.0),
        (400.0, 5.0, 20.0, 20.0),
        (400.0, None, 20.0, 20.0),
        (20.0, 400.0, 20.0, 400.0),
        (5.0, 4.0, 399.0, 5.0),
        (7.1, 5.0, 399.0, 7.1),
    ):
        when = [None if days is None else NOW + days * DAY for days in (newest, known)]
        assert believed(NOW + clock * DAY, *when) == NOW + time * DAY


# A clock that is wrong at one moment.


def test_a_limit_that_was_set_by_a_clock_ahead_of_now_is_one(
    tmp_path: Path, campaign: Campaign, ledger: Path, clock: Clock
) -> None:
    clock.now = NOW + 400 * DAY
    limited(ledger)
    clock.now = NOW
    assert fitting(ledger, campaign, tmp_path, "in", 20) == 2
    said = check(ledger).warnings
    assert len(said) == 3
    assert "400 days" in said[0]
    assert f"campaign small begins on {stamp(NOW + 400 * DAY)}" in said[1]
    assert said[2].startswith("2 charges are stamped ahead of the clock")
    shown = done("ledger", "check", "--ledger", ledger).out
    assert shown.count("\nwarning: ") == 3
    # Set again, it begins when it began.
    limited(ledger)
    with opened(ledger) as connection:
        limit = read_limit(connection, "small")
    assert limit is not None
    assert limit.since == stamp(NOW + 400 * DAY)
    # The operator says the date: all that was stamped ahead of it happened by then.
    refused("ledger", "confirm", "--ledger", ledger, "--date", "2027-04-05", says=["2026-03-01"])
    done("ledger", "confirm", "--ledger", ledger, "--date", "2026-03-01")
    assert check(ledger).warnings == []
    assert fitting(ledger, campaign, tmp_path, "more") == 0
    clock.now = NOW + 1.5 * DAY
    assert not released(ledger, campaign, batch(tmp_path, "more"))
    for days in range(2, RENEWS + 1, 2):
        clock.now = NOW + days * DAY
        limited(ledger)
    assert fitting(ledger, campaign, tmp_path, "renewed") == 2


@pytest.mark.parametrize("days", [31, 400, 40_000])
def test_a_release_by_a_clock_far_ahead_renews_nothing(
    tmp_path: Path, campaign: Campaign, ledger: Path, clock: Clock, days: int
) -> None:
    limited(ledger)
    assert fitting(ledger, campaign, tmp_path, "right") == 2
    clock.now = NOW + days * DAY
    with pytest.raises(OverLimit, match=rf"{days:,} days .*hushcount ledger confirm --date"):
        release(ledger, campaign, batch(tmp_path, "wrong"))
    assert fitting(ledger, campaign, tmp_path, "wrong") == 0
    limited(ledger)
    assert fitting(ledger, campaign, tmp_path, "set again") == 0
    clock.now = NOW
    assert fitting(ledger, campaign, tmp_path, "right again") == 0
    assert describe(ledger).data()["campaigns"][0]["renews"] == stamp(NOW + RENEWS * DAY)


def test_what_a_clock_far_ahead_charged_counts_until_that_is_past(
    tmp_path: Path, campaign: Campaign, ledger: Path, clock: Clock
) -> None:
    limited(ledger)
    clock.now = NOW + 40 * DAY
    assert released(ledger, campaign, batch(tmp_path, "wrong"))
    clock.now = NOW
    assert fitting(ledger, campaign, tmp_path, "right") == 1
    confirm(ledger, NOW.date())
    assert check(ledger).warnings == []
    with opened(ledger) as connection:
        assert {charge.committed_at for charge in read_charges(connection)} == {stamp(NOW), "2026-03-03T00:00:00+00:00"}


def test_an_idle_ledger_renews_when_the_operator_or_the_deployment_tells_the_time(
    tmp_path: Path, campaign: Campaign, ledger: Path, clock: Clock
) -> None:
    limited(ledger)
    assert fitting(ledger, campaign, tmp_path, "first") == 2
    clock.now = NOW + 100 * DAY
    assert not released(ledger, campaign, batch(tmp_path, "later"))
    assert released(ledger, campaign, batch(tmp_path, "later"), known=NOW + 99 * DAY)
    clock.now = NOW + 200 * DAY
    assert fitting(ledger, campaign, tmp_path, "one left") == 1
    confirm(ledger, clock.now.date() - DAY)
    # What was charged before that was stamped by the clock, not by the ledger's time.
    assert fitting(ledger, campaign, tmp_path, "confirmed") == 1


def test_a_limit_is_never_set_ahead_of_the_ledgers_time(ledger: Path, clock: Clock) -> None:
    limited(ledger)
    clock.now = NOW + 400 * DAY
    account = set_limit(ledger, "other", 1.0, 1e-6, RENEWS)
    assert account.limit is not None
    assert account.limit.since == stamp(NOW)
    # Nothing comes to nothing.
    assert account.spent == Spent(0.0, 0.0, "basic", 0, "client")


def test_a_time_that_is_none_is_said(ledger: Path, clock: Clock) -> None:
    limited(ledger)
    with opened(ledger) as connection, writing(connection):
        put(connection, Limit("odd", 1.0, 0.0, RENEWS, "2026-03-01"))
    refused(
        "ledger",
        "check",
        "--ledger",
        ledger,
        says=["campaign odd", "ISO 8601"],
    )
    with opened(ledger) as connection, writing(connection):
        connection.execute("UPDATE clock SET newest = 'soon'")
    refused("ledger", "show", "--ledger", ledger, says=["altered"])


# Whatever the clock says.


STEPS = st.tuples(st.sampled_from(["release", "set", "confirm"]), st.sampled_from([0, 0.5, 1.9, 9, 31]), st.booleans())


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(steps=st.lists(STEPS, min_size=4, max_size=16), wrong=st.sampled_from([-400, -31, -1.9, 1.9, 2.1, 31, 400]))
@example([("set", 0, True), *[("release", 0, False)] * 4], 400)
@example([("set", 0, False), *[("release", 0, False)] * 2, *[("release", 0, True)] * 4], 31)
@example([("release", 0, True), ("release", 0, False), ("confirm", 0, False), ("release", 0, False)], -400)
@example([("set", 0, False), *[("release", 0.5, True)] * 2, *[("release", 0, False)] * 4], -31)
@example([*[("set", 1.9, False)] * 17, *[("release", 0, True)] * 2, *[("release", 0, False)] * 4], -31)
def test_no_clock_that_is_wrong_by_one_amount_spends_more_than_a_limit_for_each_period_that_has_begun(
    tmp_path: Path, campaign: Campaign, clock: Clock, steps: list[tuple[str, float, bool]], wrong: float
) -> None:
    """At each step the clock is right or wrong, by the same amount; by true time a period may begin FAR too early.

    The operator confirms the date unless the ledger has its time from a clock that was behind.
    """
    ledger = tmp_path / f"{uuid.uuid4().hex}.db"
    true = began = NOW
    charged = 0.0
    clock.now = newest = true + (wrong * DAY if steps[0][2] else timedelta())
    behind = true - newest
    limited(ledger)
    for number, (kind, later, is_wrong) in enumerate(steps):
        true += later * DAY
        clock.now = true + (wrong * DAY if is_wrong else timedelta())
        if kind == "set":
            limited(ledger)
        elif kind == "confirm":
            if behind <= FAR:
                with suppress(UsageError):
                    confirm(ledger, true.date())
        elif released(ledger, campaign, batch(tmp_path, f"in{number}")):
            charged += COST
        with opened(ledger) as connection:
            if (now := read_newest(connection)) is not None and now != newest:
                newest, behind = now, true - now
        assert charged <= LIMIT * (1 + (true + FAR - began) // (RENEWS * DAY))


# Two jobs, and a renewal in between.


def test_a_release_that_crosses_a_renewal_is_charged_to_the_period_in_which_it_is_handed_out(
    tmp_path: Path, campaign: Campaign, ledger: Path, clock: Clock
) -> None:
    """Room for two. One was released; one is reserved in the first period and committed in the second."""
    set_limit(ledger, "small", LIMIT, 0.0, 1)
    assert released(ledger, campaign, batch(tmp_path, "first"))
    clock.now = NOW + 0.9 * DAY
    with charging(ledger, campaign, "analyze", upstream(FEW), batch(tmp_path, "slow")) as slow:
        # In the old period all is held, in the new one what the slow one holds.
        assert not released(ledger, campaign, batch(tmp_path, "none"))
        clock.now = NOW + 1.1 * DAY
        assert released(ledger, campaign, batch(tmp_path, "quick"))
        assert not released(ledger, campaign, batch(tmp_path, "none"))
        slow.commit(Loss(COST, 0.0), FEW)
    account: dict[str, Any] = describe(ledger).data()["campaigns"][0]
    assert (account["spent"]["releases"], account["spent"]["epsilon"]) == (2, LIMIT)
    assert fitting(ledger, campaign, tmp_path, "more") == 0
    assert datetime.fromisoformat(account["renews"]) == (NOW + 2 * DAY).astimezone(timezone.utc)
