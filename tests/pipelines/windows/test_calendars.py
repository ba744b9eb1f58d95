"""Windows of a calendar: they begin with the zone's days, campaign files list them, and answers name them by days."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.collection.tilings import Tiling
from hushcount.errors import UsageError
from pipelines.audit.doctor import examine
from pipelines.deployment.listed_windows import LEFT, LISTED, listed_until
from pipelines.deployment.publish import publish
from tests.support.collecting import START, collect, window_name
from tests.support.jobs import done, new_campaign, refused
from tests.support.next_epoch import AT_ONCE, newest
from tests.support.site import FLOOR, Site, at

KOLKATA = 18.5 / 24
"""When the next day begins in Kolkata, whose clock is never changed, by the clock of the tests."""


def local(day: float) -> str:
    """Return the day in Kolkata on which a moment of the tests lies."""
    return f"{at(day) + timedelta(hours=5.5):%Y-%m-%d}"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A site with windows of days in Kolkata, whose first epoch lists them."""
    site = Site(tmp_path)
    config = site.config.read_text().replace('length = "1d"', 'length = "day"\nzone = "Asia/Kolkata"')
    site.config.write_text(config)
    path = site.root / "campaigns" / "words" / "epoch-000001.json"
    path.unlink()
    made = new_campaign(
        tmp_path / "words.json", site.keys, "--config", site.config, dictionary=site.words, min_batch=FLOOR
    )
    site.campaign = made.rename(path)
    (tmp_path / "words-000001.dictionary.txt").rename(path.with_name("words-000001.dictionary.txt"))
    return site


def test_days_of_a_zone_are_counted_named_and_added_up(site: Site) -> None:
    for day in range(3):
        collect(site.store, site.campaign, ["alpha"] * 40 + ["beta"] * 20, day=day + KOLKATA)
    finished = site.run(4.0)
    assert (finished.problems, len(finished.closed)) == ([], 3)
    asked = ("--config", site.config, "--campaign", "words")
    for day in range(3):
        answer = done("ask", "top", *asked, "--window", local(day + KOLKATA), "--json").json
        assert answer["windows"] == [window_name(day + KOLKATA)]
        assert {row["reports"] for row in answer["rows"]} == {60}
    span = ("--from", local(KOLKATA), "--to", local(1 + KOLKATA))
    ranged = done("ask", "total", *asked, *span, "--item", "alpha", "--json").json
    assert ranged["windows"] == [window_name(KOLKATA), window_name(1 + KOLKATA)]
    assert ranged["rows"][0]["reports"] == 120
    said = done("ask", "item", *asked, "--item", "alpha").out
    assert "Asia/Kolkata" in said
    month = done("ask", "total", *asked, "--month", local(KOLKATA)[:7]).out
    assert f"days of {local(KOLKATA)[:7]} in Asia/Kolkata ha" in month
    assert "in Asia/Kolkata: totals" in " ".join(month.split())
    assert local(2 + KOLKATA) in said
    # A day of UTC holds the begin of one window and the end of another.
    utc = f"{at(1):%Y-%m-%d}T00Z", f"{at(1):%Y-%m-%d}T23Z"
    overlaps = done("ask", "total", *asked, "--from", utc[0], "--to", utc[1], "--json").json["says"]
    assert any(f"window {local(1)} ends at" in said and "nothing of it" in said for said in overlaps)
    assert any(f"window {local(1 + KOLKATA)} ends at" in said and "all of it" in said for said in overlaps)
    assert all(check.verdict != "bad" for check in examine(site.deployment, at(4.0)))
    assert any("days of Asia/Kolkata" in check.says for check in examine(site.deployment, at(4.0)))
    assert "00:00:00 Asia/Kolkata)" in done("status", "--config", site.config).out


def test_a_zone_that_only_seems_to_have_summer_time_is_named(site: Site) -> None:
    site.config.write_text(site.config.read_text().replace("Asia/Kolkata", "EST"))
    (check,) = (check for check in examine(site.deployment, at(0.1)) if check.name == "zone of windows")
    assert (check.verdict, "America/New_York" in check.says) == ("warning", True)


def test_a_change_from_lengths_to_a_calendar_leaves_no_gap(site: Site) -> None:
    """The running window of a day in UTC keeps its end, and a shorter first window of the calendar follows it."""
    calendar = site.config.read_text()
    site.config.write_text(calendar.replace('length = "day"\nzone = "Asia/Kolkata"', 'length = "1d"'))
    collect(site.store, site.campaign, ["alpha"] * 60, day=0)
    # Clients count days in Kolkata already.
    (problem,) = site.run(1.1).problems
    assert "words lists calendar days" in problem
    site.config.write_text(calendar)
    (line,) = site.run(1.2).announced
    assert "windows are the days of Asia/Kolkata, with a grace of " in line
    collect(site.store, site.campaign, ["alpha"] * 60, day=1)
    collect(site.store, site.campaign, ["alpha"] * 70, day=2, seconds=int(KOLKATA * 86_400))
    collect(site.store, site.campaign, ["alpha"] * 80, day=2 + KOLKATA)
    finished = site.run(4.0)
    assert finished.problems == []
    rows = done("ask", "item", "--config", site.config, "--item", "alpha", "--json").json["rows"]
    assert [(row["window"], row["reports"]) for row in rows] == [
        (window_name(0), 60), (window_name(1), 60), (window_name(2), 70), (window_name(2 + KOLKATA), 80),
    ]  # fmt: skip


