"""Streams on engines in this process: windows are settled once, as batches of the same segments would be."""

from __future__ import annotations

import json
import shutil
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
import pytest
from apache_beam.transforms.window import GlobalWindow, IntervalWindow
from apache_beam.utils.timestamp import Timestamp

from hushcount.collection.segment_names import mark
from hushcount.collection.windows import window_at
from hushcount.randomness import SystemWords
from hushcount.wire.tags import tag_keys
from pipelines.streaming.output import too_late
from pipelines.streaming.segments import Judge, NoteTooLate
from pipelines.streaming.watch import Found
from shuffler.separate import key_of, tag_keys_of
from tests.support.jobs import done, files_under, refused, summary
from tests.support.opening import FakeLanes, put_lanes
from tests.support.streams import (
    FIRST,
    FLOOR,
    HOUR,
    Collected,
    collect,
    job_of,
    manifest_of,
    play,
    play_a_day,
    record,
    require_added_up,
    require_equal,
    tally,
)


@pytest.fixture
def collected(sealed: Collected, tmp_path: Path) -> Collected:
    """The same clients, and a store of the test's own."""
    return Collected(sealed.chain, tmp_path / "store", sealed.made)


# With the command, on the embedded runner: one listing, as of a job that was down for years.

ONCE = ("--for", "1s", "--every", "1s", "--json")


@pytest.mark.long
def test_a_closed_window_is_what_the_batch_jobs_make_of_its_segments(collected: Collected, tmp_path: Path) -> None:
    out = tmp_path / "out"
    collected.segment(FIRST, "one-1", 0, 200)
    collected.segment(FIRST, "one-2", 150, 100)
    run = done(*collected.arguments(out, *ONCE))
    assert [one["window"] for one in run.json["windows"]] == [FIRST.name]
    require_equal(out / FIRST.name, collected.batch(collected.store / FIRST.name, tmp_path / "batch"))
    for counts in record(out, FIRST)["streams"].values():
        assert counts == {"received": 300, "accepted": 250, "rejected": {"duplicate": 50}}
    assert sorted(path.name for path in out.iterdir()) == [FIRST.name, "stream.json"]
    assert (out / FIRST.name).stat().st_mode & 0o77 == 0


@pytest.mark.long
def test_a_window_keeps_the_squares_of_named_groups_as_a_batch_does(tmp_path: Path) -> None:
    collected, out, groups = collect(tmp_path, "ais"), tmp_path / "out", tmp_path / "groups.toml"
    groups.write_text('all = {glob = "*"}\n')
    collected.segment(FIRST, "one-1", 0, 200)
    done(*collected.arguments(out, *ONCE, "--groups", groups))
    (shuffled,) = (out / FIRST.name / "shuffled").iterdir()
    chain = collected.chain
    paths = ("--input", shuffled, "--keys", chain.keys, "--out", tmp_path / "again", "--groups", groups)
    done("analyze", "--campaign", chain.campaign_path, *paths)
    again, window = tally(tmp_path / "again"), tally(out / FIRST.name / "results")
    assert again.keys() == window.keys()
    assert window["squares"].any()
    assert all((again[name] == window[name]).all() for name in window)


