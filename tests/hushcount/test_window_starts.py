"""When windows begin, as clients know it: by a length as collectors count, or by the list of the campaign file."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from hushcount.allowance import Allowance, OverCap
from hushcount.campaigns.campaign import Campaign
from hushcount.client import Client
from hushcount.collection.tilings import Tiling
from hushcount.collection.windows import window_at
from hushcount.newest import Untrusted
from hushcount.policy import Policy
from hushcount.window_starts import LAST, Starts, Unit
from tests.hushcount.campaigns.test_campaign_file import WORDS
from tests.hushcount.delivery.fake_collector import campaign

UTC = timezone.utc
FIRST = datetime(2026, 11, 29, 12, tzinfo=UTC)


def listed(unit: Unit, days: int = 400, zone: str = "Europe/Berlin") -> dict[str, Any]:
    starts = Tiling(unit, zone).begins(FIRST, FIRST + timedelta(days=days))
    return {"unit": unit, "starts": [int(start.timestamp()) for start in starts]}


@given(seconds=st.integers(1, 366 * 86_400), moment=st.floats(0.0, float(LAST)))
def test_by_a_length_windows_begin_as_collectors_count_them(seconds: int, moment: float) -> None:
    window = window_at(datetime.fromtimestamp(moment, UTC), timedelta(seconds=seconds))
    starts = Starts(seconds)
    assert (starts.at(moment), starts.after(moment)) == (window.start.timestamp(), window.end.timestamp())


@given(unit=st.sampled_from(["day", "week", "month"]), ahead=st.floats(0.0, 300 * 86_400.0))
def test_by_a_list_windows_begin_as_in_the_zone(unit: Unit, ahead: float) -> None:
    moment = FIRST.timestamp() + ahead
    window = Tiling(unit, "Europe/Berlin").window_at(datetime.fromtimestamp(moment, UTC))
    starts = Starts(1, tuple(listed(unit)["starts"]))
    assert (starts.at(moment), starts.after(moment)) == (window.start.timestamp(), window.end.timestamp())


def test_beyond_its_list_a_client_has_no_new_window() -> None:
    starts = Starts(1, (1000, 2000, 3000))
    for moment, at, after in (
        (-1e300, 1000, 2000), (999.9, 1000, 2000), (1000.0, 1000, 2000), (1999.9, 1000, 2000), (2000.0, 2000, 3000),
        (3000.0, 3000, LAST), (1e300, 3000, LAST),
    ):  # fmt: skip
        assert (starts.at(moment), starts.after(moment)) == (at, after)


def test_a_cap_is_of_a_listed_window() -> None:
    """A month of Berlin ends an hour before that of UTC; without a list the day is the window."""
    of_months = campaign(windows=listed("month"), shuffle={"cap": 1, "minimum_batch": 10, "delta": 1e-7})
    without = campaign(shuffle={"cap": 1, "minimum_batch": 10, "delta": 1e-7})
    end = datetime(2026, 11, 30, 23, tzinfo=UTC)
    for one, moments in ((of_months, (FIRST, end)), (without, (FIRST, datetime(2026, 11, 30, tzinfo=UTC)))):
        allowance = Allowance()
        for begin in moments:
            allowance.take(one, "reports", 1, begin)
            with pytest.raises(OverCap):
                allowance.take(one, "reports", 1, begin + timedelta(minutes=59))
    # Nor does the last listed window ever end.
    allowance.take(of_months, "reports", 1, FIRST + timedelta(days=1000))
    with pytest.raises(OverCap):
        allowance.take(of_months, "reports", 1, FIRST + timedelta(days=5000))


def test_an_app_states_the_least_window_that_a_campaign_may_list() -> None:
    def client(unit: Unit, days: int) -> Client:
        made, allowance = campaign(windows=listed(unit)), Allowance(timedelta(days=days))
        return Client(made, policy=Policy.trusting(), dictionary=WORDS, allowance=allowance)

    for unit, least in (("day", 1), ("week", 7), ("month", 28)):
        client(unit, least)
        with pytest.raises(Untrusted, match=f"are {unit}s"):
            client(unit, least + 1)


@pytest.mark.parametrize(
    ("unit", "starts"),
    [
        ("day", [0]),
        ("day", [86_400, 0]),
        ("day", [0, 0]),
        ("day", [0, 86_400, 86_401]),
        ("day", [0, 61_199]),
        ("week", [0, 86_400]),
        ("month", [0, 27 * 86_400]),
        ("day", [0, 7 * 86_400]),
        ("day", [-86_400, 0]),
        ("day", [0.5, 86_400]),
        ("day", [LAST, LAST + 86_400]),
        ("day", [86_400 * day for day in range(501)]),
        ("hour", [0, 3_600]),
    ],
)
def test_a_list_of_other_windows_than_of_its_unit_is_refused(unit: str, starts: list[object]) -> None:
    with pytest.raises(ValidationError):
        campaign(windows={"unit": unit, "starts": starts})


def test_a_publisher_may_list_more_windows_but_of_the_same_unit() -> None:
    def terms(**windows: Any) -> bytes:
        return Campaign.model_validate({**campaign().model_dump(mode="json"), **windows}).terms

    months = terms(windows=listed("month"))
    assert months == terms(windows=listed("month", days=800))
    assert len({months, terms(), terms(windows=listed("week"))}) == 3


def test_windows_of_one_campaign_do_not_push_out_those_of_another() -> None:
    """A month is longer than the 16 days of which a client keeps the counts."""
    of_months = campaign(windows=listed("month"), shuffle={"cap": 1, "minimum_batch": 10, "delta": 1e-7})
    of_days, allowance = campaign(id="days"), Allowance()
    start = datetime(2026, 12, 1, tzinfo=UTC)
    allowance.take(of_months, "reports", 1, start)
    for day in range(28):
        allowance.take(of_days, "reports", 1, start + timedelta(days=day))
    with pytest.raises(OverCap):
        allowance.take(of_months, "reports", 1, start + timedelta(days=28))


def test_an_epoch_that_lists_windows_a_little_later_renews_no_cap() -> None:
    def shifted(hours: int) -> Campaign:
        section = listed("day")
        moved = [start + 3600 * hours for start in section["starts"]]
        shuffle = {"cap": 1, "minimum_batch": 10, "delta": 1e-7}
        return campaign(windows={**section, "starts": moved}, shuffle=shuffle)

    begin, allowance = datetime(2026, 12, 1, 23, tzinfo=UTC), Allowance()
    allowance.take(shifted(0), "reports", 1, begin)
    for hours in (1, 2, 12, 22):
        with pytest.raises(OverCap):
            allowance.take(shifted(hours), "reports", 1, begin + timedelta(hours=hours))
    # Nor does an epoch without a list, whose next window begins an hour later.
    without = campaign(shuffle={"cap": 1, "minimum_batch": 10, "delta": 1e-7})
    with pytest.raises(OverCap):
        allowance.take(without, "reports", 1, begin + timedelta(hours=2))
    allowance.take(shifted(1), "reports", 1, begin + timedelta(hours=25))
