"""Journals: envelopes on a local disk, synced before they are acknowledged.

    header  magic "HUSHJRN2", kind, record length, epoch, start of the window in ms since 1970, campaign fingerprint and
            id, mark, CRC-32 of all this
    frame   the journal's mark, number of envelopes in earlier frames, length of the payload, CRC-32 of the payload,
            CRC-32 of all this, then the payload: one or more envelopes

All little-endian. One sync writes one frame. The mark is drawn anew for each journal and never leaves the disk. It
shows where the next frame begins after a damaged one, and no client can write a report that looks like a frame.

A crash leaves whole frames and at most the beginning of one more, which was never acknowledged. Everything else counts
as damage. So do zeros at the end: a power cut can leave them, but so can a disk that lost a frame. A damaged frame does
not affect the other frames.
"""

from __future__ import annotations

import os
import struct
import zlib
from dataclasses import dataclass, field
from pathlib import Path

from hushcount.errors import FormatError
from hushcount.formats.whole_files import sync
from hushcount.wire.blocks import ID_BYTES, Kind

MARK_BYTES = 8
_MAGIC = b"HUSHJRN2"
_CRC = struct.Struct("<I")
_HEADER = struct.Struct(f"<8sIIQQ32s{ID_BYTES}s{MARK_BYTES}s")
_FRAME = struct.Struct(f"<{MARK_BYTES}sIII")
HEADER_BYTES = _HEADER.size + _CRC.size
FRAME_HEADER_BYTES = _FRAME.size + _CRC.size


@dataclass(frozen=True)
class FrameHeader:
    """The header before the payload of a frame."""

    mark: bytes
    before: int  # envelopes in earlier frames
    length: int  # length of the payload in bytes
    checksum: int  # CRC-32 of the payload

    def encode(self) -> bytes:
        return _checked(_FRAME.pack(self.mark, self.before, self.length, self.checksum))

    @classmethod
    def decode(cls, raw: bytes) -> FrameHeader | None:
        """Return the header in FRAME_HEADER_BYTES bytes, or None if there are fewer or they fail their checksum."""
        return cls(*_FRAME.unpack_from(raw)) if len(raw) == FRAME_HEADER_BYTES and _is_whole(raw) else None


@dataclass(frozen=True)
class JournalHeader:
    """The facts that all envelopes of a journal share."""

    kind: Kind
    record_bytes: int
    epoch: int
    window_ms: int  # start of the window, milliseconds since 1970
    campaign: bytes  # the 32-byte fingerprint of the campaign file
    campaign_id: str
    mark: bytes = field(repr=False)  # MARK_BYTES random bytes at the start of each frame

    def encode(self) -> bytes:
        of = (self.kind, self.record_bytes, self.epoch, self.window_ms, self.campaign, self.campaign_id.encode())
        return _checked(_HEADER.pack(_MAGIC, *of, self.mark))

    @classmethod
    def decode(cls, raw: bytes, name: str) -> JournalHeader:
        """Return the header in HEADER_BYTES bytes of a file with this name; FormatError if they hold no header."""
        magic, kind, record_bytes, epoch, window_ms, campaign, campaign_id, mark = _HEADER.unpack_from(raw)
        if magic != _MAGIC or not _is_whole(raw):
            raise _no_journal(name)
        readable = campaign_id.rstrip(b"\0").decode("utf-8", "replace")
        return cls(Kind(kind), record_bytes, epoch, window_ms, campaign, readable, mark)


def _checked(packed: bytes) -> bytes:
    return packed + _CRC.pack(zlib.crc32(packed))


def _is_whole(raw: bytes) -> bool:
    return bool(_CRC.unpack_from(raw, len(raw) - _CRC.size)[0] == zlib.crc32(raw[: -_CRC.size]))


def _no_journal(name: str) -> FormatError:
    return FormatError(f"{name} is not a journal of version 2, or its header is damaged")


@dataclass
class Journal:
    """A journal that is open for appending; each write waits for the disk."""

    path: Path
    header: JournalHeader
    synced: int = 0  # bytes that are known to be on the disk
    records: int = 0
    _descriptor: int = field(default=-1, repr=False)

    @classmethod
    def create(cls, path: Path, header: JournalHeader) -> Journal:
        """Make a journal; its name and header are on the disk when this returns.

        After an OSError nothing is left, or at worst a file with a torn header.
        """
        # O_DSYNC: a write returns when fdatasync would, in one system call instead of two.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_DSYNC | os.O_CLOEXEC
        journal = cls(path, header, _descriptor=os.open(path, flags, 0o600))
        try:
            journal._write(header.encode())
            sync(path.parent)
        except OSError:
            journal.close()
            path.unlink(missing_ok=True)
            raise
        return journal

    def append(self, records: bytes) -> None:
        """Write a frame of one or more envelopes; after an OSError `abandon` the journal."""
        if not records or len(records) % self.header.record_bytes:
            raise ValueError(f"records has {len(records)} bytes, must be whole envelopes of {self.header.record_bytes}")
        frame = FrameHeader(self.header.mark, self.records, len(records), zlib.crc32(records))
        self._write(frame.encode() + records)
        self.records += len(records) // self.header.record_bytes

    def close(self) -> None:
        os.close(self._descriptor)

    def abandon(self) -> None:
        """Cut off a frame that could not be written, if the disk allows it, and close the file.

        If the frame stays, it is either torn, and recovery drops it, or it holds reports that were not acknowledged: a
        client that sends them again makes copies. After a failed write the disk's contents are unknown, so the journal
        gets no further frame.
        """
        try:
            os.ftruncate(self._descriptor, self.synced)
            os.fsync(self._descriptor)
        except OSError:
            pass
        finally:
            self.close()

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._descriptor, view) :]
        self.synced += len(data)


@dataclass(frozen=True)
class Recovered:
    """The contents of a journal; if its header is incomplete, no report in it was acknowledged."""

    header: JournalHeader | None
    records: bytes = b""  # envelopes of all whole frames, in order
    torn_bytes: int = 0  # bytes of a torn frame at the end, which was never acknowledged
    damaged: int = 0  # frames, or stretches in which frames cannot be told apart
    damaged_records: int = 0  # envelopes in these, as far as is known


def recover(data: bytes, name: str) -> Recovered:
    """Recover a journal from the bytes of its file, which has this name; FormatError if its header is damaged."""
    if len(data) < HEADER_BYTES:
        if not _MAGIC.startswith(data[: len(_MAGIC)]):
            raise _no_journal(name)
        return Recovered(None, torn_bytes=len(data))
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
    """Return the next frame with a whole header and at least `seen` envelopes before it, and where it begins."""
    while (position := data.find(header.mark, position)) >= 0:
        if len(data) - position >= FRAME_HEADER_BYTES:
            frame = FrameHeader.decode(data[position : position + FRAME_HEADER_BYTES])
            if frame is not None and frame.length and frame.length % header.record_bytes == 0 and frame.before >= seen:
                return position, frame
        position += 1
    return position, None


def _most_records(rest: bytes, header: JournalHeader) -> int:
    """Return how many envelopes fit at most into the damaged rest of a journal, without the zeros at its end."""
    length = len(rest.rstrip(b"\0")) - FRAME_HEADER_BYTES
    return max(0, -(-length // header.record_bytes))