@pytest.mark.long
def test_a_window_is_the_same_by_either_engine_that_opens(
    collected: Collected, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collected.segment(FIRST, "one-1", 0, 200)
    results, opening = [], []
    for enough in (201, 100):
        put_lanes(monkeypatch, lambda: FakeLanes(faulty=True), enough)
        out = tmp_path / f"out {enough}"
        done(*collected.arguments(out, *ONCE))
        said = summary(out / FIRST.name / "results")
        opening.append(said.pop("opening"))
        results.append((tally(out / FIRST.name / "results")["counts"].tolist(), said["rejected"], said["accepted"]))
    assert results[0] == results[1]
    assert opening[0] == {"lanes": 0, "libsodium": 200, "rescued": 0}
    # Its blocks come one by one: libsodium opens those that come before it is known to be enough.
    assert opening[1]["lanes"] + opening[1]["libsodium"] == 200
    assert 0 < opening[1]["rescued"] < opening[1]["lanes"] < 200


@pytest.mark.long
def test_a_restarted_stream_leaves_settled_windows_and_settles_the_others(collected: Collected, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = collected.segment(FIRST, "one-1", 0, 100)
    few = collected.segment(FIRST.next, "one-2", 100, FLOOR - 1)
    now = window_at(datetime.now(timezone.utc), HOUR.length)
    collected.segment(now, "still-open", 0, 100)
    done(*collected.arguments(out, *ONCE))
    assert record(out, FIRST)["released"] == ["discovery", "reports"]
    not_yet = record(out, FIRST.next)
    assert not_yet["released"] == []
    assert not_yet["streams"]["reports"] == {"received": FLOOR - 1, "accepted": FLOOR - 1, "rejected": {}}
    assert [path.name for path in (out / FIRST.next.name).iterdir()] == ["window.json"]
    assert not (out / now.name).exists()
    before = files_under(out)
    late = [*collected.segment(FIRST, "two-1", 150, 80), *collected.segment(FIRST.next, "two-2", 230, 70)]
    another = FIRST.next.next
    collected.segment(another, "one-3", 300, 60)
    torn = f"{another.name}/reports/torn.blocks"
    (collected.store / torn).write_bytes(b"HUSHBLK1")
    run = done(*collected.arguments(out, *ONCE))
    assert run.json["too_late"] == 2 * (80 + 70)
    after = files_under(out)
    assert {name: after[name] for name in before} == before
    note = json.loads((out / "too_late" / f"{torn}.json").read_text())
    assert note == {"segment": torn, "too_late": None}
    require_added_up(out, FIRST, [*first, *late[:2]], collected)
    require_added_up(out, FIRST.next, [*few, *late[2:]], collected)


@pytest.mark.long
def test_a_stream_below_its_minimum_holds_up_no_other_and_is_said(collected: Collected, tmp_path: Path) -> None:
    for window, few in ((FIRST, "discovery"), (FIRST.next, "reports")):
        many = collected.segment(window, "one-1", 0, 100, closed=False)
        short = collected.segment(window, "one-2", 100, 10, closed=False)
        collected.close(window, "one-1", [name for name in many if few not in name])
        collected.close(window, "one-2", [name for name in short if few in name])
        for name in (*(name for name in many if few in name), *(name for name in short if few not in name)):
            (collected.store / name).unlink()
    run = done(*collected.arguments(tmp_path / "out", *ONCE[:-1]))
    assert "20 reports are in no result" in run.err
    for window, enough in ((FIRST, "reports"), (FIRST.next, "discovery")):
        assert record(tmp_path / "out", window)["released"] == [enough]
        settled = tmp_path / "out" / window.name
        (shuffled,) = (settled / "shuffled").iterdir()
        assert list(summary(shuffled)["streams"]) == [enough]
        assert [path.name for path in shuffled.iterdir() if path.is_dir()] == [enough]
        assert (settled / "results").exists() == (enough == "reports")


@pytest.mark.long
def test_a_segment_that_a_dead_job_found_too_late_and_the_next_in_time_is_counted_once(
    collected: Collected, tmp_path: Path
) -> None:
    """The job saw it after the close and died before it settled the window: the next one has it in time."""
    out = tmp_path / "out"
    collected.segment(FIRST, "one-1", 0, 100)
    found_late = collected.segment(FIRST, "two-1", 100, 50)
    job, _ = job_of(collected, out)
    manifest = f"{FIRST.name}/{manifest_of('two-1')}"
    (judged,) = Judge(job).process(Found(FIRST.name, (manifest,), late=True))
    assert (judged.tag, judged.value) == ("too_late", manifest)
    NoteTooLate(job).process(manifest)
    assert too_late(str(out), []) == 2 * 50
    shutil.rmtree(job.folders.work)
    done(*collected.arguments(tmp_path / "other", *ONCE))
    shutil.copy(tmp_path / "other" / "stream.json", out)
    run = done(*collected.arguments(out, *ONCE))
    assert set(found_late) < set(record(out, FIRST)["segments"])
    assert [counts["accepted"] for counts in record(out, FIRST)["streams"].values()] == [150, 150]
    assert run.json["too_late"] == 0


@pytest.mark.long
def test_results_that_were_not_written_are_made_of_what_was_released(collected: Collected, tmp_path: Path) -> None:
    out = tmp_path / "out"
    collected.segment(FIRST, "one-1", 0, 100)
    done(*collected.arguments(out, *ONCE))
    kept = files_under(out / FIRST.name / "shuffled")
    results_before = tally(out / FIRST.name / "results")
    shutil.rmtree(out / FIRST.name / "results")
    done(*collected.arguments(out, *ONCE))
    assert files_under(out / FIRST.name / "shuffled") == kept
    results_after = tally(out / FIRST.name / "results")
    assert all((results_before[name] == results_after[name]).all() for name in results_before)


@pytest.mark.long
def test_what_cannot_be_streamed_is_refused_in_one_sentence(collected: Collected, tmp_path: Path) -> None:
    out = tmp_path / "out"
    collected.store.mkdir()
    refused(*collected.arguments(out), says=["FnApiRunner", "--for"])
    refused(*collected.arguments(out, "--every", "soon", *ONCE[:2]), says=["--every", "'soon'"])
    collected.segment(FIRST, "one-1", 0, 10)
    wrong = collected.store / "20210301T121500Z"
    (collected.store / FIRST.name).rename(wrong)
    refused(*collected.arguments(out, *ONCE), says=["20210301T121500Z", "--window"])
    wrong.rename(collected.store / FIRST.name)
    other = collected.store.with_name(f"000001-{'0' * 16}")
    collected.store.rename(other)
    moved = Collected(collected.chain, other, collected.made)
    refused(*moved.arguments(out, *ONCE), says=["0000000000000000"])
    other.rename(collected.store)
    assert not out.exists()
    done(*collected.arguments(out, *ONCE))
    refused(*collected.arguments(out, *ONCE, "--window", "1d"), says=["window is '20210301T120000Z'"])
    (out / "stream.json").write_text(json.dumps({"hop": "stream", "campaign": "another"}))
    refused(*collected.arguments(out, *ONCE), says=["campaign another"])
    (out / "stream.json").unlink()
    refused(*collected.arguments(out, *ONCE), says=["no result"])


def test_a_directory_that_is_none_of_windows_is_refused(collected: Collected, tmp_path: Path) -> None:
    """One that does not exist, what encode writes, and one that lies above or below the right one."""
    out, says = tmp_path / "out", "STORE/segments/CAMPAIGN/EPOCH-FINGERPRINT"
    refused(*collected.arguments(out, *ONCE), says=[f"segments {collected.store} ", says])
    collected.segment(FIRST, "one-1", 0, 60)
    for wrong, file in (
        (tmp_path, collected.store / FIRST.name / "discovery" / "one-1.blocks"),
        (collected.store / FIRST.name, collected.store / FIRST.name / "reports" / "one-1.blocks"),
        (collected.store / FIRST.name / "reports", collected.store / FIRST.name / "reports" / "one-1.blocks"),
    ):
        there = Collected(collected.chain, wrong, collected.made)
        refused(*there.arguments(out, *ONCE), says=[f"segments {wrong} ", str(file), says])
    shutil.copytree(collected.store / FIRST.name / "reports", collected.store / "reports")
    refused(*collected.arguments(out, *ONCE), says=[str(collected.store / "reports" / "one-1.blocks")])
    file = collected.store / "reports" / "one-1.blocks"
    there = Collected(collected.chain, file, collected.made)
    refused(*there.arguments(out, *ONCE), says=[f"segments {file} ", says])
    assert not out.exists()


def test_every_window_has_keys_of_its_own_and_a_batch_those_of_the_run() -> None:
    """What a release shows of its keys, the shard of each ciphertext, is of no use to whoever sends in the next."""
    keys = tag_keys(100, SystemWords())
    windows = [IntervalWindow(Timestamp(start), Timestamp(start + 3600)) for start in range(0, 360_000, 3600)]
    derived = [tag_keys_of(keys, window) for window in windows]
    assert len({one.tobytes() for one in [keys, *derived]}) == len(windows) + 1
    assert all((tag_keys_of(keys, window) == one).all() for window, one in zip(windows, derived, strict=True))
    assert (tag_keys_of(keys, GlobalWindow()) == keys).all()
    assert len(key_of(b"k" * 32, windows[0])) == 32


# Scripted, with a clock of the test's own: an engine that streams.


IN_PROCESS = ("--runner=BundleBasedDirectRunner",)


@pytest.mark.long
def test_the_order_in_which_segments_come_makes_no_difference(collected: Collected, tmp_path: Path) -> None:
    """Nor how they are cut, nor in which of the first hours and last minutes they are found."""
    tallies = []
    for name, sizes, times in (
        ("a", (90, 10, 100), (0, 10, 4199)),
        ("b", (200,), (4199,)),
        ("c", (20, 180), (3000, 1)),
    ):
        place = Collected(collected.chain, tmp_path / name, collected.made)
        begins = np.cumsum((0, *sizes[:-1])).tolist()
        key = mark("client-token", b"of the window")
        names = [f"one-{index:06d}-0123abcd-{key}" for index in range(len(sizes))]
        found = [place.segment(FIRST, *part) for part in zip(names, begins, sizes, strict=True)]
        events = [event for time, names in sorted(zip(times, found, strict=True)) for event in (time, names)]
        play(*job_of(place, tmp_path / f"out-{name}"), [*events, 4200], *IN_PROCESS)
        tallies.append(tally(tmp_path / f"out-{name}" / FIRST.name / "results"))
    for other in tallies[1:]:
        assert all((tallies[0][name] == other[name]).all() for name in tallies[0])


def test_each_window_of_a_stream_is_released_once_and_what_comes_late_is_counted(
    collected: Collected, tmp_path: Path
) -> None:
    play_a_day(collected, tmp_path, *IN_PROCESS)
