"""Entries: each kind comes back as it was written, and what is no entry is refused in a sentence."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcount.errors import FormatError, HushcountError, UsageError
from pipelines.log import entries as log
from pipelines.log import entry_files
from pipelines.log.entries import Decision
from pipelines.log.entry_files import BESIDE_BYTES, ENTRY_BYTES, digest_of, read_entry, write_entry
from tests.support.decisions import START, batch_of, closed, finished, hour, path_of, taken

BATCH, SEGMENT = batch_of(0), path_of(0)
DECISIONS: tuple[Decision, ...] = (
    log.Opened(party="shuffler", campaign="words"),
    closed(
        1, taken(0, {"reports": 5, "discovery": 7}), taken(1, {}, "two"), batch={"reports": (SEGMENT,)},
        aside={path_of(0, stream="discovery"): "fails its digest"}, dropped={path_of(0, "three"): "too late"},
    ),
    finished(0, "shuffle", reports=5, discovery=7),
    finished(0, "discover", folder=None),
    log.GivenBack(batch=BATCH, aside={SEGMENT: "is missing"}),
    log.Gone(batch=BATCH, hop="shuffle"),
    log.Deleting(folder="shuffled/dead_letter", batches=(BATCH,)),
    log.Deleted(folder="shuffled", batches=(BATCH,), windows=("words/000001-0/20261121T000000Z",)),
    log.Confirmed(),
    log.Told(window=hour(0).name, up={"0123456789abcdef": True, "fedcba9876543210": False}),
    log.Received(party="analyzer", hop="shuffle", batches=(BATCH,)),
    log.Charging(ledger="0123456789abcdef"),
    log.Opened(party="shuffler", campaign="words", restored=log.Restored(
        generation=1, number=7, entry="a" * 64, lost=12, through=START, manifests=(taken(1),),
        adopted=(log.Adopted(
            batch=BATCH, hop="shuffle", seconds=3600, folder="0" * 16, digest="c" * 64,
            summary={"hop": "shuffle", "received": 5},
        ),),
        held=(log.Held(batch=BATCH, hop="release", seconds=3600, summary="b" * 64),),
    )),
    log.Deleting(folder="shuffled", batches=(BATCH,), unreceived=(BATCH,)),
    log.Settings(begins=None, seconds=3600, grace=7200),
    log.Settings(begins=START, seconds=86_400, grace=1),
    log.CalendarSettings(begins=START, calendar="week Europe/Berlin monday", grace=1),
)  # fmt: skip
VECTORS = Path(__file__).parent / "entries.json"


def nothing_beside(digest: str) -> bytes:
    raise AssertionError(f"no file beside the log is named, least {digest}")


def test_the_entries_of_today_are_read_by_every_later_version() -> None:
    """The vectors are bytes that stand in stores: what reads them may change, they may not. They have every kind."""
    assert {type(one) for one in DECISIONS} == set(get_args(Decision))
    for one in json.loads(VECTORS.read_text()):
        raw = one["entry"].encode()
        entry = read_entry(raw, "e.json", nothing_beside)
        assert entry.digest == digest_of(raw) == one["digest"]
        (decision,) = (known for known in DECISIONS if known == entry.decision)
        again = json.loads(write_entry(entry.number, entry.before, entry.at, decision).data)
        assert {**again, "id": entry.id} == json.loads(raw)
    assert len(json.loads(VECTORS.read_text())) == len(DECISIONS)


def test_two_entries_of_one_decision_have_ids_of_their_own() -> None:
    ids = {write_entry(1, None, START, log.Confirmed()).id for _ in range(100)}
    assert len(ids) == 100


def test_a_moment_is_written_in_utc_and_whole_seconds() -> None:
    east = datetime(2026, 11, 21, 2, 0, 0, 999_999, tzinfo=timezone(timedelta(hours=2)))
    written = write_entry(1, None, log.whole_second(east), log.Confirmed())
    assert read_entry(written.data, "e.json", nothing_beside).at == START
    with pytest.raises(ValueError, match="must have a time zone"):
        log.whole_second(datetime(2026, 11, 21))


def changed(**fields: object) -> bytes:
    """Return an entry with some of its fields exchanged; None: left out."""
    raw: dict[str, Any] = json.loads(write_entry(2, "0" * 64, START, log.Gone(batch=BATCH, hop="shuffle")).data)
    return json.dumps({name: value for name, value in (raw | fields).items() if value is not None}).encode()


def test_an_entry_of_a_newer_version_says_what_to_do() -> None:
    for newer, says in (
        (changed(format=2), "e.json is of version 2, this is version 1: use the newer hushcount"),
        (changed(format=2, decision=None, more=[1]), "e.json is of version 2"),
        (changed(decision={"kind": "moved"}), "e.json is of kind 'moved', which a newer hushcount wrote: use that one"),
    ):
        with pytest.raises(UsageError) as refused:
            read_entry(newer, "e.json", nothing_beside)
        assert says in str(refused.value)


def test_what_is_no_entry_is_refused_by_its_name(subtests: pytest.Subtests) -> None:
    gone = {"kind": "gone", "batch": BATCH, "hop": "shuffle"}
    window = closed(0, taken(0)).model_dump(mode="json")
    for wrong in (
        b"", b"[]", b"{", b"\xff", b"[" * 100_000,
        changed(format=0), changed(format=None), changed(number=0), changed(number=10**10),
        changed(id="x"), changed(before="0"), changed(at="2026-11-21T00:00:00"), changed(at="never"), changed(more=1),
        changed(decision=None), changed(decision=[]), changed(elsewhere="0"),
        changed(decision={}), changed(decision={"kind": 7}), changed(decision={"kind": []}),
        changed(decision={**gone, "batch": "none"}), changed(decision={**gone, "hop": "none"}),
        changed(decision={**gone, "more": 1}), changed(decision={**window, "window": "20261399T000000Z"}),
        changed(decision={**window, "seconds": 0}), changed(decision={**window, "dropped": {"../x": ""}}),
        changed(decision={**window, "manifests": [{**window["manifests"][0], "window": "00010101T000000Z"}]}),
    ):  # fmt: skip
        with subtests.test(wrong=wrong[:200]), pytest.raises(FormatError, match=r"e\.json"):
            read_entry(wrong, "e.json", nothing_beside)


def long_decision(number: int = 3000) -> log.Closed:
    return closed(0, dropped={path_of(0, f"{index:096d}"): "too late" for index in range(number)})


def test_what_no_store_takes_in_one_request_goes_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    short = write_entry(1, None, START, long_decision(10))
    assert short.beside is None
    written = write_entry(1, None, START, long_decision())
    assert written.beside is not None
    assert len(written.beside) > ENTRY_BYTES > 1000 > len(written.data)
    files = {digest_of(written.beside): written.beside}
    assert read_entry(written.data, "e.json", files.__getitem__).decision == long_decision()
    with pytest.raises(FormatError, match=r"e\.json names a file beside it with another content: restore that file"):
        read_entry(written.data, "e.json", lambda digest: files[digest] + b" ")
    monkeypatch.setattr(entry_files, "BESIDE_BYTES", len(written.beside))
    assert write_entry(1, None, START, long_decision()).beside == written.beside
    monkeypatch.setattr(entry_files, "BESIDE_BYTES", len(written.beside) - 1)
    with pytest.raises(FormatError, match="report this bug"):
        write_entry(1, None, START, long_decision())


def test_the_longest_batch_fits_beside() -> None:
    """As many segments of each stream as a batch lists, with the longest names."""
    names: Any = {
        stream: tuple(f"{'z' * 200}{index:06d}.blocks" for index in range(1 << 14))
        for stream in ("reports", "discovery")
    }
    written = write_entry(1, None, START, closed(0, batch=names))
    assert written.beside is not None
    assert len(written.beside) < BESIDE_BYTES


Json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)


@given(st.binary(max_size=300))
def test_no_bytes_raise_anything_but_our_errors(data: bytes) -> None:
    with pytest.raises(HushcountError):
        read_entry(data, "e.json", nothing_beside)


@given(which=st.sampled_from(DECISIONS), draw=st.data())
def test_no_change_of_an_entry_raises_anything_but_our_errors(which: Decision, draw: st.DataObject) -> None:
    """Any value at any place of an entry of any kind."""
    raw = json.loads(write_entry(3, "0" * 64, START, which).data)
    place: Any = raw
    while True:
        key = draw.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if isinstance(place[key], dict | list) and place[key] and draw.draw(st.booleans()):
            place = place[key]
            continue
        place[key] = draw.draw(Json)
        break

    def beside(digest: str) -> bytes:
        return json.dumps(raw).encode()

    with suppress(HushcountError):
        entry = read_entry(json.dumps(raw).encode(), "e.json", beside)
        # What is read can be written, and is read as the same.
        again = write_entry(entry.number, entry.before, entry.at, entry.decision)
        assert read_entry(again.data, "e.json", beside).decision == entry.decision
