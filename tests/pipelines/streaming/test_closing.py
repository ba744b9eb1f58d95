"""What a stream believes when a window closes: what its collectors wrote, and no clock that they do not bear out."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from hushcount.collection.epochs import epoch_folder
from hushcount.collection.windows import Window, window_at
from hushcount.errors import HushcountError
from pipelines.streaming.output import claimed
from pipelines.streaming.release import put
from pipelines.streaming.watch import Watched, found_between, look
from pipelines.streaming.windows import RECORD, StreamFolders
from tests.support.jobs import done, refused, summary
from tests.support.streams import FIRST, FLOOR, HOUR, Collected, manifest_of, record
from tests.support.stub_store import StubStore

ONCE = ("--for", "1s", "--every", "1s")


@pytest.fixture
def collected(sealed: Collected, tmp_path: Path) -> Collected:
    """The same clients, and a store of the test's own."""
    return Collected(sealed.chain, tmp_path / "store", sealed.made)


@pytest.fixture
def store() -> Iterator[type[StubStore]]:
    StubStore.clear()
    yield StubStore
    StubStore.clear()


def counted(out: Path, window: Window) -> int:
    number: int = record(out, window)["streams"]["reports"]["accepted"]
    return number


@pytest.mark.long
def test_a_window_of_which_a_segment_is_gone_waits_until_it_is_back(collected: Collected, tmp_path: Path) -> None:
    """90 of 150 were once released, with exit status 0."""
    out = tmp_path / "out"
    collected.segment(FIRST, "one-1", 0, 90)
    gone = collected.store / collected.segment(FIRST, "one-2", 90, 60)[0]
    collected.segment(FIRST.next, "one-3", 150, 70)
    content = gone.read_bytes()
    gone.unlink()
    refused(*collected.arguments(out, *ONCE), status=1, says=[f"window {FIRST.name} ", str(gone)])
    assert not (out / FIRST.name).exists()
    assert counted(out, FIRST.next) == 70
    gone.write_bytes(content)
    done(*collected.arguments(out, *ONCE))
    assert counted(out, FIRST) == 150
    assert sorted(path.name for path in out.iterdir()) == [FIRST.name, FIRST.next.name, "stream.json"]


def test_a_segment_that_replaced_another_counts_in_no_window_but_its_own(collected: Collected, tmp_path: Path) -> None:
    """With its manifest too, which says of which window it is. 60 reports once counted in both windows."""
    out = tmp_path / "out"
    ours = [collected.store / name for name in collected.segment(FIRST, "one-1", 0, 90)]
    others = [collected.store / name for name in collected.segment(FIRST.next, "one-2", 90, 60)]
    for mine, other in zip(ours, others, strict=True):
        mine.write_bytes(other.read_bytes())
    shutil.copytree(collected.store / FIRST.next.name, collected.store / FIRST.next.next.name)
    says = [f"{mine} has {other.stat().st_size} bytes, was" for mine, other in zip(ours, others, strict=True)]
    refused(*collected.arguments(out, *ONCE), status=1, says=says)
    assert counted(out, FIRST.next) == 60
    assert [path.parent.name for path in out.glob(f"*/{RECORD}")] == [FIRST.next.name]


@pytest.mark.long
def test_what_is_lost_is_left_out_when_the_operator_says_so(collected: Collected, tmp_path: Path) -> None:
    out = tmp_path / "out"
    collected.segment(FIRST, "one-1", 0, 90)
    lost = collected.segment(FIRST, "one-2", 90, 60)[0]
    (collected.store / lost).unlink()
    collected.segment(FIRST, "one-3", 150, 60)
    torn = f"{FIRST.name}/{manifest_of('one-3')}"
    (collected.store / torn).write_text("{")
    refused(*collected.arguments(out, *ONCE), status=1, says=[str(collected.store / torn), str(collected.store / lost)])
    refused(*collected.arguments(out, *ONCE, "--without", lost), status=1, says=[str(collected.store / torn)])
    run = done(*collected.arguments(out, *ONCE, "--json", "--without", lost, "--without", torn))
    assert counted(out, FIRST) == 90
    assert record(out, FIRST)["without"] == {lost: 60, torn: 0}
    # What no readable manifest names came too late.
    assert run.json["too_late"] == 2 * 60


