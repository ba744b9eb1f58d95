"""Journals: whatever part of one a crash leaves, all whole frames are recovered and nothing else."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcount.blocks import Kind
from hushcount.errors import FormatError
from shuffler.collector.journal import HEADER_BYTES, Journal, JournalHeader, recover

RECORD = 4
HEADER = JournalHeader(Kind.REPORT_ENVELOPES, RECORD, 3, 1_795_219_200_000, bytes(range(32)), "words")
GOLDEN = (
    "485553484a524e31" "01000000" "04000000" "0300000000000000" "001867fba1010000"
    "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
    + "776f726473".ljust(136, "0")
)  # fmt: skip
FRAMES = st.lists(st.binary(min_size=1, max_size=5).map(lambda data: data * RECORD), max_size=6)


def write(path: Path, frames: list[bytes]) -> bytes:
    path.unlink(missing_ok=True)
    journal = Journal.create(path, HEADER)
    for frame in frames:
        journal.append(frame)
    journal.close()
    return path.read_bytes()


def frame_bytes(payload: bytes) -> bytes:
    return struct.pack("<II", len(payload), zlib.crc32(payload)) + payload


def test_the_format_is_the_documented_one(tmp_path: Path) -> None:
    data = write(tmp_path / "j", [b"abcd", b"efghijkl"])
    header = bytes.fromhex(GOLDEN)
    assert data == header + struct.pack("<I", zlib.crc32(header)) + frame_bytes(b"abcd") + frame_bytes(b"efghijkl")
    assert recover(data, "j").header == HEADER


@given(frames=FRAMES, data=st.data())
def test_any_prefix_recovers_exactly_its_whole_frames(
    tmp_path_factory: pytest.TempPathFactory, frames: list[bytes], data: st.DataObject
) -> None:
    whole = write(tmp_path_factory.getbasetemp() / "prefix", frames)
    cut = data.draw(st.integers(0, len(whole)))
    ends = [HEADER_BYTES]
    for frame in frames:
        ends.append(ends[-1] + 8 + len(frame))
    number = sum(end <= cut for end in ends) - 1
    found = recover(whole[:cut], "j")
    if number < 0:
        assert found.header is None
        assert found.records == b""
        return
    assert found.header == HEADER
    assert found.records == b"".join(frames[:number])
    assert found.whole_bytes == ends[number]
    assert found.torn_bytes == cut - ends[number]
    assert found.damaged_records == 0


@given(frames=FRAMES, tail=st.integers(1, 5000))
def test_zeros_after_the_end_are_no_reports(
    tmp_path_factory: pytest.TempPathFactory, frames: list[bytes], tail: int
) -> None:
    whole = write(tmp_path_factory.getbasetemp() / "zeros", frames)
    found = recover(whole + bytes(tail), "j")
    assert found.records == b"".join(frames)
    assert found.torn_bytes == tail


def test_a_damaged_frame_in_the_middle_is_counted_and_costs_only_itself(tmp_path: Path) -> None:
    data = bytearray(write(tmp_path / "j", [b"aaaa", b"bbbbcccc", b"dddd"]))
    data[HEADER_BYTES + 12 + 8] ^= 1
    found = recover(bytes(data), "j")
    assert found.records == b"aaaadddd"
    assert found.damaged_records == 2


def test_a_damaged_header_is_refused_not_taken_for_empty(tmp_path: Path) -> None:
    data = bytearray(write(tmp_path / "j", [b"aaaa"]))
    data[20] ^= 1
    with pytest.raises(FormatError, match="damaged"):
        recover(bytes(data), "j")


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
