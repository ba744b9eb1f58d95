"""The one rule for windows: a table of cases, and what holds whatever comes and whenever a run looks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.collection.manifests import Manifest, SegmentPart
from hushcount.collection.tilings import Tiling
from hushcount.collection.windows import Window, window_at
from pipelines.log.facts import Times
from pipelines.log.segments import Segment
from pipelines.windows import closing as closing_module
from pipelines.windows.calendar import Calendar
from pipelines.windows.closing import Closing, Listed, Rule, closing_of, next_window
from tests.support.decisions import HOUR, MINUTE, START, hour

FLOOR = 50
SECOND = timedelta(seconds=1)
FREQUENCY, DISCOVERY = (
    Campaign.read(Path(__file__).parents[2] / "golden" / "kept" / "campaigns" / name)
    for name in ("ais.json", "found.json")
)
OF_BOTH = FREQUENCY.model_copy(
    update={
        "discovery": DISCOVERY.discovery,
        "shuffle": FREQUENCY.shuffle.model_copy(update={"minimum_batch": FLOOR}),
    }
)
FILE, OTHER = (1, "a" * 16), (2, "b" * 16)


def calendar(length: timedelta, grace: timedelta = 90 * MINUTE) -> Calendar:
    return Calendar((Times(None, Tiling(length), grace),))


RULE = Rule(calendar(HOUR), 10 * MINUTE, frozenset({"c"}), {FILE: OF_BOTH})
DAY = Window(START, START + 24 * HOUR)
LATER = START + 365 * DAY.length


def listed(
    window: Window,
    records: Mapping[Stream, Iterable[int]] | None = None,
    collector: str = "c",
    *,
    after: timedelta = MINUTE,
    epoch: int = 1,
) -> Listed:
    """Return a manifest that the store had so long after the end of its window, with segments of so many records."""
    fingerprint = ("a" if epoch == 1 else "b") * 64
    manifest = Manifest(
        collector=collector, campaign="words", epoch=epoch, fingerprint=fingerprint, window=window.name,
        seconds=int(window.length.total_seconds()), authentication="client-token",
        segments={
            stream: tuple(
                SegmentPart(name=f"{collector}-{number:06d}.blocks", records=size, bytes=1, digest="0" * 64)
                for number, size in enumerate(sizes)
            )
            for stream, sizes in (records or {}).items()
        },
    )  # fmt: skip
    folder = f"words/{epoch:06d}-{fingerprint[:16]}/{window.name}"
    return Listed(f"{folder}/{collector}.manifest.json", window.end + after, manifest)


def reports(window: Window, *sizes: int, collector: str = "c", after: timedelta = MINUTE) -> Listed:
    return listed(window, {"reports": sizes}, collector, after=after)


def waiting(window: Window, size: int, collector: str = "w") -> Segment:
    """Return a segment that a closed window took in, or that a batch gave back."""
    return reports(window, size, collector=collector).segments[0]


def named(closing: Closing) -> list[tuple[int, str, list[str]]]:
    """Return epoch, stream and collectors of each batch."""
    return [
        (epoch, stream, [one.path.rpartition("/")[2].partition("-")[0] for one in segments])
        for (epoch, _), streams in closing.batches.items()
        for stream, segments in streams.items()
    ]


def dropped(closing: Closing) -> dict[str, str]:
    return {one.path.rpartition("/")[2].partition("-")[0]: reason for one, reason in closing.dropped.items()}


HOURS = [hour(number) for number in range(30)]
# What is closed, what waits, what is listed, the rule; then the window that closes, and not a second before when.
DUE: dict[str, tuple[datetime | None, list[Segment], list[Listed], Rule, Window, datetime]] = {
    "all collectors reported": (None, [], [reports(HOURS[0], 60)], RULE, HOURS[0], HOURS[0].end),
    "one of two reported": (
        None, [], [reports(HOURS[0], 60)], replace(RULE, collectors=frozenset("cd")), HOURS[0],
        HOURS[0].end + 10 * MINUTE,
    ),
    "one of two reported, the other's is late": (
        HOURS[0].end, [], [reports(HOURS[1], 60), reports(HOURS[0], 60, collector="d")],
        replace(RULE, collectors=frozenset("cd")), HOURS[1], HOURS[1].end,
    ),
    "both reported": (
        None, [], [reports(HOURS[0], 60), listed(HOURS[0], collector="d")],
        replace(RULE, collectors=frozenset("cd")), HOURS[0], HOURS[0].end,
    ),
    "nobody is known": (
        None, [], [reports(HOURS[0], 60)], replace(RULE, collectors=frozenset()), HOURS[0], HOURS[0].end + 10 * MINUTE,
    ),
    "a stranger reported": (
        None, [], [reports(HOURS[0], 60, collector="x")], RULE, HOURS[0], HOURS[0].end + 10 * MINUTE,
    ),
    "the older of two windows is first": (
        None, [], [reports(HOURS[5], 60), reports(HOURS[2], 60)], RULE, HOURS[2], HOURS[2].end,
    ),
    "windows in which nothing came are passed over": (
        HOURS[0].end, [], [reports(HOURS[9], 60)], RULE, HOURS[9], HOURS[9].end,
    ),
    "a late manifest goes into the next window": (
        HOURS[0].end, [], [reports(HOURS[0], 60)], RULE, HOURS[1], HOURS[1].end,
    ),
    "after an idle week a late manifest goes into the window after the last": (
        HOURS[0].end, [], [reports(HOURS[0], 60), reports(HOURS[29], 60)], RULE, HOURS[1], HOURS[1].end,
    ),
    "what waits closes the window in which its grace ends": (
        HOURS[0].end, [waiting(HOURS[0], 9)], [], RULE, HOURS[2], HOURS[2].end + 10 * MINUTE,
    ),
    "grace that ends with a window ends in it": (
        HOURS[0].end, [waiting(HOURS[0], 9)], [], replace(RULE, calendar=calendar(HOUR, HOUR)), HOURS[1],
        HOURS[1].end + 10 * MINUTE,
    ),
    "a new window before that takes what waits": (
        HOURS[0].end, [waiting(HOURS[0], 9)], [reports(HOURS[1], 60)], RULE, HOURS[1], HOURS[1].end,
    ),
    "what was given back when its grace had ended is in the next window": (
        HOURS[9].end, [waiting(HOURS[0], 60)], [], RULE, HOURS[10], HOURS[10].end + 10 * MINUTE,
    ),
    "an hour beside a day of a collector with older settings": (
        None, [], [reports(DAY, 60, collector="d"), reports(HOURS[0], 60)], RULE, HOURS[0], HOURS[0].end,
    ),
    "the day is in the hour that ends with it": (
        HOURS[22].end, [], [reports(DAY, 60, collector="d")], RULE, HOURS[23], HOURS[23].end + 10 * MINUTE,
    ),
    "an hour of a collector with older settings is in the day": (
        None, [], [reports(HOURS[4], 60)], replace(RULE, calendar=calendar(24 * HOUR)), DAY, DAY.end,
    ),
    "after days an hour begins where the last day ended": (
        DAY.end, [], [reports(HOURS[24], 60)], RULE, HOURS[24], HOURS[24].end,
    ),
    "after hours a day begins where the last hour ended": (
        HOURS[4].end, [], [reports(HOURS[5], 60)], replace(RULE, calendar=calendar(24 * HOUR)),
        Window(HOURS[4].end, DAY.end), DAY.end,
    ),
    "after hours that no day is a multiple of": (
        HOURS[4].end, [], [reports(HOURS[5], 60)], replace(RULE, calendar=calendar(7 * HOUR)),
        Window(HOURS[4].end, window_at(HOURS[4].end, 7 * HOUR).end), window_at(HOURS[4].end, 7 * HOUR).end,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("closed", "waits", "there", "rule", "window", "due"), DUE.values(), ids=DUE)
def test_which_window_closes_next_and_when(
    closed: datetime | None, waits: list[Segment], there: list[Listed], rule: Rule, window: Window, due: datetime
) -> None:
    assert next_window(closed, waits, there, rule, due - SECOND) is None
    assert next_window(closed, waits, there, rule, due) == window


def test_where_nothing_is_no_window_closes() -> None:
    assert next_window(None, [], [], RULE, START + 9999 * HOUR) is None
    assert next_window(HOURS[0].end, [], [], RULE, START + 9999 * HOUR) is None


TAKEN: dict[str, tuple[Window, list[Segment], list[Listed], list[tuple[int, str, list[str]]], dict[str, str]]] = {
    "enough": (HOURS[0], [], [reports(HOURS[0], FLOOR)], [(1, "reports", ["c"])], {}),
    "too few": (HOURS[0], [], [reports(HOURS[0], FLOOR - 1)], [], {}),
    "enough of several": (
        HOURS[0], [], [reports(HOURS[0], 20), reports(HOURS[0], 30, collector="d")], [(1, "reports", ["d", "c"])], {},
    ),
    "what waits first": (
        HOURS[1], [waiting(HOURS[0], 20)], [reports(HOURS[1], 90)], [(1, "reports", ["w", "c"])], {},
    ),
    "each stream for itself": (
        HOURS[0], [], [listed(HOURS[0], {"reports": [60], "discovery": [7]})], [(1, "reports", ["c"])], {},
    ),
    "both streams": (
        HOURS[0], [], [listed(HOURS[0], {"reports": [60], "discovery": [70]})],
        [(1, "discovery", ["c"]), (1, "reports", ["c"])], {},
    ),
    "a campaign file that is not here": (HOURS[0], [], [listed(HOURS[0], {"reports": [60]}, epoch=2)], [], {}),
    "a window that is not over is not taken in": (
        HOURS[0], [], [reports(HOURS[0], 60), reports(HOURS[1], 60, collector="d")], [(1, "reports", ["c"])], {},
    ),
    "nor is a day": (
        HOURS[0], [], [reports(HOURS[0], 60), reports(DAY, 60, collector="d")], [(1, "reports", ["c"])], {},
    ),
    "late, and within the grace": (
        HOURS[1], [], [reports(HOURS[0], 60, after=90 * MINUTE)], [(1, "reports", ["c"])], {},
    ),
    "late, and a second behind the grace": (
        HOURS[1], [], [reports(HOURS[0], 60, after=90 * MINUTE + SECOND)], [], {"c": "grace of 2026-11-21T00"},
    ),
    "late by a manifest, not by the look": (
        HOURS[20], [], [reports(HOURS[0], 60, after=90 * MINUTE)], [(1, "reports", ["c"])], {},
    ),
    "too few, and grace goes on": (HOURS[1], [waiting(HOURS[0], 9)], [reports(HOURS[1], 9)], [], {}),
    "too few, and grace has ended": (
        HOURS[2], [waiting(HOURS[0], 9)], [reports(HOURS[1], 9)], [], {"w": "grace ended before 2026-11-21T02:00Z did"},
    ),
    "given back, and enough now": (
        HOURS[9], [waiting(HOURS[0], 60)], [], [(1, "reports", ["w"])], {},
    ),
    "given back, and too few again": (
        HOURS[9], [waiting(HOURS[0], 9)], [], [], {"w": "grace ended before 2026-11-21T09:00Z did"},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("window", "waits", "there", "batches", "over"), TAKEN.values(), ids=TAKEN)
def test_what_a_window_takes_and_drops(
    window: Window, waits: list[Segment], there: list[Listed], batches: list[tuple[int, str, list[str]]],
    over: dict[str, str],
) -> None:  # fmt: skip
    closing = closing_of(window, window.start, waits, there, RULE, {}, LATER)
    assert named(closing) == batches
    assert dropped(closing).keys() == over.keys()
    assert all(said in dropped(closing)[name] for name, said in over.items())


def test_grace_that_ends_with_a_window_ends_in_it() -> None:
    few = waiting(HOURS[0], 9)
    for grace, over in ((HOUR, ["w"]), (HOUR + SECOND, [])):
        rule = replace(RULE, calendar=calendar(HOUR, grace))
        closing = closing_of(HOURS[1], HOURS[0].end, [few], [], rule, {}, LATER)
        assert [*dropped(closing)] == over


def test_a_manifest_is_late_by_the_earlier_of_the_clocks_of_store_and_run() -> None:
    """The store's may be days ahead. A manifest may also come while the run looks: its stamp is a little later."""
    late = reports(HOURS[0], FLOOR, after=5 * HOUR)
    over = RULE.calendar.grace_ends(HOURS[0])
    for now, names in ((over, ["c"]), (over + SECOND, []), (late.written - SECOND, []), (late.written, [])):
        closing = closing_of(HOURS[0], None, [], [late], RULE, {}, now)
        assert [name for _, _, streams in named(closing) for name in streams] == names
        assert bool(dropped(closing)) == (names == [])


