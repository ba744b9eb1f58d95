"""Journals: envelopes on a local disk, synced before anybody is told that they are kept.

    header  magic "HUSHJRN2", kind, record length, epoch, start of the window in ms since 1970, campaign fingerprint and
            id, mark, CRC-32 of all this
    frame   the journal's mark, how many envelopes are in the frames before, length of the payload, CRC-32 of the
            payload, CRC-32 of all this, then the payload: one or more envelopes

All little-endian. A frame is what was synced at once. The mark is drawn anew for each journal and never leaves the
disk: by it the next frame is found where one is damaged, and no client can write a report that looks like a frame.
`shuffler.collector.journals.recovery` reads what a crash or a bad disk left.
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

MAGIC = b"HUSHJRN2"
MARK_BYTES = 8
_CRC = struct.Struct("<I")
_HEADER = struct.Struct(f"<8sIIQQ32s{ID_BYTES}s{MARK_BYTES}s")
_FRAME = struct.Struct(f"<{MARK_BYTES}sIII")
HEADER_BYTES = _HEADER.size + _CRC.size
FRAME_HEADER_BYTES = _FRAME.size + _CRC.size


@dataclass(frozen=True)
class FrameHeader:
    """What stands before the payload of a frame.

    Attributes:
        mark: of the journal.
        before: how many envelopes are in the frames before this one.
        length: of the payload, bytes.
        checksum: CRC-32 of the payload.
    """

    mark: bytes
    before: int
    length: int
    checksum: int

    def encode(self) -> bytes:
        """Return its FRAME_HEADER_BYTES bytes."""
        packed = _FRAME.pack(self.mark, self.before, self.length, self.checksum)
        return packed + _CRC.pack(zlib.crc32(packed))

    @classmethod
    def decode(cls, raw: bytes) -> FrameHeader | None:
        """Return what FRAME_HEADER_BYTES bytes say, or None if they fail their checksum."""
        if _CRC.unpack_from(raw, _FRAME.size)[0] != zlib.crc32(raw[: _FRAME.size]):
            return None
        return cls(*_FRAME.unpack_from(raw))


@dataclass(frozen=True)
class JournalHeader:
    """Whose envelopes a journal holds.

    Attributes:
        kind: of envelopes, which says the stream.
        record_bytes: length of an envelope.
        epoch: of the campaign file.
        window_ms: start of the window, milliseconds since 1970.
        campaign: the 32-byte fingerprint of the campaign file.
        campaign_id: its id.
        mark: MARK_BYTES random bytes with which each frame begins.
    """

    kind: Kind
    record_bytes: int
    epoch: int
    window_ms: int
    campaign: bytes
    campaign_id: str
    mark: bytes = field(repr=False)

    def encode(self) -> bytes:
        """Return the HEADER_BYTES bytes at the start of a journal."""
        packed = _HEADER.pack(
            MAGIC,
            self.kind,
            self.record_bytes,
            self.epoch,
            self.window_ms,
            self.campaign,
            self.campaign_id.encode(),
            self.mark,
        )
        return packed + _CRC.pack(zlib.crc32(packed))

    @classmethod
    def decode(cls, raw: bytes, name: str) -> JournalHeader:
        """Return what HEADER_BYTES bytes say; `name` is the file's, for the error.

        Raises:
            FormatError: they are of another version, or damaged.
        """
        magic, kind, record_bytes, epoch, window_ms, campaign, campaign_id, mark = _HEADER.unpack_from(raw)
        if magic != MAGIC or _CRC.unpack_from(raw, _HEADER.size)[0] != zlib.crc32(raw[: _HEADER.size]):
            raise FormatError(f"{name} is no journal of version 2, or its header is damaged")
        readable = campaign_id.rstrip(b"\0").decode("utf-8", "replace")
        return cls(Kind(kind), record_bytes, epoch, window_ms, campaign, readable, mark)


@dataclass
class Journal:
    """A journal that is open for appending; each write to it waits for the disk.

    Attributes:
        path: of the file.
        header: whose envelopes.
        synced: length of the file that is known to be on the disk.
        records: how many envelopes are in it.
    """

    path: Path
    header: JournalHeader
    synced: int = 0
    records: int = 0
    _descriptor: int = field(default=-1, repr=False)

    @classmethod
    def create(cls, path: Path, header: JournalHeader) -> Journal:
        """Make a new journal, its name and header on the disk when this returns.

        Raises:
            OSError: the disk is full or the directory cannot be written; nothing is left but, at worst, a file with a
                torn header.
        """
        # O_DSYNC: a write returns when fdatasync would, in one system call instead of two.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_DSYNC | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o600)
        journal = cls(path, header, _descriptor=descriptor)
        try:
            journal._write(header.encode())
            sync(path.parent)
        except OSError:
            os.close(descriptor)
            path.unlink(missing_ok=True)
            raise
        return journal

    def append(self, records: bytes) -> None:
        """Write a frame of one or more whole envelopes; they are on the disk when this returns.

        Raises:
            OSError: the disk is full or broken; `abandon` the journal.
        """
        if not records or len(records) % self.header.record_bytes:
            raise ValueError(f"records has {len(records)} bytes, must be whole envelopes of {self.header.record_bytes}")
        frame = FrameHeader(self.header.mark, self.records, len(records), zlib.crc32(records))
        self._write(frame.encode() + records)
        self.records += len(records) // self.header.record_bytes

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def abandon(self) -> None:
        """Cut off what was written of a frame that failed, as far as the disk lets us, and close the file.

        What cannot be cut off stays: a torn frame, which recovery drops, or reports that were not acknowledged, of
        which a client's second try is a copy. After a failed write nobody knows what the disk has, so the file is not
        appended to again.
        """
        try:
            os.ftruncate(self._descriptor, self.synced)
            os.fsync(self._descriptor)
        except OSError:
            pass
        finally:
            os.close(self._descriptor)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._descriptor, view) :]
        self.synced += len(data)