def test_a_campaign_file_lists_the_windows_of_its_deployment(site: Site) -> None:
    campaign = Campaign.read(site.campaign)
    assert campaign.windows is not None
    tiling = site.deployment.windows.tiling
    now = datetime.now(timezone.utc)
    expected = [int(start.timestamp()) for start in tiling.begins(now, now + LISTED)]
    assert (campaign.windows.unit, list(campaign.windows.starts)) == ("day", expected)
    without = new_campaign(site.root / "plain.json", site.keys, dictionary=site.words)
    says = ["lists no windows", "--config"]
    refused("campaign", "publish", "--config", site.config, "--campaign", without, says=says)
    again = new_campaign(site.root / "listed.json", site.keys, "--config", site.config, dictionary=site.words)
    assert publish(site.deployment, again).epoch == 1
    file = json.loads(again.read_text())
    file["windows"]["starts"] = [start + 1800 for start in file["windows"]["starts"]]
    other = again.with_name("other.json")
    other.write_text(json.dumps({**file, "id": "other"}))
    refused("campaign", "publish", "--config", site.config, "--campaign", other, says=["lists a window from"])
    fixed = Site(site.root / "fixed")
    refused(
        "campaign", "publish", "--config", fixed.config, "--campaign", again, says=["calendar days", "of one length"]
    )


def test_the_list_is_checked_by_the_present_windows_and_its_end(site: Site) -> None:
    campaign, now = Campaign.read(site.campaign), datetime.now(timezone.utc)
    tiling = site.deployment.windows.tiling
    end = listed_until(campaign, tiling, now)
    assert end is not None
    assert LISTED - timedelta(days=1) <= end - now <= LISTED
    assert listed_until(campaign, tiling, end - timedelta(seconds=1)) == end
    with pytest.raises(UsageError, match="of the past only"):
        listed_until(campaign, tiling, end + timedelta(days=1))
    for other in (Tiling("week", "Asia/Kolkata"), Tiling("day", "Europe/Berlin"), Tiling(timedelta(days=1))):
        with pytest.raises(UsageError):
            listed_until(campaign, other, now)


def test_an_epoch_that_begins_later_lists_its_windows_from_then_on(site: Site) -> None:
    begins = (datetime.now(timezone.utc) + timedelta(days=20)).replace(microsecond=0)
    options = ("--config", site.config, "--after", site.campaign, "--begins", begins.isoformat())
    (site.root / "later").mkdir()
    later = new_campaign(site.root / "later" / "words.json", site.keys, *options, dictionary=site.words)
    publish(site.deployment, later, begins)
    (known,) = (check for check in examine(site.deployment, at(1.1)) if check.name.startswith("windows that clients"))
    assert known.verdict == "good", known.says


def test_a_run_lists_more_windows_before_the_list_ends(site: Site) -> None:
    """A run with [next_epoch] does so; without, doctor warns."""
    known = "windows that clients of words know"
    verdicts = {
        day: next(check.verdict for check in examine(site.deployment, at(day)) if check.name == known)
        for day in (1.1, (LISTED - LEFT).days + 2.1, LISTED.days + 2.1)
    }
    assert [*verdicts.values()] == ["good", "warning", "bad"]
    site.config.write_text(site.config.read_text() + f"[next_epoch.words]\n{AT_ONCE}")
    file = json.loads(site.campaign.read_text())
    file["windows"]["starts"] = file["windows"]["starts"][:50]
    site.campaign.write_text(json.dumps(file))
    finished = site.run(1.1)
    assert (finished.problems, finished.published) == ([], ["words/2"])
    listed = newest(site).windows
    assert listed is not None
    assert listed.starts[-1] - START.timestamp() > (LISTED - timedelta(days=2)).total_seconds()
    assert site.run(1.2).published == []


def test_each_look_says_that_clients_count_other_windows(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.config.write_text(site.config.read_text().replace('length = "1d"', 'length = "week"\nzone = "Asia/Kolkata"'))
    for day in (1.1, 2.1):
        (problem,) = site.run(day).problems
        assert "words lists no windows" in problem


def test_an_epoch_lists_the_windows_that_the_log_has_though_the_file_asks_for_others(site: Site) -> None:
    """A second change of windows is refused until the first one has begun, and no list may go ahead of it."""
    collect(site.store, site.campaign, ["alpha"] * 60, day=KOLKATA)
    days = site.config.read_text()
    assert site.run(2.1).problems == []
    site.config.write_text(days.replace('length = "day"', 'length = "week"'))
    assert len(site.run(2.2).announced) == 1
    # A new epoch for other windows waits for no least length.
    site.config.write_text(days.replace('length = "day"', 'length = "month"') + "[next_epoch.words]\n")
    looked = site.run(2.3)
    assert looked.published == ["words/2"]
    (problem,) = looked.problems
    assert "that was announced" in problem
    listed = newest(site).windows
    assert listed is not None
    assert listed.unit == "week"


@pytest.mark.parametrize(
    ("windows", "says"),
    [
        ('length = "week"\nzone = "Mars/Olympus"', "zone is 'Mars/Olympus'"),
        ('length = "week"\nstarts = "today"', "windows.starts"),
        ('length = "month"\nstarts = "monday"', "starts is 'monday'"),
        ('length = "1d"\nzone = "Europe/Berlin"', "zone is 'Europe/Berlin'"),
        ('length = "year"', "windows.length"),
    ],
)
def test_what_is_no_calendar_is_refused(tmp_path: Path, windows: str, says: str) -> None:
    config = tmp_path / "deployment.toml"
    config.write_text(f'store = "store"\n[windows]\n{windows}\ngrace = "1d"\n')
    refused("status", "--config", config, says=[says])
