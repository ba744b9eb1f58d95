"""Journals: all whole frames are recovered and nothing else; what a crash cannot have left is counted as damage."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcount.errors import FormatError
from hushcount.wire.blocks import Kind
from shuffler.collector.journals.journal import FRAME_HEADER_BYTES, HEADER_BYTES, Journal, JournalHeader, recover

RECORD = 4
MARK = bytes(range(0xF0, 0xF8))
HEADER = JournalHeader(Kind.REPORT_ENVELOPES, RECORD, 3, 1_795_219_200_000, bytes(range(32)), "words", MARK)
GOLDEN = (
    "485553484a524e32" "01000000" "04000000" "0300000000000000" "001867fba1010000"
    "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
    + "776f726473".ljust(136, "0")
    + "f0f1f2f3f4f5f6f7" "bf1ed74b"
    "f0f1f2f3f4f5f6f7" "00000000" "04000000" "11cd82ed" "c1affd89" "61626364"
    "f0f1f2f3f4f5f6f7" "01000000" "08000000" "67629f68" "4f0839bb" "65666768696a6b6c"
)  # fmt: skip
FRAMES = st.lists(st.binary(min_size=1, max_size=5).map(lambda data: data * RECORD), max_size=6)
FIVE = [b"aaaa", b"bbbbcccc", b"dddd", b"eeeeffffgggg", b"hhhh"]


def write(path: Path, frames: list[bytes]) -> bytes:
    path.unlink(missing_ok=True)
    journal = Journal.create(path, HEADER)
    for frame in frames:
        journal.append(frame)
    journal.close()
    return path.read_bytes()


def frame_starts(frames: list[bytes]) -> list[int]:
    """Return where each frame begins, and where the last one ends."""
    starts = [HEADER_BYTES]
    for frame in frames:
        starts.append(starts[-1] + FRAME_HEADER_BYTES + len(frame))
    return starts


def test_the_format_is_the_documented_one(tmp_path: Path) -> None:
    data = write(tmp_path / "j", [b"abcd", b"efghijkl"])
    assert data.hex() == GOLDEN
    assert recover(data, "j").header == HEADER


@given(frames=FRAMES, data=st.data())
def test_any_prefix_recovers_exactly_its_whole_frames(
    tmp_path_factory: pytest.TempPathFactory, frames: list[bytes], data: st.DataObject
) -> None:
    whole = write(tmp_path_factory.getbasetemp() / "prefix", frames)
    cut = data.draw(st.integers(0, len(whole)))
    ends = frame_starts(frames)
    number = sum(end <= cut for end in ends) - 1
    found = recover(whole[:cut], "j")
    if number < 0:
        assert found.header is None
        assert found.records == b""
        return
    assert found.header == HEADER
    assert found.records == b"".join(frames[:number])
    assert found.torn_bytes == cut - ends[number]
    assert (found.damaged, found.damaged_records) == (0, 0)


@given(frames=FRAMES, tail=st.integers(1, 5000))
def test_zeros_after_the_end_are_no_reports_but_may_have_been_some(
    tmp_path_factory: pytest.TempPathFactory, frames: list[bytes], tail: int
) -> None:
    whole = write(tmp_path_factory.getbasetemp() / "zeros", frames)
    found = recover(whole + bytes(tail), "j")
    assert found.records == b"".join(frames)
    assert (found.torn_bytes, found.damaged, found.damaged_records) == (0, 1, 0)


def test_any_altered_bit_costs_one_frame_and_is_counted(tmp_path: Path) -> None:
    data = bytearray(write(tmp_path / "j", FIVE))
    starts = frame_starts(FIVE)
    for bit in range(8 * HEADER_BYTES, 8 * len(data)):
        data[bit // 8] ^= 1 << bit % 8
        found = recover(bytes(data), "j")
        data[bit // 8] ^= 1 << bit % 8
        hit = sum(start <= bit // 8 for start in starts) - 1
        assert found.records == b"".join(frame for number, frame in enumerate(FIVE) if number != hit), bit
        assert (found.torn_bytes, found.damaged, found.damaged_records) == (0, 1, len(FIVE[hit]) // RECORD), bit


def test_frames_whose_headers_are_damaged_are_one_stretch_of_known_length(tmp_path: Path) -> None:
    data = bytearray(write(tmp_path / "j", FIVE))
    starts = frame_starts(FIVE)
    data[starts[1] : starts[4]] = os.urandom(starts[4] - starts[1])
    found = recover(bytes(data), "j")
    assert found.records == FIVE[0] + FIVE[4]
    assert (found.damaged, found.damaged_records) == (1, 6)
    del data[starts[1] : starts[4]]
    found = recover(bytes(data), "j")
    assert found.records == FIVE[0] + FIVE[4]
    assert (found.damaged, found.damaged_records) == (1, 6)


def test_a_frame_inside_of_a_report_is_not_taken_for_one(tmp_path: Path) -> None:
    other = write(tmp_path / "other", [b"evil"])[HEADER_BYTES:]
    forged = bytes(8) + other[8:]
    data = bytearray(write(tmp_path / "j", [b"aaaa", forged + bytes(-len(forged) % RECORD), b"bbbb"]))
    data[HEADER_BYTES + FRAME_HEADER_BYTES + len(b"aaaa") + 12] ^= 1
    found = recover(bytes(data), "j")
    assert found.records == b"aaaabbbb"
    assert found.damaged == 1


def test_a_damaged_header_is_refused_not_taken_for_empty(tmp_path: Path) -> None:
    data = bytearray(write(tmp_path / "j", [b"aaaa"]))
    for bit in range(8 * HEADER_BYTES):
        data[bit // 8] ^= 1 << bit % 8
        with pytest.raises(FormatError, match="damaged"):
            recover(bytes(data), "j")
        data[bit // 8] ^= 1 << bit % 8
    assert recover(bytes(data), "j").records == b"aaaa"
    with pytest.raises(FormatError, match="damaged"):
        recover(bytes(HEADER_BYTES - 1), "j")


def test_what_is_no_whole_envelope_is_not_appended(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path / "j", HEADER)
    for wrong in (b"", b"abc", b"abcde"):
        with pytest.raises(ValueError, match="whole envelopes"):
            journal.append(wrong)
    journal.close()


def test_an_abandoned_journal_ends_with_its_last_synced_frame(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path / "j", HEADER)
    journal.append(b"abcd")
    with (tmp_path / "j").open("ab") as stream:
        stream.write(b"half a frame")
    journal.abandon()
    assert (tmp_path / "j").stat().st_size == journal.synced
    assert recover((tmp_path / "j").read_bytes(), "j").records == b"abcd"
