"""Folding: what each kind of decision changes, and that a fold at any entry is as good as the log before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from hushcount.campaigns.campaign import Stream
from hushcount.errors import FormatError
from pipelines.handover.hops import HopName
from pipelines.log import entries as log
from pipelines.log.entries import Decision
from pipelines.log.entry_files import Entry, read_entry, write_entry
from pipelines.log.facts import Head
from pipelines.log.fold import Fold, merged
from pipelines.log.folding import Folding, published
from pipelines.outputs.summary import digest_of_json
from tests.support.decisions import (
    CAMPAIGN,
    MINUTE,
    START,
    batch_of,
    closed,
    entries,
    finished,
    folded,
    hour,
    path_of,
    taken,
    told,
)

BOTH: tuple[Stream, ...] = ("reports", "discovery")
R, D = (path_of(0, stream=stream) for stream in BOTH)
OPENED = log.Opened(party="shuffler", campaign=CAMPAIGN)
TAKEN = closed(0, taken(0, {"reports": 60, "discovery": 70}))
MADE = closed(0, taken(0, {"reports": 60, "discovery": 70}), batch={"reports": (R,), "discovery": (D,)})
SHUFFLED = finished(0, "shuffle", reports=60, discovery=70)
BATCH, FIRST = batch_of(0), hour(0).name
TOLD = told("a")


def seen(fold: Fold) -> dict[str, Any]:
    """Return what the cases below speak of: paths and names instead of values."""
    return {
        "closed": fold.closed,
        "waiting": sorted(fold.waiting),
        "aside": dict(fold.aside),
        "dropped": {path: one.reason for path, one in fold.dropped.items()},
        "standing": [one.name for one in fold.made_batches],
        "collected": {name: dict(one.collected) for name, one in fold.batches.items()},
        "done": {name: [*hops] for name, hops in fold.done.items()},
        "received": fold.received,
        "deleted": dict(fold.deleted),
        "told": {window: dict(up) for window, up in fold.told.items()},
    }


NOTHING = seen(Fold(CAMPAIGN))
CASES: dict[str, tuple[list[Decision], dict[str, Any]]] = {
    "a window takes a manifest in": ([TAKEN], {"waiting": sorted((D, R)), "closed": hour(0).end}),
    "an empty window is closed": ([closed(3)], {"closed": hour(3).end}),
    "a batch takes segments": (
        [MADE], {"standing": [BATCH], "collected": {BATCH: {"reports": 60, "discovery": 70}}, "closed": hour(0).end},
    ),
    "a batch of one stream": (
        [closed(0, taken(0, {"reports": 60, "discovery": 7}), batch={"reports": (R,)})],
        {"standing": [BATCH], "collected": {BATCH: {"reports": 60}}, "waiting": [D], "closed": hour(0).end},
    ),
    "a segment is put aside, and comes back": (
        [closed(0, taken(0), aside={R: "is missing"}), closed(1, batch={"reports": (R,)})],
        {"standing": [batch_of(1)], "collected": {batch_of(1): {"reports": 60}}, "closed": hour(1).end},
    ),
    "what is put aside stays so": (
        [closed(0, taken(0), aside={R: "is missing"}), closed(1, aside={R: "fails its digest"})],
        {"waiting": [R], "aside": {R: "fails its digest"}, "closed": hour(1).end},
    ),
    "a segment is dropped": (
        [closed(0, taken(0), aside={R: "is missing"}), closed(3, dropped={R: "too late"})],
        {"dropped": {R: "too late"}, "closed": hour(3).end},
    ),
    "a batch is shuffled": (
        [MADE, SHUFFLED],
        {"standing": [BATCH], "collected": {BATCH: {"reports": 60, "discovery": 70}}, "done": {BATCH: ["shuffle"]},
         "closed": hour(0).end},
    ),
    "a stream that was too small goes back": (
        [MADE, finished(0, "shuffle", reports=60)],
        {"standing": [BATCH], "collected": {BATCH: {"reports": 60}}, "done": {BATCH: ["shuffle"]}, "waiting": [D],
         "closed": hour(0).end},
    ),
    "a batch goes back": (
        [MADE, log.GivenBack(batch=BATCH)],
        {"collected": {BATCH: {}}, "waiting": sorted((D, R)), "closed": hour(0).end},
    ),
    "a batch goes back with one segment aside": (
        [MADE, log.GivenBack(batch=BATCH, aside={R: "is missing"})],
        {"collected": {BATCH: {}}, "waiting": sorted((D, R)), "aside": {R: "is missing"}, "closed": hour(0).end},
    ),
    "what went back is in another batch": (
        [MADE, log.GivenBack(batch=BATCH), closed(1, batch={"reports": (R,), "discovery": (D,)})],
        {"standing": [batch_of(1)], "closed": hour(1).end,
         "collected": {BATCH: {}, batch_of(1): {"reports": 60, "discovery": 70}}},
    ),
    "a hop has nothing to read": (
        [finished(0, "discover", folder=None)], {"done": {BATCH: ["discover"]}},
    ),
    "receipts came": (
        [MADE, SHUFFLED, log.Received(party="aux-server", hop="shuffle", batches=(BATCH,)),
         *[log.Received(party="analyzer", hop="shuffle", batches=(BATCH, BATCH))] * 2],
        {"standing": [BATCH], "collected": {BATCH: {"reports": 60, "discovery": 70}}, "done": {BATCH: ["shuffle"]},
         "closed": hour(0).end, "received": (f"aux-server shuffle {BATCH}", f"analyzer shuffle {BATCH}")},
    ),
    "outputs are deleted": (
        [log.Deleting(folder="shuffled", batches=(BATCH, batch_of(1))),
         log.Deleted(folder="shuffled", batches=(BATCH,))],
        {"deleted": {f"shuffled {BATCH}": True, f"shuffled {batch_of(1)}": False}},
    ),
    "what is deleted is not being deleted again": (
        [log.Deleted(folder="shuffled", batches=(BATCH,)), log.Deleting(folder="shuffled", batches=(BATCH,))],
        {"deleted": {f"shuffled {BATCH}": True}},
    ),
    "the clock is confirmed": ([log.Confirmed()], {}),
    "an alert is told": ([TOLD], {"told": {FIRST: {"a": True}}}),
    "more of a window is told, and what is no more so": (
        [TOLD, told("b"), log.Told(window=FIRST, up={"a": False})], {"told": {FIRST: {"a": False, "b": True}}},
    ),
    "what was told of many windows ago is forgotten": (
        [log.Told(window=hour(number).name, up={"a": True}) for number in (3, 0, 2, 1, *range(4, 10))],
        {"told": {hour(number).name: {"a": True} for number in range(2, 10)}},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("decisions", "changes"), CASES.values(), ids=CASES)
def test_what_a_decision_changes(decisions: list[Decision], changes: Mapping[str, Any]) -> None:
    assert seen(folded(OPENED, *decisions)) == NOTHING | changes


def test_what_a_window_collected_is_known_when_its_files_are_gone() -> None:
    two = taken(0, {"reports": 5}, "two", seconds=7200).model_copy(update={"damaged": 3, "authentication": "none"})
    fold = folded(closed(0, taken(0), two))
    (window,) = fold.windows.values()
    assert (window.window.start, window.window.end, window.closed_at) == (hour(0).start, hour(1).end, START + MINUTE)
    assert (window.reports, window.refused, window.bytes) == ({"reports": 65}, {"wrong_length": 4}, 200)
    assert window.collectors == {"one": "client-token", "two": "none"}
    assert window.damaged == {two.path: 3}
    assert fold.files == {taken(0).path, two.path, R, path_of(0, "two")}
    assert fold.counts_by_window == {(hour(0).name, "reports"): {"waiting": 65}}
    (folder,) = {path.rpartition("/")[0] for path in (taken(0).path, two.path)}
    emptied = folded(closed(0, taken(0), two), log.Deleted(folder="segments", windows=(folder,)))
    # A manifest that comes back, as from a backup, is known.
    assert emptied.files == {taken(0).path, two.path}
    assert replace(emptied.windows[hour(0).name], files=window.files) == window


def test_the_numbers_of_every_state_are_those_that_were_collected() -> None:
    fold = folded(
        closed(0, taken(0, {"reports": 60, "discovery": 9}), taken(0, {"reports": 5}, "two"), batch={"reports": (R,)}),
        closed(1, taken(1, {"reports": 7}), aside={path_of(0, "two"): "is missing"}),
        closed(3, dropped={D: "too late"}, aside={path_of(0, "two"): "is missing"}),
    )
    assert fold.counts_by_window == {
        (hour(0).name, "discovery"): {"too_late": 9},
        (hour(0).name, "reports"): {"batched": 60, "quarantined": 5},
        (hour(1).name, "reports"): {"waiting": 7},
    }
    assert {place: number for place, number in fold.counts_by_state.items() if number} == {
        ("reports", "batched"): 60, ("reports", "quarantined"): 5, ("reports", "waiting"): 7,
        ("discovery", "too_late"): 9,
    }  # fmt: skip


def test_a_done_hop_keeps_the_digest_of_the_summary_that_is_published() -> None:
    (made, done) = entries(MADE, SHUFFLED)
    folding = Folding("shuffler", CAMPAIGN)
    for entry in (made, done):
        folding.add(entry)
    hop = folding.fold.hops_of(BATCH)["shuffle"]
    assert SHUFFLED.summary is not None
    assert hop.summary == digest_of_json(published(SHUFFLED.summary, Head(1, 2, done.digest)))
    assert (hop.entry, hop.folder) == (Head(1, 2, done.digest), "0" * 16)
    assert (hop.counts.accepted_of("reports"), hop.counts.accepted_of("discovery")) == (60, 70)


UNKNOWN = path_of(9)
WRONG: dict[str, list[Decision]] = {
    "a batch of an unknown segment": [closed(0, batch={"reports": (UNKNOWN,)})],
    "a batch of a batched segment": [MADE, closed(1, batch={"reports": (R,)})],
    "a manifest is taken in twice": [closed(0, taken(0)), closed(1, taken(0))],
    "a segment is taken in twice": [
        closed(0, taken(0)),
        closed(1, taken(0).model_copy(update={"path": taken(0, collector="two").path})),
    ],
    "an unknown segment is dropped": [closed(0, dropped={UNKNOWN: "too late"})],
    "a batched segment is dropped": [MADE, closed(5, dropped={R: "too late"})],
    "an unknown batch is shuffled": [SHUFFLED],
    "an unknown batch goes back": [log.GivenBack(batch=BATCH)],
    "a batch goes back twice": [MADE, log.GivenBack(batch=BATCH), log.GivenBack(batch=BATCH)],
    "a batch goes back that is shuffled": [MADE, SHUFFLED, log.GivenBack(batch=BATCH)],
    "a batch is shuffled that went back": [MADE, log.GivenBack(batch=BATCH), SHUFFLED],
    "a hop is done twice": [MADE, SHUFFLED, SHUFFLED],
    "what no hop wrote is gone": [MADE, log.Gone(batch=BATCH, hop="shuffle")],
    "what another hop wrote is gone": [MADE, SHUFFLED, log.Gone(batch=BATCH, hop="analyze")],
    "what no hop wrote is received": [MADE, log.Received(party="analyzer", hop="shuffle", batches=(BATCH,))],
    "what another hop wrote is received": [
        MADE,
        SHUFFLED,
        log.Received(party="analyzer", hop="release", batches=(BATCH,)),
    ],
    "a window closes twice": [closed(0), closed(0)],
    "a window closes behind a later one": [closed(1), closed(0)],
    "the log is of another campaign": [log.Opened(party="shuffler", campaign="other")],
    "the log is of another party": [log.Opened(party="analyzer", campaign=CAMPAIGN)],
    "a summary does not add up": [MADE, log.Finished(batch=BATCH, hop="shuffle", folder="0" * 16, summary={"hop": 7})],
}


@pytest.mark.parametrize("decisions", WRONG.values(), ids=WRONG)
def test_what_cannot_be_decided_is_refused(decisions: list[Decision]) -> None:
    made = entries(*decisions)
    folding = Folding("shuffler", CAMPAIGN)
    for entry in made[:-1]:
        folding.add(entry)
    with pytest.raises(FormatError, match=f"entry {len(made)} "):
        folding.add(made[-1])


def test_an_entry_that_does_not_follow_is_refused() -> None:
    first, second, third = entries(OPENED, closed(0), closed(1))
    other = entries(OPENED, closed(0), start=START + MINUTE)[1]
    for before, wrong in (
        ([], second), ([first], first), ([first], third), ([first], other), ([first, second], second),
        ([first], replace(second, number=3)), ([first], replace(second, before=None)),
    ):  # fmt: skip
        folding = Folding("shuffler", CAMPAIGN)
        for entry in before:
            folding.add(entry)
        with pytest.raises(FormatError, match="does not follow entry"):
            folding.add(wrong)


def test_a_fold_does_not_change_when_entries_are_added() -> None:
    folding = Folding("shuffler", CAMPAIGN)
    kept = []
    for entry in random_log(Random(7), 120):
        folding.add(entry)
        kept.append((folding.fold, seen(folding.fold)))
    assert all(seen(fold) == said for fold, said in kept)


def random_log(random: Random, length: int) -> list[Entry]:
    """Return a log of decisions each of which the log before it allows."""
    folding, window = Folding("shuffler", CAMPAIGN), 0
    made: list[Entry] = []
    for number in range(1, length + 1):
        kinds = (_close, _close, _give_back, _shuffle, _analyze, _lose, _delete, _alert)
        decision = random.choice(kinds)(random, folding.fold, window) or _close(random, folding.fold, window)
        window += isinstance(decision, log.Closed)
        written = write_entry(number, folding.head.digest, START + number * MINUTE, decision)
        made.append(read_entry(written.data, "e.json", {}.__getitem__))
        folding.add(made[-1])
    return made


def _give_back(random: Random, fold: Fold, _: int) -> Decision | None:
    undone = [name for name in fold.batches if fold.is_undone(name)]
    return log.GivenBack(batch=random.choice(undone)) if undone else None


def _shuffle(random: Random, fold: Fold, _: int) -> Decision | None:
    undone = [name for name in fold.batches if fold.is_undone(name)]
    if not undone:
        return None
    name = random.choice(undone)
    return _done(random, name, "shuffle", [one for one in fold.batches[name].segments if random.random() < 0.7])


def _shuffled(fold: Fold) -> list[str]:
    return [name for name, hops in fold.done.items() if "shuffle" in hops]


def _analyze(random: Random, fold: Fold, _: int) -> Decision | None:
    left = [name for name in _shuffled(fold) if "analyze" not in fold.done[name]]
    return _done(random, random.choice(left), "analyze", ["reports"]) if left else None


def _lose(random: Random, fold: Fold, _: int) -> Decision | None:
    shuffled = _shuffled(fold)
    return log.Gone(batch=random.choice(shuffled), hop="shuffle") if shuffled else None


def _delete(random: Random, fold: Fold, _: int) -> Decision | None:
    shuffled, made = _shuffled(fold), random.choice((log.Deleting, log.Deleted))
    return made(folder="shuffled", batches=(random.choice(shuffled),)) if shuffled else None


def _alert(random: Random, _: Fold, window: int) -> Decision:
    return log.Told(window=hour(window).name, up={random.choice("abc"): random.random() < 0.5})


def _close(random: Random, fold: Fold, window: int) -> Decision:
    manifests = [
        taken(window, {stream: random.randrange(1, 99) for stream in BOTH if random.random() < 0.8}, name)
        for name in ("one", "two")
        if random.random() < 0.8
    ]
    paths = [*fold.waiting, *(segment for one in manifests for segment in _segments(one))]
    where = {path: random.choice(("batch", "batch", "wait", "aside", "drop")) for path in paths}
    batch = {
        stream: tuple(path for path, place in where.items() if place == "batch" and f"/{stream}/" in path)
        for stream in BOTH
    }
    return closed(
        window, *manifests,
        batch={stream: listed for stream, listed in batch.items() if listed} or None,
        aside={path: "is missing" for path, place in where.items() if place == "aside"},
        dropped={path: "too late" for path, place in where.items() if place == "drop"},
    )  # fmt: skip


def _segments(manifest: log.TakenManifest) -> list[str]:
    folder = manifest.path.rpartition("/")[0]
    return [f"{folder}/{stream}/{part.name}" for stream, parts in manifest.segments.items() for part in parts]


def _done(random: Random, name: str, hop: HopName, streams: list[Stream]) -> log.Finished:
    done = finished(0, hop, f"{random.getrandbits(64):016x}", **dict.fromkeys(streams, random.randrange(9)))
    return done.model_copy(update={"batch": name})


@given(seed=st.integers(0, 1 << 32))
def test_a_fold_at_any_entry_is_as_good_as_the_log_before_it(seed: int) -> None:
    """As a checkpoint holds it: in JSON and back."""
    random = Random(seed)
    made, kept = random_log(random, 60), TypeAdapter(Fold)
    whole = Folding("shuffler", CAMPAIGN)
    at = random.randrange(len(made))
    for entry in made[:at]:
        whole.add(entry)
    copy = kept.validate_json(kept.dump_json(whole.fold))
    assert copy == whole.fold
    resumed = Folding("shuffler", CAMPAIGN, whole.head, copy)
    for entry in made[at:]:
        whole.add(entry)
        resumed.add(entry)
        assert (resumed.fold, resumed.head) == (whole.fold, whole.head)
    assert kept.dump_json(resumed.fold) == kept.dump_json(whole.fold)


def test_the_logs_of_several_parties_say_more_together() -> None:
    shuffler = folded(OPENED, MADE, SHUFFLED, TOLD)
    folding = Folding("analyzer", CAMPAIGN)
    for entry in entries(
        log.Opened(party="analyzer", campaign=CAMPAIGN), finished(0, "analyze", reports=60),
        log.Deleting(folder="results/dead_letter", batches=(BATCH,)), start=START + 60 * MINUTE,
    ):  # fmt: skip
        folding.add(entry)
    both = merged(CAMPAIGN, [shuffler, folding.fold])
    assert [*both.hops_of(BATCH)] == ["shuffle", "analyze"]
    assert both.heads == {**shuffler.heads, "analyzer": folding.head}
    assert both.latest == folding.fold.latest
    assert (both.batches, both.windows, both.closed) == (shuffler.batches, shuffler.windows, shuffler.closed)
    assert both.deleted == {f"results/dead_letter {BATCH}": False}
    assert both.told == shuffler.told
    assert merged(CAMPAIGN, [folding.fold]).batches == {}
    assert merged(CAMPAIGN, [shuffler]) == shuffler
    assert merged(CAMPAIGN, []) == Fold(CAMPAIGN)
