"""What a journal holds after a crash, or on a disk that alters what it was given.

A crash leaves whole frames and at most the beginning of one more: of that one nobody was told that it is there.
Whatever else is found is damage, also zeros at the end, which a power cut can leave and a disk that lost a frame too:
what cannot be told apart is counted, not passed over. A damaged frame costs only itself; the next is found by the
journal's mark.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from hushcount.errors import FormatError
from shuffler.collector.journals.journal import FRAME_HEADER_BYTES, HEADER_BYTES, MAGIC, FrameHeader, JournalHeader


@dataclass(frozen=True)
class Recovered:
    """What a journal holds.

    Attributes:
        header: its header, or None where that was never whole: nothing in the file was ever acknowledged.
        records: the envelopes of all whole frames, in the order in which they were appended.
        torn_bytes: length of the beginning of a frame at the end, which was never acknowledged.
        damaged: how many frames, or stretches in which no frame is told from another, are damaged.
        damaged_records: how many envelopes these held, as far as that is known.
    """

    header: JournalHeader | None
    records: bytes
    torn_bytes: int
    damaged: int
    damaged_records: int


def recover(data: bytes, name: str) -> Recovered:
    """Return what the bytes of a journal hold; `name` is the file's, for the error.

    Raises:
        FormatError: not a journal of this version, or its header is damaged.
    """
    if len(data) < HEADER_BYTES:
        if not MAGIC.startswith(data[: len(MAGIC)]):
            raise FormatError(f"{name} is no journal of version 2, or its header is damaged")
        return Recovered(None, b"", len(data), 0, 0)
    header = JournalHeader.decode(data[:HEADER_BYTES], name)
    view, payloads = memoryview(data), []
    position, seen, torn, damaged, damaged_records = HEADER_BYTES, 0, 0, 0, 0
    while position < len(data):
        start, frame = _next_frame(data, position, header, seen)
        if frame is None:
            rest = data[position:]
            if header.mark.startswith(rest[: len(header.mark)]) and len(rest) < FRAME_HEADER_BYTES:
                torn = len(rest)
            else:
                damaged += 1
                damaged_records += _most_records(rest, header)
            break
        if start > position or frame.before > seen:
            damaged += 1
            damaged_records += frame.before - seen
        position = start + FRAME_HEADER_BYTES + frame.length
        if position > len(data):
            torn = len(data) - start
            break
        payload = view[start + FRAME_HEADER_BYTES : position]
        records = frame.length // header.record_bytes
        if zlib.crc32(payload) == frame.checksum:
            payloads.append(payload)
        else:
            damaged += 1
            damaged_records += records
        seen = frame.before + records
    return Recovered(header, b"".join(payloads), torn, damaged, damaged_records)


def _next_frame(data: bytes, position: int, header: JournalHeader, seen: int) -> tuple[int, FrameHeader | None]:
    """Return where the next frame with a whole header begins, from a position on, and that header; None: there is none.

    Args:
        data: the journal.
        position: where to begin.
        header: of the journal.
        seen: how many envelopes come before it at least.
    """
    while (position := data.find(header.mark, position)) >= 0:
        if len(data) - position >= FRAME_HEADER_BYTES:
            frame = FrameHeader.decode(data[position : position + FRAME_HEADER_BYTES])
            if frame is not None and frame.length and frame.length % header.record_bytes == 0 and frame.before >= seen:
                return position, frame
        position += 1
    return position, None


def _most_records(rest: bytes, header: JournalHeader) -> int:
    """Return how many envelopes fit into what is left of damaged frames; zeros are none."""
    length = len(rest.rstrip(b"\0")) - FRAME_HEADER_BYTES
    return max(0, -(-length // header.record_bytes))