def test_each_campaign_file_has_a_batch_of_its_own() -> None:
    rule = replace(RULE, files={FILE: OF_BOTH, OTHER: OF_BOTH})
    there = [reports(HOURS[0], 60), listed(HOURS[0], {"reports": [70]}, epoch=2), reports(HOURS[0], 9, collector="d")]
    closing = closing_of(HOURS[0], None, [], there, rule, {}, LATER)
    assert named(closing) == [(1, "reports", ["c", "d"]), (2, "reports", ["c"])]


def test_a_faulty_segment_waits_and_is_dropped_by_name_at_the_end_of_its_grace() -> None:
    there = [reports(HOURS[0], 60), reports(HOURS[0], 70, collector="d")]
    bad = there[1].segments[0]
    faults = {bad.path: "fails its digest"}
    first = closing_of(HOURS[0], None, [], there, RULE, faults, LATER)
    assert (named(first), dropped(first), first.manifests) == ([(1, "reports", ["c"])], {}, tuple(there))
    last = closing_of(HOURS[2], HOURS[1].end, [bad], [], RULE, faults, LATER)
    assert (named(last), dropped(last)) == ([], {"d": "its file fails its digest"})
    mended = closing_of(HOURS[2], HOURS[1].end, [bad], [], RULE, {}, LATER)
    assert (named(mended), dropped(mended)) == ([(1, "reports", ["d"])], {})
    # A batch that is too small without it does not come.
    few = [reports(HOURS[0], 49), reports(HOURS[0], 70, collector="d")]
    assert named(closing_of(HOURS[0], None, [], few, RULE, faults, LATER)) == []


