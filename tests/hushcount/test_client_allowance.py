"""What an honest client makes: no more of a stream in a window than the campaign's cap, unless it is told otherwise."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from hushcount.allowance import Allowance, OverCap
from hushcount.campaigns.campaign import Campaign
from hushcount.client import Client
from hushcount.collection.windows import MOST_KEPT
from hushcount.errors import FormatError, UsageError
from hushcount.many_clients import ManyClients
from hushcount.policy import Policy
from tests.hushcount.campaigns.test_campaign_file import WORDS, changed

HOUR = timedelta(hours=1)
NOON = datetime(2026, 11, 21, 12, 0, tzinfo=timezone.utc)


def campaign(cap: int = 1, epoch: int = 1) -> Campaign:
    return Campaign.model_validate({**changed("shuffle", {"cap": cap}), "epoch": epoch})


def test_it_makes_the_cap_of_each_stream_and_no_more() -> None:
    # A window of a day may end within the test; one of a year does once a year.
    client = Client(campaign(), policy=Policy.trusting(), dictionary=WORDS, allowance=Allowance(timedelta(days=366)))
    client.report("one")
    for _ in range(2):
        with pytest.raises(OverCap, match=r"^1 .*reports .*\b1 .*\b1\b") as caught:
            client.report("very secret")
        assert "secret" not in str(caught.value)
    client.discovery_report("very secret")
    with pytest.raises(OverCap, match=r"^1 .*discovery"):
        client.discovery_report(None)
    again = ManyClients(client.campaign, dictionary=WORDS)
    assert len(again.reports(["one"] * 5)) == len(again.discovery_reports([None] * 5)) == 5


def test_what_is_refused_or_wrong_takes_nothing() -> None:
    client = Client(
        campaign(cap=2), policy=Policy.trusting(), dictionary=WORDS, allowance=Allowance(timedelta(days=366))
    )
    with pytest.raises(OverCap, match=r"^3 .*reports"):
        client.reports(["one"] * 3)
    with pytest.raises(UsageError):
        client.reports(["one", None])  # type: ignore[list-item]
    with pytest.raises(UsageError, match="bytes"):
        client.discovery_report("x" * 1000)
    assert len(client.reports([])) == len(client.discovery_reports([])) == 0
    assert len(client.reports(["one", "two"])) == len(client.discovery_reports([None, "x"])) == 2


@pytest.mark.parametrize("durable", [False, True])
def test_each_window_has_its_own_in_whatever_order_the_clock_shows_them(tmp_path: Path, durable: bool) -> None:
    allowance = Allowance(HOUR, tmp_path / "made.json" if durable else None)
    first, second = campaign(cap=2), campaign(cap=2, epoch=2)
    allowance.take(first, "reports", 1, NOON)
    allowance.take(first, "reports", 1, NOON + timedelta(minutes=59))
    # However many epochs are published, a window has one cap: it is what a policy bounds.
    with pytest.raises(OverCap):
        allowance.take(second, "reports", 1, NOON)
    with pytest.raises(OverCap):
        allowance.take(first, "reports", 1, NOON + timedelta(minutes=59, seconds=59))
    # A clock that was 40 days ahead mutes nobody, and one that flaps between windows wins nothing.
    for now in (NOON + timedelta(days=40), NOON + HOUR, NOON - timedelta(days=9)):
        allowance.take(first, "reports", 2, now)
    for now in (NOON, NOON + HOUR, NOON, NOON + timedelta(days=40), NOON - timedelta(days=9)):
        with pytest.raises(OverCap):
            allowance.take(first, "reports", 1, now)


def test_a_window_is_open_again_once_16_others_were_used_and_no_sooner() -> None:
    """The limit of what a clock can be held to, and said; what is refused counts as no use."""
    allowance = Allowance(HOUR)
    for number in range(MOST_KEPT):
        allowance.take(campaign(), "reports", 1, NOON + number * HOUR)
    for number in range(MOST_KEPT):
        with pytest.raises(OverCap):
            allowance.take(campaign(), "reports", 1, NOON + number * HOUR)
    allowance.take(campaign(), "reports", 1, NOON + MOST_KEPT * HOUR)
    with pytest.raises(OverCap):
        allowance.take(campaign(), "reports", 1, NOON + HOUR)
    allowance.take(campaign(), "reports", 1, NOON)


def test_with_a_file_it_outlives_the_process_and_names_no_value(tmp_path: Path) -> None:
    path = tmp_path / "made.json"
    for number in range(3):
        allowance = Allowance(timedelta(days=366), path)
        client = Client(campaign(cap=2), policy=Policy.trusting(), dictionary=WORDS, allowance=allowance)
        if number < 2:
            client.report("very secret")
        else:
            with pytest.raises(OverCap):
                client.report("very secret")
    assert b"secret" not in path.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    with pytest.raises(UsageError, match="chmod 600"):
        client.report("one")


def test_a_damaged_file_is_refused_and_left_as_it_is(subtests: pytest.Subtests, tmp_path: Path) -> None:
    for number, content in enumerate(
        [
            b"",
            b"[]",
            b"[" * 200_000,
            b'{"windows": {"20261121T120000Z": {"a": -1}}}',
            b" " * (2 << 20),
        ]
    ):
        home = tmp_path / str(number)
        home.mkdir()
        with subtests.test(content=content[:60]):
            path = home / "made.json"
            path.write_bytes(content)
            path.chmod(0o600)
            with pytest.raises(FormatError, match=r"made\.json"):
                Client(campaign(), policy=Policy.trusting(), dictionary=WORDS, allowance=Allowance(path=path)).report(
                    "one"
                )
            assert path.read_bytes() == content


@pytest.mark.parametrize("durable", [False, True])
def test_many_threads_make_the_cap_together(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "made.json" if durable else None
    client = Client(
        campaign(cap=5),
        policy=Policy.trusting(),
        dictionary=WORDS,
        allowance=Allowance(timedelta(days=366), path),
    )
    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(makes, [client] * 20)) == 5


def makes(client: Client) -> bool:
    try:
        client.report("one")
    except OverCap:
        return False
    return True


def test_a_window_shorter_than_a_second_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^window is 0:00:00.* 1 second"):
        Allowance(timedelta())