@pytest.mark.long
def test_a_segment_that_no_manifest_names_is_not_counted_and_said(collected: Collected, tmp_path: Path) -> None:
    """Its collector has not finished: alone it waits, and it is too late when its window is settled without it."""
    out = tmp_path / "out"
    alone = collected.segment(FIRST, "two-1", 0, 60, "two", closed=False)
    collected.segment(FIRST.next, "one-1", 100, 60)
    collected.segment(FIRST.next, "two-2", 200, 50, "two", closed=False)
    run = done(*collected.arguments(out, *ONCE, "--json"))
    assert [one["window"] for one in run.json["windows"]] == [FIRST.next.name]
    assert (run.json["waiting"], run.json["too_late"]) == ([FIRST.name], 2 * 50)
    assert f"window {FIRST.name} waits" in run.err
    collected.close(FIRST, "two-1", alone, "two")
    run = done(*collected.arguments(out, *ONCE, "--json"))
    assert counted(out, FIRST) == 60
    assert (run.json["waiting"], run.json["too_late"]) == ([], 2 * 50)


@pytest.mark.long
def test_a_clock_that_is_ahead_settles_no_window_that_is_open(
    collected: Collected, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three hours ahead it once settled the present window, and 300 reports that came into it were dropped."""
    out, clock = tmp_path / "out", time.time
    present = window_at(datetime.now(timezone.utc), HOUR.length)
    before = window_at(present.start - timedelta(seconds=1), HOUR.length)
    collected.segment(before, "one-1", 0, 60)
    first = collected.segment(present, "one-2", 100, 100, closed=False)
    with monkeypatch.context() as ahead:
        ahead.setattr("time.time", lambda: clock() + 3 * 3600)
        run = done(*collected.arguments(out, *ONCE))
        assert [path.parent.name for path in out.glob(f"*/{RECORD}")] == [before.name]
        said = " ".join(run.err.split())
        assert f"window {present.name} waits for manifests of its collectors" in said
        assert "newest manifest" in said
        collected.close(present, "one-3", [*first, *collected.segment(present, "one-3", 200, 300, closed=False)])
        done(*collected.arguments(out, *ONCE))
    assert counted(out, present) == 400


@pytest.mark.long
def test_what_is_released_is_signed_and_named_after_its_window(collected: Collected, tmp_path: Path) -> None:
    """So that analyze refuses what was released of another window, or is not what the shuffler signed."""
    out, keys = tmp_path / "out", tmp_path / "signing"
    done("keys", "new", "--role", "shuffler", "--out", keys)
    trusts = ("--signed-by", keys / "public.json")
    collected.segment(FIRST, "one-1", 0, 60)
    collected.segment(FIRST.next, "one-2", 100, 60)
    done(*collected.arguments(out, *ONCE, "--sign-with", keys))
    ours, other = (next((out / window.name / "shuffled").iterdir()) for window in (FIRST, FIRST.next))
    assert ours.name == f"{FIRST.name}-{epoch_folder(collected.chain.campaign)}"
    assert summary(ours)["batch"] == ours.name
    paths = ("--keys", collected.chain.keys, "--out", tmp_path / "results")
    analyze = ("analyze", "--campaign", collected.chain.campaign_path, *paths, *trusts, "--input")
    (tmp_path / "copies").mkdir()
    taken = tmp_path / "copies" / ours.name
    shutil.copytree(other, taken)
    refused(*analyze, taken, says=[str(taken)])
    shutil.rmtree(taken)
    shutil.copytree(ours, taken)
    changed = next((taken / "reports").iterdir())
    raw = changed.read_bytes()
    changed.write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))
    refused(*analyze, taken, status=1, says=[f"{changed.name} "])
    done(*analyze, ours)


# When windows close, without an engine.

BEGAN = FIRST.start.timestamp()
PAUSE = 60.0


def named(window: Window, collector: str) -> str:
    return f"{window.name}/{manifest_of('any', collector)}"


def closed(looks: list[tuple[float, set[str]]]) -> list[str]:
    """Return which windows have closed after looks, each at seconds after FIRST's start, with what is there by then."""
    watched, found = Watched(), []
    for seconds, there in looks:
        known = look(watched, there, BEGAN + seconds, PAUSE, HOUR)
        found += [one.window for one in found_between(watched, known, HOUR) if not one.late]
        watched = known
    return found


def test_a_window_closes_when_the_clock_says_so_and_its_manifest_or_a_later_one_is_there() -> None:
    segment, own, later = f"{FIRST.name}/reports/one-1.blocks", named(FIRST, "one"), named(FIRST.next, "one")
    assert closed([(4199, {segment, own})]) == []
    assert closed([(4200, {segment, own})]) == [FIRST.name]
    before = window_at(FIRST.start - timedelta(seconds=1), HOUR.length)
    assert closed([(400_000, {segment, named(before, "one")})]) == [before.name]
    assert closed([(400_000, {segment}), (800_000, {segment})]) == []
    assert closed([(400_000, {segment}), (800_000, {segment, later})]) == [FIRST.name, FIRST.next.name]
    assert closed([(400_000, {segment}), (400_060, {segment, own})]) == [FIRST.name]


def test_a_manifest_of_a_window_to_come_bears_out_none() -> None:
    """Its collector's clock is ahead of ours: it must not vouch for ours."""
    segment, far = f"{FIRST.name}/reports/one-1.blocks", named(window_at(FIRST.start + timedelta(9), HOUR.length), "b")
    assert closed([(8000, {segment, far})]) == []
    assert closed([(8000, {segment, far, named(FIRST, "one")})]) == [FIRST.name]


def test_a_window_waits_for_who_wrote_a_manifest_of_the_one_before_as_long_as_the_lateness() -> None:
    """By the manifests of others or by watching, not by the clock: it may be ahead."""
    both = {named(FIRST, "one"), named(FIRST, "two")}
    one = {*both, named(FIRST.next, "one")}
    hours = 100 * 3600
    assert closed([(hours, one)]) == [FIRST.name]
    assert closed([(hours, one), (hours + 1, {*one, named(FIRST.next, "two")})]) == [FIRST.name, FIRST.next.name]
    after = FIRST.next.next
    assert closed([(hours, {*one, named(after, "one")})]) == [FIRST.name, FIRST.next.name, after.name]
    minutes = [(hours + PAUSE * minute, one) for minute in range(11)]
    assert closed(minutes[:-1]) == [FIRST.name]
    assert closed(minutes) == [FIRST.name, FIRST.next.name]
    # A clock that jumps has not watched in between.
    assert closed([(8000, one), (hours, one), (hours + PAUSE, one)]) == [FIRST.name]


def test_what_is_found_after_its_window_closed_is_late_once() -> None:
    own, late = named(FIRST, "one"), f"{FIRST.name}/reports/two-1.blocks"
    first = look(Watched(), {own}, BEGAN + 4200, PAUSE, HOUR)
    second = look(first, {own, late}, BEGAN + 4260, PAUSE, HOUR)
    (found,) = found_between(first, second, HOUR)
    assert (found.names, found.late) == ((late,), True)
    assert found_between(second, look(second, {own, late}, BEGAN + 4320, PAUSE, HOUR), HOUR) == []


# Who writes to the output.


def test_what_a_killed_job_was_making_is_removed_and_a_job_that_still_runs_settles_nothing(
    collected: Collected, tmp_path: Path
) -> None:
    out, campaign = tmp_path / "out", collected.chain.campaign
    with claimed(str(out), campaign, HOUR) as killed:
        half = Path(killed) / FIRST.name / "shuffled" / "reports" / "part-00000-of-00003.blocks"
        half.parent.mkdir(parents=True)
        half.write_bytes(b"half")
        (out / "mine.partial").mkdir()
        folders = StreamFolders(str(collected.store), str(out), killed, HOUR, epoch_folder(campaign))
        folders.require_ours()
        with claimed(str(out), campaign, HOUR) as work:
            assert {path.name for path in out.iterdir()} == {"mine.partial", Path(work).name, "stream.json"}
            with pytest.raises(HushcountError, match="another stream"):
                folders.require_ours()
    assert sorted(path.name for path in out.iterdir()) == ["mine.partial", "stream.json"]


def test_in_a_store_a_job_that_another_has_followed_puts_out_nothing_whole(
    collected: Collected, store: type[StubStore]
) -> None:
    """Some of what it made may be gone by then: the mark, which says that all is there, is not written."""
    out, campaign, target = "stub://b/out", collected.chain.campaign, f"stub://b/out/{FIRST.name}"
    with claimed(out, campaign, HOUR) as first:
        folders = StreamFolders(str(collected.store), out, first, HOUR, epoch_folder(campaign))
        work = folders.being_made(FIRST)
        for part in range(3):
            store.put(f"{work}/shuffled/reports/part-{part}.blocks", b"sealed")
        with claimed(out, campaign, HOUR) as second:
            assert not [path for path in store.objects if path.startswith(first)]
            store.put(f"{work}/shuffled/reports/part-3.blocks", b"written after it was swept")
            with pytest.raises(HushcountError, match="another stream"):
                put(folders, work, target, RECORD, {})
            assert f"{target}/{RECORD}" not in store.objects
            ours = StreamFolders(str(collected.store), out, second, HOUR, epoch_folder(campaign))
            store.put(f"{ours.being_made(FIRST)}/shuffled/summary.json", b"{}")
            put(ours, ours.being_made(FIRST), target, RECORD, {})
            assert {path for path in store.objects if path.startswith(target)} == {
                f"{target}/{RECORD}",
                f"{target}/shuffled/summary.json",
            }
    assert not [path for path in store.objects if ".partial" in path]


@pytest.mark.long
def test_in_a_store_windows_close_and_wait_as_on_a_disk(collected: Collected, store: type[StubStore]) -> None:
    collected.segment(FIRST, "one-1", 0, 60)
    gone = collected.segment(FIRST.next, "one-2", 100, 60)[1]
    for path in collected.store.rglob("*"):
        if path.is_file() and not str(path).endswith(gone):
            store.put(f"stub://b/s/{path.relative_to(collected.store)}", path.read_bytes())
    there = Collected(collected.chain, "stub://b/s", collected.made)
    says = [f"window {FIRST.next.name} ", f"stub://b/s/{gone}"]
    refused(*there.arguments("stub://b/out", *ONCE), status=1, says=says)
    store.put(f"stub://b/out/.{'0' * 32}.partial/{FIRST.name}/shuffled/summary.json", b"of a killed job")
    store.put(f"stub://b/s/{gone}", (collected.store / gone).read_bytes())
    done(*there.arguments("stub://b/out", *ONCE))
    for window in (FIRST, FIRST.next):
        assert f"stub://b/out/{window.name}/results/summary.json" in store.objects
    assert not [path for path in store.objects if ".partial" in path or "/held/" in path]


@pytest.mark.long
def test_a_job_that_fails_says_what_it_released_before(collected: Collected, tmp_path: Path) -> None:
    out = tmp_path / "out"
    collected.segment(FIRST, "one-1", 0, FLOOR)
    collected.segment(FIRST.next, "one-2", 100, FLOOR)
    (out / FIRST.next.name).mkdir(parents=True)
    done(*collected.arguments(tmp_path / "other", *ONCE))
    shutil.copy(tmp_path / "other" / "stream.json", out)
    (out / FIRST.next.name / "in the way").touch()
    says = (
        "the stream job failed; a window with a window.json is settled and stays so, nothing was released of any other"
    )
    refused(*collected.arguments(out, *ONCE), status=1, says=[says])
    assert counted(out, FIRST) == FLOOR