def test_a_batch_takes_as_many_segments_as_its_file_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest; of one window the largest, so that those which stay are few reports."""
    monkeypatch.setattr(closing_module, "MOST_SEGMENTS", 3)
    old, new = waiting(HOURS[0], 5), reports(HOURS[1], 30, 7, 90, 8)
    closing = closing_of(HOURS[1], HOURS[0].end, [old], [new], RULE, {}, LATER)
    ((_, streams),) = closing.batches.items()
    assert [one.records for one in streams["reports"]] == [5, 90, 30]
    # All together would be enough; those that it lists are not.
    assert named(closing_of(HOURS[1], HOURS[0].end, [], [reports(HOURS[1], *[10] * 9)], RULE, {}, LATER)) == []


@dataclass
class Kept:
    """What a log of closings would hold.

    Attributes:
        offered: how many windows each segment was offered to.
        state: batched or dropped, of each segment that waits no more.
    """

    closed: datetime | None = None
    waits: dict[str, Segment] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    windows: list[Window] = field(default_factory=list)
    offered: dict[str, int] = field(default_factory=dict)
    state: dict[str, str] = field(default_factory=dict)

    def look(self, listed: list[Listed], rule: Rule, now: datetime, random: Random) -> None:
        """Close all windows that are due by then; some of the batches turn out too small, and go back."""
        while True:
            new = [one for one in listed if one.written <= now and one.path not in self.taken]
            window = next_window(self.closed, self.waits.values(), new, rule, now)
            if window is None:
                return
            closing = closing_of(window, self.closed, [*self.waits.values()], new, rule, {}, now)
            self._close(closing, rule, now, random)

    def _close(self, closing: Closing, rule: Rule, now: datetime, random: Random) -> None:
        window = closing.window
        assert window.end <= now
        assert self.closed is None or window.start >= self.closed
        assert window.name not in {one.name for one in self.windows}
        late = {one.path for each in closing.manifests if each.written > rule.calendar.grace_ends(each.window)
                for one in each.segments}  # fmt: skip
        for one in closing.manifests:
            assert one.window.end <= window.end
            self.taken.add(one.path)
            self.waits |= {segment.path: segment for segment in one.segments}
        for path in self.waits.keys() - late:
            self.offered[path] = self.offered.get(path, 0) + 1
        for segment, reason in closing.dropped.items():
            assert segment.path in late or rule.calendar.grace_ends(segment.window) <= window.end, reason
            assert segment.path in late or self.offered[segment.path]
            self.state[segment.path] = "dropped"
            del self.waits[segment.path]
        for streams in closing.batches.values():
            for segments in streams.values():
                assert sum(one.records for one in segments) >= FLOOR
                for one in segments:
                    del self.waits[one.path]
                if random.random() < 0.2:
                    self.waits |= {one.path: one for one in segments}
                else:
                    self.state |= {one.path: "batched" for one in segments}
        # What waits on can still be taken: the next that closes is offered it, if its grace ended or not.
        self.closed = window.end
        self.windows.append(window)


LENGTHS = [HOUR, 2 * HOUR, 7 * HOUR, 24 * HOUR, 25 * MINUTE]


@settings(max_examples=150)
@given(seed=st.integers(0, 1 << 40))
def test_no_segment_is_lost_taken_twice_or_dropped_before_a_window_was_offered_it(seed: int) -> None:
    """Collectors with lengths of their own, late manifests, looks at any time; lengths and graces that change."""
    random = Random(seed)
    graces = [HOUR, 90 * MINUTE, 26 * HOUR]
    collectors = frozenset(random.choice(["", "c", "cd"]))
    rule = replace(RULE, calendar=calendar(HOUR, random.choice(graces)), collectors=collectors)
    there: dict[str, Listed] = {}
    for _ in range(random.randrange(1, 30)):
        window = window_at(START + random.randrange(72 * 60) * MINUTE, random.choice(LENGTHS))
        after = random.choice([MINUTE, random.randrange(1, 3 * 24 * 60) * MINUTE])
        sizes = [random.choice([5, 20, 60]) for _ in range(random.randrange(3))]
        one = listed(window, {random.choice(OF_BOTH.streams): sizes}, random.choice("cde"), after=after)
        there[one.path] = one
    kept, now = Kept(), START
    for _ in range(random.randrange(1, 30)):
        now += random.randrange(1, 12 * 60) * MINUTE
        if random.random() < 0.2:
            begins = rule.calendar.window_at(now).end
            before = [one for one in rule.calendar.times if one.begins is None or one.begins < begins]
            new = Times(begins, Tiling(random.choice(LENGTHS)), random.choice(graces))
            rule = replace(rule, calendar=Calendar((*before, new)))
        kept.look([*there.values()], rule, now, random)
    end = START + 365 * 24 * HOUR
    for look in range(20):
        kept.look([*there.values()], rule, end + look * 25 * HOUR, random)
    segments = {one.path: each for each in there.values() for one in each.segments}
    assert kept.waits == {}
    assert kept.taken == there.keys()
    assert kept.state.keys() == segments.keys()
    for path, manifest in segments.items():
        in_time = manifest.written <= rule.calendar.grace_ends(manifest.window)
        assert bool(kept.offered.get(path)) == in_time
        assert in_time or kept.state[path] == "dropped"
