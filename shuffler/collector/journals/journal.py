"""Journals: envelopes on a local disk, synced before they are acknowledged.

    header  magic "HUSHJRN2", kind, record length, epoch, start of the window in ms since 1970, campaign fingerprint and
            id, mark, CRC-32 of all this
    frame   the journal's mark, number of envelopes in earlier frames, length of the payload, CRC-32 of the payload,
            CRC-32 of all this, then the payload: one or more envelopes

All little-endian. One sync writes one frame. The mark is random for each journal, and is never sent to anyone. The mark
shows where the next frame begins after a damaged frame, and no client can send a report that looks like a frame,
because no client knows the mark.

After a crash, a journal holds whole frames and at most the beginning of one more frame, whose reports were never
acknowledged. Any other content counts as damage. Zeros at the end count as damage too, because they may come from a
power cut, but also from a disk that lost a frame. A damaged frame does not affect other frames.
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
        """Return the header in FRAME_HEADER_BYTES bytes, or None if bytes are missing or the checksum is wrong."""
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
        """Return the header in HEADER_BYTES bytes of a file with this name; FormatError if this is no header."""
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

        After an OSError there is no file, or at worst a file with an incomplete header.
        """
        # With O_DSYNC, a write returns when a call of fdatasync after it would return, so one system call does the work
        # of two.
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
        """Write a frame of one or more envelopes; after an OSError the caller must call `abandon`."""
        if not records or len(records) % self.header.record_bytes:
            raise ValueError(f"records has {len(records)} bytes, must be whole envelopes of {self.header.record_bytes}")
        frame = FrameHeader(self.header.mark, self.records, len(records), zlib.crc32(records))
        self._write(frame.encode() + records)
        self.records += len(records) // self.header.record_bytes

    def close(self) -> None:
        os.close(self._descriptor)

    def abandon(self) -> None:
        """Cut off a frame that could not be written, if the disk allows it, and close the file.

        If the disk does not allow this, the frame is either incomplete, and recovery drops it; or complete, and a
        client that sends its reports again, because they were not acknowledged, makes copies. After a failed write the
        disk's contents are unknown, so the journal gets no further frame.
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
    """The contents of a journal; if the journal's header is incomplete, no report in the journal was acknowledged."""

    header: JournalHeader | None
    records: bytes = b""  # envelopes of all whole frames, in order
    torn_bytes: int = 0  # bytes of an incomplete frame at the end; its reports were never acknowledged
    damaged: int = 0  # damaged frames, or stretches of bytes in which no frame can be recognised
    damaged_records: int = 0  # envelopes in these frames and stretches, as far as known


def recover(data: bytes, name: str) -> Recovered:
    """Recover a journal from the bytes of the file with this name; FormatError if the journal's header is damaged."""
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
    """Return the place of the next frame, and its header, which is whole and counts `seen` or more envelopes before."""
    while (position := data.find(header.mark, position)) >= 0:
        if len(data) - position >= FRAME_HEADER_BYTES:
            frame = FrameHeader.decode(data[position : position + FRAME_HEADER_BYTES])
            if frame is not None and frame.length and frame.length % header.record_bytes == 0 and frame.before >= seen:
                return position, frame
        position += 1
    return position, None


def _most_records(rest: bytes, header: JournalHeader) -> int:
    """Return how many envelopes fit at most into the damaged end of a journal, without the zeros at the end."""
    length = len(rest.rstrip(b"\0")) - FRAME_HEADER_BYTES
    return max(0, -(-length // header.record_bytes))
